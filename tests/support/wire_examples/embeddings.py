"""Embeddings as OpenAI, Voyage, Cohere, Ollama and the models on Bedrock answer them; Gemini's are with Gemini."""

from base64 import b64encode
from struct import pack
from typing import Any

from support.exchanges import answer_with
from support.wire_examples import said
from support.wire_examples.openai_chat import error
from support.wire_examples.said import Example, refused, to

TEXTS = [said.QUESTION for _ in said.VECTORS]
WRITTEN = [b64encode(pack("<4f", *vector)).decode() for vector in said.VECTORS]


def _embedded(vectors: list[Any], usage: dict[str, int]) -> dict[str, Any]:
    rows = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
    return {"object": "list", "data": rows, "model": said.ANSWERED_BY, "usage": usage}


COUNTED = {"prompt_tokens": said.READ, "total_tokens": said.READ}
COHERE = {
    "id": said.ANSWER_ID,
    "embeddings": {"float": said.VECTORS},
    "texts": TEXTS,
    "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": said.READ}},
}

EXAMPLES = (
    Example(
        api="OpenAI embeddings",
        paths=("/v1/embeddings", "/openai/deployments/{…}/embeddings"),
        request=to("/v1/embeddings", {"model": said.MODEL, "input": TEXTS}),
        whole=answer_with(_embedded(said.VECTORS, COUNTED)),
        refused=refused(error(said.REFUSED)),
    ),
    Example(
        api="OpenAI embeddings in base64",
        paths=("/v1/embeddings",),
        request=to("/v1/embeddings", {"model": said.MODEL, "input": TEXTS, "encoding_format": "base64"}),
        whole=answer_with(_embedded(WRITTEN, COUNTED)),
        refused=refused(error(said.REFUSED)),
    ),
    Example(
        api="Voyage embeddings",
        paths=("/v1/embeddings",),
        request=to("/v1/embeddings", {"model": said.MODEL, "input": TEXTS, "input_type": "query"}),
        whole=answer_with(_embedded(said.VECTORS, {"total_tokens": said.READ})),
        refused=refused({"detail": said.REFUSED}),
    ),
    Example(
        api="Cohere embeddings",
        paths=("/v2/embed", "/v1/embed"),
        request=to("/v2/embed", {"model": said.MODEL, "texts": TEXTS, "input_type": "search_query"}),
        whole=answer_with(COHERE),
        refused=refused({"id": said.ANSWER_ID, "message": said.REFUSED}),
    ),
    Example(
        api="Ollama embeddings",
        paths=("/api/embed", "/api/embeddings"),
        request=to("/api/embed", {"model": said.MODEL, "input": TEXTS}),
        whole=answer_with({"model": said.ANSWERED_BY, "embeddings": said.VECTORS, "prompt_eval_count": said.READ}),
        refused=refused({"error": said.REFUSED}),
    ),
    Example(
        api="Bedrock embeddings: Cohere",
        paths=("/model/{…}/invoke",),
        request=to(f"/model/{said.MODEL}/invoke", {"texts": TEXTS, "input_type": "search_query"}),
        whole=answer_with(
            {"id": said.ANSWER_ID, "embeddings": said.VECTORS, "texts": TEXTS},
            headers=(("x-amzn-bedrock-input-token-count", str(said.READ)),),
        ),
        refused=refused({"message": said.REFUSED}),
    ),
)
