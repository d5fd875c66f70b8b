"""What can happen to a call, and who decides."""

from collections.abc import Callable
from typing import Any, Protocol

from rewind.dataclass import dataclass
from rewind.match.call import Call
from rewind.match.miss import Miss
from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.names import Renamed
from rewind.model.step import Step

Change = Callable[[HttpRequest], HttpRequest]
"""Gives what goes out in place of a request; the same object where nothing is to be changed. It is given the request
as it really came, with its keys, and may raise ``RewindError``: then nothing goes out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """The tape answers."""

    step: Step
    drifted: bool = False
    renamed: tuple[Renamed, ...] = ()
    """What the request calls otherwise than the recorded one."""
    in_our_names: Callable[[HttpResponse], HttpResponse] | None = None
    """Puts the recorded answer into the names of this run; ``None`` where the request was exact."""
    seen: Callable[[HttpRequest], None] | None = None
    """To be told the request as it really came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """Upstream answers."""

    change: Change | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """An answer that somebody wrote is put in; nobody is asked."""

    answer: Callable[[HttpRequest], HttpResponse]
    """As a ``Change``: it is given the request as it came, and may raise ``RewindError``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Nobody answers; the agent is told why, with a status that SDKs do not retry."""

    reason: str
    miss: Miss | None = None
    """What the recording has instead, where the call was looked for in one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRun:
    """Nobody answers, and that is not a miss: the run is to go no further."""

    reason: str


Decision = Serve | Forward | Put | Refuse | StopRun


class Policy(Protocol):
    """Record, replay and fork are the same path with another policy."""

    def early(self, head: RequestHead) -> Forward | None:
        """``Forward`` when the answer does not depend on the body, so that uploads can stream."""
        return None

    def at_a_glance(self, request: HttpRequest) -> Serve | None:
        """The answer to a request that was recorded byte for byte, without understanding it."""
        return None

    def frame_names(self, recorded: Any, sent: Any) -> tuple[Renamed, ...] | None:
        """The names in which a WebSocket message differs from the recorded one; ``None`` where it differs in more."""
        return None

    def decide(self, call: Call) -> Decision:
        """Called once per call, in order of arrival."""
        ...
