"""Messages and tools in the shape that OpenAI gave them, which Mistral, Ollama, Cohere and many more write too.

An assistant's message is read the same way whether it came whole, in deltas, or back in the next request, so that
an answer can be found again where the agent sends it on.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from typing import Any

from rewind.model.message import Message, Other, Part, Refusal, Role, Text, Thinking, ToolDefinition, ToolResult
from rewind.providers.shared.answer_draft import AnswerDraft, ToolDraft, parameters_of
from rewind.providers.shared.json_fields import at, count_at, inline, items_at, referred, text_at, words_at, writable
from rewind.wire.growing_json import read_each

_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "tool_plan")
"""DeepSeek's and vLLM's name; Groq's, OpenRouter's and newer vLLM's; Ollama's; Cohere's. Some servers send two."""

# ── what is asked ────────────────────────────────────────────────────────────────────────────────────────────


def conversation(turns: Iterable[Any]) -> tuple[tuple[Part, ...], tuple[Message, ...]]:
    """The instructions that stand before the conversation, and the conversation."""
    return split_system(read_each(message_of, turns))


def split_system(messages: tuple[Message, ...]) -> tuple[tuple[Part, ...], tuple[Message, ...]]:
    """The leading system messages as parts, and the messages that follow."""
    begins = next((n for n, message in enumerate(messages) if message.role is not Role.SYSTEM), len(messages))
    return tuple(part for message in messages[:begins] for part in message.parts), messages[begins:]


def message_of(turn: Any) -> Message:
    """One turn of a conversation."""
    match text_at(turn, "role"):
        case "system" | "developer":
            return Message(Role.SYSTEM, parts_of(at(turn, "content")), words_at(turn, "name"))
        case "assistant":
            return Message(Role.ASSISTANT, assistant_parts(turn), words_at(turn, "name"))
        case "tool" | "function":
            parts = parts_of(at(turn, "content"))
            name = words_at(turn, "name") or words_at(turn, "tool_name")
            return Message(Role.TOOL, (ToolResult(words_at(turn, "tool_call_id"), parts, name),))
        case _:
            return Message(Role.USER, parts_of(at(turn, "content")) + images_of(turn), words_at(turn, "name"))


def input_messages(inputs: Any) -> tuple[Message, ...]:
    """Texts without a conversation, one message each: prompts of completions, inputs of embeddings."""
    tokens = isinstance(inputs, list) and bool(inputs) and isinstance(inputs[0], int)
    each = inputs if isinstance(inputs, list) and not tokens else [inputs]
    return tuple(Message(Role.USER, parts) for one in each if (parts := _given_parts(one)))


def _given_parts(one: Any) -> tuple[Part, ...]:
    if isinstance(one, list) and one and isinstance(one[0], int):
        # Already cut into tokens: the numbers say nothing to a reader, their count does.
        return (Other("tokens", len(one)),)
    if isinstance(one, dict) and "content" in one:
        return parts_of(one["content"])
    return parts_of(one)


def tools_in(document: Any) -> tuple[ToolDefinition, ...]:
    """The tools of a request; ``functions`` is their older name."""
    older = ({"type": "function", "function": function} for function in items_at(document, "functions"))
    return (*read_each(_tool, items_at(document, "tools")), *map(_tool, older))


def _tool(tool: Any) -> ToolDefinition:
    if (custom := at(tool, "custom")) is not None:
        return ToolDefinition(words_at(custom, "name"), words_at(custom, "description"), at(custom, "format"))
    function = at(tool, "function")
    described = tool if function is None and at(tool, "name") is not None else function
    if described is not None:
        return ToolDefinition(
            words_at(described, "name"), words_at(described, "description"), at(described, "parameters")
        )
    return ToolDefinition(words_at(tool, "type"), "", parameters_of(tool, ("type",)), hosted=True)


# ── what the assistant says ──────────────────────────────────────────────────────────────────────────────────


def assistant_parts(turn: Any) -> tuple[Part, ...]:
    """An assistant's message that the agent sends back."""
    draft = AnswerDraft()
    take_message(draft, [turn])
    return draft.parts()


def take_message(draft: AnswerDraft, pieces: Sequence[Any], *, choice: int = 0) -> None:
    """An assistant's message, whole as the only piece or in deltas.

    Kind after kind and not piece after piece: thinking, words, tool calls, in whatever order a stream brings them.
    """
    blocks = [block for piece in pieces for block in blocks_of(at(piece, "content"))]
    for block in blocks:
        if text_at(block, "type") == "thinking":
            draft.think("thinking", thought_in(block), signed=bool(text_at(block, "signature")), choice=choice)
    for piece in pieces:
        _take_reasoning(draft, piece, choice)
    for block in blocks:
        _take_words(draft, block, choice)
    for piece in pieces:
        draft.say("refusal", text_at(piece, "refusal"), kind=Refusal, choice=choice)
    _take_audio(draft, [at(piece, "audio") for piece in pieces], choice)
    for image in (image for piece in pieces for image in images_of(piece)):
        draft.put(("image", draft.free(choice=choice)), image, choice=choice)
    _take_calls(draft, [call for piece in pieces for call in items_at(piece, "tool_calls")], choice)
    for function in (at(piece, "function_call") for piece in pieces):
        if function is not None:
            _take_function(draft.tool("function_call", choice=choice), function)


