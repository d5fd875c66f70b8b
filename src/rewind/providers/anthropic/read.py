"""Anthropic Messages: ``/v1/messages`` on any host, and Claude on Vertex AI."""

from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import (
    Answered,
    Asked,
    Media,
    Message,
    Other,
    Part,
    Role,
    Text,
    Thinking,
    ToolDefinition,
    ToolResult,
    ToolUse,
)
from rewind.providers.api import Volatile
from rewind.providers.shared.answer_draft import AnswerDraft, UsageTable, parameters_of
from rewind.providers.shared.answer_stream import counted_tokens, read_answer, request_json
from rewind.providers.shared.json_fields import at, count_at, inline, items_at, referred, text_at, words_at, writable
from rewind.wire.growing_json import read_each

TOOL_IDS = (
    Volatile("messages[*].content[*].id", "Names a tool call; drawn at random by model or framework.", linked=True),
    Volatile("messages[*].content[*].tool_use_id", "Refers to a tool call.", linked=True),
    Volatile("messages[*].content[*].caller.tool_id", "Refers to the server tool that called.", linked=True),
)

USAGE = UsageTable(
    # Anthropic counts what was cached apart; we count all the model read.
    input=(("input_tokens",), ("cache_read_input_tokens",), ("cache_creation_input_tokens",)),
    output=(("output_tokens",),),
    cache_read=(("cache_read_input_tokens",),),
    cache_write=(("cache_creation_input_tokens",),),
    reasoning=(("output_tokens_details", "thinking_tokens"),),
    more={
        "cache_write_1h_tokens": (("cache_creation", "ephemeral_1h_input_tokens"),),
        "web_searches": (("server_tool_use", "web_search_requests"),),
    },
)

_HOSTED_CALLS = ("server_tool_use", "mcp_tool_use")
_READ_FIELDS = ("model", "system", "messages", "tools", "stream", "anthropic_version")


VOLATILE = (
    *TOOL_IDS,
    Volatile("metadata.user_id", "For abuse detection; coding agents put a new session id in it every run."),
    Volatile("container", "Names a sandbox that an earlier answer opened.", linked=True),
    Volatile("container.id", "Names a sandbox that an earlier answer opened.", linked=True),
)


class AnthropicReader:
    """Answers are one ``message``, or its events in a stream."""

    def claims(self, head: RequestHead) -> bool:
        path = head.path.rstrip("/")
        vertex = "/publishers/anthropic/models/" in path and path.endswith((":rawPredict", ":streamRawPredict"))
        return head.method == "POST" and (path.endswith("/v1/messages") or vertex)

    def asked(self, request: HttpRequest) -> Asked:
        _, _, deployed = request.head.path.partition("/publishers/anthropic/models/")
        document, note = request_json(request)
        return asked_in(document, model=deployed.partition(":")[0], note=note)

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        answer = read_answer(response)
        return draft_of(answer.documents).answered(response, answer, USAGE)

    def refusal(self, message: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


class AnthropicCountingReader(AnthropicReader):
    """``count_tokens``: no model answers, so its number is shown and not added to anybody's usage."""

    def claims(self, head: RequestHead) -> bool:
        return head.method == "POST" and head.path.rstrip("/").endswith("/v1/messages/count_tokens")

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        return counted_tokens(response, "input_tokens")


# ── what is asked ────────────────────────────────────────────────────────────────────────────────────────────


def asked_in(document: Any, *, model: str = "", note: str | None = None) -> Asked:
    """A request document. Also read for Bedrock, which carries the same one and names the model elsewhere."""
    return Asked(
        model=words_at(document, "model") or model or None,
        system=_parts(at(document, "system")),
        messages=read_each(_message, items_at(document, "messages")),
        tools=read_each(_tool, items_at(document, "tools")),
        parameters=parameters_of(document, _READ_FIELDS),
        streamed=at(document, "stream") is True,
        note=note,
    )


def _message(turn: Any) -> Message:
    return Message(_role(turn), _parts(at(turn, "content")))


def _role(turn: Any) -> Role:
    match text_at(turn, "role"):
        case "assistant":
            return Role.ASSISTANT
        case "system":
            return Role.SYSTEM
    only_results = [text_at(block, "type") == "tool_result" for block in items_at(turn, "content")]
    return Role.TOOL if only_results and all(only_results) else Role.USER


def _tool(tool: Any) -> ToolDefinition:
    if (schema := at(tool, "input_schema")) is not None:
        return ToolDefinition(words_at(tool, "name"), words_at(tool, "description"), schema)
    kind = text_at(tool, "type")
    # Those that Anthropic runs itself carry a dated type; the ones below are run by the agent all the same.
    hosted = not kind.startswith(("bash_", "text_editor_", "computer_", "memory_", "custom"))
    settings = parameters_of(tool, ("name",))
    return ToolDefinition(words_at(tool, "name") or writable(kind), "", settings, hosted)


def _parts(content: Any, *, in_result: bool = False) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(writable(content)),) if content else ()
    blocks = content if isinstance(content, list) else []
    return tuple(part for block in blocks if (part := _part(block, in_result=in_result)) is not None)


