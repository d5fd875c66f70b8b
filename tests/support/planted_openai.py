"""OpenAI's two APIs as planted runs write them: Chat Completions and Responses."""

import json
from typing import Any

from rewind.model.http import HttpRequest
from rewind.model.message import Answered, Asked, Message, Part, Role, Text, ToolUse, text_of
from support.planted_style import Style
from support.planted_wire import Fields, event, post, results_of, spoken, uses_of, without_nothing

_HOST = "api.openai.com"
_CREATED = 1_772_442_000


def _error(status: int, message: str) -> Fields:
    kinds = {400: "invalid_request_error", 429: "requests"}
    return {"error": {"message": message, "type": kinds.get(status, "server_error"), "code": None}}


class Chat:
    """``/v1/chat/completions``."""

    call_prefix = "call_"

    def request(self, asked: Asked, style: Style) -> HttpRequest:
        given = asked.parameters
        system = [{"role": "system", "content": text_of(asked.system)}] if asked.system else []
        body = without_nothing(
            model=asked.model,
            messages=system + [one for message in asked.messages for one in self._messages(message, style)],
            tools=[
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
                }
                for tool in asked.tools
            ]
            or None,
            temperature=given.get("temperature"),
            max_completion_tokens=given.get("limit"),
            top_p=given.get("top_p"),
            stop=given.get("stop"),
            tool_choice=given.get("tool_choice"),
            reasoning_effort=given.get("effort"),
            prompt_cache_key=style.own("cache_"),
            stream=asked.streamed or None,
            stream_options={"include_usage": True} if asked.streamed else None,
        )
        return post(_HOST, "/v1/chat/completions", body, style)

    def _messages(self, message: Message, style: Style) -> list[Fields]:
        if message.role is Role.TOOL:
            return [
                {"role": "tool", "tool_call_id": result.id, "content": result.text} for result in results_of(message)
            ]
        written: Fields = {"role": message.role.value, "content": spoken(message) or None}
        if uses := uses_of(message):
            written["tool_calls"] = [self._call(use, style.arguments(use.arguments)) for use in uses]
        return [written]

    def _call(self, use: ToolUse, arguments: str) -> Fields:
        return {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": arguments}}

    def _stop(self, answered: Answered) -> str:
        return answered.stop or ("tool_calls" if answered.tool_uses else "stop")

    def _usage(self, answered: Answered) -> Fields:
        read, said = answered.usage.input or 0, answered.usage.output or 0
        return {"prompt_tokens": read, "completion_tokens": said, "total_tokens": read + said}

    def whole(self, answered: Answered, style: Style) -> Fields:
        message: Fields = {"role": "assistant", "content": answered.text or None, "refusal": None}
        if answered.tool_uses:
            message["tool_calls"] = [self._call(use, json.dumps(dict(use.arguments))) for use in answered.tool_uses]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._stop(answered)}
        return {
            "id": answered.id,
            "object": "chat.completion",
            "created": _CREATED,
            "model": answered.model,
            "choices": [choice],
            "usage": self._usage(answered),
            "system_fingerprint": style.name("fp_", 10),
        }

    def events(self, answered: Answered, style: Style) -> list[bytes]:
        deltas: list[Fields] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in style.pieces(answered.text)]
        for index, use in enumerate(answered.tool_uses):
            deltas.append({"tool_calls": [{"index": index, **self._call(use, "")}]})
            deltas += [
                {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                for piece in style.pieces(json.dumps(dict(use.arguments)))
            ]
        fingerprint = style.name("fp_", 10)

        def chunk(choices: list[Fields], usage: Fields | None = None) -> bytes:
            head = {"id": answered.id, "object": "chat.completion.chunk", "created": _CREATED}
            rest = {"model": answered.model, "system_fingerprint": fingerprint, "choices": choices}
            return event({**head, **rest, "usage": usage})

        return [
            *(chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas),
            chunk([{"index": 0, "delta": {}, "finish_reason": self._stop(answered)}]),
            chunk([], self._usage(answered)),
            b"data: [DONE]\n\n",
        ]

    def error(self, status: int, message: str) -> Fields:
        return _error(status, message)

    def error_event(self, message: str) -> bytes:
        return event(_error(500, message))


class Responses:
    """``/v1/responses``, with the whole history in every request or with ``previous_response_id``."""

    call_prefix = "call_"

    def request(self, asked: Asked, style: Style) -> HttpRequest:
        given = asked.parameters
        effort = given.get("effort")
        body = without_nothing(
            model=asked.model,
            instructions=text_of(asked.system) or None,
            input=[item for message in asked.messages for item in self._items(message, style)],
            previous_response_id=asked.continues,
            tools=[
                {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.schema}
                for tool in asked.tools
            ]
            or None,
            temperature=given.get("temperature"),
            max_output_tokens=given.get("limit"),
            top_p=given.get("top_p"),
            tool_choice=given.get("tool_choice"),
            reasoning={"effort": effort} if effort else None,
            metadata={"trace_id": style.own("")},
            stream=asked.streamed or None,
        )
        return post(_HOST, "/v1/responses", body, style)

    def _items(self, message: Message, style: Style) -> list[Fields]:
        if message.role is Role.TOOL:
            return [
                {"type": "function_call_output", "call_id": result.id, "output": result.text}
                for result in results_of(message)
            ]
        if message.role is not Role.ASSISTANT:
            return [{"role": message.role.value, "content": spoken(message)}]
        return [self._said(part, style) for part in message.parts]

    def _said(self, part: Part, style: Style) -> Fields:
        if isinstance(part, Text):
            content = [{"type": "output_text", "text": part.text, "annotations": []}]
            return {"type": "message", "role": "assistant", "content": content}
        assert isinstance(part, ToolUse), "the scripted model says words and asks for tools"
        arguments = style.arguments(part.arguments)
        return {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": arguments}

    def _output(self, answered: Answered, style: Style) -> list[Fields]:
        items: list[Fields] = []
        for part in answered.parts:
            if isinstance(part, Text):
                content = [{"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}]
                named = {"type": "message", "id": style.name("msg_"), "role": "assistant"}
                items.append({**named, "status": "completed", "content": content})
            elif isinstance(part, ToolUse):
                named = {"type": "function_call", "id": style.name("fc_"), "call_id": part.id}
                arguments = json.dumps(dict(part.arguments))
                items.append({**named, "name": part.name, "arguments": arguments, "status": "completed"})
        return items

    def _response(self, answered: Answered, **more: Any) -> Fields:
        read, said = answered.usage.input or 0, answered.usage.output or 0
        return {
            "id": answered.id,
            "object": "response",
            "created_at": _CREATED,
            "status": "completed",
            "error": None,
            "model": answered.model,
            "usage": {"input_tokens": read, "output_tokens": said, "total_tokens": read + said},
            **more,
        }

    def whole(self, answered: Answered, style: Style) -> Fields:
        return self._response(answered, output=self._output(answered, style))

    def events(self, answered: Answered, style: Style) -> list[bytes]:
        output = self._output(answered, style)
        begun = self._response(answered, output=[], usage=None, status="in_progress")
        found: list[Fields] = [{"type": "response.created", "response": begun}]
        for index, item in enumerate(output):
            found += [{**one, "output_index": index} for one in self._item_events(item, style)]
        found.append({"type": "response.completed", "response": self._response(answered, output=output)})
        return [event({**one, "sequence_number": number}, name=one["type"]) for number, one in enumerate(found)]

    def _item_events(self, item: Fields, style: Style) -> list[Fields]:
        empty: Fields
        if item["type"] == "message":
            where = {"item_id": item["id"], "content_index": 0}
            kind, text, empty = "response.output_text", item["content"][0]["text"], {"content": []}
        else:
            where = {"item_id": item["id"]}
            kind, text, empty = "response.function_call_arguments", item["arguments"], {"arguments": ""}
        return [
            {"type": "response.output_item.added", "item": {**item, **empty, "status": "in_progress"}},
            *({"type": f"{kind}.delta", **where, "delta": piece} for piece in style.pieces(text)),
            {"type": "response.output_item.done", "item": item},
        ]

    def error(self, status: int, message: str) -> Fields:
        return _error(status, message)

    def error_event(self, message: str) -> bytes:
        return event({"type": "error", "code": "server_error", "message": message}, name="error")
