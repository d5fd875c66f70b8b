"""Bodies of Bedrock's InvokeModel: every maker of models has its own, told apart by the fields they consist of.

The name of the model would not do: it may be an ARN that says nothing about whose model it is.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Answered, Asked, Message, Part, Role, Vectors
from rewind.model.usage import Usage
from rewind.providers.anthropic import read as anthropic
from rewind.providers.bedrock import converse as bedrock_converse
from rewind.providers.cohere.read import Cohere
from rewind.providers.openai_chat import read as openai_chat
from rewind.providers.openai_chat.messages import given, take_message
from rewind.providers.shared.answer_draft import Draft, UsageTable, parameters_of
from rewind.providers.shared.answer_stream import Answer
from rewind.providers.shared.json_fields import at, count_at, first_count, items_at, text_at, total
from rewind.providers.shared.media import inline, referred

# ── what is asked ────────────────────────────────────────────────────────────────────────────────────────────

_ANTHROPIC, _COHERE, _CHAT = anthropic.Anthropic(), Cohere(), openai_chat.OpenAIChat()
_PROMPTS: tuple[tuple[str, ...], ...] = (
    ("prompt",),  # Llama, Mistral, DeepSeek, Claude 2, Jurassic
    ("inputText",),  # Titan
    ("singleEmbeddingParams", "text", "value"),  # Nova embeddings
    ("texts",),  # Cohere embeddings
    ("inputs",),  # Cohere embeddings of texts with pictures
)
_PICTURES = ("inputImage", "images")
_OF_EMBEDDINGS = (
    *("texts", "inputs", "input_type", "embedding_types"),  # Cohere
    *("dimensions", "normalize", "embeddingTypes", "embeddingConfig"),  # Titan
    "singleEmbeddingParams",  # Nova
)
"""Fields that only requests for vectors have."""
_SETTINGS = ("textGenerationConfig", "embeddingConfig", "singleEmbeddingParams")
_PROMPT_FIELDS = (*(path[0] for path in _PROMPTS), *_PICTURES, *_SETTINGS)


def asked_in(document: Any, request: HttpRequest) -> Asked:
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
    return bedrock_converse.asked_in(document) if nova else _CHAT.asked(request)


def _prompted(document: Any) -> Asked:
    """Texts and pictures without turns."""
    messages = [message for path in _PROMPTS for message in given(at(document, *path))]
    if pictures := _pictures_in(document):
        before = messages.pop().parts if messages else ()
        messages.append(Message(Role.USER, before + pictures))
    parameters = parameters_of(document, _PROMPT_FIELDS)
    for name in _SETTINGS:
        parameters |= parameters_of(at(document, name), ("text",))
    embeds = any(at(document, name) is not None for name in _OF_EMBEDDINGS)
    return Asked(messages=tuple(messages), parameters=parameters, embeds=embeds)


def _pictures_in(document: Any) -> tuple[Part, ...]:
    """In base64 or as ``data:`` URLs, one or several."""
    told = [at(document, "inputImage"), *items_at(document, "images")]
    return tuple(
        referred(data, kind="image") if data.startswith("data:") else inline(data, "", "image")
        for data in told
        if isinstance(data, str)
    )


# ── what is answered ─────────────────────────────────────────────────────────────────────────────────────────


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


def answered_in(response: HttpResponse, answer: Answer) -> Answered:
    """What an answer comes to. Tokens that the body does not tell are told by Bedrock beside it."""
    draft, table = _draft_of(answer.documents)
    answered = draft.answered(response, answer, table)
    return replace(answered, usage=_filled(answered.usage, response, answer.documents))


def _draft_of(documents: tuple[Any, ...]) -> tuple[Draft, UsageTable]:
    if any(text_at(document, "type").startswith(("message", "content_block_")) for document in documents):
        return anthropic.draft_of(documents), anthropic.USAGE
    if any(isinstance(at(document, "choices"), list) for document in documents):
        return _chatted(documents), openai_chat.USAGE
    draft = bedrock_converse.draft_of(documents)
    for document in documents:
        _take(draft, document)
    return draft, bedrock_converse.USAGE


def _chatted(documents: tuple[Any, ...]) -> Draft:
    """OpenAI's shape; here Mistral streams its pieces as messages, not as deltas, and others have only a text."""
    draft = Draft(choices={0: {}})
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


def _take(draft: Draft, document: Any) -> None:
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


def _take_cohere(draft: Draft, document: Any) -> None:
    """Command R. The event that tells the tools repeats the text that came before it in pieces."""
    if text_at(document, "event_type") != "tool-calls-generation" or not draft.has("text"):
        draft.say("text", text_at(document, "text"))
    for number, call in enumerate(items_at(document, "tool_calls")):
        tool = draft.tool(("tool", number))
        tool.name, tool.arguments = text_at(call, "name"), at(call, "parameters")
    draft.named(document, id_at="generation_id")
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
        usage = replace(
            usage, input=beside.input, cache_read=beside.cache_read, cache_write=beside.cache_write
        )
    output = beside.output if usage.output is None else usage.output
    return replace(usage, output=output, tier=usage.tier or beside.tier)


def _number(value: str | None) -> int | None:
    return int(value) if value and re.fullmatch(r"[0-9]{1,15}", value) else None
