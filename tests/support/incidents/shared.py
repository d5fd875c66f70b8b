"""What the scripted agents have in common: tools, models, the looks of what tools give back."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from rewind.model.message import ToolDefinition
from support.incidents.stage import AgentRole, Setup

MODELS: Mapping[str, tuple[str, str]] = {
    "anthropic": ("claude-sonnet-4-5", "claude-haiku-4-5"),
    "chat": ("gpt-4o", "gpt-4o-mini"),
    "responses": ("gpt-5", "gpt-5-mini"),
    "gemini": ("gemini-2.5-pro", "gemini-2.5-flash"),
}
"""Of every API a strong model and a weak one, which thinks less."""
OLD_SNAPSHOT, NEW_SNAPSHOT = "20250929", "20260115"
_MORNING = datetime(2026, 3, 2, 9, 14, 7, tzinfo=UTC)


def tool(name: str, description: str, **arguments: str) -> ToolDefinition:
    """``arguments`` are their descriptions; one that begins with ``#`` is a number."""
    properties = {
        key: {"type": "number" if text.startswith("#") else "string", "description": text.lstrip("# ")}
        for key, text in arguments.items()
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ToolDefinition(name, description, schema)


def role(
    api: str, system: str, tools: tuple[ToolDefinition, ...] = (), *, weak: bool = False, **rest: Any
) -> AgentRole:
    model = MODELS[api][weak]
    return AgentRole(api=api, model=model, snapshot=f"{model}-{OLD_SNAPSHOT}", system=system, tools=tools, **rest)


def is_weak(model: str) -> bool:
    return any(model.startswith(weak) for _, weak in MODELS.values())


# ── results of tools ─────────────────────────────────────────────────────────────────────────────────────────


def stamp(random: Random) -> str:
    return (_MORNING + timedelta(seconds=random.randint(0, 86_000), milliseconds=random.randint(0, 999))).isoformat()


def hexes(random: Random, size: int = 8) -> str:
    return f"{random.getrandbits(size * 4):0{size}x}"


def result(random: Random, **fields: Any) -> str:
    """A JSON result of a service, with what services put around it."""
    around: list[dict[str, Any]] = [
        {"request_id": f"req_{hexes(random, 12)}"},
        {"trace_id": hexes(random), "took_ms": random.randint(8, 400)},
        {"meta": {"served_at": stamp(random), "node": f"api-{random.randint(1, 9)}"}},
        {"fetched_at": stamp(random)},
    ]
    # Every service has its own way, whichever run asks it.
    own = Random(json.dumps(sorted(fields)))
    return json.dumps({**fields, **own.choice(around)})


# ── changes that every agent knows ───────────────────────────────────────────────────────────────────────────


def edited(setup: Setup, name: str, before: str, after: str) -> Setup:
    """With another text in the system prompt of that role."""
    system = setup.roles[name].system
    assert before in system, before
    return setup.with_role(name, system=system.replace(before, after))


def without_line(setup: Setup, name: str, words: str) -> Setup:
    """Without the line of the system prompt that has these words."""
    lines = setup.roles[name].system.split("\n")
    kept = [line for line in lines if words not in line]
    assert len(kept) == len(lines) - 1, words
    return setup.with_role(name, system="\n".join(kept))


def weaker(setup: Setup, name: str) -> Setup:
    """With the weak model of the same API."""
    weak = MODELS[setup.roles[name].api][1]
    return setup.with_role(name, model=weak, snapshot=f"{weak}-{OLD_SNAPSHOT}")


def newer(setup: Setup, name: str) -> Setup:
    """With another snapshot behind the same alias."""
    return setup.with_role(name, snapshot=f"{setup.roles[name].model}-{NEW_SNAPSHOT}")


def is_newer(snapshot: str) -> bool:
    return snapshot.endswith(NEW_SNAPSHOT)


def described(setup: Setup, name: str, tool_name: str, before: str, after: str) -> Setup:
    """With another description of a tool."""
    tools = tuple(
        replace(one, description=one.description.replace(before, after)) if one.name == tool_name else one
        for one in setup.roles[name].tools
    )
    assert tools != setup.roles[name].tools, tool_name
    return setup.with_role(name, tools=tools)


def without_argument(setup: Setup, name: str, tool_name: str, argument: str) -> Setup:
    """With a tool that has lost an argument."""
    return setup.with_role(
        name, tools=tuple(_less(one, argument) if one.name == tool_name else one for one in setup.roles[name].tools)
    )


def _less(one: ToolDefinition, argument: str) -> ToolDefinition:
    properties = {key: value for key, value in one.schema["properties"].items() if key != argument}
    assert properties != one.schema["properties"], argument
    return replace(one, schema={**one.schema, "properties": properties, "required": list(properties)})


def with_parameter(setup: Setup, name: str, **changes: Any) -> Setup:
    return setup.with_role(name, parameters={**setup.roles[name].parameters, **changes})
