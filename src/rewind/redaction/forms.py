"""The ways in which a secret may be written in a body, and what is written in its place.

The placeholder has only letters, so it survives JSON, URLs and base64; it is as long as what it replaces, so
framing and offsets stay; it is the same on every machine, so redacted requests still match in a replay; and it
tells nothing but a length.
"""

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

SHORTEST = 8
"""Shorter values are too likely to stand in a body by chance, and to search for them would change what they mean."""

_WORD = "REDACTED"

PLACEHOLDER = re.compile(f"{_WORD}x+")
"""What surely stands in the place of a secret. The word alone stands for one of eight bytes, or for itself."""


def placeholder(size: int) -> str:
    """What stands in the place of that many bytes; never less than the whole word."""
    return _WORD.ljust(size, "x")


def forms(value: str) -> frozenset[bytes]:
    """Every way of writing this value that is searched for."""
    texts = {value, *_in_json(value), *_in_urls(value)}
    raw = value.encode("utf-8", "surrogateescape")
    written = {text.encode("utf-8", "surrogateescape") for text in texts}
    return frozenset(form for form in (*written, *_in_base64(raw)) if len(form) >= SHORTEST)


def _in_json(value: str) -> Iterator[str]:
    for ascii_only in (True, False):
        text = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        # Serialisers differ: JSON inside JSON, PHP's "\/", Go's "\u003c", and hex digits in capitals.
        yield from (text, json.dumps(text, ensure_ascii=ascii_only)[1:-1], text.replace("/", "\\/"))
        careful = text
        for sign in "<>&'":
            careful = careful.replace(sign, f"\\u{ord(sign):04x}")
        yield from (careful, _capitals(careful), _capitals(text))


def _capitals(text: str) -> str:
    """``\\u00e9`` as ``\\u00E9``."""
    pieces = text.split("\\u")
    return pieces[0] + "".join("\\u" + piece[:4].upper() + piece[4:] for piece in pieces[1:])


def _in_urls(value: str) -> Iterator[str]:
    for text in (
        quote(value, safe="", errors="surrogateescape"),
        quote(value, errors="surrogateescape"),
        quote_plus(value, errors="surrogateescape"),
    ):
        yield text
        pieces = text.split("%")
        yield pieces[0] + "".join("%" + piece[:2].lower() + piece[2:] for piece in pieces[1:])


def _in_base64(raw: bytes) -> Iterator[bytes]:
    """The characters that depend on the value alone, wherever in the encoded text it begins."""
    for shift in range(3):
        first = (8 * shift + 5) // 6
        last = 8 * (shift + len(raw)) // 6
        inner = base64.b64encode(bytes(shift) + raw)[first:last]
        yield inner
        yield inner.translate(bytes.maketrans(b"+/", b"-_"))
