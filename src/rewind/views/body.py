"""A body as plain JSON: content encoding taken off, then JSON, events, text or bytes."""

import base64
from collections.abc import Sequence
from typing import Any

from rewind.model.http import Chunk, Headers
from rewind.reading.body_text import decoded, is_event_stream, read_body
from rewind.wire.sse import parse_events


def body(data: bytes, headers: Headers, chunks: Sequence[Chunk] = ()) -> dict[str, Any]:
    """A body with its content encoding taken off: ``json``, ``events``, ``text`` or ``base64``."""
    view: dict[str, Any] = {"size": len(data)}
    read = read_body(data, headers)
    if read.note:
        view["note"] = read.note
    if read.binary is not None:
        view["base64"] = base64.b64encode(read.binary).decode("ascii")
    elif read.is_json:
        view["json"] = read.json
    else:
        view["text"] = read.text
        if is_event_stream(headers):
            view["events"] = events(data, headers, chunks)
    return view


def events(data: bytes, headers: Headers, chunks: Sequence[Chunk] = ()) -> list[dict[str, Any]]:
    """The events of a stream, with the time each was complete where that is known."""
    plain, _ = decoded(data, headers)
    # In a compressed stream the place of an event in the received bytes is not known, so neither is its time.
    known = chunks if plain == data else ()
    arrivals, received = [], 0
    for chunk in known:
        received += chunk.size
        arrivals.append((received, chunk.at / 1000))
    view, at = [], 0
    for event in parse_events(plain):
        while at < len(arrivals) and arrivals[at][0] < event.end:
            at += 1
        when = arrivals[at][1] if at < len(arrivals) else None
        view.append({"event": event.event, "data": event.data, "at_ms": when})
    return view
