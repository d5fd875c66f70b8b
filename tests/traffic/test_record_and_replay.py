"""606 real exchanges, served again under their own host names, recorded through the gateway and replayed without it.

The sources did not keep transfer framing; streams are cut into several chunks here, at events and inside them, and a
body that had been compressed is compressed again.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.lab import Gate, Lab
from support.provider import FakeProvider
from support.rawhttp import Reader, Reply, message
from support.script import Answer, Headers, in_order
from support.trust import Trust

pytestmark = [pytest.mark.e2e, pytest.mark.traffic]

EXCHANGES = 606
FRAMING = {
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
"""Headers of one hop, written anew by whoever sends."""
WITHHELD = {"set-cookie", "openai-organization", "openai-project", "anthropic-organization-id"}
"""Headers that may name a person or a company; a recording need not have them."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One line of the traffic set, as bytes for a wire."""

    name: str
    kind: str
    host: str
    method: str
    request: bytes
    answer: Answer


def load(folder: Path) -> Iterator[Exchange]:
    """Every exchange, file by file in recorded order."""
    for path in sorted(folder.glob("*.jsonl")):
        with path.open() as lines:
            yield from map(_exchange, map(json.loads, lines))


def _exchange(row: dict[str, Any]) -> Exchange:
    asked, answered = row["request"], row["response"]
    url = urlsplit(asked["url"])
    target = url.path + (f"?{url.query}" if url.query else "")
    body = _bytes(asked["body"])
    request = message(
        asked["method"],
        target,
        url.netloc,
        body if body or asked["method"] == "POST" else None,
        list(_headers(asked["headers"])),
    )
    headers = tuple(_headers(answered["headers"]))
    bodiless = asked["method"] == "HEAD"
    answer = Answer(status=answered["status"], headers=headers, pieces=(b"" if bodiless else _bytes(answered["body"]),))
    coding = answered.get("original_content_encoding")
    if coding in ("gzip", "br") and not bodiless:
        answer = answer.compressed(coding)
    if answered["stream"]:
        chunks = tuple(_cut(answer.body))
        answer = Answer(status=answer.status, headers=answer.headers, pieces=chunks, framing="chunked")
    return Exchange(f"{row['cassette']}[{row['index']}]", row["kind"], url.netloc, asked["method"], request, answer)


def _headers(headers: dict[str, str | list[str]]) -> Iterator[tuple[str, str]]:
    for name, value in headers.items():
        if name not in FRAMING:
            yield from ((name, one) for one in ([value] if isinstance(value, str) else value))


def _bytes(body: str | dict[str, str]) -> bytes:
    return body.encode() if isinstance(body, str) else base64.b64decode(body["base64"])


def _cut(body: bytes) -> Iterator[bytes]:
    """Pieces of about three events; every second border lies inside an event."""
    start, events = 0, 0
    while start < len(body):
        end = start
        for _ in range(3):
            found = body.find(b"\n\n", end)
            end = found + 2 if found >= 0 else min(end + 700, len(body))
        events += 1
        end = min(len(body), max(start + 1, end - (11 if events % 2 else 0)))
        yield body[start:end]
        start = end


def converse(gate: Gate, exchanges: Iterable[Exchange]) -> list[Reply]:
    """Send every request through the gateway, on one connection a host, and read every answer."""
    with ExitStack() as stack:
        lines: dict[str, tuple[Any, Reader]] = {}
        replies = []
        for exchange in exchanges:
            if exchange.host not in lines:
                sock = stack.enter_context(gate.tls(exchange.host))
                lines[exchange.host] = (sock, Reader(sock))
            sock, reader = lines[exchange.host]
            sock.sendall(exchange.request)
            replies.append(reader.next(exchange.method))
        return replies


def _kept(headers: Headers) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in headers if name.lower() not in WITHHELD]


def _difference(exchange: Exchange, recorded: Reply, replayed: Reply) -> str | None:
    answer = exchange.answer
    if (recorded.status, recorded.body) != (answer.status, answer.body):
        return f"{exchange.name}: recording changed the answer ({recorded.status})"
    if replayed.status != recorded.status:
        return f"{exchange.name}: status {replayed.status}, not {recorded.status}: {replayed.body[:300]!r}"
    if replayed.body != recorded.body:
        return f"{exchange.name}: another body"
    if _kept(replayed.headers) != _kept(recorded.headers):
        return f"{exchange.name}: headers {set(_kept(replayed.headers)) ^ set(_kept(recorded.headers))}"
    if answer.framing == "chunked" and not replayed.pieces == recorded.pieces == list(answer.pieces):
        return f"{exchange.name}: other chunks"
    return None


@pytest.mark.timeout(300)
def test_every_exchange_is_recorded_and_replayed_to_the_byte(traffic: Path, trust: Trust, tmp_path: Path) -> None:
    exchanges = list(load(traffic))
    assert len(exchanges) == EXCHANGES
    hosts = tuple(sorted({exchange.host for exchange in exchanges}))
    book = in_order(*(exchange.answer for exchange in exchanges))
    with FakeProvider(book, trust=trust, names=hosts) as provider:
        bench = Lab(tmp_path, trust, provider, hosts=hosts)
        with bench.recording("--all-hosts") as gate:
            recorded = converse(gate, exchanges)
        assert [request.raw for request in provider.requests] == [exchange.request for exchange in exchanges]
        session = gate.ended().session
        with bench.replaying(session) as again:
            replayed = converse(again, exchanges)
        compared = zip(exchanges, recorded, replayed, strict=True)
        differences = [found for row in compared if (found := _difference(*row))]
        assert differences == [], f"{len(differences)} of {EXCHANGES} differ"
        assert again.ended().code == 0, again.ended().talk
        assert f"{EXCHANGES}/{EXCHANGES} steps replayed" in again.ended().talk

        steps = bench.steps(session)
        assert len(steps) == EXCHANGES
        unrecognised = [
            exchange.name
            for exchange, step in zip(exchanges, steps, strict=True)
            if exchange.kind == "llm" and step["kind"] != "llm_call"
        ]
        assert unrecognised == []
        assert bench.rewind("verify", session, timeout=120).code == 0
