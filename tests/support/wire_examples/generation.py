"""APIs with a prompt and a text, Assistants, and those that speak OpenAI's shape at addresses of their own."""

from typing import Any

from support.aws_frames import frame, framed
from support.exchanges import answer_with
from support.wire_examples import openai_chat, said
from support.wire_examples.said import Example, Stream, events, lines, pieces, refused, to, written

Fields = dict[str, Any]
NO_SUCH = refused({"error": said.REFUSED})
TURNS = f"{said.SYSTEM}\n\nHuman: {said.QUESTION}\n\nAssistant:"


def _anthropic(**more: Any) -> Any:
    body = {"model": said.MODEL, "prompt": TURNS, "max_tokens_to_sample": 9, "temperature": 0.5, **more}
    return to("/v1/complete", body, host="api.anthropic.com", headers=(("anthropic-version", "2023-06-01"),))


def _completion(text: str, stop: str | None) -> Fields:
    return {
        "type": "completion",
        "id": said.ANSWER_ID,
        "completion": text,
        "stop_reason": stop,
        "model": said.ANSWERED_BY,
    }


ANTHROPIC = Example(
    api="Anthropic completions (older)",
    paths=("/v1/complete",),
    request=_anthropic(),
    whole=answer_with(_completion(said.TEXT, "stop_sequence")),
    streams=(
        Stream(
            format="SSE",
            request=_anthropic(stream=True),
            response=events(
                *(_completion(piece, None) for piece in pieces(said.TEXT)), _completion("", "stop_sequence"), named=True
            ),
        ),
    ),
    broken=Stream(
        format="SSE",
        request=_anthropic(stream=True),
        response=events(
            *(_completion(piece, None) for piece in pieces(said.TEXT)),
            {"type": "error", "error": {"type": "overloaded_error", "message": said.BROKE_OFF}},
            named=True,
        ),
    ),
    refused=refused({"type": "error", "error": {"type": "not_found_error", "message": said.REFUSED}}),
)

# ── Cohere ────────────────────────────────────────────────────────────────────────────────────────────────────

BILLED = {
    "billed_units": {"input_tokens": said.READ - 50, "output_tokens": said.WRITTEN - 5},
    "tokens": {"input_tokens": said.READ, "output_tokens": said.WRITTEN},
}
GENERATED = {
    "id": said.ANSWER_ID,
    "generations": [
        {"id": "g1", "text": said.TEXT, "finish_reason": "COMPLETE"},
        {"id": "g2", "text": said.OTHER_TEXT, "finish_reason": "COMPLETE"},
    ],
    "prompt": said.QUESTION,
    "meta": BILLED,
}


def _cohere(**more: Any) -> Any:
    body = {"model": said.MODEL, "prompt": said.QUESTION, "num_generations": 2, "temperature": 0.5, **more}
    return to("/v1/generate", body, host="api.cohere.ai")


COHERE = Example(
    api="Cohere Generate (older)",
    paths=("/v1/generate", "/generate"),
    request=_cohere(),
    whole=answer_with(GENERATED),
    streams=(
        Stream(
            format="NDJSON",
            request=_cohere(stream=True),
            response=lines(
                *({"index": 0, "text": piece, "is_finished": False} for piece in pieces(said.TEXT)),
                *({"index": 1, "text": piece, "is_finished": False} for piece in pieces(said.OTHER_TEXT)),
                {"is_finished": True, "finish_reason": "COMPLETE", "response": GENERATED},
            ),
        ),
    ),
    refused=refused({"message": said.REFUSED}),
)

# ── Aleph Alpha ───────────────────────────────────────────────────────────────────────────────────────────────


def _aleph_alpha(**more: Any) -> Any:
    prompt = [{"type": "text", "data": said.QUESTION}]
    body = {"model": said.MODEL, "prompt": prompt, "maximum_tokens": 9, "temperature": 0.5, **more}
    return to("/complete", body, host="api.aleph-alpha.com")


