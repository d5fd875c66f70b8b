"""Lanes: the moves of one conversation, or of one address. Those of two runs are paired by what they begin with."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator

from rewind.compare.run import Move, ends
from rewind.conversation.sketch import NOTHING, Sketch
from rewind.match.fingerprint import host_class

Lane = list[Move]
Role = Callable[[Move], Hashable]
"""Who is spoken to: the system prompt of a call, less ids and times; ``None`` where there is none."""


def conversations(moves: Iterable[Move]) -> list[Lane]:
    lanes: dict[int, Lane] = {}
    for move in moves:
        if move.thread is not None:
            lanes.setdefault(move.thread, []).append(move)
    return _mended(list(lanes.values()))


def _mended(lanes: list[Lane]) -> list[Lane]:
    """A conversation that begins in its midst was torn when the agent cut its history: it goes on from the latest one
    with that system prompt that was over by then. (Examples that several conversations begin with are no history.)"""
    begun = Counter(_first(lane).history for lane in lanes)
    whole: list[Lane] = []
    latest: dict[str, Lane] = {}
    for lane in lanes:
        first = _first(lane)
        before = latest.get(first.system)
        torn = first.history != NOTHING and begun[first.history] == 1
        if torn and before is not None and ends(before[-1].step) <= lane[0].step.request.ts:
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


_SIGNS: tuple[Callable[[Lane], Hashable], ...] = (
    _whole_beginning,
    _beginning,
    _first_words,
    _speaker,
    _role,
    _toolbox,
)
