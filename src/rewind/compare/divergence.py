"""The first step where a bad run left a good one.

Theory. Two runs have parted when one *does* something else: the model asks for other tools, or with other arguments
that matter, its last word says something else, the provider fails, or the agent makes a step that the other does not
make. That the prompt already differed at step 1 is why, not where. What does not count as parting is weighed and named:
ids and times; the same in other words; a read more that the run does not turn on; a failure that was tried again; and a
conversation that one run holds beside the others and whose words turn up nowhere, as of one parallel call more. Only if
the runs differ in nothing else do they part at the first request that differs.
"""

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import accumulate, takewhile

from rewind.compare.align import Row
from rewind.compare.arguments import value_changes
from rewind.compare.cause import Cause, causes_of
from rewind.compare.comparison import Comparison
from rewind.compare.decision import Change, ChangeKind, Decision, Weight, compare_decisions
from rewind.compare.delta import REQUEST, Aspect, Difference
from rewind.compare.ruled_out import RuledOut, ruled_out
from rewind.compare.run import ComparedRun, Move
from rewind.compare.text_facts import facts_of
from rewind.dataclass import dataclass

_ASKED = REQUEST - {Aspect.TOOL_OUTPUT}
_FROM_WORDS = frozenset({Aspect.INPUT, Aspect.HISTORY})
_TELLING_WORDS = 12
"""An answer of at least so many letters that is found again is not a coincidence."""


class PartingWeight(StrEnum):
    """What a row comes to in which the runs differ."""

    DECISIVE = "decisive"
    """One run does something else."""
    PROSE = "prose"
    """The same is decided in other words."""
    EXTRA = "extra"
    """One run reads something more, and both go on the same way right behind it."""
    RETRIED = "retried"
    """One run needed more tries, or another model after a failure, to come to the same."""
    ANSWERED = "answered"
    """A host that is no model gave another answer, and a model was asked after it: what it made of that is a row of its
    own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """A row in which one run does, or words, something otherwise."""

    row: Row
    weight: PartingWeight
    changes: tuple[Change, ...] = ()
    """What differs between the two answers, what is decided first."""
    asks_for_tools: bool = False


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
    partings: tuple[Parting, ...] = ()
    """Every row that differs in what is done or said, whatever it comes to, in order."""
    beside: tuple[Row, ...] = ()
    """Moves that only one run made and that nothing depends on."""
    resync: Row | None = None
    """The first later row in which the runs say the same again."""

    @property
    def parting(self) -> Parting | None:
        """That of the divergence."""
        return next((one for one in self.partings if one.row is self.at), None)

    @property
    def folded(self) -> tuple[Parting, ...]:
        """The partings that led to nothing, up to the divergence."""
        rows = {id(row) for row in self._until}
        return tuple(one for one in self.partings if id(one.row) in rows and one.weight is not PartingWeight.DECISIVE)

    @property
    def _until(self) -> tuple[Row, ...]:
        rows = self.comparison.rows
        return rows if self.at is None else rows[: rows.index(self.at)]

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
        return tuple(row for row in self._until if row.a is not None and row.b is not None)

    @property
    def matched(self) -> int:
        """Rows before the parting in which both runs came to the same."""
        return sum(self.comparison.decided(row).weight is not Weight.DECISIVE for row in self.before)

    @property
    def total(self) -> int:
        """How many moves the good run made."""
        return len(self.comparison.a.moves)


def bisect(good: ComparedRun, bad: ComparedRun, *, exact_words: bool = False) -> Finding:
    """Where the bad run left the good one, and why. With ``exact_words``, other words are a parting, too."""
    comparison = Comparison(good, bad, exact_words=exact_words)
    search = _Search(comparison)
    partings = tuple(search.partings())
    at = search.first(partings)
    answers_part = at is not None
    at = at or search.difference(words=exact_words)
    if at is not None and (used := search.used_by(at)) is not None:
        at, answers_part = used, True
    beside = tuple(row for row in search.beside if row is not at)
    if at is None:
        return Finding(comparison=comparison, at=None, partings=partings, beside=beside)
    causes = causes_of(comparison, at)
    return Finding(
        comparison=comparison,
        at=at,
        causes=causes,
        ruled_out=ruled_out(comparison, at, causes),
        answers_part=answers_part,
        partings=partings,
        beside=beside,
        resync=search.resync(at),
    )


class _Search:
    """Looks at all rows for what was done, and at no more requests than needed."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._rows = comparison.rows

    def partings(self) -> Iterator[Parting]:
        """The rows in which one run does, or says, something else."""
        beside = {id(row) for row in self.beside}
        for row in self._rows:
            if row.a is None or row.b is None:
                if id(row) not in beside:
                    weight = PartingWeight.EXTRA if row.extra else PartingWeight.DECISIVE
                    yield Parting(row=row, weight=weight, asks_for_tools=row.extra)
                continue
            decided = self._comparison.decided(row)
            if decided.weight is not Weight.SAME:
                weight = PartingWeight.DECISIVE if decided.weight is Weight.DECISIVE else PartingWeight.PROSE
                if self._is_host_answer(row) and not self._comparison.exact_words:
                    weight = PartingWeight.ANSWERED
                asks = bool(self._comparison.b.decision(row.b).calls)
                yield Parting(row=row, weight=weight, changes=decided.changes, asks_for_tools=asks)
            elif len(row.a.failures) != len(row.b.failures):
                yield Parting(row=row, weight=PartingWeight.RETRIED)

    def _is_host_answer(self, row: Row) -> bool:
        """Whether a host that is no model answered both runs, and in both a model was asked after it."""
        if _is_call(row) or row.a is None or row.b is None or row.a.failed or row.b.failed:
            return False
        return all(move.index < last for move, last in zip((row.a, row.b), self._last_calls, strict=True))

    @cached_property
    def _last_calls(self) -> tuple[int, int]:
        """The last step of either run in which a model was asked for words or tools."""
        runs = self._comparison.a, self._comparison.b
        first, second = (max((move.index for move in run.moves if _converses(move)), default=0) for run in runs)
        return first, second

    def first(self, partings: Sequence[Parting]) -> Row | None:
        """The first row in which one run does something else."""
        decisive = [one.row for one in partings if one.weight is PartingWeight.DECISIVE]
        # What a host answers comes before what the model makes of it, but it matters only if it does.
        first = next((row for row in decisive if _is_call(row)), decisive[0] if decisive else None)
        return self._first_words(partings, first) or first

    def _first_words(self, partings: Sequence[Parting], first: Row | None) -> Row | None:
        """The call right before the first decision that differs, if it is the first thing of all that was said
        otherwise and asks about something else: no word of the two arguments is shared. Runs that say the same word for
        word until then part there; where wording varies anyway, they do not."""
        prose = next((one for one in partings if one.weight is PartingWeight.PROSE), None)
        if first is None or prose is None or not all(_asks_of_another_thing(one) for one in prose.changes):
            return None
        same = [row for row in self._rows if any(a is not None and a == b for a, b in _threads(row, first))]
        at = next((number for number, row in enumerate(same) if row is first), 0)
        return prose.row if at and same[at - 1] is prose.row else None

    def difference(self, *, words: bool) -> Row | None:
        """The first row in which something else is asked, or with ``words`` said, where nothing was done otherwise."""
        pairs = (row for row in self._rows if row.a is not None and row.b is not None)
        if words:
            return next((row for row in pairs if not self._comparison.relation(row).alike), None)
        return next((row for row in pairs if self._asks_otherwise(row)), None)

    def _asks_otherwise(self, row: Row) -> bool:
        """Whether the agent asks something else. What tools answered does not count where all decide the same, nor does
        what follows from other words of a model."""
        changed = self._comparison.relation(row).changed & _ASKED
        return bool(changed) and not (changed <= _FROM_WORDS and self._follows_words(row))

    def _follows_words(self, row: Row) -> bool:
        """Whether a conversation was begun, or its history edited, with words that a model put otherwise."""
        assert row.a is not None and row.b is not None, "two moves are compared"
        run = self._comparison.a
        if row.a is run.moves[0]:
            return False
        differences = [one for one in self._comparison.differences(row) if one.aspect in _FROM_WORDS and not one.noise]
        if row.a.sketch is None or row.b.sketch is None:
            return all(_is_same_body(one.before or "", one.after or "") for one in differences)
        goes_on = row.a.thread is not None and row.a not in run.thread(row.a.thread)[:1]
        if goes_on and any(one.aspect is Aspect.INPUT for one in differences):
            return False  # a person spoke
        return all(_in_other_words(one.before or "", one.after or "") for one in differences)

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
            if row.a is not None and row.b is not None and self._says_the_same(row, row.a, row.b):
                return row
        return None

    def _says_the_same(self, row: Row, a: Move, b: Move) -> bool:
        if a.sketch is None or b.sketch is None:
            return a.step.request.match_key == b.step.request.match_key and a.said == b.said
        if a.sketch.turn == b.sketch.turn and a.said == b.said:
            return True
        asks = self._comparison.a.decision(a).calls
        return bool(asks) and self._comparison.decided(row).weight is not Weight.DECISIVE

    @cached_property
    def beside(self) -> tuple[Row, ...]:
        """Moves of conversations, or to addresses, that one run has alone and that ran beside others."""
        return tuple(row for row in self._rows if not row.shared and self._is_beside(row))

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


