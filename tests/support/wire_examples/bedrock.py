"""Amazon Bedrock: Converse, and InvokeModel in the shapes of several makers, whole and in AWS's frames."""

from typing import Any

from rewind.model.http import Headers
from support.aws_frames import chunk, event, exception, framed
from support.exchanges import answer_with
from support.wire_examples import anthropic, openai_chat, said
from support.wire_examples.said import Example, Stream, pieces, refused, to, written

Fields = dict[str, Any]
COUNTS: Headers = (
    ("x-amzn-bedrock-input-token-count", str(said.READ)),
    ("x-amzn-bedrock-output-token-count", str(said.WRITTEN)),
)
USAGE: Fields = {
    "inputTokens": said.READ - said.READ_FROM_CACHE - said.WRITTEN_TO_CACHE,
    "cacheReadInputTokens": said.READ_FROM_CACHE,
    "cacheWriteInputTokens": said.WRITTEN_TO_CACHE,
    "outputTokens": said.WRITTEN,
    "totalTokens": said.READ + said.WRITTEN,
}
METRICS: Fields = {
    "inputTokenCount": said.READ,
    "outputTokenCount": said.WRITTEN,
    "invocationLatency": 900,
    "firstByteLatency": 200,
}


def asked() -> Fields:
    call, name, given = said.EARLIER_CALL
    return {
        "system": [{"text": said.SYSTEM}, {"cachePoint": {"type": "default"}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"text": said.QUESTION},
                    {"image": {"format": "png", "source": {"bytes": said.PNG}}},
                    {"document": {"format": "pdf", "name": "a", "source": {"bytes": said.PDF}}},
                ],
            },
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": call, "name": name, "input": given}}]},
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": call, "content": [{"text": said.RESULT}], "status": "success"}}
                ],
            },
        ],
        "toolConfig": {
            "tools": [
                {"toolSpec": {"name": said.TOOL, "description": said.TOOL_SAYS, "inputSchema": {"json": said.SCHEMA}}}
            ]
        },
        "inferenceConfig": {"temperature": 0.5},
    }


def converse() -> Fields:
    content = [
        {"reasoningContent": {"reasoningText": {"text": said.THOUGHT, "signature": "c2lnbmVk"}}},
        {"text": said.TEXT},
        *({"toolUse": {"toolUseId": call, "name": name, "input": given}} for call, name, given in said.CALLS),
    ]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use",
        "usage": USAGE,
        "metrics": {"latencyMs": 900},
    }


def _delta(index: int, **delta: Any) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": index, "delta": delta, "p": "abc"})


def converse_frames() -> list[bytes]:
    raw = [event("messageStart", {"role": "assistant"})]
    raw += [_delta(0, reasoningContent={"text": piece}) for piece in pieces(said.THOUGHT)]
    raw += [_delta(0, reasoningContent={"signature": "c2lnbmVk"}), event("contentBlockStop", {"contentBlockIndex": 0})]
    raw += [_delta(1, text=piece) for piece in pieces(said.TEXT)]
    raw += [event("contentBlockStop", {"contentBlockIndex": 1})]
    for index, (call, name, given) in enumerate(said.CALLS, start=2):
        start = {"toolUse": {"toolUseId": call, "name": name}}
        raw += [event("contentBlockStart", {"contentBlockIndex": index, "start": start})]
        raw += [_delta(index, toolUse={"input": piece}) for piece in pieces(written(given))]
        raw += [event("contentBlockStop", {"contentBlockIndex": index})]
    return raw


def converse_end() -> list[bytes]:
    return [
        event("messageStop", {"stopReason": "tool_use"}),
        event("metadata", {"usage": USAGE, "metrics": {"latencyMs": 900}}),
    ]


def throttled() -> bytes:
    return exception("throttlingException", {"message": said.BROKE_OFF})


def _invoked(maker: str, body: Fields, whole: Fields, streamed: list[Fields], *, headers: Headers = ()) -> Example:
    """InvokeModel as one maker's models have it."""
    streamed = [*streamed[:-1], {**streamed[-1], "amazon-bedrock-invocationMetrics": METRICS}]
    streaming = to(f"/model/{said.MODEL}/invoke-with-response-stream", body)
    return Example(
        api=f"Bedrock InvokeModel: {maker}",
        paths=("/model/{…}/invoke", "/model/{…}/invoke-with-response-stream"),
        request=to(f"/model/{said.MODEL}/invoke", body),
        whole=answer_with(whole, headers=headers),
        streams=(Stream(format="AWS frames", request=streaming, response=framed(*map(chunk, streamed))),)
        if streamed
        else (),
        broken=Stream(format="AWS frames", request=streaming, response=framed(*map(chunk, streamed[:-1]), throttled()))
        if streamed
        else None,
        refused=refused({"message": said.REFUSED}),
    )


def _llama(text: str, count: int, stop: str | None, read: int | None = None) -> Fields:
    return {"generation": text, "prompt_token_count": read, "generation_token_count": count, "stop_reason": stop}


