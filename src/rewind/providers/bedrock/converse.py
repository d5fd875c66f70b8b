"""The shape of Bedrock's Converse: one for all models. Amazon Nova speaks it through InvokeModel too."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from rewind.model.message import (
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
from rewind.providers.shared.answer_draft import AnswerDraft, BlockPlace, UsageTable, parameters_of
from rewind.providers.shared.json_fields import (
    at,
    count_at,
    first_count,
    inline,
    items_at,
    referred,
    text_at,
    total,
    words_at,
    writable,
)
from rewind.wire.growing_json import read_each

USAGE = UsageTable(
    # Bedrock counts what was cached apart ("inputTokens" is the rest); we count all the model read.
    input=(("inputTokens",), ("cacheReadInputTokens",), ("cacheWriteInputTokens",)),
    output=(("outputTokens",),),
    cache_read=(("cacheReadInputTokens",),),
    cache_write=(("cacheWriteInputTokens",),),
    more={"cache_write_1h_tokens": (("cacheWrite1h",),)},
)

_ALSO_CALLED = {
    # What Nova says when it is invoked by itself.
    "cacheReadInputTokens": "cacheReadInputTokenCount",
    "cacheWriteInputTokens": "cacheWriteInputTokenCount",
}
_READ_FIELDS = ("modelId", "system", "messages", "toolConfig", "inferenceConfig", "schemaVersion")
_DOCUMENTS = {
    "pdf": "application/pdf",
    "csv": "text/csv",
    "html": "text/html",
    "txt": "text/plain",
    "md": "text/markdown",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


# ── what is asked ────────────────────────────────────────────────────────────────────────────────────────────


def asked_in(document: Any) -> Asked:
    """A request document; the path names the model."""
    settings = at(document, "inferenceConfig")
    choice = at(document, "toolConfig", "toolChoice")
    return Asked(
        model=words_at(document, "modelId") or None,
        system=_parts(items_at(document, "system")),
        messages=read_each(_message, items_at(document, "messages")),
        tools=tuple(
            defined for tool in items_at(document, "toolConfig", "tools") if (defined := _tool(tool)) is not None
        ),
        parameters={
            **parameters_of(settings, ()),
            **parameters_of(document, _READ_FIELDS),
            **({} if choice is None else {"toolChoice": choice}),
        },
    )


def _message(turn: Any) -> Message:
    parts = _parts(items_at(turn, "content"))
    match text_at(turn, "role"):
        case "assistant":
            return Message(Role.ASSISTANT, tuple(map(_by_the_model, parts)))
        case "system":
            return Message(Role.SYSTEM, parts)
    results = bool(parts) and all(isinstance(part, ToolResult) for part in parts)
    return Message(Role.TOOL if results else Role.USER, parts)


def _by_the_model(part: Part) -> Part:
    """A result inside the model's own turn is that of a tool which Bedrock ran."""
    return replace(part, hosted=True) if isinstance(part, ToolResult) else part


def _tool(tool: Any) -> ToolDefinition | None:
    if isinstance(spec := at(tool, "toolSpec"), dict):
        schema = at(spec, "inputSchema", "json")
        return ToolDefinition(words_at(spec, "name"), words_at(spec, "description"), schema)
    if isinstance(own := at(tool, "systemTool"), dict):
        return ToolDefinition(words_at(own, "name"), "", parameters_of(own, ("name",)), hosted=True)
    # What is left is the mark of a cache, which is no tool.
    return None


def _parts(blocks: Iterable[Any]) -> tuple[Part, ...]:
    return tuple(part for block in blocks if (part := _part(block)) is not None)


def _part(block: Any, *, within_result: bool = False) -> Part | None:
    """Each block is an object with one key, which says what it is."""
    for kind, value in block.items() if isinstance(block, dict) else ():
        # No result holds another; one that does all the same must not lead down without end.
        reader = None if within_result and kind == "toolResult" else _READERS.get(kind)
        if reader is not None:
            return reader(value)
    return Other(writable(next(iter(block))), block) if isinstance(block, dict) and block else None


def _text(value: Any) -> Part | None:
    return Text(writable(value)) if isinstance(value, str) and value else None


def _json(value: Any) -> Part:
    return Other("json", value)


def _thinking(value: Any) -> Part | None:
    text = words_at(value, "reasoningText", "text")
    # A signature without words stands for words that are kept back.
    kept_back = not text and bool(at(value, "redactedContent") or text_at(value, "reasoningText", "signature"))
    return Thinking(text, kept_back) if text or kept_back else None


def _tool_use(value: Any) -> Part:
    return ToolUse(words_at(value, "toolUseId"), words_at(value, "name"), at(value, "input"), _runs_itself(value))


def _runs_itself(tool_use: Any) -> bool:
    return text_at(tool_use, "type") == "server_tool_use"


def _tool_result(value: Any) -> Part:
    told = (_part(block, within_result=True) for block in items_at(value, "content"))
    parts = tuple(part for part in told if part is not None)
    return ToolResult(words_at(value, "toolUseId"), parts, failed=text_at(value, "status") == "error")


def _quoting(value: Any) -> Part | None:
    """A text with its sources."""
    return _text("".join(text_at(piece, "text") for piece in items_at(value, "content")))


def _guarded(value: Any) -> Part | None:
    if isinstance(picture := at(value, "image"), dict):
        return _media("image")(picture)
    return _text(text_at(value, "text", "text"))


