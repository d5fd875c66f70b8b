"""``rewind replay --step``: the terminal on which a person is shown each step, and says how to go on;
and the user's own editor.

The agent has our standard streams, so the terminal itself is opened. Nothing of its settings is changed: a line is
typed and entered, and whoever kills us leaves it as it was.
"""

import json
import os
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rewind.cli.progress import progress_line
from rewind.cli.screens.context import folded, print_changes, print_context
from rewind.cli.screens.facts import print_facts
from rewind.cli.screens.inspect import step_status, usage_shown
from rewind.cli.screens.terminal import Span, Terminal, terminal
from rewind.conversation.message_digest import json_text
from rewind.conversation.outline import Outline, OutlineStep
from rewind.dataclass import dataclass
from rewind.errors import EnvironmentProblem, RewindError, UsageError
from rewind.model.http import HttpRequest
from rewind.reading.body_text import read_body
from rewind.reading.next_request import NextRequest, next_request, recorded_outline
from rewind.runs.fork.plan import ForkOptions, plan_fork
from rewind.runs.fork.samples import edited_by_hand
from rewind.runs.replay import replay
from rewind.runs.replay_options import ReplayOptions, ReplayResult, StepCommand, StepThrough, Stop
from rewind.safe import safe_line
from rewind.text import plural

_ANSWER_SHOWN = 300
"""Characters of the recorded answer."""
_VALUE_SHOWN = 60
"""Characters of one parameter: formats of answers may be long."""
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
            "--step asks you how to go on, but there is no terminal.",
            hint=f"rewind replay {session} --step {step} --json shows what is about to be sent and ends there; "
            f"see also --until {step}, and rewind inspect {session}:{step} --context",
        ) from error
    with os.fdopen(descriptor, "w", errors="backslashreplace") as stream:
        yield Console(terminal(stream), descriptor)


@dataclass(slots=True, kw_only=True)
class Stepper:
    """Asks at each stop; remembers a fork that is to come of it."""

    console: Console
    fork: ForkOptions
    """A fork of the session, by what else was said on the command line."""
    edited: ForkOptions | None = None
    """The fork that was asked for."""
    _outline: Outline | None = None

    def ask(self, stop: Stop) -> StepCommand:
        """Show the request, and let a person say how to go on."""
        if self._outline is None:
            with progress_line() as on_progress:
                self._outline = recorded_outline(self.fork.home, self.fork.session, on_progress)
        request = next_request(stop.call, stop.step.index, self._outline)
        screen = self.console.terminal
        screen.line()
        print_next_request(screen, request, len(self._outline.steps), drifted=stop.drifted)
        screen.line()
        screen.line(Span(KEYS, "dim"))
        while True:
            screen.write(screen.text(Span(f"step {request.index}> ", "bold")))
            command = self._answer(stop, request)
            if command is not None:
                return command

    def _answer(self, stop: Stop, request: NextRequest) -> StepCommand | None:
        """``None`` to ask again."""
        screen = self.console.terminal
        match self.console.line(stop.agent_ended):
            case None:
                screen.line()
                screen.line(Span("the agent has ended", "yellow"))
                return StepCommand.NEXT
            case "":
                return StepCommand.NEXT
            case "c":
                return StepCommand.RUN_ON
            case "q":
                return StepCommand.QUIT
            case "d":
                print_request(screen, request)
            case "e":
                return self._edit(stop)
            case _:
                screen.line(KEYS)
        return None

    def _edit(self, stop: Stop) -> StepCommand | None:
        screen = self.console.terminal
        fork = replace(self.fork, step=stop.step.index)
        try:
            edited = edited_by_hand(fork, partial(self._in_editor, f"step-{fork.step}.json"))
            plan_fork(edited)  # what cannot be done is said while the agent still waits
        except RewindError as problem:
            screen.line(Span(problem.message, "yellow"))
            if problem.hint:
                screen.line(Span(f"  try: {problem.hint}", "dim"))
            return None
        self.edited = edited
        return StepCommand.QUIT

    def _in_editor(self, name: str, document: Any) -> Any:
        with _left_alone():
            return edit_json(document, name=name, terminal=self.console.descriptor)


def step_through(options: ReplayOptions, fork: ForkOptions) -> tuple[ReplayResult, ForkOptions | None]:
    """Replay, and ask at each step from the one that ``fork`` names; a fork may be asked for in its place.

    Raises UsageError without a terminal.
    """
    with console(options.session.ref, fork.step) as screen:
        stepper = Stepper(console=screen, fork=fork)
        result = replay(replace(options, stepping=StepThrough(fork.step, stepper.ask)))
    return result, stepper.edited


@contextmanager
def _left_alone() -> Iterator[None]:
    """While an editor has the terminal, Ctrl-C is the editor's."""
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# ── what is about to be sent ────────────────────────────────────────────────────────────────────────────────────────


