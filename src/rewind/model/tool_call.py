"""A call of the agent's own code under ``@rewind.tool``: how a recording answers it, or is told its answer."""

from typing import Protocol

from rewind.dataclass import dataclass

TOOLS_HOST = "tools.rewind.invalid"
"""What a child process asks of the gateway itself: ``runs/child_tools.py`` answers, ``sdk/outer_run.py`` asks."""
STEP_HEADER, MS_HEADER, DELAY_HEADER = "x-rewind-step", "x-rewind-ms", "x-rewind-delay"
"""Of an answer from a recording: see ``PlayedTool``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedTool:
    """The recording answers: the tool is not run."""

    status: int
    """200, or 500 where the tool had failed."""
    body: bytes
    step: int
    """The recorded step."""
    ms: float
    """How long it had taken."""
    delay: float = 0.0
    """Seconds that the replay lets it take: waited for where it was called, so that an event loop goes on meanwhile."""


class RunningTool(Protocol):
    """The tool is to be run now; its answer is told once, from any thread."""

    def ended(self, status: int, body: bytes) -> None:
        """Its answer, kept when this returns. Whatever goes wrong with keeping it is not the tool's affair."""
        ...

    def abandoned(self, reason: str) -> None:
        """It never answered."""
        ...
