"""Where bad runs left good ones, why, since when, and what to do about it."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rewind.compare.cause import Cause, CauseKind, Standing
from rewind.compare.delta import Aspect
from rewind.compare.divergence import Finding, bisect
from rewind.compare.phrases import cause_place, cause_title, step_label
from rewind.compare.remedy import remedies
from rewind.compare.run import ComparedRun
from rewind.compare.variation import LEAST_RUNS, EarlierRuns, LearntVariation, weighed_by_history
from rewind.compare.versions import VersionChange, changed_locks, changed_versions, same_code, versions_of
from rewind.dataclass import dataclass
from rewind.edit.edits import Edit
from rewind.errors import DamagedStore, SessionNotFound, UsageError
from rewind.model.program import program_of
from rewind.model.session import Session, Surroundings, split_step
from rewind.reading.cassettes import RecordedRun
from rewind.reading.compare import ComparedSession, opened_side_by_side
from rewind.reading.earlier_runs import opened_earlier_runs
from rewind.reading.progress import OnProgress, ignored
from rewind.runs.rerun import command_hint
from rewind.safe import safe
from rewind.store.journal.first_seen import CallField, FieldValue, FirstSeen, first_seen
from rewind.store.library import Library

_LASTING = {
    CauseKind.MODEL: (CallField.MODEL, Aspect.MODEL),
    CauseKind.SNAPSHOT: (CallField.SNAPSHOT, Aspect.SNAPSHOT),
    CauseKind.SYSTEM: (CallField.SYSTEM, Aspect.SYSTEM),
    CauseKind.TOOLS: (CallField.TOOLS, Aspect.TOOLS),
    CauseKind.PARAMETERS: (CallField.SETTINGS, Aspect.PARAMETERS),
}
"""What stays once it is changed, so that its first use can be looked for."""
_MOST_EDITS = 3
_LONGEST_EDIT = 200
"""Characters of an edit that one would still paste."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeComparison:
    """What code two runs stood on, as far as that is known."""

    good: Surroundings | None
    bad: Surroundings | None
    same: bool | None
    """``None`` where it is not known."""
    good_versions: Mapping[str, str]
    """Package → version."""
    bad_versions: Mapping[str, str]
    changed_versions: tuple[VersionChange, ...]
    changed_locks: tuple[str, ...]
    """Names of lock files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairBisection:
    """Where one bad run left one good run."""

    good: ComparedSession
    bad: ComparedSession
    finding: Finding
    since: Mapping[int, FirstSeen]
    """Since when a cause is there, by its number in ``finding.causes``."""
    code: CodeComparison
    history: "History | None" = None
    """``None`` where no earlier runs were asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What earlier good runs of the same program say."""

    sessions: tuple[str, ...]
    """Their ids, the newest first."""
    learnt: tuple[LearntVariation, ...]


@contextmanager
def bisect_pair(
    home: Path,
    good: str,
    bad: str,
    *,
    date_all: bool = False,
    ask_history: bool = True,
    exact_words: bool = False,
    on_progress: OnProgress = ignored,
) -> Iterator[PairBisection]:
    """The first step where the run ``bad`` left the run ``good``, and why. With ``exact_words``, words count as deeds.

    Since when a cause is there is looked up for the first cause, or for all with ``date_all``. Texts are read as they
    are asked for, so the value is to be used inside the context. Raises UsageError, SessionNotFound, DamagedStore.
    """
    with _opened(home, (good, bad), on_progress) as (good_side, bad_side):
        finding = bisect(good_side.run, bad_side.run, exact_words=exact_words)
        _check_readable(finding, good_side, bad_side)
        history = None
        if ask_history:
            finding, history = _with_history(Library(home), finding, good_side, bad_side, on_progress)
        causes = finding.causes if date_all else finding.causes[:1]
        seen = {at: _first_seen(home, cause, good_side, bad_side, on_progress) for at, cause in enumerate(causes)}
        yield PairBisection(
            good=good_side,
            bad=bad_side,
            finding=finding,
            since={at: first for at, first in seen.items() if first is not None},
            code=_code(good_side, bad_side),
            history=history,
        )


def _with_history(
    library: Library, finding: Finding, good: ComparedSession, bad: ComparedSession, on_progress: OnProgress
) -> tuple[Finding, History | None]:
    """The finding, its causes weighed by what also varies among earlier good runs."""
    if finding.at is None or not any(cause.standing < Standing.SAMPLED for cause in finding.causes):
        return finding, None
    with opened_earlier_runs(library, good, bad, on_progress) as sides:
        if len(sides) < LEAST_RUNS:
            return finding, None
        earlier = EarlierRuns(good.run, [side.run for side in sides])
        causes, learnt = weighed_by_history(finding.comparison, finding.at, finding.causes, earlier)
        return replace(finding, causes=causes), History(sessions=tuple(side.id for side in sides), learnt=learnt)


@contextmanager
def _opened(home: Path, refs: Sequence[str], on_progress: OnProgress) -> Iterator[list[ComparedSession]]:
    library = Library(home)
    with opened_side_by_side(library, [_whole(library, ref) for ref in refs], on_progress) as sides:
        for side in sides:
            if not side.run.moves:
                raise SessionNotFound(
                    f"Session {side.id} has no steps: there is nothing to compare.", hint=f"rewind inspect {side.ref}"
                )
        yield sides


def _whole(library: Library, ref: str) -> Session:
    session, step = split_step(ref)
    if step is not None:
        raise UsageError(
            f"bisect compares whole sessions, not steps ({ref!r}).", hint=f"rewind diff {ref} …, or {session}"
        )
    return library.find(ref)


def _check_readable(finding: Finding, good: ComparedSession, bad: ComparedSession) -> None:
    """What was read as empty because it is damaged must not be named as the reason. Raises DamagedStore."""
    for side, step in zip((good, bad), finding.step, strict=True):
        if step in side.damaged:
            raise DamagedStore(
                f"A body of step {step} of session {side.id} is damaged: the runs may or may not part there.",
                hint=f"rewind verify {side.ref}, and rewind diff {good.ref} {bad.ref} shows the other steps",
            )


# ── since when, and on what code ─────────────────────────────────────────────────────────────────────────────


def _first_seen(
    home: Path, cause: Cause, good: ComparedSession, bad: ComparedSession, on_progress: OnProgress
) -> FirstSeen | None:
    """The first session with the new value; ``None`` where that is not known, or not a thing that lasts."""
    before, after = cause.since.a, cause.since.b
    if cause.kind not in _LASTING or before is None or after is None:
        return None
    if bad.session.file is not None:
        return None  # what this store holds says nothing of a run that came from elsewhere
    field, aspect = _LASTING[cause.kind]
    new = after.lasting_value(aspect)
    if new is None:
        return None
    programs = {program_of(side.session.start.command) for side in (good, bad)} - {""}
    if not programs:
        return None  # an import names no program: others may be of any
    return first_seen(
        home,
        FieldValue(field=field, value=new, asked=after.model_asked if cause.kind is CauseKind.SNAPSHOT else None),
        old=before.lasting_value(aspect),
        until=bad.session,
        among=lambda start: start.dated and program_of(start.command) in programs,
        on_progress=lambda done, total: on_progress("sessions looked through", done, total),
    )


def _code(good: ComparedSession, bad: ComparedSession) -> CodeComparison:
    good_run, bad_run = good.run.recording, bad.run.recording
    before, after = versions_of(good_run), versions_of(bad_run)
    return CodeComparison(
        good=good_run.surroundings,
        bad=bad_run.surroundings,
        same=same_code(good_run.surroundings, bad_run.surroundings),
        good_versions=before,
        bad_versions=after,
        changed_versions=changed_versions(before, after),
        changed_locks=changed_locks(good_run.surroundings, bad_run.surroundings),
    )


# ── what to do about it ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class NextCommand:
    """A command that goes on from a divergence."""

    purpose: str
    """``prove it``, ``try it`` or ``see all``."""
    command: str
    """To be pasted into a shell."""


def next_commands(found: PairBisection, proven: Sequence[Edit] | None = None) -> tuple[NextCommand, ...]:
    """What to do about the divergence; ``proven`` are edits that turn the outcome, ``None`` where nothing was tried."""
    finding, good, bad = found.finding, found.good.ref, found.bad.ref
    if finding.at is None:
        return ()
    commands = []
    behind = command_hint(found.bad.run.recording)  # None: the agent cannot be run again
    if behind is not None:
        forks = _forks(finding, bad) if proven is None else _fork_with(finding, bad, proven)
        commands += [NextCommand("try it", f"{fork}{behind}") for fork in forks]
        if proven is None and finding.answers_part and remedies(finding):
            commands.insert(0, NextCommand("prove it", f"rewind bisect {good} {bad} --prove{behind}"))
    return (*commands, NextCommand("see all", f"rewind diff {good} {bad}"))


def _forks(finding: Finding, bad: str) -> Iterator[str]:
    """The bad run again, with what the good one had in that place."""
    if not finding.causes or finding.at is None or finding.at.b is None:
        return
    fork = f"rewind fork {bad}:{finding.at.b.index}"
    match finding.causes[0].kind:
        case CauseKind.SAMPLING:
            yield f"{fork} --samples 5"
        case CauseKind.ERROR:
            yield fork
        case kind:
            remedy = next((remedy for remedy in remedies(finding) if remedy.kind is kind), None)
            yield from _fork_with(finding, bad, () if remedy is None else remedy.edits)


def _fork_with(finding: Finding, bad: str, edits: Sequence[Edit]) -> Iterator[str]:
    assert finding.at is not None, "runs that part are forked where they do"
    typed = all(len(edit.written) <= _LONGEST_EDIT for edit in edits) and len(edits) <= _MOST_EDITS
    if edits and typed and finding.at.b is not None:
        fork = f"rewind fork {bad}:{finding.at.b.index}"
        yield " ".join([fork, *(f"--set {shlex.quote(edit.written)}" for edit in edits)])


def divergence_text(good: RecordedRun, bad: RecordedRun) -> str:
    """The first step where the bad run left the good one, and why, in a line or two; empty where it did not."""
    if not good.recording.steps or not bad.recording.steps:
        return ""
    finding = bisect(*(ComparedRun(run.recording, run.bodies, answer_body=run.answer) for run in (good, bad)))
    if finding.at is None:
        return ""
    lines = [f"first divergence: step {step_label(finding.at)}"]
    for cause in finding.causes[:1]:
        place = cause_place(finding, cause, brief=True)
        lines.append(f"cause: {cause_title(cause)}" + (f", {place}" if place else ""))
    return safe("\n".join(lines))
