"""Paths into a request, for tables of volatile fields and for the user's ``ignore`` rules.

Grammar::

    path   =  "?" name                       a parameter of the query
           |  [ "$." ] step *( "." step )    a place in the body
    step   =  ( name | "*" ) *index          a key; * stands for any key
    index  =  "[*]" | "[]"                   every element of a list
           |  "[" digits "]"                 one element, counted from 0
           |  '["' any '"]'                  a key with dots, brackets or stars in it

``messages[*].id`` is the ``id`` of every message, ``metadata.*`` everything inside ``metadata``, ``?page`` the query
parameter ``page``. A path may begin with an index where the body is a list. A path that fits nothing in a body names
nothing there; that is not an error.
"""

import re
from functools import lru_cache

from rewind.dataclass import dataclass
from rewind.errors import UsageError

_INDEX = r"""\[\*?\]|\[[0-9]{1,9}\]|\["[^"]*"\]"""
_STEP = re.compile(rf"""(?P<name>[^.\[\]"?]+)(?P<indexes>(?:{_INDEX})*)|(?P<bare>(?:{_INDEX})+)""")
_EACH_INDEX = re.compile(_INDEX)


@dataclass(frozen=True, slots=True)
class Key:
    """A key of an object; ``None`` is any."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Item:
    """An element of a list; ``None`` is every one."""

    number: int | None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query."""

    name: str


Path = Parameter | tuple[Key | Item, ...]


@lru_cache(maxsize=1024)
def parse_path(text: str) -> Path:
    """The parsed path; raises UsageError where the text does not follow the grammar."""
    given = text.strip()
    if given.startswith("?") and given != "?":
        return Parameter(given[1:])
    rest = given.removeprefix("$").removeprefix(".") if given.startswith("$") else given
    segments: list[Key | Item] = []
    position = 0
    while step := _STEP.match(rest, position):
        if name := step["name"]:
            segments.append(Key(None if name == "*" else name))
        segments += [_index(found) for found in _EACH_INDEX.findall(step["indexes"] or step["bare"] or "")]
        if step.end() == len(rest):
            return tuple(segments)
        if rest[step.end()] != ".":
            break
        position = step.end() + 1
    raise UsageError(
        f"{text!r} is not a path into a request.", hint="Write it like messages[*].id, metadata.request_id or ?page."
    )


def _index(text: str) -> Key | Item:
    inner = text[1:-1]
    if inner.startswith('"'):
        return Key(inner[1:-1])
    return Item(int(inner) if inner.isdigit() else None)


def path_text(segments: tuple[str | int, ...]) -> str:
    """A place in a body in the same grammar: ``("messages", 3, "content")`` is ``messages[3].content``."""
    text = ""
    for segment in segments:
        if isinstance(segment, int):
            text += f"[{segment}]"
        elif re.fullmatch(r"""[^.\[\]"*\s]+""", segment):
            text += f".{segment}" if text else segment
        else:
            shown = segment.replace('"', "'")
            text += f'["{shown}"]'
    return text
