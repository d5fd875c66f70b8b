"""YAML of strangers as plain values, in one pass, under limits that hold before anything is built.

The parser's events come one by one whatever the nesting, so depth, tags and what aliases would unfold to are known,
and refused, before a value exists. Nothing that a tag names is ever imported or called: of a Python or Ruby object
only the text, bytes, list or table that it holds is read, and only where its name says that it is one of these.
"""

import importlib
import importlib.util
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import field
from typing import Any

from rewind.dataclass import dataclass
from rewind.errors import BadCassette, EnvironmentProblem

DEEPEST = 200
MOST_VALUES = 500_000
"""With every alias unfolded. Each takes some 100 bytes and five microseconds."""
MOST_REPEATED = 64 * 1024 * 1024
"""Characters that aliases may add to the text."""

_CORE = "tag:yaml.org,2002:"
_RESOLVED = frozenset(_CORE + name for name in ("int", "float", "bool", "null"))
"""What a plain word may mean besides text. A date stays the text it is: bodies are JSON, which has no dates."""
_BINARY = frozenset((_CORE + "binary", "!binary", _CORE + "python/bytes"))  # Ruby writes one sign, Python two
_MERGE = _CORE + "merge"
_PLAIN = frozenset(
    (
        *("!", "!str", "!float", *_BINARY, *_RESOLVED),
        *(_CORE + name for name in ("str", "map", "seq", "timestamp", "omap", "set")),
        *(_CORE + "python/" + name for name in ("str", "unicode", "list", "tuple", "dict")),
        *(_CORE + "python/" + name for name in ("int", "long", "float", "bool", "none")),
    )
)
_PYTHON_OBJECT = re.compile(re.escape(_CORE) + r"python/object(?:/new|/apply)?:([\w.]{1,200})")
_PYTHON_NAMES: dict[str, str] = {
    "python/int": "int",
    "python/long": "int",
    "python/float": "float",
    "python/bool": "bool",
    "python/none": "null",
}
_TEXT_CLASS = re.compile(r"(?:.*\.)?\w*(?:str|Str|String|Text|unicode|bytes|Bytes|bytearray|Markup)")
"""Subclasses of ``str`` and ``bytes``, such as ``multidict._multidict.istr``, the names of aiohttp's headers."""
_FILE_CLASS = re.compile(r"_?io\.(?:BytesIO|StringIO)")
_LIST_CLASS = re.compile(r"(?:builtins|__builtin__)\.(?:list|tuple|set|frozenset)")
_TABLE_CLASS = re.compile(r"(?:builtins|__builtin__)\.dict|collections\.OrderedDict|multidict\.[\w.]*Dict(?:Proxy)?")
_STATUS_CLASS = re.compile(r"http\.HTTP(?:Status|Method)")
_READ_CLASSES = (_TEXT_CLASS, _FILE_CLASS, _LIST_CLASS, _TABLE_CLASS, _STATUS_CLASS)
_RUBY_VALUE = re.compile(r"!(?:ruby/)?(?:str|string|sym|symbol|hash|array|map|seq|struct:VCR:)(?:[:-][\w:-]{0,200})?")
"""Ruby's symbols, the subclasses of its texts and tables, and the structs of VCR before version 2."""


def read_yaml(data: bytes) -> Any:
    """The one document in it. Raises BadCassette, or EnvironmentProblem where PyYAML is missing."""
    yaml = _pyyaml()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadCassette("It is not YAML: it is not UTF-8 text.") from error
    try:
        return _Document(yaml, text).read()
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadCassette(f"It cannot be read as YAML: {_first_line(error)}.") from error


def _pyyaml() -> Any:
    try:
        return importlib.import_module("yaml")
    except ImportError as error:
        python = shlex.quote(sys.executable)
        with_pip = importlib.util.find_spec("pip") is not None
        install = f"{python} -m pip install pyyaml" if with_pip else f"uv pip install --python {python} pyyaml"
        raise EnvironmentProblem("Reading YAML needs PyYAML.", hint=install) from error


