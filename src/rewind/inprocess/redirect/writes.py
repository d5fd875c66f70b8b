"""Patches of writing: whose a request is, and what would go past the run.

A kept-alive connection may serve one run, then another, then none; each request belongs to whoever writes it. And a
connection that was open before the run began leads past it: written to in a replay it raises, in a recording the run's
end says so.
"""

import re
import socket
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from rewind.gateway.http1 import MAX_HEAD, BadMessage, IncomingRequest
from rewind.gateway.targets import UNKNOWN_PORT, NoOrigin, origin_of
from rewind.gateway.targets import aim as aim_request
from rewind.inprocess.redirect import callers
from rewind.inprocess.redirect.callers import Caller, current_caller
from rewind.inprocess.redirect.connections import aim, is_allowed, name_seen
from rewind.inprocess.redirect.open_connections import shut
from rewind.inprocess.redirect.patch import wrap_function
from rewind.inprocess.redirect.rules import THIS_MACHINE, Way, place, url_of
from rewind.providers.catalogue import looks_like_llm

_INTERNET = (socket.AF_INET, socket.AF_INET6)
_METHODS = frozenset((b"POST", b"GET ", b"CONN", b"PUT ", b"DELE", b"PATC", b"HEAD", b"OPTI"))
"""As requests begin, cut to four letters."""
_REQUEST_LINE = re.compile(rb"[A-Z]+ [^\r\n ]+ HTTP/1\.[01]\r?$")
PAST_THE_GATEWAY = "was reached on a connection from before the run: not recorded"
_lines: "WeakKeyDictionary[Any, int]" = WeakKeyDictionary()
"""Connected sockets and uvloop's transports: the local port of those that lead to the gateway, 0 for others."""
_begun: "WeakKeyDictionary[Any, bytes]" = WeakKeyDictionary()
"""The beginning of a request's head, where the rest is still to be written."""
_gateways: set[int] = set()
"""The ports of gateways: this process's, and its parent's where it was forked."""


def add_gateway(port: int) -> None:
    """A gateway listens there."""
    _gateways.add(port)


def before_write(sock: Any, data: Any) -> None:
    """Something is about to be written to a socket, or to what can be asked like one. Raises the caller's error where
    it must not be."""
    line = _lines.get(sock)
    if line is None:
        line = _line(sock)
        if line is None:
            return
        _lines[sock] = line
    caller = current_caller()
    if line:
        callers.set_owner(line, caller)
    elif caller is not None and sock.family in _INTERNET:
        _check(sock, data, caller)


def _line(sock: Any) -> int | None:
    """The local port of a connection to the gateway, 0 for another connection, ``None`` for none."""
    if sock.family not in _INTERNET:
        return 0
    try:
        peer = sock.getpeername()
        if peer[1] in _gateways and place(peer[0]) == THIS_MACHINE:
            return int(sock.getsockname()[1])
    except OSError:
        return None
    return 0


def _check(sock: Any, data: Any, caller: Caller) -> None:
    """A connection that was open when the run began, or that the run leaves alone."""
    try:
        host, port = sock.getpeername()[:2]
    except OSError:
        return
    rules = caller.rules
    match rules.way(name_seen(host) or host, port):
        case Way.DIRECT:
            _check_request(sock, host, port, data, caller)
        case Way.STOP if not is_allowed(host, caller):
            shut(sock)
            raise caller.stopped(host, port)
        case Way.GATEWAY if rules.offline:
            shut(sock)
            raise caller.bypassed(host, port)
        case Way.GATEWAY:
            caller.unrecorded(url_of(host, port), PAST_THE_GATEWAY)


def _check_request(sock: Any, host: str, port: int, data: Any, caller: Caller) -> None:
    """Plain HTTP is readable: a proxy nobody told us of, or a model server on a port nobody named."""
    begun = _begun.pop(sock, b"")
    if not begun and not _may_begin(bytes(memoryview(data)[:4])):
        return
    seen = begun + bytes(memoryview(data)[:MAX_HEAD])
    head, end, _ = seen.partition(b"\r\n\r\n")
    if end:
        meant = _meant(head + end, caller)
    elif not _is_head(seen):
        return
    elif len(seen) < MAX_HEAD:
        _begun[sock] = seen
        return
    else:
        meant = (host, port)  # nobody can tell what it is for
    if meant is None:
        return
    if caller.rules.offline:
        shut(sock)
        raise caller.stopped(*meant)
    if meant[1] == port:
        caller.unrecorded(url_of(*meant), "was not recorded: add it to hosts, with its port")
    else:
        caller.unrecorded(url_of(*meant), f"was asked through {url_of(host, port)}: not recorded")


def _may_begin(first: bytes) -> bool:
    if len(first) == 4:
        return first in _METHODS
    return bool(first) and any(method.startswith(first) for method in _METHODS)


def _is_head(seen: bytes) -> bool:
    """Whether this may be the beginning of a head: so far it has the first line of one, or none yet."""
    line, end, _ = seen.partition(b"\n")
    return _REQUEST_LINE.match(line) is not None if end else _may_begin(seen[:4])


def _meant(head: bytes, caller: Caller) -> tuple[str, int] | None:
    """Where a request is going that should not, or should have been recorded."""
    try:
        if head.startswith(b"CONNECT "):
            origin = origin_of(head.split(b" ", 2)[1].decode("latin-1"), "https")
            way = caller.rules.way(origin.host, origin.port)
            return None if way is Way.DIRECT else (origin.host, origin.port)
        request, _ = aim_request(IncomingRequest(head), None, UNKNOWN_PORT)
    except (BadMessage, NoOrigin, ValueError, IndexError):
        return None
    meant = (request.host, request.port)
    if caller.rules.way(*meant) is not Way.DIRECT or looks_like_llm(request):
        return meant
    return None


def patch_writes() -> None:
    """Once, for as long as the process lives."""
    wrap_function(socket.socket, "send", _watched)
    wrap_function(socket.socket, "sendall", _watched)
    wrap_function(socket.socket, "sendmsg", _watched_messages)


def joined(pieces: list[Any]) -> bytes:
    """As much of what is written at once as a head may have."""
    head = bytearray()
    for piece in pieces:
        head += memoryview(piece)[: MAX_HEAD - len(head)]
        if len(head) >= MAX_HEAD:
            break
    return bytes(head)


def _watched(real: Callable[..., Any]) -> Callable[..., Any]:
    def write(self: socket.socket, *args: Any) -> Any:
        if callers.has_callers_or_connections():
            before_write(self, args[0])
        return real(self, *args)

    return write


def _watched_messages(real: Callable[..., Any]) -> Callable[..., Any]:
    def sendmsg(self: socket.socket, *args: Any) -> Any:
        if callers.has_callers_or_connections():
            if len(args) > 3 and args[3] is not None:
                aim(self, args[3])
            else:
                args = (list(args[0]), *args[1:])  # they may come from an iterator, which can be read only once
                before_write(self, joined(args[0]))
        return real(self, *args)

    return sendmsg
