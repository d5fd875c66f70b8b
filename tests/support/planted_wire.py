"""Calls and answers as the APIs write them: Anthropic's and Gemini's here, OpenAI's two beside it.

An agent of the planted runs speaks in our neutral values; a dialect turns them into the bytes of a request, of a
whole answer and of a streamed one. What our codecs make of those bytes is theirs to say.
"""

import json
from typing import Any, Protocol

from rewind.model.http import HttpRequest, RequestHead
from rewind.model.message import Answered, Asked, Message, Role, Text, ToolResult, ToolUse, text_of
from support.planted_style import Style

Fields = dict[str, Any]


class Dialect(Protocol):
    """One API's way of writing. ``parameters`` of what is asked have names of ours; a dialect has its own."""

    call_prefix: str
    """How ids of tool calls begin; empty where the API has none."""

    def request(self, asked: Asked, style: Style) -> HttpRequest: ...

    def whole(self, answered: Answered, style: Style) -> Fields: ...

    def events(self, answered: Answered, style: Style) -> list[bytes]: ...

    def error(self, status: int, message: str) -> Fields: ...

    def error_event(self, message: str) -> bytes: ...


def post(host: str, target: str, body: Fields, style: Style) -> HttpRequest:
    head = RequestHead(
        method="POST", scheme="https", host=host, port=443, target=target, headers=style.client_headers()
    )
    return HttpRequest(head=head, body=style.written(body))


def document(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def event(value: Fields, *, name: str = "") -> bytes:
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + document(value) + b"\n\n"


def without_nothing(**fields: Any) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}


def spoken(message: Message) -> str:
    return text_of(message.parts)


def uses_of(message: Message) -> list[ToolUse]:
    return [part for part in message.parts if isinstance(part, ToolUse)]


def results_of(message: Message) -> list[ToolResult]:
    return [part for part in message.parts if isinstance(part, ToolResult)]


class Anthropic:
    """``/v1/messages``."""

    call_prefix = "toolu_"

    def request(self, asked: Asked, style: Style) -> HttpRequest:
        given = asked.parameters
        effort = given.get("effort")
        body = without_nothing(
            model=asked.model,
            max_tokens=given.get("limit", 4096),
            metadata={"user_id": style.own("user_")},
            system=text_of(asked.system) or None,
            messages=[self._message(message) for message in asked.messages],
            tools=[
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
                for tool in asked.tools
            ]
            or None,
            temperature=given.get("temperature"),
            top_p=given.get("top_p"),
            stop_sequences=given.get("stop"),
            tool_choice={"type": given["tool_choice"]} if "tool_choice" in given else None,
            output_config={"effort": effort} if effort else None,
            stream=True if asked.streamed else None,
        )
        return post("api.anthropic.com", "/v1/messages", body, style)

    def _message(self, message: Message) -> Fields:
        if message.role is Role.TOOL:
            blocks: list[Fields] = [
                {"type": "tool_result", "tool_use_id": result.id, "content": result.text}
                for result in results_of(message)
            ]
            return {"role": "user", "content": blocks}
        if message.role is Role.ASSISTANT:
            return {"role": "assistant", "content": self._blocks(message.parts)}
        return {"role": message.role.value, "content": spoken(message)}

    def _blocks(self, parts: tuple[Any, ...]) -> list[Fields]:
        return [
            {"type": "text", "text": part.text}
            if isinstance(part, Text)
            else {"type": "tool_use", "id": part.id, "name": part.name, "input": dict(part.arguments)}
            for part in parts
        ]

    def _stop(self, answered: Answered) -> str:
        return answered.stop or ("tool_use" if answered.tool_uses else "end_turn")

    def _begun(self, answered: Answered) -> Fields:
        return {"id": answered.id, "type": "message", "role": "assistant", "model": answered.model}

    def whole(self, answered: Answered, style: Style) -> Fields:
        return {
            **self._begun(answered),
            "content": self._blocks(answered.parts),
            "stop_reason": self._stop(answered),
            "stop_sequence": None,
            "usage": {"input_tokens": answered.usage.input, "output_tokens": answered.usage.output},
        }

    def events(self, answered: Answered, style: Style) -> list[bytes]:
        usage = {"input_tokens": answered.usage.input, "output_tokens": 1}
        begun = {**self._begun(answered), "content": [], "stop_reason": None, "usage": usage}
        found: list[Fields] = [{"type": "message_start", "message": begun}]
        for index, part in enumerate(answered.parts):
            found += [{**one, "index": index} for one in self._block_events(part, style)]
        stop = {"stop_reason": self._stop(answered), "stop_sequence": None}
        found.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": answered.usage.output}})
        found.append({"type": "message_stop"})
        return [event(one, name=one["type"]) for one in found]

    def _block_events(self, part: Any, style: Style) -> list[Fields]:
        if isinstance(part, Text):
            block: Fields = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in style.pieces(part.text)]
        else:
            block = {"type": "tool_use", "id": part.id, "name": part.name, "input": {}}
            deltas = [
                {"type": "input_json_delta", "partial_json": piece}
                for piece in style.pieces(json.dumps(dict(part.arguments)))
            ]
        return [
            {"type": "content_block_start", "content_block": block},
            *({"type": "content_block_delta", "delta": delta} for delta in deltas),
            {"type": "content_block_stop"},
        ]

    def error(self, status: int, message: str) -> Fields:
        kinds = {400: "invalid_request_error", 429: "rate_limit_error", 529: "overloaded_error"}
        return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": message}}

    def error_event(self, message: str) -> bytes:
        return event(self.error(529, message), name="error")


