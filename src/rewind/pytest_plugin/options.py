"""Which mode a test runs in: who may say so, and who wins."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

VARIABLE = "REWIND_PYTEST_MODE"


class Mode(StrEnum):
    """What may answer a marked test, and what becomes of its cassette."""

    NONE = "none"
    """Only the tape; a test that has no cassette, and asks something, fails."""
    ONCE = "once"
    """A test without a cassette records one; otherwise as ``none``."""
    NEW = "new"
    """The tape answers what it can, the rest goes live and is added to the cassette."""
    ALL = "all"
    """Everything goes live, and what a passing test recorded takes the place of its cassette."""
    REWRITE = "rewrite"
    """As ``all``; and a passing test that asks nothing any more loses its cassette."""
    REVIEW = "review"
    """As ``none``; afterwards every stale cassette is shown, and recorded anew where that is wanted."""

    @property
    def may_go_live(self) -> bool:
        return self not in (Mode.NONE, Mode.REVIEW)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The mode of a whole run of pytest, and whose word it is."""

    mode: Mode
    origin: str
    """``--rewind``, the variable, ``CI``, ``rewind_mode`` in the ini file, or nobody's."""
    in_ci: bool = False

    @property
    def said_now(self) -> bool:
        """Whether this very command asks for it."""
        return self.origin in ("--rewind", VARIABLE)

    def of(self, marked: Mode | None) -> Mode:
        """The mode of one test. A mark has its say unless this very command, or a CI server, says otherwise."""
        return self.mode if marked is None or self.said_now or self.origin == "CI" else marked


def choose(flag: str | None, environ: Mapping[str, str], ini: str) -> Choice:
    """Flag, variable, CI, ini file, ``once``: the first that speaks. Raises ValueError for a mode that is none.

    On a CI server nothing goes live unless the command itself says so: not because of a file that was written for
    people's own machines.
    """
    in_ci = on_a_ci_server(environ)
    if flag:
        return Choice(mode=mode_named(flag, "--rewind"), origin="--rewind", in_ci=in_ci)
    if variable := environ.get(VARIABLE):
        return Choice(mode=mode_named(variable, VARIABLE), origin=VARIABLE, in_ci=in_ci)
    named = mode_named(ini, "rewind_mode") if ini else None
    if in_ci:
        return Choice(mode=Mode.NONE, origin="CI", in_ci=True)
    if named is not None:
        return Choice(mode=named, origin="rewind_mode")
    return Choice(mode=Mode.ONCE, origin="")


def mode_named(text: str, where: str) -> Mode:
    """Raises ValueError with a sentence."""
    try:
        return Mode(text.lower())
    except ValueError:
        raise ValueError(f"{where} is {text!r}; it can be {', '.join(Mode)}") from None


def on_a_ci_server(environ: Mapping[str, str]) -> bool:
    return environ.get("CI", "").lower() not in ("", "0", "false", "no", "off")


class Act(StrEnum):
    """What is done for one test."""

    PLAY = "play"
    """Only the tape answers, and nothing leaves this machine."""
    RECORD = "record"
    EXTEND = "extend"
    """The tape first, then the world."""
    MISSING = "missing"
    """There is no cassette, and none may be made."""


def act_for(mode: Mode, *, there: bool, made_now: bool) -> Act:
    """``there``: the cassette exists; ``made_now``: another test of this run has written it, and shares it."""
    match mode:
        case Mode.NONE | Mode.REVIEW:
            return Act.PLAY if there else Act.MISSING
        case _ if made_now:
            return Act.EXTEND
        case Mode.ONCE:
            return Act.PLAY if there else Act.RECORD
        case Mode.NEW:
            return Act.EXTEND if there else Act.RECORD
        case Mode.ALL | Mode.REWRITE:
            return Act.RECORD
