"""What the project promised of its speed, and how that stands. Said, not enforced: a shared machine has bad minutes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.report import BASE, RIVAL, ours
from bench.rounds import Results, medians


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A figure of ours and its limit."""

    figure: str
    words: str
    beside: Literal["nobody", "direct", "mitmproxy"] = "nobody"
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


GOALS = (
    Goal(figure="help", words="--help, times python -c pass, at most 4", beside=BASE, limit=4),
    Goal(figure="record_true", words="record `true`, ms on a quiet machine, at most 300", limit=300),
    Goal(figure="record_true", words="record `true`, times mitmproxy, at most 0.25", beside=RIVAL, limit=0.25),
    Goal(
        figure="replay_rate",
        words="replay with 16 connections, times mitmproxy, at least 10",
        beside=RIVAL,
        limit=10,
        at_least=True,
    ),
    Goal(
        figure="first_slow_event",
        words="first event of a stream with 50 ms gaps, ms more than direct, at most 5",
        beside=BASE,
        added=True,
        limit=5,
    ),
    Goal(figure="stored_turn", words="200-turn conversation, bytes per step, at most 4096", limit=4096),
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
