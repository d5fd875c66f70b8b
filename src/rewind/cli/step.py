"""One step in full, for people."""

import json
from collections.abc import Iterator
from typing import Any

from rewind.cli.render import step_status
from rewind.cli.terminal import Span, Terminal
from rewind.cli.wording import NONE, number, plural
from rewind.model.http import Headers
from rewind.model.step import Ending, Step, StepResponse
from rewind.views.body import events, is_event_stream, read_body

BINARY_SHOWN = 256
"""Bytes of a binary body that are shown, as hexadecimal digits."""


def print_step(
    terminal: Terminal,
    session_id: str,
    step: Step,
    request_body: bytes | None,
    response_body: bytes | None,
    with_response: bool = True,
) -> None:
    """The asking half, then the answering half; ``None`` for a request body that is not asked for."""
    request = step.request
    terminal.line(Span(f"{session_id}:{step.index}", "bold"), "  ", *_headline(step))
    if request_body is not None:
        terminal.line()
        terminal.line(Span(f"{request.head.method} {request.head.url}", "bold"))
        _print_headers(terminal, request.head.headers)
        if request.note:
            terminal.line(Span(request.note, "yellow"))
        _print_body(terminal, request_body, request.head.headers)
    if with_response:
        terminal.line()
        _print_response(terminal, step, response_body)


def _headline(step: Step) -> Iterator[str | Span]:
    request, response = step.request, step.response
    reading = response.reading if response else None
    yield request.kind.value
    if model := (reading.model if reading else None) or request.model:
        yield "  "
        yield Span(model, "cyan")
    if reading is not None and (reading.tokens_in is not None or reading.tokens_out is not None):
        yield f"  {number(reading.tokens_in)} tokens in, {number(reading.tokens_out)} out"
    yield Span(f"  {request.match_key}", "dim")


def _print_response(terminal: Terminal, step: Step, body: bytes | None) -> None:
    response = step.response
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
    if response.reading.error:
        terminal.line(Span(f"error: {response.reading.error}", "red"))
    if response.reading.note:
        terminal.line(Span(response.reading.note, "yellow"))


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
