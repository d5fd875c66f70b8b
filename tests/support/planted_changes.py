"""The changes that are planted: what is done to a program before it is run again.

Most causes are two changes: the program asks otherwise from turn ``k`` of a conversation on, and the scripted model,
which has its reasons, answers otherwise from a turn ``d`` on that is not before ``k``. Where ``d`` is later, the first
answers under the change are still the old ones, as with real models.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from rewind.compare.cause import CauseKind
from rewind.model.message import ToolDefinition
from support.planted_history import history
from support.planted_script import Change, Planted, Scenario, Setting, Shift, Spot, Talk, Use
from support.planted_shapes import MODELS, snapshot_of


def _since(spot: Spot, random: Random) -> int:
    """From the beginning, from the parting, or from somewhere between."""
    return random.choice([0, spot.turn, random.randint(0, spot.turn)])


def _shifted(scenario: Scenario, spot: Spot, random: Random, shift: Shift, how: str) -> Planted:
    """The setting changed, for all conversations of that program text."""
    since = _since(spot, random)
    family = scenario.talk(spot.talk).family
    for talk in scenario.talks:
        if talk.family == family:
            changed = scenario.talk(talk.name)
            scenario = scenario.with_talk(replace(changed, shifts=(*changed.shifts, (since, shift))))
    return Planted(scenario=scenario, how=f"{how} since turn {since}")


def model(scenario: Scenario, spot: Spot, random: Random) -> Planted | None:
    talk = scenario.talk(spot.talk)
    name = random.choice([one for one in MODELS[talk.api] if one != talk.setting.model])
    shift: Shift = partial(replace, model=name, snapshot=snapshot_of(name))
    return _shifted(scenario, spot, random, shift, f"{talk.setting.model} became {name}")


def snapshot(scenario: Scenario, spot: Spot, random: Random) -> Planted | None:
    number = random.choice([1, 2])

    def shift(setting: Setting) -> Setting:
        return replace(setting, snapshot=snapshot_of(setting.model, number))

    return _shifted(scenario, spot, random, shift, "another snapshot")


def system(scenario: Scenario, spot: Spot, random: Random) -> Planted | None:
    talk = scenario.talk(spot.talk)
    old = talk.setting.system
    how = random.choice(["one word", "one sentence more", "one sentence less", "rewritten"])
    match how:
        case "one word":
            new = _another_word(old, random)
        case "one sentence more":
            new = f"{old} {random.choice(talk.domain.other_prompt)}"
        case "one sentence less":
            sentences = re.split(r"(?<=\.)\s+", old)
            plain = [at for at, one in enumerate(sentences) if "<<" not in one and at > 0]
            gone = random.choice(plain)
            new = " ".join(one for at, one in enumerate(sentences) if at != gone)
        case _:
            others = random.sample(talk.domain.other_prompt, k=3)
            new = " ".join([re.split(r"(?<=\.)\s+", old)[0], *others])
    shift: Shift = partial(replace, system=new)
    return _shifted(scenario, spot, random, shift, f"prompt: {how}")


_OTHER_WORDS = ("never", "always", "twice", "carefully", "later")


def _another_word(text: str, random: Random) -> str:
    words = [
        one for one in re.finditer(r"\b[a-z]{4,}\b(?!>>)", text) if "<<" not in text[one.start() - 2 : one.start()]
    ]
    found = random.choice(words)
    other = random.choice([word for word in _OTHER_WORDS if word != found[0]])
    return text[: found.start()] + other + text[found.end() :]


def tools(scenario: Scenario, spot: Spot, random: Random) -> Planted | None:
    talk = scenario.talk(spot.talk)
    if not talk.setting.tools:
        return None
    named = [tool.name for tool in talk.domain.tools]
    used = {use.tool for turn in talk.turns[: spot.turn] for use in turn.uses}
    idle = [name for name in named if name not in used]
    how = random.choice(["description", "schema", "required", "added", *(["removed"] if idle else [])])
    target = random.choice(idle if how == "removed" else named)
    new = talk.domain.other_tool.definition()

    def shift(setting: Setting) -> Setting:
        return replace(setting, tools=_other_tools(setting.tools, how, target, new))

    return _shifted(scenario, spot, random, shift, f"tools: {how} of {target}")


def _other_tools(
    old: tuple[ToolDefinition, ...], how: str, target: str, new: ToolDefinition
) -> tuple[ToolDefinition, ...]:
    match how:
        case "added":
            return (*old, new)
        case "removed":
            return tuple(tool for tool in old if tool.name != target)
    return tuple(_redefined(tool, how) if tool.name == target else tool for tool in old)


def _redefined(tool: ToolDefinition, how: str) -> ToolDefinition:
    if how == "description":
        return replace(tool, description=f"{tool.description} Use it only when nothing else helps.")
    properties = dict(tool.schema["properties"])
    if how == "required":
        required = [*properties] if len(properties) > 1 else []
        return replace(tool, schema={**tool.schema, "required": required})
    properties["verbose"] = {"type": "boolean", "description": "Whether to say more."}
    return replace(tool, schema={**tool.schema, "properties": properties})


def parameters(scenario: Scenario, spot: Spot, random: Random) -> Planted | None:
    talk = scenario.talk(spot.talk)
    old = talk.setting.parameters
    choices: dict[str, Any] = {
        "temperature": 1 if old.get("temperature") != 1 else 0,
        "limit": random.choice([16, 256, 8192]),
        "top_p": random.choice([0.1, 0.5]),
        "effort": random.choice(["low", "high"]),
    }
    if talk.setting.tools:
        choices["tool_choice"] = "any" if talk.api in ("anthropic", "gemini") else "required"
    if talk.api != "responses":
        choices["stop"] = ["\n\n"]
    name = random.choice(sorted(choices))
    value = choices[name]

    def shift(setting: Setting) -> Setting:
        return replace(setting, parameters={**setting.parameters, name: value})

    return _shifted(scenario, spot, random, shift, f"{name} = {value}")


def user_input(scenario: Scenario, spot: Spot, random: Random) -> Planted | None:
    talk = scenario.talk(spot.talk)
    asked_before = [turn for turn in talk.follow_ups if turn < spot.turn]
    if asked_before and random.random() < 0.6:
        turn = random.choice(asked_before)
        new, how = _another_wish(talk, talk.follow_ups[turn], random)
        changed = replace(talk, follow_ups={**talk.follow_ups, turn: new})
        return Planted(scenario=scenario.with_talk(changed), how=f"{how} after turn {turn}")
    is_handed_on = "<<answer of" in talk.asks or any(
        helper.name == talk.name for one in scenario.talks for helper in one.helpers
    )
    if is_handed_on:
        return None
    new, how = _another_wish(talk, talk.asks, random)
    return Planted(scenario=scenario.with_talk(replace(talk, asks=new)), how=f"{how} at the start")


def _another_wish(talk: Talk, old: str, random: Random) -> tuple[str, str]:
    how = random.choice(["one word", "one sentence more", "another request"])
    match how:
        case "one word":
            return _another_word(old, random), f"input: {how}"
        case "one sentence more":
            return f"{old} {random.choice(talk.domain.follow_ups)}", f"input: {how}"
    others = [text for text in (*talk.domain.tasks, *talk.domain.follow_ups) if text not in old]
    head, mark, _ = old.rpartition(": ")
    return head + mark + random.choice(others), f"input: {how}"


def tool_output(scenario: Scenario, spot: Spot, random: Random) -> Planted | None:
    talk = scenario.talk(spot.talk)
    places = [
        (turn, number)
        for turn in range(spot.turn)
        for number, use in enumerate(talk.turns[turn].uses)
        if use.helper is None
    ]
    if not places:
        return None
    turn, number = random.choice([places[-1], random.choice(places)])
    uses = list(talk.turns[turn].uses)
    uses[number], how = _another_result(talk, uses[number], random)
    turns = list(talk.turns)
    turns[turn] = replace(turns[turn], uses=tuple(uses))
    changed = replace(talk, turns=tuple(turns))
    return Planted(scenario=scenario.with_talk(changed), how=f"{how} from {uses[number].tool} at turn {turn}")


def _another_result(talk: Talk, use: Use, random: Random) -> tuple[Use, str]:
    tool = talk.domain.tool(use.tool)
    how = random.choice(["another value", "another value", "an error", "nothing", "another result"])
    match how:
        case "an error":
            text = random.choice(["Error: connection timed out", '{"error": "not found", "code": 404}'])
        case "nothing":
            text = "[]"
        case "another value" if tool.gives:
            fields = json.loads(use.result)
            changeable = {name: values for name, values in tool.gives.items() if len(values) > 1}
            name = random.choice(sorted(changeable))
            fields[name] = random.choice([value for value in tool.gives[name] if value != fields[name]])
            text = json.dumps(fields)
        case _:
            how = "another result"
            text = next(new for new in (tool.result(random) for _ in range(100)) if new not in use.result)
    return replace(use, result=text), f"output: {how}"


CHANGES: Mapping[CauseKind, Change] = {
    CauseKind.MODEL: model,
    CauseKind.SNAPSHOT: snapshot,
    CauseKind.SYSTEM: system,
    CauseKind.TOOLS: tools,
    CauseKind.PARAMETERS: parameters,
    CauseKind.INPUT: user_input,
    CauseKind.TOOL_OUTPUT: tool_output,
    CauseKind.HISTORY: history,
}
"""In the order of evidence."""
