"""Tools that are called without a model: on MCP servers, and through ``@rewind.tool``."""

from typing import Any

from rewind.model.http import HttpRequest, RequestHead
from support.exchanges import answer_with
from support.wire_examples import said
from support.wire_examples.said import Example, Stream, events, refused, to, written

ARGUMENTS = said.EARLIER_CALL[2]
HEADERS = (("accept", "application/json, text/event-stream"), ("mcp-protocol-version", "2025-06-18"))


def rpc(**more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, **more}


CALLED = to(
    "/mcp",
    rpc(method="tools/call", params={"name": said.TOOL, "arguments": ARGUMENTS}),
    host="tools.example",
    headers=HEADERS,
)
RESULT = rpc(result={"content": [{"type": "text", "text": said.RESULT}], "isError": False})
PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
TOLD = HttpRequest(
    head=RequestHead(
        method="CALL", scheme="tool", host="", port=0, target=said.TOOL, headers=(("content-type", "application/json"),)
    ),
    body=written({"arguments": ARGUMENTS}).encode(),
)

EXAMPLES = (
    Example(
        api="MCP",
        paths=("/mcp",),
        request=CALLED,
        whole=answer_with(RESULT),
        streams=(Stream(format="SSE", request=CALLED, response=events(RESULT)),),
        broken=Stream(
            format="SSE",
            request=CALLED,
            response=events(PROGRESS, rpc(error={"code": -32603, "message": said.BROKE_OFF})),
        ),
        refused=refused(rpc(error={"code": -32602, "message": said.REFUSED})),
    ),
    Example(
        api="`@rewind.tool`",
        paths=("tool:{…}",),
        request=TOLD,
        whole=answer_with({"result": said.RESULT}),
        refused=refused({"error": said.REFUSED}),
    ),
)
