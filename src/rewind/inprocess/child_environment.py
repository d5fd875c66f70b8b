"""The variables that bring a child of this process to the process's own gateway."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rewind.gateway.environment import prepare
from rewind.inprocess.redirect.rules import ConnectionRules
from rewind.inprocess.shared_gateway import SharedGateway

HOOKS = ("PYTHONPATH", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS")
"""Besides our own: what the hooks in Python and Node need. A process that runs already does not read them."""


class ChildEnvironment:
    """Certificates in a private folder, and the variables that name them; made when they are first asked for."""

    def __init__(self, gateway: SharedGateway, rules: ConnectionRules) -> None:
        self._gateway = gateway
        self._itinerary = rules
        self._folder: Path | None = None
        self._variables: dict[str, str] = {}

    def variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """All of them, to be laid over that environment. Raises OSError where no file can be written."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="rewind-run-"))
            self._variables = self._prepared(self._folder, environ)
        return self._variables

    def _prepared(self, folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
        rules, gateway = self._itinerary, self._gateway
        prepared = prepare(
            folder, environ, port=gateway.port, authority_pem=gateway.certificate_pem, rules=rules.hosts
        )
        endpoints = sorted(f"{host}:{port}" for host, port in rules.endpoints)
        plain = [*endpoints, *prepared.variables["REWIND_GATEWAY_PLAIN"].split(",")]
        return {
            **prepared.variables,
            **(dict.fromkeys(("NO_PROXY", "no_proxy"), "") if rules.offline else {}),
            "REWIND_GATEWAY_URL": f"http://127.0.0.1:{gateway.port}",
            "REWIND_GATEWAY_PLAIN": ",".join(dict.fromkeys(filter(None, plain))),
            "REWIND_OFFLINE": "1" if rules.offline else "0",
            "REWIND_LIVE_HOSTS": ",".join(rules.allowed.patterns),
        }

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def hook_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that only the hooks read."""
    return {name: value for name, value in variables.items() if name in HOOKS or name.startswith("REWIND_")}
