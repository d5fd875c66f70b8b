"""JSON as text: the style it was written in, so that the value alone is enough to write the same bytes again; and how
a cassette shows text, cut where a change stays on one line, and with nothing in it that hides.
"""

import json
import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from rewind.dataclass import dataclass
from rewind.errors import BadCassette
from rewind.wire.growing_json import GrownList
from rewind.wire.json_weight import JsonSigns

DEEPEST = 100
"""What is nested deeper is shown as text."""
WHITESPACE = " \t\r\n"
_ESCAPABLE = "<>&'=/\x7f\u2028\u2029"
"""Characters that some writers escape without need. None of them stands outside the strings of a JSON text."""
_ESCAPED = re.compile(rb"\\u(0026|0027|003c|003d|003e|007f|2028|2029)")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ODD = re.compile(rb"NaN|Infinity|\0")
_LONGEST_MARK = 8
"""Bytes of the longest text that tells how a text was written."""
_INDENTED = re.compile(r"[\[{]\n( {1,8})(?! )")
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_MOST_AROUND = 1000
WIDTH = 110
"""What is not longer stays on one line."""
MOST_LINES = 2_000_000
"""Of a text whose lines others refer to."""
_LONG = 400
"""A stretch of text without any place to cut it is cut when it is longer than this."""
_SENTENCE = re.compile(r"[.!?] (?=\S)|[。！？]")
_MEMBER = re.compile(r'["}\]], ?(?=["{\[])')
_UNSEEN = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""Control characters that a terminal would obey, marks that turn text around, and halves of pairs: in strings only."""
_WORDS = {True: "true", False: "false", None: "null"}


class OddJson(ValueError):
    """A text that no style writes again, or whose value readers would not agree on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonTextStyle:
    """How a writer of JSON sets commas, spaces and escapes."""

    comma: str = ","
    colon: str = ":"
    indent: int | None = None
    """How many spaces a level is set in; ``None`` for all on one line."""
    ascii: bool = False
    """Whether all that is not ASCII is escaped."""
    escapes: str = ""
    """Characters that are escaped besides."""
    before: str = ""
    after: str = ""


PLAIN = JsonTextStyle()


def style_fields(style: JsonTextStyle) -> dict[str, Any]:
    """Its fields, without those that are plain."""
    return {name: value for name in JsonTextStyle.__slots__ if (value := getattr(style, name)) != getattr(PLAIN, name)}


def style_in(fields: Any) -> JsonTextStyle:
    """The style again, from its fields. Raises BadCassette for a style that no writer has."""
    if not isinstance(fields, dict):
        raise BadCassette("A style is not an object.")
    known = {name: value for name, value in fields.items() if name in JsonTextStyle.__slots__}
    style = JsonTextStyle(**known)
    indent = style.indent
    sound = (
        style.comma in ((",", ", ") if indent is None else (",",))
        and style.colon in (":", ": ")
        and (indent is None or (type(indent) is int and 1 <= indent <= 8))
        and type(style.ascii) is bool
        and _is_made_of(style.escapes, _ESCAPABLE, most=len(_ESCAPABLE))
        and _is_made_of(style.before, WHITESPACE, most=_MOST_AROUND)
        and _is_made_of(style.after, WHITESPACE, most=_MOST_AROUND)
    )
    if not sound:
        raise BadCassette("A style is not one that JSON can have.")
    return style


def _is_made_of(text: Any, letters: str, *, most: int) -> bool:
    return isinstance(text, str) and len(text) <= most and not text.strip(letters)


def written(value: Any, style: JsonTextStyle) -> str:
    """The value as text. Raises ValueError, TypeError or RecursionError if it has none."""
    encode = encoder(style.comma, style.colon, style.indent, style.ascii).encode
    if style.indent is None and type(value) is dict and GrownList in map(type, value.values()):
        text = f"{{{style.comma.join(members_written(value.items(), style))}}}"
    else:
        text = encode(value)
    text = escaped(text, style)
    return style.before + text + style.after if style.before or style.after else text


def members_written(members: Iterable[tuple[str, Any]], style: JsonTextStyle) -> Iterator[str]:
    """Each member as it is written on one line."""
    encode = encoder(style.comma, style.colon, style.indent, style.ascii).encode
    for name, value in members:
        inner = f"[{style.comma.join(value.each(encode))}]" if type(value) is GrownList else encode(value)
        yield f"{encode(name)}{style.colon}{inner}"


