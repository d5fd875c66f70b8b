"""One step in full, for people."""

import json
from collections.abc import Iterator
from typing import Any

from rewind.cli.screens.facts import print_facts
from rewind.cli.screens.steps import step_status
from rewind.cli.screens.terminal import Span, Terminal
from rewind.conversation.context import part_text
from rewind.conversation.outline import Understood
from rewind.conversation.tools import ToolCall
from rewind.model.http import Headers
from rewind.model.step import Ending, StepKind, StepResponse
from rewind.model.usage import Usage
from rewind.safe import plain_json, safe_line
from rewind.text import NONE, dollars, number, plural
from rewind.views.body import events, is_event_stream, read_body

BINARY_SHOWN = 256
"""Bytes of a binary body that are shown, as hexadecimal digits."""


def print_step(
    terminal: Terminal,
    session_id: str,
    one: Understood,
    request_body: bytes | None,
    response_body: bytes | None,
    with_response: bool = True,
    cost: float | None = None,
) -> None:
    """What it means, then the asking half and the answering half; ``None`` for a body that is not asked for."""
    step, request = one.step, one.step.request
    terminal.line(Span(f"{session_id}:{step.index}", "bold"), "  ", *_headline(one))
    print_facts(terminal, _facts(one, cost))
    if request_body is not None:
        terminal.line()
        terminal.line(Span(f"{request.head.method} {request.head.url}", "bold"))
        _print_headers(terminal, request.head.headers)
        if request.note:
            terminal.line(Span(request.note, "yellow"))
        _print_body(terminal, request_body, request.head.headers)
    if with_response:
        terminal.line()
        _print_response(terminal, one, response_body)


def print_tool_call(terminal: Terminal, session_id: str, call: ToolCall) -> None:
    """A tool call in full."""
    terminal.line(
        Span(f"{session_id}:{call.label}", "bold"),
        "  tool_call  ",
        Span(safe_line(call.use.name, 200), "cyan"),
    )
    facts: list[tuple[str, str | Span]] = [("asked for in", f"step {call.asked_in}")]
    if call.answered_in is not None:
        facts.append(("result in", f"step {call.answered_in}"))
    if call.recorded_as is not None:
        facts.append(("recorded as", f"step {call.recorded_as}"))
        facts.append(("took", f"{number(call.ms)} ms"))
    elif call.ms is not None:
        facts.append(
            ("took", f"{call.ms:,.1f} ms at most, from the asking answer to the request with the result")
        )
    if call.use.id:
        facts.append(("id", call.use.id))
    print_facts(terminal, facts)
    terminal.line()
    terminal.line(Span("arguments", "bold"))
    arguments = plain_json(call.use.arguments)
    terminal.line(
        arguments if isinstance(arguments, str) else json.dumps(arguments, indent=2, ensure_ascii=False)
    )
    terminal.line()
    if call.result is None:
        terminal.line(Span("No later request brought a result.", "yellow"))
        return
    terminal.line(Span("result, an error", "bold red") if call.result.failed else Span("result", "bold"))
    for part in call.result.parts:
        terminal.line(part_text(part))


def _headline(one: Understood) -> Iterator[str | Span]:
    request, reading = one.step.request, one.reading
    yield one.kind.value
    if model := reading.model or request.model:
        yield "  "
        yield Span(safe_line(model, 200), "cyan")
    if reading.usage.is_told:
        yield f"  {usage_shown(reading.usage)}"
    yield Span(f"  {request.match_key}", "dim")


def usage_shown(usage: Usage) -> str:
    """``1,204 tokens in (1,024 from cache), 88 out (40 thinking)``."""
    cached = [
        f"{count:,} {words}"
        for count, words in ((usage.cache_read, "from cache"), (usage.cache_write, "to cache"))
        if count
    ]
    read = f" ({', '.join(cached)})" if cached else ""
    thought = f" ({usage.reasoning:,} thinking)" if usage.reasoning else ""
    return f"{number(usage.input)} tokens in{read}, {number(usage.output)} out{thought}"