def _base_loader(yaml: Any) -> Any:
    """The parser in C, seven times as fast, where PyYAML was built with it."""
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come."""

    tag: str | None
    anchor: str | None
    is_table: bool
    values: int
    """How many had been counted where it began."""
    characters: int
    items: list[Any] = field(default_factory=list)
    """Of a table: key, value, key, value …"""


class _Merge:
    """The key ``<<``: the tables that follow are part of this one."""


class _Document:
    """The document while its events go by."""

    def __init__(self, yaml: Any, text: str) -> None:
        self._yaml = yaml
        self._text = text
        self._scalars = yaml.SafeLoader("")
        self._known: dict[str, Any] = {}
        """Plain words that were resolved before."""
        self._values = 0
        self._characters = 0
        self._opened: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int, int]] = {}
        """By name: the value, how many values it unfolds to, and how many characters."""
        self._root: Any = None
        self._documents = 0

    def read(self) -> Any:
        yaml = self._yaml
        take: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.SequenceStartEvent: self._begin,
            yaml.MappingStartEvent: self._begin,
            yaml.SequenceEndEvent: self._end,
            yaml.MappingEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }
        most = len(self._text) + MOST_REPEATED
        for event in yaml.parse(self._text, Loader=_base_loader(yaml)):
            if (taken := take.get(type(event))) is None:
                continue
            taken(event)
            if self._values > MOST_VALUES:
                raise BadCassette(f"It holds more than {MOST_VALUES:,} values.")
            if self._characters > most:
                raise BadCassette("It unfolds to more than can be read: its aliases repeat too much.")
        return self._root

    def _document(self, _event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            raise BadCassette("It holds more than one YAML document.")

    def _scalar(self, event: Any) -> None:
        self._values += 1
        self._characters += len(event.value)
        self._add(self._scalar_value(event), event.anchor, 1, len(event.value))

    def _scalar_value(self, event: Any) -> Any:
        tag, value = event.tag, event.value
        if tag is None:
            if not event.implicit[0]:
                return value  # in quotes
            if (known := self._known.get(value, self)) is not self:
                return known
            tag = self._scalars.resolve(self._yaml.ScalarNode, value, event.implicit)
            found = _Merge if tag == _MERGE else self._resolved(tag, value)
            if len(value) <= 80:
                self._known[value] = found
            return found
        _check_tag(tag)
        return self._resolved(tag, value)

    def _resolved(self, tag: str, value: str) -> Any:
        if tag in _BINARY:
            tag = _CORE + "binary"
        elif (name := _PYTHON_NAMES.get(tag.removeprefix(_CORE))) is not None:
            tag = _CORE + name
        elif tag not in _RESOLVED:
            return value
        node = self._yaml.ScalarNode(tag, value)
        return self._scalars.yaml_constructors[tag](self._scalars, node)

    def _begin(self, event: Any) -> None:
        if event.tag is not None:
            _check_tag(event.tag)
        if len(self._opened) >= DEEPEST:
            raise BadCassette(f"It is nested deeper than {DEEPEST} levels.")
        self._anchors.pop(event.anchor, None)
        table = isinstance(event, self._yaml.MappingStartEvent)
        self._opened.append(_Open(event.tag, event.anchor, table, self._values, self._characters))
        self._values += 1

    def _end(self, _event: Any) -> None:
        closed = self._opened.pop()
        value: Any = _table(closed.items) if closed.is_table else closed.items
        if closed.tag is not None:
            value = _unwrapped(closed.tag, value)
        self._add(value, closed.anchor, self._values - closed.values, self._characters - closed.characters)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            inside = any(one.anchor == event.anchor for one in self._opened)
            held = "something that holds the alias itself" if inside else "something that is not there"
            raise BadCassette(f"It holds an alias of {held}.")
        value, values, characters = self._anchors[event.anchor]
        self._values += values
        self._characters += characters
        self._add(value, None, values, characters)

    def _add(self, value: Any, anchor: str | None, values: int, characters: int) -> None:
        if anchor:
            self._anchors[anchor] = value, values, characters
        if self._opened:
            self._opened[-1].items.append(value)
        else:
            self._root = value


def _table(items: list[Any]) -> dict[Any, Any]:
    """Raises TypeError for a key that is a list or a table."""
    table = dict(zip(items[::2], items[1::2], strict=True))
    if _Merge not in table:
        return table
    merged = table.pop(_Merge)
    for part in merged if isinstance(merged, list) else [merged]:
        if not isinstance(part, dict):
            raise TypeError("only tables can be merged into a table")
        table = {**part, **table}
    return table


# ── tags ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_tag(tag: str) -> None:
    """Raises BadCassette for what must not be built."""
    if tag in _PLAIN or _RUBY_VALUE.fullmatch(tag):
        return
    if (named := _PYTHON_OBJECT.fullmatch(tag)) and any(known.fullmatch(named[1]) for known in _READ_CLASSES):
        return
    raise _refused(tag)


def _refused(tag: str) -> BadCassette:
    shown = tag.replace(_CORE, "!!")[:80]
    if tag.startswith(_CORE + "python/"):
        return BadCassette(
            f"It asks for a Python object ({shown}): such a file can run code, so it is not read.",
            hint="Delete the file, and record it again with the program that wrote it.",
        )
    return BadCassette(f"It holds a value of an unknown kind ({shown}).")


def _unwrapped(tag: str, value: Any) -> Any:
    """What a collection with a tag stands for."""
    if (named := _PYTHON_OBJECT.fullmatch(tag)) is not None:
        return _held(tag, named[1], value)
    match tag.removeprefix(_CORE), value:
        case "set", dict():
            return set(value)
        case name, {"elements": dict(elements)} if name.startswith("!ruby/hash-with-ivars"):
            return elements
        case name, {"internal": list(internal)} if name.startswith("!ruby/array"):
            return internal
        case _:
            return value


def _held(tag: str, name: str, value: Any) -> Any:
    """What a Python object holds, by the arguments or the state that PyYAML wrote."""
    match value.get("args", value) if isinstance(value, dict) else value:
        case [str() | bytes() as text] if _TEXT_CLASS.fullmatch(name):
            return text
        case [str(text), "latin-1"] if _TEXT_CLASS.fullmatch(name):
            return text.encode("latin-1")
        case {"state": [str() | bytes() as content, *_]} if _FILE_CLASS.fullmatch(name):
            return content
        case {"state": None} | {} if _FILE_CLASS.fullmatch(name):
            return b""
        case [list(items)] if _LIST_CLASS.fullmatch(name):
            return items
        case [] if _LIST_CLASS.fullmatch(name):
            return []
        case [dict(table)] if _TABLE_CLASS.fullmatch(name):
            return table
        case [list(pairs)] if _TABLE_CLASS.fullmatch(name) and all(isinstance(one, list) for one in pairs):
            table = {}
            for key, one in (pair for pair in pairs if len(pair) == 2):
                table.setdefault(key, []).append(one)
            return {key: found[0] if len(found) == 1 else found for key, found in table.items()}
        case [] if _TABLE_CLASS.fullmatch(name):
            return {}
        case [int() | str() as status] if _STATUS_CLASS.fullmatch(name):
            return status
        case _:
            raise _refused(tag)


def _first_line(error: Exception) -> str:
    """What went wrong and where, without the copy of the text that PyYAML adds."""
    mark = getattr(error, "problem_mark", None)
    words = getattr(error, "problem", None) or str(error).partition("\n")[0] or type(error).__name__
    return f"line {mark.line + 1}: {words}" if mark is not None else str(words)
