"""Google Gemini: ``:generateContent`` and its stream, at AI Studio, on Vertex AI and behind Code Assist."""

import re
from typing import Any
from urllib.parse import unquote

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked, Message, Role, Vectors
from rewind.providers.api import Volatile
from rewind.providers.gemini.parts import (
    USAGE,
    by_modality,
    field,
    is_thought,
    listed,
    part_of,
    parts_of,
    tools_of,
    turns_of,
    words,
)
from rewind.providers.shared.answer_draft import AnswerDraft, BlockPlace, JsonPath, PartialJson, inner, parameters_of
from rewind.providers.shared.answer_stream import counted_tokens, read_answer, request_json
from rewind.providers.shared.json_fields import at, count_at, items_at, text_at, total, words_at, writable

_MODEL = re.compile(r"/models/([^/:]+):")
_EMBEDDING_ON_VERTEX = re.compile(r"/publishers/google/models/[^/:]*embedding[^/:]*:predict$")
_PARTS = tuple(
    f"{root}contents[*].parts[*].{part}.id"
    for root in ("", "request.")
    for part in (
        *("functionCall", "functionResponse", "function_call", "function_response"),
        *("toolCall", "toolResponse", "tool_call", "tool_response"),
    )
)

_READ_FIELDS = frozenset(
    {
        *("model", "contents", "tools", "request", "generateContentRequest"),
        *("systemInstruction", "system_instruction", "generationConfig", "generation_config"),
    }
)
_EMBEDDED_FIELDS = ("model", "content", "text", "requests", "instances", "parameters")
_VALUES = (("values",), ("embeddings", "values"), ("textEmbedding",), ("imageEmbedding",))
_STEPS = re.compile(r"\.([^.\[\]]+)|\[(\d{1,6})\]|\['([^']*)'\]")


VOLATILE = (
    *(
        Volatile(path, "Ties a tool's result to its call; frameworks draw it at random.", linked=True)
        for path in _PARTS
    ),
    Volatile("user_prompt_id", "Code Assist: drawn anew for each prompt."),
    Volatile("request.session_id", "Code Assist: drawn anew for each session."),
)


class GeminiReader:
    """Answers are one object, a JSON list of them, or events: all of the same shape."""

    verbs: tuple[str, ...] = (":generateContent", ":streamGenerateContent")

    def claims(self, head: RequestHead) -> bool:
        return head.method == "POST" and unquote(head.path).endswith(self.verbs)

    def asked(self, request: HttpRequest) -> Asked:
        document, note = request_json(request)
        # Code Assist wraps the request, and so may one that only wants its tokens counted.
        wrapped = inner(inner(document, "request"), "generateContentRequest")
        settings = field(wrapped, "generationConfig")
        contents = listed(at(wrapped, "contents"))
        return Asked(
            model=_model(request, document),
            system=parts_of(field(wrapped, "systemInstruction")),
            messages=turns_of(contents),
            listed=len(contents),
            tools=tuple(tools_of(at(wrapped, "tools"))),
            parameters={
                **parameters_of(document, _READ_FIELDS),
                **parameters_of(wrapped, _READ_FIELDS),
                **parameters_of(settings, ()),
            },
            streamed=unquote(request.head.path).endswith(":streamGenerateContent"),
            note=note,
        )

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        answer = read_answer(response)
        return _draft_of(answer.documents).answered(response, answer, USAGE)

    def refusal(self, message: str) -> dict[str, Any]:
        return {"error": {"code": 400, "message": message, "status": "FAILED_PRECONDITION"}}


class GeminiEmbeddingsReader(GeminiReader):
    """``:embedContent`` and ``:batchEmbedContents``, whose answers seldom tell tokens; on Vertex AI ``:predict``."""

    verbs = (":embedContent", ":batchEmbedContents")

    def claims(self, head: RequestHead) -> bool:
        on_vertex = _EMBEDDING_ON_VERTEX.search(unquote(head.path)) is not None
        return super().claims(head) or (on_vertex and head.method == "POST")

    def asked(self, request: HttpRequest) -> Asked:
        document, note = request_json(request)
        rows = items_at(document, "requests") or items_at(document, "instances") or [document]
        return Asked(
            model=_model(request, document),
            messages=tuple(
                Message(Role.USER, parts_of(content))
                for row in rows
                if (content := at(row, "content") or at(row, "text"))
            ),
            parameters={
                # The rows of a batch differ in their words only.
                **parameters_of(rows[0], _EMBEDDED_FIELDS),
                **parameters_of(document, _EMBEDDED_FIELDS),
                **parameters_of(at(document, "parameters"), ()),
            },
            embeds=True,
            note=note,
        )

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        answer = read_answer(response)
        draft = AnswerDraft()
        for document in answer.documents:
            predicted = items_at(document, "predictions")
            rows = predicted or items_at(document, "embeddings") or [at(document, "embedding")]
            vectors = [values for row in rows for path in _VALUES if (values := items_at(row, *path))]
            if vectors:
                draft.put(draft.free(), Vectors(len(vectors), len(vectors[0])))
            counts = (count_at(row, "embeddings", "statistics", "token_count") for row in predicted)
            draft.count({"promptTokenCount": total(*counts)})
            draft.count(by_modality(at(document, "usageMetadata")))
        return draft.answered(response, answer, USAGE)


