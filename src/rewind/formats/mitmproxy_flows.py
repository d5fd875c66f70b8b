"""mitmproxy's flow files, read with mitmproxy's own reader where it is installed."""

import importlib
import io
import re
from collections.abc import Iterator
from typing import Any

from rewind.errors import BadCassette, EnvironmentProblem
from rewind.formats import repair
from rewind.formats.exchanges import (
    OPCODES,
    ForeignAnswer,
    ForeignExchange,
    ForeignRecording,
    WebSocketMessage,
    answered_exchange,
    in_order,
    sound_moment,
    websocket_log,
)
from rewind.formats.repair import Remarks, UnusableAddress
from rewind.model.http import Headers, HttpRequest, HttpResponse, ResponseHead
from rewind.model.step import Ending

_HINT = (
    "Have mitmproxy write a HAR, and import that:\n"
    "  mitmdump -nr FILE --set hardump=flows.har\n"
    "  rewind import flows.har\n"
    "Or run rewind in an environment of its own that has mitmproxy: pip install mitmproxy, then pip install llm-rewind"
)
MOST_VALUES = 500_000
"""Of one flow."""
_LENGTH = re.compile(rb"(\d{1,12}):")


def read_flows(data: bytes) -> ForeignRecording:
    """Raises BadCassette, or EnvironmentProblem where mitmproxy is missing."""
    reader = _mitmproxy().FlowReader(io.BytesIO(data))
    check_flows(data)
    remarks = Remarks()
    exchanges = in_order(_exchanges(_flows(reader), remarks))
    return ForeignRecording(exchanges=exchanges, tool="mitmproxy", remarks=remarks.texts())


def check_flows(data: bytes, most_values: int = MOST_VALUES) -> None:
    """Raises BadCassette where one flow holds too many values: mitmproxy's reader makes all of them at once.

    A value is its length, a colon, so many bytes, and a sign for its kind; lists and tables hold values.
    """
    at = 0
    while length := _LENGTH.match(data, at):
        end = length.end() + int(length[1]) + 1
        # Every value has a colon. Where they are few, there is nothing to look at closely.
        if data.count(b":", at, end) > most_values and _has_more_values(data, at, end, most_values):
            raise BadCassette(f"One of its flows holds more than {most_values:,} values.")
        at = end


def _has_more_values(data: bytes, at: int, end: int, most: int) -> bool:
    values = 0
    while values <= most and at < end and (length := _LENGTH.match(data, at)):
        values += 1
        kind = length.end() + int(length[1])
        at = length.end() if data[kind : kind + 1] in (b"]", b"}") else kind + 1
        while data[at : at + 1] in (b"]", b"}"):  # what ends here
            at += 1
    return values > most


def _mitmproxy() -> Any:
    try:
        return importlib.import_module("mitmproxy.io")
    except ImportError as error:
        raise EnvironmentProblem("Reading a flow file needs mitmproxy's own reader.", hint=_HINT) from error


def _flows(reader: Any) -> Iterator[Any]:
    try:
        yield from reader.stream()
    except Exception as error:
        # Another project's code on a stranger's file: whatever it stumbles on, the file cannot be read.
        words = str(error).partition("\n")[0][:200] or type(error).__name__
        raise BadCassette(f"mitmproxy cannot read it: {words.rstrip('.')}.") from error


def _exchanges(flows: Iterator[Any], remarks: Remarks) -> Iterator[ForeignExchange]:
    for flow in flows:
        if getattr(flow, "request", None) is None or flow.type != "http":
            remarks.add(f"a {str(flow.type)[:20]} flow was left out: it is not HTTP")
        elif flow.request.method == "CONNECT":
            remarks.add("a CONNECT request was left out: what went through it has flows of its own")
        else:
            try:
                yield _exchange(flow, remarks)
            except UnusableAddress as problem:
                remarks.add(f"a flow was left out: {problem}")


