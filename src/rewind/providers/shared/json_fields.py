"""Safe access to fields of JSON that others wrote: no shape raises, every text that comes back can be written."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from rewind.model.message import Media

_SHOWN = 200
_LARGEST = 2**53


def at(value: Any, *path: str | int) -> Any:
    """What is at that place, or ``None``."""
    for step in path:
        if value is None:
            return None
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and -len(value) <= step < len(value) else None
    return value


def text_at(value: Any, *path: str | int) -> str:
    """The string at that place, or an empty one."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def words_at(value: Any, *path: str | int) -> str:
    """The string at that place, fit to be written."""
    return writable(text_at(value, *path))


def items_at(value: Any, *path: str | int) -> list[Any]:
    """The list at that place, or an empty one."""
    found = at(value, *path)
    return found if isinstance(found, list) else []


def objects_in(values: Iterable[Any]) -> list[dict[str, Any]]:
    """Those that are JSON objects."""
    return [value for value in values if isinstance(value, dict)]


def without(document: dict[str, Any], *names: str) -> dict[str, Any]:
    """The document less these fields."""
    return {name: value for name, value in document.items() if name not in names}


def count_at(value: Any, *path: str | int) -> int | None:
    """The whole number at that place, if there is a believable one."""
    found = at(value, *path)
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= _LARGEST:
        return found
    return None


def first_count(value: Any, places: Iterable[tuple[str, ...]]) -> int | None:
    """The first believable number among those places: one thing has a name per vendor, and some tell it twice."""
    if not isinstance(value, dict):
        return None
    for place in places:
        if place[0] in value and (count := count_at(value, *place)) is not None:
            return count
    return None


def total(*counts: int | None) -> int | None:
    """The sum of what is known; ``None`` where nothing is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def writable(text: str) -> str:
    """The same text with surrogate pairs joined and lone surrogates replaced, so that it can be written as UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def start_of(text: str, size: int = _SHOWN) -> str:
    """The start of a text, for tables and journal lines."""
    text = writable(text[: 2 * size].strip())
    return text if len(text) <= size else text[: size - 1] + "…"


def asked_tool(name: str, arguments: Any) -> str:
    """``→ name({"a":1})``; arguments may be an object or JSON already written."""
    if isinstance(arguments, str):
        written = arguments
    elif arguments is None:
        written = ""
    else:
        try:
            written = json.dumps(arguments, separators=(",", ":"), ensure_ascii=False)
        except (ValueError, RecursionError):
            written = "…"
    return f"→ {name or '?'}({written})"


# ── pictures, sounds and documents: told by kind, size and digest, never copied ───────────────────────────────

_KINDS = ("image", "audio", "video")


def kind_of(media_type: str) -> str:
    """``image`` for ``image/png``; a PDF or a text is a document."""
    main = media_type.partition("/")[0].lower()
    if main in _KINDS:
        return main
    return "document" if media_type else "file"


def inline(data: Any, media_type: str, kind: str = "") -> Media:
    """Data sent along in base64."""
    text = data if isinstance(data, str) else ""
    size = len(text) * 3 // 4 - text[-2:].count("=")
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    return Media(kind or kind_of(media_type), writable(media_type), "", digest, max(size, 0))


def referred(reference: str, media_type: str = "", kind: str = "") -> Media:
    """A URL or a file id; a ``data:`` URL is inline data."""
    if reference.startswith("data:"):
        head, _, data = reference.partition(",")
        told = head.removeprefix("data:").partition(";")[0]
        return inline(data, told or media_type, kind)
    return Media(kind or kind_of(media_type), writable(media_type), writable(reference))
