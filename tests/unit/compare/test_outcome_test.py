"""When a run counts as bad."""

from collections import Counter

import pytest

from rewind.compare.outcome_test import OutcomeFacts, facts_of_answer, holds_any, outcome_test
from rewind.errors import UsageError
from rewind.model.message import Answered, Text, ToolUse
from rewind.model.outcome import Outcome

FAILED = OutcomeFacts(
    exit_code=2,
    status=Outcome.FAILED,
    tags={"env": "prod", "bad": ""},
    tools=Counter(lookup=3),
    text="I’m afraid I  CANNOT do that.",
    cost=0.25,
    steps=12,
    seconds=95.0,
)


@pytest.mark.parametrize(
    ("written", "holds"),
    [
        ("exit!=0", True),
        ("exit=0", False),
        ("exit == 2", True),
        ("exit>1", True),
        ("status=failed", True),
        ("status!=ok", True),
        ("status=ok", False),
        ("tag=bad", True),
        ("tag=env=prod", True),
        ("tag=env=test", False),
        ("tag!=env=test", True),
        ("tag!=env", False),
        ("tool:refund absent", True),
        ("tool:refund present", False),
        ("tool:lookup", True),
        ("tool:lookup>2", True),
        ("tool:lookup >= 4", False),
        ("tool:refund=0", True),
        ("text~cannot", True),
        ("text~i'm afraid i cannot", True),
        ("text!~cannot", False),
        ("text~/can(no|')t/", True),
        ("text!~/refund(ed)?/", True),
        ("cost>0.2", True),
        ("cost > $0.30", False),
        ("steps>=12", True),
        ("time>90", True),
        ("time > 2min", False),
        ("time<100000ms", True),
    ],
)
def test_a_run_is_tested(written: str, holds: bool) -> None:
    assert outcome_test(written).holds(FAILED) is holds


@pytest.mark.parametrize(
    "written",
    ["exit!=0", "status=ok", "tag=bad", "tool:a absent", "tool:a>1", "text~no", "cost>1", "steps>1", "time>1"],
)
def test_what_is_not_known_decides_nothing(written: str) -> None:
    assert outcome_test(written).holds(OutcomeFacts()) is None


@pytest.mark.parametrize(
    "written", ["", "exit", "exit~0", "exit!=x", "tag=", "tool:", "tool:refund gone", "text~", "text=no", "colour=red"]
)
def test_what_is_no_test_is_refused_with_the_next_command(written: str) -> None:
    with pytest.raises(UsageError) as caught:
        outcome_test(written)
    assert written in caught.value.message and "rewind bisect --help" in (caught.value.hint or "")


def test_a_status_that_there_is_not_and_a_pattern_that_is_none() -> None:
    with pytest.raises(UsageError, match="ok, failed, running"):
        outcome_test("status=bad")
    with pytest.raises(UsageError, match="not a valid pattern"):
        outcome_test("text~/(/")


def test_several_tests_hold_if_one_does() -> None:
    tests = [outcome_test("exit=0"), outcome_test("text~cannot")]
    assert holds_any(tests, FAILED) is True
    assert holds_any(tests, OutcomeFacts(exit_code=1, text="Done.")) is False
    assert holds_any(tests, OutcomeFacts(text="Done.")) is None
    assert holds_any(tests, OutcomeFacts(text="I cannot.")) is True


def test_one_answer_is_tested_by_its_tools_and_its_words() -> None:
    facts = facts_of_answer(Answered(parts=(Text("Let me look."), ToolUse("1", "lookup", {}))))
    assert outcome_test("tool:refund absent").holds(facts) is True
    assert outcome_test("text~cannot").holds(facts) is False
    assert outcome_test("exit!=0").holds(facts) is None
    assert outcome_test("tool:refund absent").holds(facts_of_answer(None)) is None
