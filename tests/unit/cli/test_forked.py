"""What ``rewind fork`` says: its last lines, samples side by side, and its exit code."""

import io
from collections.abc import Sequence
from typing import Any

import pytest

from rewind.cli.fork_runs import fork_exit_code
from rewind.cli.screens.rerun import print_forked, print_samples
from rewind.cli.screens.terminal import Terminal
from rewind.errors import ExitCode
from rewind.model.ids import MatchKey, SessionId
from rewind.model.session import Lineage
from rewind.model.step import Reading, Step
from rewind.pricing.spending import Spending
from rewind.runs.fork.run import ForkResult
from rewind.runs.fork.samples import AnswerGroup, ForkSamples
from rewind.runs.tally import MissNote
from unit.store.making import request, response


def step(index: int, text: str = "fine", said: str | None = None) -> Step:
    return Step(request=request(index), response=response(reading=Reading(text=text, said=said)))


def result(**changes: Any) -> ForkResult:
    fields: dict[str, Any] = {
        "session_id": "e11d2b9c",
        "lineage": Lineage(session=SessionId("7f3a2b9c"), step=4, key=MatchKey("rw1:x")),
        "reused": (step(1), step(2), step(3)),
        "drifted": (),
        "live": (step(4), step(5)),
        "answer": step(4),
        "exit_code": 0,
        "misses": (),
        "unasked": None,
        "stopped": None,
        "spent": Spending(usd=0.006),
        "tokens": 1200,
        "seconds": 2.0,
        "remarks": (),
        "broken": None,
    }
    return ForkResult(**(fields | changes))


def several(
    results: Sequence[ForkResult], asked_for: int, unstarted: str | None = None, *, groups: Sequence[AnswerGroup] = ()
) -> ForkSamples:
    return ForkSamples(results=tuple(results), asked_for=asked_for, unstarted=unstarted, groups=tuple(groups))


def said(**changes: Any) -> list[str]:
    stream = io.StringIO()
    print_forked(Terminal(stream), result(**changes))
    return stream.getvalue().splitlines()


def test_a_good_fork_is_two_lines() -> None:
    assert said() == [
        "steps 1–3 from the recording ($0) · 2 live ($0.006) · → e11d2b9c",
        "→ rewind diff 7f3a2b9c e11d2b9c · rewind inspect e11d2b9c",
    ]


def test_what_a_fork_reuses_may_be_one_step_or_none_and_what_it_spends_unknown() -> None:
    assert said(reused=(step(1),), live=(), spent=Spending())[0] == (
        "step 1 from the recording ($0) · 0 live · → e11d2b9c"
    )
    assert said(reused=(), spent=Spending(unpriced=2))[0] == (
        "nothing from the recording ($0) · 2 live (—) · → e11d2b9c"
    )


def test_what_went_wrong_comes_first() -> None:
    lines = said(
        misses=(MissNote(reason="r", detail="Never recorded."),),
        remarks=("this run: was stopped: enough",),
        unasked="Step 4 was never asked.",
        broken="disk full",
        exit_code=3,
    )
    assert lines[:5] == [
        "miss: Never recorded.",
        "this run: was stopped: enough",
        "Step 4 was never asked.",
        "rewind: the new session is not complete: disk full",
        "The agent ended with exit code 3.",
    ]


def test_samples_are_counted_by_what_they_decide_and_their_words_are_shown() -> None:
    samples = [
        result(answer=step(4, "Yes.")),
        result(answer=step(4, "Yes!"), exit_code=3),
        result(answer=step(4, "No."), stopped="the limit"),
        result(answer=None, unasked="never", live=()),
    ]
    groups = [
        AnswerGroup(samples=(1, 2), wordings=("Yes.", "Yes!")),
        AnswerGroup(samples=(3,), wordings=("No.",), differs_in=("yes → no",)),
    ]
    stream = io.StringIO()
    print_samples(Terminal(stream, width=100), several(samples, 6, "no money", groups=groups))
    lines = stream.getvalue().splitlines()
    assert [line.split("  ")[2].strip() for line in lines[2:6]] == ["✓ ok", "✗ exit 3", "◐ stopped", "✗ not asked"]
    assert lines[6:] == [
        "2 samples not started: no money",
        "4 of 6 samples were run; step 4 was answered 3 times, in 2 ways, 3 wordings:",
        "  2 × Yes.",
        "    ≈ Yes!",
        "  1 × No.",
        "      differs in: yes → no",
    ]


def test_of_many_wordings_a_few_are_shown() -> None:
    group = AnswerGroup(samples=tuple(range(1, 8)), wordings=tuple(f"Words {number}" for number in range(7)))
    stream = io.StringIO()
    print_samples(Terminal(stream, width=100), several([result()] * 7, 7, groups=[group]))
    assert stream.getvalue().splitlines()[9:] == [
        "7 samples, step 4 answered alike, 7 wordings:",
        "  7 × Words 0",
        "    ≈ Words 1",
        "    ≈ Words 2",
        "    ≈ 4 more wordings",
    ]


def test_samples_that_never_came_to_the_step_are_not_counted_as_answers() -> None:
    def told(*samples: ForkResult) -> list[str]:
        stream = io.StringIO()
        answered = [at for at, one in enumerate(samples, 1) if one.answer is not None and one.answer.response]
        groups = [AnswerGroup(samples=tuple(answered), wordings=("Yes.",))] if answered else []
        print_samples(Terminal(stream, width=100), several(samples, 3, groups=groups))
        return stream.getvalue().splitlines()[len(samples) + 2 :]

    interrupted = result(answer=None, unasked="never", live=(), exit_code=130)
    assert told(interrupted) == ["1 of 3 samples was run; step 4 was not answered."]
    assert told(result(answer=step(4, "Yes.")), interrupted) == [
        "2 of 3 samples were run; step 4 was answered once:",
        "  1 × Yes.",
    ]
    unanswered = result(answer=Step(request=request(4), response=None), exit_code=130)
    assert told(unanswered)[0] == "1 of 3 samples was run; step 4 was not answered."


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, ExitCode.OK),
        ({"exit_code": 3}, ExitCode.AGENT_FAILED),
        ({"stopped": "the limit"}, ExitCode.AGENT_FAILED),
        ({"broken": "disk full"}, ExitCode.ENVIRONMENT),
        ({"unasked": "never", "exit_code": 3}, ExitCode.MISS),
        ({"misses": (MissNote(reason="r", detail=""),)}, ExitCode.MISS),
        ({"exit_code": 130, "unasked": "never"}, ExitCode.INTERRUPTED),
    ],
)
def test_the_exit_code_tells_what_matters_most(changes: dict[str, Any], code: ExitCode) -> None:
    assert fork_exit_code(result(**changes)) is code
