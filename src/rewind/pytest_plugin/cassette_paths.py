"""Where a test's cassette lies, which cassette belongs to which test, and which to none.

Names are the same on every machine, and under every order of parameters.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum, StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from rewind.dataclass import dataclass
from rewind.pytest_plugin.marks import ENDINGS, MarkOptions, read_mark
from rewind.pytest_plugin.modes import BadOption, Mode

_FOLDER = "cassettes"
_LONGEST = 100
"""Characters of a file's name without its ending. File systems take 255 bytes, encrypted ones fewer."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_.=+~-]+")
_TEXT = "~"
"""Stands before a text that looks like a number, so that ``"1"`` is not ``1``."""
_LOOKS_LIKE_ANOTHER_TYPE = re.compile(r"[-+]?[0-9].*|True|False|None")
_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+|\b0x[0-9a-fA-F]{9,}|\bid='[0-9]+'>")
"""Where an object lies in memory, as ``object``, other classes and mocks tell it: different in every process."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCassette:
    """One test, its cassette, and what is to be done with it."""

    __test__ = False  # a name that pytest would otherwise collect where it is imported

    test: str
    """Its node id: the same wherever pytest is started."""
    address: str
    """As it is typed where pytest was started."""
    path: Path
    shown: str
    """The path as it is shown to people."""
    default: Path
    """The path that follows from the test's name, whatever its mark says."""
    options: MarkOptions
    action: CassetteAction
    missing: str
    """What to say where there is no cassette, and none may be made."""
    given: tuple[str, ...]
    """The test's parameters: they are input, whatever they look like."""
    shared: bool
    """Whether other tests of this run use the cassette, too."""

    @property
    def may_have_other_users(self) -> bool:
        """Whether tests that are not run now may need it: a path in a mark may stand in many."""
        return self.shared or self.options.cassette is not None


def path_for(item: pytest.Item, options: MarkOptions) -> Path:
    """The path that the mark names, relative to the root; else the one that follows from the test's name."""
    if options.cassette is not None:
        return item.config.rootpath / options.cassette
    callspec: Any = getattr(item, "callspec", None)
    return default_path(
        item.path,
        classes=[node.name for node in item.listchain() if isinstance(node, pytest.Class)],
        test=getattr(item, "originalname", None) or item.name,
        params=None if callspec is None else callspec.params,
        indices=None if callspec is None else callspec.indices,
        id="" if callspec is None else callspec.id,
    )


def parameters_of(item: pytest.Item) -> tuple[str, ...]:
    """What the test was given, as texts."""
    callspec: Any = getattr(item, "callspec", None)
    return () if callspec is None else tuple(f"{value} {value!r}" for value in callspec.params.values())


def cassette_of(item: pytest.Item, mark: pytest.Mark) -> Path | None:
    """For a marked test; ``None`` where the mark makes no sense, which the test will say when it is run."""
    try:
        return path_for(item, read_mark(mark.args, mark.kwargs))
    except BadOption:
        return None


def orphans(used: Iterable[str]) -> list[Path]:
    """Cassettes in the same ``cassettes`` folders that no test uses."""
    paths = set(map(Path, used))
    folders = {parent for path in paths for parent in path.parents if parent.name == _FOLDER}
    files = {file for folder in folders for ending in ENDINGS for file in folder.rglob("*" + ending)}
    return sorted(files - paths)


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────


def default_path(
    file: Path,
    *,
    classes: Sequence[str] = (),
    test: str,
    params: Mapping[str, Any] | None = None,
    indices: Mapping[str, int] | None = None,
    id: str = "",  # noqa: A002  pytest's own word
) -> Path:
    """``cassettes/{module}/{Class.}{test}--{name=value}--….rw`` beside the test's file.

    ``indices`` and ``id`` are pytest's, for values that have no text of their own.
    """
    name = ".".join((*classes, test))
    words = [
        f"{key}={_value(value, (indices or {}).get(key, 0), id if len(params or ()) == 1 else '')}"
        for key, value in sorted((params or {}).items())
    ]
    return file.parent / _FOLDER / safe_name(file.stem) / (safe_name("--".join((name, *words))) + ".rw")


def safe_name(text: str) -> str:
    """A file name that says the text; where it cannot say all of it, with a digest of the whole."""
    safe = _UNSAFE.sub("_", text).lstrip(".-")
    if safe == text and 0 < len(safe) <= _LONGEST:
        return safe
    return f"{safe[: _LONGEST - 9].rstrip('.-_')}-{_digest(text)}".lstrip("-")


def _value(value: Any, index: int, id: str) -> str:  # noqa: A002
    """The value in words; with a digest where other values have the same words."""
    match value:
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case bool() | int() | float() | None:
            return repr(value)
        case str():
            safe = _UNSAFE.sub("_", value).replace(_TEXT, "_")
            if safe == value and value:
                return _TEXT + value if _LOOKS_LIKE_ANOTHER_TYPE.fullmatch(value) else value
            return f"{safe[:40].strip('_')}-{_digest(value)}"
    if id:
        return id
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        # "<lambda>" and "f.<locals>.g" are the names of many.
        return f"item{index}" if "<" in name else name
    try:
        text = _text(value)
    except RecursionError:  # it holds itself
        return f"item{index}"
    if _ADDRESS.search(text):
        return f"item{index}"
    return f"{type(value).__name__}-{_digest(text)}"


def _text(value: Any) -> str:
    """As ``repr`` writes it, but sets in sorted order: theirs is another one in every process."""
    kind = type(value)
    if kind is list and value:
        return f"[{', '.join(map(_text, value))}]"
    if kind is tuple and value:
        return f"({', '.join(map(_text, value))}{',' if len(value) == 1 else ''})"
    if kind is dict and value:
        return f"{{{', '.join(f'{_text(key)}: {_text(held)}' for key, held in value.items())}}}"
    if kind in (set, frozenset) and value:
        inside = f"{{{', '.join(sorted(map(_text, value)))}}}"
        return inside if kind is set else f"frozenset({inside})"
    text = repr(value)
    if is_dataclass(value) and not isinstance(value, type):
        held = {field.name: getattr(value, field.name, None) for field in fields(value) if field.repr}
        # Unless the class has a ``__repr__`` of its own.
        if text == f"{kind.__qualname__}({', '.join(f'{name}={part!r}' for name, part in held.items())})":
            return f"{kind.__qualname__}({', '.join(f'{name}={_text(part)}' for name, part in held.items())})"
    return text


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
