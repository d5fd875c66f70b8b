"""A request in the form in which requests that mean the same are the same bytes.

Theory. Two requests should share a recorded answer when a model could not tell them apart, and only then. Too strict,
and a replay misses because a framework drew a new random id. Too loose, and it hides that the agent now asks something
else. So the form keeps everything except what is known, row by row, to carry no meaning:

- how it was written: key order and spacing of JSON, the order of form fields, the boundary of a multipart body, and
  content codings (the meaning is in the decoded bytes);
- rows of the provider's table of volatile fields, and the user's own ``ignore`` paths: removed. An object or list left
  empty by that goes too, so that an ignored field may also be absent;
- linked ids, such as the id of a tool call and of its result: renamed ``id1``, ``id2`` … by first appearance (objects
  walked in key order, lists in theirs). A run that draws other ids has the same form; a result attached to another
  call has not;
- the length of a redacted secret. Placeholders ``REDACTEDxxxx`` are folded, as a dummy key may be longer.

What cannot be read as JSON, for whatever reason, falls back to text or to a hash of its bytes. The fallback must not
depend on how deep the caller's own stack is, hence a fixed limit on nesting instead of waiting for RecursionError.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn
from urllib.parse import parse_qsl

from rewind.dataclass import dataclass
from rewind.match.paths import Item, Key, Parameter, parse_path
from rewind.model.http import HttpRequest, RequestHead
from rewind.providers.api import Volatile
from rewind.wire.encoding import UndecodableBody, decode
from rewind.wire.growing_json import REQUESTS, GrowingFold, GrownList, read_each

_Path = tuple[tuple[Key | Item, ...], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is to be done at one place of a body, and below it: a tree that is walked beside the body."""

    drop: bool
    rename: bool
    keys: dict[str, "Rules"]
    any_key: "Rules | None"
    """For keys that ``keys`` does not name; the named ones include what holds for any."""
    items: dict[int, "Rules"]
    any_item: "Rules | None"


@lru_cache(maxsize=64)
def compiled_rules(volatile: tuple[Volatile, ...], ignore: tuple[str, ...]) -> Rules:
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


_PLACEHOLDER = re.compile(rb"REDACTEDx*")
_BOUNDARY = re.compile(r"""boundary=(?:"([^"]+)"|([^\s;,"]+))""", re.IGNORECASE)
_DEEPEST = 200

_CREDENTIALS = frozenset({"key", "api_key", "api-key", "apikey", "access_token"})
"""Redaction removes these from the query; a request given without redaction must have the same form."""


@dataclass(frozen=True, slots=True)
class Canonical:
    """The canonical form of a body."""

    form: str
    """``none``, ``json``, ``form``, ``multipart``, ``text`` or ``bytes``."""
    value: Any
    """Plain JSON values; for ``bytes`` their hash and size."""


def canonical_body(request: HttpRequest, volatile: Iterable[Volatile], ignore: Sequence[str]) -> Canonical:
    """The canonical form of this request's body. Raises nothing but UsageError, for an ``ignore`` path."""
    rules = compiled_rules(tuple(volatile), tuple(ignore))
    head = request.head
    try:
        body = decode(request.body, head.header("content-encoding"))
    except UndecodableBody:
        return _opaque(request.body)
    if not body:
        return Canonical("none", None)
    words = _WORDS.of(body)
    if words.redacted:
        body = _PLACEHOLDER.sub(b"REDACTED", body)
    media = (head.header("content-type") or "").lower()
    if "json" in media or body.lstrip()[:1] in (b"{", b"["):
        try:
            value = _json(body, words)
        except (ValueError, RecursionError):
            return _text(body)  # damaged, or no JSON at all: compared as written
        left = _reduced(value, rules, {})
        return Canonical("json", type(value)() if left is _GONE else left)
    if media.startswith("application/x-www-form-urlencoded"):
        return _form(body, rules)
    if media.startswith("multipart/"):
        return _multipart(body, head.header("content-type") or "")
    return _text(body)


def without_volatile(
    fields: dict[str, Any], volatile: Iterable[Volatile], ignore: Sequence[str] = ()
) -> dict[str, Any]:
    """Fields of a body, less those of them that change from run to run."""
    left = _reduced(fields, compiled_rules(tuple(volatile), tuple(ignore)), {})
    return {} if left is _GONE else dict(left)


def canonical_query(head: RequestHead, volatile: Iterable[Volatile], ignore: Sequence[str]) -> list[list[str]]:
    """The parameters of the query, sorted, without credentials and volatile ones."""
    if not head.query:
        return []
    paths = [parse_path(row.path) for row in volatile] + [parse_path(text) for text in ignore]
    gone = {path.name for path in paths if isinstance(path, Parameter)}
    folded = _fold(head.query)
    pairs = parse_qsl(folded, keep_blank_values=True, errors="replace")
    return sorted([name, value] for name, value in pairs if name not in gone and name.lower() not in _CREDENTIALS)


