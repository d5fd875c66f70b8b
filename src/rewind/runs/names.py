"""What two runs of one agent call otherwise: the recorded one, and the one that is answered by it."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from rewind.dataclass import dataclass
from rewind.match.facts import FOLDERS, RunFacts, possible_facts
from rewind.match.renaming import Renaming
from rewind.match.written_times import DAY, RunClock
from rewind.model.clock import Clock
from rewind.model.names import MatchMode
from rewind.model.session import Recording
from rewind.runs.harness import facts_of_process

_GIT_SECONDS = 2.0
_CLOCK_NOISE = 2.0
"""Seconds that asking for the time may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """The run that is answered by a recording."""

    folder: str
    environ: Mapping[str, str]
    command: tuple[str, ...]
    clock: Clock
    began: float
    stdin: bytes | None = None
    pid: int | None = None
    """Of the agent, where that is another process: its clock may be another one."""
    given: tuple[str, ...] = ()
    """What else the user gave, such as a test's parameters."""
    match: MatchMode = "renamed"
    ignore_text: tuple[str, ...] = ()


def renaming(recording: Recording, new: NewRun, *, stdin: bytes | None = None) -> Callable[[], Renaming] | None:
    """How to tell names from differences; ``stdin`` is what the recorded run read. ``None``: nothing may differ."""
    if new.match == "exact":
        return None

    return _begun(recording, new, stdin)


def lenient_renaming(recording: Recording, new: NewRun, *, stdin: bytes | None = None) -> Callable[[], Renaming] | None:
    """By which a miss may be the same but for names; ``None`` where those may differ anyway."""
    return None if new.match == "renamed" else _begun(recording, replace(new, match="renamed"), stdin)


def _begun(recording: Recording, new: NewRun, stdin: bytes | None) -> Callable[[], Renaming]:
    @cache
    def begun() -> Renaming:
        then, now = _then(recording, stdin), _now(recording, new)
        return Renaming(then, now, mode=new.match, ignore_text=new.ignore_text)

    return begun


def _then(recording: Recording, stdin: bytes | None) -> RunFacts:
    start, end, around = recording.session.start, recording.session.end, recording.surroundings
    last = max((step.request.ts for step in recording.steps), default=start.started)
    ended = max(last, start.started if end is None else end.ended)
    folders = {"folder": start.cwd, **start.facts}
    names = dict(start.facts)
    if around is not None:
        names |= {"commit": around.commit or "", "branch": around.branch or ""}
    return RunFacts(
        clock=RunClock(began=start.started, until=lambda: ended, offsets=_offsets(start.facts.get("utc_offset"))),
        folders=possible_facts(folders, FOLDERS),
        names=possible_facts(names, ("user", "host", "commit", "branch")),
        given="\n".join((*start.command, _text(stdin))),
    )


def _now(recording: Recording, new: NewRun) -> RunFacts:
    facts = facts_of_process(new.environ) | {"folder": new.folder}
    if recording.surroundings is not None and recording.surroundings.commit:
        facts |= _commit_and_branch(new)
    ahead = 0.0 if new.pid is None else _clock_ahead(new.pid, new.clock)
    return RunFacts(
        clock=RunClock(
            began=new.began + ahead,
            until=lambda: new.clock.now() + ahead,
            offsets=_offsets(str(time.localtime().tm_gmtoff)),
        ),
        folders=possible_facts(facts, FOLDERS),
        names=possible_facts(facts, ("user", "host", "commit", "branch")),
        given="\n".join((*new.command, _text(new.stdin), *new.given, *new.environ.values())),
    )


def _clock_ahead(pid: int, clock: Clock) -> float:
    """Seconds by which the agent's clock is ahead of ours: a library such as libfaketime may be in it alone."""
    for theirs in _environments(pid):
        if theirs.get("LD_PRELOAD") and theirs["LD_PRELOAD"] != os.environ.get("LD_PRELOAD"):
            break
    else:
        return 0.0
    try:
        said = subprocess.run(
            ("date", "+%s"), env=theirs, stdin=subprocess.DEVNULL, capture_output=True, timeout=_GIT_SECONDS, check=True
        )
        ahead = float(said.stdout) - clock.now()
        return ahead if abs(ahead) > _CLOCK_NOISE else 0.0
    except (OSError, subprocess.SubprocessError, ValueError):
        return 0.0


def _environments(pid: int) -> Iterator[dict[str, str]]:
    """Of the process and of those that it started, as far as this system shows them."""
    pids = [pid]
    for one in pids:
        try:
            variables = Path(f"/proc/{one}/environ").read_bytes()
            pids += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
        except (OSError, ValueError):
            continue
        pairs = (os.fsdecode(pair).partition("=") for pair in variables.split(b"\0"))
        yield {name: value for name, _, value in pairs}


def _offsets(local: str | None) -> tuple[int, ...]:
    """A time without a zone is one of UTC, or of the place."""
    try:
        offset = int(local or 0)
    except ValueError:
        return (0,)
    return (0, offset) if 0 < abs(offset) < DAY else (0,)


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")


def _commit_and_branch(new: NewRun) -> dict[str, str]:
    """Of the folder that the new run is in; nothing where git does not say."""
    words = ("git", "--no-pager", "-c", "core.fsmonitor=false", "rev-parse", "HEAD", "--symbolic-full-name", "HEAD")
    try:
        done = subprocess.run(
            words,
            cwd=new.folder,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return {}
    branch = lines[1].removeprefix("refs/heads/") if len(lines) > 1 and lines[1].startswith("refs/heads/") else ""
    return {"commit": lines[0], "branch": branch}
