"""Several good runs and several bad ones: where do they part, and what do bad runs have that good ones have not?

All runs are laid side by side by what they decide (:mod:`rewind.compare.columns`); everything that some runs have and
others have not is a feature (:mod:`rewind.compare.features`), and each is tested for being unevenly spread, all of them
together (:mod:`rewind.compare.statistics`). The runs *part* in the first column whose decisions tell good from bad. A
*cause* is something asked or given, before or at that column, that does so, too. What exactly the same runs have cannot
be told apart by any number of comparisons: it is named together.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import partial

from rewind.compare.cause import CauseKind
from rewind.compare.columns import MoveColumn, columns_of, unlabelled_order
from rewind.compare.features import Feature, features_of, without_numbers
from rewind.compare.run import ComparedRun
from rewind.compare.statistics import (
    SIGNIFICANT,
    FamilyTest,
    Pattern,
    SplitEvidence,
    family_test,
    more_runs,
    smallest_p,
)
from rewind.dataclass import dataclass

_ORDER = {kind: at for at, kind in enumerate(dict.fromkeys([CauseKind.ERROR, *CauseKind]))}
"""Of what is equally uneven and seen at the same step: a call that failed comes before what is asked instead."""
_MOST_CAUSES = 4
_MUCH_WORSE = 10
"""What is so many times likelier by chance than the first cause is not named beside it."""
_MOST_HINTS = 2
_NEAR = 0.4
"""Up to this p, what is not significant is worth a hint."""


class GroupVerdict(StrEnum):
    """What came of it."""

    CAUSE = "cause"
    """They part, or their outcomes do, and something explains it."""
    PARTING = "parting"
    """They part, and nothing that was asked or given tells them apart."""
    NOTHING = "nothing"
    """Nothing tells them apart by more than chance."""
    TOO_FEW = "too-few-runs"
    """Not even something that all bad runs have and no good one would be more than chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedFeature:
    """A feature, and how unevenly the runs have it."""

    feature: Feature
    evidence: SplitEvidence

    @property
    def is_in_bad(self) -> bool:
        """Whether it is rather the bad runs that have it."""
        runs = self.evidence
        return runs.bad_with * (runs.good_with + runs.good_without) > runs.good_with * (
            runs.bad_with + runs.bad_without
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCause:
    """Something that tells good runs from bad ones."""

    kind: CauseKind
    column: int
    """Where it is first seen."""
    tested: tuple[TestedFeature, ...]
    """The likeliest first; the others always go together with it, and cannot be told from it."""

    runs: frozenset[int]
    """Those that have the first of it, by their number in :attr:`GroupFinding.runs`."""

    @property
    def evidence(self) -> SplitEvidence:
        return self.tested[0].evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFinding:
    """Good runs and bad ones, side by side."""

    goods: tuple[ComparedRun, ...]
    bads: tuple[ComparedRun, ...]
    columns: tuple[MoveColumn, ...]
    """Their cells are those of the good runs, then those of the bad ones."""
    verdict: GroupVerdict
    at: int | None
    """The first column whose decisions tell them apart; ``None`` where none does."""
    deciding: dict[int, TestedFeature]
    """By column: the decision that tells most; only where it is more than chance."""
    causes: tuple[GroupCause, ...]
    nearest: tuple[GroupCause, ...]
    """Where nothing is more than chance: what comes nearest to it."""
    needed: tuple[int, int] | None
    """How many more good and bad runs it would take; ``None`` where that is not the question, or not known."""
    test: FamilyTest

    @property
    def runs(self) -> tuple[ComparedRun, ...]:
        return (*self.goods, *self.bads)


def compare_groups(goods: Sequence[ComparedRun], bads: Sequence[ComparedRun]) -> GroupFinding:
    """Where the bad runs leave the good ones, and what tells them apart."""
    given = (*goods, *bads)
    order = unlabelled_order(given)
    runs = [given[at] for at in order]
    columns = columns_of(runs)
    features = features_of(runs, columns)
    test = family_test([_pattern(one, order) for one in features], len(goods), len(bads))
    tested = [TestedFeature(feature=one, evidence=found) for one, found in zip(features, test.evidence, strict=True)]
    deciding = _deciding(one for one in tested if one.feature.kind is None and one.evidence.is_significant)
    at = min(deciding, default=None)
    ends = [_end(columns, run, at) for run in range(len(runs))]
    before = (one for one in tested if one.evidence.is_significant and _is_before(one.feature, ends))
    causes = tuple(_causes(before, order, len(columns) if at is None else at))
    verdict = GroupVerdict.NOTHING
    if causes:
        verdict = GroupVerdict.CAUSE
    elif at is not None:
        verdict = GroupVerdict.PARTING
    elif test.perfect > SIGNIFICANT:
        verdict = GroupVerdict.TOO_FEW
    nearest: tuple[GroupCause, ...] = ()
    if verdict in (GroupVerdict.NOTHING, GroupVerdict.TOO_FEW):
        most = 1.0 if verdict is GroupVerdict.TOO_FEW else _NEAR
        likely = (one for one in tested if one.evidence.p <= _NEAR and one.evidence.adjusted <= most)
        nearest = tuple(_causes(likely, order, len(columns)))[:_MOST_HINTS]
    return GroupFinding(
        goods=tuple(goods),
        bads=tuple(bads),
        columns=tuple(column.in_order(order) for column in columns),
        verdict=verdict,
        at=at,
        deciding=deciding,
        causes=causes,
        nearest=nearest,
        needed=_needed(verdict, nearest, test, len(goods), len(bads)),
        test=test,
    )


def _end(columns: Sequence[MoveColumn], run: int, at: int | None) -> int:
    """The last column up to which what a run hears may be why it went on as it did: where it makes its first move at
    the parting or behind it."""
    if at is None:
        return len(columns)
    return next((column for column in range(at, len(columns)) if columns[column].cells[run] is not None), at)


def _is_before(feature: Feature, ends: Sequence[int]) -> bool:
    """Whether most of the runs that have it had it before they parted."""
    return 2 * sum(column <= ends[run] for run, column in feature.first.items()) > len(feature.first)


def _pattern(feature: Feature, order: Sequence[int]) -> Pattern:
    return Pattern(sum(1 << order[at] for at in feature.runs), feature.weight)


def _deciding(tested: Iterable[TestedFeature]) -> dict[int, TestedFeature]:
    best: dict[int, TestedFeature] = {}
    for one in tested:
        known = best.get(one.feature.column)
        if known is None or one.evidence.p < known.evidence.p:
            best[one.feature.column] = one
    return dict(sorted(best.items()))


def _causes(tested: Iterable[TestedFeature], order: Sequence[int], at: int) -> Iterator[GroupCause]:
    """The surest first; each place once. What exactly the other runs lack goes together with it."""
    every = frozenset(range(len(order)))
    together: dict[frozenset[int], list[TestedFeature]] = {}
    for one in tested:
        if one.feature.kind is not None:
            together.setdefault(min(one.feature.runs, every - one.feature.runs, key=sorted), []).append(one)
    likelier = partial(_likelier, at=at)
    seen: set[tuple[CauseKind | None, str]] = set()
    groups = [_path_first(sorted(group, key=likelier), at) for group in together.values()]
    shown, best = 0, 0.0
    for group in sorted(groups, key=lambda group: (group[0].evidence.p, likelier(group[0]))):
        first = group[0].feature
        best = best or group[0].evidence.p
        if (first.kind, first.place) in seen or shown == _MOST_CAUSES or group[0].evidence.p > _MUCH_WORSE * best:
            continue
        shown += 1
        seen.update((one.feature.kind, one.feature.place) for one in group)
        assert first.kind is not None, "decisions are no causes"
        yield GroupCause(
            kind=first.kind,
            column=min(first.column, at),
            tested=tuple(_without_words(group)),
            runs=frozenset(order[at] for at in first.runs),
        )


def _likelier(one: TestedFeature, at: int) -> tuple[int, bool, int, bool, float, bool, int]:
    """Of what goes together: what came first, as long as the runs had not parted; a whole sentence before its words;
    what bad runs have before what they lack; a long sentence before a short one."""
    feature = one.feature
    assert feature.kind is not None, "decisions are no causes"
    return (
        min(feature.column, at),
        feature.is_prose,
        _ORDER[feature.kind],
        not one.is_in_bad,
        -feature.weight,
        without_numbers(feature.text) == feature.text,
        -len(feature.text),
    )


def _path_first(group: list[TestedFeature], at: int) -> list[TestedFeature]:
    """Where bad runs have nothing that good ones have not, but leave out a step, they lack whatever is said in it."""
    column = min(group[0].feature.column, at)
    made = any(one.feature.kind is CauseKind.PATH and one.feature.column <= column for one in group)
    if not made or any(one.is_in_bad for one in group):
        return group
    return sorted(group, key=lambda one: one.feature.kind is not CauseKind.PATH)


def _without_words(group: Sequence[TestedFeature]) -> Iterator[TestedFeature]:
    """Words only where no whole sentence or value of the same place is there; each thing once, and a sentence without
    its numbers only where that with them is not there."""
    whole = {(one.feature.kind, one.feature.place, one.is_in_bad) for one in group if not one.feature.is_prose}
    said: set[tuple[CauseKind | None, str, str]] = set()
    for one in group:
        place = one.feature.kind, one.feature.place
        if (one.feature.is_prose and (*place, one.is_in_bad) in whole) or (*place, one.feature.text) in said:
            continue
        said.add((*place, one.feature.text))
        said.add((*place, without_numbers(one.feature.text)))
        yield one


def _needed(
    verdict: GroupVerdict, nearest: Sequence[GroupCause], test: FamilyTest, good: int, bad: int
) -> tuple[int, int] | None:
    """As many as it takes if the rates stay as they are; what was tested besides has its price."""
    match verdict:
        case GroupVerdict.TOO_FEW:
            return more_runs(good, bad, 0.0, 1.0, test.perfect / smallest_p(good, bad))
        case GroupVerdict.NOTHING if nearest:
            found = nearest[0].evidence
            return more_runs(good, bad, found.good_with / good, found.bad_with / bad, found.adjusted / found.p)
    return None