def print_next_request(terminal: Terminal, request: NextRequest, total: int, *, drifted: bool) -> None:
    """The screen of a stop."""
    head = request.request.head
    model = Span(f"  {safe_line(request.asked.model, 200)}" if request.asked.model else "", "cyan")
    title = f"before step {request.index} of {total}"
    terminal.line(Span(title, "bold"), f"  {request.recorded.kind.value}", model)
    print_facts(terminal, [("to", f"{head.method} {head.url}"), *_facts(request, drifted=drifted)])
    terminal.line()
    if request.changes and request.since is not None:
        print_changes(terminal, request.changes, request.since, full=False)
    elif request.entries:
        print_context(terminal, request.entries, full=False)
    elif request.request.body:
        terminal.line(folded(_body_shown(request.request)))
    terminal.line()
    _print_answer(terminal, request.recorded)


def print_request(terminal: Terminal, request: NextRequest) -> None:
    """The whole request, less its keys."""
    head = request.request.head
    terminal.line(Span(f"{head.method} {head.url}", "bold"))
    for name, value in head.headers:
        terminal.line(Span(f"{name}: ", "dim"), value)
    terminal.line()
    terminal.line(_body_shown(request.request))


def _facts(request: NextRequest, *, drifted: bool) -> Iterator[tuple[str, str | Span]]:
    if request.asked.parameters:
        values = (f"{name} {_value(value)}" for name, value in request.asked.parameters.items())
        yield "parameters", ", ".join(values)
    size = plural(len(request.request.body), "byte")
    if request.asked.messages:
        tools = f", {plural(len(request.asked.tools), 'tool')}" if request.asked.tools else ""
        size = f"{plural(len(request.asked.messages), 'message')}{tools}, {size}"
    yield "size", size
    if request.recorded.place is not None and request.recorded.place.parent is not None:
        yield "goes on from", f"step {request.recorded.place.parent}"
    if request.asked.note:
        yield "note", Span(request.asked.note, "yellow")
    if drifted:
        yield ("drift", Span(f"differs from the recorded step {request.index}, and is accepted for it", "yellow"))
    if request.recorded.step.request.asked_key:
        changed = "this fork changed it on its way out; this is what the agent sends"
        yield "edited", Span(changed, "yellow")


def _value(value: Any) -> str:
    return safe_line(value if isinstance(value, str) else json_text(value), _VALUE_SHOWN)


def _body_shown(sent: HttpRequest) -> str:
    read = read_body(sent.body, sent.head.headers)
    if read.binary is not None:
        return plural(len(read.binary), "byte") + " that are not text"
    return json.dumps(read.json, indent=2, ensure_ascii=False) if read.is_json else (read.text or "")


def _print_answer(terminal: Terminal, recorded: OutlineStep) -> None:
    reading = recorded.reading
    parts: list[str | Span] = [Span("the recording answers  ", "dim"), step_status(recorded.step)]
    if reading.usage.is_told:
        parts.append(f"  {usage_shown(reading.usage)}")
    terminal.line(*parts)
    if answer := reading.error or reading.text:
        terminal.line(Span(f"  {safe_line(answer, _ANSWER_SHOWN)}", "red" if reading.error else ""))


# ── the user's own editor ───────────────────────────────────────────────────────────────────────────────────────

FALLBACK = "vi"


def edit_json(document: Any, *, name: str, env: Mapping[str, str] | None = None, terminal: int | None = None) -> Any:
    """What the user made of the document. Raises UsageError where that is nothing new, or no JSON object.

    ``terminal`` is a descriptor for the editor's input and output, where ours are not for it.
    """
    folder = Path(tempfile.mkdtemp(prefix="rewind-"))  # mode 0700
    path = folder / name
    kept = False
    try:
        path.touch(mode=0o600)
        path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", errors="backslashreplace")
        _open_editor(path, os.environ if env is None else env, terminal)
        try:
            written = path.read_text(errors="surrogateescape")
        except FileNotFoundError as error:
            raise UsageError("The editor left no file behind. Nothing was run.") from error
        if not written.strip():
            raise UsageError("The file is empty, so the fork is called off. Nothing was run.")
        try:
            saved = _object(written)
        except ValueError as error:
            kept = True  # somebody's work is in there
            raise UsageError(
                f"What you saved is not {error}. Nothing was run.", hint=f"What you wrote is still in {path}"
            ) from error
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)
    if saved == document:
        raise UsageError(
            "You changed nothing in the editor. Nothing was run.",
            hint="rewind fork SESSION:STEP, without --edit, asks the step again as it is.",
        )
    return saved


def _object(written: str) -> dict[str, Any]:
    """Raises ValueError, which says what the text is not."""

    def no_number(word: str) -> Any:
        raise ValueError(f"{word} is not a JSON number")

    try:
        written.encode()  # bytes that are not text are not JSON either
        saved = json.loads(written, parse_constant=no_number)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"valid JSON ({error})") from error
    if not isinstance(saved, dict):
        raise ValueError("a JSON object")
    return saved


def _open_editor(path: Path, env: Mapping[str, str], terminal: int | None) -> None:
    named = env.get("VISUAL") or env.get("EDITOR") or FALLBACK
    try:
        words = shlex.split(named) or [FALLBACK]
        code = subprocess.run([*words, str(path)], stdin=terminal, stdout=terminal, check=False).returncode
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(
            f"The editor {named!r} could not be started: {error}.",
            hint="Set EDITOR to an editor that is installed, for example EDITOR=nano",
        ) from error
    if code != 0:
        raise UsageError(f"The editor {named!r} ended with exit code {code}. Nothing was run.")
