"""Makes certificates: of a run's CA and its leaves, and of the persistent CA that ``init --ca`` makes.

A CA's name constraints are a second check, made by the client: it vouches for recorded hosts only. They permit the DNS
subtrees of the host patterns (the labels right of the last ``*``) and the IP addresses among them, and exclude every
other address. With ``--all-hosts`` there is nothing to constrain by, and the CA could vouch for any host while its run
lasts.

``cryptography`` is slow to import (docs/clients.md has the figure): whoever may find a certificate that was made before
must not import this module until one is missing.
"""

import datetime as dt
import fcntl
import ipaddress
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rewind.errors import EnvironmentProblem, UsageError
from rewind.files import write_whole
from rewind.gateway.run_ca import KEPT_SECONDS, RUN_SECONDS, RunCa, keep_ca, read_private
from rewind.model.clock import SystemClock
from rewind.providers.hosts import HostRules, addresses, as_address

RUN_LIFETIME = dt.timedelta(seconds=RUN_SECONDS)
LEAF_LIFETIME = RUN_LIFETIME + dt.timedelta(seconds=KEPT_SECONDS)
"""Never beyond that of its CA."""
BACKDATED = dt.timedelta(hours=1)
"""Clocks of containers and virtual machines run apart by minutes."""
PERSISTENT_LIFETIME = dt.timedelta(days=365)
_KEY_FILE = "ca.pem"
_CERTIFICATE_FILE = "ca-certificate.pem"


def new_ca(home: Path, rules: HostRules) -> RunCa:
    """A CA for a run, kept in the store for the runs to come where that is safe."""
    return keep_ca(home, rules, make_ca(rules, to_keep=not rules.all_hosts))


def make_ca(rules: HostRules, *, to_keep: bool = False) -> RunCa:
    """A new CA for one run, or for the runs of the next two days."""
    key = ec.generate_private_key(ec.SECP256R1())
    return _as_run_ca(key, ca_certificate(key, rules, LEAF_LIFETIME if to_keep else RUN_LIFETIME))


def make_leaf(ca: RunCa, host: str) -> bytes:
    """A certificate for one host, as long as its CA is valid; as PEM."""
    key = _private_key(ca.key_pem)
    leaf_key = _private_key(ca.leaf_key_pem)
    return leaf_certificate(leaf_key, host, key, x509.load_pem_x509_certificate(ca.certificate_pem))


def _as_run_ca(key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> RunCa:
    return RunCa(
        name=str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value),
        since=certificate.not_valid_before_utc.timestamp(),
        until=certificate.not_valid_after_utc.timestamp(),
        certificate_pem=certificate.public_bytes(serialization.Encoding.PEM),
        key_pem=key_pem(key),
        leaf_key_pem=key_pem(ec.generate_private_key(ec.SECP256R1())),
    )


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey), "our CAs have EC keys"
    return key


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
        _builder(leaf_key.public_key(), _subject("Rewind leaf"), ca, LEAF_LIFETIME)
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
    public_key: ec.EllipticCurvePublicKey, subject: x509.Name, issuer: x509.Certificate | None, lifetime: dt.timedelta
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


def create_persistent(home: Path, rules: HostRules) -> RunCa:
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
    return load_persistent(home)


def persistent_certificate(home: Path) -> Path:
    """The file to import into a browser or another machine: a certificate, no key."""
    return home / "ca" / _CERTIFICATE_FILE


def load_persistent(home: Path) -> RunCa:
    """The CA kept in the store, if it is fit for use."""
    path = home / "ca" / _KEY_FILE
    again = f"Remove {path.parent} and run `rewind init --ca` again."
    try:
        pem = read_private(path, f"Remove {path.parent}, run `rewind init --ca` again and trust the new certificate.")
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
    return _as_run_ca(key, certificate)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
