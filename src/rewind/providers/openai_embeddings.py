"""Embeddings as OpenAI and its many neighbours serve them; Cohere and Ollama differ in names only."""

from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.step import Reading, StepKind
from rewind.providers.answer import answer_of, asked_model
from rewind.providers.base import Volatile
from rewind.providers.fields import at, count_at, items_at
from rewind.providers.openai_chat import NOISE, openai_error
from rewind.providers.tally import Tally

_COUNTS = (
    ("usage", "prompt_tokens"),
    ("usage", "total_tokens"),
    ("meta", "billed_units", "input_tokens"),
    ("prompt_eval_count",),
)


class Embeddings:
    """A call to a model that answers with vectors."""

    name = "openai-embeddings"
    kind = StepKind.LLM_CALL
    volatile: tuple[Volatile, ...] = NOISE

    def claims(self, head: RequestHead) -> bool:
        path = head.path.rstrip("/")
        return head.method == "POST" and path.endswith(
            ("/embeddings", "/api/embed", "/v1/embed", "/v2/embed")
        )

    def model_of(self, request: HttpRequest) -> str | None:
        return asked_model(request)

    def read(self, request: HttpRequest, response: HttpResponse) -> Reading:
        answer = answer_of(response)
        tally = Tally()
        for document in answer.documents:
            tally.named(document, "model")
            tally.text(vectors_shown(_vectors(document)))
            counts = (count_at(document, *place) for place in _COUNTS)
            tally.tokens_in = next((count for count in counts if count is not None), None)
        return tally.reading(response, answer, lambda: self.model_of(request))

    def refusal(self, message: str) -> dict[str, Any]:
        return openai_error(message)


def vectors_shown(vectors: list[Any]) -> str:
    """``3 vectors of 1,536``."""
    if not vectors:
        return ""
    size = f" of {len(vectors[0]):,}" if isinstance(vectors[0], list) else ""
    return f"{len(vectors)} vector{'s' * (len(vectors) > 1)}{size}"


def _vectors(document: Any) -> list[Any]:
    by_type = at(document, "embeddings")
    if isinstance(by_type, dict):
        return next((vectors for vectors in by_type.values() if isinstance(vectors, list)), [])
    rows = [at(row, "embedding") for row in items_at(document, "data")]
    single = items_at(document, "embedding")
    return rows or items_at(document, "embeddings") or ([single] if single else [])
