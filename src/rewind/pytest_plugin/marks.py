"""What ``@pytest.mark.rewind(…)`` asks for."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from rewind.errors import UsageError
from rewind.pytest_plugin.options import Mode, mode_named

ENDINGS = (".rw", ".rw.zst")
Tools = Literal["replay", "live"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The arguments of a mark, read; those it does not name are the ones of ``rewind_config``."""

    cassette: str | None = None
    """As written; ``None`` for the path that follows from the test's name."""
    mode: Mode | None = None
    allow_drift: bool = False
    ignore: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    all_hosts: bool = False
    allowed_hosts: tuple[str, ...] = ()
    """Hosts that may be asked themselves, on tape or not."""
    tools: Tools = "replay"
    """Whether functions under ``@rewind.tool`` are played from the tape, too."""


def read_wish(args: Sequence[Any], given: Mapping[str, Any], defaults: Mapping[str, Any]) -> Wish:
    """The wish of the closest mark over the defaults. Raises UsageError."""
    where = "@pytest.mark.rewind"
    if len(args) > 1:
        raise UsageError(f"{where} takes one cassette, not {len(args)}.")
    if args and "cassette" in given:
        raise UsageError(f"{where} names its cassette twice.")
    named = {"cassette": args[0], **given} if args else dict(given)
    _check_names(named, where, _READERS)
    if "cassette" in defaults:
        raise UsageError(
            "rewind_config cannot name a cassette.",
            hint="One for all tests of a module is its mark's matter: "
            'pytestmark = pytest.mark.rewind(cassette="….rw")',
        )
    _check_names(defaults, "rewind_config", [name for name in _READERS if name != "cassette"])
    values: dict[str, Any] = {}
    for source, values_there in (("rewind_config", defaults), (where, named)):
        for name, value in values_there.items():
            values[name] = _READERS[name](value, f"{source}: {name!r}")
    return Wish(**values)


def _check_names(named: Mapping[str, Any], where: str, known: Collection[str]) -> None:
    for name in named:
        if name not in known:
            from difflib import get_close_matches  # lazily: only a typo needs it

            near = get_close_matches(name, known, n=1)
            raise UsageError(
                f"{where} knows no {name!r}.",
                hint=f"Did you mean {near[0]!r}?" if near else f"It takes: {', '.join(known)}.",
            )


def _cassette(value: Any, where: str) -> str | None:
    import os

    if value is None:
        return None
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(path, str) or not path.endswith(ENDINGS) or "\0" in path:
        raise UsageError(f"{where} must be a path that ends in .rw or .rw.zst, not {value!r}.")
    return path


def _yes_or_no(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{where} must be True or False, not {value!r}.")
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, Sequence) or not all(isinstance(one, str) and one for one in texts):
        raise UsageError(f"{where} must be a list of texts, not {value!r}.")
    return tuple(texts)


def _mode(value: Any, where: str) -> Mode | None:
    if value is None:
        return None
    try:
        return mode_named(str(value), where)
    except ValueError as problem:
        raise UsageError(f"{problem}.") from None


def _tools(value: Any, where: str) -> Tools:
    if value not in ("replay", "live"):
        raise UsageError(f"{where} must be 'replay' or 'live', not {value!r}.")
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
"""Argument → how it is read."""
