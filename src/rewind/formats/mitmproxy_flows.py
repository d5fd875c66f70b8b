"""mitmproxy's flow files, read with mitmproxy's own reader where it is installed."""

import importlib
import io
import re
from collections.abc import Iterator
from typing import Any

from rewind.errors import BadCassette, EnvironmentProblem
from rewind.formats.body_fit import fitted_request, fitted_response
from rewind.formats.exchanges import Foreign, ForeignExchange, in_order, sound_moment
from rewind.formats.heads import UnusableAddress, request_head, sound_headers
from rewind.formats.remarks import Remarks
from rewind.formats.websocket_messages import OPS, Message, close_payload, frame_log
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


def read_flows(data: bytes) -> Foreign:
    """Raises BadCassette, or EnvironmentProblem where mitmproxy is missing."""
    reader = _mitmproxy().FlowReader(io.BytesIO(data))
    check_flows(data)
    remarks = Remarks()
    exchanges = in_order(_exchanges(_flows(reader), remarks))
    return Foreign(exchanges=exchanges, tool="mitmproxy", remarks=remarks.texts())


def check_flows(data: bytes) -> None:
    """Raises BadCassette where one flow holds too many values: mitmproxy's reader makes all of them at once.

    A value is its length, a colon, so many bytes, and a sign for its kind; lists and tables hold values.
    """
    at = 0
    while found := _LENGTH.match(data, at):
        end = found.end() + int(found[1]) + 1
        # Every value has a colon. Where they are few, there is nothing to look at closely.
        if data.count(b":", at, end) > MOST_VALUES and _has_too_many(data, at, end):
            raise BadCassette(f"A flow of the file holds more than {MOST_VALUES:,} values.")
        at = end


def _has_too_many(data: bytes, at: int, end: int) -> bool:
    values = 0
    while values <= MOST_VALUES and at < end and (found := _LENGTH.match(data, at)):
        values += 1
        kind = found.end() + int(found[1])
        at = found.end() if data[kind : kind + 1] in (b"]", b"}") else kind + 1
        while data[at : at + 1] in (b"]", b"}"):  # what ends here
            at += 1
    return values > MOST_VALUES


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
        raise BadCassette(f"mitmproxy cannot read the flow file: {words.rstrip('.')}.") from error


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
    head = request_head(asked.method, asked.url, _headers(asked.headers, remarks))
    body, note = asked.raw_content, None
    if body is None:
        body, note = b"", "the request's body passed by as a stream, and the file does not hold it"
        remarks.add("the body of a request is not in the file: a replay will not recognise it")
    response, ending, reason = _answer(flow, head.method, remarks)
    if ending is None:
        remarks.add(f"an answer cannot be played: {reason}")
        note, reason = "; ".join(filter(None, (note, reason))), None
    return ForeignExchange(
        request=fitted_request(HttpRequest(head=head, body=body), remarks),
        response=response,
        started=sound_moment(asked.timestamp_start),
        ms=_ms(asked, answered),
        ending=ending,
        reason=reason,
        note=note,
    )


def _answer(
    flow: Any, method: str, remarks: Remarks
) -> tuple[HttpResponse | None, Ending | None, str | None]:
    """The answer, how it ended, and why; without an ending, why it cannot be played."""
    answered = flow.response
    reason = None if flow.error is None else str(flow.error.msg)[:300]
    if answered is None:
        if reason is None:
            return None, None, "the flow file was written before it came"
        return None, Ending.NO_ANSWER, reason
    head = ResponseHead(
        status=answered.status_code,
        reason=answered.reason if answered.reason.isascii() and answered.reason.isprintable() else "",
        headers=_headers(answered.headers, remarks),
    )
    if head.status == 101:
        return _conversation(flow, head)
    if not 200 <= head.status <= 999:
        return None, None, f"status {head.status} is only the beginning of an answer"
    if answered.raw_content is None:
        return None, None, "it passed by as a stream, and the file does not hold its body"
    trailers = () if answered.trailers is None else _headers(answered.trailers, remarks)
    whole = HttpResponse(head=head, body=answered.raw_content, chunks=(), trailers=trailers)
    fitting = fitted_response(method, whole, remarks, cut=reason is not None)
    return fitting, Ending.COMPLETE if reason is None else _cut(reason), reason


def _cut(reason: str) -> Ending:
    return Ending.CLIENT_CLOSED if "client disconnected" in reason.lower() else Ending.UPSTREAM_CUT


def _conversation(flow: Any, head: ResponseHead) -> tuple[HttpResponse | None, Ending | None, str | None]:
    told = flow.websocket
    if told is None:
        return None, None, "the connection switched to a protocol that is not recorded"
    began = flow.response.timestamp_end or flow.response.timestamp_start or 0.0
    messages = [
        Message(
            one.from_client,
            round((one.timestamp - began) * 1_000_000),
            OPS.get(int(one.type.value), "binary"),
            one.content,
        )
        for one in told.messages
        if not one.dropped
    ]
    if told.close_code is not None:
        at = 0 if told.timestamp_end is None else round((told.timestamp_end - began) * 1_000_000)
        payload = close_payload(told.close_code, told.close_reason or "")
        messages.append(Message(bool(told.closed_by_client), at, "close", payload))
    body = frame_log(messages)
    closed = told.close_code not in (None, 1006)
    reason = None if closed else "the connection ended without a word"
    ending = Ending.COMPLETE if closed else Ending.UPSTREAM_CUT
    return HttpResponse(head=head, body=body, chunks=()), ending, reason


def _ms(asked: Any, answered: Any) -> float | None:
    began = asked.timestamp_end or asked.timestamp_start
    ended = None if answered is None else answered.timestamp_end
    return None if not began or not ended else max(0.0, (ended - began) * 1000)


def _headers(headers: Any, remarks: Remarks) -> Headers:
    return sound_headers(headers.fields, remarks)
