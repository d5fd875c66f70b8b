"""YAML of strangers: plain values only, under limits that hold before anything is built.

The events are looked at first. They come one by one whatever the nesting, so depth, tags and what aliases would
unfold to are known, and refused, before a value exists.
"""

import importlib
from typing import Any

from rewind.errors import BadCassette, EnvironmentProblem

DEEPEST = 200
MOST_VALUES = 500_000
"""With every alias unfolded. PyYAML takes some 400 bytes and ten microseconds for each."""
MOST_REPEATED = 64 * 1024 * 1024
"""Characters that aliases may add to the text."""

_CORE = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(
    _CORE + name
    for name in ("str", "int", "float", "bool", "null", "binary", "map", "seq", "timestamp", "omap", "set")
)
_TEXT_TAGS = (_CORE + "python/str", _CORE + "python/unicode")
_LIST_TAG = _CORE + "python/tuple"
_FILE_TAG = _CORE + "python/object/new:_io.BytesIO"
_HARMLESS_TAGS = frozenset((*_TEXT_TAGS, _LIST_TAG, _FILE_TAG))
"""vcrpy wrote these where a program gave it such values; read as the text, the list and the bytes they hold."""


def read_yaml(data: bytes) -> Any:
    """The one document in it, as plain values. Raises BadCassette, or EnvironmentProblem where PyYAML is missing."""
    yaml = _pyyaml()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadCassette("The file is no YAML: it is not UTF-8 text.") from error
    try:
        _check(yaml, text)
        return yaml.load(text, Loader=_loader(yaml))
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadCassette(f"The file cannot be read as YAML: {_first_line(error)}.") from error


def _pyyaml() -> Any:
    try:
        return importlib.import_module("yaml")
    except ImportError as error:
        raise EnvironmentProblem("Reading YAML needs PyYAML.", hint="pip install pyyaml") from error


def _base(yaml: Any) -> Any:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _check(yaml: Any, text: str) -> None:
    """Raises BadCassette for what must not be built, as soon as it is met."""
    alias, scalar = yaml.AliasEvent, yaml.ScalarEvent
    begin, close = yaml.CollectionStartEvent, yaml.CollectionEndEvent
    most = len(text) + MOST_REPEATED
    values = characters = 0
    opened: list[tuple[str | None, int, int]] = []
    """Of each open collection: its anchor, and how much had been counted where it began."""
    anchors: dict[str, tuple[int, int]] = {}
    for event in yaml.parse(text, Loader=_base(yaml)):
        if isinstance(event, scalar):
            _check_tag(event.tag)
            size = len(event.value)
            if event.anchor:
                anchors[event.anchor] = 1, size
            values += 1
            characters += size
        elif isinstance(event, begin):
            _check_tag(event.tag)
            if len(opened) >= DEEPEST:
                raise BadCassette(f"The file is nested deeper than {DEEPEST} levels.")
            anchors.pop(event.anchor, None)
            opened.append((event.anchor, values, characters))
            values += 1
        elif isinstance(event, close):
            name, before, length = opened.pop()
            if name:
                anchors[name] = values - before, characters - length
        elif isinstance(event, alias):
            if event.anchor not in anchors:
                raise BadCassette("The file holds an alias of something that holds the alias itself.")
            more, longer = anchors[event.anchor]
            values += more
            characters += longer
        if values > MOST_VALUES:
            raise BadCassette(f"The file holds more than {MOST_VALUES:,} values.")
        if characters > most:
            raise BadCassette("The file unfolds to more than can be read: its aliases repeat too much.")


def _check_tag(tag: str | None) -> None:
    if tag is None or tag == "!" or tag in _PLAIN_TAGS or tag in _HARMLESS_TAGS:
        return
    shown = tag.replace(_CORE, "!!")[:80]
    if tag.startswith(_CORE + "python/"):
        raise BadCassette(
            f"The file asks for a Python object ({shown}): a file like that can run code, so it is not read.",
            hint="Record it again with a current vcrpy, or bring it up to date: python -m vcr.migration FILE",
        )
    raise BadCassette(f"The file holds a value of an unknown kind ({shown}).")


def _loader(yaml: Any) -> Any:
    loader: Any = type("PlainValues", (_base(yaml),), {})
    # A date stays the text it is: bodies are JSON, which has no dates.
    loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _CORE + "timestamp"]
        for first, resolvers in loader.yaml_implicit_resolvers.items()
    }
    for tag in _TEXT_TAGS:
        loader.add_constructor(tag, lambda one, node: one.construct_scalar(node))
    loader.add_constructor(_LIST_TAG, lambda one, node: one.construct_sequence(node, deep=True))
    loader.add_constructor(_FILE_TAG, _held_by_a_file)
    return loader


def _held_by_a_file(loader: Any, node: Any) -> bytes | str:
    """A request body that a program had given as an open file."""
    state = loader.construct_mapping(node, deep=True).get("state") or [b""]
    first = state[0] if isinstance(state, list) else b""
    return first if isinstance(first, bytes | str) else b""


def _first_line(error: Exception) -> str:
    """What went wrong and where, without the copy of the text that PyYAML adds."""
    mark = getattr(error, "problem_mark", None)
    words = getattr(error, "problem", None) or str(error).partition("\n")[0] or type(error).__name__
    return f"line {mark.line + 1}: {words}" if mark is not None else str(words)
