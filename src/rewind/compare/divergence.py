"""The first step where a bad run left a good one.

Theory. Two runs have parted when one *does* something else: the model asks for other tools or says other words, the
provider fails, or the agent makes a step that the other does not make. That the prompt already differed at step 1 is
why, not where. Three things do not count as parting: ids and times; an answer that asks for the same tools in other
words, since the run goes on the same way; and a conversation that one run holds beside the others and whose words turn
up nowhere, as of one parallel call more. They are named. Only if the runs differ in nothing else do they part at the
first of the reworded answers, or at the first request that differs.
"""

from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate, takewhile

from rewind.compare.align import Row
from rewind.compare.cause import Cause, causes_of
from rewind.compare.comparison import Comparison
from rewind.compare.delta import REQUEST, Difference
from rewind.compare.ruled_out import RuledOut, ruled_out
from rewind.compare.run import ComparedRun, Move
from rewind.dataclass import dataclass

_TELLING_WORDS = 12
"""An answer of at least so many letters that is found again is not a coincidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Where two runs part, and why."""

    comparison: Comparison
    at: Row | None
    """``None`` where they do not."""
    causes: tuple[Cause, ...] = ()
    ruled_out: tuple[RuledOut, ...] = ()
    answers_part: bool = False
    """False: what is asked differs, or how an answer is worded, and yet every run does the same."""
    beside: tuple[Row, ...] = ()
    """Moves that only one run made and that nothing depends on."""
    resync: Row | None = None
    """The first later row in which the runs say the same again."""

    @property
    def diverges(self) -> bool:
        return self.at is not None

    @property
    def step(self) -> tuple[int | None, int | None]:
        """The steps of the good and of the bad run."""
        return (None, None) if self.at is None else self.at.indexes

    @property
    def before(self) -> tuple[Row, ...]:
        """The rows that both runs have, up to where they part."""
        rows = self.comparison.rows
        end = len(rows) if self.at is None else rows.index(self.at)
        return tuple(row for row in rows[:end] if row.a is not None and row.b is not None)

    @property
    def matched(self) -> int:
        """Rows before the parting in which both runs came to the same."""
        relations = map(self.comparison.relation, self.before)
        return sum(relation.answers_alike or relation.reworded for relation in relations)

    @property
    def total(self) -> int:
        """How many moves the good run made."""
        return len(self.comparison.a.moves)


def bisect(good: ComparedRun, bad: ComparedRun) -> Finding:
    """Where the bad run left the good one, and why."""
    comparison = Comparison(good, bad)
    search = _Search(comparison)
    at = search.parting()
    answers_part = at is not None
    at = at or search.difference()
    if at is not None and (used := search.used_by(at)) is not None:
        at, answers_part = used, True
    beside = tuple(row for row in search.beside if row is not at)
    if at is None:
        return Finding(comparison=comparison, at=None, beside=beside)
    causes = causes_of(comparison, at)
    return Finding(
        comparison=comparison,
        at=at,
        causes=causes,
        ruled_out=ruled_out(comparison, at, causes),
        answers_part=answers_part,
        beside=beside,
        resync=search.resync(at),
    )


