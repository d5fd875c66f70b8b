"""Whether good and bad runs differ in something by more than chance.

One thing that some runs have is a 2 × 2 table: so many of the good runs have it, so many of the bad ones. Fisher's
exact test says how often chance alone, dealing out the labels, would make a table that is as uneven. Of many things
one always looks uneven, so what counts is the most uneven of all (Westfall and Young): labels are dealt out anew, all
ways where there are few and at random with a fixed seed where there are many, and the *adjusted* p of a thing is the
share of deals in which anything at all looks as uneven as it does. Things that go together are thereby counted once,
and no assumption is made about how they depend on each other.

A weight makes a kind of evidence cheaper or dearer before anything is looked at: a p of 0.01 with weight 0.5 counts as
0.02. With any weights that do not depend on the labels, at most ``SIGNIFICANT`` of all comparisons of runs that differ
by chance alone name anything.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb
from random import Random

from rewind.dataclass import dataclass

SIGNIFICANT = 0.05
"""The share of comparisons by chance alone in which something is named all the same."""
_DEALS = 5_000
"""Labels are dealt out all ways up to so many, and else so often at random."""
_MOST_LOOKS = 4_000_000
"""Deals × patterns: of very many patterns, fewer deals are looked at."""
_FEWEST_DEALS = 1_000
_ROUNDING = 1 + 1e-9
"""Tables that are equally uneven come out with a p that may differ in the last digit."""
_MOST_RUNS = 200
"""Beyond so many runs, no number is told."""


def hypergeometric(hits: int, drawn: int, marked: int, total: int) -> float:
    """How likely it is that so many of those drawn are marked."""
    return comb(marked, hits) * comb(total - marked, drawn - hits) / comb(total, drawn)


def fisher_exact(good_with: int, good: int, bad_with: int, bad: int) -> float:
    """How likely chance alone makes two rates as uneven as ``good_with`` of ``good`` and ``bad_with`` of ``bad``, in
    either direction: the tables with these sums that are no likelier, added up."""
    return _tails(good_with + bad_with, bad, good + bad)[bad_with]


@lru_cache(4096)
def _tails(marked: int, drawn: int, total: int) -> tuple[float, ...]:
    """The two-sided p for each number of hits; 1 for those that cannot be."""
    chances = [hypergeometric(hits, drawn, marked, total) for hits in range(min(drawn, marked) + 1)]
    return tuple(
        min(1.0, sum(one for one in chances if one <= chance * _ROUNDING)) if chance else 1.0 for chance in chances
    )


def smallest_p(good: int, bad: int) -> float:
    """The p of something that all bad runs have and no good one."""
    return fisher_exact(0, good, bad, bad)


# ── many things at once ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Pattern:
    """Which runs have something: a bit for each run, in the order of the runs."""

    bits: int
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitEvidence:
    """How unevenly the runs have one thing."""

    good_with: int
    good_without: int
    bad_with: int
    bad_without: int
    p: float
    """Fisher's, two-sided, of this thing alone."""
    adjusted: float
    """The share of deals in which anything looks as uneven."""

    @property
    def is_significant(self) -> bool:
        return self.adjusted <= SIGNIFICANT


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyTest:
    """What was tested together."""

    evidence: tuple[SplitEvidence, ...]
    """One for each pattern."""
    patterns: int
    """How many different ones there were."""
    deals: int
    """How often labels were dealt out."""
    is_exact: bool
    """Whether these were all ways to deal them out."""
    perfect: float
    """The adjusted p that something of full weight would have that all bad runs have and no good one."""


def family_test(patterns: Sequence[Pattern], good: int, bad: int) -> FamilyTest:
    """Each pattern, and all of them together. The good runs come first."""
    runs = good + bad
    full = (1 << runs) - 1
    bad_bits = full ^ ((1 << good) - 1)
    # A pattern and its opposite say the same.
    distinct = {(min(one.bits, full ^ one.bits), one.weight) for one in patterns}
    tables = [
        (bits, tuple(p / weight for p in _tails(bits.bit_count(), bad, runs)))
        for bits, weight in sorted(distinct)
        if bits and min(_tails(bits.bit_count(), bad, runs)) <= SIGNIFICANT  # else it never could be named
    ]
    count = comb(runs, bad)
    deals = _DEALS if len(tables) * _DEALS <= _MOST_LOOKS else max(_FEWEST_DEALS, _MOST_LOOKS // len(tables))
    is_exact = count <= deals
    lowest = sorted(
        min((table[(bits & labels).bit_count()] for bits, table in tables), default=1.0)
        for labels in (_all_deals(runs, bad) if is_exact else _some_deals(runs, bad, deals - 1, bad_bits))
    )

    def adjusted(p: float) -> float:
        return bisect_right(lowest, p * _ROUNDING) / len(lowest)

    evidence = []
    for one in patterns:
        bad_with = (one.bits & bad_bits).bit_count()
        p = _tails(one.bits.bit_count(), bad, runs)[bad_with]
        good_with = one.bits.bit_count() - bad_with
        evidence.append(
            SplitEvidence(
                good_with=good_with,
                good_without=good - good_with,
                bad_with=bad_with,
                bad_without=bad - bad_with,
                p=p,
                adjusted=max(p, adjusted(p / one.weight)),
            )
        )
    perfect = smallest_p(good, bad)
    return FamilyTest(
        evidence=tuple(evidence),
        patterns=len(tables),
        deals=len(lowest),
        is_exact=is_exact,
        perfect=max(perfect, adjusted(perfect)),
    )


def _all_deals(runs: int, bad: int) -> Iterator[int]:
    for chosen in combinations(range(runs), bad):
        yield sum(1 << one for one in chosen)


def _some_deals(runs: int, bad: int, deals: int, real: int) -> Iterator[int]:
    """At random, and the labels as they are."""
    yield real
    draw = Random(0).sample  # noqa: S311  # the same every time
    places = range(runs)
    for _ in range(deals):
        yield sum(1 << one for one in draw(places, bad))


# ── how many more runs it takes ──────────────────────────────────────────────────────────────────────────────


def more_runs(good: int, bad: int, good_rate: float, bad_rate: float, tests: float) -> tuple[int, int] | None:
    """How many more good and bad runs until these rates are significant among so many independent tests.

    The smaller side grows first. ``None`` where hundreds would not do.
    """
    goods, bads = good, bad
    while goods + bads <= _MOST_RUNS:
        p = fisher_exact(round(good_rate * goods), goods, round(bad_rate * bads), bads)
        if p * max(1.0, tests) <= SIGNIFICANT:
            return goods - good, bads - bad
        if goods < bads or (goods == bads and good <= bad):
            goods += 1
        else:
            bads += 1
    return None
