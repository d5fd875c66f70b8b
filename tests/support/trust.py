"""A certificate authority made for one test run, and the leaf certificates of the scripted providers."""

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PROVIDER_NAMES = (
    "api.openai.com",
    "api.anthropic.com",
    "generativelanguage.googleapis.com",
    "tools.example.com",
    "private.example.com",
    "localhost",
)


@dataclass(frozen=True, slots=True)
class Trust:
    """The authority's certificate in a file, and its key in memory."""

    ca_file: Path
    _key: ec.EllipticCurvePrivateKey
    _certificate: x509.Certificate

    @classmethod
    def create(cls, folder: Path) -> "Trust":
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Scripted providers")])
        certificate = (
            _draft(name, name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        ca_file = folder / "provider-ca.pem"
        ca_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return cls(ca_file, key, certificate)

    def server_context(self, names: tuple[str, ...], folder: Path) -> ssl.SSLContext:
        """A server's context with one leaf for all of these names and for loopback."""
        key = ec.generate_private_key(ec.SECP256R1())
        loopback = [x509.IPAddress(ipaddress.ip_address(text)) for text in ("127.0.0.1", "::1")]
        authority_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        leaf = (
            _draft(x509.Name([]), self._certificate.subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([*(x509.DNSName(name) for name in names), *loopback]), critical=True
            )
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(authority_id, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        pem = folder / "leaf.pem"
        pem.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + leaf.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        context.set_alpn_protocols(["http/1.1"])
        return context

    def client_context(self) -> ssl.SSLContext:
        """A client that trusts this authority and nobody else."""
        return ssl.create_default_context(cafile=str(self.ca_file))


def _draft(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