def _exchange(flow: Any, remarks: Remarks) -> ForeignExchange:
    asked, answered = flow.request, flow.response
    head = repair.request_head(asked.method, asked.url, _headers(asked.headers, remarks))
    body, note = asked.raw_content, None
    if body is None:
        body, note = b"", "the request's body passed by as a stream, and the file does not hold it"
        remarks.add("the body of a request is not in the file: a replay will not recognise it")
    answer = _answer(flow, head.method, remarks)
    return answered_exchange(
        repair.fitted_request(HttpRequest(head=head, body=body), remarks),
        answer,
        remarks,
        started=sound_moment(asked.timestamp_start),
        ms=_ms(asked, answered),
        note=note,
    )


def _answer(flow: Any, method: str, remarks: Remarks) -> ForeignAnswer:
    answered = flow.response
    reason = None if flow.error is None else str(flow.error.msg)[:300]
    if answered is None and reason is None:
        return ForeignAnswer(reason="the flow file was written before it came")
    if answered is None:
        return ForeignAnswer(None, Ending.NO_ANSWER, reason)
    head = ResponseHead(
        status=answered.status_code,
        reason=repair.reason_phrase(answered.reason),
        headers=_headers(answered.headers, remarks),
    )
    if head.status == 101:
        return _websocket(flow, head)
    if not 200 <= head.status <= 999:
        return ForeignAnswer(reason=f"status {head.status} is only the beginning of an answer")
    if answered.raw_content is None:
        return ForeignAnswer(reason="it passed by as a stream, and the file does not hold its body")
    trailers = () if answered.trailers is None else _headers(answered.trailers, remarks)
    whole = HttpResponse(head=head, body=answered.raw_content, chunks=(), trailers=trailers)
    fitting = repair.fitted_response(method, whole, remarks, cut=reason is not None)
    return ForeignAnswer(fitting, Ending.COMPLETE if reason is None else _cut(reason), reason)


def _cut(reason: str) -> Ending:
    return Ending.CLIENT_CLOSED if "client disconnected" in reason.lower() else Ending.UPSTREAM_CUT


def _websocket(flow: Any, head: ResponseHead) -> ForeignAnswer:
    socket = flow.websocket
    if socket is None:
        return ForeignAnswer(reason="the connection switched to a protocol that is not recorded")
    began = flow.response.timestamp_end or flow.response.timestamp_start or 0.0
    messages = [
        WebSocketMessage(
            message.from_client,
            round((message.timestamp - began) * 1_000_000),
            OPCODES.get(int(message.type.value), "binary"),
            message.content,
        )
        for message in socket.messages
        if not message.dropped
    ]
    if socket.close_code is not None:
        at = 0 if socket.timestamp_end is None else round((socket.timestamp_end - began) * 1_000_000)
        payload = _close_payload(socket.close_code, socket.close_reason or "")
        messages.append(WebSocketMessage(bool(socket.closed_by_client), at, "close", payload))
    response = HttpResponse(head=head, body=websocket_log(messages), chunks=())
    if socket.close_code in (None, 1006):
        return ForeignAnswer(response, Ending.UPSTREAM_CUT, "the connection ended without a word")
    return ForeignAnswer(response, Ending.COMPLETE)


def _close_payload(code: int, reason: str) -> bytes:
    """What a close frame carries (RFC 6455, 5.5.1); nothing for codes that are never sent."""
    if not 1000 <= code <= 4999 or code in (1004, 1005, 1006, 1015):
        return b""
    return code.to_bytes(2, "big") + reason.encode("utf-8", "replace")[:123]


def _ms(asked: Any, answered: Any) -> float | None:
    began = asked.timestamp_end or asked.timestamp_start
    ended = None if answered is None else answered.timestamp_end
    return None if not began or not ended else max(0.0, (ended - began) * 1000)


def _headers(headers: Any, remarks: Remarks) -> Headers:
    return repair.sound_headers(headers.fields, remarks)
