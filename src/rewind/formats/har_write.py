"""A recording as HAR 1.2, for browsers and the tools that read it. The same recording gives the same bytes.

Text is written as text, anything else in base64; answers without their content coding, as the format wants it.
Fields of our own begin with an underscore, which every reader must pass over.
"""

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from rewind.formats.texts import charset_of
from rewind.formats.websocket_messages import OPS, read_log
from rewind.model.http import Headers, header
from rewind.model.ids import BlobId
from rewind.model.session import Recording
from rewind.model.step import Ending, Step, StepKind, StepResponse
from rewind.version import __version__
from rewind.wire.encoding import UndecodableBody, decode

CREATOR = "rewind"
_ON_THE_WIRE = (StepKind.LLM_CALL, StepKind.HTTP_CALL)
_SCHEMES = ("http", "https")
_UNKNOWN_TIMES = {"blocked": -1, "dns": -1, "connect": -1, "ssl": -1}
_OPCODES = {name: number for number, name in OPS.items()}

Fields = dict[str, Any]
Blob = Callable[[BlobId], bytes]


def went_over_http(step: Step) -> bool:
    """An agent's own tools, notes, and what a trace tells of never were on a wire."""
    return step.request.kind in _ON_THE_WIRE and step.request.head.scheme in _SCHEMES


def write_har(recording: Recording, blob: Blob) -> bytes:
    """Every step that went over HTTP."""
    start = recording.session.start
    steps = [step for step in recording.steps if went_over_http(step)]
    log = {
        "version": "1.2",
        "creator": {"name": CREATOR, "version": __version__},
        "pages": [],
        "entries": [_entry(step, blob) for step in steps],
        "_rewind": {"session": start.id, "name": start.name},
    }
    return json.dumps({"log": log}, ensure_ascii=False, indent=2).encode("utf-8", "surrogatepass") + b"\n"


def _entry(step: Step, blob: Blob) -> Fields:
    asked, answered = step.request, step.response
    ms = 0.0 if answered is None else answered.ms
    first = ms if answered is None or answered.first_ms is None else min(answered.first_ms, ms)
    entry: Fields = {
        "startedDateTime": _iso(asked.ts),
        "time": ms,
        "request": _request(step, blob),
        "response": _nothing("not recorded") if answered is None else _response(answered, blob),
        "cache": {},
        "timings": {**_UNKNOWN_TIMES, "send": 0, "wait": first, "receive": round(ms - first, 3)},
        "_rewind": {
            "step": step.index,
            "kind": str(asked.kind),
            "key": asked.match_key,
            "ending": None if answered is None else str(answered.ending),
            "request": asked.body,
            "response": None if answered is None else answered.body,
        },
    }
    if answered is not None and answered.head is not None and answered.head.status == 101:
        entry |= {"_resourceType": "websocket", "_webSocketMessages": _messages(asked.ts, answered, blob)}
    return entry


def _request(step: Step, blob: Blob) -> Fields:
    head, body = step.request.head, blob(step.request.body)
    fields: Fields = {
        "method": head.method,
        "url": head.url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _headers(head.headers),
        "queryString": [{"name": name, "value": value} for name, value in head.query_pairs],
        "headersSize": -1,
        "bodySize": len(body),
    }
    if body:
        media = head.header("content-type") or ""
        fields["postData"] = {"mimeType": media, "params": [], **_held(body, media)}
    return fields


def _response(answered: StepResponse, blob: Blob) -> Fields:
    head = answered.head
    if head is None:
        return _nothing(answered.reason or "no answer came")
    body = b"" if head.status == 101 else blob(answered.body)
    plain = _plain(body, header(head.headers, "content-encoding"))
    media = head.header("content-type") or ""
    content: Fields = {"size": len(plain), "mimeType": media or "x-unknown"}
    if len(plain) != len(body):
        content["compression"] = len(plain) - len(body)
    fields: Fields = {
        "status": head.status,
        "statusText": head.reason,
        "httpVersion": f"HTTP/{head.version}",
        "cookies": [],
        "headers": _headers(head.headers),
        "content": {**content, **_held(plain, media)},
        "redirectURL": head.header("location") or "",
        "headersSize": -1,
        "bodySize": len(body),
    }
    if answered.ending is not Ending.COMPLETE:
        fields["_error"] = answered.reason or f"cut: {answered.ending}"
    return fields


def _nothing(why: str) -> Fields:
    """How browsers write a request that got no answer."""
    return {
        "status": 0,
        "statusText": "",
        "httpVersion": "",
        "cookies": [],
        "headers": [],
        "content": {"size": 0, "mimeType": "x-unknown"},
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": -1,
        "_error": why,
    }


def _held(body: bytes, media: str) -> Fields:
    if charset_of(media) == "utf-8":
        try:
            return {"text": body.decode()}
        except UnicodeDecodeError:
            pass
    return {"text": base64.b64encode(body).decode(), "encoding": "base64"}


def _plain(body: bytes, coding: str | None) -> bytes:
    """Without its coding; one that cannot be taken off stays on."""
    try:
        return decode(body, coding)
    except UndecodableBody:
        return body


def _headers(headers: Headers) -> list[Fields]:
    return [{"name": name, "value": value} for name, value in headers]


def _messages(began: float, answered: StepResponse, blob: Blob) -> list[Fields]:
    return [
        {
            "type": "send" if message.from_client else "receive",
            "time": round(began + message.at / 1_000_000, 6),
            "opcode": _OPCODES[message.op],
            "data": message.data.decode("utf-8", "surrogateescape")
            if message.op == "text"
            else base64.b64encode(message.data).decode(),
        }
        for message in read_log(blob(answered.body))
    ]


def _iso(ts: float) -> str:
    return datetime.fromtimestamp(ts, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