ALEPH_COUNTS = {"num_tokens_prompt_total": said.READ, "num_tokens_generated": said.WRITTEN}
ALEPH_ALPHA = Example(
    api="Aleph Alpha",
    paths=("/complete",),
    request=_aleph_alpha(),
    whole=answer_with(
        {
            "model_version": said.ANSWERED_BY,
            "completions": [{"completion": said.TEXT, "finish_reason": "end_of_text"}],
            **ALEPH_COUNTS,
        }
    ),
    streams=(
        Stream(
            format="SSE",
            request=_aleph_alpha(stream=True),
            response=events(
                *({"type": "stream_chunk", "index": 0, "completion": piece} for piece in pieces(said.TEXT)),
                {
                    "type": "stream_summary",
                    "index": 0,
                    "model_version": said.ANSWERED_BY,
                    "finish_reason": "end_of_text",
                },
                {"type": "completion_summary", **ALEPH_COUNTS},
            ),
        ),
    ),
    refused=NO_SUCH,
)

# ── watsonx ───────────────────────────────────────────────────────────────────────────────────────────────────


def _watsonx(stream: bool) -> Any:
    body = {"model_id": said.MODEL, "input": said.QUESTION, "parameters": {"temperature": 0.5}, "project_id": "p"}
    return to(f"/ml/v1/text/generation{'_stream' * stream}?version=2024-05-31", body, host="us-south.ml.cloud.ibm.com")


def _result(text: str, *, stop: str, read: int, wrote: int) -> Fields:
    row = {"generated_text": text, "generated_token_count": wrote, "input_token_count": read, "stop_reason": stop}
    return {"model_id": said.ANSWERED_BY, "created_at": "2026-01-01T00:00:00Z", "results": [row]}


WATSONX = Example(
    api="watsonx generation",
    paths=("/ml/v1/text/generation", "/ml/v1/text/generation_stream", "/ml/v1/deployments/{…}/text/generation"),
    request=_watsonx(stream=False),
    whole=answer_with(_result(said.TEXT, stop="eos_token", read=said.READ, wrote=said.WRITTEN)),
    streams=(
        Stream(
            format="SSE",
            request=_watsonx(stream=True),
            response=events(
                _result("", stop="not_finished", read=said.READ, wrote=0),
                *(_result(piece, stop="not_finished", read=0, wrote=1) for piece in pieces(said.TEXT)),
                _result("", stop="eos_token", read=0, wrote=said.WRITTEN),
            ),
        ),
    ),
    refused=refused({"errors": [{"code": "model_not_supported", "message": said.REFUSED}], "status_code": 404}),
)

# ── Hugging Face and SageMaker ────────────────────────────────────────────────────────────────────────────────

TASK = {"inputs": said.QUESTION, "parameters": {"temperature": 0.5, "details": True}}
TASK_DETAILS = {"finish_reason": "eos_token", "generated_tokens": said.WRITTEN}
TASK_WHOLE = answer_with([{"generated_text": said.TEXT, "details": TASK_DETAILS}])
TOKENS = [
    *({"index": 1, "token": {"id": 1, "text": piece, "special": False}} for piece in pieces(said.TEXT)),
    {
        "index": 2,
        "token": {"id": 2, "text": "</s>", "special": True},
        "generated_text": said.TEXT,
        "details": TASK_DETAILS,
    },
]
HUGGING_FACE = Example(
    api="Hugging Face task inference",
    paths=("/models/{…}", "/hf-inference/models/{…}", "/generate", "/generate_stream"),
    request=to(f"/models/{said.MODEL}", TASK, host="api-inference.huggingface.co"),
    whole=TASK_WHOLE,
    streams=(
        Stream(
            format="SSE",
            request=to(f"/models/{said.MODEL}", {**TASK, "stream": True}, host="api-inference.huggingface.co"),
            response=events(*TOKENS),
        ),
    ),
    broken=Stream(
        format="SSE",
        request=to(f"/models/{said.MODEL}", {**TASK, "stream": True}, host="api-inference.huggingface.co"),
        response=events(*TOKENS[:-1], {"error": said.BROKE_OFF, "error_type": "overloaded"}),
    ),
    refused=NO_SUCH,
)
PAYLOAD = ((":message-type", 7, "event"), (":event-type", 7, "PayloadPart"))


def _cut(body: bytes) -> list[bytes]:
    """Frames end where no event does."""
    return [body[start : start + 50] for start in range(0, len(body), 50)]


SAGEMAKER_HOST = "runtime.sagemaker.us-east-1.amazonaws.com"
SAGEMAKER = Example(
    api="SageMaker endpoints",
    paths=("/endpoints/{…}/invocations", "/endpoints/{…}/invocations-response-stream"),
    request=to(f"/endpoints/{said.MODEL}/invocations", TASK, host=SAGEMAKER_HOST),
    whole=TASK_WHOLE,
    streams=(
        Stream(
            format="AWS frames",
            request=to(f"/endpoints/{said.MODEL}/invocations-response-stream", TASK, host=SAGEMAKER_HOST),
            response=framed(*(frame(PAYLOAD, piece) for piece in _cut(events(*TOKENS).body))),
        ),
    ),
    refused=refused({"Message": said.REFUSED}),
)

