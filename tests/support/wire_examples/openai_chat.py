"""OpenAI Chat Completions and the hosts that speak it with an accent of their own; legacy completions."""

from collections.abc import Callable
from typing import Any

from rewind.model.http import HttpResponse
from support.exchanges import answer_with
from support.wire_examples import said
from support.wire_examples.said import Example, Stream, events, pieces, refused, to, written

DONE = b"data: [DONE]\n\n"
Fields = dict[str, Any]
COUNTED: Fields = {
    "prompt_tokens": said.READ,
    "completion_tokens": said.WRITTEN,
    "total_tokens": said.READ + said.WRITTEN,
    "prompt_tokens_details": {"cached_tokens": said.READ_FROM_CACHE, "cache_write_tokens": said.WRITTEN_TO_CACHE},
    "completion_tokens_details": {"reasoning_tokens": said.THOUGHT_ABOUT},
}


def asked(**more: Any) -> Fields:
    call, name, given = said.EARLIER_CALL
    return {
        "model": said.MODEL,
        "temperature": 0.5,
        "messages": [
            {"role": "system", "content": said.SYSTEM},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": said.QUESTION},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{said.PNG}"}},
                    {
                        "type": "file",
                        "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{said.PDF}"},
                    },
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": call, "type": "function", "function": {"name": name, "arguments": written(given)}}
                ],
            },
            {"role": "tool", "tool_call_id": call, "content": said.RESULT},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": said.TOOL, "description": said.TOOL_SAYS, "parameters": said.SCHEMA},
            }
        ],
        **more,
    }


def tool_calls() -> list[Fields]:
    return [
        {"id": call, "type": "function", "function": {"name": name, "arguments": written(given)}}
        for call, name, given in said.CALLS
    ]


def completion(choices: list[Fields], usage: Fields | None = COUNTED, **more: Any) -> Fields:
    return {
        "id": said.ANSWER_ID,
        "object": "chat.completion",
        "created": 1767225600,
        "model": said.ANSWERED_BY,
        "choices": choices,
        "usage": usage,
        **more,
    }


def choice(index: int = 0, stop: str = "tool_calls", **message: Any) -> Fields:
    return {
        "index": index,
        "message": {"role": "assistant", "content": None, **message},
        "finish_reason": stop,
        "logprobs": None,
    }


def chunk(delta: Fields, index: int = 0, stop: str | None = None, **more: Any) -> Fields:
    return {
        "id": said.ANSWER_ID,
        "object": "chat.completion.chunk",
        "created": 1767225600,
        "model": said.ANSWERED_BY,
        "choices": [{"index": index, "delta": delta, "finish_reason": stop, "logprobs": None}],
        **more,
    }


def begun() -> Fields:
    return chunk({"role": "assistant", "content": "", "refusal": None})


def text_chunks(text: str = said.TEXT, index: int = 0) -> list[Fields]:
    return [chunk({"content": piece}, index) for piece in pieces(text)]


def tool_chunks() -> list[Fields]:
    """Both calls side by side, each in pieces."""
    opened, rest = [], []
    for number, (call, name, given) in enumerate(said.CALLS):
        function = {"name": name, "arguments": ""}
        opened.append(chunk({"tool_calls": [{"index": number, "id": call, "type": "function", "function": function}]}))
        rest += [
            (place, chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]}))
            for place, piece in enumerate(pieces(written(given)))
        ]
    return [*opened, *(document for _, document in sorted(rest, key=lambda one: one[0]))]


def counted(usage: Fields = COUNTED) -> Fields:
    return {**chunk({}), "choices": [], "usage": usage}


def error(message: str) -> Fields:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}


def broken(*documents: Fields) -> HttpResponse:
    return events(*documents, error(said.BROKE_OFF), end=DONE)


def _example(
    api: str,
    paths: tuple[str, ...],
    message: Fields,
    chunks: list[Fields],
    *,
    others: tuple[Fields, ...] = (),
    stop: str = "tool_calls",
    usage: Callable[[], list[Fields]] = lambda: [counted()],
) -> Example:
    request, streaming = to(paths[0], asked()), to(paths[0], asked(stream=True))
    stream = events(*chunks, chunk({}, stop=stop), *usage(), end=DONE)
    return Example(
        api=api,
        paths=paths,
        request=request,
        whole=answer_with(completion([choice(stop=stop, **message), *others])),
        streams=(Stream(format="SSE", request=streaming, response=stream),),
        broken=Stream(format="SSE", request=streaming, response=broken(*chunks)),
        refused=refused(error(said.REFUSED)),
    )


