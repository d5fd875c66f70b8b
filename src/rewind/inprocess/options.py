"""A run of this process: what kind it is to be, which hosts it reaches, and how it went."""

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Literal

from rewind.dataclass import dataclass
from rewind.gateway.options import UpstreamOptions
from rewind.inprocess.redirect.rules import THIS_MACHINE, ConnectionRules, pairs, place, proxies
from rewind.model.clock import Clock, SystemClock
from rewind.model.names import MatchMode, Renamed
from rewind.model.session import Recording
from rewind.model.step import Step
from rewind.playback.tools import OWN_SCHEMES
from rewind.providers.hosts import (
    LLM_HOSTS,
    LOCAL_ENDPOINTS,
    HostRules,
    endpoints_from_environment,
    hosts_from_environment,
)
from rewind.providers.outside import outside_hosts
from rewind.providers.telemetry import upload_hosts
from rewind.runs.tally import MissNote
from rewind.store.journal.reader import SessionReader


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessOptions:
    """What kind of run it is to be."""

    home: Path
    """The store."""
    name: str | None = None
    mode: Literal["record", "replay"] = "record"
    tape: SessionReader | None = None
    """For a replay: the opened recording. It must stay open until ``finish`` has returned; whoever opened it closes
    it. Ignored when recording."""
    on_miss: Literal["refuse", "live"] = "refuse"
    """``live``: what the tape cannot answer is asked of its host, and nothing is stopped."""
    allow_drift: bool = False
    tools: Literal["replay", "live"] = "replay"
    """``live``: tools always run, in a replay too."""
    hosts: tuple[str, ...] = ()
    """Recorded besides the known LLM APIs: a name pattern (on every port), or ``NAME:PORT`` (only there; the way to
    name a server on this machine)."""
    all_hosts: bool = False
    """Every name is recorded on ports 80 and 443."""
    allowed_hosts: tuple[str, ...] = ()
    """In a replay: name patterns that may be reached, recorded or not. They are not recorded."""
    ignore: tuple[str, ...] = ()
    match: MatchMode = "renamed"
    ignore_text: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    """What the user gave besides the command and the environment, such as a test's parameters: never a mere name."""
    upstream: UpstreamOptions = UpstreamOptions()
    tags: dict[str, str] = field(default_factory=dict)
    keep: bool = True
    """A replay becomes a session of its own (``replay_of``). False: it leaves nothing behind."""
    part_of: str | None = None
    """The session of ``rewind record`` that this process is recorded in, too."""
    offline_error: Callable[[str], str] | None = None
    """The text of the error for a connection that is stopped, from the URL (or ``host:port``) it was for."""
    adopt_threads: bool = False
    """Plain threads whose context names no run belong to this one, as long as it is the only one there."""
    clock: Clock = field(default_factory=SystemClock)


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessResult:
    """How a run went, or how it stands while it goes on. Notes are counted in none of these figures."""

    session_id: str | None
    """Of the session that was written; ``None`` when none was."""
    folder: Path | None = None
    """Where that session is written."""
    played: int = 0
    """Steps of the tape that were played, tool calls among them."""
    tape: tuple[Step, ...] = ()
    """Steps on the tape that the run could have asked for: not those that were made by a tool which was played."""
    unused: tuple[Step, ...] = ()
    """Steps on the tape that were not asked for."""
    renamed: dict[int, tuple[Renamed, ...]] = field(default_factory=dict)
    """By step of the tape, what the run called otherwise than the recording."""
    drifted: int = 0
    live: int = 0
    """Requests that went to their hosts; in a recording all of them. Tools that ran are not counted."""
    misses: tuple[MissNote, ...] = ()
    """Of requests and of tool calls."""
    blocked: tuple[str, ...] = ()
    """URLs of connections that were stopped, in order, each as often as it was tried."""
    remarks: tuple[str, ...] = ()
    broken: str | None = None
    """Why the session that was written is not complete."""
    served: tuple[Step, ...] = ()
    """The recorded steps that answered, once for each time, in order."""
    llm_calls: int = 0
    """Live ones, and where a session is written those that were played, too; as the two below."""
    other_calls: int = 0
    tool_calls: int = 0
    telemetry: int = 0
    """Uploads that are no part of the run, and in none of the other figures."""
    tokens: int | None = None

    @property
    def total(self) -> int:
        """Steps on the tape."""
        return len(self.tape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What one run has to do with the network."""

    rules: ConnectionRules
    recorded: HostRules
    """The hosts whose exchanges are recorded once they are at the gateway."""
    thanked: HostRules
    """Hosts that only their uploads lead to the gateway: of an offline run."""
    hosts: tuple[str, ...]
    """Those that are recorded besides the known ones, for the first line of the journal."""


def reach_of(options: InProcessOptions, environ: Mapping[str, str], recording: Recording | None) -> Reach:
    """For a run that records, or that replays this recording.

    A replay leads to the tape whatever is on it, whether the rules of its machine would record that or not.
    """
    patterns, endpoints = pairs((*options.hosts, *outside_hosts()))
    local = {(place(at.host), at.port) for at in (*endpoints_from_environment(environ), *LOCAL_ENDPOINTS)}
    named, on_tape, all_hosts = (*LLM_HOSTS, *patterns), frozenset[str](), options.all_hosts
    if recording is not None:
        start = recording.session.start
        heads = [step.request.head for step in recording.steps]
        heads = [head for head in heads if head.scheme not in OWN_SCHEMES]
        on_tape = frozenset(head.host for head in heads)
        local |= {(place(head.host), head.port) for head in heads}
        named, all_hosts = (*named, *pairs(start.hosts)[0]), all_hosts or start.all_hosts
    recorded = {host for host, _ in endpoints | local} | on_tape
    if THIS_MACHINE in recorded:
        recorded |= {"127.0.0.1", "::1"}
    offline = recording is not None and options.on_miss == "refuse"
    thanked = upload_hosts() if offline else ()
    return Reach(
        rules=ConnectionRules(
            hosts=HostRules((*named, *thanked), all_hosts),
            endpoints=frozenset(endpoints | local | proxies(environ)),
            offline=offline,
            allowed=HostRules(options.allowed_hosts if recording is not None else ()),
        ),
        recorded=HostRules((*named, *sorted(recorded)), all_hosts),
        thanked=HostRules(thanked),
        hosts=(*patterns, *sorted({host for host, _ in endpoints}), *hosts_from_environment(environ)),
    )
