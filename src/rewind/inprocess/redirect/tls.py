"""Patches of the ssl module: trust in the gateway where it stands in for a host, and TLS that would go past it.

A connection that was opened before the run is told by its certificate: the gateway's are of our own authority, whatever
client spoke TLS and however. Written to in a replay it raises; in a recording the run's end says so. TLS under a name
that a replay must not reach is not begun at all, whoever is at the other end: a proxy on this machine would lead there.
"""

import socket
import ssl
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, finalize

from rewind.inprocess.redirect import callers
from rewind.inprocess.redirect.callers import current_caller
from rewind.inprocess.redirect.open_connections import leads_to_gateway, shut, speaks_tls
from rewind.inprocess.redirect.patch import wrap_function
from rewind.inprocess.redirect.rules import Way, place
from rewind.inprocess.redirect.writes import PAST_THE_GATEWAY, before_write

_authorities: list[tuple[bytes, bytes]] = []
"""Certificates of our CAs (PEM), and the names by which their leaves are known: this process's, and its parent's where
it was forked."""
_knowing: "WeakKeyDictionary[ssl.SSLContext, int]" = WeakKeyDictionary()
"""Contexts, and how many of our CAs they know."""
_ours: "WeakKeyDictionary[Any, bool]" = WeakKeyDictionary()
"""TLS connections after their handshake, and whether the gateway is at the other end."""
_told: "WeakSet[Any]" = WeakSet()
"""Those that were remarked on."""
_bindings: "WeakKeyDictionary[ssl.SSLObject, bytes]" = WeakKeyDictionary()
"""Those to the gateway, by what both of its ends know."""


def trust(certificate_pem: bytes, common_name: str) -> None:
    """A gateway of ours shows certificates of that authority."""
    _authorities.append((certificate_pem, common_name.encode()))


def _tell(context: ssl.SSLContext) -> None:
    if context.verify_mode != ssl.CERT_NONE:
        for certificate_pem, _ in _authorities[_knowing.get(context, 0) :]:
            context.load_verify_locations(cadata=certificate_pem.decode())
        _knowing[context] = len(_authorities)


def is_ours(connection: "ssl.SSLSocket | ssl.SSLObject") -> bool | None:
    """Whether the gateway is at the other end; ``None`` as long as nobody can know."""
    known = _ours.get(connection)
    if known is None and _authorities:
        try:
            certificate = connection.getpeercert(binary_form=True)
        except (ValueError, OSError):  # the handshake is not over, or the connection is
            return None
        if certificate is None:
            return None
        known = _ours[connection] = any(name in certificate for _, name in _authorities)
    return known


def _check(connection: "ssl.SSLSocket | ssl.SSLObject") -> None:
    caller = current_caller()
    host = connection.server_hostname
    if connection.server_side or not host:
        return
    ours = is_ours(connection)
    if ours:
        leads_to_gateway(connection)
    if ours and isinstance(connection, ssl.SSLObject):
        binding = _bindings.get(connection) or _bind(connection)
        if binding is not None:
            callers.set_owner(binding, caller)
    if ours is False and caller is not None:
        rules = caller.rules
        if not rules.trusts(host) or rules.allows(host):
            return
        if rules.offline:
            if isinstance(connection, ssl.SSLSocket):
                shut(connection)
            raise caller.bypassed(host, 443)
        if connection not in _told and caller.gateway_port() is not None:
            _told.add(connection)
            caller.unrecorded(host, PAST_THE_GATEWAY)


def _bind(connection: ssl.SSLObject) -> bytes | None:
    binding = connection.get_channel_binding()
    if binding is not None:
        _bindings[connection] = binding
        finalize(connection, callers.forget_line, binding).atexit = False
    return binding


def _stop_strangers(host: str, caller: callers.Caller) -> None:
    """Offline, a name that is neither recorded nor allowed nor this machine's is not spoken to."""
    rules = caller.rules
    if rules.trusts(host) or rules.way(host, 443) is not Way.STOP:
        return
    if place(host) != place(socket.gethostname()):
        raise caller.stopped(host, 443)


def patch_tls() -> None:
    """Once, for as long as the process lives."""
    wrap_function(ssl.SSLContext, "wrap_socket", lambda real: _telling(real, 4))
    wrap_function(ssl.SSLContext, "wrap_bio", lambda real: _telling(real, 3))
    wrap_function(ssl.SSLSocket, "send", _watched_socket)
    wrap_function(ssl.SSLSocket, "write", _watched_socket)
    wrap_function(ssl.SSLObject, "write", _watched_object)


def _telling(real: Callable[..., Any], place: int) -> Callable[..., Any]:
    """``place`` is where the host's name stands among the arguments, if it is not given by its own name."""

    def wrap(self: ssl.SSLContext, *args: Any, **kwargs: Any) -> Any:
        name = args[place] if len(args) > place else kwargs.get("server_hostname")
        if not name:
            return real(self, *args, **kwargs)
        caller = current_caller()
        # anyio gives it as bytes.
        host = name.decode("latin-1") if isinstance(name, (bytes, bytearray)) else str(name)
        if caller is None:
            callers.note_unowned_connection(host, None)
        else:
            _stop_strangers(host, caller)
            if caller.rules.trusts(host):
                _tell(self)
        connection = real(self, *args, **kwargs)
        speaks_tls(connection)
        return connection

    return wrap


def _watched_socket(real: Callable[..., Any]) -> Callable[..., Any]:
    def write(self: ssl.SSLSocket, *args: Any) -> Any:
        if callers.has_callers_or_connections():
            _check(self)
            before_write(self, b"")
        return real(self, *args)

    return write


def _watched_object(real: Callable[..., Any]) -> Callable[..., Any]:
    def write(self: ssl.SSLObject, *args: Any) -> Any:
        if callers.has_callers_or_connections():
            _check(self)
        return real(self, *args)

    return write
