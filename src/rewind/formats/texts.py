"""Files keep text, the wire had bytes: which charset lay between, what base64 stands for, and JSON under a limit."""

import base64
import codecs
import json
import re
from typing import Any

from rewind.errors import BadCassette
from rewind.wire.json_weight import json_weight

MOST_MEMORY = 384 * 1024 * 1024
"""For the values of a file, besides their text."""

_CHARSET = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9_.:-]+)""", re.IGNORECASE)


def charset_of(media: str, *, latin_by_default: bool = False) -> str:
    """The charset that the reader of a body took.

    mitmproxy reads everything but JSON as latin-1 where nothing else is said; browsers take UTF-8.
    """
    found = _CHARSET.search(media)
    if found:
        try:
            name = codecs.lookup(found[1]).name
        except (LookupError, ValueError):
            return "utf-8"
        return name if name in _KNOWN else "utf-8"
    return "latin-1" if latin_by_default and "json" not in media.lower() else "utf-8"


def in_charset(text: str, charset: str) -> bytes:
    """The bytes that the text was read from."""
    try:
        return text.encode(charset)
    except UnicodeEncodeError:
        pass
    try:
        return text.encode("utf-8", "surrogateescape")  # how mitmproxy writes bytes that are no text
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def read_json(text: str) -> Any:
    """The value. Raises BadCassette where it would take too much memory, which is known before it is read.

    Raises ValueError or RecursionError for what is no JSON.
    """
    if json_weight(text, MOST_MEMORY) > MOST_MEMORY:
        raise BadCassette(
            f"The file holds too many values: they would take more than {MOST_MEMORY // 1024 // 1024} MiB of memory."
        )
    return json.loads(text)


def from_base64(text: str) -> bytes:
    """Line breaks are passed over, nothing else. Raises ValueError."""
    return base64.b64decode("".join(text.split()), validate=True)


_KNOWN = frozenset(
    codecs.lookup(name).name
    for name in (
        *("utf-8", "ascii", "latin-1", "cp1250", "cp1251", "cp1252", "iso8859-2", "iso8859-15", "koi8-r"),
        *("shift_jis", "euc-jp", "iso2022_jp", "gbk", "gb2312", "gb18030", "big5", "euc-kr", "utf-16"),
    )
)
"""Python has codecs that are no charsets, such as those that compress."""
