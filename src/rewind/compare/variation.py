"""What also varies among earlier good runs, and therefore says little about a bad one.

A cause is a text that differs between the good and the bad run. Each earlier good run has a text in the same place: the
result of the same call, the same words of the user, the same parameter. Where those texts differ among themselves, the
place *varies*, and a difference there is no surprise. It is demoted and says so; it is never removed.

It is not demoted where the bad run's value lies outside of what was seen: a number beyond the smallest and the largest,
a word that never stood there, a text that is less like the others than any of them is. Nor where the answer that parted
uses the value: a value that varies and *is* the cause stays on top.

Texts are compared field by field: JSON by its paths, other text by the words that stand around a value.
"""

import json
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cached_property

from rewind.compare.align import Row
from rewind.compare.cause import Cause, Standing, with_sampling
from rewind.compare.comparison import Comparison
from rewind.compare.delta import Aspect, Difference, FieldPlace
from rewind.compare.run import ComparedRun, Move
from rewind.compare.turn import turn_texts
from rewind.conversation.context import parts_text
from rewind.conversation.message_digest import json_text
from rewind.conversation.sketch import settings_of
from rewind.dataclass import dataclass

LEAST_RUNS = 5
"""Fewer earlier runs say nothing about what usually varies."""
_WORD = re.compile(r"[^\s,;:()\[\]{}\"'=]+")
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
_MOST_SHOWN = 3
"""Fields whose values are named on a screen."""
_MOST_FIELDS = 2_000
"""Fields of one text that are looked at; a longer one is compared as a whole."""

Fields = Mapping[Hashable, str]


