"""The arguments of ``@pytest.mark.rewind``."""

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, cast

from rewind.dataclass import dataclass
from rewind.model.names import MATCH_MODES, MatchMode
from rewind.pytest_plugin.modes import BadOption, Mode, mode_named
from rewind.settings import is_pattern

ENDINGS = (".rw", ".rw.zst")
Tools = Literal["replay", "live"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkOptions:
    """The arguments of a mark, checked; those it does not name are the ones of ``rewind_config``."""

    cassette: str | None = None
    """As written; ``None`` for the path that follows from the test's name."""
    mode: Mode | None = None
    allow_drift: bool = False
    ignore: tuple[str, ...] = ()
    match: MatchMode | None = None
    """How far names may differ; not given: as in the settings, else ``fields``."""
    ignore_text: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    all_hosts: bool = False
    allowed_hosts: tuple[str, ...] = ()
    """Hosts that may be reached live, on the cassette or not."""
    tools: Tools = "replay"
    """Whether functions under ``@rewind.tool`` are answered by the cassette, too."""


def read_mark(args: Sequence[Any], kwargs: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> MarkOptions:
    """The arguments of the closest mark over the defaults. Raises BadOption."""
    where, defaults = "@pytest.mark.rewind", defaults or {}
    if len(args) > 1:
        raise BadOption(f"{where} takes one cassette, not {len(args)}.")
    if args and "cassette" in kwargs:
        raise BadOption(f"{where} names its cassette twice.")
    named = {"cassette": args[0], **kwargs} if args else dict(kwargs)
    _check_names(named, where, _READERS)
    if "cassette" in defaults:
        raise BadOption(
            "rewind_config cannot name a cassette.",
            hint='To share one among the tests of a module: pytestmark = pytest.mark.rewind(cassette="….rw")',
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
            raise BadOption(
                f"{where} has no argument {name!r}.",
                hint=f"Did you mean {near[0]!r}?" if near else f"It takes: {', '.join(known)}.",
            )


def _cassette(value: Any, where: str) -> str | None:
    if value is None:
        return None
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(path, str) or not path.endswith(ENDINGS) or "\0" in path:
        raise BadOption(f"{where} must be a path that ends in .rw or .rw.zst, not {value!r}.")
    return path


def _yes_or_no(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise BadOption(f"{where} must be True or False, not {value!r}.")
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) and text for text in texts):
        raise BadOption(f"{where} must be a list of strings, not {value!r}.")
    return tuple(texts)


def _match(value: Any, where: str) -> MatchMode:
    if value not in MATCH_MODES:
        raise BadOption(f"{where} must be one of {', '.join(MATCH_MODES)}, not {value!r}.")
    return cast("MatchMode", value)


def _patterns(value: Any, where: str) -> tuple[str, ...]:
    patterns = _texts(value, where)
    for pattern in patterns:
        if not is_pattern(pattern):
            raise BadOption(f"{where}: {pattern!r} is not a valid regular expression, or it matches the empty text.")
    return patterns


def _mode(value: Any, where: str) -> Mode | None:
    if value is None:
        return None
    return mode_named(str(value), where)


def _tools(value: Any, where: str) -> Tools:
    if value not in ("replay", "live"):
        raise BadOption(f"{where} must be 'replay' or 'live', not {value!r}.")
    return cast("Tools", value)


_READERS = {
    "cassette": _cassette,
    "mode": _mode,
    "allow_drift": _yes_or_no,
    "ignore": _texts,
    "match": _match,
    "ignore_text": _patterns,
    "hosts": _texts,
    "all_hosts": _yes_or_no,
    "allowed_hosts": _texts,
    "tools": _tools,
}
"""Argument → how it is checked."""
