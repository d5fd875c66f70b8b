"""Two runs row by row: how each pair of moves stands, how many of each kind there are, and what is new in each."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from enum import StrEnum

from rewind.compare.align import Row
from rewind.compare.comparison import Comparison, Relation
from rewind.compare.delta import Aspect, Difference
from rewind.compare.run import Move
from rewind.compare.turn import history_differences
from rewind.dataclass import dataclass


class Likeness(StrEnum):
    """How the two moves of a row stand to each other."""

    SAME = "same"
    VOLATILE = "volatile"
    """Only ids and times differ."""
    REWORDED = "reworded"
    """The same tools are asked for in other words, and nothing else differs."""
    CHANGED = "changed"
    ONLY_A = "only_in_a"
    ONLY_B = "only_in_b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """How many rows there are of each kind."""

    counts: Mapping[Likeness, int]
    retried: int
    """Rows in which one run needed more tries than the other."""
    reordered: int

    @property
    def equal(self) -> int:
        """Ids and times do not count."""
        return self.counts[Likeness.SAME] + self.counts[Likeness.VOLATILE]

    @property
    def changed(self) -> int:
        return self.counts[Likeness.REWORDED] + self.counts[Likeness.CHANGED]

    @property
    def is_same(self) -> bool:
        return sum(self.counts.values()) == self.equal


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """What differs in a row, without what an earlier row shows already."""

    row: Row
    relation: Relation
    differences: tuple[Difference, ...]
    """Those that no earlier row shows."""
    repeated: Mapping[Aspect, Row]
    """Aspects with the same two values as in an earlier row."""


def likeness(comparison: Comparison, row: Row) -> Likeness:
    if row.a is None or row.b is None:
        return Likeness.ONLY_A if row.b is None else Likeness.ONLY_B
    relation = comparison.relation(row)
    if relation.alike:
        return Likeness.VOLATILE if relation.noise else Likeness.SAME
    only_words = relation.reworded and relation.changed == {Aspect.ANSWER}
    return Likeness.REWORDED if only_words else Likeness.CHANGED


def summarise(comparison: Comparison, on_progress: Callable[[int], object] = lambda _done: None) -> Summary:
    """``on_progress`` is called with the number of rows done."""
    counts: Counter[Likeness] = Counter()
    retried = 0
    for done, row in enumerate(comparison.rows, 1):
        counts[likeness(comparison, row)] += 1
        retried += row.a is not None and row.b is not None and comparison.relation(row).retried
        on_progress(done)
    return Summary(counts=counts, retried=retried, reordered=comparison.alignment.reordered)


def row_changes(
    comparison: Comparison, rows: Iterable[Row], only: Collection[Aspect] = frozenset(Aspect)
) -> Iterator[RowChange]:
    """What differs in each of the rows that both runs have, in one of these aspects.

    Bodies are read for what is shown first; a prompt that is changed in a thousand steps is read once.
    """
    seen: dict[Hashable, Row] = {}
    for row in rows:
        if row.a is None or row.b is None:
            continue
        relation = comparison.relation(row)
        wanted = relation.changed & frozenset(only)
        repeated = {
            aspect: seen[key]
            for aspect in Aspect
            if aspect in wanted and (key := _lasting(aspect, row.a, row.b)) in seen
        }
        new = wanted - repeated.keys()
        for aspect in new:
            if (key := _lasting(aspect, row.a, row.b)) is not None:
                seen[key] = row
        if wanted:
            found = comparison.differences(row) if new else ()
            own = tuple(one for one in found if one.aspect in new and one.noise is None)
            yield RowChange(row=row, relation=relation, differences=own, repeated=repeated)


def pair_changes(comparison: Comparison, row: Row, only: Collection[Aspect] = frozenset(Aspect)) -> Iterator[RowChange]:
    """What differs between two moves, what an earlier step explains included; nothing where they are the same."""
    assert row.a is not None and row.b is not None, "two moves are compared"
    relation = comparison.relation(row)
    found = [*comparison.differences(row)]
    if relation.inherited:
        asked = comparison.a.asked(row.a.index), comparison.b.asked(row.b.index)
        found += history_differences(*asked, comparison.a.held(row.a), comparison.b.held(row.b))
    own = tuple(one for one in found if one.aspect in only and one.noise is None)
    if own:
        yield RowChange(row=row, relation=relation, differences=own, repeated={})


def _lasting(aspect: Aspect, a: Move, b: Move) -> Hashable:
    """Both values of what every call says anew; ``None`` for what is said once."""
    old, new = a.lasting_value(aspect), b.lasting_value(aspect)
    return None if old == new else (aspect, old, new)
