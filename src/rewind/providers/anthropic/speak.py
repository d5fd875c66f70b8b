"""Answers of Anthropic Messages."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Asked
from rewind.providers.anthropic.write import tool_use
from rewind.providers.api import AnswerContent, Document, LossLog, Speaker
from rewind.providers.shared.framing import events, whole
from rewind.providers.shared.json_fields import items_at, text_at
from rewind.providers.shared.speak import pieces
from rewind.providers.shared.write import json_text


def message_document(content: AnswerContent, model: str) -> Document:
    """A message. Claude on Bedrock answers with the same."""
    text = [{"type": "text", "text": content.text}] if content.text or not content.tools else []
    return {
        "id": content.named("msg_"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [*text, *(tool_use(use, LossLog()) for use in content.tools)],
        "stop_reason": "tool_use" if content.tools else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def event_documents(message: Document) -> Iterator[Document]:
    """A message in events, as they come."""
    usage = message.get("usage") or {"input_tokens": 0, "output_tokens": 0}
    begun = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(items_at(message, "content")):
        start, deltas = _in_deltas(block)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": message.get("stop_reason"), "stop_sequence": message.get("stop_sequence")}
    yield {"type": "message_delta", "delta": end, "usage": usage}
    yield {"type": "message_stop"}


def _in_deltas(block: Any) -> tuple[Any, list[Document]]:
    match block:
        case {"type": "text", "text": str(text)}:
            return {**block, "text": ""}, [{"type": "text_delta", "text": one} for one in pieces(text)]
        case {"type": "thinking", "thinking": str(text)}:
            signed = {"type": "signature_delta", "signature": text_at(block, "signature")}
            thought = [{"type": "thinking_delta", "thinking": one} for one in pieces(text)]
            return {**block, "thinking": "", "signature": ""}, [*thought, signed]
        case {"type": "tool_use" | "server_tool_use" | "mcp_tool_use", "input": arguments}:
            written = pieces(json_text(arguments)) if arguments else []
            given = [{"type": "input_json_delta", "partial_json": one} for one in ("", *written)]
            return {**block, "input": {}}, given
        case _:
            return block, []


def speaker_for(request: HttpRequest, asked: Asked) -> Speaker:
    streamed = asked.streamed or unquote(request.head.path).rstrip("/").endswith(":streamRawPredict")

    def response(document: Document) -> HttpResponse:
        if not streamed or text_at(document, "type") != "message":
            return whole(document)
        return events(event_documents(document), named=True)

    return Speaker(
        form=f"anthropic {'events' if streamed else 'whole'}",
        document=lambda content: message_document(content, asked.model or ""),
        response=response,
    )
