"""Every text of a recording outside its bodies, in one walk: what is searched is also what can be removed.

Every text in the model is visited unless it is named here, so a field that is added later is visited as well.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from rewind.dataclass import dataclass
from rewind.model.http import RequestHead, ResponseHead
from rewind.model.session import Edited, Lineage, Recording, Session, SessionEnd, SessionStart
from rewind.model.step import Reading, StepRequest, StepResponse

IDS = frozenset(
    {
        (SessionStart, "id"),
        (SessionStart, "replay_of"),
        (SessionStart, "part_of"),
        (SessionEnd, "stdin"),
        (SessionEnd, "stdout"),
        (SessionEnd, "stderr"),
        (Lineage, "session"),
        (Lineage, "key"),
        (Edited, "key"),
        (StepRequest, "match_key"),
        (StepRequest, "asked_key"),
        (StepRequest, "sketch"),
        (StepRequest, "body"),
        (StepResponse, "body"),
        (Reading, "said"),
    }
)
"""Ids and digests: they are not texts, and are computed again where what they stand for is changed."""

HANDLED_APART = frozenset(
    {(SessionStart, "command"), (RequestHead, "host"), (RequestHead, "target"), (Session, "folder"), (Session, "file")}
)
"""A command line and a URL are read as a whole; where the session lies on this machine is not taken along."""

WORDS = frozenset(
    {
        (SessionStart, "rewind_version"),
        (SessionStart, "stdin_kind"),
        (StepRequest, "provider"),
        (RequestHead, "method"),
        (RequestHead, "scheme"),
        (ResponseHead, "version"),
    }
)
"""Words that programs choose and programs read: looked through, never changed."""

Value = TypeVar("Value")

_HEADERS = frozenset({"headers", "trailers"})


@dataclass(frozen=True, slots=True)
class TextPlace:
    """Where a text stands."""

    path: str
    """``reading.error``, ``tags.team``; of a header, its name."""
    name: str
    """Of the field, the member or the header that holds it."""
    is_header: bool = False
    is_word: bool = False

    @property
    def repeats_a_body(self) -> bool:
        """Whether it only repeats, in short, what the bodies of its step say."""
        return self.path == "model" or self.path.startswith("reading.")


TextChange = Callable[[str, TextPlace], str]
"""Gives the text that is to stand there."""


def with_texts_changed(value: Value, change: TextChange) -> Value:
    """The value with every text in it changed; the very same where none was."""
    changed_value: Value = _dataclass(value, change, "")
    return changed_value


def with_outline_changed(recording: Recording, change: TextChange) -> Recording:
    """All that belongs to no step: the session, its surroundings, what was damaged."""
    changed_value = with_texts_changed(replace(recording, steps=()), change)
    return replace(changed_value, steps=recording.steps)


def _dataclass(value: Any, change: TextChange, path: str) -> Any:
    changed: dict[str, Any] = {}
    kind = type(value)
    for field in fields(value):
        key = (kind, field.name)
        if key in IDS or key in HANDLED_APART:
            continue
        held = getattr(value, field.name)
        inside = f"{path}.{field.name}" if path else field.name
        if field.name in _HEADERS:
            changed_value = _headers(held, change)
        else:
            changed_value = _any(held, change, TextPlace(inside, field.name, is_word=key in WORDS))
        if changed_value is not held:
            changed[field.name] = changed_value
    return replace(value, **changed) if changed else value


def _any(value: Any, change: TextChange, place: TextPlace) -> Any:
    match value:
        case Enum():
            return value
        case str():
            changed_value = change(value, place)
            return value if changed_value == value or place.is_word else changed_value
        case tuple():
            return _same_or(value, tuple(_any(one, change, place) for one in value))
        case Mapping():
            members = (
                (_any(key, change, place), _any(one, change, TextPlace(f"{place.path}.{key}", str(key))))
                for key, one in value.items()
            )
            return _same_or(value, dict(members))
        case _ if is_dataclass(value):
            return _dataclass(value, change, place.path)
    return value


def _headers(headers: tuple[tuple[str, str], ...], change: TextChange) -> tuple[tuple[str, str], ...]:
    changed_value = tuple(
        (change(name, TextPlace(name, "header's name")), change(value, TextPlace(name, name, is_header=True)))
        for name, value in headers
    )
    return _same_or(headers, changed_value)


def _same_or(before: Value, after: Value) -> Value:
    return before if before == after else after