def _take_reasoning(draft: AnswerDraft, piece: Any, choice: int) -> None:
    details = items_at(piece, "reasoning_details") + items_at(piece, "thinking_blocks")
    told = next((text for name in _REASONING_FIELDS if (text := text_at(piece, name))), "")
    if not told:
        names = ("text", "summary", "thinking")
        told = "".join(text_at(one, name) for one in details for name in names)
    kinds = [text_at(one, "type") for one in details]
    draft.think(
        "reasoning",
        told,
        sealed="reasoning.encrypted" in kinds or "redacted_thinking" in kinds,
        signed=any(text_at(one, "signature") for one in details),
        choice=choice,
    )


def _take_words(draft: AnswerDraft, block: Any, choice: int) -> None:
    match text_at(block, "type"):
        case "thinking":
            return
        case "refusal":
            draft.say("refusal", text_at(block, "refusal"), kind=Refusal, choice=choice)
        case "text":
            draft.say("text", text_at(block, "text"), choice=choice)
        case _ if isinstance(block, str):
            draft.say("text", block, choice=choice)
        case _:
            if (part := part_of(block)) is not None:
                draft.put(("part", draft.free(choice=choice)), part, choice=choice)


def _take_audio(draft: AnswerDraft, sounds: Sequence[Any], choice: int) -> None:
    for sound in sounds:
        draft.say("transcript", text_at(sound, "transcript"), choice=choice)
    if data := _joined([piece for sound in sounds if (piece := text_at(sound, "data"))]):
        draft.put("audio", inline(data, "", "audio"), choice=choice)
    elif name := next((told for sound in sounds if (told := text_at(sound, "id"))), ""):
        draft.put("audio", referred(name, kind="audio"), choice=choice)


def _joined(pieces: Sequence[str]) -> str:
    """Base64 of the whole: a stream encodes each piece for itself."""
    if len(pieces) < 2:
        return "".join(pieces)
    try:
        return b64encode(b"".join(b64decode(piece) for piece in pieces)).decode()
    except ValueError:
        return "".join(pieces)


def _take_calls(draft: AnswerDraft, calls: Sequence[Any], choice: int) -> None:
    """Deltas carry a number. Servers that leave it out name each new tool; a piece without a name goes on."""
    open_calls: dict[int | None, ToolDraft] = {}
    for count, call in enumerate(calls):
        number = count_at(call, "index")
        tool = open_calls.get(number)
        if tool is None or _begins(tool, number, call):
            tool = open_calls[number] = draft.tool(("tool", count), choice=choice)
        tool.id = tool.id or text_at(call, "id")
        _take_function(tool, at(call, "function") or at(call, "custom"))
        tool.free_form = tool.free_form or at(call, "custom") is not None


def _begins(tool: ToolDraft, number: int | None, call: Any) -> bool:
    """Whether a named piece is another call: some servers give parallel calls no number, or all the same."""
    named = text_at(call, "function", "name") or text_at(call, "custom", "name")
    told = text_at(call, "id")
    if number is None:
        return bool(named) and (not told or told != tool.id)
    return bool(named and told and tool.id) and told != tool.id


def _take_function(tool: ToolDraft, function: Any) -> None:
    tool.name = tool.name or text_at(function, "name")
    arguments = at(function, "arguments")
    if isinstance(arguments, str):
        tool.pieces.append(arguments)
    elif arguments is not None:
        tool.arguments = arguments
    tool.pieces.append(text_at(function, "input"))


def parts_of(content: Any) -> tuple[Part, ...]:
    """The content of a message: a text, or a list of parts."""
    return tuple(part for block in blocks_of(content) if (part := part_of(block)) is not None)


def blocks_of(content: Any) -> list[Any]:
    """The content as a list, however it came."""
    if content is None:
        return []
    return content if isinstance(content, list) else [content]


def part_of(block: Any) -> Part | None:
    """One part of the content; an empty text is none."""
    if isinstance(block, str):
        return Text(writable(block)) if block else None
    match kind := text_at(block, "type"):
        case "text":
            return Text(words_at(block, "text")) if text_at(block, "text") else None
        case "refusal":
            return Refusal(words_at(block, "refusal"))
        case "thinking":
            text = writable(thought_in(block))
            return Thinking(text, sealed=not text)
        case "image_url" | "video_url" | "audio_url" | "document_url":
            url = text_at(block, kind, "url") or text_at(block, kind)
            return referred(url, kind=kind.removesuffix("_url"))
        case "input_audio":
            return _sound(block)
        case "file":
            return _file(block)
        case "document" if data := text_at(block, "document", "data"):
            return Text(writable(data))
        case _:
            return Other(writable(kind), block)


def _sound(block: Any) -> Part:
    data = text_at(block, "input_audio", "data") or text_at(block, "input_audio")
    if data.startswith(("data:", "http://", "https://")):
        return referred(data, kind="audio")
    told = text_at(block, "input_audio", "format")
    return inline(data, f"audio/{told}" if told else "", "audio")


def _file(block: Any) -> Part:
    if data := text_at(block, "file", "file_data"):
        return referred(data) if data.startswith("data:") else inline(data, "", "file")
    return referred(text_at(block, "file", "file_id") or text_at(block, "file_id"), kind="file")


def images_of(turn: Any) -> tuple[Part, ...]:
    """Ollama takes pictures beside the text, in base64; OpenRouter gives drawn ones back there, as parts."""
    told = (
        inline(image, "", "image") if isinstance(image, str) else part_of(image) for image in items_at(turn, "images")
    )
    return tuple(image for image in told if image is not None)


def thought_in(block: Any) -> str:
    """Mistral writes its thinking as a list of texts."""
    pieces = items_at(block, "thinking")
    return "".join(text_at(piece, "text") for piece in pieces) if pieces else text_at(block, "thinking")
