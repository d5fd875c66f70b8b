"""Embeddings as OpenAI and its many neighbours serve them; Cohere and Ollama differ in names only."""

from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked, Message, Role, Vectors
from rewind.model.step import StepKind
from rewind.providers.api import Api
from rewind.providers.openai_chat.read import NOISE, deployed, openai_error
from rewind.providers.shared.answer_draft import AnswerDraft, UsageTable, parameters_of
from rewind.providers.shared.answer_stream import read_answer, request_json
from rewind.providers.shared.chat_messages import conversation, input_messages
from rewind.providers.shared.json_fields import at, count_at, first_count, items_at, referred, text_at, words_at

_COUNTS = (
    ("usage", "prompt_tokens"),
    ("usage", "total_tokens"),
    ("meta", "billed_units", "input_tokens"),
    ("prompt_eval_count",),
)

USAGE = UsageTable(
    # Cohere counts the tokens of pictures apart.
    input=(("texts",), ("images",)),
    more={"input_image_tokens": (("images",),)},
)

_READ_FIELDS = ("model", "input", "inputs", "texts", "prompt", "images", "messages")


class EmbeddingsReader:
    """A call to a model that answers with vectors."""

    def claims(self, head: RequestHead) -> bool:
        path = head.path.rstrip("/")
        return head.method == "POST" and path.endswith(("/embeddings", "/api/embed", "/v1/embed", "/v2/embed"))

    def asked(self, request: HttpRequest) -> Asked:
        document, note = request_json(request)
        # vLLM embeds whole conversations, too.
        system, messages = conversation(items_at(document, "messages"))
        texts = (at(document, name) for name in ("input", "inputs", "texts", "prompt"))
        return Asked(
            model=words_at(document, "model") or deployed(request.head) or None,
            system=system,
            messages=(
                *messages,
                *(message for text in texts for message in input_messages(text)),
                *(_picture(url) for url in items_at(document, "images") if isinstance(url, str)),
            ),
            parameters=parameters_of(document, _READ_FIELDS),
            embeds=True,
            note=note,
        )

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        answer = read_answer(response)
        asked, _ = request_json(request)
        draft = AnswerDraft()
        for document in answer.documents:
            draft.named(document)
            values, numbers = _vectors(document, text_at(asked, "output_dtype"))
            if values:
                draft.put("vectors", Vectors(len(values), _dimensions(values[0], numbers)))
            pictured = count_at(document, "meta", "billed_units", "image_tokens")
            draft.count({"texts": first_count(document, _COUNTS), "images": pictured})
        return draft.answered(response, answer, USAGE)

    def refusal(self, message: str) -> dict[str, Any]:
        return openai_error(message)


def _picture(url: str) -> Message:
    return Message(Role.USER, (referred(url, kind="image"),))


def _vectors(document: Any, asked: str) -> tuple[list[Any], str]:
    """The vectors, and what their numbers are. Cohere gives one list for each kind that was asked for."""
    by_kind = at(document, "embeddings")
    if isinstance(by_kind, dict):
        lists = ((vectors, kind) for kind, vectors in by_kind.items() if isinstance(vectors, list) and vectors)
        return next(lists, ([], ""))
    rows = [row["embedding"] for row in items_at(document, "data") if at(row, "embedding") is not None]
    single = items_at(document, "embedding")
    return rows or items_at(document, "embeddings") or ([single] if single else []), asked


def _dimensions(vector: Any, numbers: str) -> int | None:
    """Of a vector in JSON or in base64, where a number takes four bytes, one, or (binary) a bit."""
    if isinstance(vector, list):
        length = len(vector)
    elif isinstance(vector, str):
        size = len(vector) * 3 // 4 - vector[-2:].count("=")
        length = size if numbers in ("int8", "uint8", "binary", "ubinary") else size // 4
    else:
        return None
    return length * 8 if numbers in ("binary", "ubinary") else length


API = Api(name="openai-embeddings", kind=StepKind.LLM_CALL, reader=EmbeddingsReader(), volatile=NOISE)
