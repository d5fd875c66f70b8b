"""What bisect says of an incident against what is true, and the table of it."""

import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rewind.cli.screens.bisect import print_pair
from rewind.cli.screens.terminal import Terminal
from rewind.compare.divergence import Finding, bisect
from rewind.reading.bisect import CodeComparison, PairBisection
from rewind.reading.compare import ComparedSession
from support.incidents.case import RunPair, Truth
from support.incidents.stage import LEVELS
from support.planted_recording import Played

_GONE, _COME = re.compile(r"\[-(.*?)-\]"), re.compile(r"\{\+(.*?)\+\}")
_COLUMNS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentVerdict:
    """What was found, and whether it is right."""

    name: str
    agent: str
    level: int
    truth: Truth | None
    step: tuple[int | None, int | None]
    diverges: bool
    causes: tuple[str, ...]
    """Names of the kinds, the first cause first."""
    missing: tuple[str, ...]
    """Decisive words that are not on the screen."""

    @property
    def step_is_right(self) -> bool:
        """Counted by either run."""
        good, bad = self.step
        return (
            self.diverges and self.truth is not None and (good in self.truth.good_steps or bad in self.truth.bad_steps)
        )

    @property
    def cause_is_right(self) -> bool:
        return self.truth is not None and bool(self.causes) and self.causes[0] in self.truth.causes

    @property
    def is_good(self) -> bool:
        """Step, first cause and decisive words; of mere noise, that there is nothing."""
        if self.truth is None:
            return not self.diverges
        return self.step_is_right and self.cause_is_right and not self.missing

    def __str__(self) -> str:
        found = f"found {self.step} {', '.join(self.causes) or 'no cause'}" if self.diverges else "found no divergence"
        if self.truth is None:
            return f"{self.name}: the same behaviour; {found}"
        good, bad = (sorted(steps) or "—" for steps in (self.truth.good_steps, self.truth.bad_steps))
        wanted = "/".join(sorted(self.truth.causes))
        missing = f"; not on the screen: {', '.join(self.missing)}" if self.missing else ""
        meant = " → ".join(one if len(one) < 70 else one[:69] + "…" for one in self.truth.meant)
        signs = "".join(
            letter if right else "·"
            for letter, right in zip("SCW", (self.step_is_right, self.cause_is_right, not self.missing), strict=True)
        )
        return f"{signs} {self.name}: parts at {good}/{bad} by {wanted} ({meant}); {found}{missing}"


def found_in(pair: RunPair) -> Finding:
    return bisect(pair.good.run, pair.bad.run)


def verdict_of(pair: RunPair) -> IncidentVerdict:
    """Bisect, and the look at its screen."""
    finding = found_in(pair)
    shown = _readings(screen_of(pair, finding)) if pair.truth is not None else ()
    return IncidentVerdict(
        name=pair.name,
        agent=pair.agent,
        level=pair.level,
        truth=pair.truth,
        step=finding.step,
        diverges=finding.diverges,
        causes=tuple(cause.kind.name for cause in finding.causes),
        missing=() if pair.truth is None else tuple(_missing(pair.truth, shown)),
    )


def screen_of(pair: RunPair, finding: Finding | None = None) -> str:
    """What ``rewind bisect`` prints."""
    stream = io.StringIO()
    found = PairBisection(
        good=_session(pair.good),
        bad=_session(pair.bad),
        finding=finding or found_in(pair),
        since={},
        code=CodeComparison(
            good=None, bad=None, same=None, good_versions={}, bad_versions={}, changed_versions=(), changed_locks=()
        ),
    )
    print_pair(Terminal(stream, width=_COLUMNS), found)
    return stream.getvalue()


def _session(played: Played) -> ComparedSession:
    return ComparedSession(session=played.recording.session, run=played.run, damaged=set())


def _missing(truth: Truth, shown: Sequence[str]) -> Iterable[str]:
    for words in truth.words:
        ways = (words,) if isinstance(words, str) else words
        if not any(_plain(way) in reading for way in ways for reading in shown):
            yield " | ".join(ways)


def _readings(screen: str) -> tuple[str, ...]:
    """The screen as it is, and as a reader takes ``99.[-5-]{+9+}%``: as it was, and as it is now."""
    text = _plain(screen)
    return (
        _COME.sub(r"\1", _GONE.sub(r"\1", text)),
        _plain(_COME.sub("", _GONE.sub(r"\1", text))),
        _plain(_GONE.sub("", _COME.sub(r"\1", text))),
    )


def _plain(text: str) -> str:
    """Wrapped lines joined."""
    return " ".join(text.split()).casefold()


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────


def share(right: int, of: int) -> str:
    return f"{right} of {of} ({right / of:.0%})" if of else "—"


def good_share(verdicts: Sequence[IncidentVerdict]) -> float:
    return sum(verdict.is_good for verdict in verdicts) / len(verdicts)


def score_table(verdicts: Sequence[IncidentVerdict], agents: Sequence[str], title: str) -> str:
    """Good verdicts by agent and level, right steps, and what is said of pairs that only word things otherwise."""
    incidents = [verdict for verdict in verdicts if verdict.truth is not None and verdict.agent in agents]
    noise = [verdict for verdict in verdicts if verdict.truth is None and verdict.agent in agents]
    levels = [level for level in LEVELS if any(one.level == level for one in (*incidents, *noise))]
    rows = [[title, *(f"noise {level}" for level in levels)]]
    rows += [
        [agent, *(_good([one for one in incidents if one.agent == agent], level) for level in levels)]
        for agent in agents
    ]
    rows.append(["good verdicts", *(_good(incidents, level, percent=True) for level in levels)])
    steps = [one for one in incidents if one.step_is_right]
    causes = [one for one in incidents if one.cause_is_right]
    for name, right in (("  right step", steps), ("  right first cause", causes)):
        cells = [f"{_count(right, level)} of {_count(incidents, level)}" for level in levels]
        rows.append([name, *cells])
    rows.append(["noise only, same", *(_calm(noise, level) for level in levels)])
    rows.append(["  reworded / false cause", *(_alarms(noise, level) for level in levels)])
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _count(verdicts: Sequence[IncidentVerdict], level: int) -> int:
    return sum(one.level == level for one in verdicts)


def _good(verdicts: Sequence[IncidentVerdict], level: int, *, percent: bool = False) -> str:
    ours = [one for one in verdicts if one.level == level]
    right = sum(one.is_good for one in ours)
    return share(right, len(ours)) if percent else f"{right} of {len(ours)}"


def _calm(noise: Sequence[IncidentVerdict], level: int) -> str:
    ours = [one for one in noise if one.level == level]
    return share(sum(not one.diverges for one in ours), len(ours))


def _alarms(noise: Sequence[IncidentVerdict], level: int) -> str:
    kinds = Counter(
        "reworded" if one.causes[:1] == ("SAMPLING",) else "false"
        for one in noise
        if one.level == level and one.diverges
    )
    return f"{kinds['reworded']} / {kinds['false']}"
