"""What a trace tells of, in nouns: calls of models, runs of tools and notes."""

from dataclasses import dataclass, field
from typing import Any

from rewind.formats.trace.apis.base import Api, Form, Result, Said, Turn, Use
from rewind.formats.trace.lines import Entry


@dataclass(frozen=True, slots=True, eq=False)
class Turns:
    """The first turns of a conversation that may have gone on since: a call holds their number, not a copy."""

    all: list[Turn]
    """Grows at its end; what a call was given never changes."""
    count: int

    def __len__(self) -> int:
        return self.count

    def since(self, start: int) -> list[Turn]:
        return self.all[start : self.count]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a model."""

    entry: Entry
    api: Api
    form: Form
    turns: Turns
    """What it was given."""
    model: str
    said: Said | None
    """``None`` where no answer is told."""
    error: str
    usage: dict[str, Any] = field(default_factory=dict)
    """Tokens that are told beside the answer."""


@dataclass(slots=True, kw_only=True)
class ToolRun:
    """A tool's run: the line that calls it, the line that brings its result, or both."""

    use: Use
    called: Entry | None
    came: Entry | None = None
    result: Result | None = None

    @property
    def entry(self) -> Entry:
        found = self.called or self.came
        assert found is not None, "a run is told by a line"
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Any other line."""

    entry: Entry


Event = Call | ToolRun | Note
