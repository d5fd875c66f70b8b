"""What the planted runs are about: tools, and the words of a trade.

``<<name>>`` in a text stands for something that every run has its own of: an id or a time.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from rewind.model.message import ToolDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool, with what it may be asked and what it may answer."""

    name: str
    says: str
    takes: Mapping[str, tuple[Any, ...]]
    gives: Mapping[str, tuple[Any, ...]]
    """Fields of the result; empty for a tool that answers in lines of text."""
    lines: tuple[str, ...] = ()

    def definition(self) -> ToolDefinition:
        kinds = {str: "string", int: "integer", float: "number", bool: "boolean"}
        properties = {
            name: {"type": kinds[type(values[0])], "description": f"The {name.replace('_', ' ')}."}
            for name, values in self.takes.items()
        }
        schema = {"type": "object", "properties": properties, "required": list(properties)[:1]}
        return ToolDefinition(self.name, self.says, schema)

    def arguments(self, random: Random) -> dict[str, Any]:
        return {name: random.choice(values) for name, values in self.takes.items()}

    def result(self, random: Random, *, marked: bool = False) -> str:
        """``marked``: with the id and the time of the request, as many services give them."""
        if self.lines:
            said = random.sample(self.lines, k=random.randint(2, len(self.lines)))
            return "\n".join([*said, *(["as of <<checked>>"] if marked else [])])
        fields: dict[str, Any] = {name: random.choice(values) for name, values in self.gives.items()}
        if marked:
            fields |= {"request_id": "<<request>>", "fetched_at": "<<fetched>>"}
        return json.dumps(fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A trade."""

    prompt: tuple[str, ...]
    """Sentences of a system prompt; the first says who the agent is."""
    other_prompt: tuple[str, ...]
    tasks: tuple[str, ...]
    follow_ups: tuple[str, ...]
    leads: tuple[str, ...]
    """What the model says before it uses a tool."""
    ends: tuple[str, ...]
    tools: tuple[Tool, ...]
    other_tool: Tool
    """One that the agent does not have at first."""

    def tool(self, name: str) -> Tool:
        return next(tool for tool in (*self.tools, self.other_tool) if tool.name == name)
