"""Sessions opened to be compared, and the lines that say which they are."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from rewind.cli.progress import progress
from rewind.cli.screens.facts import status
from rewind.cli.screens.table import display_width
from rewind.cli.screens.terminal import Span, Terminal, err
from rewind.compare.run import Move, Run
from rewind.errors import DamagedStore, UsageError
from rewind.model.ids import BlobId
from rewind.model.session import Session, Status, step_in
from rewind.model.step import Step
from rewind.safe import safe_line
from rewind.store.journal.reader import SessionReader
from rewind.store.library import Library
from rewind.text import plural
from rewind.views.session import moment

_LONGEST_NAME = 40
_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A session that is compared with another."""

    session: Session
    run: Run
    damaged: set[int]
    """Grows: steps of which a body could not be read, and counts as empty."""

    @property
    def id(self) -> str:
        return self.session.id

    @property
    def ref(self) -> str:
        """As a command line names it."""
        return self.session.ref


@contextmanager
def opened(library: Library, sessions: Sequence[Session]) -> Iterator[list[Side]]:
    """The sessions as runs. What is damaged, or still goes on, is said when they are closed."""
    with ExitStack() as stack:
        stack.enter_context(_uncollected())
        with progress("steps read") as show:
            sides = [_side(session, stack.enter_context(library.open(session)), show) for session in sessions]
        yield sides
    for side in {side.id: side for side in sides}.values():
        _warn(err(), side)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Thousands of values are made and none of them in a circle: looking for circles takes a fifth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def moment_shown(seconds: float) -> str:
    """``2026-11-15 09:14 UTC``."""
    written = moment(seconds)
    return written[:16].replace("T", " ") + " UTC" if written.endswith("Z") else written


def print_sides(terminal: Terminal, sides: Sequence[tuple[str, Session]]) -> None:
    """A line for each session, with what it is called here; a narrow screen does without when it began."""
    names = [safe_line(session.start.name or "", _LONGEST_NAME) for _, session in sides]
    named = max(map(display_width, names), default=0)
    states = [status(session) for _, session in sides]
    stated = max(display_width(state.text) for state in states)
    called = max(len(label) for label, _ in sides)
    fits = called + named + stated + len("2026-11-15 09:14 UTC") + 20 <= terminal.width
    for (label, session), name, state in zip(sides, names, states, strict=True):
        filler = " " * (named - display_width(name) + 2 if named else 0)
        began = " " * (stated - display_width(state.text) + 2) + moment_shown(session.start.started)
        terminal.line(
            Span(f"  {label:<{called}}  ", "dim"),
            Span(session.id, "bold"),
            f"  {name}{filler}",
            state,
            Span(began if fits else "", "dim"),
        )


def move_at(side: Side, index: int) -> Move:
    """The move that step belongs to; a try that failed belongs to the one that came of it. Raises RewindError."""
    step_in(side.run.recording, index)
    moves = side.run.moves
    found = next((move for move in moves if index == move.index or index in move.failures), None)
    if found is None:
        raise UsageError(
            f"Step {index} is a note, and runs are not compared by notes.",
            hint=f"rewind inspect {side.session.ref}:{index}",
        )
    return found


def _side(session: Session, reader: SessionReader, show: Callable[[int, int], None]) -> Side:
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

    run = Run(
        recording,
        lambda step: (body(step, step.request.body), answer(step)),
        lambda done: show(done, len(recording.steps)),
        answer,
    )
    _ = run.moves  # asked for here, where a long wait shows how far it is
    return Side(session=session, run=run, damaged=damaged)


def _warn(terminal: Terminal, side: Side) -> None:
    damage = [*side.run.recording.damage]
    if side.damaged:
        steps = ", ".join(map(str, sorted(side.damaged)[:_SHOWN])) + (
            ", …" if len(side.damaged) > _SHOWN else ""
        )
        many = len(side.damaged) > 1
        damage.append(f"bodies of step{'s' * many} {steps} are damaged and count as empty here")
    for one in damage:
        terminal.line(Span(f"{side.id}: {one}; rewind verify {side.ref}", "yellow"))
    if side.session.status is Status.RUNNING:
        steps = plural(len(side.run.recording.steps), "step")
        terminal.line(Span(f"{side.id} is still running; compared as it stands, after {steps}", "yellow"))