def escaped(text: str, style: JsonTextStyle) -> str:
    for letter in style.escapes:
        text = text.replace(letter, "\\/" if letter == "/" else f"\\u{ord(letter):04x}")
    return text


@lru_cache(maxsize=32)
def encoder(comma: str, colon: str, indent: int | None, ascii_only: bool) -> json.JSONEncoder:
    return json.JSONEncoder(
        separators=(comma, colon), indent=indent, ensure_ascii=ascii_only, allow_nan=False, check_circular=False
    )


def size_written(root: Any, style: JsonTextStyle, limit: int) -> int:
    """The size of its text, less than twice too large, without making the text. Stops counting beyond the limit."""
    size, waiting = len(style.before) + len(style.after), [(root, 1)]
    while waiting:
        if size > limit:
            return size
        value, depth = waiting.pop()
        match value:
            case str():
                size += len(_quoted(value, style.ascii)) + 5 * sum(map(value.count, style.escapes))
            case dict() | list():
                set_in = 0 if style.indent is None else 1 + style.indent * depth
                between = len(style.comma) + set_in
                size += 2 + len(value) * between
                if isinstance(value, dict):
                    size += sum(len(_quoted(key, style.ascii)) + len(style.colon) for key in value)
                inside = value.values() if isinstance(value, dict) else value
                waiting.extend((inner, depth + 1) for inner in inside)
            case _:
                size += 1
    return size


def _quoted(text: str, ascii_only: bool) -> bytes:
    return (json.encoder.encode_basestring_ascii if ascii_only else json.encoder.encode_basestring)(text).encode(
        "utf-8", "surrogatepass"
    )


def value_of(text: str) -> Any:
    """The value of a JSON text. Raises OddJson for one that not every reader would read alike."""
    try:
        value = DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise OddJson(str(error)) from error
    check_values(value, DEEPEST)
    if "\\u" in text and _SURROGATE.search(text.encode()) is not None:
        check_pairs(written(value, PLAIN))
    return value


