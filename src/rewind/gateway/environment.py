"""The variables that bring each client to the gateway: the tested table of docs/clients.md, as code.

Three ways, all at once, because no client obeys all of them: proxy variables, CA variables, and a hook loaded into
Python and Node (``hooks/``) for clients that ignore proxies. Whatever the user had in a variable is kept where the
variable is a list, and joined where it is a file.
"""

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path

from rewind.dataclass import dataclass
from rewind.gateway.trust_store import (
    JAVA_PASSWORD,
    bundle,
    certificates_in,
    java_is_here,
    java_trust_store,
    system_roots,
    trusted_without_us,
)
from rewind.providers.hosts import (
    LOCAL_ENDPOINTS,
    HostRules,
    as_address,
    endpoints_from_environment,
    matches,
    plain_name,
)

HOOKS = Path(__file__).parent / "hooks"
PYTHON_HOOK = HOOKS / "python"
NODE_HOOK = HOOKS / "node" / "preload.cjs"

PROXY_VARIABLES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
REPLACING_CA_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "SSL_CERT_FILE": ("SSL_CERT_FILE",),
    "REQUESTS_CA_BUNDLE": ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    "CURL_CA_BUNDLE": ("CURL_CA_BUNDLE", "SSL_CERT_FILE"),
    "AWS_CA_BUNDLE": ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"),
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": ("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",),
    "GIT_SSL_CAINFO": ("GIT_SSL_CAINFO", "SSL_CERT_FILE"),
    "CARGO_HTTP_CAINFO": ("CARGO_HTTP_CAINFO", "SSL_CERT_FILE"),
}
"""Each with the variables its clients fall back to, which would lose their say once it is set."""
ADDING_CA_VARIABLES = ("NODE_EXTRA_CA_CERTS", "DENO_CERT")


@dataclass(frozen=True, slots=True)
class ChildEnvironment:
    """What to lay over the user's environment, and the files these variables point at."""

    variables: dict[str, str]
    files: tuple[Path, ...]


def prepare(
    folder: Path, env: Mapping[str, str], *, port: int, authority_pem: bytes, rules: HostRules, offline: bool = False
) -> ChildEnvironment:
    """The variables for a child of ``env``; certificates are written to ``folder``, nothing else is touched.

    A child that stays ``offline`` meets no public server: the system's roots, which a client takes long to load, are
    left out; what the user's own variables name is not.
    """
    files = _Files(folder)
    variables = dict.fromkeys(PROXY_VARIABLES, f"http://127.0.0.1:{port}")
    variables |= _no_proxy(env, rules)
    system, ours = () if offline else system_roots(), (authority_pem.strip(),)
    variables |= _certificates(files, env, system, ours)
    variables |= _hooks(env)
    variables |= _for_hooks(env, port, variables["REWIND_GATEWAY_CA"], rules)
    if java_is_here(env):
        variables["JAVA_TOOL_OPTIONS"] = _java(files, env, port, system, ours)
    return ChildEnvironment(variables, tuple(files.written))


class _Files:
    """Writes each content once, readable by the user alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._by_content: dict[bytes, Path] = {}
        self.written: list[Path] = []

    def write(self, name: str, content: bytes) -> Path:
        if content in self._by_content:
            return self._by_content[content]
        path = (self._folder / name).absolute()
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(content)
        self._by_content[content] = path
        self.written.append(path)
        return path


def _certificates(
    files: _Files, env: Mapping[str, str], system: tuple[bytes, ...], ours: tuple[bytes, ...]
) -> dict[str, str]:
    alone = files.write("rewind-ca.pem", bundle(ours))
    variables = {"REWIND_GATEWAY_CA": str(alone)}
    for name in ADDING_CA_VARIABLES:
        own = certificates_in(Path(env[name])) if env.get(name) else ()
        variables[name] = str(files.write(f"{name.lower()}.pem", bundle(own, ours)))
    for name, sources in REPLACING_CA_VARIABLES.items():
        content = bundle(trusted_without_us(env, sources, system), ours)
        variables[name] = str(files.write(f"{name.lower()}.pem", content))
    return variables


def _no_proxy(env: Mapping[str, str], rules: HostRules) -> dict[str, str]:
    """The user's exceptions, less those that would hide a recorded host."""
    kept = {}
    for name in ("NO_PROXY", "no_proxy"):
        if name in env:
            entries = [entry.strip() for entry in env[name].replace(" ", ",").split(",")]
            kept[name] = ",".join(entry for entry in entries if entry and not hides(entry, rules))
    return kept


