"""What a scripted model means to do, before it is put into words; and what it sees when it decides.

Truth is kept here: two runs have gone the same way as long as the model meant the same at every call, whatever it
said. So where they part is known without reading a word of what was recorded.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewind.model.message import ToolDefinition
from support.incidents.wording import Statement

Ways = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallIntent:
    """A tool that the model wants called."""

    tool: str
    decisive: Mapping[str, Any]
    prose: Mapping[str, Ways] = field(default_factory=dict)
    """Arguments that are worded: queries, notes, reasons, messages."""

    @property
    def key(self) -> str:
        return f"{self.tool}({json.dumps(dict(self.decisive), sort_keys=True)})"


def call(tool: str, prose: Mapping[str, Sequence[str]] | None = None, **decisive: Any) -> CallIntent:
    worded = {name: tuple(ways) for name, ways in (prose or {}).items()}
    return CallIntent(tool=tool, decisive=decisive, prose=worded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Do:
    """Call tools, with a word beside it or without one."""

    calls: tuple[CallIntent, ...]
    beside: Ways = ()

    @property
    def key(self) -> str:
        return " + ".join(sorted(one.key for one in self.calls))


def do(*calls: CallIntent, beside: Sequence[str] = ()) -> Do:
    return Do(calls=calls, beside=tuple(beside))


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """A last answer. ``means`` is what it comes to; statements are how that is told."""

    means: str
    statements: tuple[Statement, ...]
    opens: Ways = ()
    closes: Ways = ()
    exact: str = ""
    """The text itself where it is not worded: JSON, or code."""

    @property
    def key(self) -> str:
        return f"say {self.means}"


def say(
    means: str, *statements: Statement, opens: Sequence[str] = (), closes: Sequence[str] = (), exact: str = ""
) -> Say:
    return Say(means=means, statements=statements, opens=tuple(opens), closes=tuple(closes), exact=exact)


Intent = Do | Say


# ── what the model sees ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class FromUser:
    text: str


@dataclass(frozen=True, slots=True)
class FromModel:
    """An answer; ``ids`` are those of its calls. ``innocent``: an extra read that means nothing."""

    text: str
    calls: tuple[tuple[str, CallIntent, Mapping[str, Any]], ...]
    """Id, what was meant, and the arguments as they were written."""
    innocent: bool = False


@dataclass(frozen=True, slots=True)
class FromTool:
    id: str
    meant: CallIntent
    text: str
    innocent: bool = False


Entry = FromUser | FromModel | FromTool


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One request, as the model reads it. It knows nothing of the run but this, and how a coin fell."""

    model: str
    snapshot: str
    system: str
    tools: Mapping[str, ToolDefinition]
    parameters: Mapping[str, Any]
    entries: tuple[Entry, ...]
    coins: frozenset[str]

    def did(self, tool: str, **decisive: Any) -> bool:
        """Whether that call is in what it can see of the conversation."""
        return any(self._fits(one.meant, tool, decisive) for one in self._results())

    def times(self, tool: str, **decisive: Any) -> int:
        return sum(self._fits(one.meant, tool, decisive) for one in self._results())

    def result(self, tool: str, **decisive: Any) -> str:
        """The last one; empty where there is none."""
        found = [one.text for one in self._results() if self._fits(one.meant, tool, decisive)]
        return found[-1] if found else ""

    def results(self, tool: str) -> list[tuple[CallIntent, str]]:
        return [(one.meant, one.text) for one in self._results() if one.meant.tool == tool]

    def has(self, tool: str, argument: str = "") -> bool:
        """Whether there is such a tool, with such an argument."""
        if tool not in self.tools:
            return False
        return not argument or argument in self.tools[tool].schema["properties"]

    @property
    def asked(self) -> str:
        """What users said, all of it."""
        return "\n".join(one.text for one in self.entries if isinstance(one, FromUser))

    def heads(self, coin: str) -> bool:
        """Whether this is a run in which the model, asked the same, decides otherwise here."""
        return coin in self.coins

    def _results(self) -> list[FromTool]:
        return [one for one in self.entries if isinstance(one, FromTool) and not one.innocent]

    def _fits(self, meant: CallIntent, tool: str, decisive: Mapping[str, Any]) -> bool:
        return meant.tool == tool and all(meant.decisive.get(name) == value for name, value in decisive.items())


Mind = Callable[[View], Intent]
"""Decides what to do from what it sees."""