class _Search:
    """Looks at rows in order, and at no more than needed."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._rows = comparison.rows

    def parting(self) -> Row | None:
        """The first row in which one run does something else."""
        conversations = (row for row in self._rows if _is_call(row))
        others = (row for row in self._rows if not _is_call(row))
        # What the world answers comes before what the model makes of it, but it matters only if it does.
        return next(self._partings(conversations), None) or next(self._partings(others), None)

    def difference(self) -> Row | None:
        """The first row that differs at all, where nothing was done otherwise."""
        pairs = (row for row in self._rows if row.a is not None and row.b is not None)
        return next((row for row in pairs if not self._comparison.relation(row).alike), None)

    def used_by(self, at: Row) -> Row | None:
        """The move beside the path whose answer is what differs in what is said at this row: so it was on the path."""
        if at.a is None or at.b is None:
            return None
        differing = [one for one in self._comparison.differences(at) if one.aspect in REQUEST and one.noise is None]
        for row in takewhile(lambda one: one is not at, self._rows):
            if row in self.beside and any(self._brings(row, one) for one in differing):
                return row
        return None

    def _brings(self, row: Row, difference: Difference) -> bool:
        (move,) = row.moves
        run = self._comparison.a if row.a is not None else self._comparison.b
        answered = run.answered(move.index)
        words = answered.text.strip() if answered is not None else ""
        here, there = difference.before or "", difference.after or ""
        if row.b is not None:
            here, there = there, here
        return len(words) >= _TELLING_WORDS and words in here and words not in there

    def resync(self, at: Row) -> Row | None:
        for row in self._rows[self._rows.index(at) + 1 :]:
            if row.a is not None and row.b is not None and _says_the_same(row.a, row.b):
                return row
        return None

    @cached_property
    def beside(self) -> tuple[Row, ...]:
        """Moves of conversations, or to addresses, that one run has alone and that ran beside others."""
        return tuple(row for row in self._rows if not row.shared and self._is_beside(row))

    def _partings(self, rows: Iterator[Row]) -> Iterator[Row]:
        beside = {id(row) for row in self.beside}
        for row in rows:
            if row.a is None or row.b is None:
                if id(row) not in beside:
                    yield row
                continue
            relation = self._comparison.relation(row)
            if not relation.answers_alike and not relation.reworded:
                yield row

    def _is_beside(self, row: Row) -> bool:
        """Whether it belongs to a conversation that began while another move was under way, and that asks for no tool:
        what tools do is done, whoever reads the answer."""
        (move,) = row.moves
        run, under_way = (
            (self._comparison.a, self._under_way_in_a)
            if row.a is not None
            else (self._comparison.b, self._under_way_in_b)
        )
        lane = run.thread(move.thread) or [move]
        if not under_way.beside(lane[0]):
            return False
        answers = (run.answered(one.index) for one in lane if one.sketch is not None)
        return not any(answer.tool_uses for answer in answers if answer is not None)

    @cached_property
    def _under_way_in_a(self) -> "_UnderWay":
        return _UnderWay(self._comparison.a)

    @cached_property
    def _under_way_in_b(self) -> "_UnderWay":
        return _UnderWay(self._comparison.b)


_Ends = tuple[tuple[float, object], tuple[float, object]]
"""Two ends, each with whose it is."""


class _UnderWay:
    """Which moves were under way at the same time."""

    def __init__(self, run: ComparedRun) -> None:
        steps = {step.index: step for step in run.recording.steps}
        tries = ((steps[index], _who(move)) for move in run.moves for index in (*move.failures, move.index))
        spans = sorted((step.request.ts, step.ended, who) for step, who in tries)
        self._starts = [start for start, _, _ in spans]
        nobody: _Ends = (0.0, None), (0.0, None)
        self._latest = list(accumulate(((end, who) for _, end, who in spans), _later_ends, initial=nobody))

    def beside(self, move: Move) -> bool:
        """Whether a move of another conversation, or another call without one, overlaps with it."""
        until = bisect_left(self._starts, move.step.ended)
        return any(
            end > move.step.request.ts and who != _who(move) for end, who in self._latest[until] if who is not None
        )


def _later_ends(known: _Ends, here: tuple[float, object]) -> _Ends:
    """The latest end, and the latest of anybody else's."""
    first, second = known
    if here[1] == first[1]:
        return max(first, here, key=lambda one: one[0]), second
    if here[0] > first[0]:
        return here, first
    return first, max(second, here, key=lambda one: one[0])


def _who(move: Move) -> tuple[str, int]:
    return ("thread", move.thread) if move.thread is not None else ("step", move.index)


def _is_call(row: Row) -> bool:
    return any(move.sketch is not None for move in row.moves)


def _says_the_same(a: Move, b: Move) -> bool:
    if a.sketch is None or b.sketch is None:
        return a.step.request.match_key == b.step.request.match_key and a.said == b.said
    return a.sketch.turn == b.sketch.turn and a.said == b.said
