"""The lanes of two runs, and which of one run belongs to which of the other.

A lane is a conversation, or all calls of one kind to one address. Conversations are paired by what they begin with, the
surest sign first: the very same request (its match key says model, settings and words), and the same answers to it;
then who is spoken to and in which words. Where a model started the conversation, it was told the same in other words:
there the words they share decide, the rare ones most, and what is done in them.

Every step takes time in proportion to the number of lanes, but for sorting.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from rewind.compare.run import ComparedRun, Move
from rewind.compare.texts import without_noise
from rewind.compare.turn import turn_start
from rewind.conversation.context import parts_text
from rewind.conversation.sketch import NOTHING, Sketch
from rewind.match.call import host_class

Lane = list[Move]
LanePair = tuple[Lane, Lane]
_RARE = 12
"""Lanes of one side that share a word or a deed, at most: what more of them share tells none from the others."""
_LONGEST = 4_000
"""Characters of the words that a conversation begins with that are looked at."""
_WORD = re.compile(r"\w+")


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


def addresses(run: ComparedRun) -> dict[Hashable, Lane]:
    """Calls without a conversation, by whom they ask; ids in a path are one id."""
    lanes: dict[Hashable, Lane] = {}
    for move in run.moves:
        if move.thread is None:
            head = move.step.request.head
            address = (move.kind, head.method, host_class(head.host), run.path(move))
            lanes.setdefault(address, []).append(move)
    return lanes


def paired_lanes(a: ComparedRun, b: ComparedRun) -> Iterator[LanePair]:
    """The conversations of both runs; each lane is given away once."""
    pairing = _Pairing(conversations(a.moves), conversations(b.moves))
    for sign in (_same_answers, _same_request, _same_call, _whole_beginning, _beginning, _first_words):
        yield from pairing.by(sign)
    # Bodies are read only for what digests could not pair.
    views = _LaneView(a), _LaneView(b)
    yield from pairing.alike(_system, _system, views)
    yield from pairing.alike(views[0].role, views[1].role, views)
    yield from pairing.alike(_toolbox, _toolbox, views)
    yield from pairing.alike(_anybody, _anybody, views, in_order=False)
    yield from pairing.rest()


class _Pairing:
    """Lanes of two runs that are still without a partner."""

    def __init__(self, left: list[Lane], right: list[Lane]) -> None:
        self._first = left[:1], right[:1]
        self._left, self._right = left, right

    def by(self, sign: Callable[[Lane], Hashable]) -> Iterator[LanePair]:
        """Lanes with the same sign, in order."""
        for ours, theirs in self._groups(sign, sign):
            yield from self._taken(zip(ours, theirs, strict=False))

    def alike(
        self,
        sign: Callable[[Lane], Hashable],
        sign_there: Callable[[Lane], Hashable],
        views: tuple["_LaneView", "_LaneView"],
        *,
        in_order: bool = True,
    ) -> Iterator[LanePair]:
        """Lanes with the same sign: those that share most first; then, if ``in_order``, what is left, in order."""
        for ours, theirs in self._groups(sign, sign_there):
            pairs = []
            if len(ours) > 1 or len(theirs) > 1 or not in_order:
                pairs = _most_alike([*map(views[0].features, ours)], [*map(views[1].features, theirs)])
            taken = {i for i, _ in pairs}, {j for _, j in pairs}
            yield from self._taken((ours[i], theirs[j]) for i, j in pairs)
            if in_order:
                rest = [
                    [lane for at, lane in enumerate(side) if at not in known]
                    for side, known in zip((ours, theirs), taken, strict=True)
                ]
                yield from self._taken(zip(*rest, strict=False))

    def rest(self) -> Iterator[LanePair]:
        """The conversation that a run begins with is its main one, however much it was changed; others are alone."""
        left, right = self._left, self._right
        if left and right and ([left[0]] == self._first[0] or [right[0]] == self._first[1]):
            yield left[0], right[0]
            left, right = left[1:], right[1:]
        yield from ((lane, []) for lane in left)
        yield from (([], lane) for lane in right)

    def _groups(
        self, sign: Callable[[Lane], Hashable], sign_there: Callable[[Lane], Hashable]
    ) -> list[tuple[list[Lane], list[Lane]]]:
        if not self._left or not self._right:
            return []
        here, there = defaultdict[Hashable, list[Lane]](list), defaultdict[Hashable, list[Lane]](list)
        for lane in self._left:
            here[sign(lane)].append(lane)
        for lane in self._right:
            there[sign_there(lane)].append(lane)
        return [(lanes, there[value]) for value, lanes in here.items() if value is not None and value in there]

    def _taken(self, pairs: Iterable[LanePair]) -> list[LanePair]:
        found = list(pairs)
        gone = {id(lane) for pair in found for lane in pair}
        if gone:
            self._left = [lane for lane in self._left if id(lane) not in gone]
            self._right = [lane for lane in self._right if id(lane) not in gone]
        return found


# ── what lanes are known by ──────────────────────────────────────────────────────────────────────────────────────


def _first(lane: Lane) -> Sketch:
    assert lane[0].sketch is not None, "conversations are calls to models"
    return lane[0].sketch


def _same_answers(lane: Lane) -> Hashable:
    """The very same conversation."""
    return lane[0].step.request.match_key, tuple(move.said for move in lane)


def _same_request(lane: Lane) -> Hashable:
    return lane[0].step.request.match_key


def _same_call(lane: Lane) -> Hashable:
    """The same words to the same model, whatever else the request says."""
    return lane[0].model_asked, _first(lane).settings, _whole_beginning(lane)


def _whole_beginning(lane: Lane) -> Hashable:
    first = _first(lane)
    return first.turn, first.history, first.system, first.tools


def _beginning(lane: Lane) -> Hashable:
    first = _first(lane)
    return (first.turn, first.system) if first.turn != NOTHING else None


def _first_words(lane: Lane) -> Hashable:
    turn = _first(lane).turn
    return turn if turn != NOTHING else None


def _system(lane: Lane) -> Hashable:
    system = _first(lane).system
    return system if system != NOTHING else None


def _toolbox(lane: Lane) -> Hashable:
    tools = _first(lane).tools
    return tools if tools != NOTHING else None


def _anybody(_lane: Lane) -> Hashable:
    return ""


class _LaneView:
    """What is said and done in the lanes of one run."""

    def __init__(self, run: ComparedRun) -> None:
        self._run = run

    def role(self, lane: Lane) -> Hashable:
        return self._run.role(lane[0])

    def features(self, lane: Lane) -> frozenset[Hashable]:
        """The words that it begins with, and what is decided in it."""
        messages = self._run.asked(lane[0].index).messages
        said = " ".join(parts_text(message.parts) for message in messages[turn_start(messages) :])
        words = _WORD.findall(without_noise(said[:_LONGEST]).lower())
        decisions = (self._run.decision(move).signature for move in lane)
        return frozenset(words) | {("decides", signature) for signature in decisions}


def _most_alike(left: Sequence[frozenset[Hashable]], right: Sequence[frozenset[Hashable]]) -> list[tuple[int, int]]:
    """Pairs of those that share most of what few have, best first."""
    where = _index(left), _index(right)
    scores = defaultdict[tuple[int, int], float](float)
    for feature, ours in where[0].items():
        theirs = where[1].get(feature, [])
        if theirs and len(ours) <= _RARE and len(theirs) <= _RARE:
            weight = 1 + math.log((len(left) + len(right)) / (len(ours) + len(theirs)))
            for i in ours:
                for j in theirs:
                    scores[i, j] += weight
    found = []
    free = set(range(len(left))), set(range(len(right)))
    for (i, j), _score in sorted(scores.items(), key=lambda one: (-one[1], abs(one[0][0] - one[0][1]), one[0])):
        if i in free[0] and j in free[1]:
            free[0].discard(i)
            free[1].discard(j)
            found.append((i, j))
    return found


def _index(lanes: Sequence[frozenset[Hashable]]) -> Mapping[Hashable, list[int]]:
    where = defaultdict[Hashable, list[int]](list)
    for at, features in enumerate(lanes):
        for feature in features:
            where[feature].append(at)
    return where
