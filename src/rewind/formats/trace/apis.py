"""The four APIs that a trace may speak, and which of them an answer speaks. Pure functions over JSON."""

import json
import re
from typing import Any

from rewind.formats.trace.api import (
    AskedTool,
    Counts,
    RequestForm,
    RequestSettings,
    SpokenAnswer,
    ToolOutput,
    TraceApi,
    Turn,
    json_or_text,
    objects,
    only,
    text_at,
    text_of,
    without_nulls,
)

_CHAT_FIELDS = frozenset({"tool_calls", "function_call", "refusal", "audio", "annotations", "reasoning_content"})
"""Fields that only messages of Chat Completions have."""
_ITEM_ENDINGS = ("reasoning", "_call", "_call_output", "mcp_list_tools", "mcp_approval_request")
"""How the types of items of the Responses API end."""
_BLOCKS = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use"})
_PARTS = frozenset(
    {
        *("text", "function_call", "function_response", "inline_data", "file_data", "thought_signature"),
        *("thought", "executable_code", "code_execution_result", "tool_call", "tool_response"),
    }
)
_OUTSIDE_CONFIG = (
    *("contents", "tools", "systemInstruction", "safetySettings", "toolConfig", "cachedContent"),
    "labels",
)
"""What a request to Gemini names beside its generation settings."""
_MODELS = (("claude", "anthropic"), ("gemini", "gemini"))


class _Chat(TraceApi):
    """OpenAI Chat Completions, and all who speak it: messages with ``tool_calls``, results under the role ``tool``."""

    name = "openai"
    target = "/v1/chat/completions"
    input_name, output_name = "prompt_tokens", "completion_tokens"

    def said(self, value: Any) -> SpokenAnswer | None:
        if not isinstance(value, dict):
            return None
        if choices := objects(value.get("choices")):
            message = choices[0].get("message")
            if not isinstance(message, dict):
                message = {"role": "assistant", "content": text_at(choices[0], "text")}
            return SpokenAnswer(turns=(self._back(message),), document=value)
        if value.get("role", "assistant") == "assistant" and _CHAT_FIELDS & value.keys():
            message = {"role": "assistant", **value}
            return SpokenAnswer(turns=(self._back(message),), document=self._whole(message))
        return None

    def spoken(self, text: str, uses: tuple[AskedTool, ...]) -> SpokenAnswer:
        message: Turn = {"role": "assistant", "content": text or None}
        for use in uses:
            function = {"name": use.name, "arguments": _arguments(use)}
            message.setdefault("tool_calls", []).append({"id": use.id, "type": "function", "function": function})
        return SpokenAnswer(turns=(message,), document=self._whole(message))

    def uses(self, turn: Turn) -> list[AskedTool]:
        uses = []
        for call in objects(turn.get("tool_calls")):
            inner = call.get("function") or call.get("custom")
            arguments = inner.get("arguments", inner.get("input")) if isinstance(inner, dict) else None
            uses.append(AskedTool(text_at(call, "id"), text_at(inner, "name"), json_or_text(arguments)))
        if isinstance(older := turn.get("function_call"), dict):
            uses.append(AskedTool("", text_at(older, "name"), json_or_text(older.get("arguments"))))
        return uses

    def brought(self, result: ToolOutput) -> Turn:
        return {"role": "tool", "tool_call_id": result.id, "content": result.text}

    @staticmethod
    def _back(message: dict[str, Any]) -> Turn:
        """As the API takes it: an SDK's dump has fields that it refuses when they are empty."""
        fields = without_nulls(message, "content").items()
        kept = {name: value for name, value in fields if value != [] or name == "content"}
        if isinstance(kept.get("tool_calls"), list):
            kept["tool_calls"] = list(map(without_nulls, objects(kept["tool_calls"])))
        return {"role": "assistant", **kept}

    @staticmethod
    def _whole(message: Turn) -> dict[str, Any]:
        return {"object": "chat.completion", "choices": [{"index": 0, "message": message}]}


