"""HAR, the archive that browsers, mitmproxy, HTTP Toolkit and Polly.js write: read and written.

The format keeps what a page saw: bodies without their content coding, text without its charset. Bodies are optional,
and several tools leave large or streamed ones out; such an answer is not taken for an empty one.

Written is HAR 1.2, the same bytes for the same recording. Text is written as text, anything else in base64. Fields of
our own begin with an underscore, which every reader must pass over.
"""

import base64
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

from rewind.errors import BadCassette
from rewind.formats import repair
from rewind.formats.exchanges import (
    OPCODES,
    ForeignAnswer,
    ForeignExchange,
    ForeignRecording,
    WebSocketMessage,
    answered_exchange,
    in_order,
    read_entries,
    read_websocket_log,
    sound_moment,
    websocket_log,
)
from rewind.formats.repair import Remarks, Unreadable
from rewind.model.http import Headers, HttpRequest, HttpResponse, ResponseHead, header
from rewind.model.ids import BlobId
from rewind.model.session import Recording
from rewind.model.step import Ending, Step, StepKind, StepResponse
from rewind.version import __version__
from rewind.wire.encoding import UndecodableBody, decode
from rewind.wire.frame_log import BadFrameLog

CREATOR = "rewind"
_ON_THE_WIRE = (StepKind.LLM_CALL, StepKind.HTTP_CALL)
_UNKNOWN_TIMES = {"blocked": -1, "dns": -1, "connect": -1, "ssl": -1}
_ENTRIES = b'"entries": ['
_SET_IN = b" " * 6
"""How far an entry is set in."""
_OPCODE_NUMBERS = {name: number for number, name in OPCODES.items()}

_Fields = dict[str, Any]
_Blob = Callable[[BlobId], bytes]


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────


