"""Tools that the agent runs itself and tells us of: a call that never was on the wire, kept in the form of one.

The request is ``CALL tool:NAME`` with the body ``{"arguments": …}``, the answer 200 with ``{"result": …}`` or 500
with ``{"error": "…"}``. So a tool's step is stored, matched, replayed and shown like any other. ``types`` beside the
arguments tells apart what is the same JSON; what else stands in an answer (``types``, ``exception``) is for whoever
gives the result back, see ``rewind/sdk/tool_calls.py``.
"""

import json
from typing import Any
from urllib.parse import unquote

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked, Message, Role, Text, ToolResult, ToolUse
from rewind.model.step import StepKind
from rewind.providers.api import Api, Lazy, Speaker
from rewind.providers.shared.answer_stream import error_of, read_answer, request_json
from rewind.providers.shared.framing import whole
from rewind.providers.shared.json_fields import at, writable

SCHEME = "tool"


class ToolsReader:
    """Asked for by the agent's own code, answered by its own code."""

    def claims(self, head: RequestHead) -> bool:
        return head.scheme == SCHEME

    def asked(self, request: HttpRequest) -> Asked:
        document, note = request_json(request)
        use = ToolUse("", tool_name(request.head), at(document, "arguments"))
        return Asked(messages=(Message(Role.ASSISTANT, (use,)),), note=note)

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        answer = read_answer(response)
        document = answer.documents[0] if answer.documents else None
        error = error_of(response, answer)
        part = Text(error or _shown(at(document, "result")))
        result = ToolResult("", (part,), name=tool_name(request.head), failed=error is not None)
        return Answered(parts=(result,), error=error, note=answer.note)

    def refusal(self, message: str) -> dict[str, Any]:
        return {"error": message}


def _shown(result: Any) -> str:
    """A result as a model would be told it."""
    if isinstance(result, str):
        return writable(result)
    return writable(json.dumps(result, ensure_ascii=False, separators=(",", ":")))


def tool_name(head: RequestHead) -> str:
    return writable(unquote(head.path.strip("/"), errors="replace"))


def speaker_for(_request: HttpRequest, _asked: Asked) -> Speaker:
    """What a tool is said to have given back."""
    own = {"result", "error"}
    return Speaker(
        form="tools",
        is_model=False,
        document=lambda content: {"result": content.text},
        response=lambda document: whole(document if set(document) <= own else {"result": document}),
    )


API = Api(
    name="tools",
    kind=StepKind.TOOL_CALL,
    reader=ToolsReader(),
    is_llm=False,
    speaker=Lazy("rewind.providers.tools:speaker_for"),
)
