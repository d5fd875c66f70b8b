"""A miss as a value: what it knows without its text."""

from rewind.match.call import understand
from rewind.match.miss import MissKind
from rewind.match.nearest import explain_miss
from support.exchanges import request_of
from unit.match.test_nearest import chat, tape


def test_a_call_that_differs_names_the_nearest_step_and_its_fields() -> None:
    miss = explain_miss(
        understand(request_of(chat("return it"))), tape([chat("x", "y"), chat("refund it")]), session="ab"
    )
    assert (miss.kind, miss.nearest, miss.nearest_played, miss.servable) == (MissKind.DIFFERENT, 2, False, 2)
    (field,) = miss.differing
    assert (field.path, field.shown) == ("messages[0].content", "[-refund-]{+return+} it")
    assert (field.volatile, field.ignore, miss.ignore) == (None, None, ())
    assert (miss.model, miss.recorded, miss.played) == ("gpt-5", 2, 0)


def test_a_volatile_field_can_be_ignored() -> None:
    miss = explain_miss(
        understand(request_of(chat("a", user="3f2b8c1e-0f6d-4a53-9d0b-5a1c7e2d9f10"))),
        tape([chat("a", user="9a1c2e3d-7b64-4f0a-8c55-1d2e3f405162")]),
        session="ab",
    )
    (field,) = miss.differing
    assert (field.volatile, field.ignores_text, miss.ignore) == ("a UUID", False, ("user",))


def test_an_answer_that_was_played_names_its_steps() -> None:
    recorded = tape([chat("again"), chat("again")], played=[1, 2])
    miss = explain_miss(understand(request_of(chat("again"))), recorded, session="ab")
    assert (miss.kind, miss.twins, miss.servable) == (MissKind.PLAYED, (1, 2), 2)


def test_an_address_that_was_never_asked_names_the_recorded_ones() -> None:
    call = understand(request_of({}, host="example.com", target="/search"))
    miss = explain_miss(call, tape([chat("a")]), session="ab")
    assert (miss.kind, miss.asked) == (MissKind.NO_ADDRESS, "POST example.com/search")
    assert miss.addresses == ("POST api.openai.com/v1/chat/completions",)


def test_the_report_is_the_facts_with_advice_below() -> None:
    miss = explain_miss(understand(request_of(chat("a"))), tape([chat("b")]), session="ab")
    assert miss.report.startswith(miss.facts + "\n\nWhat to do\n")
    assert miss.reason == f"Rewind: {miss.sentence}"
