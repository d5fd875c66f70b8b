"""How answers part: the scripted model says something else, or the provider fails."""

import re
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from support.planted_script import Failure, Planted, Scenario, Spot, Talk, Turn
from support.planted_shapes import a_use, last_turn


def parted(scenario: Scenario, spot: Spot, random: Random) -> Planted:
    """From there on the model answers otherwise, and the run takes another way."""
    talk = scenario.talk(spot.talk)
    old = talk.turns[spot.turn]
    removed = {tool.name for tool in talk.setting.tools} - {tool.name for tool in talk.at(spot.turn).tools}
    new, how = _other_turn(talk, spot.turn, old, removed, random)
    rest: list[Turn] = []
    if new.uses:
        more = random.randint(0, 2)
        rest = [_tool_turn(talk, removed, random) for _ in range(more)]
        rest.append(_another_end(talk, talk.turns[-1], random))
    turns = (*talk.turns[: spot.turn], new, *rest)
    follow_ups = {turn: text for turn, text in talk.follow_ups.items() if turn < spot.turn}
    if not new.uses and spot.turn in talk.follow_ups:
        # Whoever asks goes on asking, whatever the answer was.
        follow_ups[spot.turn] = talk.follow_ups[spot.turn]
        turns = (*turns, *talk.turns[spot.turn + 1 :])
        follow_ups |= {turn: text for turn, text in talk.follow_ups.items() if turn > spot.turn}
    changed = replace(talk, turns=turns, follow_ups=follow_ups)
    return Planted(scenario=scenario.with_talk(changed), how=how)


def _other_turn(talk: Talk, number: int, old: Turn, removed: set[str], random: Random) -> tuple[Turn, str]:
    ways: list[tuple[str, Callable[[], Turn | None]]] = [("another text", lambda: _another_end(talk, old, random))]
    if talk.setting.tools:
        ways.append(("another tool", lambda: _tool_turn(talk, removed, random, unlike=old)))
    if old.uses and not any(use.helper or use.tool in removed for use in old.uses):
        ways.append(("other arguments", lambda: _other_arguments(talk, old, random)))
        if len(old.uses) > 1:
            ways.append(("fewer tools", lambda: replace(old, uses=old.uses[:-1])))
    if old.text and not old.uses and random.random() < 0.3:
        ways.append(("one fact", lambda: _another_fact(old)))
    if old.uses and random.random() < 0.3 and not any(use.tool in removed for use in old.uses):
        ways.append(("other words", lambda: replace(old, text=_reworded(talk, old, random))))
    random.shuffle(ways)
    for how, way in ways:
        new = way()
        if new is not None and new != old:
            return new, f"answers with {how}"
    raise AssertionError("a model can always say something else")


def _tool_turn(talk: Talk, removed: set[str], random: Random, unlike: Turn | None = None) -> Turn:
    taken = {use.tool for use in unlike.uses} if unlike else set()
    offered = {tool.name for tool in talk.at(len(talk.turns)).tools} - removed
    tools = [
        tool for tool in (*talk.domain.tools, talk.domain.other_tool) if tool.name in offered and tool.name not in taken
    ]
    if not tools:
        return last_turn(talk.domain, random)
    return Turn(text=random.choice(talk.domain.leads), uses=(a_use(random.choice(tools), random),))


def _another_end(talk: Talk, old: Turn, random: Random) -> Turn:
    return Turn(text=random.choice([text for text in talk.domain.ends if text != old.text]))


def _other_arguments(talk: Talk, old: Turn, random: Random) -> Turn | None:
    first, *rest = old.uses
    tool = talk.domain.tool(first.tool)
    choices: list[dict[str, Any]] = [
        {**first.arguments, name: value} for name, values in tool.takes.items() for value in values
    ]
    others = [choice for choice in choices if choice != first.arguments]
    if not others:
        return None
    use = replace(first, arguments=random.choice(others), result=tool.result(random))
    return replace(old, uses=(use, *rest))


_FACT = re.compile(r"\d+(?:[:.]\d+)?|three|two|tomorrow|Friday")
_FACTS = {"three": "ten", "two": "four", "tomorrow": "next month", "Friday": "Monday"}


def _another_fact(old: Turn) -> Turn | None:
    """The same sentence with one number or day in it that is another."""
    words = old.text

    def other(found: re.Match[str]) -> str:
        if found[0] in _FACTS:
            return _FACTS[found[0]]
        whole, mark, part = found[0].partition(":")
        return f"{int(whole) + 1}:{part}" if mark else str(float(whole) + 2).removesuffix(".0")

    changed = _FACT.sub(other, words, count=1) if "<<" not in words else words
    return replace(old, text=changed) if changed != words else None


def _reworded(talk: Talk, old: Turn, random: Random) -> str:
    return random.choice([text for text in talk.domain.leads if text != old.text])


def failed(scenario: Scenario, spot: Spot, random: Random, *, refused: bool = False) -> Planted:
    """``refused``: as something wrong in the request is."""
    talk = scenario.talk(spot.talk)
    status = 400 if refused else random.choice([500, 529, 503, 400, 429, 200])
    failure = Failure(
        status=status,
        attempts=1 if status == 400 else random.choice([1, 3]),
        inside=talk.streamed and random.random() < 0.4,
    )
    changed = replace(talk, failures={**talk.failures, spot.turn: failure})
    how = f"{'an answer cut off' if status == 200 else status} × {failure.attempts}"
    return Planted(scenario=scenario.with_talk(changed), how=how)
