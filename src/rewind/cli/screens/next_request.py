"""What an agent is about to send, beside what its recording holds: for the screen of a stop, and as JSON."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rewind.cli.screens.context import folded, print_changes, print_context
from rewind.cli.screens.facts import print_facts
from rewind.cli.screens.inspect import step_status, usage_shown
from rewind.cli.screens.terminal import Span, Terminal
from rewind.conversation.context import ContextChange, ContextEntry, compare_contexts, context_of
from rewind.conversation.message_digest import written
from rewind.conversation.outline import Outline, OutlineStep
from rewind.match.call import Call
from rewind.model.http import HttpRequest
from rewind.model.message import Asked
from rewind.model.step import StepKind
from rewind.reading.body_text import read_body
from rewind.safe import plain_json, safe_line
from rewind.text import plural
from rewind.views import call as understood
from rewind.views.session import step_row

_ANSWER_SHOWN = 300
"""Characters of the recorded answer."""
_VALUE_SHOWN = 60
"""Characters of one parameter: formats of answers may be long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A request of the agent, read, and the recorded step that will answer it."""

    recorded: OutlineStep
    request: HttpRequest
    """Redacted."""
    asked: Asked
    entries: tuple[ContextEntry, ...]
    """What the model is to read; empty for what is no call to a model."""
    since: int | None
    """The call that it goes on from."""
    changes: tuple[ContextChange, ...]

    @property
    def index(self) -> int:
        return self.recorded.step.index


def sending(call: Call, index: int, outline: Outline) -> Sending:
    """What is new in the call, compared with the recorded one it goes on from."""
    recorded = outline.step(index)
    assert recorded is not None, "an outline has every step of its recording"
    asked = call.provider.asked(call.request)
    since = recorded.place.parent if recorded.place is not None else None
    before = None if since is None else outline.step(since)
    entries: tuple[ContextEntry, ...] = ()
    changes: tuple[ContextChange, ...] = ()
    if recorded.kind is StepKind.LLM_CALL:
        entries = context_of(asked, outline.held(index))
    if before is not None and since is not None:
        changes = compare_contexts(context_of(before.asked, outline.held(since)), entries, before.answered)
    return Sending(
        recorded=recorded, request=call.request, asked=asked, entries=entries, since=since, changes=changes
    )


def print_sending(terminal: Terminal, one: Sending, total: int, *, drifted: bool) -> None:
    """The screen of a stop."""
    head = one.request.head
    model = Span(f"  {safe_line(one.asked.model, 200)}" if one.asked.model else "", "cyan")
    title = f"before step {one.index} of {total}"
    terminal.line(Span(title, "bold"), f"  {one.recorded.kind.value}", model)
    print_facts(terminal, [("to", f"{head.method} {head.url}"), *_facts(one, drifted=drifted)])
    terminal.line()
    if one.changes and one.since is not None:
        print_changes(terminal, one.changes, one.since, full=False)
    elif one.entries:
        print_context(terminal, one.entries, full=False)
    elif one.request.body:
        terminal.line(folded(_body_shown(one.request)))
    terminal.line()
    _print_answer(terminal, one.recorded)


def print_request(terminal: Terminal, one: Sending) -> None:
    """The whole request, less its keys."""
    head = one.request.head
    terminal.line(Span(f"{head.method} {head.url}", "bold"))
    for name, value in head.headers:
        terminal.line(Span(f"{name}: ", "dim"), value)
    terminal.line()
    terminal.line(_body_shown(one.request))


def sending_view(session: str, one: Sending) -> dict[str, Any]:
    """The same as JSON: the members of ``inspect --context``, and what else is sent."""
    head = one.request.head
    context = understood.context(session, one.index, one.asked, one.entries, one.since, one.changes)
    return {name: value for name, value in context.items() if name not in ("schema", "session")} | {
        "kind": one.recorded.kind.value,
        "method": head.method,
        "url": head.url,
        "bytes": len(one.request.body),
        "model": one.asked.model,
        "parameters": plain_json(dict(one.asked.parameters)),
        "recorded": step_row(one.recorded.step),
    }


def _facts(one: Sending, *, drifted: bool) -> Iterator[tuple[str, str | Span]]:
    if one.asked.parameters:
        values = (f"{name} {_value(value)}" for name, value in one.asked.parameters.items())
        yield "parameters", ", ".join(values)
    size = plural(len(one.request.body), "byte")
    if one.asked.messages:
        tools = f", {plural(len(one.asked.tools), 'tool')}" if one.asked.tools else ""
        size = f"{plural(len(one.asked.messages), 'message')}{tools}, {size}"
    yield "size", size
    if one.recorded.place is not None and one.recorded.place.parent is not None:
        yield "goes on from", f"step {one.recorded.place.parent}"
    if one.asked.note:
        yield "note", Span(one.asked.note, "yellow")
    if drifted:
        yield "drift", Span(f"not what was recorded as step {one.index}, and taken for it", "yellow")
    if one.recorded.step.request.asked_key:
        changed = "this fork had changed it on its way out; shown is what the agent sends"
        yield "edited", Span(changed, "yellow")


def _value(value: Any) -> str:
    return safe_line(value if isinstance(value, str) else written(value), _VALUE_SHOWN)


def _body_shown(request: HttpRequest) -> str:
    read = read_body(request.body, request.head.headers)
    if read.binary is not None:
        return plural(len(read.binary), "byte") + " that are no text"
    return json.dumps(read.json, indent=2, ensure_ascii=False) if read.is_json else (read.text or "")


def _print_answer(terminal: Terminal, recorded: OutlineStep) -> None:
    reading = recorded.reading
    parts: list[str | Span] = [Span("the recording answers  ", "dim"), step_status(recorded.step)]
    if reading.usage.is_told:
        parts.append(f"  {usage_shown(reading.usage)}")
    terminal.line(*parts)
    if told := reading.error or reading.text:
        terminal.line(Span(f"  {safe_line(told, _ANSWER_SHOWN)}", "red" if reading.error else ""))
