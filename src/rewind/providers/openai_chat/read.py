"""OpenAI Chat Completions, and the many servers that speak it: Azure, Groq, OpenRouter, vLLM, LiteLLM, Mistral …"""

import re
from collections.abc import Iterable
from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked
from rewind.providers.api import Volatile
from rewind.providers.shared.answer_draft import AnswerDraft, UsagePath, UsageTable, parameters_of
from rewind.providers.shared.answer_stream import read_answer, request_json
from rewind.providers.shared.chat_messages import conversation, input_messages, take_message, tools_in
from rewind.providers.shared.json_fields import at, count_at, first_count, items_at, start_of, text_at, words_at

TOOL_CALL_IDS = (
    Volatile("messages[*].tool_calls[*].id", "Names a tool call; drawn at random.", linked=True),
    Volatile("messages[*].tool_call_id", "Refers to a tool call.", linked=True),
)
NOISE = (
    Volatile("prompt_cache_key", "Routes to a warm cache; frameworks make one per session."),
    Volatile("safety_identifier", "For abuse detection; the model never sees it."),
    *(
        Volatile(f"metadata.{name}", "A label for dashboards that tracing draws anew for each run.")
        for name in ("request_id", "trace_id", "span_id", "run_id", "session_id", "correlation_id")
    ),
    # Not `user`: gateways route, bill and remember by it, so another user is another request.
)

_READ = "prompt_tokens_details"
_WRITTEN = "completion_tokens_details"
_TOLD: dict[str, tuple[UsagePath, ...]] = {
    # Cached tokens are among the prompt's, reasoning among the completion's.
    "input": (("prompt_tokens",),),
    "output": (("completion_tokens",),),
    "total": (("total_tokens",),),
    "cache_read": (
        (_READ, "cached_tokens"),
        ("prompt_cache_hit_tokens",),  # DeepSeek
        ("cached_tokens",),  # Moonshot, Together
        ("cache_read_input_tokens",),  # LiteLLM
    ),
    "cache_write": (
        (_READ, "cache_write_tokens"),  # OpenRouter
        (_READ, "cache_creation_tokens"),  # LiteLLM
        ("cache_creation_input_tokens",),
    ),
    "reasoning": ((_WRITTEN, "reasoning_tokens"), ("reasoning_tokens",)),
    "output_citation_tokens": (("citation_tokens",),),  # Perplexity
    "input_audio_tokens": ((_READ, "audio_tokens"),),
    "input_image_tokens": ((_READ, "image_tokens"),),
    "input_video_tokens": ((_READ, "video_tokens"),),
    "cache_audio_read_tokens": ((_READ, "cached_tokens_details", "audio_tokens"),),
    "output_audio_tokens": ((_WRITTEN, "audio_tokens"),),
    "output_image_tokens": ((_WRITTEN, "image_tokens"),),
    "web_searches": (
        ("num_search_queries",),  # Perplexity
        ("server_tool_use", "web_search_requests"),  # OpenRouter
        (_READ, "web_search_requests"),  # LiteLLM
    ),
}
"""Where each count may stand; the first place that tells it holds, for some servers tell it under two names."""

USAGE = UsageTable(
    input=(("input",),),
    output=(("output",), ("reasoning_apart",), ("output_citation_tokens",)),
    cache_read=(("cache_read",),),
    cache_write=(("cache_write",),),
    reasoning=(("reasoning",),),
    more={name: ((name,),) for name in _TOLD if name.endswith(("_tokens", "_searches"))},
)

_WATSONX = re.compile(r"/ml/v1[a-z0-9-]*/(?:deployments/[^/]+/)?text/chat(?:_stream)?$")
_READ_FIELDS = ("model", "model_id", "messages", "prompt", "tools", "functions", "stream")


