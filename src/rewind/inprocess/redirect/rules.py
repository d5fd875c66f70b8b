"""Where a connection of this process should go: to the gateway, straight on, or nowhere. Decisions only, no sockets.

The same decisions as in ``gateway/hooks/python/sitecustomize.py``, which must stand alone in children;
``test_redirect_rules.py`` holds the two together. What differs is offline: there the gateway turns a stranger away,
here the connection itself raises, and can say which host it was for.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from rewind.dataclass import dataclass
from rewind.gateway.options import proxy_variable
from rewind.providers.hosts import HostRules, as_address, plain_name

THIS_MACHINE = "localhost"
_WEB_PORTS = (80, 443)
_SERVICES = {"https": 443, "http": 80}


class Way(Enum):
    """What becomes of a connection."""

    GATEWAY = "gateway"
    DIRECT = "direct"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRules:
    """Where the connections of one run may go."""

    hosts: HostRules = HostRules(())
    """Recorded by name, on every port; with ``all_hosts`` on the two of the web."""
    endpoints: frozenset[tuple[str, int]] = frozenset()
    """Recorded host and port pairs: model servers on this machine or in this network, and the user's HTTP proxy,
    in whose place the gateway stands."""
    offline: bool = False
    """What would leave this machine and is not recorded is stopped."""
    allowed: HostRules = HostRules(())
    """Offline, these may be reached all the same, recorded or not."""

    def way(self, host: str, port: int) -> Way:
        """For a connection to that name or address."""
        name = place(host)
        if self.allows(name):
            return Way.DIRECT
        if (name, port) in self.endpoints or (name != THIS_MACHINE and self._records(name, port)):
            return Way.GATEWAY
        return Way.STOP if self.offline and name != THIS_MACHINE else Way.DIRECT

    def answers_for(self, host: str) -> bool:
        """Whether that name is to be kept from the resolver: some connection to it would not go straight on."""
        name = place(host)
        if name == THIS_MACHINE or as_address(name) is not None:
            return False
        if self.allows(name):
            return False
        return self.offline or self.hosts.records(name) or any(name == host for host, _ in self.endpoints)

    def allows(self, host: str) -> bool:
        return bool(self.allowed.patterns) and self.allowed.records(place(host))

    def trusts(self, host: str) -> bool:
        """Whether TLS to that name may be the gateway's."""
        name = place(host)
        return self.hosts.records(name) or any(name == host for host, _ in self.endpoints)

    def _records(self, name: str, port: int) -> bool:
        if as_address(name) is not None:
            return False  # without a name there is no SNI to go by
        return self.hosts.records(name) and (port in _WEB_PORTS or not self.hosts.all_hosts)


@lru_cache(maxsize=4096)
def place(host: str) -> str:
    """A host as it is compared: lower case, IPv4 written as such, and one name for this machine."""
    name = plain_name(host).partition("%")[0]
    if name.startswith("::ffff:") and "." in name:
        name = name[7:]
    if name in ("", THIS_MACHINE, "::", "::1", "0.0.0.0") or name.endswith(".localhost"):  # noqa: S104  compared
        return THIS_MACHINE
    try:
        return THIS_MACHINE if name[:1].isdigit() and ip_address(name).is_loopback else name
    except ValueError:
        return name


def port_number(port: object) -> int:
    """A port as callers give it: number, digits, service name, or nothing (0)."""
    if isinstance(port, (bytes, bytearray)):
        port = bytes(port).decode("latin-1")
    if isinstance(port, str):
        return int(port) if port.isdigit() else _SERVICES.get(port, 0)
    return port if isinstance(port, int) else 0


def pairs(hosts: Iterable[str]) -> tuple[tuple[str, ...], frozenset[tuple[str, int]]]:
    """Host patterns, and those among them that name a port (``localhost:8000``), which are recorded only there."""
    patterns: list[str] = []
    endpoints: set[tuple[str, int]] = set()
    for host in hosts:
        name, colon, port = host.rpartition(":")
        if colon and port.isdigit() and ("]" in name or ":" not in name):
            endpoints.add((place(name.strip("[]")), int(port)))
        else:
            patterns.append(host)
    return tuple(patterns), frozenset(endpoints)


def proxies(environ: Mapping[str, str]) -> frozenset[tuple[str, int]]:
    """The user's own HTTP proxies. The gateway is one too: it takes their place, and itself goes on through them."""
    addresses: set[tuple[str, int]] = set()
    for scheme in ("https", "http"):
        url = proxy_variable(scheme, environ) or ""
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            if parts.scheme == "http" and parts.hostname:
                addresses.add((place(parts.hostname), parts.port or 80))
        except ValueError:
            continue  # the clients cannot use it either
    return frozenset(addresses)


def url_of(host: str, port: int) -> str:
    """How a person would name where a connection was going."""
    name = f"[{host}]" if ":" in host else host
    match port:
        case 443:
            return f"https://{name}"
        case 80:
            return f"http://{name}"
        case _:
            return f"{name}:{port}"


class Names:
    """Loopback addresses of our own that stand for host names; compared, and never dialled.

    A name that must not be asked of a resolver is answered with one of these, so that the connection that follows
    still knows which host it is for, whatever the client does in between (anyio drops the port).
    """

    _PREFIX = "127.83."
    _HOOKS_OWN = "127.82.87.68"
    _MOST = 65000

    def __init__(self) -> None:
        self._addresses: dict[str, str] = {}
        self._hosts: dict[str, str] = {}
        self._count = 0

    def address_of(self, host: str) -> str:
        name = plain_name(host)
        known = self._addresses.get(name)
        if known is None:
            number = self._count % self._MOST + 1
            self._count += 1
            known = f"{self._PREFIX}{number >> 8}.{number & 255}"
            self._addresses.pop(self._hosts.get(known, ""), None)  # after so many names, the oldest makes room
            self._addresses[name] = known
            self._hosts[known] = name
        return known

    def host_at(self, address: str) -> str | None:
        """The name behind an address; ``None`` for an address that is none of ours.

        The address of the hook (``hooks/python``) stands for itself: this process runs under Rewind, and a client took
        its name from the hook.
        """
        address = address.removeprefix("::ffff:")
        if address == self._HOOKS_OWN:
            return address
        return self._hosts.get(address) if address.startswith(self._PREFIX) else None
