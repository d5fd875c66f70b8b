"""What to replay and how, and how it went. Read before the agent starts, so it loads next to nothing."""

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rewind.dataclass import dataclass
from rewind.gateway.options import UpstreamOptions
from rewind.model.clock import Clock, SystemClock
from rewind.model.names import MatchMode, Renamed
from rewind.model.session import Session
from rewind.model.step import Step, StepKind
from rewind.pricing.spending import Pricing, Spending, cost_of, spending
from rewind.runs.tally import MissNote

if TYPE_CHECKING:
    from rewind.match.call import Call


class StepCommand(Enum):
    """What to do about a request that waits."""

    NEXT = "next"
    """Answer it, and stop before the next one."""
    RUN_ON = "run on"
    """Answer it, and do not stop again."""
    QUIT = "quit"
    """End the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A request that waits for somebody to say how to go on."""

    step: Step
    """The recorded step that will answer it."""
    call: "Call"
    """What the agent sends, redacted."""
    drifted: bool
    """Whether it differs from what was recorded, and is taken for it all the same."""
    agent_ended: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class StepThrough:
    """Stop before this step and, for as long as ``ask`` says so, before each that follows."""

    step: int
    ask: Callable[[Stop], StepCommand]
    """Called on the thread that replays. Ctrl-C interrupts it, and then the agent is ended."""


@dataclass(frozen=True, slots=True)
class Until:
    """Play the steps up to this one; when the agent asks for more, end it."""

    step: int


Stepping = StepThrough | Until


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Where the agent was ended."""

    step: int
    before: bool
    """Before that step was answered; else after."""
    interrupted: bool = False
    """By Ctrl-C."""


Sameness = Literal["identical", "renamed", "beginning", "different", "not compared"]
"""Of what was printed, with what was printed then. ``renamed``: identical but for names. A run that was stopped can
only print its beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """What to replay, and how."""

    session: Session
    home: Path
    command: tuple[str, ...] | None = None
    """In place of the recorded one."""
    latency: float = 0.0
    """0 answers at once, 1 as slowly as recorded."""
    allow_drift: bool = False
    on_miss: Literal["refuse", "live"] = "refuse"
    tools: Literal["replay", "live"] = "replay"
    """``live``: the agent's own tools (``@rewind.tool``) run."""
    live_hosts: tuple[str, ...] = ()
    port: int = 0
    upstream: UpstreamOptions = UpstreamOptions()
    ignore: tuple[str, ...] = ()
    match: MatchMode = "renamed"
    ignore_text: tuple[str, ...] = ()
    ignore_output: tuple[str, ...] = ()
    """Patterns; what they find in the agent's output does not count."""
    redact: tuple[str, ...] = ()
    """Patterns that the session was exported with: what they match is taken out of requests, too."""
    stepping: Stepping | None = None
    """Where to stop on the way."""
    announce: Callable[[str], None] = lambda _sentence: None
    """Told what a person should know when the agent starts."""
    clock: Clock = field(default_factory=SystemClock)

    @property
    def goes_online(self) -> bool:
        """Whether anybody but the tape may be asked."""
        return self.on_miss == "live" or bool(self.live_hosts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """How a replay went."""

    session_id: str
    played: int
    total: int
    drifted: int
    renamed: Mapping[int, tuple[Renamed, ...]] = field(default_factory=dict)
    """By step, what the agent called otherwise than when it was recorded."""
    live: int
    misses: tuple[MissNote, ...]
    network_calls: int
    output: Sameness
    output_renamed: tuple[Renamed, ...] = ()
    """What the output calls otherwise, where it is the same but for names."""
    output_difference: str
    exit_code: int
    recorded_exit_code: int | None
    remarks: tuple[str, ...]
    telemetry: int = 0
    """Uploads that were answered beside the steps: nothing comes of them."""
    kept_as: str | None = None
    """With ``--on-miss live``: the session that holds this run, the live answers included."""
    served: tuple[Step, ...] = ()
    """The recorded steps that answered, once for each time."""
    stopped: Stopped | None = None
    """Where we ended the agent; its exit code says nothing then."""
    unasked: int | None = None
    """The step to stop at, where the run never came to it."""
    tools_run: int = 0
    """Calls of the agent's own tools that were not answered by the recording, but run."""

    @property
    def exact(self) -> int:
        """Steps that were asked for as they were recorded."""
        return self.played - len(self.renamed) - self.drifted

    @property
    def other_exit_code(self) -> bool:
        """Whether the agent ended with another exit code than when it was recorded."""
        return self.stopped is None and self.recorded_exit_code not in (None, self.exit_code)

    @property
    def nothing_played(self) -> bool:
        """Whether nothing was compared with the recording: such a replay tested nothing, whatever was printed."""
        return self.played == 0 and self.stopped is None

    def saved(self, pricing: Pricing) -> Spending:
        """What the recorded answers cost when they were recorded."""
        calls = (step for step in self.served if step.request.kind is StepKind.LLM_CALL)
        return spending(
            (step, step.response.reading, cost_of(pricing, step)) for step in calls if step.response is not None
        )
