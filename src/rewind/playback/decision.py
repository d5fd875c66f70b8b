"""The three things that can happen to a call, and who decides."""

from dataclasses import dataclass
from typing import Protocol

from rewind.match.call import Call
from rewind.model.http import HttpRequest, RequestHead
from rewind.model.step import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """The tape answers."""

    step: Step
    drifted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """Upstream answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Nobody answers; the agent is told why, with a status that SDKs do not retry."""

    reason: str
    report: str = ""
    """The long form for the person at the terminal."""


Decision = Serve | Forward | Refuse


class Policy(Protocol):
    """Record, replay and hybrid are the same road with another policy."""

    def early(self, head: RequestHead) -> Forward | None:
        """``Forward`` when the answer does not depend on the body, so that uploads can stream."""
        ...

    def at_a_glance(self, request: HttpRequest) -> Serve | None:
        """The answer to a request that was recorded byte for byte, without understanding it."""
        ...

    def decide(self, call: Call) -> Decision:
        """Called once per call, in order of arrival."""
        ...
