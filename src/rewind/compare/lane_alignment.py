"""Which move of one conversation belongs to which of another; the theory is in :mod:`rewind.compare.align`."""

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property

from rewind.compare.decision import CallDecision, Decision, Weight, compare_decisions
from rewind.compare.lanes import Lane
from rewind.compare.run import ComparedRun, Move
from rewind.compare.tool_effects import may_change, only_reads
from rewind.conversation.sketch import NOTHING

Pair = tuple[Move | None, Move | None]
_FEW_PAIRS = 64
"""Of a stretch in which all pairs of moves are weighed."""
_LATEST = 8
"""Calls of a tool that a later one is compared with, to see whether it asks the same in other words."""
_MOST_EXTRA = 2
"""Moves in a row that count as extra ones."""


class LaneAlignment:
    """Two conversations that belong together."""

    def __init__(self, a: ComparedRun, b: ComparedRun, lane_a: Lane, lane_b: Lane) -> None:
        self._a, self._b = a, b
        self._lanes = lane_a, lane_b
        self._aside: set[int] = set()
        self._alike: dict[tuple[int, int], bool] = {}
        self._run_of = {id(move): run for run, lane in ((a, lane_a), (b, lane_b)) for move in lane}

    def pairs(self) -> Iterator[tuple[Move | None, Move | None, bool]]:
        """Moves that belong together, or a move alone; and whether it is an extra one."""
        pairs: list[Pair] = []
        for ours, theirs in _between_matches(*self._lanes, _exact) if all(self._lanes) else [self._lanes]:
            pairs += self._by_decision(ours, theirs)
        return self._settled(list(_moved(pairs)))

    def _by_decision(self, left: Lane, right: Lane) -> Iterator[Pair]:
        """What digests do not match: by what is decided."""
        if len(left) == len(right) == 1 or not left or not right:
            yield from in_turn(left, right)
            return
        gaps = [(left, right)]
        for token in (self._heard_and_decided, _said_by_people, self._asked_for):
            gaps = [gap for ours, theirs in gaps for gap in _between_matches(ours, theirs, token)]
        exact = True
        for ours, theirs in gaps:
            yield from self._less_repeats(ours, theirs, in_other_words=not exact)
            exact = False

    def _less_repeats(self, left: Lane, right: Lane, *, in_other_words: bool) -> Iterator[Pair]:
        """What a run asks a second time is set aside, if what is left goes on the same way. Where the runs word things
        otherwise anyway, what is left need not: a model that is about to part may look again, as any."""
        if len(left) * len(right) > _FEW_PAIRS:
            yield from self._in_small_parts(left, right)
            return
        if len(left) == len(right) and all(map(self._in_step, left, right)):
            yield from zip(left, right, strict=True)
            return
        kept = [[move for move in lane if not self._repeats(move)] for lane in (left, right)]
        few = all(len(lane) - len(rest) <= _MOST_EXTRA for lane, rest in zip((left, right), kept, strict=True))
        alike = len(kept[0]) == len(kept[1]) and all(map(self._most_extra, *kept))
        if not few or kept == [left, right] or not (alike or (in_other_words and all(kept))):
            yield from self._in_small_parts(left, right)
            return
        sides = iter(left), iter(right)
        for pair in self._in_small_parts(*kept):
            for side, move in enumerate(pair):
                yield from self._set_aside(sides[side], move, side) if move is not None else ()
            yield pair
        for side in (0, 1):
            yield from self._set_aside(sides[side], None, side)

    def _set_aside(self, moves: Iterator[Move], until: Move | None, side: int) -> Iterator[Pair]:
        """The moves before that one; nothing where it is none of them, and all of them where it is the end."""
        for move in moves:
            if move is until:
                return
            self._aside.add(id(move))
            yield _as_pair(move, None, side)

    def _in_small_parts(self, left: Lane, right: Lane) -> Iterator[Pair]:
        few = len(left) * len(right) <= _FEW_PAIRS
        for ours, theirs in [(left, right)] if few else _between_matches(left, right, self._tools_asked):
            yield from self._by_likeness(ours, theirs)

    def _by_likeness(self, left: Lane, right: Lane) -> Iterator[Pair]:
        """The pairs that are most alike together, in order; a stretch without an end is paired one by one."""
        shared = min(len(left), len(right))
        if not shared or len(left) * len(right) > _FEW_PAIRS or len(left) == len(right) == 1:
            yield from in_turn(left, right)
            return
        best = [[0.0] * (len(right) + 1) for _ in range(len(left) + 1)]
        for i in range(len(left), -1, -1):
            for j in range(len(right), -1, -1):
                if i == len(left) or j == len(right):
                    best[i][j] = -float(len(left) - i + len(right) - j)
                    continue
                both = best[i + 1][j + 1] + self._likeness(left[i], right[j])
                best[i][j] = max(both, best[i + 1][j] - 1, best[i][j + 1] - 1)
        i = j = 0
        while i < len(left) and j < len(right):
            if best[i][j] == best[i + 1][j + 1] + self._likeness(left[i], right[j]):
                yield left[i], right[j]
                i, j = i + 1, j + 1
            elif best[i][j] == best[i + 1][j] - 1:
                yield left[i], None
                i += 1
            else:
                yield None, right[j]
                j += 1
        yield from in_turn(left[i:], right[j:])

    def _likeness(self, a: Move, b: Move) -> float:
        """Deciding the same outweighs hearing the same."""
        one, other = self._decision(a), self._decision(b)
        heard = 3.0 if _heard(a) == _heard(b) else 0.0
        same_tools = bool(one.calls) and one.tools == other.tools
        texts = not one.calls and not other.calls
        if one.signature == other.signature or (texts and self._in_step(a, b)):
            return 6.0 + heard
        return heard + (4.0 if same_tools else 0.0)

    def _settled(self, pairs: Sequence[Pair]) -> Iterator[tuple[Move | None, Move | None, bool]]:
        """Moves that only one run made before it did the same as the other: they are extra where they only read. If
        they do more, the runs parted at the first of them, where both had heard the same."""
        at = 0
        while at < len(pairs):
            left, right = pairs[at]
            aside = id(left or right) in self._aside
            if (left is not None and right is not None) or aside:
                yield left, right, aside
                at += 1
                continue
            side = 0 if left is not None else 1
            end = at
            while end < len(pairs) and pairs[end][1 - side] is None and id(pairs[end][side]) not in self._aside:
                end += 1
            alone = [move for move in (pair[side] for pair in pairs[at:end]) if move is not None]
            then = pairs[end] if end < len(pairs) else (None, None)
            ours, theirs = then[side], then[1 - side]
            extra = len(alone) <= self._most_extra(*then)
            extra = extra and all(self._is_harmless(move, side) for move in alone)
            if not extra and ours is not None and theirs is not None and _stand_alike(alone[0], theirs, then):
                yield (*_as_pair(alone[0], theirs, side), False)
                alone = [*alone[1:], ours]
                end += 1
            for move in alone:
                yield (*_as_pair(move, None, side), extra)
            at = end

    def _most_extra(self, a: Move | None, b: Move | None) -> int:
        """How many moves may be extra before these two: none if they decide otherwise, and few before mere words."""
        if a is None or b is None:
            return 0
        one, other = self._decision(a), self._decision(b)
        if one.calls and one.tools == other.tools:
            return _MOST_EXTRA
        return 1 if self._in_step(a, b) else 0

    def _in_step(self, a: Move, b: Move) -> bool:
        """Whether both decide the same, in whatever words."""
        key = a.index, b.index
        if key not in self._alike:
            decided = compare_decisions(self._decision(a), self._decision(b))
            self._alike[key] = decided.weight is not Weight.DECISIVE
        return self._alike[key]

    def _is_harmless(self, move: Move, side: int) -> bool:
        """A read more of the second run; what that run leaves out must have been asked before."""
        return self._repeats(move) or (side == 1 and self._reads(move))

    def _reads(self, move: Move) -> bool:
        answered = self._run_of[id(move)].answered(move.index)
        return answered is not None and bool(answered.tool_uses) and all(map(only_reads, answered.tool_uses))

    def _repeats(self, move: Move) -> bool:
        """Whether it asks once more what its run asked before, of tools that do not say that they change things."""
        calls = self._decision(move).calls
        return bool(calls) and all(not may_change(call.tool) and self._was_asked(call, move) for call in calls)

    def _was_asked(self, call: CallDecision, move: Move) -> bool:
        asked = self._asked[0 if self._run_of[id(move)] is self._a else 1][call.tool]
        before = asked[: bisect_left(asked, move.index, key=lambda one: one[0])]
        if any(one.signature == call.signature for _, one in before):
            return True
        alone = Decision(calls=(call,))
        latest = (Decision(calls=(one,)) for _, one in before[-_LATEST:])
        return any(compare_decisions(one, alone).weight is not Weight.DECISIVE for one in latest)

    @cached_property
    def _asked(self) -> tuple[dict[str, list[tuple[int, CallDecision]]], dict[str, list[tuple[int, CallDecision]]]]:
        """For either run: tool → the calls of this conversation that ask for it, each with its step."""
        found = (
            defaultdict[str, list[tuple[int, CallDecision]]](list),
            defaultdict[str, list[tuple[int, CallDecision]]](list),
        )
        for lane, calls in zip(self._lanes, found, strict=True):
            for move in lane:
                for call in self._decision(move).calls:
                    calls[call.tool].append((move.index, call))
        return found

    def _decision(self, move: Move) -> Decision:
        return self._run_of[id(move)].decision(move)

    def _asked_for(self, move: Move) -> Hashable:
        """The tools that the answer asks for; texts are compared one by one."""
        decision = self._decision(move)
        return decision.signature if decision.calls else id(move)

    def _tools_asked(self, move: Move) -> Hashable:
        decision = self._decision(move)
        return decision.tools if decision.calls else id(move)

    def _heard_and_decided(self, move: Move) -> Hashable:
        """What people said is told by its words, what tools said by what the model makes of it."""
        assert move.sketch is not None, "conversations are calls to models"
        return (move.sketch.turn if move.sketch.calls == NOTHING else ""), self._decision(move).signature


