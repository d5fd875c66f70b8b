"""Answers of Ollama's own API."""

from typing import Any
from urllib.parse import unquote

from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Asked
from rewind.providers.api import AnswerContent, Document, Speaker
from rewind.providers.ollama.patch import call
from rewind.providers.shared.framing import lines, whole
from rewind.providers.shared.json_fields import items_at, text_at, without
from rewind.providers.shared.losses import LossLog
from rewind.providers.shared.speak import pieces


class OllamaSpeaker:
    """One document, or lines of them, of which the last has the counts."""

    is_model = True

    def __init__(self, model: str, *, streamed: bool, generates: bool) -> None:
        self._model = model
        self._streamed = streamed
        self._generates = generates
        """``/api/generate`` has a text where ``/api/chat`` has a message."""

    @property
    def form(self) -> str:
        api = "ollama-generate" if self._generates else "ollama"
        return f"{api} {'lines' if self._streamed else 'whole'}"

    def document(self, content: AnswerContent) -> Document:
        if self._generates and content.tools:
            raise CannotEdit("Ollama's /api/generate calls no tools.")
        message: Document = {"role": "assistant", "content": content.text}
        if content.tools:
            message["tool_calls"] = [call(use, LossLog()) for use in content.tools]
        return {
            "model": self._model,
            "created_at": "1970-01-01T00:00:00Z",
            **({"response": content.text} if self._generates else {"message": message}),
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 0,
            "eval_count": 0,
        }

    def response(self, document: Document) -> HttpResponse:
        if not self._streamed or "done" not in document:
            return whole(document)
        about = {name: document[name] for name in ("model", "created_at") if name in document}
        sent: list[Any] = []
        if self._generates:
            sent = [
                {**about, "response": one, "done": False} for one in pieces(text_at(document, "response"))
            ]
            return lines([*sent, {**document, "response": ""}])
        message = document.get("message")
        fields = message if isinstance(message, dict) else {}
        said: list[Document] = [{"content": one} for one in pieces(text_at(fields, "content"))]
        asked = [{"content": "", "tool_calls": [one]} for one in items_at(fields, "tool_calls")]
        for piece in (*said, *asked):
            sent.append({**about, "message": {"role": "assistant", **piece}, "done": False})
        rest = {**without(fields, "tool_calls"), "content": ""}
        return lines([*sent, {**document, "message": rest}])


def speaker_for(request: HttpRequest, asked: Asked) -> Speaker:
    generates = unquote(request.head.path).rstrip("/").endswith("/api/generate")
    return OllamaSpeaker(asked.model or "", streamed=asked.streamed, generates=generates)
