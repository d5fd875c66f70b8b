"""Requests whose body is vouched for by a signature that only the agent can make."""

from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest
from rewind.providers.catalogue import identify

_SCHEME = "aws4-hmac"


def is_signed(request: HttpRequest) -> bool:
    head = request.head
    return (
        identify(head).name == "bedrock"
        or any(name.lower().startswith("x-amz-") for name, _ in head.headers)
        or (head.header("authorization") or "").lower().startswith(_SCHEME)
    )


def refuse_signed(request: HttpRequest) -> None:
    """Raises CannotEdit for a signed request."""
    if is_signed(request):
        raise CannotEdit(
            "The request is signed by the agent (AWS SigV4) and a changed body would be refused.",
            hint="response=VALUE makes up its answer, since nothing is sent then",
        )
