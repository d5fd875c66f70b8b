"""Sessions opened side by side, and what differs between two of them."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rewind.compare.align import Row
from rewind.compare.comparison import Comparison
from rewind.compare.delta import Aspect
from rewind.compare.phrases import slug
from rewind.compare.run import ComparedRun, Move
from rewind.compare.summary import RowChange, Summary, pair_changes, row_changes, summarise
from rewind.dataclass import dataclass
from rewind.errors import DamagedStore, UsageError
from rewind.model.ids import BlobId
from rewind.model.session import Session, split_step, step_in
from rewind.model.step import Step
from rewind.pricing.spending import Pricing
from rewind.providers.telemetry import telemetry_of
from rewind.reading.progress import OnProgress, ignored
from rewind.store.journal.contents import without_collector
from rewind.store.journal.reader import SessionReader
from rewind.store.journal.totals import Totals
from rewind.store.library import Library

DIFF_ASPECTS = {slug(aspect): frozenset({aspect}) for aspect in Aspect if aspect is not Aspect.SNAPSHOT} | {
    "model": frozenset({Aspect.MODEL, Aspect.SNAPSHOT})
}
"""What a diff can be limited to, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSession:
    """A session that is compared with others."""

    session: Session
    run: ComparedRun
    damaged: set[int]
    """Steps of which a body could not be read, and counts as empty. Grows while bodies are read."""

    @property
    def id(self) -> str:
        return self.session.id

    @property
    def ref(self) -> str:
        """As a command line names it."""
        return self.session.ref

    @property
    def steps(self) -> int:
        """How many there are, less telemetry."""
        return sum(telemetry_of(step.request) is None for step in self.run.recording.steps)


@contextmanager
def opened_side_by_side(
    library: Library, sessions: Sequence[Session], on_progress: OnProgress = ignored
) -> Iterator[list[ComparedSession]]:
    """The sessions as runs. Their bodies can be read until the context ends."""
    with ExitStack() as stack:
        stack.enter_context(without_collector())
        yield [_compared(session, stack.enter_context(library.open(session)), on_progress) for session in sessions]


def _compared(session: Session, reader: SessionReader, on_progress: OnProgress) -> ComparedSession:
    recording = reader.recording()
    damaged: set[int] = set()

    def body(step: Step, name: BlobId) -> bytes:
        try:
            return reader.blob(name)
        except DamagedStore:
            damaged.add(step.index)
            return b""

    def answer(step: Step) -> bytes:
        return b"" if step.response is None else body(step, step.response.body)

    run = ComparedRun(
        recording,
        lambda step: (body(step, step.request.body), answer(step)),
        lambda done: on_progress("steps read", done, len(recording.steps)),
        answer,
    )
    _ = run.moves  # asked for here, where a long wait shows how far it is
    return ComparedSession(session=session, run=run, damaged=damaged)


# ── what differs between two ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDiff:
    """What differs between two sessions, or between two of their steps."""

    a: ComparedSession
    b: ComparedSession
    totals: tuple[Totals, Totals]
    comparison: Comparison
    rows: Sequence[Row]
    """All rows; or the one pair of steps that was named."""
    steps: tuple[int | None, int | None]
    """The steps that were named."""
    only: tuple[str, ...]
    """Names of ``DIFF_ASPECTS``, if not all is compared; steps that only one run made do not count then."""
    summary: Summary | None
    """Where whole sessions are compared."""

    @property
    def sides(self) -> tuple[ComparedSession, ComparedSession]:
        return self.a, self.b

    @property
    def whole(self) -> bool:
        """Whether whole sessions are compared."""
        return self.steps == (None, None)

    @property
    def aspects(self) -> frozenset[Aspect]:
        return frozenset(aspect for name in self.only or DIFF_ASPECTS for aspect in DIFF_ASPECTS[name])

    def changes(self) -> Iterator[RowChange]:
        """The rows that differ, one by one, since bodies are read for them."""
        if None not in self.steps:
            return pair_changes(self.comparison, self.rows[0], self.aspects)
        return row_changes(self.comparison, self.rows, self.aspects)

    def is_same(self) -> bool:
        """Whether nothing differs but ids and times."""
        alone = not self.only and any(row.a is None or row.b is None for row in self.rows)
        return not alone and next(self.changes(), None) is None


@contextmanager
def diff_sessions(
    home: Path,
    a: str,
    b: str,
    *,
    step: int | None = None,
    only: Sequence[str] = (),
    prices: Pricing,
    on_progress: OnProgress = ignored,
) -> Iterator[SessionDiff]:
    """Two sessions compared, by their references; ``A:4`` names a step, and ``step`` a step of A.

    What differs is worked out as it is asked for, so the value is to be used inside the context.
    Raises UsageError, SessionNotFound, DamagedStore.
    """
    (ref_a, at_a), (ref_b, at_b) = split_step(a), split_step(b)
    if step is not None:
        if at_a is not None or at_b is not None:
            raise UsageError(
                "--step takes whole sessions; A:N B:M already names the steps.",
                hint=f"rewind diff {ref_a} {ref_b} --step {step}",
            )
        at_a = step
    library = Library(home)
    sessions = [library.find(ref) for ref in (ref_a, ref_b)]
    with opened_side_by_side(library, sessions, on_progress) as (side_a, side_b):
        comparison = Comparison(side_a.run, side_b.run)
        total = len(comparison.rows)
        whole = at_a is None and at_b is None
        yield SessionDiff(
            a=side_a,
            b=side_b,
            totals=(library.totals(side_a.session, prices), library.totals(side_b.session, prices)),
            comparison=comparison,
            rows=_rows(comparison, side_a, at_a, side_b, at_b),
            steps=(at_a, at_b),
            only=tuple(dict.fromkeys(only)),
            summary=summarise(comparison, lambda done: on_progress("steps compared", done, total)) if whole else None,
        )


def _rows(
    comparison: Comparison, side_a: ComparedSession, at_a: int | None, side_b: ComparedSession, at_b: int | None
) -> Sequence[Row]:
    """All; or the two steps that were named, or the row of the one that was."""
    a = None if at_a is None else _move_at(side_a, at_a)
    b = None if at_b is None else _move_at(side_b, at_b)
    if a is not None and b is not None:
        return (Row(a, b),)
    if a is None and b is None:
        return comparison.rows
    return [row for row in comparison.rows if (row.a is a if a is not None else row.b is b)]


def _move_at(side: ComparedSession, index: int) -> Move:
    """The move that step belongs to; a try that failed belongs to the one that came of it. Raises RewindError."""
    step = step_in(side.run.recording, index)
    for move in side.run.moves:
        if index == move.index or index in move.failures:
            return move
    what = "a note, and diff does not compare notes"
    if telemetry_of(step.request) is not None:
        what = "telemetry, and diff does not compare telemetry"
    raise UsageError(f"Step {index} is {what}.", hint=f"rewind inspect {side.ref}:{index}")
