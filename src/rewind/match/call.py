"""A call: a request that has been understood, once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rewind.match.canonical import canonical_body, canonical_path, canonical_query
from rewind.match.fingerprint import match_key
from rewind.model.http import HttpRequest
from rewind.model.ids import MatchKey
from rewind.providers.api import Provider
from rewind.providers.catalogue import identify


@dataclass(frozen=True, slots=True)
class Call:
    """A request, the provider that reads it, and the key that says what it means."""

    request: HttpRequest
    provider: Provider
    key: MatchKey
    canonical: Any
    """The canonical body as plain JSON values; for a JSON body that body, less its volatile parts."""
    index: int = 0
    """The step it will be; 0 where it is not to become one."""


def understand(request: HttpRequest, *, ignore: Sequence[str] = (), index: int = 0) -> Call:
    """The call that this request, already redacted, makes. Raises nothing but UsageError, for an ``ignore`` path."""
    head = request.head
    provider = identify(head)
    body = canonical_body(request, provider.volatile, ignore)
    key = match_key(
        method=head.method,
        host=head.host,
        path=canonical_path(head),
        query=canonical_query(head, provider.volatile, ignore),
        body=body,
    )
    return Call(request, provider, key, body.value, index)