class VariationReach(StrEnum):
    """How a bad run's value stands to those of earlier good runs."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    FIXED = "fixed"
    """It was the same in all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """What was learnt of one difference from earlier good runs."""

    runs: int
    """Earlier good runs that have a text in that place."""
    reach: VariationReach
    seen: tuple[str, ...]
    """The fields that it lies in, and their values in good runs: ``days_since_delivery 3 to 9``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntVariation:
    """What earlier good runs say about one difference of a cause."""

    cause: Cause
    difference: Difference
    variation: Variation
    demoted: bool
    """Whether its cause is."""


def weighed_by_history(
    comparison: Comparison, row: Row, causes: Sequence[Cause], earlier: "EarlierRuns"
) -> tuple[tuple[Cause, ...], tuple[LearntVariation, ...]]:
    """The causes in their new order, each with a word on it where history has one; and what was learnt."""
    weighed: list[Cause] = []
    learnt: list[LearntVariation] = []
    for cause in causes:
        volatile = cause.standing is Standing.VOLATILE
        found = {one: earlier.variation(cause.since, one) for one in (() if volatile else cause.differences)}
        known = {one: variation for one, variation in found.items() if variation is not None}
        idle = bool(found) and all(one is not None and one.reach is VariationReach.INSIDE for one in found.values())
        demoted = idle and cause.standing is not Standing.USED
        said = _sentence(list(known.values()), idle=idle, demoted=demoted)
        new = replace(
            cause,
            standing=Standing.VARIES if demoted else cause.standing,
            evidence="; ".join(filter(None, (cause.evidence, said))),
        )
        weighed.append(new)
        learnt += [
            LearntVariation(cause=new, difference=one, variation=variation, demoted=demoted)
            for one, variation in known.items()
            if variation.reach is not VariationReach.FIXED
        ]
    return with_sampling(comparison, row, weighed), tuple(learnt)


def _sentence(known: Sequence[Variation], *, idle: bool, demoted: bool) -> str:
    """What history says of a cause: what lies outside, or that all of it varies; nothing where it is in between."""
    told = [one for one in known if one.reach is (VariationReach.INSIDE if idle else VariationReach.OUTSIDE)]
    if not told:
        return ""
    runs = f"{min(one.runs for one in told)} good runs"
    fields = [seen for one in told for seen in one.seen][:_MOST_SHOWN]
    seen = f": {'; '.join(fields)}" if fields else ""
    if not idle:
        return f"outside of what {runs} had{seen}"
    return f"also varies in {runs}{seen}" + ("" if demoted else "; but the answer that parted uses it")


class EarlierRuns:
    """Earlier good runs, each laid beside the good run."""

    def __init__(self, good: ComparedRun, runs: Sequence[ComparedRun]) -> None:
        self._good = good
        self._beside = [_Beside(good, run) for run in runs]

    def variation(self, row: Row, difference: Difference) -> Variation | None:
        """``None`` where too few of them have such a place."""
        if row.a is None or difference.before is None or difference.after is None:
            return None
        name = _name_of(self._good, row.a, difference)
        if name is None:
            return None
        texts = [text for one in self._beside if (text := one.text(row.a, difference, name)) is not None]
        if len(texts) < LEAST_RUNS:
            return None
        return variation_of(difference.before, difference.after, texts)


class _Beside:
    """One earlier run beside the good one."""

    def __init__(self, good: ComparedRun, run: ComparedRun) -> None:
        self._run = run
        self._comparison = Comparison(good, run)

    def text(self, move: Move, difference: Difference, name: Hashable) -> str | None:
        partner = self._partners.get(move.index)
        return None if partner is None else _text_at(self._run, partner, difference, name)

    @cached_property
    def _partners(self) -> dict[int, Move]:
        return {row.a.index: row.b for row in self._comparison.rows if row.a is not None and row.b is not None}


def _name_of(run: ComparedRun, move: Move, difference: Difference) -> Hashable:
    """What a place is called in any run; ``None`` for what has no such name."""
    match difference.aspect:
        case Aspect.SYSTEM:
            return "system"
        case Aspect.PARAMETERS if isinstance(difference.place, FieldPlace):
            return difference.place.path
        case Aspect.INPUT | Aspect.TOOL_OUTPUT if move.sketch is not None:
            heard = turn_texts(run.asked(move.index), run.held(move))
            return next((name for name, text in heard.items() if text == difference.before), None)
    return None


def _text_at(run: ComparedRun, move: Move, difference: Difference, name: Hashable) -> str | None:
    asked = run.asked(move.index)
    match difference.aspect:
        case Aspect.SYSTEM:
            return parts_text(asked.system)
        case Aspect.PARAMETERS:
            value: object = settings_of(asked, run.provider(move.index))
            for key in name if isinstance(name, tuple) else ():
                if (isinstance(value, dict) and key in value) or (
                    isinstance(value, list) and isinstance(key, int) and key < len(value)
                ):
                    value = value[key]
                else:
                    return None
            return json_text(value)
    return turn_texts(asked, run.held(move)).get(name)


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────


def variation_of(before: str, after: str, texts: Sequence[str]) -> Variation:
    """How the bad run's text stands to those of the good run and of earlier good runs."""
    goods = [before, *texts]
    known = [fields for text in (*goods, after) if (fields := fields_of(text)) is not None]
    if len(known) <= len(goods) or len({frozenset(fields) for fields in known[:-1]}) > 1:
        return _of_whole_texts(goods, after, len(texts))
    bad, good = known[-1], known[0]
    if bad.keys() != good.keys():
        return Variation(runs=len(texts), reach=VariationReach.OUTSIDE, seen=())
    differing = [name for name in bad if bad[name] != good[name]]
    reaches = [_reach([one[name] for one in known[:-1]], bad[name]) for name in differing]
    reach = _furthest(reaches)
    telling = [name for name, one in zip(differing, reaches, strict=True) if one is reach]
    return Variation(
        runs=len(texts), reach=reach, seen=tuple(_shown(name, [one[name] for one in known[:-1]]) for name in telling)
    )


