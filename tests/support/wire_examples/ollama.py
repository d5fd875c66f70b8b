"""Ollama's own API: chat and generate, whole and one document a line."""

from typing import Any

from support.exchanges import answer_with
from support.wire_examples import said
from support.wire_examples.said import Example, Stream, lines, pieces, refused, to

Fields = dict[str, Any]
MADE: Fields = {"model": said.ANSWERED_BY, "created_at": "2026-01-01T00:00:00Z"}
END: Fields = {
    "done": True,
    "done_reason": "stop",
    "total_duration": 5_000_000,
    "prompt_eval_count": said.READ,
    "eval_count": said.WRITTEN,
}


def _call(name: str, given: Fields) -> Fields:
    return {"function": {"name": name, "arguments": given}}


def asked(**more: Any) -> Fields:
    _, name, given = said.EARLIER_CALL
    return {
        "model": said.MODEL,
        "options": {"temperature": 0.5},
        "messages": [
            {"role": "system", "content": said.SYSTEM},
            {"role": "user", "content": said.QUESTION, "images": [said.PNG]},
            {"role": "assistant", "content": "", "tool_calls": [_call(name, given)]},
            {"role": "tool", "tool_name": name, "content": said.RESULT},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": said.TOOL, "description": said.TOOL_SAYS, "parameters": said.SCHEMA},
            }
        ],
        **more,
    }


def prompted(**more: Any) -> Fields:
    return {
        "model": said.MODEL,
        "options": {"temperature": 0.5},
        "system": said.SYSTEM,
        "prompt": said.QUESTION,
        "images": [said.PNG],
        **more,
    }


def line(**message: Any) -> Fields:
    return {**MADE, "message": {"role": "assistant", "content": "", **message}, "done": False}


CALLS = [_call(name, given) for _, name, given in said.CALLS]
CHAT_LINES = [
    *(line(thinking=piece) for piece in pieces(said.THOUGHT)),
    *(line(content=piece) for piece in pieces(said.TEXT)),
    *(line(tool_calls=[call]) for call in CALLS),
]
GENERATE_LINES = [
    *({**MADE, "response": "", "thinking": piece, "done": False} for piece in pieces(said.THOUGHT)),
    *({**MADE, "response": piece, "done": False} for piece in pieces(said.TEXT)),
]
CHATTING, GENERATING = to("/api/chat", asked()), to("/api/generate", prompted())

EXAMPLES = (
    Example(
        api="Ollama chat",
        paths=("/api/chat",),
        request=to("/api/chat", asked(stream=False)),
        whole=answer_with({**line(content=said.TEXT, thinking=said.THOUGHT, tool_calls=CALLS), **END}),
        streams=(Stream(format="NDJSON", request=CHATTING, response=lines(*CHAT_LINES, {**line(), **END})),),
        broken=Stream(format="NDJSON", request=CHATTING, response=lines(*CHAT_LINES, {"error": said.BROKE_OFF})),
        refused=refused({"error": said.REFUSED}),
    ),
    Example(
        api="Ollama generate",
        paths=("/api/generate",),
        request=to("/api/generate", prompted(stream=False)),
        whole=answer_with({**MADE, "response": said.TEXT, "thinking": said.THOUGHT, **END}),
        streams=(
            Stream(
                format="NDJSON", request=GENERATING, response=lines(*GENERATE_LINES, {**MADE, "response": "", **END})
            ),
        ),
        broken=Stream(format="NDJSON", request=GENERATING, response=lines(*GENERATE_LINES, {"error": said.BROKE_OFF})),
        refused=refused({"error": said.REFUSED}),
    ),
)
