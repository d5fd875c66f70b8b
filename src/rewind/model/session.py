"""A session: one run of an agent."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Protocol

from rewind.dataclass import dataclass
from rewind.errors import SessionNotFound
from rewind.model.ids import BlobId, MatchKey, SessionId
from rewind.model.step import Step

TRACE_SCHEME = "trace"
"""The URL scheme of calls that were put together from a trace: they never were on a wire."""
TRACE_SOURCE = "rewind trace"
"""The tag ``source`` of a session that was read from a trace."""

_STEP = re.compile(r"(.+):(\d{1,9})", re.ASCII | re.DOTALL)
_TOOL = re.compile(r"(.+):(\d{1,9})\.(\d{1,9})", re.ASCII | re.DOTALL)


UNDATED = 946_684_800.0
"""Where an imported session stands that does not say when it was: the first day of 2000, before anything real."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Looked up while the agent runs; ``None`` where it is not known. Already redacted."""

    commit: str | None = None
    """The full hash of the commit that was checked out."""
    branch: str | None = None
    """``None`` also where a commit is checked out without a branch."""
    dirty: bool | None = None
    """Whether files that git keeps differ from the commit. Files it does not keep do not count: agents leave logs."""
    changes: str | None = None
    """A digest of what those files hold, so that two runs on uncommitted changes can be told apart; ``sc1:`` names
    the rule. ``None`` where nothing is changed, or too much to be read."""
    locks: Mapping[str, str] = field(default_factory=dict)
    """The lock files beside the agent: name, and the first 16 digits of the SHA-256."""

    @property
    def is_known(self) -> bool:
        """Whether there is anything to say."""
        return self != Surroundings()


