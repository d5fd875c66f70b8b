"""Every text of the model is met: what is looked through for secrets is also what can be taken out."""

import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from rewind.model.session import Recording, Session
from rewind.model.step import Step
from rewind.redaction.recording_texts import (
    HANDLED_APART,
    IDS,
    WORDS,
    TextPlace,
    with_outline_changed,
    with_texts_changed,
)


def made(kind: Any, path: str, texts: dict[str, str]) -> Any:
    """A value of that type in which every text is another one, told in ``texts`` by where it stands."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is str:
        return texts.setdefault(path, f"text {len(texts)}")
    if isinstance(kind, typing.NewType):
        return f"name of {path}"
    if origin in (types.UnionType, typing.Union):
        return made(next(one for one in inner if one is not types.NoneType), path, texts)
    if origin is tuple:
        if inner[-1] is Ellipsis:
            return (made(inner[0], f"{path}[]", texts),)
        return tuple(made(one, f"{path}[{number}]", texts) for number, one in enumerate(inner))
    if origin in (dict, Mapping):
        key = made(inner[0], f"{path}{{}}", texts)
        return {key: made(inner[1], f"{path}{{}}.value", texts)}
    if is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        build: Any = kind
        return build(**{one.name: made(hints[one.name], f"{path}.{one.name}", texts) for one in fields(kind)})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    return kind()


def dataclasses_of(value: Any) -> Iterator[Any]:
    if is_dataclass(value):
        yield value
        for one in fields(value):
            yield from dataclasses_of(getattr(value, one.name))
    elif isinstance(value, tuple):
        for one in value:
            yield from dataclasses_of(one)


def passed_over(value: Any) -> set[str]:
    """The texts in the fields that are named as exceptions."""
    kept: set[str] = set()
    for one in dataclasses_of(value):
        for kind, name in IDS | HANDLED_APART | WORDS:
            if isinstance(one, kind):
                held = getattr(one, name)
                kept |= {held} if isinstance(held, str) else set(held or ())
    return kept


def test_every_text_of_a_recording_is_met_but_for_those_that_are_named() -> None:
    texts: dict[str, str] = {}
    recording: Recording = made(Recording, "", texts)
    met: set[str] = set()

    def hear(text: str, _place: TextPlace) -> str:
        met.add(text)
        return text

    assert with_outline_changed(recording, hear) == recording
    for step in recording.steps:
        assert with_texts_changed(step, hear) is step
    words = {getattr(one, name) for one in dataclasses_of(recording) for kind, name in WORDS if isinstance(one, kind)}
    assert words <= met, "what is never changed is looked through all the same"
    missed = {path for path, text in texts.items() if text not in met} - {
        path for path, text in texts.items() if text in passed_over(recording)
    }
    assert missed == set()
    assert len(met) > 40


def test_every_text_that_is_met_can_be_changed() -> None:
    recording: Recording = made(Recording, "", {})
    left: set[str] = set()

    def change(text: str, _place: TextPlace) -> str:
        return text.upper()

    def look(text: str, place: TextPlace) -> str:
        if not place.is_word and text != text.upper():
            left.add(place.path)
        return text

    with_outline_changed(with_outline_changed(recording, change), look)
    for step in recording.steps:
        with_texts_changed(with_texts_changed(step, change), look)
    assert left == set()


def test_the_exceptions_are_fields_that_there_are() -> None:
    for kind, name in IDS | HANDLED_APART | WORDS:
        assert name in {one.name for one in fields(kind)}, (kind, name)
    assert {kind for kind, _ in HANDLED_APART} >= {Session}
    assert is_dataclass(Step)
