"""What a test is asked to do: the mode of a pytest run, and the arguments of ``@pytest.mark.rewind``.

Loaded in every run of pytest, so it imports nothing of Rewind before there is something to complain of.
"""

import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, cast

VARIABLE = "REWIND_PYTEST_MODE"
ENDINGS = (".rw", ".rw.zst")
Tools = Literal["replay", "live"]
_PLAIN_IN_QUOTES = re.compile(r'[^"$`\\!\n]*')


# ── modes ────────────────────────────────────────────────────────────────────────────────────────────────────


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
    """As ``none``; afterwards every stale cassette is shown, and recorded anew where the user says so."""

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
    """Flag, variable, CI, ini file, ``once``: the first that is set. Raises ValueError for an unknown mode.

    On a CI server nothing goes live unless the command itself says so: not because of a file that was written for
    people's own machines.
    """
    in_ci = environ.get("CI", "").lower() not in ("", "0", "false", "no", "off")
    if flag:
        return ModeChoice(mode=_mode_named(flag, "--rewind"), origin="--rewind", in_ci=in_ci)
    if variable := environ.get(VARIABLE):
        return ModeChoice(mode=_mode_named(variable, VARIABLE), origin=VARIABLE, in_ci=in_ci)
    from_ini = _mode_named(ini, "rewind_mode") if ini else None
    if in_ci:
        return ModeChoice(mode=Mode.NONE, origin="CI", in_ci=True)
    if from_ini is not None:
        return ModeChoice(mode=from_ini, origin="rewind_mode")
    return ModeChoice(mode=Mode.ONCE, origin="")


def _mode_named(text: str, where: str) -> Mode:
    try:
        return Mode(text.lower())
    except ValueError:
        raise ValueError(f"{where} is {text!r}; it can be {', '.join(Mode)}") from None


class CassetteAction(StrEnum):
    """What is done with the cassette of one test."""

    PLAY = "play"
    """Only the cassette answers, and nothing leaves this machine."""
    RECORD = "record"
    EXTEND = "extend"
    """The cassette answers first, then the world."""
    MISSING = "missing"
    """There is no cassette, and none may be made."""

    @property
    def writes(self) -> bool:
        return self in (CassetteAction.RECORD, CassetteAction.EXTEND)


def action_for(mode: Mode, *, exists: bool, written_now: bool) -> CassetteAction:
    """``exists``: there is a cassette; ``written_now``: another test of this run has written it, and shares it."""
    match mode:
        case Mode.NONE | Mode.REVIEW:
            return CassetteAction.PLAY if exists else CassetteAction.MISSING
        case _ if written_now:
            return CassetteAction.EXTEND
        case Mode.ONCE:
            return CassetteAction.PLAY if exists else CassetteAction.RECORD
        case Mode.NEW:
            return CassetteAction.EXTEND if exists else CassetteAction.RECORD
        case Mode.ALL | Mode.REWRITE:
            return CassetteAction.RECORD


# ── commands to copy ─────────────────────────────────────────────────────────────────────────────────────────


def pytest_command(address: str, mode: Mode) -> str:
    """The command that runs one test in a mode."""
    return f"pytest {quoted(address)} --rewind={mode}"


def quoted(word: str) -> str:
    """As it is typed in a shell, in double quotes where it needs any."""
    if shlex.quote(word) == word:
        return word
    return f'"{word}"' if _PLAIN_IN_QUOTES.fullmatch(word) else shlex.quote(word)


# ── marks ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkOptions:
    """The arguments of a mark, checked; those it does not name are the ones of ``rewind_config``."""

    cassette: str | None = None
    """As written; ``None`` for the path that follows from the test's name."""
    mode: Mode | None = None
    allow_drift: bool = False
    ignore: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    all_hosts: bool = False
    allowed_hosts: tuple[str, ...] = ()
    """Hosts that may be reached live, on the cassette or not."""
    tools: Tools = "replay"
    """Whether functions under ``@rewind.tool`` are answered by the cassette, too."""


def read_mark(
    args: Sequence[Any], kwargs: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> MarkOptions:
    """The arguments of the closest mark over the defaults. Raises UsageError."""
    where, defaults = "@pytest.mark.rewind", defaults or {}
    if len(args) > 1:
        raise _usage_error(f"{where} takes one cassette, not {len(args)}.")
    if args and "cassette" in kwargs:
        raise _usage_error(f"{where} names its cassette twice.")
    named = {"cassette": args[0], **kwargs} if args else dict(kwargs)
    _check_names(named, where, _READERS)
    if "cassette" in defaults:
        raise _usage_error(
            "rewind_config cannot name a cassette.",
            hint="One for all tests of a module is its mark's matter: "
            'pytestmark = pytest.mark.rewind(cassette="….rw")',
        )
    _check_names(defaults, "rewind_config", [name for name in _READERS if name != "cassette"])
    values: dict[str, Any] = {}
    for source, given in (("rewind_config", defaults), (where, named)):
        for name, value in given.items():
            values[name] = _READERS[name](value, f"{source}: {name!r}")
    return MarkOptions(**values)


def _check_names(named: Mapping[str, Any], where: str, known: Collection[str]) -> None:
    for name in named:
        if name not in known:
            from difflib import get_close_matches  # lazily: only a typo needs it

            near = get_close_matches(name, known, n=1)
            raise _usage_error(
                f"{where} knows no {name!r}.",
                hint=f"Did you mean {near[0]!r}?" if near else f"It takes: {', '.join(known)}.",
            )


def _cassette(value: Any, where: str) -> str | None:
    if value is None:
        return None
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(path, str) or not path.endswith(ENDINGS) or "\0" in path:
        raise _usage_error(f"{where} must be a path that ends in .rw or .rw.zst, not {value!r}.")
    return path


def _yes_or_no(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise _usage_error(f"{where} must be True or False, not {value!r}.")
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) and text for text in texts):
        raise _usage_error(f"{where} must be a list of texts, not {value!r}.")
    return tuple(texts)


def _mode(value: Any, where: str) -> Mode | None:
    if value is None:
        return None
    try:
        return _mode_named(str(value), where)
    except ValueError as problem:
        raise _usage_error(f"{problem}.") from None


def _tools(value: Any, where: str) -> Tools:
    if value not in ("replay", "live"):
        raise _usage_error(f"{where} must be 'replay' or 'live', not {value!r}.")
    return cast("Tools", value)


_READERS = {
    "cassette": _cassette,
    "mode": _mode,
    "allow_drift": _yes_or_no,
    "ignore": _texts,
    "hosts": _texts,
    "all_hosts": _yes_or_no,
    "allowed_hosts": _texts,
    "tools": _tools,
}
"""Argument → how it is checked."""


def _usage_error(message: str, hint: str | None = None) -> Exception:
    from rewind.errors import UsageError  # lazily: nearly every mark is right

    return UsageError(message, hint=hint)
