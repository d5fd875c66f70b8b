"""The certificate authority of one run, and the persistent one that ``init --ca`` makes.

A run's CA lives in memory for hours. Leaves are minted on demand and never for a host that the rules do not record;
the name constraints in the CA (``certificates.py``) are the second lock, checked by the client.

``cryptography`` is imported at the top because nothing here works without it; it is slow to import (docs/clients.md
has the figure), so whoever does not intercept TLS (``list``, ``inspect``, ``diff``) must not import this module.
"""

import datetime as dt
import fcntl
import os
import ssl
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from rewind.errors import EnvironmentProblem
from rewind.gateway.certificates import RUN_LIFETIME, ca_certificate, key_pem, leaf_certificate
from rewind.providers.hosts import HostRules, plain_name

PERSISTENT_LIFETIME = dt.timedelta(days=365)
MAX_CONTEXTS = 1024
"""With ``--all-hosts`` the names come from the child; memory must not grow with them."""
_KEY_FILE = "ca.pem"
_CERTIFICATE_FILE = "ca-certificate.pem"


class Authority:
    """A CA that shows certificates for recorded hosts. Safe to use from several threads."""

    def __init__(
        self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate, rules: HostRules
    ) -> None:
        self._key = key
        self._certificate = certificate
        self._rules = rules
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._sni: ssl.SSLContext | None = None
        self._unknown: Callable[[str], None] | None = None
        self._lock = threading.Lock()

    @classmethod
    def create(cls, rules: HostRules) -> "Authority":
        """A new CA for one run; its key never leaves this process."""
        key = ec.generate_private_key(ec.SECP256R1())
        return cls(key, ca_certificate(key, rules, RUN_LIFETIME), rules)

    @property
    def certificate_pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def name(self) -> str:
        """By which its certificates name it as their issuer; no other CA has it."""
        return str(self._certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)

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
                pem = leaf_certificate(self._leaf_key, host, self._key, self._certificate)
                # Not the CA's: the client has it, and its constraints would be the bulk of every handshake.
                _load(context, key_pem(self._leaf_key) + pem)
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


def create_persistent(home: Path, rules: HostRules) -> Authority:
    """The CA kept in the store, made if there is none. Of two processes at once one makes it, both use it."""
    folder = home / "ca"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(folder):
            if not (folder / _KEY_FILE).exists():
                key = ec.generate_private_key(ec.SECP256R1())
                certificate = ca_certificate(key, rules, PERSISTENT_LIFETIME)
                pem = certificate.public_bytes(serialization.Encoding.PEM)
                # The certificate first: a key file means that the pair is complete.
                _write_whole(folder / _CERTIFICATE_FILE, pem)
                _write_whole(folder / _KEY_FILE, key_pem(key) + pem)
    except OSError as error:
        raise EnvironmentProblem(
            f"The CA could not be kept in {folder}: {error.strerror or error}."
        ) from error
    return load_persistent(home, rules)


def persistent_certificate(home: Path) -> Path:
    """The file to import into a browser or another machine: a certificate, no key."""
    return home / "ca" / _CERTIFICATE_FILE


def load_persistent(home: Path, rules: HostRules) -> Authority:
    """The CA kept in the store, if it is fit for use."""
    path = home / "ca" / _KEY_FILE
    again = f"Remove {path.parent} and run `rewind init --ca` again."
    try:
        pem = _read_private(path)
    except FileNotFoundError as error:
        raise EnvironmentProblem(
            f"There is no CA in {path.parent}.", hint="Run `rewind init --ca`."
        ) from error
    except OSError as error:
        raise EnvironmentProblem(f"{path} cannot be read: {error.strerror or error}.", hint=again) from error
    try:
        key = serialization.load_pem_private_key(pem, password=None)
        certificate = x509.load_pem_x509_certificate(pem)
    except (ValueError, TypeError) as error:
        raise EnvironmentProblem(f"{path} is damaged: {error}.", hint=again) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise EnvironmentProblem(f"In {path} the key does not belong to the certificate.", hint=again)
    now = dt.datetime.now(dt.UTC)
    if certificate.not_valid_after_utc - RUN_LIFETIME < now:
        day = certificate.not_valid_after_utc.date()
        raise EnvironmentProblem(f"The CA in {path.parent} is valid until {day} only.", hint=again)
    return Authority(key, certificate, rules)


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


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write_whole(path: Path, content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent)  # 0600, whatever the umask
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).rename(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def _read_private(path: Path) -> bytes:
    """The bytes of a file that is ours alone."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise EnvironmentProblem(f"{path} is not a file of yours, so its key is not used.")
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise EnvironmentProblem(
                f"{path} can be read by others, so its key is not safe.",
                hint=f"Remove {path.parent}, run `rewind init --ca` again and trust the new certificate.",
            )
        return file.read(1 << 20)
