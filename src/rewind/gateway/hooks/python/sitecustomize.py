"""Loaded into every Python that runs under Rewind: brings clients that ignore proxy variables to the gateway.

Names of recorded hosts resolve to a loopback address of our own, and a connection to that address is made to the
gateway instead. (Answering with the gateway's address and port is not enough: anyio drops the port.) A context that
checks a recorded host's certificate is told of the run's CA, for clients that bring their own roots. Modules are
changed when they are first imported, so a program without sockets pays nothing; ``typing`` alone would cost more than
all of this. Standard library only, Python 3.6 and later, and the user's own ``sitecustomize`` runs as ever.
"""

# ruff: noqa: PTH100, PTH120
# os.path, because pathlib would be imported into every child.
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes longer than everything else here together
    from collections.abc import Callable
    from typing import Any

OURS = "127.82.87.68"  # compared, never dialled
OURS_AS_IPV6 = "::ffff:" + OURS
SERVICES = {"https": 443, "http": 80}


def _list(name: str) -> "list[str]":
    return [part for part in os.environ.get(name, "").split(",") if part]


PORT = os.environ.get("REWIND_GATEWAY_PORT", "")
HOSTS = _list("REWIND_GATEWAY_HOSTS")
PLAIN = frozenset(_list("REWIND_GATEWAY_PLAIN"))
EVERY_HOST = "*" in HOSTS
OFFLINE = os.environ.get("REWIND_OFFLINE") == "1"  # a replay: whatever would leave this machine meets the gateway
LIVE = _list("REWIND_LIVE_HOSTS")


def matches(pattern: str, host: str) -> bool:
    """As ``rewind.providers.hosts.matches``."""
    parts = pattern.split("*")
    if len(parts) == 1:
        return host == pattern
    if not host.startswith(parts[0]):
        return False
    at = len(parts[0])
    for part in parts[1:-1]:
        found = host.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(host) - len(parts[-1]) >= at and host.endswith(parts[-1])


def recorded(host: str) -> bool:
    """Whether TLS to that name is recorded. Addresses are not: without a name there is no SNI to go by."""
    if not host or ":" in host or host[-1:].isdigit() or host == "localhost":
        return False
    return any(matches(pattern, host) for pattern in HOSTS)


def wanted(host: "Any", port: "Any") -> bool:
    """Whether a connection to that host and port belongs to the gateway."""
    if isinstance(host, (bytes, bytearray)):
        host = bytes(host).decode("latin-1")
    if not isinstance(host, str):
        return False
    host = host.lower().rstrip(".")
    if host in (OURS, OURS_AS_IPV6):
        return True
    number = port_number(port)
    if f"{host}:{number}" in PLAIN or (OFFLINE and leaves_this_machine(host)):
        return True
    return (number in (0, 443) or (EVERY_HOST and number == 80)) and recorded(host)


def leaves_this_machine(host: str) -> bool:
    """Whether a connection to that host needs a network, and the user did not allow it."""
    if host in ("", "localhost", "::", "::1", "0.0.0.0") or host.endswith(".localhost"):  # noqa: S104  compared
        return False
    if host.startswith(("127.", "::ffff:127.")):
        return False
    return not any(matches(pattern, host) for pattern in LIVE)


def port_number(port: "Any") -> int:
    """A port as callers give it: number, digits, service name, or nothing (0)."""
    if isinstance(port, (bytes, bytearray)):
        port = bytes(port).decode("latin-1")
    if isinstance(port, str):
        return int(port) if port.isdigit() else SERVICES.get(port, -1)
    return port if isinstance(port, int) else 0


def change_socket(socket: "Any") -> None:
    real_getaddrinfo = socket.getaddrinfo
    real_gethostbyname = socket.gethostbyname
    real_connect = socket.socket.connect
    real_connect_ex = socket.socket.connect_ex

    def getaddrinfo(
        host: "Any",
        port: "Any",
        family: int = 0,
        type: int = 0,  # noqa: A002  its name in the standard library
        proto: int = 0,
        flags: int = 0,
    ) -> "list[tuple[Any, ...]]":
        if flags & socket.AI_NUMERICHOST or not wanted(host, port):
            return real_getaddrinfo(host, port, family, type, proto, flags)  # type: ignore[no-any-return]
        kind = socket.SocketKind(type or socket.SOCK_STREAM)
        if kind == socket.SOCK_STREAM:
            proto = socket.IPPROTO_TCP
        number = port_number(port)
        if family == socket.AF_INET6:
            return [(socket.AF_INET6, kind, proto, "", (OURS_AS_IPV6, number, 0, 0))]
        return [(socket.AF_INET, kind, proto, "", (OURS, number))]

    def gethostbyname(hostname: "Any") -> str:
        return OURS if wanted(hostname, None) else real_gethostbyname(hostname)

    def aim(sock: "Any", address: "Any") -> "Any":
        if (
            sock.family in (socket.AF_INET, socket.AF_INET6)
            and sock.type == socket.SOCK_STREAM
            and isinstance(address, tuple)
            and len(address) >= 2
            and wanted(address[0], address[1])
        ):
            if sock.family == socket.AF_INET6:
                return ("::ffff:127.0.0.1", int(PORT))
            return ("127.0.0.1", int(PORT))
        return address

    def connect(self: "Any", address: "Any") -> None:
        real_connect(self, aim(self, address))

    def connect_ex(self: "Any", address: "Any") -> int:
        return real_connect_ex(self, aim(self, address))  # type: ignore[no-any-return]

    socket.getaddrinfo = getaddrinfo
    socket.gethostbyname = gethostbyname
    socket.socket.connect = connect
    socket.socket.connect_ex = connect_ex