class GeminiCountingReader(GeminiReader):
    """``:countTokens``: no model answers, so its number is shown and not added to anybody's usage."""

    verbs = (":countTokens",)

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        return counted_tokens(response, "totalTokens")


def _model(request: HttpRequest, document: Any) -> str | None:
    named = _MODEL.search(unquote(request.head.path))
    return writable(named[1]) if named else words_at(document, "model") or None


# ── what is answered ─────────────────────────────────────────────────────────────────────────────────────────

_Calls = dict[tuple[int, BlockPlace], PartialJson]
"""Function calls whose arguments come in pieces, by choice and place."""


def _draft_of(documents: tuple[Any, ...]) -> AnswerDraft:
    draft = AnswerDraft()
    calls: _Calls = {}
    for document in documents:
        _take(draft, calls, inner(document, "response"))
    for (choice, place), pieces in calls.items():
        draft.tool(place, choice=choice).arguments = pieces.into({})
    return draft


def _take(draft: AnswerDraft, calls: _Calls, document: Any) -> None:
    draft.named(document, id_at="responseId", model_at="modelVersion")
    for place, candidate in enumerate(items_at(document, "candidates")):
        told = count_at(candidate, "index")
        choice = place if told is None else told
        draft.choices.setdefault(choice, {})
        for part in listed(at(candidate, "content", "parts")):
            _take_part(draft, calls, choice, part)
        if choice == 0:
            draft.stopped(text_at(candidate, "finishReason"))
    usage = at(document, "usageMetadata")
    # Numbers in a stream are cumulative; the last ones told hold.
    draft.count(by_modality(usage))
    draft.tier = text_at(usage, "serviceTier") or text_at(usage, "trafficType") or draft.tier
    if blocked := text_at(document, "promptFeedback", "blockReason"):
        draft.note = f"blocked: {writable(blocked[:60])}"
        draft.stopped(draft.note)


def _take_part(draft: AnswerDraft, calls: _Calls, choice: int, part: Any) -> None:
    text = text_at(part, "text")
    call = field(part, "functionCall")
    if text and is_thought(part):
        draft.think(_place(draft, "thought", choice), text, choice=choice)
    elif text:
        draft.say(_place(draft, "text", choice), text, choice=choice)
    elif _comes_in_pieces(call) or (call == {} and (choice, draft.last(choice=choice)) in calls):
        _take_pieces(draft, calls, choice, call)
    elif (read := part_of(part)) is not None:
        draft.put(("part", draft.free(choice=choice)), read, choice=choice)


def _place(draft: AnswerDraft, kind: str, choice: int) -> BlockPlace:
    """Texts, and thoughts, that follow one another are one."""
    last = draft.last(choice=choice)
    going_on = isinstance(last, tuple) and last[0] == kind
    return last if going_on else (kind, draft.free(choice=choice))


def _comes_in_pieces(call: Any) -> bool:
    return field(call, "willContinue") is True or field(call, "partialArgs") is not None


def _take_pieces(draft: AnswerDraft, calls: _Calls, choice: int, call: Any) -> None:
    """Vertex AI streams arguments by JSON path; only the first piece of a call names the function."""
    last = draft.last(choice=choice)
    new = text_at(call, "name") or (choice, last) not in calls
    place = ("part", draft.free(choice=choice)) if new else last
    tool = draft.tool(place, choice=choice)
    tool.id, tool.name = text_at(call, "id") or tool.id, text_at(call, "name") or tool.name
    pieces = calls.setdefault((choice, place), PartialJson())
    for partial in listed(field(call, "partialArgs")):
        path: JsonPath = tuple(
            int(index) if index else name or quoted
            for name, index, quoted in _STEPS.findall(words(partial, "jsonPath"))
        )
        if isinstance(text := field(partial, "stringValue"), str):
            pieces.append(path, text)
        else:
            values = (field(partial, name) for name in ("numberValue", "boolValue"))
            pieces.put(path, next((value for value in values if value is not None), None))
