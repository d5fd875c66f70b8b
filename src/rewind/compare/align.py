"""Which move of one run belongs to which of the other.

Theory. Moves are not compared by number: one retry more would put every later step out of step. They stand in lanes,
and lanes of the two runs are paired first (:mod:`rewind.compare.lanes`), so it does not matter in which order parallel
conversations arrive, nor whether there is one more of them.

Within a pair of lanes, moves are matched that hear and say the same, by their digests, in order: the common beginning
and end, then what occurs once in both, as in a patience diff. Models seldom repeat themselves, so what is left between
two matches is matched by what is *decided*: the tools and the arguments that matter, not the words. Small stretches
that are still left are paired so that most is alike; long ones in order. What has no partner was made by one run only:
an extra read, if both decide the same right behind it; else the runs part there, and the move is paired with what the
other run decided when it had heard the same. Calls without a conversation have no order that matters, and are matched
by their match keys wherever they stand.

It takes time in proportion to the number of moves, but for sorting; answers are read where digests differ.
"""

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Hashable, Iterator, Sequence

from rewind.compare.lane_alignment import LaneAlignment, Pair, in_turn, longest_rise
from rewind.compare.lanes import Lane, addresses, paired_lanes
from rewind.compare.run import ComparedRun, Move
from rewind.conversation.sketch import NOTHING
from rewind.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One move of each run, or one that only one of them made. Equal only to itself."""

    a: Move | None
    b: Move | None
    shared: bool = True
    """Whether both runs have the conversation, or the address, at all."""
    extra: bool = False
    """Made by one run only, and nothing but read something: right behind it both decide the same again."""

    @property
    def moves(self) -> tuple[Move, ...]:
        return tuple(move for move in (self.a, self.b) if move is not None)

    @property
    def indexes(self) -> tuple[int | None, int | None]:
        """The step of either run."""
        return (None if self.a is None else self.a.index), (None if self.b is None else self.b.index)

    @property
    def thread(self) -> tuple[int | None, int | None]:
        """The conversation in either run."""
        return (None if self.a is None else self.a.thread), (None if self.b is None else self.b.thread)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Both runs side by side."""

    rows: tuple[Row, ...]
    """In the order of the second run; what only the first did stands behind what went before it."""

    @property
    def reordered(self) -> int:
        """How many moves of the second run came earlier than the first run's order would have them."""
        order = [row.a.index for row in self.rows if row.a is not None and row.b is not None]
        return len(order) - len(longest_rise(order))


def align(a: ComparedRun, b: ComparedRun) -> Alignment:
    """The moves of two runs, side by side."""
    rows: list[Row] = []
    for lane_a, lane_b in paired_lanes(a, b):
        shared = bool(lane_a and lane_b)
        pairs = LaneAlignment(a, b, lane_a, lane_b).pairs()
        rows += [Row(left, right, shared, extra) for left, right, extra in pairs]
    rows = list(_reunited(list(_the_same_exchanges(rows))))
    ours, theirs = addresses(a), addresses(b)
    for address in dict.fromkeys([*ours, *theirs]):
        lane_a, lane_b = ours.get(address, []), theirs.get(address, [])
        shared = bool(lane_a and lane_b)
        rows += [Row(left, right, shared) for left, right in _by_key(lane_a, lane_b)]
    return Alignment(tuple(_in_order(rows)))


def _the_same_exchanges(rows: Sequence[Row]) -> Iterator[Row]:
    """The very same request with the very same answer is one move, whichever conversation it was counted to: where many
    begin alike, which of them a call goes on from depends on their order."""
    loose = [row for row in rows if row.a is None or row.b is None or _exchange(row.a) != _exchange(row.b)]
    waiting: dict[Hashable, deque[Move]] = defaultdict(deque)
    for row in loose:
        if row.b is not None:
            waiting[_exchange(row.b)].append(row.b)
    partners = {
        row.a.index: waiting[_exchange(row.a)].popleft()
        for row in loose
        if row.a is not None and waiting.get(_exchange(row.a))
    }
    taken = {move.index for move in partners.values()}
    for row in rows:
        a, b = row.a, row.b
        if a is not None and a.index in partners:
            yield Row(a, partners[a.index])
            a = None
        if b is not None and b.index in taken:
            b = None
        if (a, b) == (row.a, row.b):
            yield row
        elif a is not None or b is not None:
            yield Row(a, b, row.shared)


def _exchange(move: Move) -> Hashable:
    return move.step.request.match_key, move.said


def _reunited(rows: Sequence[Row]) -> Iterator[Row]:
    """A call whose agent forgot all that was said before begins a conversation of its own; by what is said in it, and
    to whom, it is still the move that the other run makes in the midst of one."""
    alone: dict[Hashable, deque[Row]] = defaultdict(deque)
    for row in rows:
        if row.a is None and row.b is not None and (words := _words_to(row.b)) is not None:
            alone[words].append(row)
    partners: dict[int, Row] = {}
    for row in rows:
        waiting = alone.get(_words_to(row.a)) if row.b is None and row.a is not None else None
        if waiting and row.shared != waiting[0].shared:
            partners[id(row)] = waiting.popleft()
    taken = {id(row) for row in partners.values()}
    for row in rows:
        if (partner := partners.get(id(row))) is not None:
            yield Row(row.a, partner.b)
        elif id(row) not in taken:
            yield row


def _words_to(move: Move) -> Hashable:
    sketch = move.sketch
    return None if sketch is None or sketch.turn == NOTHING else (sketch.turn, sketch.calls, sketch.system)


def _by_key(a: Lane, b: Lane) -> Iterator[Pair]:
    """Calls to one address: by match key wherever they stand, the rest in order."""
    waiting: dict[Hashable, deque[Move]] = defaultdict(deque)
    for move in b:
        waiting[move.step.request.match_key].append(move)
    left, taken = [], set()
    for move in a:
        if same := waiting[move.step.request.match_key]:
            partner = same.popleft()
            taken.add(partner.index)
            yield move, partner
        else:
            left.append(move)
    yield from in_turn(left, [move for move in b if move.index not in taken])


# ── the order of rows ────────────────────────────────────────────────────────────────────────────────────────


def _in_order(rows: Sequence[Row]) -> list[Row]:
    """By the second run; what only the first run did follows the last thing that both did before it."""
    partners = sorted((row.a.index, row.b.index) for row in rows if row.a is not None and row.b is not None)
    indexes = [index for index, _ in partners]

    def place(row: Row) -> tuple[float, int]:
        if row.b is not None:
            return row.b.index, 0
        assert row.a is not None, "a row has a move"
        at = bisect_left(indexes, row.a.index)
        return (partners[at - 1][1] + 0.5 if at else 0.0), row.a.index

    return sorted(rows, key=place)
