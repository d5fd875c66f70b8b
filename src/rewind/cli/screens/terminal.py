"""The screen: whether it has colours, how wide it is, and the one function that writes text to it.

Everything given to ``line`` passes ``safe`` on its way, so what an agent or a model wrote can be shown but can
never steer the terminal.
"""

import errno
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TextIO

from rewind.cli.commands import for_this_store
from rewind.dataclass import dataclass
from rewind.errors import EnvironmentProblem
from rewind.safe import safe

STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}

PIPE_WIDTH = 200
"""How wide a line may be where there is no screen and no ``COLUMNS``."""

ASCII = str.maketrans(
    {
        "…": ".",
        "·": "-",
        "→": ">",
        "✓": "+",
        "✗": "x",
        "●": "*",
        "◐": "~",
        "◇": "o",
        "─": "-",
        "×": "x",
        "⏎": " ",
        "—": "-",
        "–": "-",
        "├": "|",
        "│": "|",
        "└": "`",
        "≠": "!",
        "≈": "%",
        "−": "-",
        "←": "<",
        "↕": "^",
        "✂": "/",
    }
    | dict(zip("▁▂▃▄▅▆▇█", "_.:-=+*#", strict=True))
)
"""For streams whose encoding has none of our signs."""


_NOBODY_THERE = (errno.EIO, errno.EPIPE)
"""The terminal was closed, or the reader of the pipe left."""


@dataclass(frozen=True, slots=True)
class Span:
    """Some text in one style. The text may come from anywhere: it is made safe when it is shown."""

    text: str
    style: str = ""
    """Names of ``STYLES``, separated by spaces."""


def hint(text: str, style: str = "dim") -> Span:
    """Words of ours that name commands to try next, as they work for the store of this call."""
    return Span(for_this_store(text), style)


@dataclass(frozen=True, slots=True)
class Terminal:
    """One of our output streams."""

    stream: TextIO
    colour: bool = False
    width: int = PIPE_WIDTH
    signs: bool = True
    """Whether the encoding has ``✓`` and the like."""
    talk: bool = False
    """For words to a person, who may have left: then they are for nobody, and what was done stays done."""

    def line(self, *parts: str | Span) -> None:
        """One line of text; strings are plain spans."""
        self.write(self.text(*parts) + "\n")

    def text(self, *parts: str | Span) -> str:
        """The parts as they may be shown."""
        return "".join(
            self.paint(safe(part.text), part.style) if isinstance(part, Span) else safe(part) for part in parts
        )

    def paint(self, shown: str, style: str) -> str:
        """Put a style around text that is already safe."""
        if not (self.colour and style and shown):
            return shown
        codes = ";".join(STYLES[name] for name in style.split())
        return f"\x1b[{codes}m{shown}\x1b[0m"

    def write(self, shown: str) -> None:
        """Text that is already safe."""
        try:
            self.stream.write(shown if self.signs else shown.translate(ASCII))
            self.stream.flush()
        except OSError as problem:
            if self.talk and problem.errno in _NOBODY_THERE:
                return
            if isinstance(problem, BrokenPipeError):
                raise
            raise EnvironmentProblem(f"The output could not be written: {problem.strerror}.") from problem


def terminal(stream: TextIO, env: Mapping[str, str] | None = None) -> Terminal:
    """The stream as a screen."""
    env = os.environ if env is None else env
    tty = stream.isatty()
    return Terminal(stream, _has_colour(tty, env), _width(tty, env), _has_signs(stream))


def out() -> Terminal:
    """Where data goes."""
    return terminal(sys.stdout)


def err() -> Terminal:
    """Where talk goes."""
    return replace(terminal(sys.stderr), talk=True)


def _has_colour(tty: bool, env: Mapping[str, str]) -> bool:
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR"):
        return env["FORCE_COLOR"] != "0"
    return tty and env.get("TERM") != "dumb"


def _width(tty: bool, env: Mapping[str, str]) -> int:
    named = env.get("COLUMNS", "")
    if named.isdecimal() and int(named) > 0:
        return max(20, int(named))
    return max(20, shutil.get_terminal_size((80, 24)).columns) if tty else PIPE_WIDTH


def _has_signs(stream: TextIO) -> bool:
    try:
        "✓→·…●◐✗⏎".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
