"""The traffic set: real exchanges of public projects, which lie beside this repository and are no part of it."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rewind.model.http import Headers, HttpRequest, HttpResponse, RequestHead, ResponseHead


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One line of the set as the values our codecs read, with what the set says of it."""

    cassette: str
    index: int
    vendor: str
    """As the set derives it from the URL: ``openai``, ``groq``, ``bedrock/aws`` …"""
    kind: str
    """``llm``, ``embedding`` or ``other``."""
    stream_format: str
    """``sse``, ``aws-eventstream`` or ``json-array``; empty for a whole answer."""
    request: HttpRequest
    response: HttpResponse

    @property
    def name(self) -> str:
        return f"{self.cassette}[{self.index}]"

    @property
    def url(self) -> str:
        return self.request.head.url

    @property
    def failed(self) -> bool:
        return self.response.head.status >= 400


def exchanges_in(folder: Path) -> Iterator[Exchange]:
    """Every exchange, file by file in recorded order."""
    for file in sorted(folder.glob("*.jsonl")):
        with file.open() as lines:
            yield from map(_exchange, map(json.loads, lines))


def _exchange(row: dict[str, Any]) -> Exchange:
    asked, answered = row["request"], row["response"]
    url = urlsplit(asked["url"])
    return Exchange(
        cassette=row["cassette"],
        index=row["index"],
        vendor=row["provider"],
        kind=row["kind"],
        stream_format=answered.get("stream_format", ""),
        request=HttpRequest(
            head=RequestHead(
                method=asked["method"],
                scheme=url.scheme,
                host=url.hostname or "",
                port=url.port or 443,
                target=url.path + (f"?{url.query}" if url.query else ""),
                headers=_headers(asked["headers"]),
            ),
            body=_bytes(asked["body"]),
        ),
        response=HttpResponse(
            head=ResponseHead(status=answered["status"], reason="", headers=_headers(answered["headers"])),
            body=_bytes(answered["body"]),
            chunks=(),
        ),
    )


def _bytes(stored: Any) -> bytes:
    return base64.b64decode(stored["base64"]) if isinstance(stored, dict) else (stored or "").encode()


def _headers(stored: dict[str, str | list[str]]) -> Headers:
    pairs = [(name, value if isinstance(value, list) else [value]) for name, value in stored.items()]
    return tuple((name, str(value)) for name, values in pairs for value in values)