class Gemini:
    """``:generateContent`` and ``:streamGenerateContent``; tool calls have no ids."""

    call_prefix = ""

    def request(self, asked: Asked, style: Style) -> HttpRequest:
        given = asked.parameters
        settings = without_nothing(
            temperature=given.get("temperature"),
            maxOutputTokens=given.get("limit"),
            topP=given.get("top_p"),
            stopSequences=given.get("stop"),
            thinkingConfig={"thinkingLevel": given["effort"]} if "effort" in given else None,
        )
        choice = given.get("tool_choice")
        declared = [
            {"name": tool.name, "description": tool.description, "parameters": tool.schema} for tool in asked.tools
        ]
        body = without_nothing(
            systemInstruction={"parts": [{"text": text_of(asked.system)}]} if asked.system else None,
            contents=[self._content(message) for message in asked.messages],
            tools=[{"functionDeclarations": declared}] if declared else None,
            toolConfig={"functionCallingConfig": {"mode": choice.upper()}} if choice else None,
            generationConfig=settings or None,
        )
        verb = "streamGenerateContent?alt=sse" if asked.streamed else "generateContent"
        host = "generativelanguage.googleapis.com"
        return post(host, f"/v1beta/models/{asked.model}:{verb}", body, style)

    def _content(self, message: Message) -> Fields:
        if message.role is Role.TOOL:
            parts = [
                {"functionResponse": {"name": result.name, "response": {"result": result.text}}}
                for result in results_of(message)
            ]
            return {"role": "user", "parts": parts}
        role = "model" if message.role is Role.ASSISTANT else "user"
        return {"role": role, "parts": [self._part(part) for part in message.parts]}

    def _part(self, part: Any) -> Fields:
        if isinstance(part, Text):
            return {"text": part.text}
        return {"functionCall": {"name": part.name, "args": dict(part.arguments)}}

    def _answer(self, answered: Answered, parts: list[Fields], *, last: bool) -> Fields:
        candidate: Fields = {"content": {"parts": parts, "role": "model"}, "index": 0}
        if last:
            candidate["finishReason"] = answered.stop or "STOP"
        read, said = answered.usage.input or 0, answered.usage.output or 0
        counts = {"promptTokenCount": read, "candidatesTokenCount": said, "totalTokenCount": read + said}
        return {
            "candidates": [candidate],
            "usageMetadata": counts,
            "modelVersion": answered.model,
            "responseId": answered.id,
        }

    def whole(self, answered: Answered, style: Style) -> Fields:
        return self._answer(answered, [self._part(part) for part in answered.parts], last=True)

    def events(self, answered: Answered, style: Style) -> list[bytes]:
        parts: list[Fields] = []
        for part in answered.parts:
            if isinstance(part, Text):
                parts += [{"text": piece} for piece in style.pieces(part.text)]
            else:
                parts.append(self._part(part))
        last = len(parts) - 1
        return [
            event(self._answer(answered, [part], last=number == last)).replace(b"\n\n", b"\r\n\r\n")
            for number, part in enumerate(parts)
        ]

    def error(self, status: int, message: str) -> Fields:
        kinds = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
        return {"error": {"code": status, "message": message, "status": kinds.get(status, "INTERNAL")}}

    def error_event(self, message: str) -> bytes:
        return event(self.error(503, message)).replace(b"\n\n", b"\r\n\r\n")
