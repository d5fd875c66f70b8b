"""Any other HTTP exchange: the tools' own calls, files, search APIs."""

from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked, Text
from rewind.model.step import StepKind
from rewind.providers.api import Api, Volatile
from rewind.providers.shared.answer_stream import error_of, read_answer
from rewind.providers.shared.json_fields import writable

_SIGNATURES = ("Credential", "Date", "Expires", "Security-Token", "Signature")


VOLATILE = tuple(
    Volatile(f"?X-{cloud}-{field}", "A presigned URL is signed anew for each use; the path names the object.")
    for cloud in ("Amz", "Goog")
    for field in _SIGNATURES
)


class HttpReader:
    """Claims everything, so it is asked last. Knows no model and no tokens."""

    def claims(self, head: RequestHead) -> bool:
        return True

    def asked(self, request: HttpRequest) -> Asked:
        return Asked()

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        answer = read_answer(response)
        parts = (Text(writable(answer.shown)),) if answer.shown else ()
        return Answered(parts=parts, error=error_of(response, answer), note=answer.note)

    def refusal(self, message: str) -> dict[str, Any]:
        return {"error": {"message": message, "type": "rewind_miss"}}


API = Api(name="http", kind=StepKind.HTTP_CALL, reader=HttpReader(), volatile=VOLATILE, is_llm=False)
