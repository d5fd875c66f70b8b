"""Bisect names the cause that was planted, at the step where it was planted, and finds nothing in mere noise."""

from collections.abc import Callable

import pytest

from rewind.compare.cause import CauseKind
from rewind.compare.divergence import bisect
from rewind.model.message import Message, Role, Text, ToolResult, ToolUse
from support.planted import Case, case_of, noise_cases, planted_cases
from support.planted_style import Noise
from support.planted_table import NO_DIVERGENCE, Verdict, confusion_table

pytestmark = pytest.mark.torture
LEAST = 0.95
SIGHT_OF_THE_REQUEST = frozenset(
    {
        *(CauseKind.MODEL, CauseKind.SYSTEM, CauseKind.TOOLS, CauseKind.PARAMETERS),
        *(CauseKind.INPUT, CauseKind.TOOL_OUTPUT, CauseKind.HISTORY),
    }
)


@pytest.fixture(scope="module")
def planted() -> list[Case]:
    return list(planted_cases())


@pytest.fixture(scope="module")
def noisy() -> list[Case]:
    return list(noise_cases())


@pytest.fixture(scope="module")
def verdicts(planted: list[Case], noisy: list[Case]) -> list[Verdict]:
    return [Verdict.of(case, bisect(case.good.run, case.bad.run)) for case in (*planted, *noisy)]


def share(verdicts: list[Verdict], right: int) -> str:
    return f"{right} of {len(verdicts)} ({right / len(verdicts):.1%})"


def test_the_planted_cause_is_named_first_and_noise_is_no_divergence(
    verdicts: list[Verdict], record_property: Callable[[str, object], None]
) -> None:
    with_cause = [verdict for verdict in verdicts if verdict.case.planted]
    without = [verdict for verdict in verdicts if not verdict.case.planted]
    pairs = [verdict for verdict in with_cause if len(verdict.case.planted) > 1]
    named = sum(verdict.is_right for verdict in with_cause)
    there = sum(verdict.is_there for verdict in with_cause)
    both = sum(verdict.has_all for verdict in pairs)
    calm = sum(not verdict.diverges for verdict in without)
    lines = [
        confusion_table(verdicts),
        f"planted causes: named first in {share(with_cause, named)}, step right in {share(with_cause, there)}",
        f"pairs of causes: both named in {share(pairs, both)}",
        f"noise only: no divergence in {share(without, calm)}",
        *(str(verdict) for verdict in verdicts if not (verdict.is_right and verdict.is_there)),
    ]
    record_property("shown", "\n".join(lines))
    assert len(with_cause) >= 500
    assert len(without) >= 120
    assert [str(verdict) for verdict in without if verdict.diverges] == []
    assert named / len(with_cause) >= LEAST
    assert there / len(with_cause) >= LEAST
    assert both / len(pairs) >= LEAST


def test_every_kind_of_cause_is_recognised_for_itself(verdicts: list[Verdict]) -> None:
    """No kind may hide behind the good average of the others."""
    for kind in CauseKind:
        cases = [verdict for verdict in verdicts if verdict.case.planted == (kind,)]
        assert len(cases) >= 30, kind
        assert sum(verdict.is_right for verdict in cases) / len(cases) >= 0.85, kind


def test_a_recording_from_before_there_were_sketches_is_compared_alike(
    planted: list[Case], noisy: list[Case], verdicts: list[Verdict]
) -> None:
    cases = [*planted, *noisy]
    for case, verdict in list(zip(cases, verdicts, strict=True))[::9]:
        again = Verdict.of(case, bisect(case.good.older_run, case.bad.older_run))
        assert (again.step, again.named) == (verdict.step, verdict.named), case.name


def test_runs_that_part_do_so_whichever_is_called_the_good_one(verdicts: list[Verdict]) -> None:
    for verdict in verdicts[::5]:
        turned = bisect(verdict.case.bad.run, verdict.case.good.run)
        assert turned.diverges == verdict.diverges, verdict.case.name