class Status(StrEnum):
    """How a session stands."""

    RUNNING = "running"
    ENDED = "ended"
    INTERRUPTED = "interrupted"
    """No ``end`` line and no writer alive."""
    BROKEN = "broken"
    """The store could not be written (disk full, read-only): steps are missing, and we know it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """Edits of an earlier fork that still hold, and the request from which on they do."""

    key: MatchKey
    """Of that request as the agent sends it."""
    edits: tuple[str, ...]
    by_hand: bool = False
    """Whether that one request was changed in an editor, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Where a fork comes from: the steps before ``step`` are those of ``session``, what follows went live."""

    session: SessionId
    step: int
    key: MatchKey
    """Of the request at that step as the agent sends it, before any edit."""
    edits: tuple[str, ...] = ()
    """As they were written."""
    by_hand: bool = False
    """Whether the request of that one step was changed in an editor, too."""
    earlier: tuple[Edited, ...] = ()
    """What the forks before this one had changed, where it holds on."""
    sample: int | None = None
    """Which run it is, where the same fork was run several times; counts from 1."""
    probe: bool = False
    """Whether Rewind asked that one step for an answer of its own, and ended the agent there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStart:
    """What is known when a session begins; the first line of its journal. Already redacted."""

    id: SessionId
    name: str | None
    command: tuple[str, ...]
    cwd: str
    started: float
    rewind_version: str
    tags: dict[str, str] = field(default_factory=dict)
    key_variables: tuple[str, ...] = ()
    """Names, never values, of the credential variables the agent had; replay gives them dummies."""
    base_urls: dict[str, str] = field(default_factory=dict)
    """``*_BASE_URL`` and the like, so that a replay asks the same hosts."""
    hosts: tuple[str, ...] = ()
    """Host patterns that were recorded besides the known ones."""
    all_hosts: bool = False
    ignore: tuple[str, ...] = ()
    """What the user told matching to ignore; with other rules the match keys are made anew."""
    facts: dict[str, str] = field(default_factory=dict)
    """What the run knew of itself besides its folder (``home``, ``temp``, ``user``, ``host``, …), so that a run
    elsewhere can tell a name from a difference. See :mod:`rewind.match.facts`."""
    stdin_kind: str = "none"
    """``none``, ``file``, ``pipe`` or ``tty``."""
    replay_of: SessionId | None = None
    forked_from: Lineage | None = None
    part_of: SessionId | None = None
    """The session of ``rewind record`` around the program that recorded this one: it holds the same requests."""
    imported: bool = False
    """Whether it came in a file: its command may be anybody's, so it is shown and never run."""

    @property
    def dated(self) -> bool:
        """Whether it is known when it began; a file of another tool may not say it."""
        return not (self.imported and self.started == UNDATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd:
    """What is known when it ends; the last line of its journal."""

    ended: float
    exit_code: int
    """As the shell would see it: 128 + n for a signal."""
    stdin: BlobId | None
    stdout: BlobId | None
    stderr: BlobId | None
    redactions: int
    """How many secrets were removed before anything was written."""
    remarks: tuple[str, ...] = ()
    """What a reader should know: clients that went around, steps not kept, and why."""
    broken: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session as read back."""

    start: SessionStart
    end: SessionEnd | None
    status: Status
    folder: str
    """The name of its folder in the store."""
    file: str | None = None
    """The cassette or trace it was read from, where it is not in the store."""
    pinned: bool = False
    """Whether somebody said that it is to stay: only ``rewind rm`` deletes it."""

    @property
    def id(self) -> SessionId:
        return self.start.id

    @property
    def address(self) -> str:
        """What finds it again: its file, or its id."""
        return self.id if self.file is None else self.file

    @property
    def ref(self) -> str:
        """The same, as it is typed in a shell."""
        return shlex.quote(self.address)

    @property
    def is_foreign(self) -> bool:
        """Whether it came from elsewhere: what it says of commands and surroundings may be anybody's."""
        return self.file is not None or self.start.imported

    @property
    def is_from_trace(self) -> bool:
        """True if it was read from a trace, or imported from one."""
        return self.start.imported and self.start.tags.get("source") == TRACE_SOURCE

    @property
    def is_probe(self) -> bool:
        origin = self.start.forked_from
        return origin is not None and origin.probe


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A session and its steps, in order of arrival."""

    session: Session
    steps: tuple[Step, ...]
    damage: tuple[str, ...] = ()
    """What could not be read, named; empty when all is well."""
    surroundings: Surroundings | None = None
    """``None`` when the journal has none: a run that was over at once, or a folder with nothing to tell."""

    @property
    def is_from_trace(self) -> bool:
        """True if its steps were put together from a trace: there are no bytes that a replay could serve.

        A cassette made of such a session keeps only the scheme.
        """
        return self.session.is_from_trace or any(step.request.head.scheme == TRACE_SCHEME for step in self.steps)


class StepMeanings(Protocol):
    """What the steps of a file mean, made anew from its bodies."""

    def steps(self, upto: int | None = None) -> tuple[Step, ...]:
        """All steps; those behind ``upto`` may be without their meaning."""
        ...

    def bare_steps(self) -> tuple[Step, ...]:
        """All steps, without their meaning; the match keys are what the file states."""
        ...

    def with_reading(self, step: Step) -> Step:
        """A bare step, with what its answer says in short."""
        ...

    def remarks(self) -> tuple[str, ...]:
        """What the file states otherwise."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFile:
    """A session outside the store, read whole from one file: its recording, and its bytes by name."""

    recording: Recording
    blobs: Mapping[BlobId, bytes]
    meanings: StepMeanings | None = None
    """Where ``recording`` is what a stranger's file states: its steps as their bodies tell them."""
    remarks: tuple[str, ...] = ()
    """What the file states of its bodies, and they are not."""

    @property
    def session(self) -> Session:
        return self.recording.session


def split_step(ref: str) -> tuple[str, int | None]:
    """``7f3a:4`` is step 4 of session ``7f3a``."""
    found = _STEP.fullmatch(ref)
    return (found[1], int(found[2])) if found else (ref, None)


def split_tool(ref: str) -> tuple[str, tuple[int, int] | None]:
    """``7f3a:4.1`` is the first tool call that step 4 of session ``7f3a`` asks for."""
    found = _TOOL.fullmatch(ref)
    return (found[1], (int(found[2]), int(found[3]))) if found else (ref, None)


def step_in(recording: Recording, index: int) -> Step:
    """The step of that number. Raises SessionNotFound with the nearest."""
    found = next((step for step in recording.steps if step.index == index), None)
    if found is not None:
        return found
    known = [step.index for step in recording.steps]
    session, ref = recording.session.id, recording.session.ref
    if not known:
        raise SessionNotFound(f"Session {session} has no steps.", hint=f"rewind inspect {ref}")
    nearest = min(known, key=lambda candidate: abs(candidate - index))
    raise SessionNotFound(
        f"Session {session} has no step {index}; it has {len(known)}, from {known[0]} to {known[-1]}.",
        hint=f"rewind inspect {ref}:{nearest}",
    )
