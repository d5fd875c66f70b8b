"""OpenAI Chat Completions, and all who speak it."""

from typing import Any

from rewind.formats.trace.apis.base import (
    Asking,
    Counts,
    Form,
    Result,
    Said,
    Turn,
    Use,
    json_or_text,
    objects,
    only,
    text_at,
    text_of,
    told,
)

_OF_A_MESSAGE = frozenset(
    {"tool_calls", "function_call", "refusal", "audio", "annotations", "reasoning_content"}
)
"""Fields that only this API's messages have."""


class Chat:
    """Messages with ``tool_calls``, results under the role ``tool``."""

    name = "openai"
    together = None
    system_apart = False

    def said(self, value: Any) -> Said | None:
        if not isinstance(value, dict):
            return None
        if choices := objects(value.get("choices")):
            message = choices[0].get("message")
            if not isinstance(message, dict):
                message = {"role": "assistant", "content": text_at(choices[0], "text")}
            return Said(turns=(_back(message),), document=value)
        if value.get("role", "assistant") == "assistant" and _OF_A_MESSAGE & value.keys():
            message = {"role": "assistant", **value}
            return Said(turns=(_back(message),), document=_whole(message))
        return None

    def spoken(self, text: str, uses: tuple[Use, ...]) -> Said:
        message: Turn = {"role": "assistant", "content": text or None}
        if uses:
            message["tool_calls"] = [
                {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": _written(use)}}
                for use in uses
            ]
        return Said(turns=(message,), document=_whole(message))

    def user(self, content: Any) -> Turn:
        return {"role": "user", "content": content}

    def uses(self, turn: Turn) -> list[Use]:
        found = []
        for call in objects(turn.get("tool_calls")):
            inner = call.get("function") or call.get("custom")
            arguments = inner.get("arguments", inner.get("input")) if isinstance(inner, dict) else None
            found.append(Use(text_at(call, "id"), text_at(inner, "name"), json_or_text(arguments)))
        if isinstance(older := turn.get("function_call"), dict):
            found.append(Use("", text_at(older, "name"), json_or_text(older.get("arguments"))))
        return found

    def brought(self, result: Result) -> Turn:
        return {"role": "tool", "tool_call_id": result.id, "content": result.text}

    def form(self, asking: Asking) -> Form:
        system = asking.system
        first = () if system in (None, "", []) else ({"role": "system", "content": system},)
        return Form(
            target="/v1/chat/completions",
            before=only(("model", asking.model)),
            turns_at="messages",
            first=first,
            after={**only(("tools", asking.tools)), **asking.parameters},
        )

    def with_usage(self, document: dict[str, Any], usage: dict[str, Any], counts: Counts) -> dict[str, Any]:
        names = {"input": "prompt_tokens", "output": "completion_tokens"}
        told = usage if "prompt_tokens" in usage else {names[kind]: count for kind, count in counts.items()}
        return {**document, "usage": told}


def _back(message: dict[str, Any]) -> Turn:
    """As the API takes it: an SDK's dump has fields that it refuses when they are empty."""
    kept = {
        name: value for name, value in told(message, "content").items() if value != [] or name == "content"
    }
    if isinstance(kept.get("tool_calls"), list):
        kept["tool_calls"] = [told(call) for call in objects(kept["tool_calls"])]
    return {"role": "assistant", **kept}


def _whole(message: Turn) -> dict[str, Any]:
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message}]}


def _written(use: Use) -> str:
    return text_of({} if use.arguments is None else use.arguments)