# ── the cases themselves: a proof is worth as much as what it rests on ───────────────────────────────────────


def test_the_same_seed_gives_the_same_bytes(planted: list[Case]) -> None:
    for case in planted[::20]:
        again = case_of(case.name.partition(" (")[0])
        assert again is not None and again.name == case.name
        assert again.good.bodies == case.good.bodies
        assert again.bad.bodies == case.bad.bodies


def test_every_kind_is_planted_in_many_shapes_with_noise_and_without(planted: list[Case]) -> None:
    for kind in CauseKind:
        cases = [case for case in planted if case.planted == (kind,)]
        assert len({case.shape for case in cases}) >= (6 if kind is CauseKind.HISTORY else 8), kind
        assert sum(not case.noise for case in cases) >= 5, kind
        assert sum(len(case.noise) > 2 for case in cases) >= 5, kind
    assert {noise for case in planted for noise in case.noise} == set(Noise)
    sizes = [max(len(case.good.recording.steps), len(case.bad.recording.steps)) for case in planted]
    assert min(sizes) >= 4
    assert max(sizes) >= 12


def test_what_is_planted_is_in_the_requests_or_it_is_not(planted: list[Case]) -> None:
    """Where nothing else is in the way: a change of what is asked changes the match key, any other leaves it."""
    seen = 0
    for case in planted:
        if case.noise or len(case.planted) > 1 or case.planted == (CauseKind.PATH,):
            continue
        (good,), (bad,) = case.good_steps, case.bad_steps
        assert good is not None and bad is not None, case.name
        keys = [
            played.recording.steps[index - 1].request.match_key
            for played, index in ((case.good, good), (case.bad, bad))
        ]
        held = any(b'"previous_response_id"' in request for request, _ in case.good.bodies.values())
        reworded = "other words" in case.name
        if case.planted[0] in SIGHT_OF_THE_REQUEST and not held:
            assert keys[0] != keys[1], case.name
            seen += 1
        elif case.planted[0] not in SIGHT_OF_THE_REQUEST and not reworded:
            assert keys[0] == keys[1], case.name
            seen += 1
    assert seen > 100


def test_noise_is_heard(noisy: list[Case]) -> None:
    """Two runs that differ in nothing would prove nothing; nor would one kind of noise in one shape."""
    for noise in Noise:
        alone = [case for case in noisy if case.noise == {noise}]
        assert len(alone) >= 3, noise
        assert sum(noise in case.noise for case in noisy) >= 40, noise
    for case in noisy:
        good, bad = case.good, case.bad
        assert (good.recording.steps, good.bodies) != (bad.recording.steps, bad.bodies), case.name


def test_the_wire_of_planted_runs_is_read_as_it_was_meant(planted: list[Case]) -> None:
    """Every answer, whole or streamed, is found again word for word in the history of the next call."""
    seen = 0
    for case in planted:
        if case.planted != (CauseKind.SAMPLING,) or case.noise:
            continue
        talks = {step.index: case.good.talk(step) for step in case.good.recording.steps}
        for call, (index,) in case.good.indexes.items():
            after = case.good.indexes.get(call._replace(turn=call.turn + 1))
            answered = talks[index].answered
            assert answered is not None and answered.error is None and answered.note is None
            if after is None or talks[after[0]].asked.continues:
                continue
            said = [one for one in talks[after[0]].asked.messages if one.role is Role.ASSISTANT][-1]
            assert spoken(said) == spoken(Message(Role.ASSISTANT, answered.parts)), case.name
            seen += 1
    assert seen > 30


def spoken(message: Message) -> list[object]:
    found: list[object] = []
    for part in message.parts:
        assert isinstance(part, Text | ToolUse | ToolResult)
        found.append((part.name, part.arguments) if isinstance(part, ToolUse) else part)
    return found


def test_a_verdict_tells_what_was_planted_and_what_was_named(verdicts: list[Verdict]) -> None:
    table = confusion_table(verdicts)
    assert all(kind.value in table for kind in CauseKind)
    assert NO_DIVERGENCE in table
