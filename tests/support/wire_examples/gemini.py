"""Gemini on AI Studio and Vertex AI: whole, in events, and as a JSON list that grows."""

import json
from typing import Any

from support.exchanges import answer_with
from support.wire_examples import said
from support.wire_examples.said import Example, Stream, events, pieces, refused, to

Fields = dict[str, Any]
USAGE: Fields = {
    "promptTokenCount": said.READ,
    "cachedContentTokenCount": said.READ_FROM_CACHE,
    "candidatesTokenCount": said.WRITTEN - said.THOUGHT_ABOUT,
    "thoughtsTokenCount": said.THOUGHT_ABOUT,
    "totalTokenCount": said.READ + said.WRITTEN,
}
CODE: list[Fields] = [
    {"executableCode": {"language": "PYTHON", "code": "print(4)"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4\n"}},
]
CALLS: list[Fields] = [
    {"functionCall": {"id": call, "name": name, "args": given}, "thoughtSignature": "c2lnbmVk"}
    for call, name, given in said.CALLS
]


def asked() -> Fields:
    call, name, given = said.EARLIER_CALL
    return {
        "systemInstruction": {"parts": [{"text": said.SYSTEM}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": said.QUESTION},
                    {"inlineData": {"mimeType": "image/png", "data": said.PNG}},
                    {"inlineData": {"mimeType": "application/pdf", "data": said.PDF}},
                ],
            },
            {"role": "model", "parts": [{"functionCall": {"id": call, "name": name, "args": given}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": call, "name": name, "response": {"result": said.RESULT}}}],
            },
        ],
        "tools": [
            {"functionDeclarations": [{"name": said.TOOL, "description": said.TOOL_SAYS, "parameters": said.SCHEMA}]},
            {"codeExecution": {}},
        ],
        "generationConfig": {"temperature": 0.5},
    }


def answer(parts: list[Fields], *, stop: str | None = None, usage: Fields = USAGE) -> Fields:
    ended = {"finishReason": stop} if stop else {}
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0, **ended}],
        "usageMetadata": usage,
        "modelVersion": said.ANSWERED_BY,
        "responseId": said.ANSWER_ID,
    }


def whole() -> Fields:
    parts = [{"text": said.THOUGHT, "thought": True}, *CODE, {"text": said.TEXT}, *CALLS]
    return answer(parts, stop="STOP")


def stream_documents() -> list[Fields]:
    so_far = {name: USAGE[name] for name in ("promptTokenCount", "cachedContentTokenCount")}
    steps: list[list[Fields]] = [
        *([{"text": piece, "thought": True}] for piece in pieces(said.THOUGHT)),
        *([part] for part in CODE),
        *([{"text": piece}] for piece in pieces(said.TEXT)),
        *([part] for part in CALLS),
    ]
    return [*(answer(parts, usage=so_far) for parts in steps), answer([{"text": ""}], stop="STOP")]


def error(message: str, code: int = 404, status: str = "NOT_FOUND") -> Fields:
    return {"error": {"code": code, "message": message, "status": status}}


def _broken() -> list[Fields]:
    return [*stream_documents()[:-1], error(said.BROKE_OFF, 503, "UNAVAILABLE")]


def _listed(documents: list[Fields]) -> bytes:
    return b"[" + b",\r\n".join(json.dumps(document, indent=1).encode() for document in documents) + b"\n]\n"


STREAMING = to(f"/v1beta/models/{said.MODEL}:streamGenerateContent?alt=sse", asked())
LISTING = to(f"/v1beta/models/{said.MODEL}:streamGenerateContent", asked())
CONTENT: Fields = {"parts": [{"text": said.QUESTION}]}
BATCH: Fields = {"requests": [{"model": f"models/{said.MODEL}", "content": CONTENT} for _ in said.VECTORS]}

EXAMPLES = (
    Example(
        api="Gemini",
        paths=(
            "/v1beta/models/{…}:generateContent",
            "/v1beta/models/{…}:streamGenerateContent",
            "/v1/projects/{…}/locations/{…}/publishers/google/models/{…}:generateContent",
            "/v1/projects/{…}/locations/{…}/publishers/google/models/{…}:streamGenerateContent",
        ),
        request=to(f"/v1beta/models/{said.MODEL}:generateContent", asked()),
        whole=answer_with(whole()),
        streams=(
            Stream(format="SSE", request=STREAMING, response=events(*stream_documents())),
            Stream(format="JSON list", request=LISTING, response=answer_with(_listed(stream_documents()))),
        ),
        broken=Stream(format="SSE", request=STREAMING, response=events(*_broken())),
        refused=refused(error(said.REFUSED)),
    ),
    Example(
        api="Gemini embeddings",
        paths=("/v1beta/models/{…}:batchEmbedContents", "/v1beta/models/{…}:embedContent"),
        request=to(f"/v1beta/models/{said.MODEL}:batchEmbedContents", BATCH),
        whole=answer_with({"embeddings": [{"values": vector} for vector in said.VECTORS]}),
        refused=refused(error(said.REFUSED)),
    ),
    Example(
        api="Gemini token counting",
        paths=("/v1beta/models/{…}:countTokens",),
        request=to(f"/v1beta/models/{said.MODEL}:countTokens", {"contents": asked()["contents"]}),
        whole=answer_with({"totalTokens": said.READ}),
        refused=refused(error(said.REFUSED)),
    ),
)
