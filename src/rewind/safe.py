"""Text from models, files and servers, made harmless before it is printed.

A terminal obeys what it prints: escape sequences retitle it, write to the clipboard or hide lines, direction marks
show other words than those that are there, and invisible characters carry text nobody sees. All of these are shown as
the escapes a programmer would write. Nothing is removed, so what is seen is what is there.
"""

import math
import re
import unicodedata
from functools import lru_cache
from typing import Any

_HARMFUL = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but newline and tab, DEL, C1: escape sequences, carriage return, bell
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # soft hyphen, joiner and fillers: nothing to see
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"  # zero width, line separators, direction marks
    "\u180b-\u180f\ufe00-\ufe0d"  # variation selectors, less the two that choose text or emoji
    "\ufff9-\ufffb\ufffe\uffff"  # interlinear annotation, and no characters at all
    "\ud800-\udfff"  # lone surrogates cannot be written
    "\U0001d173-\U0001d17a"  # invisible musical formatting
    "\U000e0000-\U000e0fff"  # tag characters and more variation selectors: hidden text
    "]"
)
_DEEPEST_LEVEL = 60
"""Levels of a recorded value that are shown; what lies deeper is told by an ellipsis."""
_BREAK = re.compile(r"[ \t]*\n\s*")
_ONE_CELL_EACH = re.compile("[ -\\[\\]-~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u2190-\u2193\u23ce\u2713\u2717]*")
"""Letters and signs of which each takes one cell, the backslash of an escape not among them."""
_CLUSTER = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})|.", re.DOTALL)


def safe(text: str) -> str:
    """The text with everything a terminal might obey or hide as a visible escape; newlines and tabs are kept."""
    return _HARMFUL.sub(_escape, text)


def safe_line(text: str, width: int) -> str:
    """A preview on one line of at most that many cells, with ``…`` where it was cut."""
    if text.isascii() and text.isprintable() and "\\" not in text:  # nearly every cell of a table
        plain = text.strip()
        return plain if len(plain) <= width else plain[: width - 1] + "…" if width > 0 else ""
    # Nothing beyond this can be seen, and texts may be long. Marks that take no cell are few in honest text.
    beyond = len(text) > 8 * width + 64
    line = _BREAK.sub("⏎", text[: 8 * width + 64].strip()).replace("\t", " ")
    if _ONE_CELL_EACH.fullmatch(line):
        is_cut = beyond or len(line) > width
        return line if not is_cut else line[: width - 1] + "…" if width > 0 else ""
    line = safe(line)
    taken = 0
    fits = 0
    for cluster in _CLUSTER.finditer(line):
        taken += len(cluster[0]) if cluster[0].startswith("\\") else _cells(cluster[0])
        if taken > width:
            return line[:fits] + "…" if width > 0 else ""
        if taken < width:
            fits = cluster.end()
    return line[:fits] + "…" if beyond else line


def display_width(text: str) -> int:
    """Columns that a harmless text takes: two for wide characters, none for combining ones."""
    if text.isascii() or _ONE_CELL_EACH.fullmatch(text):
        return len(text)
    return sum(map(_cells, text))


@lru_cache(maxsize=4096)
def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def plain_json(value: Any, depth: int = 0) -> Any:
    """A recorded JSON value as JSON can carry it on: numbers beyond it become texts."""
    if depth > _DEEPEST_LEVEL:
        return "…"
    if isinstance(value, dict):
        return {str(key): plain_json(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(one, depth + 1) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)