def _thought(*fields: str) -> list[Fields]:
    return [chunk(dict.fromkeys(fields, piece)) for piece in pieces(said.THOUGHT)]


def _details() -> list[Fields]:
    """OpenRouter tells the thinking twice: as a text, and as details of what kind it is."""
    return [
        chunk({"reasoning": piece, "reasoning_details": [{"type": "reasoning.text", "text": piece, "index": 0}]})
        for piece in pieces(said.THOUGHT)
    ]


LEGACY = to("/v1/completions", {"model": said.MODEL, "prompt": said.QUESTION, "temperature": 0.5})
LEGACY_STREAMING = to(
    "/v1/completions", {"model": said.MODEL, "prompt": said.QUESTION, "temperature": 0.5, "stream": True}
)


def _legacy(text: str, stop: str | None) -> Fields:
    return {
        "id": said.ANSWER_ID,
        "object": "text_completion",
        "model": said.ANSWERED_BY,
        "choices": [{"index": 0, "text": text, "finish_reason": stop, "logprobs": None}],
    }


EXAMPLES = (
    _example(
        "OpenAI Chat Completions",
        (
            "/v1/chat/completions",
            "/chat/completions",
            "/openai/deployments/{…}/chat/completions",
            "/api/v1/chat/completions",
            "/openai/v1/chat/completions",
        ),
        {"content": said.TEXT, "refusal": None, "annotations": [], "tool_calls": tool_calls()},
        [begun(), *text_chunks(), *text_chunks(said.OTHER_TEXT, 1), chunk({}, 1, "stop"), *tool_chunks()],
        others=(choice(1, "stop", content=said.OTHER_TEXT),),
    ),
    _example(
        "… as DeepSeek, xAI and vLLM speak it",
        ("/v1/chat/completions",),
        {"content": said.TEXT, "reasoning_content": said.THOUGHT, "tool_calls": tool_calls()},
        [begun(), *_thought("reasoning_content"), *text_chunks(), *tool_chunks()],
    ),
    _example(
        "… as OpenRouter speaks it",
        ("/api/v1/chat/completions",),
        {
            "content": said.TEXT,
            "reasoning": said.THOUGHT,
            "reasoning_details": [{"type": "reasoning.text", "text": said.THOUGHT, "index": 0}],
            "tool_calls": tool_calls(),
        },
        [begun(), *_details(), *text_chunks(), *tool_chunks()],
    ),
    _example(
        "… as Groq speaks it",
        ("/openai/v1/chat/completions",),
        {"content": said.TEXT, "reasoning": said.THOUGHT, "tool_calls": tool_calls()},
        [begun(), *_thought("reasoning"), *text_chunks(), *tool_chunks()],
        usage=lambda: [chunk({}, x_groq={"id": "req_1", "usage": COUNTED})],
    ),
    _example(
        "… as Mistral speaks it",
        ("/v1/chat/completions",),
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": said.THOUGHT}]},
                {"type": "text", "text": said.TEXT},
            ],
            "tool_calls": tool_calls(),
        },
        [
            begun(),
            *(
                chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}]})
                for piece in pieces(said.THOUGHT)
            ),
            *text_chunks(),
            *tool_chunks(),
        ],
    ),
    Example(
        api="OpenAI Completions (legacy)",
        paths=("/v1/completions",),
        request=LEGACY,
        whole=answer_with({**_legacy(said.TEXT, "stop"), "usage": COUNTED}),
        streams=(
            Stream(
                format="SSE",
                request=LEGACY_STREAMING,
                response=events(
                    *(_legacy(piece, None) for piece in pieces(said.TEXT)),
                    _legacy("", "stop"),
                    {**_legacy("", None), "choices": [], "usage": COUNTED},
                    end=DONE,
                ),
            ),
        ),
        broken=Stream(format="SSE", request=LEGACY_STREAMING, response=broken(_legacy(said.TEXT, None))),
        refused=refused(error(said.REFUSED)),
    ),
)
"""The thinking, the tools and the usage of one dialect say the same as those of the next."""
