"""Google Gemini: ``:generateContent`` and its stream, at AI Studio, on Vertex AI and behind Code Assist."""

import re
from typing import Any
from urllib.parse import unquote

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.step import Reading, StepKind
from rewind.providers.answer import answer_of, asked_model, error_of
from rewind.providers.base import Volatile
from rewind.providers.fields import at, count_at, items_at, text_at, total
from rewind.providers.openai_embeddings import vectors_shown
from rewind.providers.tally import Tally

_MODEL = re.compile(r"/models/([^/:]+):")
_PARTS = tuple(
    f"{root}contents[*].parts[*].{part}.id"
    for root in ("", "request.")
    for part in (
        *("functionCall", "functionResponse", "function_call", "function_response"),
        *("toolCall", "toolResponse", "tool_call", "tool_response"),
    )
)


class Gemini:
    """Answers are one object, a JSON list of them, or events: all of the same shape."""

    name = "gemini"
    kind = StepKind.LLM_CALL
    verbs: tuple[str, ...] = (":generateContent", ":streamGenerateContent")
    volatile = (
        *(
            Volatile(path, "Ties a tool's result to its call; frameworks draw it at random.", linked=True)
            for path in _PARTS
        ),
        Volatile("user_prompt_id", "Code Assist: drawn anew for each prompt."),
        Volatile("request.session_id", "Code Assist: drawn anew for each session."),
    )

    def claims(self, head: RequestHead) -> bool:
        return head.method == "POST" and unquote(head.path).endswith(self.verbs)

    def model_of(self, request: HttpRequest) -> str | None:
        named = _MODEL.search(unquote(request.head.path))
        return named[1] if named else asked_model(request)

    def read(self, request: HttpRequest, response: HttpResponse) -> Reading:
        answer = answer_of(response)
        tally = Tally()
        for document in answer.documents:
            inner = at(document, "response")
            _take(tally, inner if isinstance(inner, dict) else document)
        return tally.reading(response, answer, lambda: self.model_of(request))

    def refusal(self, message: str) -> dict[str, Any]:
        return {"error": {"code": 400, "message": message, "status": "FAILED_PRECONDITION"}}


class GeminiEmbeddings(Gemini):
    """``:embedContent`` and ``:batchEmbedContents``; the answer tells no tokens."""

    verbs = (":embedContent", ":batchEmbedContents")

    def read(self, request: HttpRequest, response: HttpResponse) -> Reading:
        answer = answer_of(response)
        tally = Tally()
        for document in answer.documents:
            rows = items_at(document, "embeddings") or [at(document, "embedding")]
            tally.text(vectors_shown([items_at(row, "values") for row in rows if items_at(row, "values")]))
        return tally.reading(response, answer, lambda: self.model_of(request))


class GeminiCounting(Gemini):
    """``:countTokens``: no model answers, so its number is shown and not added to anybody's usage."""

    kind = StepKind.HTTP_CALL
    verbs = (":countTokens",)

    def read(self, request: HttpRequest, response: HttpResponse) -> Reading:
        answer = answer_of(response)
        counted = next((count_at(document, "totalTokens") for document in answer.documents), None)
        return Reading(
            model=self.model_of(request),
            text="" if counted is None else f"{counted:,} tokens",
            error=error_of(response, answer),
            note=answer.note,
        )


def _take(tally: Tally, document: Any) -> None:
    tally.named(document, "modelVersion")
    for part in items_at(document, "candidates", 0, "content", "parts"):
        if not at(part, "thought"):
            tally.text(text_at(part, "text"))
        call = at(part, "functionCall")
        if isinstance(call, dict):
            tool = tally.tool(None)
            tool.name, tool.arguments = text_at(call, "name"), at(call, "args")
    usage = at(document, "usageMetadata")
    tokens_in = total(count_at(usage, "promptTokenCount"), count_at(usage, "toolUsePromptTokenCount"))
    tokens_out = total(count_at(usage, "candidatesTokenCount"), count_at(usage, "thoughtsTokenCount"))
    # Numbers in a stream are cumulative; the last ones told hold.
    tally.tokens_in = tally.tokens_in if tokens_in is None else tokens_in
    tally.tokens_out = tally.tokens_out if tokens_out is None else tokens_out
    blocked = text_at(document, "promptFeedback", "blockReason")
    tally.note = f"blocked: {blocked[:60]}" if blocked else tally.note