def _as_pair(move: Move, other: Move | None, side: int) -> Pair:
    return (move, other) if side == 0 else (other, move)


def _stand_alike(first: Move, partner: Move, then: Pair) -> bool:
    """Whether the first move that one run made alone stands where the other run's next one does: both heard the same;
    or what their tools said, or what people said, and the next moves of both runs did not."""
    assert then[0] is not None and then[1] is not None, "two moves are paired"
    if _heard(first) == _heard(partner):
        return True
    return _brings_results(first) == _brings_results(partner) and _heard(then[0]) != _heard(then[1])


def in_turn(left: Lane, right: Lane) -> Iterator[Pair]:
    shared = min(len(left), len(right))
    yield from zip(left[:shared], right[:shared], strict=True)
    yield from ((move, None) for move in left[shared:])
    yield from ((None, move) for move in right[shared:])


def _exact(move: Move) -> Hashable:
    return _heard(move), move.said


def _heard(move: Move) -> Hashable:
    assert move.sketch is not None, "conversations are calls to models"
    return move.sketch.turn, move.sketch.calls


def _said_by_people(move: Move) -> Hashable:
    """What tools said is no sign: one run may have asked one more."""
    assert move.sketch is not None, "conversations are calls to models"
    return id(move) if move.sketch.calls != NOTHING or move.sketch.turn == NOTHING else move.sketch.turn


def _brings_results(move: Move) -> bool:
    return move.sketch is not None and move.sketch.calls != NOTHING


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
    kept = set(longest_rise([j for _, j in both]))
    return [pair for pair in both if pair[1] in kept]


def longest_rise(numbers: Sequence[int]) -> list[int]:
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


def _whole(move: Move) -> Hashable:
    return move.sketch and (move.sketch.turn, move.sketch.history)
