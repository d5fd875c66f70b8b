"""What happened at a junction, counted."""

from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING

from rewind.dataclass import dataclass
from rewind.model.names import Renamed
from rewind.model.step import Reading, Step
from rewind.providers.entry_points import problems

if TYPE_CHECKING:  # no recording needs it before its agent starts
    from rewind.match.miss import Miss


@dataclass(frozen=True, slots=True, kw_only=True)
class MissNote:
    """A request that replay could not answer."""

    reason: str
    """One sentence."""
    miss: "Miss | None" = None
    """What the recording has instead, where the request was looked for in one."""
    detail: str = ""
    """More than the reason, where nothing was looked for."""

    @property
    def report(self) -> str:
        """Many lines, for the person at the terminal; may be empty."""
        return self.detail if self.miss is None else self.miss.report


@dataclass(slots=True)
class Tally:
    """What happened at a junction, counted on the gateway's thread; tokens on the writer thread."""

    llm_calls: int = 0
    other_calls: int = 0
    telemetry: int = 0
    """Uploads that are no part of the run."""
    tokens: int = 0
    tokens_known: bool = False
    served: list[Step] = field(default_factory=list)
    """The recorded steps that answered."""
    renamed: dict[int, tuple[Renamed, ...]] = field(default_factory=dict)
    """By step, what the request called otherwise than the recorded one."""
    drifted: int = 0
    live: int = 0
    """Requests that went to their hosts although there is a tape."""
    tools_run: int = 0
    """Tool calls that no tape answered: the agent's own code did."""
    misses: list[MissNote] = field(default_factory=list)
    stopped: str | None = None
    """Why nothing more was answered, from some call on."""
    _remarks: Counter[tuple[str, str]] = field(default_factory=Counter)

    def remark(self, subject: str, text: str) -> None:
        self._remarks[subject, text] += 1

    def read(self, reading: Reading) -> None:
        for tokens in (reading.usage.input, reading.usage.output):
            if tokens is not None:
                self.tokens += tokens
                self.tokens_known = True

    @property
    def remarks(self) -> tuple[str, ...]:
        counted = [
            f"{subject}: {text}" + (f" ({count} times)" if count > 1 else "")
            for (subject, text), count in list(self._remarks.items())  # other threads remark, too
        ]
        return (*counted, *problems())
