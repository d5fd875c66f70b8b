"""Ollama's own API: ``/api/chat`` and ``/api/generate``, answered in lines of JSON."""

from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.step import Reading, StepKind
from rewind.providers.answer import answer_of, asked_model
from rewind.providers.base import Volatile
from rewind.providers.fields import at, count_at, items_at, text_at
from rewind.providers.tally import Tally


class Ollama:
    """Every line is a piece; the last one has the counts."""

    name = "ollama"
    kind = StepKind.LLM_CALL
    volatile = (
        Volatile("messages[*].tool_calls[*].id", "Names a tool call; drawn at random.", linked=True),
        Volatile("messages[*].tool_call_id", "Refers to a tool call.", linked=True),
    )

    def claims(self, head: RequestHead) -> bool:
        return head.method == "POST" and head.path.rstrip("/").endswith(("/api/chat", "/api/generate"))

    def model_of(self, request: HttpRequest) -> str | None:
        return asked_model(request)

    def read(self, request: HttpRequest, response: HttpResponse) -> Reading:
        answer = answer_of(response)
        tally = Tally()
        for document in answer.documents:
            tally.named(document, "model")
            tally.text(text_at(document, "response") or text_at(document, "message", "content"))
            for call in items_at(document, "message", "tool_calls"):
                tool = tally.tool(None)
                tool.name, tool.arguments = (
                    text_at(call, "function", "name"),
                    at(call, "function", "arguments"),
                )
            if at(document, "done") is True:
                # A prompt that is wholly cached is not counted again, and its field is left out.
                tally.tokens_in = count_at(document, "prompt_eval_count")
                tally.tokens_out = count_at(document, "eval_count")
        return tally.reading(response, answer, lambda: self.model_of(request))

    def refusal(self, message: str) -> dict[str, Any]:
        return {"error": message}
