"""Any other HTTP exchange: the tools' own calls, MCP servers, files."""

from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.step import Reading, StepKind
from rewind.providers.answer import answer_of, error_of
from rewind.providers.base import Volatile
from rewind.providers.fields import start_of

_SIGNATURES = ("Credential", "Date", "Expires", "Security-Token", "Signature")


class Http:
    """Claims everything, so it is asked last. Knows no model and no tokens."""

    name = "http"
    kind = StepKind.HTTP_CALL
    volatile = tuple(
        Volatile(
            f"?X-{cloud}-{field}", "A presigned URL is signed anew for each use; the path names the object."
        )
        for cloud in ("Amz", "Goog")
        for field in _SIGNATURES
    )

    def claims(self, head: RequestHead) -> bool:
        return True

    def model_of(self, request: HttpRequest) -> str | None:
        return None

    def read(self, request: HttpRequest, response: HttpResponse) -> Reading:
        answer = answer_of(response)
        return Reading(text=start_of(answer.shown), error=error_of(response, answer), note=answer.note)

    def refusal(self, message: str) -> dict[str, Any]:
        return {"error": {"message": message, "type": "rewind_miss"}}
