"""Paths compiled into a tree that is walked beside a body, so that each field is looked up once."""

from dataclasses import dataclass
from functools import lru_cache

from rewind.match.paths import Item, Key, parse_path
from rewind.providers.api import Volatile

_Path = tuple[tuple[Key | Item, ...], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is to be done at one place of a body, and below it."""

    drop: bool
    rename: bool
    keys: dict[str, "Rules"]
    any_key: "Rules | None"
    """For keys that ``keys`` does not name; the named ones include what holds for any."""
    items: dict[int, "Rules"]
    any_item: "Rules | None"


@lru_cache(maxsize=64)
def compiled(volatile: tuple[Volatile, ...], ignore: tuple[str, ...]) -> Rules:
    """The rules of a provider's table and a user's paths; what concerns the query is left out."""
    rows = [(parse_path(row.path), row.linked) for row in volatile]
    rows += [(parse_path(text), False) for text in ignore]
    return _tree([(path, linked) for path, linked in rows if isinstance(path, tuple)])


def _tree(paths: list[_Path]) -> Rules:
    ending = [linked for segments, linked in paths if not segments]
    going_on = [(segments, linked) for segments, linked in paths if segments]
    heads = [segments[0] for segments, _ in going_on]
    names = {head.name for head in heads if isinstance(head, Key) and head.name is not None}
    numbers = {head.number for head in heads if isinstance(head, Item) and head.number is not None}
    return Rules(
        drop=not all(ending),
        rename=bool(ending),
        keys={name: _tree(_below(going_on, Key(name), Key(None))) for name in names},
        any_key=_tree(_below(going_on, Key(None))) if Key(None) in heads else None,
        items={number: _tree(_below(going_on, Item(number), Item(None))) for number in numbers},
        any_item=_tree(_below(going_on, Item(None))) if Item(None) in heads else None,
    )


def _below(paths: list[_Path], *heads: Key | Item) -> list[_Path]:
    return [(segments[1:], linked) for segments, linked in paths if segments[0] in heads]
