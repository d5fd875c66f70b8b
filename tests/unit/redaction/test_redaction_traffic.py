"""Real traffic: what holds no secret passes byte for byte, and what providers really send can be read."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewind.model.http import ResponseHead
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets

pytestmark = pytest.mark.traffic

VALUES = ("sk-proj-a1B2c3D4e5F6g7H8i9J0", "sk-ant-api03-Zz9Yy8Xx7Ww6Vv5Uu4", "AIzaSyA0b1C2d3E4f5G6", "data-pass word/1")


def exchanges(traffic: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(traffic.glob("*.jsonl")):
        yield from map(json.loads, path.read_text().splitlines())


def raw(body: Any) -> bytes:
    return base64.b64decode(body["base64"]) if isinstance(body, dict) else (body or "").encode()


def test_real_bodies_without_a_known_value_pass_unchanged(traffic: Path) -> None:
    door = Redactor(Secrets(VALUES))
    for exchange in exchanges(traffic):
        request, response = raw(exchange["request"]["body"]), raw(exchange["response"]["body"])
        assert door.body(request, ()) is request
        media = str(exchange["response"]["headers"].get("content-type", ""))
        stream = door.stream(ResponseHead(status=200, reason="", headers=(("content-type", media),)))
        given = b"".join(stream.feed(response[at : at + 997]) for at in range(0, len(response), 997))
        assert given + stream.finish() == response
        assert stream.replacement is None
    assert door.count == 0


def test_words_that_real_streams_say_in_pieces_are_found_when_they_are_known(traffic: Path) -> None:
    checked = 0
    for exchange in exchanges(traffic):
        if exchange["response"].get("stream_format") != "sse" or exchange["provider"] not in ("openai", "anthropic"):
            continue
        body = raw(exchange["response"]["body"])
        spoken = said(body)
        word = max(spoken.replace("\n", " ").split(), key=len, default="")
        whole = spoken[max(0, spoken.find(word) - 8) :][:24]
        if len(whole) < 24 or "\n" in whole:
            continue
        door = Redactor(Secrets([whole]))
        if not len(door.secrets):
            continue
        stream = door.stream(ResponseHead(status=200, reason="", headers=(("content-type", "text/event-stream"),)))
        given = stream.feed(body) + stream.finish()
        final = stream.replacement or given
        assert len(final) == len(body)
        assert whole not in said(final)
        assert door.count >= 1
        checked += 1
    assert checked > 30


def said(body: bytes) -> str:
    """The text that an OpenAI or Anthropic stream says, one answer after the other."""
    texts = []
    for line in body.splitlines():
        if not line.startswith(b"data: {"):
            continue
        document = json.loads(line[6:])
        if document.get("type") == "content_block_delta":
            texts.append(document["delta"].get("text") or "")
        elif document.get("type") == "response.output_text.delta":
            texts.append(document["delta"])
        elif document.get("choices"):
            texts.append(document["choices"][0].get("delta", {}).get("content") or "")
    return "".join(texts)
