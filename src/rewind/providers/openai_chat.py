"""OpenAI Chat Completions, and the many servers that speak it: Azure, Groq, OpenRouter, vLLM, LiteLLM, Mistral …"""

from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.step import Reading, StepKind
from rewind.providers.answer import answer_of, asked_model
from rewind.providers.base import Volatile
from rewind.providers.fields import at, count_at, items_at, text_at
from rewind.providers.tally import Tally

NOISE = (
    Volatile("prompt_cache_key", "Routes to a warm cache; frameworks make one per session."),
    Volatile("safety_identifier", "For abuse detection; the model never sees it."),
    *(
        Volatile(f"metadata.{name}", "A label for dashboards that tracing draws anew for each run.")
        for name in ("request_id", "trace_id", "span_id", "run_id", "session_id", "correlation_id")
    ),
    # Not `user`: gateways route, bill and remember by it, so another user is another request.
)


def openai_error(message: str) -> dict[str, Any]:
    """An error as OpenAI's SDKs read it."""
    return {
        "error": {"message": message, "type": "invalid_request_error", "param": None, "code": "rewind_miss"}
    }


class OpenAIChat:
    """Also the legacy completions, whose choices carry ``text`` instead of a message."""

    name = "openai-chat"
    kind = StepKind.LLM_CALL
    volatile = (
        Volatile("messages[*].tool_calls[*].id", "Names a tool call; drawn at random.", linked=True),
        Volatile("messages[*].tool_call_id", "Refers to a tool call.", linked=True),
        Volatile("messages[*].id", "Some frameworks send their own id of a message along.", linked=True),
        *NOISE,
    )

    def claims(self, head: RequestHead) -> bool:
        return head.method == "POST" and head.path.rstrip("/").endswith("/completions")

    def model_of(self, request: HttpRequest) -> str | None:
        # Azure names the deployment in the path and may leave the model out of the body.
        _, _, deployed = request.head.path.partition("/deployments/")
        return asked_model(request) or deployed.partition("/")[0] or None

    def read(self, request: HttpRequest, response: HttpResponse) -> Reading:
        answer = answer_of(response)
        tally = Tally()
        for document in answer.documents:
            tally.named(document, "model")
            for choice in items_at(document, "choices"):
                # Of several choices the first is shown.
                if not count_at(choice, "index"):
                    _take_choice(tally, choice)
            for usage in (at(document, "usage"), at(document, "x_groq", "usage")):
                tally.tokens_in = _latest(count_at(usage, "prompt_tokens"), tally.tokens_in)
                tally.tokens_out = _latest(count_at(usage, "completion_tokens"), tally.tokens_out)
        return tally.reading(response, answer, lambda: self.model_of(request))

    def refusal(self, message: str) -> dict[str, Any]:
        return openai_error(message)


def _latest(told: int | None, known: int | None) -> int | None:
    return known if told is None else told


def _take_choice(tally: Tally, choice: Any) -> None:
    tally.text(text_at(choice, "text"))
    for message in (at(choice, "message"), at(choice, "delta")):
        tally.text(text_at(message, "content") or text_at(message, "refusal"))
        tally.text(text_at(message, "audio", "transcript"))
        for part in items_at(message, "content"):
            tally.text(text_at(part, "text"))
        for call in items_at(message, "tool_calls"):
            _take_call(tally, count_at(call, "index"), at(call, "function") or at(call, "custom"))
        if at(message, "function_call") is not None:
            _take_call(tally, 0, at(message, "function_call"))


def _take_call(tally: Tally, number: int | None, function: Any) -> None:
    """Deltas carry a number. Servers that leave it out name each new tool; a piece without a name goes on."""
    if number is None and tally.tools and not text_at(function, "name"):
        number = max(tally.tools)
    tool = tally.tool(number)
    tool.name = tool.name or text_at(function, "name")
    arguments = at(function, "arguments")
    if isinstance(arguments, str):
        tool.pieces.append(arguments)
    elif arguments is not None:
        tool.arguments = arguments
    tool.pieces.append(text_at(function, "input"))