class _Responses(TraceApi):
    """OpenAI Responses: a ``response`` with its ``output`` of items; results are ``function_call_output`` items."""

    name = "responses"
    target = "/v1/responses"
    turns_at = "input"
    system_at = "instructions"

    def said(self, value: Any) -> SpokenAnswer | None:
        if isinstance(value, list):
            items = objects(value)
            return self._of(items) if items and all(map(self._is_item, items)) else None
        if not isinstance(value, dict):
            return None
        items = objects(value.get("output"))
        if value.get("object") == "response" or (items and all(map(self._is_item, items))):
            return self._of(items, value)
        return self.said([value]) if self._is_item(value) else None

    def spoken(self, text: str, uses: tuple[AskedTool, ...]) -> SpokenAnswer:
        content = {"type": "output_text", "text": text, "annotations": []}
        items: list[Turn] = [{"type": "message", "role": "assistant", "content": [content]}] if text else []
        for use in uses:
            named = {"call_id": use.id, "name": use.name, "arguments": _arguments(use)}
            items.append({"type": "function_call", **named})
        return self._of(items)

    def uses(self, turn: Turn) -> list[AskedTool]:
        kind = text_at(turn, "type")
        if kind not in ("function_call", "custom_tool_call"):
            return []
        arguments = turn.get("input") if kind == "custom_tool_call" else json_or_text(turn.get("arguments"))
        return [AskedTool(text_at(turn, "call_id"), text_at(turn, "name"), arguments)]

    def brought(self, result: ToolOutput) -> Turn:
        return {"type": "function_call_output", "call_id": result.id, "output": result.text}

    @staticmethod
    def _is_item(value: dict[str, Any]) -> bool:
        kind = text_at(value, "type")
        if kind == "message":
            blocks = objects(value.get("content"))
            return bool(blocks) and all(text_at(block, "type") in ("output_text", "refusal") for block in blocks)
        return kind.endswith(_ITEM_ENDINGS)

    def _of(self, items: list[dict[str, Any]], document: dict[str, Any] | None = None) -> SpokenAnswer:
        """An id ties an item to what the provider keeps; a fresh call may not find it there."""
        turns: list[Turn] = []
        lost: tuple[str, ...] = ()
        for item in items:
            if text_at(item, "type") != "reasoning":
                turns.append(self._without(item, "id", *(("status",) if "call_id" in item else ())))
            elif text_at(item, "encrypted_content"):
                turns.append(self._without(item, "status"))
            else:
                lost = ("thinking left out: only the provider has it",)
        whole = {"object": "response", "output": items} if document is None else document
        return SpokenAnswer(turns=tuple(turns), document=whole, lost=lost)

    @staticmethod
    def _without(item: dict[str, Any], *names: str) -> Turn:
        """What the item says, less these names."""
        kept = {name: value for name, value in without_nulls(item).items() if name not in names}
        for name in ("content", "summary"):
            if isinstance(blocks := kept.get(name), list):
                kept[name] = [without_nulls(block) if isinstance(block, dict) else block for block in blocks]
        return kept


class _Anthropic(TraceApi):
    """Anthropic Messages: content in blocks, results in a turn of the user."""

    name = "anthropic"
    target = "/v1/messages"
    system_at = "system"
    system_apart = True
    together = "content"

    def said(self, value: Any) -> SpokenAnswer | None:
        whole = value if isinstance(value, dict) else {"content": value}
        blocks = objects(whole.get("content"))
        if not blocks or not all(map(self._is_block, blocks)) or whole.get("role", "assistant") != "assistant":
            return None
        return self._of({**whole, "type": "message", "role": "assistant"}, blocks)

    def spoken(self, text: str, uses: tuple[AskedTool, ...]) -> SpokenAnswer:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        blocks += [{"type": "tool_use", "id": use.id, "name": use.name, "input": use.arguments or {}} for use in uses]
        return self._of({"type": "message", "role": "assistant", "content": blocks}, blocks)

    def uses(self, turn: Turn) -> list[AskedTool]:
        return [
            AskedTool(text_at(block, "id"), text_at(block, "name"), block.get("input"))
            for block in objects(turn.get("content"))
            if block.get("type") == "tool_use"
        ]

    def brought(self, result: ToolOutput) -> Turn:
        output = result.output
        as_is = isinstance(output, list) and output and all(text_at(block, "type") for block in objects(output))
        block = {
            "type": "tool_result",
            "tool_use_id": result.id,
            "content": output if as_is else result.text,
            **({"is_error": True} if result.failed else {}),
        }
        return {"role": "user", "content": [block]}

    @staticmethod
    def _is_block(value: dict[str, Any]) -> bool:
        kind = text_at(value, "type")
        return kind in _BLOCKS or kind.endswith("_tool_result")

    @staticmethod
    def _of(document: dict[str, Any], blocks: list[dict[str, Any]]) -> SpokenAnswer:
        kept = [block for block in blocks if block.get("type") != "text" or block.get("text")]
        turn = {"role": "assistant", "content": list(map(without_nulls, kept))}
        return SpokenAnswer(turns=(turn,) if kept else (), document=document)


