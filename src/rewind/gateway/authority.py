"""Speaks TLS as the recorded hosts: a certificate for each is made on demand, and never for a host that the rules do
not record."""

import os
import ssl
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from rewind.gateway.run_ca import RunCa, keep_leaf, kept_leaf
from rewind.providers.hosts import HostRules, plain_name

MAX_CONTEXTS = 1024
"""With ``--all-hosts`` the names come from the child; memory must not grow with them."""


class Authority:
    """A CA that shows certificates for recorded hosts. Safe to use from several threads."""

    def __init__(self, ca: RunCa, rules: HostRules) -> None:
        self.ca = ca
        self._rules = rules
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._sni: ssl.SSLContext | None = None
        self._unknown: Callable[[str], None] | None = None
        self._lock = threading.Lock()

    def server_context(self, host: str) -> ssl.SSLContext:
        """How to speak TLS as that host."""
        host = plain_name(host)
        with self._lock:
            context = self._contexts.get(host)
            if context is None:
                if not host or not self._rules.records(host):
                    raise ValueError(f"{host!r} is not recorded, so no certificate is made for it")
                if len(self._contexts) >= MAX_CONTEXTS:
                    del self._contexts[next(iter(self._contexts))]
                context = _bare_context()
                # Not the CA's: the client has it, and its constraints would be the bulk of every handshake.
                _load(context, self.ca.leaf_key_pem + _leaf(self.ca, host))
                self._contexts[host] = context
            return context

    def sni_context(self, unknown: Callable[[str], None] | None = None) -> ssl.SSLContext:
        """How to speak TLS as whichever recorded host the client names; it is left in ``rewind_server_name``.

        ``unknown`` is told of a name that is turned away.
        """
        with self._lock:
            if self._sni is None:
                self._sni = _bare_context()
                self._sni.sni_callback = self._become
            self._unknown = unknown
            return self._sni

    def _become(self, connection: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> int | None:
        try:
            connection.context = self.server_context(name or "")
        except ValueError:  # not recorded, not named, or no name that a certificate could carry
            if name and self._unknown is not None:
                self._unknown(plain_name(name))
            return ssl.AlertDescription.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        # OpenSSL tells a server's connection object nothing about the name; the gateway reads it from here.
        connection.rewind_server_name = plain_name(name or "")  # type: ignore[attr-defined]
        return None


def _leaf(ca: RunCa, host: str) -> bytes:
    pem = kept_leaf(ca, host)
    if pem is None:
        from rewind.gateway.certificates import make_leaf  # lazily: mostly there is one

        pem = make_leaf(ca, host)
        keep_leaf(ca, host, pem)
    return pem


def _bare_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    """``load_cert_chain`` takes nothing but files; a memory file keeps the key off the disk."""
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").exists():
        with os.fdopen(os.memfd_create("rewind-leaf", os.MFD_CLOEXEC), "wb") as memory:
            memory.write(pem)
            memory.flush()
            context.load_cert_chain(f"/proc/self/fd/{memory.fileno()}")
        return
    descriptor, name = tempfile.mkstemp(prefix="rewind-")  # 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
        context.load_cert_chain(name)
    finally:
        Path(name).unlink()
