"""What ``record`` and ``replay`` say when they are done."""

import io
from typing import Any

import pytest

from rewind.cli.rerun import replay_exit_code
from rewind.cli.screens.record import print_recorded
from rewind.cli.screens.rerun import print_replayed
from rewind.cli.screens.terminal import Terminal
from rewind.errors import ExitCode
from rewind.pricing.spending import Spending
from rewind.runs.record import RecordResult
from rewind.runs.replay_options import ReplayResult, Stopped
from rewind.runs.tally import MissNote


def recorded(*, quiet: bool = False, cost: str | None = None, **changes: Any) -> list[str]:
    fields: dict[str, Any] = {"session_id": "7f3a2b9c", "exit_code": 0, "llm_calls": 12, "tokens": 3241, "seconds": 8.4}
    stream = io.StringIO()
    print_recorded(Terminal(stream), RecordResult(**(fields | changes)), quiet=quiet, cost=cost)
    return stream.getvalue().splitlines()


def replayed(*, saved: Spending | None = None, **changes: Any) -> tuple[ExitCode, list[str]]:
    fields: dict[str, Any] = {
        "session_id": "7f3a2b9c",
        "played": 12,
        "total": 12,
        "drifted": 0,
        "live": 0,
        "misses": (),
        "network_calls": 0,
        "output": "identical",
        "output_difference": "",
        "exit_code": 0,
        "recorded_exit_code": 0,
        "remarks": (),
    }
    result = ReplayResult(**(fields | changes))
    stream = io.StringIO()
    print_replayed(Terminal(stream), result, saved or Spending())
    return replay_exit_code(result), stream.getvalue().splitlines()


def test_a_good_recording_is_two_lines():
    assert recorded() == [
        "Session recorded: 7f3a2b9c  (12 LLM calls, 3,241 tokens, 8.4 s)",
        "→ rewind inspect 7f3a2b9c",
    ]
    assert recorded(quiet=True) == []


def test_a_run_without_a_call_whose_agent_failed_says_that_first():
    _, title, first, *others, _hint = recorded(llm_calls=0, tokens=None, exit_code=2)
    assert title == "rewind: no LLM call was seen. Likely reasons:"
    assert first.startswith("  · the agent itself failed (exit code 2)")
    assert not any("made no call" in reason for reason in others)
    _, _, first, *_ = recorded(llm_calls=0, tokens=None)
    assert first == "  · the agent made no call in this run"


def test_what_a_run_cost_is_told_with_its_tokens():
    first, _ = recorded(cost="$0.034")
    assert first == "Session recorded: 7f3a2b9c  (12 LLM calls, 3,241 tokens, $0.034, 8.4 s)"


def test_one_call_is_singular_and_unknown_tokens_are_not_told():
    first, _ = recorded(llm_calls=1, other_calls=1, tokens=None)
    assert first == "Session recorded: 7f3a2b9c  (1 LLM call, 1 other call, 8.4 s)"


def test_secrets_and_remarks_have_lines_of_their_own():
    assert recorded(redactions=2, remarks=("a client went around",))[1:3] == [
        "  2 secrets removed",
        "  a client went around",
    ]


@pytest.mark.parametrize("quiet", [False, True])
def test_a_broken_recording_says_what_was_not_kept_even_when_quiet(quiet: bool):
    first, second, *rest = recorded(broken="No space left on device", quiet=quiet)
    assert first == "rewind: the recording is not complete: No space left on device"
    assert "is not recorded" in second
    assert bool(rest) is not quiet


@pytest.mark.parametrize("quiet", [False, True])
def test_a_run_that_could_not_be_kept_at_all_names_no_session(quiet: bool):
    first, _ = recorded(session_id="", broken="The store is read-only.", quiet=quiet, llm_calls=0)
    assert first == "rewind: this run was not recorded: The store is read-only."


