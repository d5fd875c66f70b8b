"""Which move of one run belongs to which of the other.

Theory. Moves are not compared by number: one retry more would put every later step out of step. They stand in lanes:
a lane is a conversation, or all calls of one kind to one address. Lanes of the two runs are paired by what they begin
with, so it does not matter in which order parallel conversations arrive, nor whether there is one more of them.
Within a pair of lanes, moves are matched that say the same to the model (``turn``), in order: the common beginning and
end, then turns that occur once in both, as in a patience diff. What is left between two matches is paired in order:
there a move *changed*. What has no partner was made by one run only. Calls without a conversation have no order that
matters, and are matched by their match keys wherever they stand.

All of it works on digests, and takes time in proportion to the number of moves, but for sorting.
"""

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from rewind.compare.run import Move
from rewind.conversation.sketch import NOTHING, Sketch
from rewind.dataclass import dataclass
from rewind.match.call import host_class

Lane = list[Move]
Role = Callable[[Move], Hashable]
"""Who is spoken to: the system prompt of a call, less ids and times; ``None`` where there is none."""
Pair = tuple[Move | None, Move | None]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One move of each run, or one that only one of them made. Equal only to itself."""

    a: Move | None
    b: Move | None
    shared: bool = True
    """Whether both runs have the conversation, or the address, at all."""

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
        return len(order) - len(_longest_rise(order))


def align(
    a: Sequence[Move], b: Sequence[Move], role_in_a: Role | None = None, role_in_b: Role | None = None
) -> Alignment:
    """The moves of two runs, side by side. The roles are asked for where digests do not pair a conversation."""
    pairs: list[Row] = []
    lanes = paired_lanes(conversations(a), conversations(b), role_in_a, role_in_b)
    for lane_a, lane_b in lanes:
        shared = bool(lane_a and lane_b)
        pairs += [Row(left, right, shared) for left, right in _aligned(lane_a, lane_b)]
    pairs = list(_reunited(pairs))
    ours, theirs = addresses(a), addresses(b)
    for address in dict.fromkeys([*ours, *theirs]):
        lane_a, lane_b = ours.get(address, []), theirs.get(address, [])
        shared = bool(lane_a and lane_b)
        pairs += [Row(left, right, shared) for left, right in _by_key(lane_a, lane_b)]
    return Alignment(tuple(_in_order(pairs)))


# ── lanes ────────────────────────────────────────────────────────────────────────────────────────────────────────


def conversations(moves: Iterable[Move]) -> list[Lane]:
    lanes: dict[int, Lane] = {}
    for move in moves:
        if move.thread is not None:
            lanes.setdefault(move.thread, []).append(move)
    return _mended(list(lanes.values()))


def _mended(lanes: list[Lane]) -> list[Lane]:
    """A conversation that begins in its midst was torn when the agent cut its history: it goes on from the latest one
    with that system prompt that was over by then. (Examples that several conversations begin with are not history.)"""
    begun = Counter(_first(lane).history for lane in lanes)
    whole: list[Lane] = []
    latest: dict[str, Lane] = {}
    for lane in lanes:
        first = _first(lane)
        before = latest.get(first.system)
        torn = first.history != NOTHING and begun[first.history] == 1
        if torn and before is not None and before[-1].step.ended <= lane[0].step.request.ts:
            before += lane
        else:
            whole.append(lane)
            latest[first.system] = lane
    return whole


def addresses(moves: Iterable[Move]) -> dict[Hashable, Lane]:
    lanes: dict[Hashable, Lane] = {}
    for move in moves:
        if move.thread is None:
            head = move.step.request.head
            address = (move.kind, head.method, host_class(head.host), head.path)
            lanes.setdefault(address, []).append(move)
    return lanes


def paired_lanes(
    ours: list[Lane], theirs: list[Lane], role_in_a: Role | None, role_in_b: Role | None
) -> Iterator[tuple[Lane, Lane]]:
    """By what they begin with, the surest sign first; each lane is given away once."""
    left, right = list(ours), list(theirs)
    signs = [(sign, sign) for sign in _SIGNS]
    if role_in_a is not None and role_in_b is not None:
        signs += [(lambda lane: role_in_a(lane[0]), lambda lane: role_in_b(lane[0]))]
    for sign, sign_there in signs:
        if not left or not right:
            break
        waiting: dict[Hashable, deque[Lane]] = defaultdict(deque)
        for lane in right:
            waiting[sign_there(lane)].append(lane)
        unpaired, taken = [], set()
        for lane in left:
            value = sign(lane)
            if value is not None and waiting[value]:
                partner = waiting[value].popleft()
                taken.add(id(partner))
                yield lane, partner
            else:
                unpaired.append(lane)
        left, right = unpaired, [lane for lane in right if id(lane) not in taken]
    if left and right and (left[0] is ours[0] or right[0] is theirs[0]):
        # The conversation that a run begins with is its main one, however much it was changed.
        yield left.pop(0), right.pop(0)
    yield from ((lane, []) for lane in left)
    yield from (([], lane) for lane in right)


def _first(lane: Lane) -> Sketch:
    assert lane[0].sketch is not None, "conversations are calls to models"
    return lane[0].sketch


def _whole_beginning(lane: Lane) -> Hashable:
    first = _first(lane)
    return first.turn, first.history, first.system, first.tools


def _beginning(lane: Lane) -> Hashable:
    first = _first(lane)
    return (first.turn, first.system) if first.turn != NOTHING else None


def _first_words(lane: Lane) -> Hashable:
    turn = _first(lane).turn
    return turn if turn != NOTHING else None


def _speaker(lane: Lane) -> Hashable:
    """Who is spoken to, and how long."""
    first = _first(lane)
    return (first.system, first.tools, len(lane)) if first.system != NOTHING else None


def _role(lane: Lane) -> Hashable:
    first = _first(lane)
    return first.system if first.system != NOTHING else None


def _toolbox(lane: Lane) -> Hashable:
    first = _first(lane)
    return first.tools if first.tools != NOTHING else None


_SIGNS: tuple[Callable[[Lane], Hashable], ...] = (_whole_beginning, _beginning, _first_words, _speaker, _role, _toolbox)


# ── moves of one lane ────────────────────────────────────────────────────────────────────────────────────────


def _aligned(a: Lane, b: Lane) -> Iterator[Pair]:
    """Two conversations: by turn, then in order."""
    rows: list[Pair] = []
    for left, right in _between_matches(a, b, _turn):
        rows += _in_turn(left, right)
    return _moved(rows)


def _in_turn(left: Lane, right: Lane) -> Iterator[Pair]:
    shared = min(len(left), len(right))
    yield from zip(left[:shared], right[:shared], strict=True)
    yield from ((move, None) for move in left[shared:])
    yield from ((None, move) for move in right[shared:])


def _turn(move: Move) -> Hashable:
    assert move.sketch is not None, "conversations are calls to models"
    return move.sketch.turn, move.sketch.calls


def _between_matches(a: Lane, b: Lane, token: Callable[[Move], Hashable]) -> Iterator[tuple[Lane, Lane]]:
    """Pairs of runs: one move on each side where they match, else what stands between two matches."""
    pending = [(a, b)]
    while pending:
        left, right = pending.pop()
        start = _common(left, right, token)
        end = _common(left[start:][::-1], right[start:][::-1], token)
        yield from (([one], [other]) for one, other in zip(left[:start], right[:start], strict=True))
        middle = left[start : len(left) - end], right[start : len(right) - end]
        tail = list(zip(left[len(left) - end :], right[len(right) - end :], strict=True))
        anchors = _anchors(*middle, token)
        if not anchors:
            if middle[0] or middle[1]:
                yield middle
            yield from (([one], [other]) for one, other in tail)
            continue
        # Pushed in reverse: what stands first is taken first.
        pending += [([one], [other]) for one, other in reversed(tail)]
        pending += reversed(list(_cut(middle[0], middle[1], anchors)))


def _cut(left: Lane, right: Lane, anchors: Sequence[tuple[int, int]]) -> Iterator[tuple[Lane, Lane]]:
    at_left = at_right = 0
    for i, j in anchors:
        if left[at_left:i] or right[at_right:j]:
            yield left[at_left:i], right[at_right:j]
        yield [left[i]], [right[j]]
        at_left, at_right = i + 1, j + 1
    if left[at_left:] or right[at_right:]:
        yield left[at_left:], right[at_right:]


def _common(left: Sequence[Move], right: Sequence[Move], token: Callable[[Move], Hashable]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    different = (at for at, (one, other) in pairs if token(one) != token(other))
    return next(different, min(len(left), len(right)))


def _anchors(left: Lane, right: Lane, token: Callable[[Move], Hashable]) -> list[tuple[int, int]]:
    """Moves that occur once on either side, in the longest run that both sides have in the same order."""
    count_left, count_right = Counter(map(token, left)), Counter(map(token, right))
    where = {value: at for at, value in enumerate(map(token, right)) if count_right[value] == 1}
    both = [
        (at, where[value]) for at, value in enumerate(map(token, left)) if count_left[value] == 1 and value in where
    ]
    kept = set(_longest_rise([j for _, j in both]))
    return [pair for pair in both if pair[1] in kept]


def _longest_rise(numbers: Sequence[int]) -> list[int]:
    """A longest increasing run of distinct numbers, found by patience sorting."""
    tops: list[int] = []
    at_top: list[int] = []
    before: list[int | None] = []
    for at, number in enumerate(numbers):
        pile = bisect_left(tops, number)
        before.append(at_top[pile - 1] if pile else None)
        tops[pile : pile + 1] = [number]
        at_top[pile : pile + 1] = [at]
    rise: list[int] = []
    here = at_top[-1] if at_top else None
    while here is not None:
        rise.append(numbers[here])
        here = before[here]
    return rise[::-1]


def _moved(rows: Sequence[Pair]) -> Iterator[Pair]:
    """Calls that were made side by side on one history may arrive in another order: they are one move all the same."""
    alone: dict[Hashable, deque[Move]] = defaultdict(deque)
    for left, right in rows:
        if left is None and right is not None:
            alone[_whole(right)].append(right)
    partners = {
        left.index: alone[_whole(left)].popleft()
        for left, right in rows
        if right is None and left is not None and alone[_whole(left)]
    }
    taken = {move.index for move in partners.values()}
    for left, right in rows:
        if left is not None:
            yield left, partners.get(left.index, right)
        elif right is not None and right.index not in taken:
            yield left, right


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


def _whole(move: Move) -> Hashable:
    return move.sketch and (move.sketch.turn, move.sketch.history)


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
    yield from _in_turn(left, [move for move in b if move.index not in taken])


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