# ── Replicate and Google's predict ────────────────────────────────────────────────────────────────────────────

REPLICATE = Example(
    api="Replicate",
    paths=("/v1/models/{…}/{…}/predictions", "/v1/predictions", "/v1/deployments/{…}/{…}/predictions"),
    request=to(
        "/v1/predictions",
        {"version": said.MODEL, "input": {"prompt": said.QUESTION, "system_prompt": said.SYSTEM, "temperature": 0.5}},
        host="api.replicate.com",
    ),
    whole=answer_with(
        {
            "id": said.ANSWER_ID,
            "model": said.ANSWERED_BY,
            "status": "succeeded",
            "output": said.TEXT,
            "metrics": {"input_token_count": said.READ, "output_token_count": said.WRITTEN},
        }
    ),
    refused=refused({"detail": said.REFUSED, "status": 404}),
)
IMAGEN = Example(
    api="Imagen and other predictions of Google",
    paths=("/v1beta/models/{…}:predict", "/v1/projects/{…}/locations/{…}/publishers/google/models/{…}:predict"),
    request=to(
        f"/v1beta/models/{said.MODEL}:predict",
        {"instances": [{"prompt": said.QUESTION}], "parameters": {"temperature": 0.5}},
        host="generativelanguage.googleapis.com",
    ),
    whole=answer_with({"predictions": [{"mimeType": "image/png", "bytesBase64Encoded": said.PNG}]}),
    refused=refused({"error": {"code": 404, "message": said.REFUSED, "status": "NOT_FOUND"}}),
)

# ── OpenAI's shape elsewhere, and its Assistants ──────────────────────────────────────────────────────────────

WRITER = Example(
    api="Writer chat",
    paths=("/v1/chat",),
    request=to("/v1/chat", openai_chat.asked(), host="api.writer.com"),
    whole=openai_chat.EXAMPLES[0].whole,
    refused=openai_chat.EXAMPLES[0].refused,
)


def _run(status: str, **more: Any) -> Fields:
    return {
        "id": said.ANSWER_ID,
        "object": "thread.run",
        "created_at": 1_767_225_600,
        "thread_id": "thread_1",
        "model": said.ANSWERED_BY,
        "status": status,
        "usage": None,
        **more,
    }


def _assist(**more: Any) -> Any:
    body = {
        "assistant_id": "asst_1",
        "model": said.MODEL,
        "instructions": said.SYSTEM,
        "thread": {"messages": [{"role": "user", "content": said.QUESTION}]},
        "tools": [
            {
                "type": "function",
                "function": {"name": said.TOOL, "description": said.TOOL_SAYS, "parameters": said.SCHEMA},
            }
        ],
        "temperature": 0.5,
        **more,
    }
    return to("/v1/threads/runs", body, host="api.openai.com")


CALLS = [
    {"id": call, "type": "function", "function": {"name": name, "arguments": written(given)}}
    for call, name, given in said.CALLS
]
ASKS = {
    "required_action": {"type": "submit_tool_outputs", "submit_tool_outputs": {"tool_calls": CALLS}},
    "usage": {"prompt_tokens": said.READ, "completion_tokens": said.WRITTEN, "total_tokens": said.READ + said.WRITTEN},
}
ASSISTANTS = Example(
    api="OpenAI Assistants",
    paths=("/v1/threads/{…}/runs", "/v1/threads/runs", "/v1/threads/{…}/runs/{…}/submit_tool_outputs"),
    request=_assist(),
    whole=answer_with(_run("requires_action", **ASKS)),
    streams=(
        Stream(
            format="SSE",
            request=_assist(stream=True),
            response=events(
                _run("queued"),
                _run("in_progress"),
                _run("requires_action", **ASKS),
                end=b"event: done\ndata: [DONE]\n\n",
            ),
        ),
    ),
    refused=openai_chat.EXAMPLES[0].refused,
)

EXAMPLES = (WRITER, ASSISTANTS, ANTHROPIC, COHERE, ALEPH_ALPHA, WATSONX, HUGGING_FACE, SAGEMAKER, REPLICATE, IMAGEN)
