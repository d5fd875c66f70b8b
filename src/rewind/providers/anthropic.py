"""Anthropic Messages: ``/v1/messages`` on any host, and Claude on Vertex AI."""

from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.step import Reading, StepKind
from rewind.providers.answer import answer_of, asked_model, error_of
from rewind.providers.base import Volatile
from rewind.providers.fields import at, count_at, items_at, text_at, total
from rewind.providers.tally import Tally

TOOL_IDS = (
    Volatile(
        "messages[*].content[*].id", "Names a tool call; drawn at random by model or framework.", linked=True
    ),
    Volatile("messages[*].content[*].tool_use_id", "Refers to a tool call.", linked=True),
    Volatile("messages[*].content[*].caller.tool_id", "Refers to the server tool that called.", linked=True),
)
_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class Anthropic:
    """Answers are one ``message``, or its events in a stream."""

    name = "anthropic"
    kind = StepKind.LLM_CALL
    volatile = (
        *TOOL_IDS,
        Volatile(
            "metadata.user_id", "For abuse detection; coding agents put a new session id in it every run."
        ),
        Volatile("container", "Names a sandbox that an earlier answer opened.", linked=True),
        Volatile("container.id", "Names a sandbox that an earlier answer opened.", linked=True),
    )

    def claims(self, head: RequestHead) -> bool:
        path = head.path.rstrip("/")
        vertex = "/publishers/anthropic/models/" in path and path.endswith(
            (":rawPredict", ":streamRawPredict")
        )
        return head.method == "POST" and (path.endswith("/v1/messages") or vertex)

    def model_of(self, request: HttpRequest) -> str | None:
        _, _, named = request.head.path.partition("/publishers/anthropic/models/")
        return asked_model(request) or named.partition(":")[0] or None

    def read(self, request: HttpRequest, response: HttpResponse) -> Reading:
        answer = answer_of(response)
        return tally_of(answer.documents).reading(response, answer, lambda: self.model_of(request))

    def refusal(self, message: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


class AnthropicCounting(Anthropic):
    """``count_tokens``: no model answers, so its number is shown and not added to anybody's usage."""

    kind = StepKind.HTTP_CALL

    def claims(self, head: RequestHead) -> bool:
        return head.method == "POST" and head.path.rstrip("/").endswith("/v1/messages/count_tokens")

    def read(self, request: HttpRequest, response: HttpResponse) -> Reading:
        answer = answer_of(response)
        counted = next((count_at(document, "input_tokens") for document in answer.documents), None)
        return Reading(
            model=self.model_of(request),
            text="" if counted is None else f"{counted:,} tokens",
            error=error_of(response, answer),
            note=answer.note,
        )


def tally_of(documents: tuple[Any, ...]) -> Tally:
    """What an answer comes to. Also read by Bedrock, which carries the same documents in frames of its own."""
    tally = Tally()
    usage: dict[str, int] = {}
    for document in documents:
        match text_at(document, "type"):
            case "message":
                _take_message(tally, usage, document)
            case "message_start":
                _take_message(tally, usage, at(document, "message"))
            case "content_block_start":
                _take_block(tally, count_at(document, "index"), at(document, "content_block"))
            case "content_block_delta":
                _take_delta(tally, count_at(document, "index"), at(document, "delta"))
            case "message_delta":
                _take_usage(usage, at(document, "usage"))
    tally.tokens_in = total(*(usage.get(name) for name in _INPUT))
    tally.tokens_out = usage.get("output_tokens")
    return tally


def _take_message(tally: Tally, usage: dict[str, int], message: Any) -> None:
    tally.named(message, "model")
    for number, block in enumerate(items_at(message, "content")):
        _take_block(tally, number, block)
    _take_usage(usage, at(message, "usage"))


def _take_usage(usage: dict[str, int], told: Any) -> None:
    """Numbers in a stream are cumulative: the last one told holds, and a field left out stays as it was."""
    for name in (*_INPUT, "output_tokens"):
        count = count_at(told, name)
        if count is not None:
            usage[name] = count


def _take_block(tally: Tally, number: int | None, block: Any) -> None:
    match text_at(block, "type"):
        case "text":
            tally.text(text_at(block, "text"))
        case "tool_use":
            tool = tally.tool(number)
            tool.name = text_at(block, "name")
            tool.arguments = at(block, "input")


def _take_delta(tally: Tally, number: int | None, delta: Any) -> None:
    match text_at(delta, "type"):
        case "text_delta":
            tally.text(text_at(delta, "text"))
        case "input_json_delta" if number in tally.tools:
            tally.tool(number).pieces.append(text_at(delta, "partial_json"))
