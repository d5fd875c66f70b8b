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
from rewind.text import moment
from rewind.views import members
from rewind.views import session as session_views

if TYPE_CHECKING:
    from rewind.reading.messages import Conversation
    from rewind.reading.next_request import NextRequest


def part(item: Part) -> dict[str, Any]:
    match item:
        case Text(text):
            return {"type": "text", "text": text}
        case Thinking(text, sealed):
            return {"type": "thinking", "text": text, "sealed": sealed}
        case Refusal(text):
            return {"type": "refusal", "text": text}
        case ToolUse(id, name, arguments, hosted):
            return {"type": "tool_use", "id": id, "name": name, "arguments": plain_json(arguments), "hosted": hosted}
        case ToolResult():
            fields = members(item, "id", "name", "failed", "hosted")
            return {"type": "tool_result", **fields, "parts": parts(item.parts)}
        case Media():
            return {"type": "media", **members(item, "kind", "media_type", "reference", "digest", "size")}
        case Vectors(count, dimensions):
            return {"type": "vectors", "count": count, "dimensions": dimensions}
        case Other(kind, value):
            return {"type": "other", "kind": kind, "value": plain_json(value)}


def parts(several: Iterable[Part]) -> list[dict[str, Any]]:
    return [part(item) for item in several]


def message(item: Message) -> dict[str, Any]:
    return {"role": item.role.value, "name": item.name, "parts": parts(item.parts)}


def tool(item: ToolDefinition) -> dict[str, Any]:
    return members(item, "name", "description") | {"schema": plain_json(item.schema), "hosted": item.hosted}


def usage(item: Usage) -> dict[str, Any]:
    counts = members(item, "input", "output", "cache_read", "cache_write", "reasoning")
    return counts | {"more": dict(item.more), "tier": item.tier}


def asked(item: Asked) -> dict[str, Any]:
    return {
        "model": item.model,
        "system": parts(item.system),
        "messages": [message(turn) for turn in item.messages],
        "tools": [tool(definition) for definition in item.tools],
        "parameters": plain_json(dict(item.parameters)),
        "streamed": item.streamed,
        "continues": item.continues,
        "history": item.history,
        "note": item.note,
    }


def answered(item: Answered) -> dict[str, Any]:
    return {
        "id": item.id,
        "model": item.model,
        "parts": parts(item.parts),
        "alternatives": [parts(choice) for choice in item.alternatives],
        "stop": item.stop,
        "usage": usage(item.usage),
        "error": item.error,
        "note": item.note,
    }


def tool_call(item: ToolCall) -> dict[str, Any]:
    """A tool call from the asking to the result."""
    return {
        "index": item.label,
        "kind": "tool_call",
        "asked_in": item.asked_in,
        "answered_in": item.answered_in,
        "id": item.use.id,
        "name": item.use.name,
        "arguments": plain_json(item.use.arguments),
        "result": None if item.result is None else parts(item.result.parts),
        "ends": item.ends,
        "failed": None if item.result is None else item.result.failed,
        "ms": item.ms,
        "recorded_as": item.recorded_as,
    }


def place(item: OutlineStep) -> dict[str, Any]:
    """Where a step stands in its run."""
    return {
        "thread": item.place.thread if item.place else None,
        "parent": item.place.parent if item.place else None,
        "started_by": item.place.started_by if item.place else None,
        "retry_of": item.retry_of,
    }


def outline(item: Outline, costs: Mapping[int, float | None]) -> dict[str, Any]:
    """What a recording's steps come to, beside the rows of the steps."""
    return {
        "threads": item.threads,
        "tool_calls": [tool_call(call) for call in item.tools],
        "steps": [
            {
                "index": step.step.index,
                **place(step),
                "cost_usd": costs.get(step.step.index),
                "usage": None if step.answered is None else usage(step.answered.usage),
                "stop": None if step.answered is None else step.answered.stop,
            }
            for step in item.steps
        ],
    }


def entry(item: ContextEntry, *, with_text: bool = True) -> dict[str, Any]:
    view: dict[str, Any] = {
        "what": item.what,
        "label": item.label,
        "place": item.place,
        "held": item.held,
        "characters": item.size,
    }
    return view | ({"text": item.text} if with_text else {})


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
        "entries": [entry(item) for item in entries],
        "compared_with": compared,
        "changes": [change(item) for item in changes],
    }


def next_request(session: str, request: "NextRequest") -> dict[str, Any]:
    """What an agent is about to send: the members of ``inspect --context``, and what else is sent."""
    head = request.request.head
    seen = context(session, request.index, request.asked, request.entries, request.since, request.changes)
    return {name: value for name, value in seen.items() if name not in ("schema", "session")} | {
        "kind": request.recorded.kind.value,
        "method": head.method,
        "url": head.url,
        "bytes": len(request.request.body),
        "model": request.asked.model,
        "parameters": plain_json(dict(request.asked.parameters)),
        "recorded": session_views.step_row(request.recorded.step),
    }


def change(item: ContextChange) -> dict[str, Any]:
    return {
        "fate": item.fate.value,
        **entry(item.entry, with_text=False),
        "before_characters": item.before.size if item.before else None,
        "kept": item.kept if item.fate is Fate.TRUNCATED else None,
        "lost": item.lost if item.fate is Fate.TRUNCATED else None,
        "own_answer": item.own_answer,
    }


def inspection(found: Inspection) -> dict[str, Any]:
    """What ``rewind inspect`` shows: a session, a step, a tool call, or what the model read."""
    match found:
        case SessionOverview():
            replayed = None
            if found.replayed is not None:
                replayed = {
                    "at": moment(found.replayed.ts),
                    "renamed": session_views.renamed_steps(found.replayed.renamed),
                }
            return session_views.recording(found.recording) | {
                "outline": outline(found.outline, found.costs),
                "last_replay": replayed,
            }
        case StepDetail():
            return step_detail(found)
        case ToolCallDetail(session=session, call=call):
            return {"schema": "rewind/tool_call@1", "session": session, "tool_call": tool_call(call)}
        case StepContext():
            return context(found.session, found.step, found.asked, found.entries, found.since, found.changes)


def step_detail(item: StepDetail) -> dict[str, Any]:
    """A step in full, or the half that was asked for."""
    step = item.step
    view = session_views.step(item.session, step.step, item.request_body or b"", item.response_body)
    view |= {"cost_usd": item.cost, "place": place(step), "asked": asked(step.asked)}
    view |= {"answered": step.answered and answered(step.answered), "damage": list(item.damage)}
    if item.request_body is None:
        del view["request"], view["asked"]
    if not item.with_response:
        del view["response"], view["answered"]
    return view


def conversation(item: "Conversation") -> dict[str, Any]:
    """The messages of an API, up to a step."""
    transcript = item.transcript
    return {
        "schema": "rewind/messages@1",
        "session": item.session,
        "step": item.step,
        "thread": item.thread,
        "api": transcript.api,
        "model": transcript.model,
        "system": plain_json(transcript.system),
        "messages": plain_json(transcript.messages),
        "remarks": list(transcript.remarks),
    }
