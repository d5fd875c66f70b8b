"""What forks may spend."""

import pytest

from rewind.errors import UsageError
from rewind.model.http import HttpRequest, ResponseHead
from rewind.model.ids import MatchKey
from rewind.model.step import Ending, Reading, Step, StepKind, StepRequest, StepResponse
from rewind.model.usage import NO_USAGE, Usage
from rewind.reading.prices import load_prices
from rewind.runs.fork.budget import Budget
from support.exchanges import request_of

PRICES = load_prices({"small": {"input": 10, "output": 100}})


def question(model: str = "small") -> HttpRequest:
    return request_of({"model": model, "messages": [{"role": "user", "content": "hi"}]})


def step(
    model: str = "small", usage: Usage = NO_USAGE, *, status: int = 200, kind: StepKind = StepKind.LLM_CALL
) -> Step:
    request = StepRequest(
        index=4, ts=0.0, kind=kind, provider="openai", match_key=MatchKey("rw1:x"), head=question().head, model=model
    )
    head = ResponseHead(status=status, reason="", headers=())
    reading = Reading(model=model, usage=usage)
    return Step(request=request, response=StepResponse(ending=Ending.COMPLETE, head=head, ms=1.0, reading=reading))


def test_calls_go_out_until_the_money_is_spent() -> None:
    budget = Budget(1.0, PRICES)
    budget.check(question())
    budget.pay(step(usage=Usage(input=50_000, output=0)))
    assert (budget.spent, budget.left) == (0.5, 0.5)
    budget.check(question())
    budget.pay(step(usage=Usage(input=60_000, output=0)))
    with pytest.raises(UsageError, match=r"the limit of \$1 is reached: \$1.1 is spent"):
        budget.check(question())
    budget.check(request_of(b"", host="tools.example", target="/x", method="GET"))


def test_a_model_without_a_price_is_not_asked() -> None:
    with pytest.raises(UsageError, match="the price of stranger is not known"):
        Budget(1.0, PRICES).check(question("stranger"))


def test_after_a_call_whose_cost_is_unknown_nothing_more_is_asked() -> None:
    budget = Budget(1.0, PRICES)
    budget.pay(step(status=500))
    budget.pay(step(kind=StepKind.HTTP_CALL))
    budget.check(question())
    budget.pay(step(usage=NO_USAGE))
    with pytest.raises(UsageError, match="the cost of step 4 is not known"):
        budget.check(question())


def test_models_are_looked_up_before_anything_runs() -> None:
    budget = Budget(1.0, PRICES)
    budget.check_models([(step(), "small")])
    assert budget.unknown_model([(step(), "small"), (step(), None)]) == "the model at api.openai.com"
    with pytest.raises(UsageError, match=r"The price of stranger at api\.openai\.com is not known"):
        budget.check_models([(step(), "small"), (step(), "stranger")])


def test_an_embedding_has_a_price_although_it_writes_nothing() -> None:
    budget = Budget(1.0, PRICES)
    budget.check(request_of({"model": "text-embedding-3-small", "input": "a"}, target="/v1/embeddings"))
    assert budget.unknown_model([(step("text-embedding-3-small"), "text-embedding-3-small")]) is None
