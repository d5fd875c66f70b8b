"""Amazon Bedrock: Converse and InvokeModel, also as streams in AWS's binary event frames."""

import base64
import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from rewind.dataclass import dataclass
from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked, Message, Part, Role, Vectors
from rewind.model.usage import Usage
from rewind.providers.anthropic import read as anthropic
from rewind.providers.anthropic.read import TOOL_IDS
from rewind.providers.api import Volatile
from rewind.providers.bedrock import converse
from rewind.providers.cohere.read import CohereReader
from rewind.providers.openai_chat import read as openai_chat
from rewind.providers.openai_chat.read import TOOL_CALL_IDS
from rewind.providers.shared.answer_draft import AnswerDraft, UsageTable, parameters_of
from rewind.providers.shared.answer_stream import Answer, read_answer, request_json
from rewind.providers.shared.chat_messages import input_messages, take_message
from rewind.providers.shared.json_fields import (
    at,
    count_at,
    first_count,
    inline,
    items_at,
    referred,
    text_at,
    total,
    writable,
)
from rewind.text import plural
from rewind.wire.encoding import decode_as_far_as_possible
from rewind.wire.eventstream import Frame, begins_with_a_frame, read_frames

_PATH = re.compile(r"/model/(.+)/(converse|converse-stream|invoke|invoke-with-response-stream)$")
_FRAMES = "application/vnd.amazon.eventstream"
_REFERS = "Ties a tool's result to its call; drawn at random."


VOLATILE = (
    Volatile("messages[*].content[*].toolUse.toolUseId", _REFERS, linked=True),
    Volatile("messages[*].content[*].toolResult.toolUseId", _REFERS, linked=True),
    *TOOL_IDS,
    *TOOL_CALL_IDS,
)


class BedrockReader:
    """Converse has one shape for all models; InvokeModel carries what the model's own maker thought of."""

    def claims(self, head: RequestHead) -> bool:
        return head.method == "POST" and _PATH.search(head.path) is not None

    def asked(self, request: HttpRequest) -> Asked:
        model, operation = _called(request)
        document, note = request_json(request)
        asked = _invoked(document, request) if _invokes(operation) else converse.asked_in(document)
        return replace(
            asked,
            model=model or asked.model,
            streamed=operation.endswith("-stream"),
            # A request without settings is a text like any other; then only the name tells.
            embeds=asked.embeds or (_invokes(operation) and "embed" in (model or "").lower()),
            note=note or asked.note,
        )

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        _, operation = _called(request)
        answer = _answer_of(response)
        if _invokes(operation):
            return _invocation_answered(response, answer)
        draft = converse.draft_of(answer.documents)
        return draft.answered(response, answer, converse.USAGE)

    def refusal(self, message: str) -> dict[str, Any]:
        return {"message": message}


def _called(request: HttpRequest) -> tuple[str, str]:
    """The model, and what is asked of it."""
    found = _PATH.search(request.head.path)
    return (writable(unquote(found[1], errors="replace")), found[2]) if found else ("", "")


def _invokes(operation: str) -> bool:
    return operation.startswith("invoke")


def _answer_of(response: HttpResponse) -> Answer:
    body, trouble = decode_as_far_as_possible(response.body, response.head.header("content-encoding"))
    framed = _FRAMES in (response.head.header("content-type") or "").lower()
    if begins_with_a_frame(body) or (framed and not body.lstrip().startswith(b"{")):
        return _framed(body, trouble)
    return read_answer(response)


def _framed(body: bytes, trouble: str | None) -> Answer:
    stream = read_frames(body)
    documents, damaged, doubtful = [], stream.lost, 0
    for frame in stream.frames:
        document = _document(frame)
        if document is None:
            damaged += 1
        else:
            documents.append(document)
            doubtful += not frame.intact
    notes = (
        trouble,
        damaged and plural(damaged, "damaged frame"),
        # Redaction changes a frame and leaves its checksum: what it says is still worth showing.
        doubtful and f"{plural(doubtful, 'frame')} with a wrong checksum",
        stream.cut and "the stream is cut inside a frame",
    )
    return Answer(documents=tuple(documents), note="; ".join(note for note in notes if note) or None)


def _document(frame: Frame) -> Any:
    """An event under its name, or what a model itself said; ``None`` for one that cannot be read."""
    message_type = frame.header(":message-type")
    if message_type == "error":
        return {"error": {"message": frame.header(":error-message"), "type": frame.header(":error-code")}}
    try:
        document = json.loads(frame.payload or b"{}")
        if wrapped := text_at(document, "bytes"):
            return json.loads(base64.b64decode(wrapped, validate=True))
    except (ValueError, RecursionError):  # what is no base64 is a ValueError too
        return None
    if message_type == "exception":
        told = document if isinstance(document, dict) else {}
        return {"error": {"type": frame.header(":exception-type"), **told}}
    name = frame.header(":event-type")
    return {name: document} if name else None


