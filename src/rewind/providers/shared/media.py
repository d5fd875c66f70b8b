"""Pictures, sounds and documents inside requests and answers: told by kind, size and digest, never copied."""

import hashlib
from typing import Any

from rewind.model.message import Media
from rewind.providers.shared.json_fields import writable

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