def change_ssl(ssl: "Any") -> None:
    from weakref import WeakSet

    knowing: WeakSet[Any] = WeakSet()

    def told(real: "Callable[..., Any]") -> "Callable[..., Any]":
        def wrap(self: "Any", *args: "Any", **kwargs: "Any") -> "Any":
            name = kwargs.get("server_hostname")
            if isinstance(name, (bytes, bytearray)):  # as anyio gives it
                name = bytes(name).decode("latin-1")
            if isinstance(name, str) and recorded(name.lower().rstrip(".")):
                tell(self)
            return real(self, *args, **kwargs)

        return wrap

    def tell(context: "Any") -> None:
        if context.verify_mode == ssl.CERT_NONE or context in knowing:
            return
        try:
            context.load_verify_locations(os.environ.get("REWIND_GATEWAY_CA"))
            knowing.add(context)
        except (OSError, TypeError) as problem:
            complain(f"the run's CA could not be added: {problem}")

    ssl.SSLContext.wrap_socket = told(ssl.SSLContext.wrap_socket)
    ssl.SSLContext.wrap_bio = told(ssl.SSLContext.wrap_bio)


def change_uvloop(uvloop: "Any") -> None:
    """uvloop resolves and connects in C, past the socket module."""
    import socket

    real_getaddrinfo = uvloop.Loop.getaddrinfo
    real_create_connection = uvloop.Loop.create_connection

    async def getaddrinfo(self: "Any", host: "Any", port: "Any", **kwargs: "Any") -> "Any":
        if wanted(host, port):
            return socket.getaddrinfo(host, port, **kwargs)
        return await real_getaddrinfo(self, host, port, **kwargs)

    async def create_connection(
        self: "Any", protocol_factory: "Any", host: "Any" = None, port: "Any" = None, **kwargs: "Any"
    ) -> "Any":
        if host is not None and wanted(host, port):
            if kwargs.get("ssl") and kwargs.get("server_hostname") is None:
                kwargs["server_hostname"] = host
            host, port = "127.0.0.1", int(PORT)
        return await real_create_connection(self, protocol_factory, host, port, **kwargs)

    uvloop.Loop.getaddrinfo = getaddrinfo
    uvloop.Loop.create_connection = create_connection


CHANGES: "dict[str, Callable[[Any], None]]" = {"socket": change_socket, "ssl": change_ssl, "uvloop": change_uvloop}


def complain(what: str) -> None:
    sys.stderr.write("rewind: " + what + "; some calls may not be recorded\n")


def apply(name: str, module: "Any") -> None:
    try:
        CHANGES[name](module)
    except Exception as problem:  # noqa: BLE001  the agent must run as it would without us
        complain(f"the {name} module could not be prepared: {problem!r}")


class Finder:
    """Waits for the modules of ``CHANGES`` and changes each as soon as it has run."""

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        if name not in CHANGES:
            return None
        spec = find(name, path, but=self)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            run = spec.loader.exec_module

            def run_and_change(module: "Any") -> None:
                run(module)
                apply(name, module)

            spec.loader.exec_module = run_and_change
        return spec


def find(name: str, path: "Any", but: "Any" = None) -> "Any":
    """What the finders of this Python make of a module name."""
    for finder in sys.meta_path:
        search = getattr(finder, "find_spec", None)
        spec = search(name, path) if search is not None and finder is not but else None
        if spec is not None:
            return spec
    return None


def run_the_users_own() -> None:
    """The ``sitecustomize`` that would have run without ours.

    The import system takes the module out of ``sys.modules`` once this file is done, so something must be there
    all the time, and it should be the user's.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    spec = find("sitecustomize", [part for part in sys.path if os.path.abspath(part or os.curdir) != here])
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)  # what it raises is reported by the caller, as it would be without us


if PORT.isdigit():
    sys.meta_path.insert(0, Finder())
    for _name in CHANGES:
        if _name in sys.modules:  # a .pth file was quicker
            apply(_name, sys.modules[_name])
run_the_users_own()
