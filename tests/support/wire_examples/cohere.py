"""Cohere Chat, in its present form and in the older one."""

from typing import Any

from rewind.model.http import HttpRequest
from support.exchanges import answer_with
from support.wire_examples import said
from support.wire_examples.said import Example, Stream, events, lines, pieces, refused, to, written

Fields = dict[str, Any]
COUNTED: Fields = {
    "billed_units": {"input_tokens": said.READ - 50, "output_tokens": said.WRITTEN - 5},
    "tokens": {"input_tokens": said.READ, "output_tokens": said.WRITTEN},
}


def _request(path: str, body: Fields) -> HttpRequest:
    return to(path, body, host="api.cohere.com")


def asked(**more: Any) -> Fields:
    call, name, given = said.EARLIER_CALL
    return {
        "model": said.MODEL,
        "temperature": 0.5,
        "messages": [
            {"role": "system", "content": said.SYSTEM},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": said.QUESTION},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{said.PNG}"}},
                ],
            },
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": call, "type": "function", "function": {"name": name, "arguments": written(given)}}
                ],
            },
            {"role": "tool", "tool_call_id": call, "content": said.RESULT},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": said.TOOL, "description": said.TOOL_SAYS, "parameters": said.SCHEMA},
            }
        ],
        **more,
    }


def whole() -> Fields:
    return {
        "id": said.ANSWER_ID,
        "message": {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": said.THOUGHT}, {"type": "text", "text": said.TEXT}],
            "tool_calls": [
                {"id": call, "type": "function", "function": {"name": name, "arguments": written(given)}}
                for call, name, given in said.CALLS
            ],
        },
        "finish_reason": "TOOL_CALL",
        "usage": COUNTED,
    }


def _event(kind: str, index: int | None = None, **message: Any) -> Fields:
    place = {} if index is None else {"index": index}
    return {"type": kind, **place, "delta": {"message": message}}


def stream_documents() -> list[Fields]:
    documents = [{**_event("message-start", role="assistant", content=[], tool_calls=[]), "id": said.ANSWER_ID}]
    for index, (kind, text) in enumerate((("thinking", said.THOUGHT), ("text", said.TEXT))):
        documents.append(_event("content-start", index, content={"type": kind, kind: ""}))
        documents += [_event("content-delta", index, content={kind: piece}) for piece in pieces(text)]
        documents.append({"type": "content-end", "index": index})
    for index, (call, name, given) in enumerate(said.CALLS):
        function = {"name": name, "arguments": ""}
        begun = {"id": call, "type": "function", "function": function}
        documents.append(_event("tool-call-start", index, tool_calls=begun))
        documents += [
            _event("tool-call-delta", index, tool_calls={"function": {"arguments": piece}})
            for piece in pieces(written(given))
        ]
        documents.append({"type": "tool-call-end", "index": index})
    return documents


def _ended(**delta: Any) -> Fields:
    return {"type": "message-end", "id": said.ANSWER_ID, "delta": delta}


def older(**more: Any) -> Fields:
    _, name, given = said.EARLIER_CALL
    return {
        "model": said.MODEL,
        "temperature": 0.5,
        "preamble": said.SYSTEM,
        "message": said.QUESTION,
        "tools": [
            {
                "name": said.TOOL,
                "description": said.TOOL_SAYS,
                "parameter_definitions": {"city": {"type": "str", "required": True}},
            }
        ],
        "chat_history": [{"role": "CHATBOT", "message": "", "tool_calls": [{"name": name, "parameters": given}]}],
        "tool_results": [{"call": {"name": name, "parameters": given}, "outputs": [{"answer": said.RESULT}]}],
        **more,
    }


OLDER_WHOLE: Fields = {
    "response_id": said.ANSWER_ID,
    "generation_id": "generation_1",
    "text": said.TEXT,
    "finish_reason": "COMPLETE",
    "tool_calls": [{"name": name, "parameters": given} for _, name, given in said.CALLS],
    "meta": COUNTED,
}
OLDER_LINES: list[Fields] = [
    {"event_type": "stream-start", "generation_id": "generation_1", "is_finished": False},
    *({"event_type": "text-generation", "text": piece, "is_finished": False} for piece in pieces(said.TEXT)),
    {
        "event_type": "tool-calls-generation",
        "text": said.TEXT,
        "tool_calls": OLDER_WHOLE["tool_calls"],
        "is_finished": False,
    },
]
OLDER_END: Fields = {
    "event_type": "stream-end",
    "finish_reason": "COMPLETE",
    "response": OLDER_WHOLE,
    "is_finished": True,
}
STREAMING = _request("/v2/chat", asked(stream=True))
OLDER_STREAMING = _request("/v1/chat", older(stream=True))

EXAMPLES = (
    Example(
        api="Cohere Chat",
        paths=("/v2/chat",),
        request=_request("/v2/chat", asked()),
        whole=answer_with(whole()),
        streams=(
            Stream(
                format="SSE",
                request=STREAMING,
                response=events(*stream_documents(), _ended(finish_reason="TOOL_CALL", usage=COUNTED), named=True),
            ),
        ),
        broken=Stream(
            format="SSE",
            request=STREAMING,
            response=events(*stream_documents(), _ended(finish_reason="ERROR", error=said.BROKE_OFF)),
        ),
        refused=refused({"id": said.ANSWER_ID, "message": said.REFUSED}),
    ),
    Example(
        api="Cohere Chat (older)",
        paths=("/v1/chat",),
        request=_request("/v1/chat", older()),
        whole=answer_with(OLDER_WHOLE),
        streams=(Stream(format="NDJSON", request=OLDER_STREAMING, response=lines(*OLDER_LINES, OLDER_END)),),
        refused=refused({"message": said.REFUSED}),
    ),
)