def _cache_mark(_: Any) -> Part | None:
    """The model never sees it, and it moves on with every call: to show it would make each context look changed."""
    return None


def _media(kind: str) -> Callable[[Any], Part]:
    def read(value: Any) -> Part:
        form, source = text_at(value, "format"), at(value, "source")
        media_type = _DOCUMENTS.get(form, "") if kind == "document" else f"{kind}/{form}" if form else ""
        if isinstance(data := at(source, "bytes"), str):
            return inline(data, media_type, kind)
        if place := text_at(source, "s3Location", "uri"):
            return referred(place, media_type, kind)
        words = text_at(source, "text") or "\n".join(text_at(piece, "text") for piece in items_at(source, "content"))
        return _text(words) or Media(kind, writable(media_type))

    return read


_READERS: dict[str, Callable[[Any], Part | None]] = {
    "text": _text,
    "json": _json,
    "toolUse": _tool_use,
    "toolResult": _tool_result,
    "reasoningContent": _thinking,
    "citationsContent": _quoting,
    "searchResult": _quoting,
    "guardContent": _guarded,
    "cachePoint": _cache_mark,
    **{kind: _media(kind) for kind in ("image", "document", "video", "audio")},
}


# ── what is answered ─────────────────────────────────────────────────────────────────────────────────────────


def draft_of(documents: Iterable[Any]) -> AnswerDraft:
    """What an answer comes to: one document, or the events of a stream, each under its name."""
    draft = AnswerDraft()
    opened: dict[BlockPlace, tuple[dict[str, Any], list[Any]]] = {}
    for document in documents:
        for number, block in enumerate(items_at(document, "output", "message", "content")):
            _take_block(draft, number, block)
        _take_ending(draft, document)
        if isinstance(event := at(document, "contentBlockStart"), dict):
            _open(draft, opened, count_at(event, "contentBlockIndex"), at(event, "start"))
        if isinstance(event := at(document, "contentBlockDelta"), dict):
            _take_delta(draft, opened, count_at(event, "contentBlockIndex"), at(event, "delta"))
        _take_ending(draft, at(document, "messageStop"))
        _take_ending(draft, at(document, "metadata"))
    for place, (block, pieces) in opened.items():
        _take_block(draft, place, _closed(block, pieces))
    return draft


def _take_block(draft: AnswerDraft, place: BlockPlace, block: Any) -> None:
    if isinstance(use := at(block, "toolUse"), dict):
        tool = draft.tool(place)
        tool.id, tool.name, tool.hosted = text_at(use, "toolUseId"), text_at(use, "name"), _runs_itself(use)
        tool.arguments = at(use, "input")
    elif (part := _part(block)) is not None:
        draft.put(place, _by_the_model(part))


def _take_ending(draft: AnswerDraft, told: Any) -> None:
    draft.stopped(text_at(told, "stopReason"))
    draft.model = text_at(told, "trace", "promptRouter", "invokedModelId").rpartition("/")[2] or draft.model
    tier, latency = text_at(told, "serviceTier", "type"), text_at(told, "performanceConfig", "latency")
    # Latency-optimised answers are priced apart, as those of a tier are.
    draft.tier = (latency if tier in ("", "default") else tier) or draft.tier
    usage = at(told, "usage")
    draft.count(usage)
    by_age = items_at(usage, "cacheDetails")
    hours = total(*(count_at(row, "inputTokens") for row in by_age if text_at(row, "ttl") == "1h"))
    draft.count({"cacheWrite1h": hours})
    draft.count({name: first_count(usage, ((name,), (other,))) for name, other in _ALSO_CALLED.items()})


def _open(draft: AnswerDraft, opened: dict[BlockPlace, Any], place: BlockPlace, start: Any) -> None:
    """A result or a picture in a stream is put together from its pieces once they are all there."""
    if isinstance(at(start, "toolUse"), dict):
        # A tool without arguments gets no piece of them.
        _take_block(draft, place, {"toolUse": {"input": {}, **start["toolUse"]}})
    elif isinstance(start, dict) and start:
        opened[place] = (start, [])
        draft.put(place, Other(writable(next(iter(start))), start))


def _take_delta(draft: AnswerDraft, opened: dict[BlockPlace, Any], place: BlockPlace, delta: Any) -> None:
    draft.say(place, text_at(delta, "text"))
    if isinstance(thought := at(delta, "reasoningContent"), dict):
        sealed = at(thought, "redactedContent") is not None
        draft.think(place, text_at(thought, "text"), sealed=sealed, signed=bool(text_at(thought, "signature")))
    if piece := text_at(delta, "toolUse", "input"):
        draft.tool(place).pieces.append(piece)
    if place in opened:
        opened[place][1].extend(items_at(delta, "toolResult"))
        opened[place][1].extend(filter(None, [text_at(delta, "image", "source", "bytes")]))


def _closed(start: dict[str, Any], pieces: list[Any]) -> dict[str, Any]:
    """The block as a whole answer would have it."""
    kind, head = next(iter(start.items()))
    if kind == "image":
        data = "".join(piece for piece in pieces if isinstance(piece, str))
        return {kind: {"format": text_at(head, "format"), "source": {"bytes": data}}}
    if kind == "toolResult" and isinstance(head, dict):
        return {kind: {**head, "content": pieces}}
    return start
