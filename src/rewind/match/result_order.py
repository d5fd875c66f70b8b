"""The order of tool results: an agent that runs the calls of one turn side by side may write them as they end."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

_ID_FIELDS = ("tool_call_id", "tool_use_id")
_INNER_IDS = (("toolResult", "toolUseId"), ("functionResponse", "id"))


def in_no_order(items: list[Any], keys: list[int]) -> list[int]:
    """A key of each item, those of tool results that stand one after the other sorted: their ids may be others."""
    for start, end in _runs(list(map(_call_id, items))):
        keys[start:end] = sorted(keys[start:end])
    return keys


def in_order_of(then: list[Any], now: list[Any]) -> tuple[list[Any], list[tuple[str, str]]]:
    """The items of ``now`` with their tool results in the order of ``then``, and the ids in both orders for each turn
    where that is another one. Results of other calls stay where they are."""
    before, after = list(map(_call_id, then)), list(map(_call_id, now))
    moved: list[tuple[str, str]] = []
    if before == after:
        return now, moved
    for start, end in _runs(before):
        asked, given = before[start:end], after[start:end]
        places = {name: at for at, name in enumerate(given, start)}
        if asked != given and len(places) == end - start and places.keys() == set(asked):
            now = [*now[:start], *(now[places[name]] for name in asked), *now[end:]]
            moved.append((_listed(asked), _listed(given)))
    return now, moved


def _listed(ids: list[str | None]) -> str:
    return ", ".join(filter(None, ids))


def _runs(ids: list[str | None]) -> Iterator[tuple[int, int]]:
    """Where two results or more stand one after the other."""
    at = 0
    for is_result, group in groupby(ids, key=lambda name: name is not None):
        start, at = at, at + sum(1 for _ in group)
        if is_result and at - start > 1:
            yield start, at


def _call_id(item: Any) -> str | None:
    """The id of the call that this is the result of; ``None`` for anything else."""
    if not isinstance(item, dict):
        return None
    found: Any = next((item[name] for name in _ID_FIELDS if name in item), None)
    if found is None and "call_id" in item and str(item.get("type")).endswith("_output"):
        found = item["call_id"]
    for outer, name in _INNER_IDS:
        if found is None and isinstance(inner := item.get(outer), dict):
            found = inner.get(name)
    return found if isinstance(found, str) else None