def _of_whole_texts(goods: Sequence[str], after: str, runs: int) -> Variation:
    """Texts of no common form: the bad one must be as like to one of them as each of them is to another."""
    if len(set(goods)) == 1:
        return Variation(runs=runs, reach=VariationReach.FIXED, seen=())
    words = [frozenset(_WORD.findall(text)) for text in goods]
    least = min(max(_likeness(one, other) for j, other in enumerate(words) if j != i) for i, one in enumerate(words))
    mine = frozenset(_WORD.findall(after))
    inside = max(_likeness(mine, one) for one in words) >= least
    return Variation(runs=runs, reach=VariationReach.INSIDE if inside else VariationReach.OUTSIDE, seen=())


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    either = one | other
    return len(one & other) / len(either) if either else 1.0


def fields_of(text: str) -> Fields | None:
    """The values in a text, by where they stand; ``None`` where there are too many."""
    try:
        value = json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        value = None
    found: dict[Hashable, str] = {}
    for name, leaf in _leaves(value, ()) if value is not None else _slots(text):
        if len(found) >= _MOST_FIELDS:
            return None
        found[name] = leaf
    return found


def _leaves(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[Hashable, str]]:
    waiting: list[tuple[tuple[str | int, ...], object]] = [(path, value)]
    while waiting:
        here, one = waiting.pop()
        if isinstance(one, dict):
            waiting += [((*here, str(key)), inner) for key, inner in one.items()]
        elif isinstance(one, list):
            waiting += [((*here, at), inner) for at, inner in enumerate(one)]
        else:
            yield here, one if isinstance(one, str) else json_text(one)


def _slots(text: str) -> Iterator[tuple[Hashable, str]]:
    """Every word with a digit in it is a value, known by the words around it; the rest is the form of the text."""
    words = _WORD.findall(text)
    form = tuple(word for word in words if not _has_digit(word))
    yield ("form", form), ""
    counted: dict[Hashable, int] = {}
    last = ""
    for word in words:
        if _has_digit(word):
            counted[last] = counted.get(last, 0) + 1
            yield (last, counted[last]), word
        else:
            last = word


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def _reach(goods: Sequence[str], bad: str) -> VariationReach:
    """How one value stands to those that were seen."""
    if len(set(goods)) == 1:
        return VariationReach.FIXED
    if bad in goods:
        return VariationReach.INSIDE
    numbers = [_number(value) for value in goods]
    mine = _number(bad)
    if mine is not None and all(one is not None for one in numbers):
        known = [one for one in numbers if one is not None]
        return VariationReach.INSIDE if min(known) <= mine <= max(known) else VariationReach.OUTSIDE
    # A value that never came twice is drawn anew each time; then one of the same make is inside.
    drawn = len(set(goods)) == len(goods) and _make(bad) in map(_make, goods)
    return VariationReach.INSIDE if drawn else VariationReach.OUTSIDE


def _number(value: str) -> float | None:
    """The number that a value is, with a unit behind it or none: ``0.31s``, ``1,200``."""
    found = _NUMBER.match(value)
    if found is None or any(map(str.isdigit, value[found.end() :])):
        return None
    return float(found[0].replace(",", ""))


def _make(value: str) -> str:
    """Letters and digits by kind and rough length: ids of one maker look alike."""
    signs = {"d" if sign.isdigit() else "a" if sign.isalpha() else sign for sign in value}
    return f"{''.join(sorted(signs))}{len(value) // 4}"


def _furthest(reaches: Sequence[VariationReach]) -> VariationReach:
    """One value outside is enough; one that always was the same, too."""
    for reach in (VariationReach.OUTSIDE, VariationReach.FIXED):
        if reach in reaches:
            return reach
    return VariationReach.INSIDE


def _shown(name: Hashable, values: Sequence[str]) -> str:
    label = ".".join(map(str, name)) if isinstance(name, tuple) else str(name)
    numbers = [(number, value) for value in values if (number := _number(value)) is not None]
    if len(numbers) == len(values):
        least, most = min(numbers)[1], max(numbers)[1]
        return f"{label} {least}" if least == most else f"{label} {least} to {most}"
    different = sorted(set(values))
    return f"{label} {', '.join(different[:3])}{', …' if len(different) > 3 else ''}"
