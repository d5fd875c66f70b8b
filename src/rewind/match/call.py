"""A call: a request that has been understood, once, with its match key: a short name for what it means.

A match key is ``rw1:`` and the first 32 hexadecimal digits of the SHA-256 of one line of JSON: method, host class,
path, query and canonical body. Headers are not part of it: they carry credentials, versions and request ids, and what
matters of them (content type and coding) is already in the canonical body. A changed rule gets a new prefix.
"""

import hashlib
import ipaddress
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from rewind.dataclass import dataclass
from rewind.match.canonical import Canonical, canonical_body, canonical_path, canonical_query
from rewind.model.http import HttpRequest
from rewind.model.ids import MatchKey
from rewind.providers.api import Api
from rewind.providers.catalogue import identify
from rewind.wire.growing_json import GrowingFold, GrownList

_LOCAL_NAMES = frozenset(
    {
        "localhost",
        "host.docker.internal",
        "gateway.docker.internal",
        "host.containers.internal",
        "kubernetes.docker.internal",
    }
)
_LOCAL_NETWORKS = tuple(
    ipaddress.ip_network(network)
    for network in (
        # Written out, as ipaddress's own is_private changes between versions of Python.
        "0.0.0.0/32",
        "10.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "::/128",
        "::1/128",
        "fc00::/7",
        "fe80::/10",
    )
)


@lru_cache(maxsize=1024)
def host_class(host: str) -> str:
    """The host, or ``local`` for this machine and its private network, whose addresses change from run to run."""
    name = host.lower().strip("[]").rstrip(".")
    if name in _LOCAL_NAMES or name.endswith(".localhost"):
        return "local"
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return name
    mapped = getattr(address, "ipv4_mapped", None)
    address = mapped if mapped is not None else address
    inside = any(address.version == network.version and address in network for network in _LOCAL_NETWORKS)
    return "local" if inside else str(address)


def match_key(*, method: str, host: str, path: str, query: list[list[str]], body: Canonical) -> MatchKey:
    """The key of a request whose parts are in canonical form."""
    begin = _written([method.upper(), host_class(host), path, query, body.form])
    line = f"{begin[:-1]},{_body_written(body.value)}]"
    return MatchKey("rw1:" + _DIGESTS.of(line.encode("ascii")).hexdigest()[:32])


_written = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode


def _body_written(value: Any) -> str:
    """The same for all of a body, of whose messages each is written once."""
    if type(value) is not dict or GrownList not in map(type, value.values()):
        return _written(value)
    members = []
    for name in sorted(value):
        inner = value[name]
        text = f"[{','.join(inner.each(_written))}]" if type(inner) is GrownList else _written(inner)
        members.append(f"{_written(name)}:{text}")
    return f"{{{','.join(members)}}}"


def _hashed(digest: "hashlib._Hash", line: bytes, start: int, end: int) -> "hashlib._Hash":
    grown = digest.copy()
    grown.update(memoryview(line)[start:end])
    return grown


_DIGESTS = GrowingFold(hashlib.sha256(), _hashed)
"""Lines begin like earlier ones up to the messages that are new."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request, the provider that reads it, and the key that says what it means."""

    request: HttpRequest
    provider: Api
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
