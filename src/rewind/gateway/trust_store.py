"""What the child already trusts, so that our CA can be added without taking anything away.

Most CA variables *replace* what a client trusts. Each therefore gets a bundle made of what that client would have
trusted without us (the user's own value of the variable, or of those it falls back to, else the system's roots) and
our CA. Only certificates are copied: a private key that shares a file with them stays where it is.
"""

import hashlib
import re
import struct
from binascii import a2b_base64
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from shutil import which

SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Gentoo
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL 6
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # RHEL 7 and later
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine, macOS, OpenBSD
    "/usr/local/etc/ssl/cert.pem",  # FreeBSD
    "/opt/homebrew/etc/ca-certificates/cert.pem",  # Homebrew
    "/opt/homebrew/etc/openssl@3/cert.pem",
    "/etc/pki/tls/cacert.pem",  # OpenELEC
)
JAVA_PASSWORD = "changeit"  # noqa: S105  Java's own default; a trust store holds nothing secret
_JKS_MAGIC = 0xFEEDFEED
_JKS_VERSION = 2
_JKS_CERTIFICATE = struct.pack(">I", 2)
MAX_BUNDLE = 16 << 20
_CERTIFICATE = re.compile(rb"-----BEGIN (TRUSTED )?CERTIFICATE-----[^-]+-----END (?:TRUSTED )?CERTIFICATE-----")


def certificates_in(path: Path) -> tuple[bytes, ...]:
    """The PEM certificates of a file, or of every file in a folder; none when it cannot be read.

    A client that is pointed at a file it cannot read fails by itself, with or without us.
    """
    try:
        if path.is_dir():
            files = sorted(path.iterdir())
            return tuple(dict.fromkeys(pem for file in files if file.is_file() for pem in certificates_in(file)))
        with path.open("rb") as file:
            content = file.read(MAX_BUNDLE)
    except OSError:
        return ()
    return tuple(dict.fromkeys(certificate.group() for certificate in _CERTIFICATE.finditer(content)))


def system_roots() -> tuple[bytes, ...]:
    """The roots of this machine, from the first bundle that has any."""
    # ``cafile`` would follow SSL_CERT_FILE of our own process, which is the user's answer and not the system's.
    usual = _openssl_paths()[0]
    for candidate in (usual, *SYSTEM_BUNDLES):
        if found := certificates_in(Path(candidate)):
            return found
    # As on python.org's macOS builds: no file at all. Many clients bring these same roots themselves.
    spec = find_spec("certifi")
    if spec is not None and spec.origin is not None:
        return certificates_in(Path(spec.origin).with_name("cacert.pem"))
    return ()


def trusted_without_us(env: Mapping[str, str], names: tuple[str, ...], system: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """What the first of these variables that is set points at, else the system's roots."""
    for name in names:
        if env.get(name):
            return certificates_in(Path(env[name]))
    folder = env.get("SSL_CERT_DIR")
    if folder and "SSL_CERT_FILE" in names and not _is_the_systems(folder):
        # Clients that look at SSL_CERT_DIR only where SSL_CERT_FILE is not set (httpx) would lose it.
        in_folders = (pem for part in folder.split(":") for pem in certificates_in(Path(part)))
        return tuple(dict.fromkeys((*system, *in_folders)))
    return system


def bundle(*groups: tuple[bytes, ...]) -> bytes:
    """One PEM file of all these certificates, each once."""
    return b"".join(pem + b"\n" for pem in dict.fromkeys(pem for group in groups for pem in group))


def java_is_here(env: Mapping[str, str]) -> bool:
    return bool(env.get("JAVA_HOME")) or which("java", path=env.get("PATH")) is not None


def java_trust_store(certificates: tuple[bytes, ...]) -> bytes:
    """The certificates as a Java key store (JKS); Java reads no PEM.

    Every Java since 1.2 reads this format, and it is written in a millisecond. PKCS #12 takes twenty to make, on every
    run on a machine that has a Java.
    """
    entries = []
    for number, pem in enumerate(certificates):
        encoded = a2b_base64(b"".join(pem.splitlines()[1:-1]))
        entries += [_JKS_CERTIFICATE, _java_text(f"root {number}"), bytes(8), _java_text("X.509")]
        entries += [struct.pack(">I", len(encoded)), encoded]
    store = struct.pack(">III", _JKS_MAGIC, _JKS_VERSION, len(certificates)) + b"".join(entries)
    # Keyed with a password that everybody knows, it guards against accidents only. The words are Sun's.
    seal = hashlib.sha1(JAVA_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + store, usedforsecurity=False)
    return store + seal.digest()


def _java_text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")


def _is_the_systems(folder: str) -> bool:
    return Path(folder) in (Path("/etc/ssl/certs"), Path(_openssl_paths()[1]))


def _openssl_paths() -> tuple[str, str]:
    """The file and the folder of roots that OpenSSL looks at."""
    import ssl  # lazily: an agent that stays offline does not wait for it

    paths = ssl.get_default_verify_paths()
    return paths.openssl_cafile, paths.openssl_capath