# ── InvokeModel: what is asked ───────────────────────────────────────────────────────────────────────────────
# Every maker of models has bodies of its own, told apart by the fields they consist of. The name of the model would not
# do: it may be an ARN that says nothing about whose model it is.

_ANTHROPIC, _COHERE, _CHAT = anthropic.AnthropicReader(), CohereReader(), openai_chat.OpenAIChatReader()
_PROMPTS: tuple[tuple[str, ...], ...] = (
    ("prompt",),  # Llama, Mistral, DeepSeek, Claude 2, Jurassic
    ("inputText",),  # Titan
    ("singleEmbeddingParams", "text", "value"),  # Nova embeddings
    ("texts",),  # Cohere embeddings
    ("inputs",),  # Cohere embeddings of texts with pictures
)
_PICTURES = ("inputImage", "images")
_EMBEDDING_FIELDS = (
    *("texts", "inputs", "input_type", "embedding_types"),  # Cohere
    *("dimensions", "normalize", "embeddingTypes", "embeddingConfig"),  # Titan
    "singleEmbeddingParams",  # Nova
)
"""Fields that only requests for vectors have."""
_SETTINGS = ("textGenerationConfig", "embeddingConfig", "singleEmbeddingParams")
_PROMPT_FIELDS = (*(path[0] for path in _PROMPTS), *_PICTURES, *_SETTINGS)


def _invoked(document: Any, request: HttpRequest) -> Asked:
    """What a request carries, read by whoever knows the shape."""
    if at(document, "anthropic_version") is not None:
        return _ANTHROPIC.asked(request)
    if isinstance(at(document, "message"), str):
        return _COHERE.asked(request)
    turns = items_at(document, "messages")
    if not turns:
        return _prompted(document)
    blocks = [block for turn in turns for block in items_at(turn, "content")]
    # Nova has Converse's blocks, which carry no type.
    nova = bool(blocks) and not any(text_at(block, "type") for block in blocks)
    # OpenAI's shape is also that of Jamba, DeepSeek, Qwen, gpt-oss and Mistral.
    return converse.asked_in(document) if nova else _CHAT.asked(request)


def _prompted(document: Any) -> Asked:
    """Texts and pictures without turns."""
    messages = [message for path in _PROMPTS for message in input_messages(at(document, *path))]
    if pictures := _pictures_in(document):
        before = messages.pop().parts if messages else ()
        messages.append(Message(Role.USER, before + pictures))
    parameters = parameters_of(document, _PROMPT_FIELDS)
    for name in _SETTINGS:
        parameters |= parameters_of(at(document, name), ("text",))
    embeds = any(at(document, name) is not None for name in _EMBEDDING_FIELDS)
    return Asked(messages=tuple(messages), parameters=parameters, embeds=embeds)


def _pictures_in(document: Any) -> tuple[Part, ...]:
    """In base64 or as ``data:`` URLs, one or several."""
    told = [at(document, "inputImage"), *items_at(document, "images")]
    return tuple(
        referred(data, kind="image") if data.startswith("data:") else inline(data, "", "image")
        for data in told
        if isinstance(data, str)
    )


# ── InvokeModel: what is answered ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Completion:
    """Where an answer of the plain kind has its text and the reason for its end, whole or in a piece of a stream."""

    text: tuple[str, ...]
    stop: tuple[str, ...]
    choices: str = ""
    """The list that holds them, where there is one."""


_COMPLETIONS = (
    _Completion(("outputText",), ("completionReason",), "results"),  # Titan
    _Completion(("outputText",), ("completionReason",)),  # Titan, streamed
    _Completion(("generation",), ("stop_reason",)),  # Llama
    _Completion(("text",), ("stop_reason",), "outputs"),  # Mistral
    _Completion(("text",), ("finish_reason",), "generations"),  # Cohere Command
    _Completion(("completion",), ("stop_reason",)),  # Claude 2
    _Completion(("data", "text"), ("finishReason", "reason"), "completions"),  # Jurassic
)
_READ = (("inputTextTokenCount",), ("prompt_token_count",))
_WRITTEN = (("totalOutputTextTokenCount",), ("generation_token_count",))

_METRICS = UsageTable(
    input=(("inputTokenCount",), ("cacheReadInputTokenCount",), ("cacheWriteInputTokenCount",)),
    output=(("outputTokenCount",),),
    cache_read=(("cacheReadInputTokenCount",),),
    cache_write=(("cacheWriteInputTokenCount",),),
)
_HEADERS = {
    "inputTokenCount": "x-amzn-bedrock-input-token-count",
    "outputTokenCount": "x-amzn-bedrock-output-token-count",
    "cacheReadInputTokenCount": "x-amzn-bedrock-cache-read-input-token-count",
    "cacheWriteInputTokenCount": "x-amzn-bedrock-cache-write-input-token-count",
}