def openai_error(message: str) -> dict[str, Any]:
    """An error as OpenAI's SDKs read it."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": "rewind_miss"}}


def deployed(head: RequestHead) -> str:
    """Azure names the deployment in the path and may leave the model out of the body."""
    return head.path.partition("/deployments/")[2].partition("/")[0]


VOLATILE = (
    *TOOL_CALL_IDS,
    Volatile("messages[*].id", "Some frameworks send their own id of a message along.", linked=True),
    *NOISE,
)


class OpenAIChatReader:
    """Also the legacy completions, whose choices carry ``text`` instead of a message; and Writer and watsonx, which
    answer elsewhere in the same shape."""

    def claims(self, head: RequestHead) -> bool:
        path = head.path.rstrip("/")
        writer = path.endswith("/v1/chat") and "writer" in head.host.lower()
        return head.method == "POST" and (path.endswith("/completions") or writer or _WATSONX.search(path) is not None)

    def asked(self, request: HttpRequest) -> Asked:
        document, note = request_json(request)
        turns = items_at(document, "messages")
        system, messages = conversation(turns)
        return Asked(
            model=words_at(document, "model") or words_at(document, "model_id") or deployed(request.head) or None,
            system=system,
            messages=messages + input_messages(at(document, "prompt")),
            listed=len(turns) or None,
            tools=tools_in(document),
            parameters=parameters_of(document, _READ_FIELDS),
            streamed=at(document, "stream") is True or request.head.path.endswith("/chat_stream"),
            note=note,
        )

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        answer = read_answer(response)
        # The first choice is the answer, also where a stream begins with another or it says nothing.
        draft = AnswerDraft(choices={0: {}})
        choices: dict[int, list[Any]] = {}
        for document in answer.documents:
            draft.named(document)
            draft.tier = text_at(document, "service_tier") or draft.tier
            for place, choice in enumerate(items_at(document, "choices")):
                number = count_at(choice, "index")
                choices.setdefault(place if number is None else number, []).append(choice)
                # Moonshot counts inside the choice when it streams.
                count_usage(draft, at(choice, "usage"))
            count_usage(draft, at(document, "x_groq", "usage"))
            count_usage(draft, at(document, "usage"))
        for number, heard in choices.items():
            draft.choices.setdefault(number, {})
            take_message(draft, _pieces(heard), choice=number)
        for choice in choices.get(0, []):
            draft.stopped(text_at(choice, "finish_reason"))
        draft.error = _failure(choices.get(0, []))
        return draft.answered(response, answer, USAGE)

    def refusal(self, message: str) -> dict[str, Any]:
        return openai_error(message)


def _pieces(choices: Iterable[Any]) -> list[Any]:
    """What one choice says, in one piece or many.

    Perplexity sends the message so far beside every delta, and an empty delta beside a whole message.
    """
    deltas: list[Any] = []
    texts: list[Any] = []
    messages: list[Any] = []
    for choice in choices:
        delta = at(choice, "delta")
        if isinstance(delta, dict) and any(value for name, value in delta.items() if name != "role"):
            deltas.append(delta)
        if text := text_at(choice, "text"):
            texts.append({"content": text})
        if (message := at(choice, "message")) is not None:
            messages.append(message)
    return deltas or texts or messages[-1:]


def _failure(choices: Iterable[Any]) -> str | None:
    """OpenRouter tells an error of the model's host inside the choice, under status 200."""
    told = (text_at(choice, "error", "message") for choice in choices)
    return next((start_of(message, 500) for message in told if message), None)


def count_usage(draft: AnswerDraft, usage: Any) -> None:
    """A ``usage`` object, for :data:`USAGE`."""
    if not isinstance(usage, dict):
        return
    told = {name: first_count(usage, places) for name, places in _TOLD.items()}
    draft.count({**told, "reasoning_apart": _counted_apart(told)})
    draft.tier = text_at(usage, "service_tier") or draft.tier


def _counted_apart(told: dict[str, int | None]) -> int | None:
    """Reasoning that is not among the completion's tokens.

    xAI leaves it out of ``completion_tokens`` and adds it to ``total_tokens`` (docs.x.ai, "Consumption and Rate
    Limits"), and so do some gateways before Gemini: the total shows it, whatever the host. Perplexity leaves it
    out of both, and is known by its citations.
    """
    reasoning, whole = told["reasoning"], told["total"]
    if reasoning is None:
        return None
    parts = (told["input"] or 0) + (told["output"] or 0)
    by_total = whole is not None and reasoning > 0 and whole == parts + reasoning
    return reasoning if by_total or told["output_citation_tokens"] is not None else None
