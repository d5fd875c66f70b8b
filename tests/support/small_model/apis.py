"""The small model behind the APIs that agents speak: Chat Completions, Responses, Messages; streamed or not.

The model itself knows nothing of tools. So it is asked twice: which of the tools it takes, or whether it answers, as
a JSON schema with these names; then for the arguments, by the tool's own schema, or for words.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from support.real_agents import speech
from support.real_agents.speech import Reply, ToolUse
from support.script import Answer, Request
from support.small_model.model import SmallModel

LONGEST_TEXT = 100
"""Characters of a text argument for which its schema names no limit: the model often finds no end."""
LONGEST_VALUE = 400
"""Tokens of a JSON value."""

Turn = dict[str, str]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the agent offers."""

    name: str
    description: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, whatever API it came by."""

    turns: list[Turn]
    """What the model reads; calls and their results are told in plain words."""
    tools: tuple[Tool, ...]
    must: bool
    """True if it has to take a tool."""
    schema: dict[str, Any] | None
    """The JSON schema of its answer."""
    used: frozenset[str]
    """The tools whose results came since the user last spoke: the model does not take one of them again."""
    temperature: float
    max_tokens: int


@dataclass(slots=True)
class SmallModelApis:
    """A playbook for a provider: whatever it is asked, the model decides."""

    model: SmallModel
    replies: list[Reply] = field(default_factory=list)
    """What the model did, in order."""

    def __call__(self, request: Request) -> Answer:
        read, speak = _API[request.path.rpartition("/")[2]]
        body = request.json()
        reply = self._reply(read(body))
        self.replies.append(reply)
        return speak(body, reply)

    def _reply(self, asked: Asked) -> Reply:
        tool = self._choice(asked)
        if tool is None:
            limit = asked.max_tokens if asked.schema is None else max(asked.max_tokens, LONGEST_VALUE)
            said = self.model.say(asked.turns, schema=asked.schema, temperature=asked.temperature, max_tokens=limit)
            return Reply(said.text, cut=said.cut)
        hint = {"role": "user", "content": f"Give {', '.join(tool.schema.get('properties', {}))} for {tool.name}."}
        return Reply(tools=(ToolUse(tool.name, self._value([*asked.turns, hint], tool.schema, asked)),))

    def _choice(self, asked: Asked) -> Tool | None:
        open_tools = {tool.name: tool for tool in asked.tools if asked.must or tool.name not in asked.used}
        names = [*open_tools, *([] if asked.must else ["answer"])]
        if not open_tools:
            return None
        if len(names) > 1:
            offered = "\n".join(f"{tool.name}: {tool.description}" for tool in open_tools.values())
            hint = {"role": "user", "content": f"What next? You have:\n{offered}"}
            schema = {"type": "object", "properties": {"next": {"enum": names}}, "required": ["next"]}
            return open_tools.get(self._value([*asked.turns, hint], schema, asked)["next"])
        return open_tools[names[0]]

    def _value(self, turns: list[Turn], schema: dict[str, Any], asked: Asked) -> dict[str, Any]:
        bounded = _bounded(schema)
        said = self.model.say(turns, schema=bounded, temperature=asked.temperature, max_tokens=LONGEST_VALUE)
        assert not said.cut, f"no end within {LONGEST_VALUE} tokens: {said.text}"
        value: dict[str, Any] = json.loads(said.text)
        return value


def _bounded(schema: Any) -> Any:
    """The same schema: every property is required, none is added, and texts have an end."""
    if isinstance(schema, list):
        return [_bounded(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {name: _bounded(value) for name, value in schema.items()}
    if made.get("type") == "object":
        made |= {"required": list(made.get("properties", {})), "additionalProperties": False}
    if made.get("type") == "string" and "enum" not in made:
        made.setdefault("maxLength", LONGEST_TEXT)
    return made


def _asked(body: Mapping[str, Any], turns: list[Turn], tools: tuple[Tool, ...], limit: str, **more: Any) -> Asked:
    forced = body.get("tool_choice")
    kind = forced if isinstance(forced, str) else (forced or {}).get("type", "auto")
    name = "" if isinstance(forced, str) or forced is None else (forced.get("function") or forced).get("name", "")
    chosen = tuple(tool for tool in tools if tool.name == name) if name else () if kind == "none" else tools
    return Asked(
        turns=turns,
        tools=chosen,
        must=bool(name) or kind in ("required", "any"),
        temperature=body.get("temperature", 1.0),
        max_tokens=body.get(limit) or 120,
        **more,
    )


def _chat(body: dict[str, Any]) -> Asked:
    turns: list[Turn] = []
    names: dict[str, str] = {}
    used: set[str] = set()
    for message in body["messages"]:
        text = _text(message.get("content"))
        match message["role"]:
            case "tool":
                used.add(names[message["tool_call_id"]])
                turns.append(_result(names[message["tool_call_id"]], text))
            case "assistant":
                calls = message.get("tool_calls") or []
                names |= {call["id"]: call["function"]["name"] for call in calls}
                told = [_call(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]
                turns.append({"role": "assistant", "content": " ".join([text, *told]).strip()})
            case role:
                used.clear()
                turns.append({"role": "system" if role == "developer" else role, "content": text})
    tools = tuple(_tool(tool["function"], "parameters") for tool in body.get("tools") or ())
    shape = (body.get("response_format") or {}).get("json_schema") or {}
    limit = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
    return _asked(body, turns, tools, limit, schema=shape.get("schema"), used=frozenset(used))


def _messages(body: dict[str, Any]) -> Asked:
    turns: list[Turn] = [{"role": "system", "content": _text(body["system"])}] if body.get("system") else []
    names: dict[str, str] = {}
    used: set[str] = set()
    for message in body["messages"]:
        content = message["content"]
        blocks: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            match block["type"]:
                case "tool_use":
                    names[block["id"]] = block["name"]
                    turns.append({"role": "assistant", "content": _call(block["name"], block["input"])})
                case "tool_result":
                    used.add(names[block["tool_use_id"]])
                    turns.append(_result(names[block["tool_use_id"]], _text(block.get("content"))))
                case "text":
                    used = used if message["role"] == "assistant" else set()
                    turns.append({"role": message["role"], "content": block["text"]})
    tools = tuple(_tool(tool, "input_schema") for tool in body.get("tools") or ())
    shape = ((body.get("output_config") or {}).get("format") or {}).get("schema")
    return _asked(body, turns, tools, "max_tokens", schema=shape, used=frozenset(used))


def _responses(body: dict[str, Any]) -> Asked:
    turns: list[Turn] = [{"role": "system", "content": body["instructions"]}] if body.get("instructions") else []
    names: dict[str, str] = {}
    used: set[str] = set()
    given = body["input"]
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        match item.get("type", "message"):
            case "function_call":
                names[item["call_id"]] = item["name"]
                turns.append({"role": "assistant", "content": _call(item["name"], json.loads(item["arguments"]))})
            case "function_call_output":
                used.add(names[item["call_id"]])
                turns.append(_result(names[item["call_id"]], _text(item["output"])))
            case "message":
                used = used if item["role"] == "assistant" else set()
                turns.append({"role": item["role"], "content": _text(item["content"])})
    tools = tuple(_tool(tool, "parameters") for tool in body.get("tools") or ())
    shape = ((body.get("text") or {}).get("format") or {}).get("schema")
    return _asked(body, turns, tools, "max_output_tokens", schema=shape, used=frozenset(used))


_API: dict[str, tuple[Callable[[dict[str, Any]], Asked], Callable[[dict[str, Any], Reply], Answer]]] = {
    "completions": (_chat, speech.chat),
    "messages": (_messages, speech.anthropic),
    "responses": (_responses, speech.responses),
}


def _tool(told: Mapping[str, Any], schema: str) -> Tool:
    return Tool(told["name"], told.get("description") or "", told.get(schema) or {"type": "object", "properties": {}})


def _call(name: str, arguments: Mapping[str, Any]) -> str:
    return f"I use {name}: {_plain(arguments)}."


def _result(name: str, text: str) -> Turn:
    with suppress(ValueError):
        text = _plain(json.loads(text))
    return {"role": "user", "content": f"{name} says: {text}"}


def _plain(value: Any) -> str:
    """JSON in words: the model goes on in braces once it has read some."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(_plain(item) for item in value)
    return str(value)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else " ".join(_texts(content))


def _texts(blocks: Any) -> Iterator[str]:
    for block in blocks or ():
        if "text" in block:
            yield block["text"]
