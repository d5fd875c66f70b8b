"""What a call means → plain JSON: messages, answers, tool calls, and what the model read."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rewind.conversation.context import ContextChange, ContextEntry, Fate
from rewind.conversation.outline import Outline, OutlineStep
from rewind.conversation.tools import ToolCall
from rewind.model.message import (
    Answered,
    Asked,
    Media,
    Message,
    Other,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolDefinition,
    ToolResult,
    ToolUse,
    Vectors,
)
from rewind.model.usage import Usage
from rewind.reading.inspect import Inspection, SessionOverview, StepContext, StepDetail, ToolCallDetail
from rewind.safe import plain_json
from rewind.views import members
from rewind.views import session as session_views

if TYPE_CHECKING:
    from rewind.reading.messages import Conversation


def part(one: Part) -> dict[str, Any]:
    match one:
        case Text(text):
            return {"type": "text", "text": text}
        case Thinking(text, sealed):
            return {"type": "thinking", "text": text, "sealed": sealed}
        case Refusal(text):
            return {"type": "refusal", "text": text}
        case ToolUse(id, name, arguments, hosted):
            return {
                "type": "tool_use",
                "id": id,
                "name": name,
                "arguments": plain_json(arguments),
                "hosted": hosted,
            }
        case ToolResult():
            fields = members(one, "id", "name", "failed", "hosted")
            return {"type": "tool_result", **fields, "parts": parts(one.parts)}
        case Media():
            return {"type": "media", **members(one, "kind", "media_type", "reference", "digest", "size")}
        case Vectors(count, dimensions):
            return {"type": "vectors", "count": count, "dimensions": dimensions}
        case Other(kind, value):
            return {"type": "other", "kind": kind, "value": plain_json(value)}


def parts(several: Iterable[Part]) -> list[dict[str, Any]]:
    return [part(one) for one in several]


def message(one: Message) -> dict[str, Any]:
    return {"role": one.role.value, "name": one.name, "parts": parts(one.parts)}


def tool(one: ToolDefinition) -> dict[str, Any]:
    return members(one, "name", "description") | {"schema": plain_json(one.schema), "hosted": one.hosted}


def usage(one: Usage) -> dict[str, Any]:
    counts = members(one, "input", "output", "cache_read", "cache_write", "reasoning")
    return counts | {"more": dict(one.more), "tier": one.tier}


def asked(one: Asked) -> dict[str, Any]:
    return {
        "model": one.model,
        "system": parts(one.system),
        "messages": [message(turn) for turn in one.messages],
        "tools": [tool(definition) for definition in one.tools],
        "parameters": plain_json(dict(one.parameters)),
        "streamed": one.streamed,
        "continues": one.continues,
        "history": one.history,
        "note": one.note,
    }


def answered(one: Answered) -> dict[str, Any]:
    return {
        "id": one.id,
        "model": one.model,
        "parts": parts(one.parts),
        "alternatives": [parts(choice) for choice in one.alternatives],
        "stop": one.stop,
        "usage": usage(one.usage),
        "error": one.error,
        "note": one.note,
    }


def tool_call(one: ToolCall) -> dict[str, Any]:
    """A tool call from the asking to the result."""
    return {
        "index": one.label,
        "kind": "tool_call",
        "asked_in": one.asked_in,
        "answered_in": one.answered_in,
        "id": one.use.id,
        "name": one.use.name,
        "arguments": plain_json(one.use.arguments),
        "result": None if one.result is None else parts(one.result.parts),
        "failed": None if one.result is None else one.result.failed,
        "ms": one.ms,
        "recorded_as": one.recorded_as,
    }


def place(one: OutlineStep) -> dict[str, Any]:
    """Where a step stands in its run."""
    return {
        "thread": one.place.thread if one.place else None,
        "parent": one.place.parent if one.place else None,
        "started_by": one.place.started_by if one.place else None,
        "retry_of": one.retry_of,
    }


def outline(one: Outline, costs: Mapping[int, float | None]) -> dict[str, Any]:
    """What a recording's steps come to, beside the rows of the steps."""
    return {
        "threads": one.threads,
        "tool_calls": [tool_call(call) for call in one.tools],
        "steps": [
            {
                "index": step.step.index,
                **place(step),
                "cost_usd": costs.get(step.step.index),
                "usage": None if step.answered is None else usage(step.answered.usage),
                "stop": None if step.answered is None else step.answered.stop,
            }
            for step in one.steps
        ],
    }


def entry(one: ContextEntry, *, with_text: bool = True) -> dict[str, Any]:
    view: dict[str, Any] = {
        "what": one.what,
        "label": one.label,
        "place": one.place,
        "held": one.held,
        "characters": one.size,
    }
    return view | ({"text": one.text} if with_text else {})


def context(
    session: str,
    step: int,
    asked: Asked,
    entries: Sequence[ContextEntry],
    compared: int | None,
    changes: Sequence[ContextChange],
) -> dict[str, Any]:
    """What the model read at a step, and what changed since another."""
    return {
        "schema": "rewind/context@1",
        "session": session,
        "step": step,
        "continues": asked.continues or asked.history,
        "note": asked.note,
        "entries": [entry(one) for one in entries],
        "compared_with": compared,
        "changes": [change(one) for one in changes],
    }


def change(one: ContextChange) -> dict[str, Any]:
    return {
        "fate": one.fate.value,
        **entry(one.entry, with_text=False),
        "before_characters": one.before.size if one.before else None,
        "kept": one.kept if one.fate is Fate.TRUNCATED else None,
        "lost": one.lost if one.fate is Fate.TRUNCATED else None,
        "own_answer": one.own_answer,
    }


def inspection(found: Inspection) -> dict[str, Any]:
    """What ``rewind inspect`` shows: a session, a step, a tool call, or what the model read."""
    match found:
        case SessionOverview():
            return session_views.recording(found.recording) | {"outline": outline(found.outline, found.costs)}
        case StepDetail():
            return step_detail(found)
        case ToolCallDetail(session=session, call=call):
            return {"schema": "rewind/tool_call@1", "session": session, "tool_call": tool_call(call)}
        case StepContext():
            return context(found.session, found.step, found.asked, found.entries, found.since, found.changes)


def step_detail(one: StepDetail) -> dict[str, Any]:
    """A step in full, or the half that was asked for."""
    step = one.step
    view = session_views.step(one.session, step.step, one.request_body or b"", one.response_body)
    view |= {"cost_usd": one.cost, "place": place(step), "asked": asked(step.asked)}
    view |= {"answered": step.answered and answered(step.answered)}
    if one.request_body is None:
        del view["request"], view["asked"]
    if not one.with_response:
        del view["response"], view["answered"]
    return view


def conversation(one: "Conversation") -> dict[str, Any]:
    """The messages of an API, up to a step."""
    transcript = one.transcript
    return {
        "schema": "rewind/messages@1",
        "session": one.session,
        "step": one.step,
        "thread": one.thread,
        "api": transcript.api,
        "model": transcript.model,
        "system": plain_json(transcript.system),
        "messages": plain_json(transcript.messages),
        "remarks": list(transcript.remarks),
    }
