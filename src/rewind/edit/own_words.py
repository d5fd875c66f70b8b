"""An answer as its own API takes it back in the next request: with signatures, sealed thinking and hosted tools.

Our neutral shape has none of these, and an API that finds its own thinking changed or unsigned refuses it.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from rewind.model.message import Answered, Message, Role
from rewind.providers.gemini.parts import listed
from rewind.providers.openai_chat import write as openai_chat
from rewind.providers.openai_responses.read import Output
from rewind.providers.shared.answer_draft import inner, json_or_text
from rewind.providers.shared.call_ids import tied
from rewind.providers.shared.json_fields import at, count_at, items_at, text_at
from rewind.providers.shared.patch import without
from rewind.providers.shared.write import Pen

Fields = dict[str, Any]


def chat_turns(answered: Answered, pen: Pen) -> list[Fields]:
    """Of OpenAI Chat Completions: its words and its calls; what the model thought, no such API takes back."""
    message = Message(Role.ASSISTANT, answered.parts)
    named = all(use.id for use in answered.tool_uses)
    return openai_chat.written([message] if named else tied([message]), pen)


def anthropic_turns(documents: Iterable[Any]) -> list[Fields]:
    """Of Anthropic: all blocks, put together from their events where they came in a stream."""
    blocks: dict[int | None, Fields] = {}
    inputs: dict[int | None, str] = {}
    for document in documents:
        place = count_at(document, "index")
        match text_at(document, "type"):
            case "message":
                blocks |= dict(enumerate(_objects(items_at(document, "content"))))
            case "content_block_start" if isinstance(block := at(document, "content_block"), dict):
                blocks[place] = dict(block)
            case "content_block_delta" if place in blocks:
                if text_at(document, "delta", "type") == "input_json_delta":
                    inputs[place] = inputs.get(place, "") + text_at(document, "delta", "partial_json")
                else:
                    _add(blocks[place], at(document, "delta"))
    for place, written in inputs.items():
        given = json_or_text(written) if written else {}
        blocks[place]["input"] = given if isinstance(given, dict) else {}
    content = [block for block in blocks.values() if block.get("type") != "text" or block.get("text")]
    return [{"role": "assistant", "content": content}] if content else []


def _add(block: Fields, delta: Any) -> None:
    for kind, field in (
        ("text_delta", "text"),
        ("thinking_delta", "thinking"),
        ("signature_delta", "signature"),
    ):
        if text_at(delta, "type") == kind:
            block[field] = text_at(block, field) + text_at(delta, field)
    if text_at(delta, "type") == "citations_delta":
        block["citations"] = [*items_at(block, "citations"), at(delta, "citation")]


def responses_turns(documents: Iterable[Any], pen: Pen) -> list[Fields]:
    """Of OpenAI Responses: the items, less the names under which the provider keeps them.

    Thinking that is not sealed into the item stays with the provider, and can only be referred to; a fresh call may
    not find it, so it is left out.
    """
    output = Output()
    for document in documents:
        output.take(text_at(document, "type"), document)
    items: list[Fields] = []
    for item in _objects(output.items()):
        if text_at(item, "type") == "reasoning":
            if text_at(item, "encrypted_content"):
                items.append(without(item, "status"))
            else:
                pen.lost["thinking left out: only the provider has it"] += 1
        else:
            # An id would tie the item to thinking that is perhaps left out.
            items.append(without(item, "id", "status") if "call_id" in item else without(item, "id"))
    return items


def gemini_turns(documents: Iterable[Any]) -> list[Fields] | None:
    """Of Gemini: the parts of the first candidate; ``None`` where calls came in pieces that only a codec joins."""
    parts: list[Fields] = []
    for document in documents:
        content = at(inner(document, "response"), "candidates", 0, "content")
        for part in _objects(listed(at(content, "parts"))):
            call = part.get("functionCall")
            if isinstance(call, dict) and ({"willContinue", "partialArgs"} & set(call) or not call):
                return None
            if parts and _is_plain(part) and _is_plain(parts[-1]) and _kind(part) == _kind(parts[-1]):
                parts[-1] = {**parts[-1], "text": parts[-1]["text"] + part["text"]}
            elif part != {"text": ""}:
                parts.append(part)
    return [{"role": "model", "parts": parts}] if parts else []


def _is_plain(part: Fields) -> bool:
    """Whether it is words and nothing else: a signature belongs to the very part that it came with."""
    return isinstance(part.get("text"), str) and set(part) <= {"text", "thought"}


def _kind(part: Fields) -> bool:
    return part.get("thought") is True


def _objects(values: Sequence[Any]) -> list[Fields]:
    return [value for value in values if isinstance(value, dict)]
