"""Answers of what is no model: tools that the agent runs, tool servers, embeddings, and any other HTTP."""

from typing import Any

from rewind.errors import CannotEdit
from rewind.model.http import HttpResponse
from rewind.providers.shared.framing import events, whole, whole_body
from rewind.providers.shared.speak import Said
from rewind.providers.shared.speaker import Fields

_WORDS = ""
"""Under this name, which no document has, a text waits to be sent as it is."""


class ToolSpeaker:
    """A tool of ``@rewind.tool``: what it gave back."""

    form = "tools"
    is_model = False

    def document(self, said: Said) -> Fields:
        return {"result": said.text}

    def response(self, document: Fields) -> HttpResponse:
        return whole(document if set(document) <= {"result", "error"} else {"result": document})


class McpSpeaker:
    """A tool server: the result of one call, under the id of the request."""

    is_model = False

    def __init__(self, request_id: Any, *, as_events: bool) -> None:
        self._id = request_id
        self._as_events = as_events
        # A client waits for the answer under its own id, so an answer to another one does not fit.
        self.form = f"mcp {request_id!r}"

    def document(self, said: Said) -> Fields:
        return {"content": [{"type": "text", "text": said.text}], "isError": False}

    def response(self, document: Fields) -> HttpResponse:
        told = document if "jsonrpc" in document else {"jsonrpc": "2.0", "result": document}
        answer = {**told, "id": self._id}
        return events([answer]) if self._as_events else whole(answer)


class HttpSpeaker:
    """Any other call: the text itself."""

    form = "http"
    is_model = False

    def document(self, said: Said) -> Fields:
        return {_WORDS: said.text}

    def response(self, document: Fields) -> HttpResponse:
        if set(document) == {_WORDS}:
            return whole_body(
                str(document[_WORDS]).encode(errors="replace"), media="text/plain; charset=utf-8"
            )
        return whole(document)


class NumberSpeaker:
    """Vectors, or a count of tokens: nobody can make these up from words."""

    is_model = False

    def __init__(self, what: str) -> None:
        self._what = what
        self.form = what

    def document(self, said: Said) -> Fields:
        raise CannotEdit(
            f"The call asks for {self._what}, and a text is none.",
            hint='give the answer whole: response={"…": …}',
        )

    def response(self, document: Fields) -> HttpResponse:
        return whole(document)