def test_the_last_line_names_only_what_is_there():
    """A session without a single call has nothing to inspect; one in which none could be written is none."""
    assert not any("rewind inspect" in line for line in recorded(llm_calls=0, tokens=None))
    assert recorded(llm_calls=0, tokens=None, broken="No space left on device", lost_calls=3) == [
        "rewind: the recording is not complete: No space left on device",
        "  What came after that is not recorded. The agent itself was not disturbed.",
        "  3 calls could not be written.",
    ]
    assert recorded(llm_calls=2, tokens=None, broken="No space left on device", lost_calls=1)[-3:] == [
        "  1 call could not be written.",
        "Session recorded: 7f3a2b9c  (2 LLM calls, 8.4 s)",
        "→ rewind inspect 7f3a2b9c",
    ]


def test_a_replay_says_what_it_saved_where_that_is_known():
    assert replayed(saved=Spending(usd=0.0341)) == (
        ExitCode.OK,
        ["12/12 steps replayed · 0 network calls · saved $0.034 · output identical"],
    )
    _, (line,) = replayed(saved=Spending(usd=0.5, unpriced=2))
    assert "saved $0.500+" in line


def test_an_exact_replay_is_one_line():
    assert replayed() == (ExitCode.OK, ["12/12 steps replayed · 0 network calls · output identical"])


@pytest.mark.parametrize(
    ("changes", "code", "last"),
    [
        ({"output": "not compared"}, ExitCode.OK, "12/12 steps replayed · 0 network calls · output not compared"),
        (
            {"drifted": 2, "live": 1, "network_calls": 1},
            ExitCode.OK,
            "12/12 steps replayed · 2 drifted · 1 live · 1 network call · output identical",
        ),
        ({"output": "different"}, ExitCode.DIFFERENT, "12/12 steps replayed · 0 network calls · output different"),
        (
            {"exit_code": 3},
            ExitCode.DIFFERENT,
            "12/12 steps replayed · 0 network calls · output identical · exit code 3, recorded 0",
        ),
        (
            {"exit_code": 3, "recorded_exit_code": None},
            ExitCode.OK,
            "12/12 steps replayed · 0 network calls · output identical",
        ),
        (
            {"played": 4, "output": "beginning", "exit_code": 143, "stopped": Stopped(step=4, before=False)},
            ExitCode.OK,
            "4/12 steps replayed · stopped after step 4 as asked · 0 network calls · output identical so far",
        ),
        (
            {"played": 4, "output": "different", "exit_code": 143, "stopped": Stopped(step=5, before=True)},
            ExitCode.DIFFERENT,
            "4/12 steps replayed · stopped before step 5 · 0 network calls · output different",
        ),
        (
            {
                "played": 4,
                "output": "beginning",
                "exit_code": 143,
                "stopped": Stopped(step=5, before=True, interrupted=True),
            },
            ExitCode.INTERRUPTED,
            "4/12 steps replayed · interrupted before step 5 · 0 network calls · output identical so far",
        ),
        ({"played": 3, "unasked": 5}, ExitCode.MISS, "3/12 steps replayed · 0 network calls · output identical"),
        (
            {
                "played": 1,
                "misses": (MissNote(reason="never recorded", detail="the long report\n"),),
                "output": "different",
            },
            ExitCode.MISS,
            "1/12 steps replayed · 1 miss · 0 network calls · output different",
        ),
    ],
)
def test_the_last_line_and_the_exit_code_agree(changes: dict[str, Any], code: ExitCode, last: str):
    got, lines = replayed(**changes)
    assert (got, lines[-1]) == (code, last)


def test_a_difference_and_a_miss_come_before_the_last_line():
    _, lines = replayed(
        output="different",
        output_difference="--- recorded\n+++ replayed\n-a\n+b \x1b[31m",
        misses=(MissNote(reason="never recorded", detail=""),),
        remarks=("remark",),
    )
    assert lines[:6] == ["--- recorded", "+++ replayed", "-a", "+b \\x1b[31m", "miss: never recorded", "remark"]