def _titan(text: str, stop: str | None) -> Fields:
    ended = {"totalOutputTextTokenCount": said.WRITTEN, "inputTextTokenCount": said.READ}
    return {"outputText": text, "index": 0, "completionReason": stop, **(ended if stop else {})}


def _nova_end() -> list[Fields]:
    return [{"messageStop": {"stopReason": "end_turn"}}, {"metadata": {"usage": USAGE, "metrics": {}}}]


CONVERSING = to(f"/model/{said.MODEL}/converse-stream", asked())
TURNS: Fields = {"messages": [{"role": "user", "content": said.QUESTION}], "temperature": 0.5}
NOVA: Fields = {
    "schemaVersion": "messages-v1",
    "system": [{"text": said.SYSTEM}],
    "messages": [{"role": "user", "content": [{"text": said.QUESTION}]}],
    "inferenceConfig": {"temperature": 0.5},
}
COHERE: Fields = {
    "message": said.QUESTION,
    "preamble": said.SYSTEM,
    "temperature": 0.5,
    "tools": [
        {
            "name": said.TOOL,
            "description": said.TOOL_SAYS,
            "parameter_definitions": {"city": {"type": "str", "required": True}},
        }
    ],
}

EXAMPLES = (
    Example(
        api="Bedrock Converse",
        paths=("/model/{…}/converse", "/model/{…}/converse-stream"),
        request=to(f"/model/{said.MODEL}/converse", asked()),
        whole=answer_with(converse()),
        streams=(
            Stream(format="AWS frames", request=CONVERSING, response=framed(*converse_frames(), *converse_end())),
        ),
        broken=Stream(format="AWS frames", request=CONVERSING, response=framed(*converse_frames(), throttled())),
        refused=refused({"message": said.REFUSED}),
    ),
    _invoked(
        "Claude",
        anthropic.asked(anthropic_version="bedrock-2023-05-31"),
        anthropic.message(),
        anthropic.stream_documents(),
    ),
    _invoked(
        "Nova",
        NOVA,
        {
            "output": {"message": {"role": "assistant", "content": [{"text": said.TEXT}]}},
            "stopReason": "end_turn",
            "usage": USAGE,
        },
        [
            {"messageStart": {"role": "assistant"}},
            *({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": piece}}} for piece in pieces(said.TEXT)),
            {"contentBlockStop": {"contentBlockIndex": 0}},
            *_nova_end(),
        ],
    ),
    _invoked(
        "Llama",
        {"prompt": said.QUESTION, "temperature": 0.5},
        _llama(said.TEXT, said.WRITTEN, "stop", said.READ),
        [
            *(_llama(piece, 1 + place, None) for place, piece in enumerate(pieces(said.TEXT))),
            _llama("", said.WRITTEN, "stop", said.READ),
        ],
    ),
    _invoked(
        "Titan",
        {"inputText": said.QUESTION, "textGenerationConfig": {"temperature": 0.5}},
        {
            "inputTextTokenCount": said.READ,
            "results": [{"tokenCount": said.WRITTEN, "outputText": said.TEXT, "completionReason": "FINISH"}],
        },
        [*(_titan(piece, None) for piece in pieces(said.TEXT)), _titan("", "FINISH")],
    ),
    _invoked(
        "Mistral",
        {"prompt": said.QUESTION, "temperature": 0.5},
        {"outputs": [{"text": said.TEXT, "stop_reason": "stop"}]},
        [
            *({"outputs": [{"text": piece, "stop_reason": None}]} for piece in pieces(said.TEXT)),
            {"outputs": [{"text": "", "stop_reason": "stop"}]},
        ],
        headers=COUNTS,
    ),
    _invoked(
        "Cohere Command R",
        COHERE,
        {
            "generation_id": said.ANSWER_ID,
            "text": said.TEXT,
            "finish_reason": "COMPLETE",
            "tool_calls": [{"name": name, "parameters": given} for _, name, given in said.CALLS],
        },
        [
            {"event_type": "stream-start", "generation_id": said.ANSWER_ID, "is_finished": False},
            *({"event_type": "text-generation", "text": piece, "is_finished": False} for piece in pieces(said.TEXT)),
            {
                "event_type": "tool-calls-generation",
                "text": said.TEXT,
                "tool_calls": [{"name": name, "parameters": given} for _, name, given in said.CALLS],
                "is_finished": False,
            },
            {"event_type": "stream-end", "finish_reason": "COMPLETE", "is_finished": True},
        ],
        headers=COUNTS,
    ),
    _invoked(
        "DeepSeek, gpt-oss, Qwen (OpenAI's shape)",
        TURNS,
        openai_chat.completion([openai_chat.choice(stop="stop", content=said.TEXT)]),
        [openai_chat.begun(), *openai_chat.text_chunks(), openai_chat.chunk({}, stop="stop"), openai_chat.counted()],
    ),
)
