"""Values that stand in many bodies of a cassette: read, measured and written once.

When a cassette is read, a body refers to what an earlier one has shown, and so has the very same objects: what is
worked out of them goes by their identity. When it is written, a body begins with the bytes of an earlier one.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from operator import is_
from typing import Any, NamedTuple

from rewind.store.cassette.json_text import (
    DEEPEST,
    PLAIN,
    JsonTextStyle,
    JsonTraits,
    OddJson,
    check_pairs,
    check_values,
    encoder,
    escaped,
    members_written,
    size_written,
    style_of,
    styled,
    value_of,
    with_more,
    written,
)
from rewind.wire.growing_json import GrowingFold, GrowingJson, GrownDocument
from rewind.wire.json_weight import JsonSigns

_MOST_TEXTS = 32 * 1024 * 1024
"""Bytes of the texts that are kept."""

_MOST_SUMS = 32

Measure = tuple[int, int]
"""A lower bound of how many bytes a value has when it is written, and how deep it is."""


class SharedMeasures:
    """Measures values that are referred to. They stay, since they may be referred to again."""

    def __init__(self) -> None:
        self._values: dict[int, Measure] = {}
        self._sums: OrderedDict[int, list[Measure]] = OrderedDict()
        """Of the last lists: of so many of its first elements together."""
        self._begins: dict[int, tuple[list[Any], int]] = {}

    def __contains__(self, value: Any) -> bool:
        """Whether it is an object that was referred to."""
        return id(value) in self._values

    def of(self, value: Any) -> Measure:
        kind = type(value)
        if kind is str:
            return len(value), 0
        if kind is not dict and kind is not list:
            return 1, 0
        known = self._values.get(id(value))
        if known is None:
            weight, height = 1 + (sum(map(len, value)) if kind is dict else 0), 0
            for inner in value.values() if kind is dict else value:
                more, higher = self.of(inner)
                weight, height = weight + more, max(height, higher)
            known = self._values[id(value)] = weight, height + 1
        return known

    def begins_with(self, whole: list[Any], target: list[Any], count: int) -> None:
        """A list was made that begins with so many elements of another, which is referred to."""
        self._begins[id(whole)] = target, count

    def of_first(self, target: list[Any], count: int) -> Measure:
        """Of so many of its first elements: what they weigh together, and how deep the deepest is."""
        sums = self._sums.get(id(target))
        if sums is None:
            base, shared = self._begins.get(id(target), (target, 0))
            # It is known by its identity, which may have been that of another list before.
            known = self._sums.get(id(base), []) if all(map(is_, target[:shared], base)) else []
            sums = self._sums[id(target)] = known[: shared + 1] or [(0, 0)]
            if len(self._sums) > _MOST_SUMS:
                self._sums.popitem(last=False)
            weight, height = sums[-1]
            for element in target[len(sums) - 1 :]:
                more, higher = self.of(element)
                weight, height = weight + more, max(height, higher)
                sums.append((weight, height))
        return sums[count]


class SharedTexts:
    """Writes values that have elements of lists in common."""

    def __init__(self, referred: SharedMeasures) -> None:
        """Only elements that were referred to are remembered: they may stand in later values as well."""
        self._referred = referred
        self._texts: dict[JsonTextStyle, dict[int, tuple[Any, bytes]]] = {}
        """By style and identity; with the element, so that it stays the only one of that identity."""
        self._room = _MOST_TEXTS

    def written(self, value: Any, style: JsonTextStyle, most: int | None) -> bytes | None:
        """The value as text; ``None`` for one that has no lists to share.

        Raises as :func:`written` does, and ValueError for a text of more than ``most``, mostly before it is made.
        """
        if style.indent is not None or type(value) is not dict or list not in map(type, value.values()):
            return None
        fresh = _Encoder(style, most)
        known = self._texts.setdefault(replace(style, before="", after=""), {})
        comma, colon = style.comma.encode(), style.colon.encode()
        parts, between = [style.before.encode(), b"{"], b""
        for name, inner in value.items():
            parts += (between, fresh(name), colon)
            between = comma
            if type(inner) is not list:
                parts.append(fresh(inner))
                continue
            # Each text begins with its comma: then all of them are joined at once.
            texts = [
                found[1] if (found := known.get(id(one))) is not None else self._remembered(one, comma, fresh, known)
                for one in inner
            ]
            if most is not None and sum(map(len, texts)) > most:
                raise ValueError("it is larger than it says")
            parts += (b"[", *(text[len(comma) :] for text in texts[:1]), *texts[1:], b"]")
        parts += (b"}", style.after.encode())
        return b"".join(parts)

    def _remembered(
        self, element: Any, comma: bytes, fresh: Callable[[Any], bytes], known: dict[int, tuple[Any, bytes]]
    ) -> bytes:
        text = comma + fresh(element)
        if element in self._referred and len(text) <= self._room:
            self._room -= len(text)
            known[id(element)] = element, text
        return text


class _Encoder:
    """Writes values of at most so many bytes together."""

    def __init__(self, style: JsonTextStyle, most: int | None) -> None:
        self._style = style
        self._encode = encoder(style.comma, style.colon, None, style.ascii).encode
        self._left = most

    def __call__(self, value: Any) -> bytes:
        if self._left is not None:
            self._left -= size_written(value, self._style, self._left)
            if self._left < 0:
                raise ValueError("it is larger than it says")
        return escaped(self._encode(value), self._style).encode()


class BodySums(NamedTuple):
    """What is worked out of every byte of a body."""

    digest: "hashlib._Hash" = hashlib.sha256()
    signs: JsonSigns = JsonSigns()

    def more(self, body: bytes, start: int, end: int) -> "BodySums":
        digest = self.digest.copy()
        digest.update(memoryview(body)[start:end])
        return BodySums(digest, self.signs.more(body, start, end))


# ── written ──────────────────────────────────────────────────────────────────────────────────────────────────


class JsonBodies:
    """Reads JSON bodies of which each repeats the one before: items that an earlier body had are the same objects."""

    def __init__(self) -> None:
        self._growing = GrowingJson()
        self._fold = GrowingFold(JsonTraits(), with_more)

    def traits(self, body: bytes) -> JsonTraits:
        return self._fold.of(body)

    def read(self, body: bytes) -> tuple[Any, JsonTextStyle]:
        """The value, and the style in which it becomes the body again. Raises OddJson or UnicodeDecodeError."""
        traits = self.traits(body)
        if traits.is_odd:
            text = body.decode()
            value = value_of(text)
            return value, style_of(text, value, traits)
        try:
            grown = self._growing.read(body)
        except (ValueError, RecursionError) as error:
            raise OddJson(str(error)) from error
        check_values(grown.document, DEEPEST)
        return grown.document, _known_style(body, grown, traits) or _noted_style(body, grown, traits)


_STYLE = "style"


def _known_style(body: bytes, grown: GrownDocument, traits: JsonTraits) -> JsonTextStyle | None:
    """The style of the body that it goes on from, if what follows is written so as well."""
    known: tuple[JsonTextStyle, Any] | None = grown.before.get(_STYLE)
    mark = grown.mark
    if mark is None or known is None or known[1] != traits.style:
        return None
    style = known[0]
    if traits.has_pairs:
        check_pairs(_behind(grown.document, mark.path, mark.items, PLAIN))
    rest = escaped(_behind(grown.document, mark.path, mark.items, style), style) + style.after
    if body[mark.end :] != rest.encode("utf-8", "surrogatepass"):
        return None
    if grown.notes is not None:
        grown.notes[_STYLE] = known
    return style


def _noted_style(body: bytes, grown: GrownDocument, traits: JsonTraits) -> JsonTextStyle:
    """The style, noted for bodies that go on from this one if it was the first that came to mind."""
    text = body.decode()
    if traits.has_pairs:
        check_pairs(written(grown.document, PLAIN))
    style, is_likeliest = styled(text, grown.document, traits)
    if grown.notes is not None and is_likeliest and style.indent is None:
        grown.notes[_STYLE] = style, traits.style
    return style


def _behind(value: dict[str, Any], path: tuple[str, ...], items: int, style: JsonTextStyle) -> str:
    """What is written of it behind so many items of the list at that path."""
    name, *deeper = path
    inner = value[name]
    if deeper:
        text = _behind(inner, tuple(deeper), items, style)
    else:
        encode = encoder(style.comma, style.colon, style.indent, style.ascii).encode
        text = "".join(style.comma + encode(item) for item in inner[items:]) + "]"
    later = islice(value.items(), list(value).index(name) + 1, None)
    return "".join((text, *(style.comma + member for member in members_written(later, style)), "}"))
