"""What the project promised of its speed, and how that stands. Said, not enforced: a shared machine has bad minutes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.report import BASE, RIVAL, ours
from bench.rounds import Results, medians

Beside = Literal["nobody", "direct", "mitmproxy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A figure of ours and its limit."""

    figure: str
    words: str
    beside: Beside = "nobody"
    """Whose figure ours is divided by."""
    added: bool = False
    """Less the other's figure, in place of divided by it."""
    limit: float
    at_least: bool = False

    def reached(self, mine: str, figures: Mapping[str, float]) -> tuple[bool, float] | None:
        """Whether, and the number that says so; ``None`` when it was not measured."""
        value = figures.get(mine)
        other = 1.0 if self.beside == "nobody" else figures.get(self.beside)
        if value is None or not other:
            return None
        number = value - other if self.added else value / other
        return (number >= self.limit if self.at_least else number <= self.limit), number


def _is(figure: str, words: str, limit: float, *, at_least: bool = False) -> Goal:
    return Goal(figure=figure, words=f"{words}, {_limit(limit, at_least)}", limit=limit, at_least=at_least)


def _times(figure: str, words: str, limit: float, *, at_least: bool = False, beside: Beside = BASE) -> Goal:
    words = f"{words}, times {beside}, {_limit(limit, at_least)}"
    return Goal(figure=figure, words=words, beside=beside, limit=limit, at_least=at_least)


def _adds(figure: str, words: str, limit: float) -> Goal:
    words = f"{words}, ms more than {BASE}, {_limit(limit, at_least=False)}"
    return Goal(figure=figure, words=words, beside=BASE, added=True, limit=limit)


def _limit(limit: float, at_least: bool) -> str:
    return f"at {'least' if at_least else 'most'} {limit:g}"


GOALS = (
    _times("help", "--help", 4),
    _is("record_true", "record `true`, ms", 160),
    _times("record_true", "record `true`", 0.25, beside=RIVAL),
    _times("record_one_call", "record a client of one call", 2.5),
    _times("replay_one_call", "replay it", 2.5),
    _times("replay_rate", "replay with 16 connections", 10, at_least=True, beside=RIVAL),
    _times("replay_rate", "replay with 16 connections", 0.65, at_least=True),
    _times("replay_rate_64", "replay with 64 connections", 0.65, at_least=True),
    _times("replay_call", "replay a call", 1.4),
    _is("record_rate", "record with 16 connections, calls/s", 1000, at_least=True),
    _is("record_cpu", "CPU per 1,000 recorded calls until the recorder ends, s", 1.0),
    _adds("record_call", "record 4 KB", 0.8),
    _adds("record_64k", "record 64 KB", 1.2),
    _adds("record_1m", "record 1 MB that begins as before", 6),
    _adds("record_1m_fresh", "record 1 MB that is all new", 12),
    _adds("record_thinking", "record with a provider that thinks", 1.5),
    _adds("record_turns", "record 200 growing turns, mean", 5),
    _adds("first_event", "first of 40 events", 1.5),
    _adds("event_transit", "40 events, each on its way", 1.5),
    _adds("first_slow_event", "first event of a stream with 50 ms gaps", 5),
    _is("stored_turn", "200-turn conversation, bytes per step", 4096),
)


CATALOG_GOALS = (
    Goal(figure="catch_up", words="catch-up of 1,000 new sessions, s on a quiet machine, at most 2", limit=2.0),
    Goal(figure="stats", words="rewind stats over 1,000,000 steps, s, at most 1", limit=1.0),
    Goal(figure="list", words="rewind list with 10,000 sessions, s, at most 0.4", limit=0.4),
)
"""Of ``python -m bench.catalog``."""


def standing(results: Results, names: Sequence[str]) -> list[str]:
    """One line for each goal and each way Rewind was run."""
    middle = medians(results)
    lines = []
    for goal in GOALS:
        for name in ours(names):
            reached = goal.reached(name, middle.get(goal.figure, {}))
            if reached is not None:
                met, number = reached
                verdict = "reached" if met else "NOT reached"
                lines.append(f"{verdict:12}{goal.words}: {number:,.2f} ({name})")
    return lines


def catalog_standing(figures: Mapping[str, float]) -> list[str]:
    """One line for each goal of the catalog."""
    lines = []
    for goal in CATALOG_GOALS:
        reached = goal.reached(goal.figure, figures)
        if reached is not None:
            met, number = reached
            lines.append(f"{'reached' if met else 'NOT reached':12}{goal.words}: {number:,.2f}")
    return lines