def canonical_path(head: RequestHead) -> str:
    """The path as sent, placeholders folded."""
    return _fold(head.path)


def _fold(text: str) -> str:
    return _PLACEHOLDER.sub(b"REDACTED", text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


class _Words(NamedTuple):
    """Words of a body that need a second look."""

    unusual: bool = False
    """Python reads more than JSON: these must be looked for, wherever they stand."""
    redacted: bool = False

    def more(self, body: bytes, start: int, end: int) -> "_Words":
        part = body[max(0, start - len(b"REDACTED")) : end]
        unusual = self.unusual or b"NaN" in part or b"Infinity" in part
        return _Words(unusual, self.redacted or b"REDACTED" in part)


_WORDS = GrowingFold(_Words(), _Words.more)


def _json(body: bytes, words: _Words) -> Any:
    value = json.loads(body, parse_constant=_not_json) if words.unusual else REQUESTS.loads(body)
    within = value.values() if isinstance(value, dict) else [value]
    if any(map(_is_too_deep, within)):
        raise ValueError("nested too deep")
    return value


def _is_too_deep(value: Any) -> bool:
    depth = 1 + max(read_each(_depth, value), default=0) if isinstance(value, list) else _depth(value)
    return depth >= _DEEPEST


def _depth(value: Any) -> int:
    """How many objects and lists stand in each other; counted no further than matters."""
    level = [value] if isinstance(value, dict | list) else []
    for depth in range(_DEEPEST + 1):
        if not level:
            return depth
        level = [child for node in level for child in _children(node) if isinstance(child, dict | list)]
    return _DEEPEST + 1


def _children(node: Any) -> Iterable[Any]:
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_GONE = object()


def _reduced(value: Any, rules: Rules, names: dict[str, str]) -> Any:
    """The value with its volatile parts removed and its linked ids renamed; untouched subtrees are shared."""
    if isinstance(value, dict) and (rules.keys or rules.any_key):
        kept = {key: _child(value[key], rules.keys.get(key, rules.any_key), names) for key in sorted(value)}
        left = {key: child for key, child in kept.items() if child is not _GONE}
        return left if left or not value else _GONE
    if type(value) is GrownList and rules.any_item and not rules.items:
        below = rules.any_item
        made = value.carried(rules, names, lambda item: _child(item, below, names))
        if _GONE not in made:
            return made
        return [child for child in made if child is not _GONE] or _GONE
    if isinstance(value, list) and (rules.items or rules.any_item):
        items = [_child(child, rules.items.get(number, rules.any_item), names) for number, child in enumerate(value)]
        rest = [child for child in items if child is not _GONE]
        return rest if rest or not value else _GONE
    return value


def _child(value: Any, rules: Rules | None, names: dict[str, str]) -> Any:
    if rules is None:
        return value
    if rules.drop:
        return _GONE
    if rules.rename and isinstance(value, str | int) and not isinstance(value, bool):
        return names.setdefault(str(value), f"id{len(names) + 1}")
    return _reduced(value, rules, names)


def _form(body: bytes, rules: Rules) -> Canonical:
    gone = {name for name, rule in rules.keys.items() if rule.drop}
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="replace")
    except ValueError:
        return _text(body)
    return Canonical("form", sorted([name, value] for name, value in pairs if name not in gone))


def _multipart(body: bytes, content_type: str) -> Canonical:
    """The parts in their order, each with its headers and its content; the boundary itself is random."""
    found = _BOUNDARY.search(content_type)
    if found is None:
        return _text(body)
    boundary = (found[1] or found[2]).encode("latin-1", "replace")
    pieces = (b"\r\n" + body).split(b"\r\n--" + boundary)
    if len(pieces) < 2:
        return _text(body)
    parts = []
    for piece in pieces[1:]:
        if piece.startswith(b"--"):
            break
        head, _, content = piece.partition(b"\r\n\r\n")
        lines = [line.strip() for line in head.decode("utf-8", "replace").split("\r\n")]
        parts.append({"headers": sorted(line for line in lines if line), "content": _text(content).value})
    return Canonical("multipart", parts)


def _text(body: bytes) -> Canonical:
    try:
        return Canonical("text", body.decode("utf-8"))
    except UnicodeDecodeError:
        return _opaque(body)


def _opaque(body: bytes) -> Canonical:
    folded = _PLACEHOLDER.sub(b"REDACTED", body)
    return Canonical("bytes", {"sha256": hashlib.sha256(folded).hexdigest(), "size": len(folded)})