def _invocation_answered(response: HttpResponse, answer: Answer) -> Answered:
    """What an answer comes to. Tokens that the body does not tell are told by Bedrock beside it."""
    draft, table = _draft_of(answer.documents)
    answered = draft.answered(response, answer, table)
    return replace(answered, usage=_filled(answered.usage, response, answer.documents))


def _draft_of(documents: tuple[Any, ...]) -> tuple[AnswerDraft, UsageTable]:
    if any(text_at(document, "type").startswith(("message", "content_block_")) for document in documents):
        return anthropic.draft_of(documents), anthropic.USAGE
    if any(isinstance(at(document, "choices"), list) for document in documents):
        return _chatted(documents), openai_chat.USAGE
    draft = converse.draft_of(documents)
    for document in documents:
        _take(draft, document)
    return draft, converse.USAGE


def _chatted(documents: tuple[Any, ...]) -> AnswerDraft:
    """OpenAI's shape; here Mistral streams its pieces as messages, not as deltas, and others have only a text."""
    draft = AnswerDraft(choices={0: {}})
    heard: dict[int, list[Any]] = {}
    for document in documents:
        draft.named(document)
        openai_chat.count_usage(draft, at(document, "usage"))
        for place, choice in enumerate(items_at(document, "choices")):
            number = count_at(choice, "index")
            piece = at(choice, "delta") or at(choice, "message") or {"content": at(choice, "text")}
            heard.setdefault(place if number is None else number, []).append(piece)
            if not number:
                draft.stopped(text_at(choice, "finish_reason") or text_at(choice, "stop_reason"))
    for number, pieces in heard.items():
        take_message(draft, pieces, choice=number)
    return draft


def _take(draft: AnswerDraft, document: Any) -> None:
    for row in _COMPLETIONS:
        for choice, found in enumerate(items_at(document, row.choices) if row.choices else [document]):
            draft.say("text", text_at(found, *row.text), choice=choice)
            if not choice:
                draft.stopped(text_at(found, *row.stop))
    _take_cohere(draft, document)
    for number, picture in enumerate(_pictures_in(document)):
        draft.put(("image", number), picture)
    if vectors := _vectors_in(document):
        draft.named(document)
        size = len(vectors[0]) if isinstance(vectors[0], list) else None
        draft.put("vectors", Vectors(len(vectors), size))
    written = total(*(count_at(result, "tokenCount") for result in items_at(document, "results")))
    draft.count(
        {
            "inputTokens": first_count(document, _READ),
            "outputTokens": first_count(document, _WRITTEN) if written is None else written,
        }
    )


def _take_cohere(draft: AnswerDraft, document: Any) -> None:
    """Command R, and Command, which numbers its generations where it streams several.

    The event that tells the tools repeats the text that came before it in pieces.
    """
    choice = count_at(document, "index") or 0
    if text_at(document, "event_type") != "tool-calls-generation" or not draft.has("text"):
        draft.say("text", text_at(document, "text"), choice=choice)
    for number, call in enumerate(items_at(document, "tool_calls")):
        tool = draft.tool(("tool", number))
        tool.name, tool.arguments = text_at(call, "name"), at(call, "parameters")
    draft.named(document, id_at="generation_id")
    if not choice:
        draft.stopped(text_at(document, "finish_reason"))


def _vectors_in(document: Any) -> list[Any]:
    """Titan has one vector, Cohere a list of them or a list for each type, Nova a list of objects."""
    by_type = at(document, "embeddingsByType")
    single = items_at(document, "embedding") or _first_list(by_type)
    if single:
        return [single]
    found = at(document, "embeddings")
    rows = found if isinstance(found, list) else _first_list(found)
    return [at(row, "embedding") if isinstance(row, dict) else row for row in rows]


def _first_list(by_type: Any) -> list[Any]:
    values = by_type.values() if isinstance(by_type, dict) else ()
    return next((value for value in values if isinstance(value, list)), [])


def _filled(usage: Usage, response: HttpResponse, documents: tuple[Any, ...]) -> Usage:
    header = response.head.header
    told: dict[str, Any] = {name: _number(header(spelled)) for name, spelled in _HEADERS.items()}
    for document in documents:
        told |= parameters_of(at(document, "amazon-bedrock-invocationMetrics"), ())
    tier, latency = header("x-amzn-bedrock-service-tier"), header("x-amzn-bedrock-performanceconfig-latency")
    beside = _METRICS.read(told, (latency if tier in (None, "default") else tier) or "")
    if usage.input is None:
        usage = replace(usage, input=beside.input, cache_read=beside.cache_read, cache_write=beside.cache_write)
    output = beside.output if usage.output is None else usage.output
    return replace(usage, output=output, tier=usage.tier or beside.tier)


def _number(value: str | None) -> int | None:
    return int(value) if value and re.fullmatch(r"[0-9]{1,15}", value) else None
