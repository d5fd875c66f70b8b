"""For a miss: the recorded call that comes closest, and what differs.

Thousands of recorded calls are weighed in three rounds, each on fewer of them and with a closer look: the shape and
the ends of the conversation; the words of its last turn; the whole body.
"""

import re
from collections.abc import Sequence
from functools import partial
from heapq import nlargest
from itertools import islice
from typing import Any

from rewind.dataclass import dataclass
from rewind.match.call import Call, host_class
from rewind.match.canonical import canonical_path, canonical_query
from rewind.match.difference import FieldDifference, differences, same_json
from rewind.match.miss import MOST_FIELDS, SHOWN_FIELDS, DifferingField, Miss, MissKind
from rewind.providers import tools
from rewind.providers.catalogue import FALLBACK

_CONVERSATIONS = ("messages", "input", "contents")


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call of the recording, and whether its answer was already given."""

    index: int
    call: Call
    played: bool


def explain_miss(call: Call, recorded: Sequence[RecordedCall], *, session: str, fork_at: int | None = None) -> Miss:
    """Why the recording has no answer, or no more answers, for this call in a replay, or in a fork at that step."""
    explained = partial(
        Miss,
        session=session,
        asked=_endpoint(call),
        model=call.provider.reader.asked(call.request).model,
        api=call.provider.name,
        recorded=len(recorded),
        played=sum(candidate.played for candidate in recorded),
        fork_at=fork_at,
    )
    twins = [candidate for candidate in recorded if candidate.call.key == call.key]
    if twins and all(twin.played for twin in twins):
        last = twins[-1].index
        steps = tuple(twin.index for twin in twins)
        return explained(kind=MissKind.PLAYED, twins=steps, nearest=last, nearest_played=True, servable=last)
    found = nearest_call(call, recorded)
    if found is None:
        addresses = dict.fromkeys(_endpoint(candidate.call) for candidate in recorded)
        return explained(kind=MissKind.NO_ADDRESS, addresses=tuple(addresses))
    servable = _address(found.call) == _address(call) and _streams(found.call) == _streams(call)
    return explained(
        kind=MissKind.DIFFERENT,
        nearest=found.index,
        nearest_played=found.played,
        servable=found.index if servable else None,
        differing=tuple(
            _differing(difference, shown=number < SHOWN_FIELDS)
            for number, difference in enumerate(_all_differences(found.call, call))
        ),
    )


def _differing(difference: FieldDifference, *, shown: bool) -> DifferingField:
    """A field that is only an id or a date is ignored in every element of a list; a text only where it is."""
    volatile = difference.volatile()
    can_be_ignored = volatile is not None and difference.path[0] not in ("method", "host", "path")
    whole = can_be_ignored and difference.whole()
    path = difference.where
    return DifferingField(
        path=path,
        shown=difference.shown() if shown else "",
        volatile=volatile,
        ignore=(re.sub(r"\[\d+\]", "[*]", path) if whole else path) if can_be_ignored else None,
        ignores_text=not whole,
        pattern=difference.pattern() if can_be_ignored and not whole else None,
    )


def nearest_call(call: Call, recorded: Sequence[RecordedCall]) -> RecordedCall | None:
    """The recorded call of the same API that comes closest, at the same address if there is one."""
    address = _address(call)
    pool = [candidate for candidate in recorded if _address(candidate.call) == address]
    if not pool:
        pool = [candidate for candidate in recorded if candidate.call.provider.name == call.provider.name]
        pool = pool if call.provider is not FALLBACK else []
    shape = _Shape(call)

    def is_next(candidate: RecordedCall) -> bool:
        """What the same conversation would have asked and did not: there one message has changed."""
        return not candidate.played and shape.is_same_turn(candidate.call)

    def likeness(candidate: RecordedCall) -> tuple[bool, int, bool]:
        return is_next(candidate), shape.likeness(candidate.call), not candidate.played

    def closeness(candidate: RecordedCall) -> tuple[bool, float, bool]:
        return is_next(candidate), shape.closeness(candidate.call), not candidate.played

    def distance(candidate: RecordedCall) -> tuple[bool, int, bool]:
        return not is_next(candidate), _distance(candidate.call, call), candidate.played

    pool = nlargest(8, nlargest(200, pool, key=likeness), key=closeness)
    return min(pool, key=distance, default=None)


class _Shape:
    """What can be compared at a glance."""

    def __init__(self, call: Call) -> None:
        self._turns = _conversation(call.canonical)
        self._words = _last_words(self._turns)

    def is_same_turn(self, other: Call) -> bool:
        """Whether it is as long, and most of it is the same: another message of the same place in a conversation."""
        turns, mine = _conversation(other.canonical), self._turns
        if len(turns) != len(mine) or len(mine) < 2:
            return False
        return 2 * sum(map(same_json, turns, mine)) >= len(mine) or turns[:-1] == mine[:-1]

    def likeness(self, other: Call) -> int:
        """Same length, same beginning, same end of the conversation."""
        turns = _conversation(other.canonical)
        mine = self._turns
        score = 4 if len(turns) == len(mine) else 0
        if turns and mine:
            score += 2 * (turns[0] == mine[0]) + 3 * (turns[-1] == mine[-1])
            score += 2 * (turns[1:2] == mine[1:2])
        return score

    def closeness(self, other: Call) -> float:
        """The same, with the words that both have in their last turn."""
        words = _last_words(_conversation(other.canonical))
        shared = len(words & self._words) / (len(words | self._words) or 1)
        return self.likeness(other) + 4 * shared


def _conversation(canonical: Any) -> list[Any]:
    if isinstance(canonical, dict):
        for name in _CONVERSATIONS:
            turns = canonical.get(name)
            if isinstance(turns, list):
                return turns
            if isinstance(turns, str):
                return [turns]
        return [canonical.get("prompt"), *canonical.values()] if "prompt" in canonical else [canonical]
    return canonical if isinstance(canonical, list) else [canonical]


def _last_words(turns: list[Any]) -> frozenset[str]:
    text = str(turns[-1]) if turns else ""
    return frozenset(re.findall(r"\w+", text[:1500] + text[-1500:]))


def _distance(recorded: Call, asked: Call) -> int:
    """How much would have to be rewritten: a little per field, and the size of what differs."""
    found = _all_differences(recorded, asked)
    other_way = 0 if _streams(recorded) == _streams(asked) else 400
    return other_way + sum(20 + min(difference.size(), 2000) for difference in found)


def _all_differences(recorded: Call, asked: Call) -> list[FieldDifference]:
    """The address first, then the query, then the body; not more than a hundred of them."""
    old, new = recorded.request.head, asked.request.head
    places = (
        ("method", old.method, new.method),
        ("host", host_class(old.host), host_class(new.host)),
        ("path", canonical_path(old), canonical_path(new)),
    )
    found = [FieldDifference((name,), left, right) for name, left, right in places if left != right]
    queries = [{f"?{name}": value for name, value in canonical_query(head, (), ())} for head in (old, new)]
    found += differences(*queries)
    return [*found, *islice(differences(recorded.canonical, asked.canonical), MOST_FIELDS)][:MOST_FIELDS]


def _streams(call: Call) -> bool:
    return isinstance(call.canonical, dict) and bool(call.canonical.get("stream"))


def _address(call: Call) -> tuple[str, str, str]:
    head = call.request.head
    return head.method, host_class(head.host), canonical_path(head)


def _endpoint(call: Call) -> str:
    head = call.request.head
    if call.provider.name == tools.API.name:
        return f"tool {tools.tool_name(head)}"[:200]
    return f"{head.method} {head.host}{head.path}"[:200]