def hides(entry: str, rules: HostRules) -> bool:
    """Whether a ``NO_PROXY`` entry would send some recorded host past the gateway.

    When in doubt, yes: a host that then comes to the gateway without need is tunnelled untouched.
    """
    if entry == "*" or rules.all_hosts:
        return True
    try:
        network = ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        pass
    else:
        found = (as_address(pattern) for pattern in rules.patterns)
        return any(address in network for address in found if address is not None)
    # Clients differ on "example.com" and ".example.com" and "*.example.com"; all may mean the whole domain.
    domain = plain_name(entry.partition(":")[0]).lstrip("*").lstrip(".")
    return any(matches(entry, pattern) or _may_lie_under(pattern, domain) for pattern in rules.patterns)


def _may_lie_under(pattern: str, domain: str) -> bool:
    if "*" not in pattern:
        return pattern == domain or pattern.endswith("." + domain)
    end = pattern.rpartition("*")[2]
    return matches(pattern, domain) or end.endswith("." + domain) or ("." + domain).endswith(end)


def _hooks(env: Mapping[str, str]) -> dict[str, str]:
    # First, not last: an earlier sitecustomize would keep ours from being found. Ours then runs the user's.
    python = [str(PYTHON_HOOK), *(part for part in env.get("PYTHONPATH", "").split(os.pathsep) if part)]
    escaped = str(NODE_HOOK).replace("\\", "\\\\").replace('"', '\\"')
    require = f'--require "{escaped}"'
    node = env.get("NODE_OPTIONS", "")
    return {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(python)),
        "NODE_OPTIONS": node if require in node else f"{node} {require}".strip(),
    }


def _for_hooks(env: Mapping[str, str], port: int, ca: str, rules: HostRules) -> dict[str, str]:
    plain = [*endpoints_from_environment(env), *LOCAL_ENDPOINTS]
    pairs = dict.fromkeys(f"{at.host}:{at.port}" for at in plain if at.scheme == "http" and at.port != port)
    return {
        "REWIND_GATEWAY_PORT": str(port),
        "REWIND_GATEWAY_HOSTS": "*" if rules.all_hosts else ",".join(rules.patterns),
        "REWIND_GATEWAY_PLAIN": ",".join(pairs),
        "REWIND_GATEWAY_CA": ca,
    }


def _java(files: _Files, env: Mapping[str, str], port: int, system: tuple[bytes, ...], ours: tuple[bytes, ...]) -> str:
    # Java's own store is mostly a copy of the system's, in a format of its own; a CA that is in there alone is lost.
    roots = trusted_without_us(env, ("SSL_CERT_FILE",), system)
    store = files.write("java-trust.jks", java_trust_store((*roots, *ours)))
    properties = {
        "http.proxyHost": "127.0.0.1",
        "http.proxyPort": str(port),
        "https.proxyHost": "127.0.0.1",
        "https.proxyPort": str(port),
        # Empty, or Java would keep its default, and a model server on this machine past the gateway.
        "http.nonProxyHosts": "",
        "javax.net.ssl.trustStore": str(store),
        "javax.net.ssl.trustStoreType": "JKS",
        "javax.net.ssl.trustStorePassword": JAVA_PASSWORD,
    }
    options = " ".join(_java_quoted(f"-D{name}={value}") for name, value in properties.items())
    return f"{env.get('JAVA_TOOL_OPTIONS', '')} {options}".strip()


def _java_quoted(option: str) -> str:
    """JAVA_TOOL_OPTIONS is split at blanks; quotes keep them, and nothing escapes a quote."""
    if not any(sign.isspace() for sign in option):
        return option
    return f'"{option}"' if '"' not in option else f"'{option}'"
