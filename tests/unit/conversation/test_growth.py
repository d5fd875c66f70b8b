"""What a run's end and its views do grows with the run, and not with its square, whatever the run looks like."""

from collections.abc import Callable

import pytest

from rewind.conversation.retries import Attempt, retried
from rewind.conversation.threads import ThreadPlace, Threads
from rewind.conversation.tools import ToolCall, ToolRun, ToolTurn, tool_calls, with_recorded_runs
from rewind.model.ids import MatchKey
from rewind.model.message import Answered, Asked, Message, Role, Text, ToolUse
from rewind.model.usage import Usage
from rewind.store.journal.totals import AnswerFacts, RequestFacts, TotalsCounter
from support.operations import growth

Work = Callable[[], object]
LINEAR = 4.6
"""Four times as much may take so many times as long; sorting is a little more than linear."""


def attempts(count: int, shape: str) -> list[Attempt]:
    lasts = {"one after the other": 0.5, "all at once": 1e6, "overlapping": 10.5}[shape]
    return [Attempt(float(step), step + lasts, step % 3 == 0, step) for step in range(count)]


@pytest.mark.parametrize("shape", ["one after the other", "all at once", "overlapping"])
def test_retries(shape: str) -> None:
    def work(count: int) -> Work:
        rows = attempts(count, shape)
        return lambda: list(retried(rows))

    assert growth(work, 200) < LINEAR


@pytest.mark.parametrize("answered", [True, False])
def test_totals(answered: bool) -> None:
    def work(count: int) -> Work:
        def counted() -> None:
            counter = TotalsCounter()
            for step in range(count):
                counter.request(step, RequestFacts("llm_call", "rw1:same", 1, "h", "/", "p", "m", float(step)))
                if answered:
                    counter.answer(step, AnswerFacts("complete", 429, False, "m", Usage(), False, 1.0))
            counter.totals()

        return counted

    assert growth(work, 100) < LINEAR


def said(role: Role, text: str) -> Message:
    return Message(role=role, parts=(Text(text),))


def equal(number: int, _count: int) -> tuple[str, tuple[Message, ...]]:
    return "same", (said(Role.USER, "question"),)


def samples_then_follow_ups(number: int, count: int) -> tuple[str, tuple[Message, ...]]:
    """The same question many times, and then what each of its answers led to."""
    if number < count // 2:
        return "same", (said(Role.USER, "question"),)
    answer = f"answer {number - count // 2}"
    return f"{number}", (said(Role.USER, "question"), said(Role.ASSISTANT, answer), said(Role.USER, f"{number}"))


def other_settings(number: int, _count: int) -> tuple[str, tuple[Message, ...]]:
    """The same words under keys of their own."""
    return f"{number}", (said(Role.USER, "question"), said(Role.USER, f"{number}"))


def unrelated(number: int, _count: int) -> tuple[str, tuple[Message, ...]]:
    return f"{number}", (said(Role.USER, f"question {number}"),)


@pytest.mark.parametrize("shape", [equal, samples_then_follow_ups, other_settings, unrelated])
def test_threads(shape: Callable[[int, int], tuple[str, tuple[Message, ...]]]) -> None:
    def work(count: int) -> Work:
        def placed() -> None:
            threads = Threads(with_starters=False)
            for number in range(count):
                key, messages = shape(number, count)
                threads.call(number, MatchKey(key), Asked(messages=messages))
                threads.answer(number, Answered(parts=(Text(f"answer {number}"),)))

        return placed

    assert growth(work, 60) < LINEAR


def turn(index: int) -> ToolTurn:
    use = ToolUse(f"id {index}", "lookup", {"n": index})
    return ToolTurn(
        index=index, place=ThreadPlace(1), began=index, ended=index, asked=Asked(), answered=Answered(parts=(use,))
    )


def test_tool_calls_of_one_long_conversation() -> None:
    def work(count: int) -> Work:
        turns = [turn(index) for index in range(count)]
        return lambda: tool_calls(turns)

    assert growth(work, 60) < LINEAR


@pytest.mark.parametrize("same", [True, False])
def test_recorded_tool_runs(same: bool) -> None:
    def work(count: int) -> Work:
        calls = [ToolCall(asked_in=n, number=1, use=ToolUse("", "lookup", {"n": n})) for n in range(count)]
        runs = [
            ToolRun(index=n + 1, ms=None, use=ToolUse("", "lookup" if same else "other", {"n": n}), result=None)
            for n in range(count)
        ]
        return lambda: with_recorded_runs(calls, runs)

    assert growth(work, 60) < LINEAR
