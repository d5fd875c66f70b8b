"""What our certificates say.

A CA vouches for recorded hosts only: its name constraints permit the DNS subtrees of the host patterns (the
labels right of the last ``*``) and the IP addresses among them, and exclude every other address. With
``--all-hosts`` there is nothing to constrain by, and the CA could vouch for any host while its run lasts.
"""

import datetime as dt
import ipaddress
import os
from collections.abc import Iterable, Iterator

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rewind.errors import UsageError
from rewind.providers.hosts import HostRules, addresses, as_address

RUN_LIFETIME = dt.timedelta(hours=48)
BACKDATED = dt.timedelta(hours=1)
"""Clocks of containers and virtual machines run apart by minutes."""


def ca_certificate(
    key: ec.EllipticCurvePrivateKey, rules: HostRules, lifetime: dt.timedelta
) -> x509.Certificate:
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
    now = dt.datetime.now(dt.UTC)
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
