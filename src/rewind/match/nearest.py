"""For a miss: the recorded call that comes closest, what differs, and what to do about it.

Thousands of recorded calls are weighed in three rounds, each on fewer of them and with a closer look: the shape and
the ends of the conversation; the words of its last turn; the whole body.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from typing import Any

from rewind.match.call import Call
from rewind.match.canonical import canonical_path, canonical_query
from rewind.match.difference import Difference, differences
from rewind.match.fingerprint import host_class
from rewind.providers.shared.json_fields import writable
from rewind.text import plural

_SHOWN = 5
_COUNTED = 100
_CONVERSATIONS = ("messages", "input", "contents")


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call of the recording, and whether its answer was already given."""

    index: int
    call: Call
    played: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """Why a call could not be answered."""

    reason: str
    """One sentence, for the agent."""
    report: str
    """Many lines, for the person at the terminal."""
    nearest: int | None
    """The step that comes closest, where the caller could read its answer: same address, streamed or not alike."""


def explain_miss(
    call: Call, recorded: Sequence[RecordedCall], *, session: str, fork_at: int | None = None
) -> Miss:
    """Why the recording has no answer, or no more answers, for this call in a replay, or in a fork at that step."""
    asked = _endpoint(call)
    played = sum(candidate.played for candidate in recorded)
    model = call.provider.asked(call.request).model
    lines = [
        "",
        f"  asked     {asked}" + (f"  ({model[:80]})" if model else ""),
        f"  session   {session}: {plural(len(recorded), 'call')} recorded, {played} played",
    ]
    twins = [candidate for candidate in recorded if candidate.call.key == call.key]
    if twins and all(twin.played for twin in twins):
        steps = _steps([twin.index for twin in twins])
        often = "once" if len(twins) == 1 else f"{len(twins)} times"
        reason = f"Rewind: this call was recorded {often} in session {session} ({steps}) and already played."
        lines[0] = "Already played: the agent asks this once more than it did when recorded."
        lines += [f"  recorded  {often}, {steps}", *_advice(session, [], fork_at)]
        return _miss(reason, lines, twins[-1].index)
    found = nearest_call(call, recorded)
    if found is None:
        reason = f"Rewind: session {session} has no recorded call to {asked}."
        lines[0] = "Never recorded: the session has no call to this address."
        lines += [*_addresses(recorded), *_advice(session, [], fork_at)]
        return _miss(reason, lines, None)
    differing = _all_differences(found.call, call)
    fields = ", ".join(difference.where for difference in differing[:3])
    more = f" and {len(differing) - 3} more fields" if len(differing) > 3 else ""
    reason = f"Rewind: this call was never recorded in session {session}; step {found.index} comes closest"
    reason += f" and differs in {fields}{more}." if differing else "."
    lines[0] = "Never recorded: no recorded call is the same."
    lines += [f"  nearest   step {found.index}, {'already' if found.played else 'not yet'} played"]
    lines += [*_shown(differing), *_advice(session, differing, fork_at)]
    servable = _address(found.call) == _address(call) and _streams(found.call) == _streams(call)
    return _miss(reason, lines, found.index if servable else None)


def _miss(reason: str, lines: list[str], nearest: int | None) -> Miss:
    return Miss(reason=writable(reason), report=writable("\n".join(lines)), nearest=nearest)


def nearest_call(call: Call, recorded: Sequence[RecordedCall]) -> RecordedCall | None:
    """The recorded call of the same API that comes closest, at the same address if there is one."""
    address = _address(call)
    pool = [candidate for candidate in recorded if _address(candidate.call) == address]
    if not pool:
        pool = [candidate for candidate in recorded if candidate.call.provider.name == call.provider.name]
        pool = pool if call.provider.name != "http" else []
    shape = _Shape(call)
    pool = nlargest(200, pool, key=lambda candidate: (shape.likeness(candidate.call), not candidate.played))
    pool = nlargest(8, pool, key=lambda candidate: (shape.closeness(candidate.call), not candidate.played))
    return min(pool, key=lambda candidate: (_distance(candidate.call, call), candidate.played), default=None)


class _Shape:
    """What can be compared at a glance."""

    def __init__(self, call: Call) -> None:
        self._turns = _conversation(call.canonical)
        self._words = _last_words(self._turns)

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