def read_har(data: bytes) -> ForeignRecording:
    """Raises BadCassette."""
    try:
        document = repair.read_json(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise BadCassette("It is not a HAR file: it cannot be read as JSON.") from error
    match document:
        case {"log": {"entries": list(entries), "creator": {"name": str(name)}}}:
            creator = name[:60].strip()
        case {"log": {"entries": list(entries)}}:
            creator = ""
        case _:
            raise BadCassette("It is not a HAR file: it has no log with entries.")
    remarks = Remarks()
    read = partial(_read_entry, creator=creator, remarks=remarks)
    exchanges = tuple(read_entries(entries, "entry", read, remarks))
    if creator != CREATOR:  # our own are in order, also where several were asked at one moment
        exchanges = in_order(exchanges)
    tool = f"HAR ({creator})" if creator else "HAR"
    return ForeignRecording(exchanges=exchanges, tool=tool, remarks=remarks.texts())


def _read_entry(entry: _Fields, creator: str, remarks: Remarks) -> ForeignExchange:
    asked, answered = entry["request"], entry["response"]
    head = repair.request_head(
        str(asked.get("method") or "GET"), str(asked.get("url") or ""), _read_headers(asked, remarks)
    )
    body, note = _request_body(asked, head.headers, creator, remarks)
    request = repair.fitted_request(HttpRequest(head=head, body=body), remarks)
    return answered_exchange(
        request,
        _read_answer(entry, answered, head.method, creator, remarks),
        remarks,
        started=_started(entry),
        ms=_positive(entry.get("time")),
        note=note,
    )


def _started(entry: _Fields) -> float | None:
    try:
        moment = datetime.fromisoformat(entry.get("startedDateTime"))  # type: ignore[arg-type]  # whatever it is
        return sound_moment((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (TypeError, ValueError, OverflowError):
        return None


def _read_headers(half: _Fields, remarks: Remarks) -> Headers:
    given = half.get("headers")
    rows = [row for row in given if isinstance(row, dict)] if isinstance(given, list) else []
    return repair.sound_headers([(row.get("name"), row.get("value")) for row in rows], remarks)


def _request_body(asked: _Fields, headers: Headers, creator: str, remarks: Remarks) -> tuple[bytes, str | None]:
    """The body, and what is to be known of it."""
    posted = asked.get("postData") or asked.get("_content")
    match posted:
        case {"encoding": "base64", "text": str(text)}:
            return _unpacked(text), None
        case {"text": str(text)} if text:
            return repair.in_charset(text, _charset(posted, headers, creator)), None
        case {"params": [_, *_] as params}:
            remarks.add("the fields of a form were kept, not its text: it was written anew")
            rows = [row for row in params if isinstance(row, dict)]
            pairs = [(str(row.get("name", "")), str(row.get("value") or "")) for row in rows]
            return urlencode(pairs).encode(), None
    if (size := _positive(asked.get("bodySize"))) is not None:
        remarks.add("the body of a request is not in the file: a replay will not recognise it")
        return b"", f"the request had a body of {size:.0f} bytes that the file does not hold"
    return b"", None


def _read_answer(entry: _Fields, answered: _Fields, method: str, creator: str, remarks: Remarks) -> ForeignAnswer:
    status = answered.get("status")
    error = answered.get("_error") or entry.get("_error")
    reason = error[:300] if isinstance(error, str) and error else None
    match entry.get("_rewind"):
        case {"ending": None}:
            return ForeignAnswer(reason="it was not recorded")
        case {"ending": Ending.CLIENT_CLOSED | Ending.INTERRUPTED as name} if reason is not None:
            ending = Ending(name)
        case _:
            ending = Ending.COMPLETE if reason is None else Ending.UPSTREAM_CUT
    if status in (0, None):
        return ForeignAnswer(None, Ending.NO_ANSWER, reason or "the request was blocked or given up")
    if not isinstance(status, int) or isinstance(status, bool) or not 100 <= status <= 999:
        raise Unreadable(f"{str(status)[:40]!r} is not a valid status")
    phrase = repair.reason_phrase(answered.get("statusText"))
    head = ResponseHead(status=status, reason=phrase, headers=_read_headers(answered, remarks))
    if status == 101:
        messages = entry.get("_webSocketMessages")
        if not isinstance(messages, list):
            return ForeignAnswer(reason="the messages of the WebSocket are not in the file")
        began = _started(entry)
        log = websocket_log(_read_message(row, began) for row in messages if isinstance(row, dict))
        return ForeignAnswer(HttpResponse(head=head, body=log, chunks=()), ending, reason)
    if status < 200:
        return ForeignAnswer(reason=f"status {status} is only the beginning of an answer")
    body = _answer_body(answered, method, head, creator, cut=reason is not None)
    if body is None:
        return ForeignAnswer(reason="the file does not hold the answer's body")
    whole = HttpResponse(head=head, body=body, chunks=())
    return ForeignAnswer(repair.fitted_response(method, whole, remarks, cut=reason is not None), ending, reason)


def _answer_body(answered: _Fields, method: str, head: ResponseHead, creator: str, *, cut: bool) -> bytes | None:
    """``None``: there was one, and the file does not hold it."""
    content = answered.get("content")
    content = content if isinstance(content, dict) else {}
    text = content.get("text")
    length = _number(head.header("content-length"))
    if isinstance(text, str):
        is_base64 = content.get("encoding") == "base64"
        body = _unpacked(text) if is_base64 else repair.in_charset(text, _charset(content, head.headers, creator))
        if body:
            # Some tools keep only so much of a long answer.
            shortened = length is not None and not head.header("content-encoding") and len(body) < length
            return None if shortened and not cut else body
    if method == "HEAD" or head.status in (204, 304):
        return b""
    # There was none where sizes, headers and the media type agree with that.
    sizes = (content.get("size"), answered.get("bodySize"), length)
    is_stream = "event-stream" in (head.header("content-type") or "").lower()
    return b"" if all(_positive(size) is None for size in sizes) and not is_stream else None


def _read_message(row: _Fields, began: float | None) -> WebSocketMessage:
    """A message of a WebSocket, as Chrome and mitmproxy write it."""
    opcode, data, moment = row.get("opcode", 1), row.get("data"), _positive(row.get("time"))
    op = OPCODES.get(opcode, "binary") if isinstance(opcode, int) else "text"
    text = data if isinstance(data, str) else ""
    at = 0 if moment is None or began is None else round((moment - began) * 1_000_000)
    payload = text.encode("utf-8", "surrogatepass") if op == "text" else _unpacked(text)
    return WebSocketMessage(row.get("type") == "send", min(at, 10**15), op, payload)


def _charset(held: Any, headers: Headers, creator: str) -> str:
    media = held.get("mimeType")
    given = header(headers, "content-type") or (media if isinstance(media, str) else "")
    return repair.charset_of(given, latin_by_default=creator == "mitmproxy")


def _unpacked(text: str) -> bytes:
    """base64; or, as Polly.js writes a body that came in pieces, a JSON list of such texts."""
    if not text.startswith("["):
        return repair.from_base64(text)
    try:
        pieces = [str(piece) for piece in repair.read_json(text)]
    except (ValueError, RecursionError, TypeError) as error:
        raise Unreadable("a body is not valid base64") from error
    return b"".join(map(repair.from_base64, pieces))


def _positive(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15:
        return float(value)
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else None


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────


def went_over_http(step: Step) -> bool:
    """False for an agent's own tools and notes, and for what a trace tells of: those never were on a wire."""
    return step.request.kind in _ON_THE_WIRE and step.request.head.scheme in ("http", "https")


def har_pieces(recording: Recording, blob: _Blob) -> Iterator[bytes]:
    """The archive of every step that went over HTTP, one entry after the other: all of them may not fit in memory."""
    start = recording.session.start
    log = {
        "version": "1.2",
        "creator": {"name": CREATOR, "version": __version__},
        "pages": [],
        "entries": [],
        "_rewind": {"session": start.id, "name": start.name},
    }
    before, _, after = _written({"log": log}).partition(_ENTRIES)
    yield before + _ENTRIES
    between = b""
    for step in recording.steps:
        if went_over_http(step):
            # A line break within a text is escaped, so each one that is there begins a line.
            yield between + (b"\n" + _written(_entry(step, blob))).replace(b"\n", b"\n" + _SET_IN)
            between = b","
    yield (b"\n    " if between else b"") + after + b"\n"


def _written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "surrogatepass")


def _entry(step: Step, blob: _Blob) -> _Fields:
    asked, answered = step.request, step.response
    messages = _messages(step, blob)
    body = b"" if messages is not None else step.answer_body(blob)
    ms = 0.0 if answered is None else answered.ms
    first = ms if answered is None or answered.first_ms is None else min(answered.first_ms, ms)
    entry: _Fields = {
        "startedDateTime": _iso(asked.ts),
        "time": ms,
        "request": _request(step, blob),
        "response": _no_response("not recorded") if answered is None else _response(answered, body),
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
    if messages is not None:
        entry |= {"_resourceType": "websocket", "_webSocketMessages": messages}
    return entry


def _request(step: Step, blob: _Blob) -> _Fields:
    head, body = step.request.head, blob(step.request.body)
    fields: _Fields = {
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


def _response(answered: StepResponse, body: bytes) -> _Fields:
    head = answered.head
    if head is None:
        return _no_response(answered.reason or "no answer came")
    try:
        plain = decode(body, header(head.headers, "content-encoding"))
    except UndecodableBody:
        plain = body  # a coding that cannot be taken off stays on
    media = head.header("content-type") or ""
    content: _Fields = {"size": len(plain), "mimeType": media or "x-unknown"}
    if len(plain) != len(body):
        content["compression"] = len(plain) - len(body)
    fields: _Fields = {
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


def _no_response(why: str) -> _Fields:
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


def _held(body: bytes, media: str) -> _Fields:
    if repair.charset_of(media) == "utf-8":
        try:
            return {"text": body.decode()}
        except UnicodeDecodeError:
            pass
    return {"text": base64.b64encode(body).decode(), "encoding": "base64"}


def _headers(headers: Headers) -> list[_Fields]:
    return [{"name": name, "value": value} for name, value in headers]


def _messages(step: Step, blob: _Blob) -> list[_Fields] | None:
    """What went over a WebSocket; ``None`` for a step that was none, or whose answer is something else."""
    if step.response is None or step.status != 101:
        return None
    try:
        messages = read_websocket_log(blob(step.response.body))
    except BadFrameLog:
        return None
    return [
        {
            "type": "send" if message.from_client else "receive",
            "time": round(step.request.ts + message.at / 1_000_000, 6),
            "opcode": _OPCODE_NUMBERS[message.op],
            "data": message.data.decode("utf-8", "surrogateescape")
            if message.op == "text"
            else base64.b64encode(message.data).decode(),
        }
        for message in messages
    ]


def _iso(ts: float) -> str:
    return datetime.fromtimestamp(ts, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
