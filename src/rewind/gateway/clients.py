"""Which clients on this machine a run can record, and by what they are brought to the gateway."""

import re
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from shutil import which

from rewind.dataclass import dataclass

VERSION_SECONDS = 5.0
_VERSION = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True, slots=True)
class ClientCheck:
    """One kind of client, as it is found here."""

    name: str
    found: bool
    version: str
    works: str
    """What brings it to the gateway; empty when nothing does."""
    note: str


@dataclass(frozen=True, slots=True)
class _Client:
    name: str
    commands: tuple[str, ...]
    works: str
    note: str = ""
    ask: tuple[str, ...] = ("--version",)


CLIENTS: tuple[_Client, ...] = (
    _Client(
        "python",
        ("python3", "python"),
        "proxy and CA variables; the hook on PYTHONPATH for clients that ignore them (aiohttp, urllib3)",
        "python -I, -E and -S load no hook; then only clients that obey the variables are recorded",
    ),
    _Client(
        "node",
        ("node",),
        "the hook in NODE_OPTIONS and NODE_EXTRA_CA_CERTS",
        "HTTP/2-only clients (gRPC) are not recorded",
    ),
    _Client("curl", ("curl",), "proxy variables and CURL_CA_BUNDLE"),
    _Client(
        "java",
        ("java",),
        "JAVA_TOOL_OPTIONS: proxy and trust store",
        "Java says on stderr that it picked them up; a client with a proxy or trust of its own is not recorded",
    ),
    _Client(
        "go",
        ("go",),
        "HTTPS_PROXY and SSL_CERT_FILE",
        "on macOS Go asks the system's keychain and ignores SSL_CERT_FILE; requests to localhost never use a proxy",
        ask=("version",),
    ),
    _Client("deno", ("deno",), "proxy variables and DENO_CERT"),
    _Client("bun", ("bun",), "proxy variables and NODE_EXTRA_CA_CERTS"),
    _Client("ruby", ("ruby",), "http_proxy and SSL_CERT_FILE"),
    _Client(
        "wget",
        ("wget",),
        "https_proxy, with --ca-certificate=$SSL_CERT_FILE",
        "built with GnuTLS it ignores every CA variable, so it refuses recorded hosts; other hosts work",
    ),
)
NEVER_RECORDED: tuple[str, ...] = (
    "Clients that pin a certificate (a fingerprint or one fixed CA outside Python and Node) refuse the gateway's.",
    "Clients that speak HTTP/2 only, gRPC first of all, find no HTTP/2 at the gateway.",
)
"""Said once, whatever is installed."""


def check_clients(env: Mapping[str, str]) -> tuple[ClientCheck, ...]:
    """Each client we know, whether it is on this machine's PATH, and what brings it to the gateway."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        return tuple(pool.map(lambda client: _check(client, env), CLIENTS))


def _check(client: _Client, env: Mapping[str, str]) -> ClientCheck:
    path = next(filter(None, (which(name, path=env.get("PATH")) for name in client.commands)), None)
    if path is None:
        return ClientCheck(client.name, False, "", client.works, client.note)
    try:
        asked = subprocess.run(
            [path, *client.ask],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_SECONDS,
            check=False,
        )
        said = (asked.stdout + asked.stderr).decode("utf-8", "replace")
        note = client.note
    except (OSError, subprocess.TimeoutExpired) as problem:
        said, note = "", f"it could not be asked for its version: {problem}"
    version = _VERSION.search(said)
    return ClientCheck(client.name, True, version.group() if version else "", client.works, note)
