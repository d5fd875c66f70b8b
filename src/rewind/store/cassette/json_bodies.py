"""JSON bodies of which each repeats the one before, as values and styles: what was read of one is not read again."""

from itertools import islice
from typing import Any

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
    style_of,
    styled,
    value_of,
    with_more,
    written,
)
from rewind.wire.growing_fold import GrowingFold
from rewind.wire.growing_json import GrowingJson, GrownDocument


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