def check_pairs(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise OddJson("half a surrogate pair") from error


def _no_constant(name: str) -> None:
    raise OddJson(f"{name} is not JSON")


DECODER = json.JSONDecoder(parse_constant=_no_constant)
"""Takes what the standard says, and no NaN."""


def check_values(value: Any, room: int) -> None:
    """Neither too deep nor with numbers that not every reader can hold."""
    if room == 0:
        raise OddJson("it is nested too deep")
    for inner in value.values() if type(value) is dict else value if isinstance(value, list) else (value,):
        kind = type(inner)
        if kind is dict or kind is list or (kind is GrownList and not all(inner.each(_is_sound))):
            check_values(inner, room - 1)
        elif kind is int and not _SMALLEST <= inner <= _LARGEST:
            raise OddJson("a number is too large")


def _is_sound(item: Any) -> bool:
    """Whether an item of a list that grows passes the check, as deep as such a list may stand."""
    try:
        check_values([item], DEEPEST - 2)
    except OddJson:
        return False
    return True


class JsonTraits(NamedTuple):
    """What a text holds that tells how it was written, and what its values weigh."""

    is_odd: bool = False
    """With constants that are not JSON: then it is read as a whole."""
    escapes: str = ""
    """Characters that are escaped without need, in order."""
    has_codes: bool = False
    has_pairs: bool = False
    """Surrogates, which should come in pairs."""
    is_ascii: bool = True
    signs: JsonSigns = JsonSigns()

    @property
    def style(self) -> tuple[str, bool]:
        """Texts that are alike in this, and begin alike, are in the same style."""
        return self.escapes, self.has_codes and self.is_ascii


def with_more(traits: JsonTraits, body: bytes, start: int, end: int) -> JsonTraits:
    """With that part of the body looked at, too, and all that ends in it."""
    part = body[max(0, start - _LONGEST_MARK) : end]
    escapes, has_codes, has_pairs = traits.escapes, traits.has_codes, traits.has_pairs
    if b"\\" in part:
        has_codes = has_codes or b"\\u" in part
        has_pairs = has_pairs or (has_codes and _SURROGATE.search(part) is not None)
        more = {chr(int(code, 16)) for code in _ESCAPED.findall(part)} if has_codes else set()
        if b"\\/" in part:
            more.add("/")
        if more.difference(escapes):
            escapes = "".join(sorted(more.union(escapes)))
    return JsonTraits(
        traits.is_odd or _ODD.search(part) is not None,
        escapes,
        has_codes,
        has_pairs,
        traits.is_ascii and part.isascii(),
        traits.signs.more(body, start, end),
    )


def style_of(text: str, value: Any, traits: JsonTraits) -> JsonTextStyle:
    """The style in which the value becomes that text again. Raises OddJson.

    The traits are of all that the text is a part of, which is in one style and tells more of it.
    """
    return styled(text, value, traits)[0]


def styled(text: str, value: Any, traits: JsonTraits) -> tuple[JsonTextStyle, bool]:
    """The same, and whether it was the likeliest."""
    core = text.lstrip(WHITESPACE)
    before = text[: len(text) - len(core)]
    core = core.rstrip(WHITESPACE)
    after = text[len(before) + len(core) :]
    if len(before) > _MOST_AROUND or len(after) > _MOST_AROUND:
        raise OddJson("too much white space")
    for number, style in enumerate(_guesses(core, traits)):
        if written(value, style) == core:
            return replace(style, before=before, after=after), number == 0
    raise OddJson("it is written in a way of its own")


def _guesses(core: str, traits: JsonTraits) -> Iterator[JsonTextStyle]:
    """Styles that may be the one, the likeliest first."""
    escapes = traits.escapes.replace("/", "") + "/" * ("/" in traits.escapes)
    codes = traits.is_ascii and traits.has_codes
    for ascii_only in (True, False) if codes else (False,):
        # In a text that escapes all but ASCII, these two are so escaped anyway.
        extra = escapes.replace("\u2028", "").replace("\u2029", "") if ascii_only else escapes
        base = JsonTextStyle(ascii=ascii_only, escapes=extra)
        if found := _INDENTED.match(core):
            yield replace(base, colon=": ", indent=len(found[1]))
            continue
        spaced = replace(base, comma=", ", colon=": ")
        half = replace(base, colon=": ")
        position = core.find('":')
        if position >= 0 and core[position + 2 : position + 3] == " ":
            yield from (spaced, half, base)
        else:
            yield from (base, spaced) if position >= 0 or "," in core else (base,)


def pieces_of(text: str) -> list[str]:
    """Lines; of long ones the sentences; of what is still long, pieces that fit."""
    pieces: list[str] = []
    for line in lines_of(text):
        if len(line) <= WIDTH:
            pieces.append(line)
            continue
        for sentence in _cut_after(_SENTENCE, line):
            for member in (sentence,) if len(sentence) <= _LONG else _cut_after(_MEMBER, sentence):
                if len(member) <= _LONG:
                    pieces.append(member)
                else:
                    pieces.extend(_wrapped(member))
    return pieces


def _cut_after(end: re.Pattern[str], text: str) -> Iterator[str]:
    start = 0
    for found in end.finditer(text):
        yield text[start : found.end()]
        start = found.end()
    if start < len(text):
        yield text[start:]


def _wrapped(text: str) -> Iterator[str]:
    """Cut after the last space that fits, or else where the line is full."""
    start = 0
    while len(text) - start > WIDTH:
        space = text.rfind(" ", start + WIDTH // 2, start + WIDTH)
        end = space + 1 if space >= 0 else start + WIDTH
        yield text[start:end]
        start = end
    yield text[start:]


def lines_of(text: str, end: str = "\n") -> list[str]:
    """Cut after each ``end``, and nowhere else."""
    lines = [line + end for line in text.split(end)]
    last = lines.pop()[: -len(end)]
    return [*lines, last] if last else lines


def line_begins(text: str) -> "array[int]":
    """Where its lines begin, and where the last one ends."""
    begins = array("I", (0,))
    begins.extend(accumulate(len(line) + 1 for line in text.split("\n")[:-1]))
    if begins[-1] < len(text):
        begins.append(len(text))
    return begins


def visible(text: str) -> str:
    """JSON text in which every character shows: the invisible ones are escaped."""
    if text.isascii() and "\x7f" not in text:
        return text
    try:
        text.encode()
    except UnicodeEncodeError:  # two halves that stand together are one character, to every reader
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def literal(value: Any) -> str:
    """A number, true, false or null as JSON."""
    if value is True or value is False or value is None:
        return _WORDS[value]
    if type(value) is int or type(value) is float:
        return repr(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def filled(numbers: Iterable[str], inner: str) -> Iterator[str]:
    """As many on a line as fit."""
    line: list[str] = []
    size = 0
    for number in numbers:
        size += len(number) + 2
        if size > WIDTH and line:
            yield inner + ", ".join(line) + ","
            line, size = [], len(number) + 2
        line.append(number)
    yield inner + ", ".join(line)
