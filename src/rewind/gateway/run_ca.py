"""The certificate authority of a run: what the agent is told to trust, and the keys behind it.

To make one takes as long as all else that happens before an agent starts, so it is kept in the store and used again for
two days, like the certificates it signed: readable by the owner only, and constrained to the hosts that runs speak as.
One that could vouch for any host (``--all-hosts``) is never kept. A file that is damaged, or that others can read, is
not used.
"""

import json
import os
import shutil
import stat
from contextlib import suppress
from dataclasses import field, replace
from hashlib import sha256
from pathlib import Path

from rewind.dataclass import dataclass
from rewind.errors import EnvironmentProblem
from rewind.files import write_whole
from rewind.providers.hosts import HostRules

RUN_SECONDS = 48 * 3600
"""How long a run may last and still be trusted."""
KEPT_SECONDS = 48 * 3600
MOST_LEAVES = 64
"""Kept per CA: names under a pattern with a star come from the child."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCa:
    """A CA with the key of its leaves."""

    name: str
    """By which its certificates name it as their issuer; no other CA has it."""
    since: float
    until: float
    certificate_pem: bytes
    key_pem: bytes = field(repr=False)
    leaf_key_pem: bytes = field(repr=False)
    leaves: Path | None = None
    """Where the certificates it signed are kept."""


def kept_ca(home: Path, rules: HostRules, now: float) -> RunCa | None:
    """The CA that was kept for these rules; ``None`` if there is none that a run could use."""
    if rules.all_hosts:
        return None
    folder = _folder(home, rules)
    try:
        found = json.loads(_unsealed(folder / "ca"))
        pems = {name: found[name].encode("ascii") for name in ("certificate_pem", "key_pem", "leaf_key_pem")}
        name, since, until = str(found["name"]), float(found["since"]), float(found["until"])
    except (OSError, EnvironmentProblem, ValueError, KeyError, TypeError, AttributeError):
        return None
    if not since <= now <= until - RUN_SECONDS:
        return None
    return RunCa(name=name, since=since, until=until, leaves=folder / name, **pems)


def keep_ca(home: Path, rules: HostRules, ca: RunCa) -> RunCa:
    """Keep it for the runs to come, in place of an older one, unless it could vouch for any host."""
    if rules.all_hosts:
        return ca
    folder = _folder(home, rules)
    texts = {name: getattr(ca, name).decode("ascii") for name in ("certificate_pem", "key_pem", "leaf_key_pem")}
    content = json.dumps({"name": ca.name, "since": ca.since, "until": ca.until, **texts}).encode("ascii")
    leaves = folder / ca.name
    try:
        shutil.rmtree(folder, ignore_errors=True)
        for made in (folder.parent.parent, folder.parent, folder, leaves):
            made.mkdir(mode=0o700, exist_ok=True)
        write_whole(folder / "ca", _sealed(content))
    except OSError:
        return ca  # this run has it in memory; the next one makes another
    return replace(ca, leaves=leaves)


def kept_leaf(ca: RunCa, host: str) -> bytes | None:
    """The certificate of that host, if one is kept."""
    try:
        return None if ca.leaves is None else _unsealed(_leaf(ca.leaves, host))
    except (OSError, EnvironmentProblem, ValueError):
        return None


def keep_leaf(ca: RunCa, host: str, pem: bytes) -> None:
    """Keep a certificate for the next run that speaks as that host."""
    if ca.leaves is not None:
        with suppress(OSError):  # then the next run makes one, too
            if len(os.listdir(ca.leaves)) < MOST_LEAVES:  # noqa: PTH208
                write_whole(_leaf(ca.leaves, host), _sealed(pem))


def read_private(path: Path, hint: str | None = None) -> bytes:
    """The bytes of a file that is ours alone. Raises EnvironmentProblem, OSError."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise EnvironmentProblem(f"{path} does not belong to you, so its key is not used.")
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise EnvironmentProblem(f"{path} can be read by others, so its key is not safe.", hint=hint)
        return file.read(1 << 20)


def _folder(home: Path, rules: HostRules) -> Path:
    return home / "run" / "ca" / sha256("\n".join(rules.patterns).encode()).hexdigest()[:32]


def _leaf(leaves: Path, host: str) -> Path:
    return leaves / sha256(host.encode()).hexdigest()[:32]


def _sealed(content: bytes) -> bytes:
    return sha256(content).hexdigest().encode("ascii") + b"\n" + content


def _unsealed(path: Path) -> bytes:
    """The content of a file as it was written. Raises ValueError for a damaged one, and as ``read_private`` does."""
    seal, _, content = read_private(path).partition(b"\n")
    if seal != sha256(content).hexdigest().encode("ascii"):
        raise ValueError(f"{path} is damaged")
    return content
