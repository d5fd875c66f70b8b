"""OpenAI Responses: any path that ends in ``/responses``."""

from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.step import Reading, StepKind
from rewind.providers.answer import answer_of, asked_model
from rewind.providers.base import Volatile
from rewind.providers.fields import at, count_at, items_at, text_at
from rewind.providers.openai_chat import NOISE, openai_error
from rewind.providers.tally import Tally

_STATE = "Names what an earlier answer left on the server; every run is given another name."


class OpenAIResponses:
    """Answers are one ``response``, or its events; the last event repeats the whole."""

    name = "openai-responses"
    kind = StepKind.LLM_CALL
    volatile = (
        Volatile("previous_response_id", _STATE, linked=True),
        Volatile("conversation", _STATE, linked=True),
        Volatile("conversation.id", _STATE, linked=True),
        Volatile(
            "input[*].id", "Names an item of an earlier answer, or one that the framework made.", linked=True
        ),
        Volatile("input[*].call_id", "Ties a tool's result to its call.", linked=True),
        Volatile("input[*].approval_request_id", "Ties an approval to its request.", linked=True),
        *NOISE,
    )

    def claims(self, head: RequestHead) -> bool:
        return head.method == "POST" and head.path.rstrip("/").endswith("/responses")

    def model_of(self, request: HttpRequest) -> str | None:
        return asked_model(request)

    def read(self, request: HttpRequest, response: HttpResponse) -> Reading:
        answer = answer_of(response)
        tally = Tally()
        for document in answer.documents:
            match text_at(document, "type"):
                case "response.output_text.delta" | "response.refusal.delta":
                    tally.text(text_at(document, "delta"))
                case "response.output_item.done":
                    _take_call(tally, count_at(document, "output_index"), at(document, "item"))
                case kind:
                    whole = at(document, "response") if kind.startswith("response.") else document
                    _take_whole(tally, whole)
        return tally.reading(response, answer, lambda: self.model_of(request))

    def refusal(self, message: str) -> dict[str, Any]:
        return openai_error(message)


def _take_whole(tally: Tally, whole: Any) -> None:
    tally.named(whole, "model")
    tokens_in = count_at(whole, "usage", "input_tokens")
    if tokens_in is not None:
        tally.tokens_in, tally.tokens_out = tokens_in, count_at(whole, "usage", "output_tokens")
    if tally.texts or tally.tools:
        return  # already known from the deltas
    for number, item in enumerate(items_at(whole, "output")):
        _take_call(tally, number, item)
        for part in items_at(item, "content"):
            if text_at(part, "type") in ("output_text", "refusal"):
                tally.text(text_at(part, "text") or text_at(part, "refusal"))


def _take_call(tally: Tally, number: int | None, item: Any) -> None:
    match text_at(item, "type"):
        case "function_call":
            tool = tally.tool(number)
            tool.name, tool.arguments = text_at(item, "name"), at(item, "arguments")
        case "custom_tool_call":
            tool = tally.tool(number)
            tool.name, tool.arguments = text_at(item, "name"), at(item, "input")
        case "tool_search_call" if text_at(item, "execution") == "client":
            tool = tally.tool(number)
            tool.name, tool.arguments = "tool_search", at(item, "arguments")
        case "local_shell_call" | "shell_call" | "apply_patch_call" | "computer_call" as kind:
            tool = tally.tool(number)
            tool.name, tool.arguments = (
                kind.removesuffix("_call"),
                at(item, "action") or at(item, "operation"),
            )