def _in_other_words(before: str, after: str) -> bool:
    decided = compare_decisions(Decision(text=before), Decision(text=after))
    return decided.weight is not Weight.DECISIVE


def _threads(row: Row, other: Row) -> Iterator[tuple[int | None, int | None]]:
    """The conversation of both rows in either run."""
    return zip(row.thread, other.thread, strict=True)


def _asks_of_another_thing(change: Change) -> bool:
    stems = [facts_of(text or "").stems for text in (change.before, change.after)]
    return change.kind is ChangeKind.ARGUMENT and stems[0].isdisjoint(stems[1])


def _is_same_body(before: str, after: str) -> bool:
    """Whether two JSON bodies of plain requests say the same in other words, as the arguments of a tool would."""
    try:
        old, new = (_less_vectors(json.loads(text)) for text in (before, after))
    except (ValueError, RecursionError):
        return False
    return all(one.weight is not Weight.DECISIVE for one in value_changes(old, new, ""))


def _less_vectors(value: object) -> object:
    """Without long lists of numbers, which stand for a text that a model embedded."""
    if isinstance(value, dict):
        return {key: _less_vectors(inner) for key, inner in value.items()}
    if isinstance(value, list):
        vector = len(value) >= _VECTOR and all(isinstance(one, int | float) for one in value)
        return None if vector else [_less_vectors(inner) for inner in value]
    return value


_VECTOR = 8
"""Numbers in a row that are taken for a vector."""


def _converses(move: Move) -> bool:
    return move.sketch is not None and move.thread is not None


def _is_call(row: Row) -> bool:
    return any(move.sketch is not None for move in row.moves)
