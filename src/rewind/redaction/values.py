"""Which values are secrets worth searching for, how they may be written, and what is written in their place.

Every occurrence of a known value is replaced, in requests and in answers, so a value that is not a secret costs more
than a line in a log: a replay would serve an agent other words than it heard. Two rules keep such values out.

``is_searchable`` holds for every value, wherever it comes from:

- at least 8 characters;
- no number, as a placeholder in the place of a JSON number makes the body unreadable;
- no single plain word below 16 letters ("postgres", "production"), and no repeated character;
- not made of the words people write where a key is asked for and none is needed ("not-needed", "sk-dummy-key").

``looks_random`` is asked in addition where the name says little (``*KEY*``, ``*TOKEN*``, a cookie, ``?key=``):
no spaces, no path, no URL, and enough letters mixed with digits that chance or a program must have made it.

Known values are then searched for in every form in which a body may write them (``forms``). What is written in their
place has only letters, so it survives JSON, URLs and base64; it is as long as what it replaces, so framing and offsets
stay; it is the same on every machine, so redacted requests still match in a replay; and it tells nothing but a length.
"""

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

from rewind.credentials import is_dummy

# ── which values are secrets ─────────────────────────────────────────────────────────────────────────────────────

SHORTEST = 8
"""Shorter values are too likely to stand in a body by chance, and to search for them would change what they mean."""
_NUMBER = re.compile(r"[-+0-9.,_:eE]+")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PATH = re.compile(r"(?:~|\.{1,2})?/|[A-Za-z]:\\|~$")
_SEPARATOR = re.compile(r"[^A-Za-z0-9]+")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def is_searchable(value: str) -> bool:
    """Whether this value may be searched for in bodies at all."""
    if len(value) < SHORTEST or len(set(value)) < 4 or _NUMBER.fullmatch(value):
        return False
    if value.isalpha() and value.isascii() and len(value) < 16 and (value[1:].islower() or value.isupper()):
        return False
    return not is_dummy(value)


def looks_random(value: str) -> bool:
    """Whether chance or a program made this value, and not a person who named something."""
    if not is_searchable(value) or any(sign.isspace() for sign in value) or _URL.match(value):
        return False
    parts = _SEPARATOR.split(value)
    if _PATH.match(value) and not any(len(part) >= 16 and _mixed(part) for part in parts):
        return False
    if sum(len(part) for part in parts if _mixed(part)) >= 10:
        return True
    # Twelve letters that change case in the middle again and again, or very many letters, are not a word either.
    return any(
        len(part) >= 12 and part.isalpha() and len(_WORDS.findall(part)) >= len(part) / 3 for part in parts
    ) or any(len(part) > 24 for part in parts)


def _mixed(part: str) -> bool:
    return any(sign.isdigit() for sign in part) and any(sign.isalpha() for sign in part)


def is_location(value: str) -> bool:
    """A path, or a URL: it says where something is. A URL's password is looked at apart."""
    return bool(_URL.match(value)) or (bool(_PATH.match(value)) and not looks_random(value))


# ── how they are written, and what stands in their place ─────────────────────────────────────────────────────────

_WORD = "REDACTED"

PLACEHOLDER = re.compile(f"{_WORD}x+")
"""What surely stands in the place of a secret. The word alone stands for one of eight bytes, or for itself."""


def placeholder(size: int) -> str:
    """What stands in the place of that many bytes; never less than the whole word."""
    return _WORD.ljust(size, "x")


def forms(value: str) -> frozenset[bytes]:
    """Every way of writing this value that is searched for."""
    texts = {value, *_in_json(value), *_in_urls(value), *_in_html(value)}
    raw = value.encode("utf-8", "surrogateescape")
    texts |= {raw.hex(), raw.hex().upper()}
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
        most_careful = careful.replace('\\"', "\\u0022")
        yield from (careful, _capitals(careful), most_careful, _capitals(most_careful), _capitals(text))


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


def _in_html(value: str) -> Iterator[str]:
    """Its characters that mark something up, written out; quotes with or without."""
    text = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    yield text
    for apostrophe in ("&#x27;", "&#39;"):
        yield text.replace('"', "&quot;").replace("'", apostrophe)


def _in_base64(raw: bytes) -> Iterator[bytes]:
    """The characters that depend on the value alone, wherever in the encoded text it begins."""
    for shift in range(3):
        first = (8 * shift + 5) // 6
        last = 8 * (shift + len(raw)) // 6
        inner = base64.b64encode(bytes(shift) + raw)[first:last]
        yield inner
        yield inner.translate(bytes.maketrans(b"+/", b"-_"))
