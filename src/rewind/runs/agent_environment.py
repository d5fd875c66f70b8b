"""What a run needs around it: a private folder for its certificates, and the variables that bring clients here."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from rewind.errors import EnvironmentProblem
from rewind.gateway.authority import Authority
from rewind.gateway.environment import prepare
from rewind.model.ids import SessionId
from rewind.providers.hosts import HostRules


@contextlib.contextmanager
def agent_environment(
    home: Path,
    session: SessionId,
    env: Mapping[str, str],
    *,
    port: int,
    authority: Authority,
    rules: HostRules,
    offline: bool = False,
    live_hosts: tuple[str, ...] = (),
) -> Iterator[dict[str, str]]:
    """The variables for the child; the files they name live as long as the run.

    ``offline`` tells the hooks to bring here whatever would leave this machine, so that it is refused by name.
    """
    folder = home / "run" / f"{os.getpid()}-{session}"
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        sweep(folder.parent)
        folder.mkdir(mode=0o700)
        prepared = prepare(folder, env, port=port, authority_pem=authority.certificate_pem, rules=rules)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise EnvironmentProblem(f"{folder} cannot be written: {error.strerror}.") from error
    try:
        yield {
            **env,
            **prepared.variables,
            **(dict.fromkeys(("NO_PROXY", "no_proxy"), "") if offline else {}),
            "REWIND_GATEWAY_URL": f"http://127.0.0.1:{port}",
            "REWIND_SESSION": session,
            "REWIND_OFFLINE": "1" if offline else "0",
            "REWIND_LIVE_HOSTS": ",".join(live_hosts),
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(runs: Path) -> None:
    """Remove what killed runs left behind; it holds no secrets, only certificates."""
    for left in runs.iterdir():
        pid = left.name.partition("-")[0]
        if pid.isdigit() and not _alive(int(pid)):
            shutil.rmtree(left, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