class _Gemini(TraceApi):
    """Google Gemini: contents with parts, in camelCase on the wire and in snake_case in Google's SDK."""

    name = "gemini"
    system_apart = True
    together = "parts"
    usage_at = "usageMetadata"
    input_name, output_name = "promptTokenCount", "candidatesTokenCount"

    def said(self, value: Any) -> SpokenAnswer | None:
        if isinstance(value, list):
            return self.said({"role": "model", "parts": value}) if value and _are_parts(value) else None
        if not isinstance(value, dict):
            return None
        if candidates := objects(value.get("candidates")):
            deep = ("usage_metadata", "prompt_feedback")
            document = {
                _camel(name): _camelised(inner) if name in deep else inner
                for name, inner in without_nulls(value).items()
            }
            document["candidates"] = [
                {**_renamed(candidate), "content": _content(candidate.get("content"))} for candidate in candidates
            ]
            content = document["candidates"][0]["content"]
            return SpokenAnswer(turns=(content,) if content["parts"] else (), document=document)
        if value.get("role", "model") == "model" and _are_parts(value.get("parts")):
            content = _content(value)
            return SpokenAnswer(turns=(content,), document={"candidates": [{"content": content}]})
        return None

    def spoken(self, text: str, uses: tuple[AskedTool, ...]) -> SpokenAnswer:
        parts: list[dict[str, Any]] = [{"text": text}] if text else []
        for use in uses:
            named = only(("id", use.id))
            parts.append({"functionCall": {**named, "name": use.name, "args": use.arguments or {}}})
        content = {"role": "model", "parts": parts}
        return SpokenAnswer(turns=(content,) if parts else (), document={"candidates": [{"content": content}]})

    def user(self, content: Any) -> Turn:
        parts = content if isinstance(content, list) else [content]
        return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}

    def uses(self, turn: Turn) -> list[AskedTool]:
        parts = objects(turn.get("parts"))
        calls = (part.get("functionCall", part.get("function_call")) for part in parts)
        return [
            AskedTool(text_at(call, "id"), text_at(call, "name"), call.get("args") or {})
            for call in calls
            if isinstance(call, dict)
        ]

    def brought(self, result: ToolOutput) -> Turn:
        response = result.output
        if not isinstance(response, dict):
            response = {"error" if result.failed else "result": response}
        given = {**only(("id", result.id)), "name": result.name, "response": response}
        return {"role": "user", "parts": [{"functionResponse": given}]}

    def form(self, settings: RequestSettings) -> RequestForm:
        config = _renamed(settings.parameters)
        for name in ("generationConfig", "config"):
            config = {**_renamed(config.pop(name, None)), **config}
        own = config.pop("systemInstruction", None), config.pop("tools", None)
        system, tools = settings.system or own[0], settings.tools or own[1]
        beside = {name: config.pop(name) for name in _OUTSIDE_CONFIG if name in config}
        instruction = {"parts": [{"text": system}]} if isinstance(system, str) else system
        model = re.sub(r"[^\w.@-]", "_", settings.model.rpartition("/")[2]) or "unknown"
        return RequestForm(
            target=f"/v1beta/models/{model}:generateContent",
            before=only(("systemInstruction", instruction)),
            turns_at="contents",
            after={**only(("tools", tools), ("generationConfig", config)), **beside},
        )

    def with_usage(self, document: dict[str, Any], usage: dict[str, Any], counts: Counts) -> dict[str, Any]:
        return super().with_usage(document, _camelised(usage), counts)


