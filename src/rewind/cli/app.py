"""What every command shares: the store it works on, and the options that say so."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rewind.cli.commands import HOME_GIVEN
from rewind.dataclass import dataclass
from rewind.errors import EnvironmentProblem, RewindError
from rewind.model.clock import SystemClock
from rewind.settings import Settings, read_settings

if TYPE_CHECKING:
    from rewind.pricing.prices import Prices

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(slots=True)
class App:
    """One call of ``rewind``."""

    home_flag: str | None = None
    used_home: Path | None = None
    """The store that the command turned out to be about."""
    began: float = field(default_factory=lambda: SystemClock().now())
    debug: bool = field(default_factory=lambda: os.environ.get("REWIND_DEBUG", "") not in ("", "0"))

    def settings(self, **flags: Any) -> Settings:
        """The settings, with these flags on top; ``None`` and empty mean not given."""
        settings = read_settings({"home": self.home_flag, **flags})
        self.used_home = settings.home
        return settings

    @property
    def home(self) -> Path:
        return self.settings().home

    @property
    def prices(self) -> "Prices":
        """What models cost: the shipped snapshot, or the store's newer one, with the user's own prices on top."""
        from rewind.reading.prices import prices_for  # lazily: few commands speak of money

        return prices_for(self.settings())

    def finish_deletions(self) -> None:
        """When the command has had its say: delete what a killed ``rewind rm`` has left in its store."""
        if self.used_home is not None and (self.used_home / ".deleted").is_dir():
            home = self.used_home
            _or_say_why_not(lambda screen: screen.finish_deletions(home))

    def retain(self, *, quiet: bool = False) -> None:
        """After a run: delete old sessions, as far as the settings limit the store, and say so."""
        settings = self.settings()
        if settings.keep_days is not None or settings.max_size is not None:
            _or_say_why_not(lambda screen: screen.say_what_was_dropped(settings, began=self.began, quiet=quiet))


def _or_say_why_not(work: Callable[[Any], None]) -> None:
    """The command itself has done what it should: what comes after it must not make it a failure."""
    from rewind.cli.screens import retention  # lazily: few limit their store, and deletions are hardly ever killed

    try:
        work(retention)
    except RewindError as problem:
        warn(f"rewind: {problem.message}")


def _remember_home(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.ensure_object(App).home_flag = value
        context.meta[HOME_GIVEN] = value


def _remember_debug(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(App).debug = True


def common_options(function: Command) -> Command:
    """``--home`` and ``--debug``, before or after the name of the command."""
    function = click.option(
        "--home",
        metavar="DIR",
        expose_value=False,
        callback=_remember_home,
        help="Use the store in DIR (default: REWIND_HOME, ./.rewind, or your data folder)",
    )(function)
    return click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=_remember_debug,
        help="Show the traceback of an error (also REWIND_DEBUG=1)",
    )(function)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout")


def session_argument(
    name: str = "session", *, metavar: str = "SESSION", required: bool = True
) -> Callable[[Command], Command]:
    """The id, prefix, name or ``last~N`` of a session."""
    return click.argument(name, metavar=metavar, required=required, shell_complete=complete_session)


def say(sentence: str, style: str = "dim") -> None:
    """A line on stderr, where there is one to say before the agent starts."""
    from rewind.cli.screens.terminal import Span, err  # lazily: mostly there is none, and the agent waits

    err().line(Span(sentence, style))


def warn(sentence: str) -> None:
    """The same for what may surprise."""
    say(sentence, "yellow")


def print_json(value: Any) -> None:
    """JSON in plain ASCII: whatever was recorded, no byte of it can steer a terminal."""
    write_data((json.dumps(value, indent=2, allow_nan=False) + "\n").encode("ascii"))


def write_data(data: bytes) -> None:
    """Bytes to stdout, as they are."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise EnvironmentProblem(f"The output could not be written: {problem.strerror}.") from problem


def complete_session(context: click.Context, _parameter: click.Parameter, typed: str) -> list[Any]:
    """What a shell that is completing may offer."""
    # Lazily: only a shell that is completing asks.
    from click.shell_completion import CompletionItem

    from rewind.reading.sessions import recent_sessions

    try:
        sessions = recent_sessions(context.ensure_object(App).home)
    except RewindError:
        return []  # a shell that is completing has no place for a message
    items = [CompletionItem("last", help="the newest session")]
    for session in sessions:
        shown = " ".join(session.start.command)[:60]
        items.append(CompletionItem(session.id, help=shown))
        if session.start.name:
            items.append(CompletionItem(session.start.name, help=shown))
    return [item for item in items if item.value.startswith(typed)]
