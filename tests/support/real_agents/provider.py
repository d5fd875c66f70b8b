"""The scripted provider: it speaks every API, asks for one tool, then says what the tool found."""

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from support.real_agents import speech
from support.real_agents.speech import Reply, ToolUse, json_answer
from support.script import Answer, Request

NOTE = "The lighthouse keeper's name is Ottoline Marsh."
"""What stands in the file that every agent reads; only a tool that really ran can bring it to the provider."""
ERRAND = "Inner errand"
"""With a number it opens the prompt of a sub-agent, so that its conversation is told from the others."""


@dataclass(frozen=True, slots=True)
class Script:
    """What the model does before it knows the note."""

    tool: ToolUse | None = None
    opening: str = ""
    """For an agent without tools, that acts on what the model writes: the first thing it writes."""
    closing: str = "I looked it up. {note}"
    errands: tuple[tuple[ToolUse, ToolUse], ...] = ()
    """What starts a sub-agent, and what that one asks for; the main conversation starts all of them at once."""


@dataclass(slots=True)
class ModelApis:
    """A playbook: one script in the words of whatever API is asked."""

    script: Script
    turns: list[str] = field(default_factory=list)
    """What the model did, in order: ``tool NAME``, or its words."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Request) -> Answer:
        path = request.path
        if request.method == "POST" and path.endswith(("/messages", "/chat/completions", "/responses")):
            speak = {"messages": speech.anthropic, "completions": speech.chat, "responses": speech.responses}
            asked = request.json()
            return speak[path.rpartition("/")[2]](asked, self._turn(asked))
        if request.method == "POST" and path.endswith((":generateContent", ":streamGenerateContent")):
            return speech.gemini(request.target, self._turn(request.json()))
        return _aside(request)

    def _turn(self, asked: dict[str, Any]) -> Reply:
        reply = _reply(self.script, asked)
        said = ", ".join(f"tool {tool.name}" for tool in reply.tools) or reply.text
        with self._lock:
            self.turns.append(said)
        return reply


def _aside(request: Request) -> Answer:
    """Settings, feature flags, counts and telemetry: a plausible answer that asks for nothing."""
    if request.header("upgrade"):
        return json_answer({"error": {"message": "no sockets here"}}, status=404)
    if request.method == "GET" and not request.host.startswith("api."):
        # A list of models or prices: the copy that the agent brought along will do.
        return json_answer({}, status=404)
    plausible: dict[str, Any] = {
        "policy_limits": {"restrictions": {}},
        "count_tokens": {"input_tokens": 210},
        "input_tokens": {"object": "response.input_tokens", "input_tokens": 210},
        "models": {"object": "list", "data": [], "models": []},
    }
    return json_answer(plausible.get(request.path.rpartition("/")[2], {}))


def _reply(script: Script, asked: dict[str, Any]) -> Reply:
    turns = asked.get("messages") or asked.get("input") or asked.get("contents") or []
    later = [tool for turn in turns if isinstance(turn, dict) for tool in turn.get("tools") or ()]
    offered = set(_offered([*(asked.get("tools") or ()), *later]))
    errand = re.search(rf"{ERRAND} (\d+)", _first_prompt(turns))
    tools = (script.tool,) if script.tool else tuple(start for start, _ in script.errands)
    if errand is not None:
        tools = (script.errands[int(errand[1])][1],)
    if not offered.issuperset(tool.name for tool in tools):
        return Reply(_instance(_schema(asked)))
    if NOTE in _after_last_call(turns):
        found = script.closing.format(note=NOTE)
        last = (ToolUse("final_answer", {"answer": found}),)
        return Reply(tools=last) if "final_answer" in offered else Reply(found)
    if not tools:
        return Reply(script.opening)
    prompt = json.dumps(turns, ensure_ascii=False)
    if re.search(r"function_call_output|tool_result|functionResponse|\"role\": \"tool\"", prompt):
        raise AssertionError(f"the tool did not bring the note: {prompt[-3000:]}")
    return Reply(tools=tools)


def _offered(tools: list[dict[str, Any]]) -> Iterator[str]:
    for tool in tools:
        yield from _offered(tool.get("tools") or [])
        for declared in tool.get("functionDeclarations") or tool.get("function_declarations") or ():
            yield declared["name"]
        named = tool.get("function") if isinstance(tool.get("function"), dict) else tool
        if named and "name" in named:
            yield named["name"]


def _first_prompt(turns: Any) -> str:
    users = [turn for turn in turns if isinstance(turn, dict) and turn.get("role") == "user"]
    return json.dumps(users[:2], ensure_ascii=False)


def _after_last_call(turns: Any) -> str:
    """What came after the last thing the model said: a tool's result, if there is one."""
    if isinstance(turns, str):
        return ""
    said = [
        at
        for at, turn in enumerate(turns)
        if turn.get("role") in ("assistant", "model") or turn.get("type") in ("function_call", "custom_tool_call")
    ]
    return json.dumps(turns[said[-1] + 1 :], ensure_ascii=False) if said else ""


def _schema(asked: dict[str, Any]) -> dict[str, Any]:
    """The shape an aside must have, where one is asked for."""
    config = asked.get("generationConfig") or {}
    found: dict[str, Any] = config.get("responseJsonSchema") or config.get("responseSchema") or {}
    return found


def _instance(schema: dict[str, Any]) -> str:
    """A short text of that shape: a few words, or an object of words and numbers."""
    fields = schema.get("properties")
    if not fields:
        return "Reading a note"
    return json.dumps(
        {name: 20 if kind["type"].lower() in ("integer", "number") else "a note" for name, kind in fields.items()}
    )
