"""What the agent's own code writes down for whoever reads the session: nothing was asked, so nothing is answered.

The request is ``NOTE note:`` with the body ``{"text": "…", "fields": {…}}``, the answer 204 without a body. With the
method ``ERROR`` it tells how the run failed.
"""

from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked, Text
from rewind.model.step import StepKind
from rewind.providers.api import Api
from rewind.providers.shared.answer_stream import request_json
from rewind.providers.shared.json_fields import at, writable

SCHEME = "note"
NOTED = "NOTE"
FAILED = "ERROR"


class NotesReader:
    """Told by the agent's own code, to nobody in particular."""

    def claims(self, head: RequestHead) -> bool:
        return head.scheme == SCHEME and head.method != FAILED

    def asked(self, request: HttpRequest) -> Asked:
        return Asked()

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        document, note = request_json(request)
        text = at(document, "text")
        return Answered(parts=(Text(writable(text)),) if isinstance(text, str) and text else (), note=note)

    def refusal(self, message: str) -> dict[str, Any]:
        return {"error": message}


class FailuresReader(NotesReader):
    """That something failed in the agent's own code, told by whoever saw it."""

    def claims(self, head: RequestHead) -> bool:
        return head.scheme == SCHEME and head.method == FAILED

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        told = super().answered(request, response)
        return Answered(error=told.text or "an error without a text", note=told.note)


API = Api(name="notes", kind=StepKind.NOTE, reader=NotesReader(), is_llm=False)
FAILURES = Api(name="failures", kind=StepKind.ERROR, reader=FailuresReader(), is_llm=False)