def _are_parts(value: Any) -> bool:
    parts = objects(value)
    return bool(parts) and all("type" not in part and _PARTS & set(map(_snake, part)) for part in parts)


def _content(value: Any) -> Turn:
    """The model's turn as the API takes it back."""
    parts = [_part(part) for part in objects(value.get("parts"))] if isinstance(value, dict) else []
    return {"role": "model", "parts": [part for part in parts if part and part != {"text": ""}]}


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """One part, its names as on the wire; what a function is called with, or gave, stays as it is."""
    renamed: dict[str, Any] = {}
    for name, value in without_nulls(part).items():
        inner = without_nulls(value) if isinstance(value, dict) else value
        if name in ("thought_signature", "thoughtSignature") and isinstance(value, str):
            inner = value.removeprefix("base64:")  # bytes, as the recorder writes them
        renamed[_camel(name)] = inner
    return renamed


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name)


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _renamed(value: Any) -> dict[str, Any]:
    """The fields of an object under their names on the wire; what is in them stays as it is."""
    fields = without_nulls(value) if isinstance(value, dict) else {}
    return {_camel(name): inner for name, inner in fields.items()}


def _camelised(value: Any) -> Any:
    """Names as on the wire, without nulls, at every level."""
    if isinstance(value, dict):
        return {_camel(name): _camelised(inner) for name, inner in value.items() if inner is not None}
    return [_camelised(inner) for inner in value] if isinstance(value, list) else value


def _arguments(use: AskedTool) -> str:
    return text_of({} if use.arguments is None else use.arguments)


# ── which API ────────────────────────────────────────────────────────────────────────────────────────────────

APIS: dict[str, TraceApi] = {api.name: api for api in (_Chat(), _Responses(), _Anthropic(), _Gemini())}
"""In the order in which they are asked."""


def recognised(value: Any) -> tuple[TraceApi, SpokenAnswer] | None:
    """The API of an answer, and the answer; ``None`` for words that any of them could have given."""
    if isinstance(value, str):
        # An answer may be handed over as JSON already: ``response.model_dump_json()``.
        try:
            value = json.loads(value) if value.startswith(("{", "[")) else None
        except (ValueError, RecursionError):
            return None
    return next(((api, said) for api in APIS.values() if (said := api.said(value)) is not None), None)


def words_of(value: Any) -> str | None:
    """A plain text, or a message that holds nothing but one."""
    if isinstance(value, dict) and value.get("role", "assistant") in ("assistant", "model", "ai"):
        value = value.get("content")
    return value if isinstance(value, str) else None


def likely_api(request: dict[str, Any]) -> TraceApi | None:
    """By the request where the answer does not tell: the names of its fields, its messages, or the model."""
    if "contents" in request or "system_instruction" in request:
        return APIS["gemini"]
    if "instructions" in request or "previous_response_id" in request:
        return APIS["responses"]
    for turn in objects(request.get("messages") or request.get("input")):
        if name := _api_of_turn(turn):
            return APIS[name]
    model = text_at(request, "model").lower().rpartition("/")[2]
    return next((APIS[api] for beginning, api in _MODELS if model.startswith(beginning)), None)


def _api_of_turn(turn: dict[str, Any]) -> str | None:
    kinds = {text_at(block, "type") for block in objects(turn.get("content"))}
    if turn.get("role") == "tool" or "tool_calls" in turn:
        return "openai"
    if "parts" in turn:
        return "gemini"
    if kinds & {"tool_use", "tool_result", "thinking"}:
        return "anthropic"
    return "responses" if "type" in turn or kinds & {"input_text", "output_text"} else None