def _facts(one: Understood, cost: float | None) -> Iterator[tuple[str, str | Span]]:
    """What the exchange means, where a codec reads it."""
    reading = one.reading
    if one.place is not None:
        goes_on = "" if one.place.parent is None else f", goes on from step {one.place.parent}"
        started = "" if one.place.started_by is None else f", started by step {one.place.started_by}"
        yield "thread", f"{one.place.thread}{goes_on}{started}"
    if one.retry_of is not None:
        yield "retry of", Span(f"step {one.retry_of}", "yellow")
    if one.asked.model and reading.model and one.asked.model != reading.model:
        yield "asked for", one.asked.model
    if one.answered is not None and one.answered.stop:
        yield "stopped", one.answered.stop
    if one.kind is StepKind.LLM_CALL:
        yield "cost", dollars(cost)
        if one.asked.messages:
            tools = f", {plural(len(one.asked.tools), 'tool')}" if one.asked.tools else ""
            yield "read", f"{plural(len(one.asked.messages), 'message')}{tools}: --context shows them"
    if one.asked.note:
        yield "note", Span(one.asked.note, "yellow")


def _print_response(terminal: Terminal, one: Understood, body: bytes | None) -> None:
    step, response = one.step, one.step.response
    if response is None:
        terminal.line(Span("No answer is recorded.", "yellow"))
        return
    if response.head is not None:
        terminal.line(
            Span(f"HTTP/{response.head.version} {response.head.status} {response.head.reason}", "bold")
        )
        _print_headers(terminal, response.head.headers)
    else:
        terminal.line(step_status(step))
    if body is not None and response.head is not None:
        _print_body(terminal, body, response.head.headers, response)
    _print_headers(terminal, response.trailers)
    terminal.line()
    terminal.line(Span(_timing(response), "dim"))
    if response.ending is not Ending.COMPLETE:
        terminal.line(
            Span(
                f"ended: {response.ending.value.replace('_', ' ')}. {response.reason or ''}".rstrip(),
                "yellow",
            )
        )
    if one.reading.error:
        terminal.line(Span(f"error: {one.reading.error}", "red"))
    if one.reading.note:
        terminal.line(Span(one.reading.note, "yellow"))


def _timing(response: StepResponse) -> str:
    first = NONE if response.first_ms is None else f"{response.first_ms:,.1f} ms"
    return (
        f"{response.ms:,.1f} ms in all, first byte {first}, "
        f"{plural(response.body_size, 'byte')} in {plural(len(response.chunks), 'piece')}"
    )


def _print_headers(terminal: Terminal, headers: Headers) -> None:
    for name, value in headers:
        terminal.line(Span(f"{name}: ", "dim"), value)


def _print_body(
    terminal: Terminal, data: bytes, headers: Headers, response: StepResponse | None = None
) -> None:
    if not data:
        return
    terminal.line()
    read = read_body(data, headers)
    if read.note:
        terminal.line(Span(read.note, "yellow"))
    if read.binary is not None:
        shown = read.binary[:BINARY_SHOWN].hex(" ", 4)
        terminal.line(Span(plural(len(read.binary), "byte") + " that are no text: ", "dim"), shown)
        if len(read.binary) > BINARY_SHOWN:
            terminal.line(Span("… --raw gives them all", "dim"))
    elif read.is_json:
        terminal.line(json.dumps(read.json, indent=2, ensure_ascii=False))
    elif is_event_stream(headers):
        _print_events(terminal, events(data, headers, response.chunks if response else ()))
    else:
        terminal.line((read.text or "").rstrip("\n"))


def _print_events(terminal: Terminal, shown: list[dict[str, Any]]) -> None:
    times = [f"{event['at_ms']:,.1f} ms" if event["at_ms"] is not None else "" for event in shown]
    width = max(map(len, times), default=0)
    for event, time in zip(shown, times, strict=True):
        terminal.line(
            Span(f"{time:>{width}}  ", "dim"), Span(f"{event['event']}  ", "cyan"), str(event["data"])
        )
