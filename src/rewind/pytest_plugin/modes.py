"""The mode of a pytest run: which there are, who chooses, and the command that runs a test in one.

Loaded in every run of pytest, so it imports nothing else of Rewind.
"""

import re
import shlex
from collections.abc import Mapping
from enum import StrEnum

from rewind.dataclass import dataclass

VARIABLE = "REWIND_PYTEST_MODE"


class BadOption(ValueError):
    """A mode or a mark that makes no sense. Not a RewindError: this module imports nothing of Rewind."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Mode(StrEnum):
    """What may answer a marked test, and what becomes of its cassette."""

    NONE = "none"
    """Only the cassette answers; a test without one fails as soon as it asks something."""
    ONCE = "once"
    """A test without a cassette records one; otherwise as ``none``."""
    NEW = "new"
    """The cassette answers what it can, the rest goes live and is added to it."""
    ALL = "all"
    """Everything goes live, and what a passing test recorded replaces its cassette."""
    REWRITE = "rewrite"
    """As ``all``; and a passing test that asks nothing any more loses its cassette."""
    REVIEW = "review"
    """As ``none``; afterwards every stale cassette is shown, and recorded again where the user says so."""

    @property
    def may_go_live(self) -> bool:
        return self not in (Mode.NONE, Mode.REVIEW)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeChoice:
    """The mode of a whole run of pytest, and who chose it."""

    mode: Mode
    origin: str
    """``--rewind``, the variable, ``CI`` or ``rewind_mode`` in the ini file; empty for the default."""
    in_ci: bool = False

    @property
    def is_explicit(self) -> bool:
        """Whether this very command asks for it."""
        return self.origin in ("--rewind", VARIABLE)

    def for_test(self, marked: Mode | None) -> Mode:
        """The mode of one test. Its mark decides unless this very command, or a CI server, says otherwise."""
        return self.mode if marked is None or self.is_explicit or self.origin == "CI" else marked


def choose_mode(flag: str | None, environ: Mapping[str, str], ini: str) -> ModeChoice:
    """Flag, variable, CI, ini file, ``once``: the first that is set. Raises BadOption for an unknown mode.

    On a CI server nothing goes live unless the command itself says so: not because of a file that was written for
    people's own machines.
    """
    in_ci = environ.get("CI", "").lower() not in ("", "0", "false", "no", "off")
    if flag:
        return ModeChoice(mode=mode_named(flag, "--rewind"), origin="--rewind", in_ci=in_ci)
    if variable := environ.get(VARIABLE):
        return ModeChoice(mode=mode_named(variable, VARIABLE), origin=VARIABLE, in_ci=in_ci)
    from_ini = mode_named(ini, "rewind_mode") if ini else None
    if in_ci:
        return ModeChoice(mode=Mode.NONE, origin="CI", in_ci=True)
    if from_ini is not None:
        return ModeChoice(mode=from_ini, origin="rewind_mode")
    return ModeChoice(mode=Mode.ONCE, origin="")


def mode_named(text: str, where: str) -> Mode:
    try:
        return Mode(text.lower())
    except ValueError:
        raise BadOption(f"{where} is {text!r}; it can be {', '.join(Mode)}.") from None


def pytest_command(address: str, mode: Mode) -> str:
    """The command that runs one test in a mode."""
    return f"pytest {quoted(address)} --rewind={mode}"


def quoted(word: str) -> str:
    """As it is typed in a shell, in double quotes where it needs any."""
    if shlex.quote(word) == word:
        return word
    return f'"{word}"' if re.fullmatch(r'[^"$`\\!\n]*', word) else shlex.quote(word)