def _part(block: Any, *, in_result: bool = False) -> Part | None:
    """``in_result``: results hold no results; what looks like one in there is kept unread, however deep it goes."""
    match kind := text_at(block, "type"):
        case "text":
            return Text(words_at(block, "text")) if text_at(block, "text") else None
        case "thinking":
            text = words_at(block, "thinking")
            return Thinking(text, sealed=not text)
        case "redacted_thinking":
            return Thinking("", sealed=True)
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            hosted = kind in _HOSTED_CALLS
            return ToolUse(words_at(block, "id"), words_at(block, "name"), at(block, "input"), hosted)
        case "tool_result" if not in_result:
            failed = at(block, "is_error") is True
            parts = _parts(at(block, "content"), in_result=True)
            return ToolResult(words_at(block, "tool_use_id"), parts, failed=failed)
        case "image" | "document":
            return _media(kind, at(block, "source"))
        case _ if kind.endswith("_tool_result") and not in_result:
            return _hosted_result(kind, block)
        case _:
            return Other(writable(kind), block)


def _hosted_result(kind: str, block: Any) -> ToolResult:
    content = at(block, "content")
    failed = at(block, "is_error") is True or text_at(content, "type").endswith("_error")
    blocks = content if isinstance(content, list) else [content]
    told = all(text_at(one, "type") == "text" for one in blocks)
    parts = _parts(content, in_result=True) if told else (Other(writable(kind), content),)
    return ToolResult(words_at(block, "tool_use_id"), parts, failed=failed, hosted=True)


def _media(kind: str, source: Any) -> Part:
    match text_at(source, "type"):
        case "base64":
            return inline(at(source, "data"), text_at(source, "media_type"), kind)
        case "text":
            return Text(words_at(source, "data"))
        case "url":
            return referred(text_at(source, "url"), kind=kind)
        case "file":
            return referred(text_at(source, "file_id"), kind=kind)
        case "content":
            return Other(kind, at(source, "content"))
        case _:
            return Media(kind)


# ── what is answered ─────────────────────────────────────────────────────────────────────────────────────────


def draft_of(documents: tuple[Any, ...]) -> AnswerDraft:
    """What an answer comes to. Also read for Bedrock, which carries the same documents in frames of its own."""
    draft = AnswerDraft()
    for document in documents:
        match text_at(document, "type"):
            case "message":
                _take_message(draft, document)
            case "message_start":
                _take_message(draft, at(document, "message"))
            case "content_block_start":
                _take_block(draft, count_at(document, "index"), at(document, "content_block"))
            case "content_block_delta":
                _take_delta(draft, count_at(document, "index"), at(document, "delta"))
            case "message_delta":
                draft.stopped(text_at(document, "delta", "stop_reason"))
                draft.count(at(document, "usage"))
    return draft


def _take_message(draft: AnswerDraft, message: Any) -> None:
    draft.named(message)
    draft.stopped(text_at(message, "stop_reason"))
    for place, block in enumerate(items_at(message, "content")):
        _take_block(draft, place, block)
    usage = at(message, "usage")
    draft.count(usage)
    draft.tier = text_at(usage, "service_tier") or draft.tier


def _take_block(draft: AnswerDraft, place: int | None, block: Any) -> None:
    match kind := text_at(block, "type"):
        case "text":
            draft.say(place, text_at(block, "text"))
        case "thinking":
            draft.think(place, text_at(block, "thinking"), signed=bool(text_at(block, "signature")))
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            tool = draft.tool(place)
            tool.id, tool.name = text_at(block, "id"), text_at(block, "name")
            tool.arguments, tool.hosted = at(block, "input"), kind in _HOSTED_CALLS
        case _:
            if (part := _part(block)) is not None:
                draft.put(place, part)


def _take_delta(draft: AnswerDraft, place: int | None, delta: Any) -> None:
    match text_at(delta, "type"):
        case "text_delta":
            draft.say(place, text_at(delta, "text"))
        case "thinking_delta":
            draft.think(place, text_at(delta, "thinking"))
        case "signature_delta":
            draft.think(place, "", signed=True)
        case "input_json_delta" if draft.has(place):
            draft.tool(place).pieces.append(text_at(delta, "partial_json"))
