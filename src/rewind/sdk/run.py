"""One session in this process: what ``with rewind.session(…) as run`` gives, and what a decorated call runs in."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rewind.inprocess.run import InProcessResult, InProcessRun
    from rewind.model.step import Step
    from rewind.runs.tally import MissNote
    from rewind.sdk.modes import Mode


class Run:
    """One session, from its beginning to its end."""

    def __init__(self, name: str | None, mode: "Mode") -> None:
        self.name = name
        self.mode = mode
        self.result: InProcessResult | None = None
        """How it went; there once the session has ended, and ``None`` where nothing was recorded or replayed."""
        self.unrecorded: str | None = None
        """Why nothing is kept of this run, where something should be: the program runs all the same."""
        self._engine: InProcessRun | None = None
        self._answering: str | None = None

    @property
    def id(self) -> str | None:
        """Of the session that this run writes, or in a replay of the one that answers."""
        written = None if self._engine is None else self._engine.session_id
        return written or self._answering

    @property
    def steps(self) -> "tuple[Step, ...]":
        """What was asked and answered so far, in the order in which it was asked."""
        return () if self._engine is None else self._engine.steps_so_far()

    @property
    def misses(self) -> "tuple[MissNote, ...]":
        """What the recording could not answer; there once the session has ended."""
        return () if self.result is None else self.result.misses

    def __repr__(self) -> str:
        return f"<rewind session {self.name or ''} {self.id or '-'} ({self.mode})>"
