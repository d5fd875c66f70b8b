"""Earlier good runs of the program whose runs are compared: what varies among them is no surprise in a bad run."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice

from rewind.compare.decision import Weight, compare_decisions, decision_of
from rewind.compare.run import ComparedRun
from rewind.model.program import program_of
from rewind.model.session import Session
from rewind.reading.compare import ComparedSession, opened_side_by_side
from rewind.reading.progress import OnProgress
from rewind.store.library import Library

MOST_RUNS = 12
"""More of them say little that is new, and each has to be read."""
_MOST_TRIED = 3 * MOST_RUNS
"""Runs that are opened to see how they came out."""
_MOST_LOOKED_AT = 1_000
"""Sessions of which the first lines are read."""
_GOOD, _BAD = "good", "bad"
"""Values of a tag, of whatever name, by which people say how a run went: ``--tag verdict=good``."""


@contextmanager
def opened_earlier_runs(
    library: Library, good: ComparedSession, bad: ComparedSession, on_progress: OnProgress
) -> Iterator[list[ComparedSession]]:
    """The latest good runs before the bad one; none for runs of files, of which this store knows nothing else."""
    with ExitStack() as stack:
        found: list[ComparedSession] = []
        if not (good.session.is_foreign or bad.session.is_foreign):
            for tried, session in enumerate(_candidates(library, good.session, bad.session)):
                if tried == _MOST_TRIED or len(found) == MOST_RUNS:
                    break
                on_progress("earlier runs read", tried, _MOST_TRIED)
                (side,) = stack.enter_context(opened_side_by_side(library, [session]))
                if _GOOD in session.start.tags.values() or _same_outcome(good.run, side.run):
                    found.append(side)
        yield found


def _candidates(library: Library, good: Session, bad: Session) -> Iterator[Session]:
    """The newest first. A run that Rewind made itself, or that somebody called bad, is no witness."""
    program = program_of(good.start.command)
    for session in islice(library.newest(), _MOST_LOOKED_AT):
        start = session.start
        if start.started >= bad.start.started or session.id in (good.id, bad.id) or session.is_foreign:
            continue
        if start.replay_of or start.forked_from or start.part_of or program_of(start.command) != program:
            continue
        labels = start.tags.values()
        went_well = session.end is not None and session.end.exit_code == 0 and session.end.broken is None
        if _BAD not in labels and (went_well or _GOOD in labels):
            yield session


def _same_outcome(good: ComparedRun, run: ComparedRun) -> bool:
    """Whether the last thing that a model decided is what it decided in the good run."""
    last = [_last_call(one) for one in (good, run)]
    if last[0] is None or last[1] is None:
        return False
    decisions = decision_of(good.answered(last[0])), decision_of(run.answered(last[1]))
    return compare_decisions(*decisions).weight is not Weight.DECISIVE


def _last_call(run: ComparedRun) -> int | None:
    return next((move.index for move in reversed(run.moves) if move.sketch is not None), None)
