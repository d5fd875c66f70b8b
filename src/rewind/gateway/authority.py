"""The certificate authority of one run, and the persistent one that ``init --ca`` makes.

A run's CA lives in memory for hours. Leaves are minted on demand and never for a host that the rules do not record;
the CA's name constraints are a second check, made by the client: it vouches for recorded hosts only. They permit
the DNS subtrees of the host patterns (the labels right of the last ``*``) and the IP addresses among them, and exclude
every other address. With ``--all-hosts`` there is nothing to constrain by, and the CA could vouch for any host while
its run lasts.

``cryptography`` is imported at the top because nothing here works without it; it is slow to import (docs/clients.md
has the figure), so whoever does not intercept TLS (``list``, ``inspect``, ``diff``) must not import this module.
"""

import datetime as dt
import fcntl
import ipaddress
import os
import ssl
import stat
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rewind.errors import EnvironmentProblem, UsageError
from rewind.files import write_whole
from rewind.model.clock import SystemClock
from rewind.providers.hosts import HostRules, addresses, as_address, plain_name

RUN_LIFETIME = dt.timedelta(hours=48)
BACKDATED = dt.timedelta(hours=1)
"""Clocks of containers and virtual machines run apart by minutes."""


PERSISTENT_LIFETIME = dt.timedelta(days=365)
MAX_CONTEXTS = 1024
"""With ``--all-hosts`` the names come from the child; memory must not grow with them."""
_KEY_FILE = "ca.pem"
_CERTIFICATE_FILE = "ca-certificate.pem"


def ca_certificate(key: ec.EllipticCurvePrivateKey, rules: HostRules, lifetime: dt.timedelta) -> x509.Certificate:
    # A name of its own: two CAs of the same name in one bundle (a run inside a run) confuse chain building.
    subject = _subject(f"Rewind CA {os.urandom(4).hex()}")
    builder = (
        _builder(key.public_key(), subject, None, lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(key_cert_sign=True), critical=True)
    )
    if not rules.all_hosts:
        builder = builder.add_extension(_name_constraints(rules.patterns), critical=True)
    return builder.sign(key, hashes.SHA256())


def leaf_certificate(
    leaf_key: ec.EllipticCurvePrivateKey, host: str, ca_key: ec.EllipticCurvePrivateKey, ca: x509.Certificate
) -> bytes:
    """A certificate for one host, as PEM."""
    address = as_address(host)
    name = x509.DNSName(host) if address is None else x509.IPAddress(address)
    certificate = (
        _builder(leaf_key.public_key(), _subject("Rewind leaf"), ca)
        .add_extension(x509.SubjectAlternativeName([name]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM)


def _name_constraints(patterns: Iterable[str]) -> x509.NameConstraints:
    known = tuple(patterns)
    listed = addresses(known)
    permitted: list[x509.GeneralName] = [x509.DNSName(tree) for tree in subtrees(known)]
    permitted += [x509.IPAddress(ipaddress.ip_network(address)) for address in listed]
    # A kind of name that is not listed at all would be free, so the kinds that are not used are shut.
    excluded = [
        x509.IPAddress(ipaddress.ip_network(everything))
        for version, everything in ((4, "0.0.0.0/0"), (6, "::/0"))
        if all(address.version != version for address in listed)
    ]
    return x509.NameConstraints(permitted, excluded or None)


def subtrees(patterns: Iterable[str]) -> tuple[str, ...]:
    """The smallest DNS subtrees that hold every host the patterns can match."""
    trees: set[str] = set()
    for pattern in patterns:
        if as_address(pattern) is None:
            labels = pattern.split(".")
            stars = [place for place, label in enumerate(labels) if "*" in label]
            trees.add(".".join(labels[stars[-1] + 1 :] if stars else labels))
    if "" in trees:
        raise UsageError(
            "A host pattern that ends in * would let the run's CA vouch for any host.",
            hint="Name a domain after the *, or say --all-hosts.",
        )
    inner = {tree for tree in trees if not trees.isdisjoint(_parents(tree))}
    # ``.invalid`` (RFC 6761) is nobody's: without any DNS subtree every DNS name would be permitted.
    return tuple(sorted(trees - inner)) or ("rewind.invalid",)


def _parents(name: str) -> Iterator[str]:
    """``b.c`` and ``c`` for ``a.b.c``."""
    while "." in name:
        name = name.partition(".")[2]
        yield name


def _builder(
    public_key: ec.EllipticCurvePublicKey,
    subject: x509.Name,
    issuer: x509.Certificate | None,
    lifetime: dt.timedelta = RUN_LIFETIME,
) -> x509.CertificateBuilder:
    now = _now()
    since, until = now - BACKDATED, now + lifetime
    if issuer is not None:
        since, until = max(since, issuer.not_valid_before_utc), min(until, issuer.not_valid_after_utc)
    # Python 3.13 verifies strictly: both key identifiers must be there.
    issuer_key = public_key if issuer is None else issuer.public_key()
    assert isinstance(issuer_key, ec.EllipticCurvePublicKey), "our CAs have EC keys"
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(since)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
    )


def _now() -> dt.datetime:
    return dt.datetime.fromtimestamp(SystemClock().now(), dt.UTC)


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _key_usage(*, digital_signature: bool = False, key_cert_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


class Authority:
    """A CA that shows certificates for recorded hosts. Safe to use from several threads."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate, rules: HostRules) -> None:
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
                write_whole(folder / _CERTIFICATE_FILE, pem)
                write_whole(folder / _KEY_FILE, key_pem(key) + pem)
    except OSError as error:
        raise EnvironmentProblem(f"The CA could not be stored in {folder}: {error.strerror or error}.") from error
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
        raise EnvironmentProblem(f"There is no CA in {path.parent}.", hint="Run `rewind init --ca`.") from error
    except OSError as error:
        raise EnvironmentProblem(f"{path} cannot be read: {error.strerror or error}.", hint=again) from error
    try:
        key = serialization.load_pem_private_key(pem, password=None)
        certificate = x509.load_pem_x509_certificate(pem)
    except (ValueError, TypeError) as error:
        raise EnvironmentProblem(f"{path} is damaged: {error}.", hint=again) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise EnvironmentProblem(f"The key in {path} does not match its certificate.", hint=again)
    now = _now()
    if certificate.not_valid_after_utc - RUN_LIFETIME < now:
        day = certificate.not_valid_after_utc.date()
        raise EnvironmentProblem(f"The CA in {path.parent} expires on {day}.", hint=again)
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


def _read_private(path: Path) -> bytes:
    """The bytes of a file that is ours alone."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise EnvironmentProblem(f"{path} does not belong to you, so its key is not used.")
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise EnvironmentProblem(
                f"{path} can be read by others, so its key is not safe.",
                hint=f"Remove {path.parent}, run `rewind init --ca` again and trust the new certificate.",
            )
        return file.read(1 << 20)
