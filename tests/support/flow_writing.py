"""Writes a flow file with mitmproxy's own writer; run by the Python of mitmproxy's environment. Argument: the file."""

import gzip
import sys

from mitmproxy import flow, http, io, tcp, websocket
from mitmproxy.test import tflow
from wsproto.frame_protocol import Opcode

CHAT = "https://api.openai.com/v1/chat/completions"
STREAM = b'data: {"choices":[{"index":0,"delta":{"content":"Gr\xc3\xbc\xc3\x9fe"}}]}\n\ndata: [DONE]\n\n'
KEY = "sk-proj-Zx81kQm20Lw7Tr5YbNc4"


def asked(number: int, url: str = CHAT, method: str = "POST", **headers: str) -> http.HTTPFlow:
    """A request of its own, with its own second."""
    one = tflow.tflow()
    body = b'{"model":"gpt-4o-mini","messages":[{"role":"user","content":"question %d"}]}' % number
    one.request = http.Request.make(
        method,
        url,
        body if method == "POST" else b"",
        {"content-type": "application/json", "authorization": f"Bearer {KEY}", **headers},
    )
    one.request.timestamp_start = 1_700_000_000.0 + number
    one.request.timestamp_end = 1_700_000_000.0 + number
    one.response = None
    return one


def answered(one: http.HTTPFlow, body: bytes, status: int = 200, **headers: str) -> http.HTTPFlow:
    one.response = http.Response.make(status)
    one.response.headers = http.Headers(
        [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    )
    one.response.raw_content = body
    one.response.timestamp_start = one.request.timestamp_end + 0.1
    one.response.timestamp_end = one.request.timestamp_end + 0.25
    return one


def conversation(number: int) -> http.HTTPFlow:
    one = asked(number, "https://api.openai.com/v1/realtime?model=m", "GET", connection="upgrade", upgrade="websocket")
    answered(one, b"", 101, connection="upgrade", upgrade="websocket")
    began = one.response.timestamp_end
    one.websocket = websocket.WebSocketData(
        messages=[
            websocket.WebSocketMessage(Opcode.TEXT, True, '{"say":"hi ü"}'.encode(), began + 1),
            websocket.WebSocketMessage(Opcode.TEXT, False, b'{"said":"hello"}', began + 2),
            websocket.WebSocketMessage(Opcode.BINARY, False, b"\x00\xff", began + 3),
        ],
        closed_by_client=True,
        close_code=1000,
        close_reason="bye",
        timestamp_end=began + 4,
    )
    return one


def failed(one: http.HTTPFlow, why: str) -> http.HTTPFlow:
    one.error = flow.Error(why)
    return one


def other() -> tcp.TCPFlow:
    return tflow.ttcpflow()


whole = b'{"choices":[{"message":{"role":"assistant","content":"one"}}]}'
packed = gzip.compress(b'{"choices":[{"message":{"role":"assistant","content":"two"}}]}', mtime=0)
streamed = answered(asked(4), b"", content_type="text/event-stream", transfer_encoding="chunked")
streamed.response.raw_content = None
FLOWS = [
    # As they ended, not as they began: the second call was asked first.
    answered(asked(2), packed, content_type="application/json", content_encoding="gzip"),
    answered(asked(1), whole, content_type="application/json", content_length=str(len(whole))),
    answered(asked(3), STREAM, content_type="text/event-stream", transfer_encoding="chunked"),
    streamed,
    failed(asked(5), "connection refused"),
    failed(
        answered(asked(6), b'{"half":', content_type="application/json", content_length="99"), "peer closed connection"
    ),
    conversation(7),
    answered(asked(8, "https://intern.example/tool?token=x", "GET"), b"tool", content_type="text/plain"),
    other(),
]

with open(sys.argv[1], "wb") as file:
    writer = io.FlowWriter(file)
    for one in FLOWS:
        writer.add(one)
