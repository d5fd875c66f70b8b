"""``rewind replay --step``: the terminal on which a person is shown each step, and says how to go on.

The agent has our standard streams, so the terminal itself is opened. Nothing of its settings is changed: a line is
typed and entered, and whoever kills us leaves it as it was.
"""

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rewind.cli.editor import edit_json
from rewind.cli.progress import progress
from rewind.cli.screens.next_request import Sending, print_request, print_sending, sending, sending_view
from rewind.cli.screens.terminal import Span, Terminal, err, terminal
from rewind.conversation.outline import Outline, outline_of
from rewind.errors import DamagedStore, RewindError, UsageError
from rewind.model.ids import BlobId
from rewind.model.step import Step
from rewind.runs.stepped_replay import StepCommand, StepThrough, Stop
from rewind.store.library import Library

if TYPE_CHECKING:
    from rewind.model.session import Session
    from rewind.pricing.spending import Pricing
    from rewind.runs.fork.run import ForkOptions
    from rewind.runs.replay import ReplayOptions, ReplayResult
    from rewind.store.journal.reader import SessionReader

KEYS = "Enter: next step · c: run on to the end · e: edit and fork · d: the whole request · q: quit"
LOOK_SECONDS = 0.2
"""How soon it is noticed that the agent has ended while a person thinks."""


@dataclass(frozen=True, slots=True)
class Console:
    """The controlling terminal."""

    terminal: Terminal
    descriptor: int

    def line(self, given_up: Callable[[], bool]) -> str | None:
        """What a person enters; ``None`` when nobody needs it any more. The end of input, or of the terminal, is q."""
        while not given_up():
            if select.select([self.descriptor], [], [], LOOK_SECONDS)[0]:
                try:
                    data = os.read(self.descriptor, 4096)
                except OSError:
                    data = b""  # the terminal is gone
                return data.decode(errors="replace").strip().lower() if data else "q"
        return None


@contextmanager
def console(session: str, step: int) -> Iterator[Console]:
    """The terminal we were started on. Raises UsageError where there is none."""
    try:
        descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(
            "--step asks a person how to go on, and there is no terminal to ask on.",
            hint=f"rewind replay {session} --step {step} --json shows what is about to be sent and ends there; "
            f"see also --until {step}, and rewind inspect {session}:{step} --context",
        ) from error
    with os.fdopen(descriptor, "w", errors="backslashreplace") as stream:
        yield Console(terminal(stream), descriptor)


def outline_in(library: Library, session: "Session") -> Outline:
    """The recorded run, understood; a body that is damaged counts as empty here."""
    with library.open(session) as reader, progress("steps read") as show:
        recording = reader.recording()
        bodies = _bodies(reader)
        return outline_of(recording, bodies, lambda done: show(done, len(recording.steps)))


def _bodies(reader: "SessionReader") -> Callable[[Step], tuple[bytes, bytes]]:
    def body(name: BlobId | None) -> bytes:
        try:
            return b"" if name is None else reader.blob(name)
        except DamagedStore:
            return b""

    return lambda step: (
        body(step.request.body),
        body(step.response.body if step.response is not None else None),
    )


@dataclass(slots=True, kw_only=True)
class Stepper:
    """Asks at each stop; remembers a fork that is to come of it."""

    console: Console
    read: Callable[[], Outline]
    """The recorded run; asked for once, when the first stop is shown."""
    fork: "ForkOptions"
    """A fork of the session, by what else was said on the command line."""
    edited: "ForkOptions | None" = None
    """The fork that was asked for."""
    _outline: Outline | None = None

    def ask(self, stop: Stop) -> StepCommand:
        """Show the request, and let a person say how to go on."""
        if self._outline is None:
            self._outline = self.read()
        one = sending(stop.call, stop.step.index, self._outline)
        screen = self.console.terminal
        screen.line()
        print_sending(screen, one, len(self._outline.steps), drifted=stop.drifted)
        screen.line()
        screen.line(Span(KEYS, "dim"))
        while True:
            screen.write(screen.text(Span(f"step {one.index}> ", "bold")))
            move = self._said(stop, one)
            if move is not None:
                return move

    def _said(self, stop: Stop, one: Sending) -> StepCommand | None:
        """``None`` to ask again."""
        screen = self.console.terminal
        match self.console.line(stop.agent_ended):
            case None:
                screen.line()
                screen.line(Span("the agent has ended, or was ended", "yellow"))
                return StepCommand.NEXT
            case "":
                return StepCommand.NEXT
            case "c":
                return StepCommand.RUN_ON
            case "q":
                return StepCommand.QUIT
            case "d":
                print_request(screen, one)
            case "e":
                return self._edit(stop)
            case _:
                screen.line(KEYS)
        return None

    def _edit(self, stop: Stop) -> StepCommand | None:
        # Lazily: few stops end in a fork.
        from rewind.runs.fork.manual_edits import ManualEdit
        from rewind.runs.fork.plan import body_to_edit, plan_fork

        screen = self.console.terminal
        index = stop.step.index
        fork = replace(self.fork, step=index)
        try:
            shown = body_to_edit(fork)
            with _left_alone():
                saved = edit_json(shown, name=f"step-{index}.json", terminal=self.console.descriptor)
            edited = replace(fork, by_hand=ManualEdit(shown, saved))
            plan_fork(edited)  # what cannot be done is said while the agent still waits
        except RewindError as problem:
            screen.line(Span(problem.message, "yellow"))
            if problem.hint:
                screen.line(Span(f"  try: {problem.hint}", "dim"))
            return None
        self.edited = edited
        return StepCommand.QUIT


def step_through(
    options: "ReplayOptions", step: int, pricing: "Pricing"
) -> tuple["ReplayResult", "ForkOptions | None"]:
    """How the replay went, and the fork that was asked for in its place. Raises UsageError without a terminal."""
    from rewind.runs.fork.plan import ForkOptions
    from rewind.runs.replay import replay

    session = options.session
    fork = ForkOptions(
        session=session,
        step=step,
        home=options.home,
        command=options.command,
        on_miss=options.on_miss,
        allow_drift=options.allow_drift,
        port=options.port,
        upstream=options.upstream,
        ignore=options.ignore,
        pricing=pricing,
        announce=lambda sentence: err().line(Span(sentence, "yellow")),
    )
    with console(session.ref, step) as screen:
        read = partial(outline_in, Library(options.home), session)
        stepper = Stepper(console=screen, read=read, fork=fork)
        result = replay(replace(options, stepping=StepThrough(step, stepper.ask)))
    return result, stepper.edited


def about_to_send(options: "ReplayOptions", stop: Stop) -> dict[str, Any]:
    """What a stop shows, as JSON."""
    outline = outline_in(Library(options.home), options.session)
    return sending_view(options.session.id, sending(stop.call, stop.step.index, outline))


def run_fork(options: "ForkOptions") -> int:
    """What was edited at a stop goes on as a fork; its exit code."""
    # Lazily: see above.
    from rewind.cli.commands.fork import exit_code
    from rewind.cli.screens.fork import print_forked
    from rewind.runs.fork.run import fork

    where = f"{options.session.ref}:{options.step}"
    before = f", up to step {options.step} from the recording" if options.step > 1 else ""
    err().line(Span(f"→ rewind fork {where}, edited by hand: the agent starts again{before}", "bold"))
    result = fork(options)
    print_forked(err(), result, options.session.ref)
    return exit_code(result)


@contextmanager
def _left_alone() -> Iterator[None]:
    """While an editor has the terminal, Ctrl-C is the editor's."""
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
