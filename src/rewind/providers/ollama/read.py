"""Ollama's own API: ``/api/chat`` and ``/api/generate``, answered in lines of JSON."""

from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked, Message
from rewind.providers.shared.answer_draft import AnswerDraft, UsageTable, parameters_of
from rewind.providers.shared.answer_stream import read_answer, request_json
from rewind.providers.shared.chat_messages import conversation, message_of, parts_of, take_message, tools_in
from rewind.providers.shared.json_fields import at, items_at, text_at, words_at

USAGE = UsageTable(
    # A prompt that is wholly cached is not counted again, and its field is left out.
    input=(("prompt_eval_count",),),
    output=(("eval_count",),),
)

_READ_FIELDS = ("model", "messages", "system", "prompt", "images", "tools", "stream")


class OllamaReader:
    """Every line is a piece; the last one has the counts."""

    def claims(self, head: RequestHead) -> bool:
        return head.method == "POST" and head.path.rstrip("/").endswith(("/api/chat", "/api/generate"))

    def asked(self, request: HttpRequest) -> Asked:
        document, note = request_json(request)
        turns = items_at(document, "messages")
        system, messages = conversation(turns)
        return Asked(
            model=words_at(document, "model") or None,
            system=parts_of(at(document, "system")) + system,
            messages=messages + _prompt(document),
            listed=len(turns) or None,
            tools=tools_in(document),
            parameters=parameters_of(document, _READ_FIELDS),
            # Ollama streams unless it is told not to.
            streamed=isinstance(document, dict) and document.get("stream") is not False,
            note=note,
        )

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        answer = read_answer(response)
        draft = AnswerDraft()
        for document in answer.documents:
            draft.named(document)
            if at(document, "done") is True:
                draft.stopped(text_at(document, "done_reason"))
                draft.count({name: at(document, name) for name in ("prompt_eval_count", "eval_count")})
        take_message(draft, [_piece(document) for document in answer.documents])
        return draft.answered(response, answer, USAGE)

    def refusal(self, message: str) -> dict[str, Any]:
        return {"error": message}


def _prompt(document: Any) -> tuple[Message, ...]:
    """What ``/api/generate`` is given: one text, with or without pictures."""
    turn = {"content": at(document, "prompt"), "images": at(document, "images")}
    message = message_of(turn)
    return (message,) if message.parts else ()


def _piece(document: Any) -> Any:
    """A line of ``/api/chat`` has a message; one of ``/api/generate`` has its fields beside the rest."""
    if (message := at(document, "message")) is not None:
        return message
    drawn = text_at(document, "image")
    return {
        "content": text_at(document, "response"),
        "thinking": text_at(document, "thinking"),
        "images": [drawn] if drawn else [],
    }
