"""What the steps of a run cost, and what a sum leaves out."""

from rewind.model.step import Ending, Reading, Step
from rewind.pricing.spending import Spending, spending
from unit.store.making import request, response

TOLD = Reading()


def test_a_call_that_nobody_answered_is_left_out_of_the_sum_and_said_to_be() -> None:
    killed = Step(request=request(1), response=None)
    given_up = Step(request=request(2), response=response(ending=Ending.CLIENT_CLOSED, head=None, reading=TOLD))
    unreachable = Step(request=request(3), response=response(ending=Ending.NO_ANSWER, head=None, reading=TOLD))
    calls = [(killed, TOLD, None), (given_up, TOLD, None), (unreachable, TOLD, None)]
    assert spending(calls) == Spending(usd=None, unpriced=2)


def test_nothing_from_a_tape_and_something_unknown_are_together_unknown() -> None:
    played = Step(request=request(1), response=response(tape=1))
    unknown = Step(request=request(2), response=response(reading=TOLD))
    assert spending([(played, TOLD, 0.0)]) == Spending(usd=0.0)
    assert spending([(played, TOLD, 0.0), (unknown, TOLD, None)]) == Spending(usd=None, unpriced=1)
    assert spending([(played, TOLD, 0.5), (unknown, TOLD, None)]) == Spending(usd=0.5, unpriced=1)