def _all_differences(recorded: Call, asked: Call) -> list[Difference]:
    """The address first, then the query, then the body; not more than a hundred of them."""
    old, new = recorded.request.head, asked.request.head
    places = (
        ("method", old.method, new.method),
        ("host", host_class(old.host), host_class(new.host)),
        ("path", canonical_path(old), canonical_path(new)),
    )
    found = [Difference((name,), left, right) for name, left, right in places if left != right]
    queries = [{f"?{name}": value for name, value in canonical_query(head, (), ())} for head in (old, new)]
    found += differences(*queries)
    return [*found, *islice(differences(recorded.canonical, asked.canonical), _COUNTED)][:_COUNTED]


def _streams(call: Call) -> bool:
    return isinstance(call.canonical, dict) and bool(call.canonical.get("stream"))


def _address(call: Call) -> tuple[str, str, str]:
    head = call.request.head
    return head.method, host_class(head.host), canonical_path(head)


def _endpoint(call: Call) -> str:
    head = call.request.head
    return f"{head.method} {head.host}{head.path}"[:200]


def _shown(differing: list[Difference]) -> list[str]:
    if not differing:
        return ["  differs   only in how its values are written"]
    count = f"{_COUNTED} fields or more" if len(differing) == _COUNTED else plural(len(differing), "field")
    lines = [f"  differs   in {count}"]
    for difference in differing[:_SHOWN]:
        changing = difference.changing()
        lines.append(f"    {difference.where}" + (f"   (only {changing} differs)" if changing else ""))
        lines.append(f"      {difference.shown()}")
    if len(differing) > _SHOWN:
        lines.append(f"    … and {plural(len(differing) - _SHOWN, 'more field')}")
    return lines


def _addresses(recorded: Sequence[RecordedCall]) -> list[str]:
    known = list(dict.fromkeys(_endpoint(candidate.call) for candidate in recorded))
    more = [f"            … and {len(known) - _SHOWN} more"] if len(known) > _SHOWN else []
    return [f"  recorded  {address}" for address in known[:_SHOWN]] + more


def _advice(session: str, differing: list[Difference], fork_at: int | None) -> list[str]:
    lines = ["", "What to do"]
    rules = [rule for rule in map(_rule, differing) if rule]
    if rules and len(rules) == len(differing):
        paths = ", ".join(f'"{rule}"' for rule in dict.fromkeys(rules[:_SHOWN]))
        lines += [
            "  - If that differs on every run, leave it out of the comparison, in pyproject.toml:",
            "        [tool.rewind]",
            f"        ignore = [{paths}]",
        ]
        if any(not difference.whole() for difference in differing):
            lines.append(
                "    (this ignores the whole text of the field; holding the clock or the id still is safer)"
            )
    if fork_at is not None:
        return [*lines, *_advice_for_a_fork(f"rewind fork {session}:{fork_at}", fork_at, bool(differing))]
    return [
        *lines,
        "  - If the agent was changed on purpose, record it again:   rewind record -- …",
        f"  - To ask the provider whatever was not recorded:          rewind replay {session} --on-miss live",
        f"  - To accept answers to slightly different questions:      rewind replay {session} --allow-drift",
    ]


def _advice_for_a_fork(fork: str, at: int, differs: bool) -> list[str]:
    lines = [
        f"  - A fork plays the steps before {at} from the recording: fork where the agent first asks otherwise."
    ]
    if differs:
        # What differs here mostly comes again in every later request: live answers would be paid for, and the step
        # never be asked.
        return [*lines, f"  - To take such requests for the recorded ones:            {fork} --allow-drift …"]
    return [*lines, f"  - To let calls that were not recorded go live:            {fork} --on-miss live …"]


def _rule(difference: Difference) -> str | None:
    """A path to paste. A field that is only an id or a date is ignored in every element; a text only where it is."""
    if difference.changing() is None or difference.path[0] in ("method", "host", "path"):
        return None
    return re.sub(r"\[\d+\]", "[*]", difference.where) if difference.whole() else difference.where


def _steps(indexes: list[int]) -> str:
    shown = ", ".join(map(str, indexes[:8])) + (", …" if len(indexes) > 8 else "")
    return f"step {shown}" if len(indexes) == 1 else f"steps {shown}"
