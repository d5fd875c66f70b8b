"""A session step by step, one step in full, or one tool call, for people."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewind.cli.screens.context import print_changes, print_context
from rewind.cli.screens.facts import print_facts, session_facts
from rewind.cli.screens.layout import Cell, Column, print_table, wrapped
from rewind.cli.screens.terminal import Span, Terminal, err, hint
from rewind.conversation.context import part_text
from rewind.conversation.outline import Outline, OutlineStep
from rewind.conversation.tools import ToolCall
from rewind.model.http import Headers
from rewind.model.outcome import Outcome, outcome_of
from rewind.model.step import Ending, Step, StepKind, StepResponse
from rewind.model.usage import Usage
from rewind.pricing.spending import Spending
from rewind.reading.body_text import is_event_stream, read_body
from rewind.reading.inspect import Inspection, SessionOverview, StepContext, StepDetail, ToolCallDetail
from rewind.safe import plain_json, safe_line
from rewind.text import NONE, dollars, moment, number, plural, uploads_shown
from rewind.views.session import events

COLUMNS = (
    Column("#", right=True),
    Column("kind"),
    Column("thread"),
    Column("model", flexible=True, least=8),
    Column("in", right=True),
    Column("out", right=True),
    Column("cost", right=True),
    Column("ms", right=True),
    Column("first", right=True),
    Column("status"),
    Column("text", flexible=True, least=16),
)

NARROW = 100
"""Columns of a screen below which the table does without the times."""
_TOOL_SHOWN = 300
"""Characters of a tool's arguments and result in a row; ``inspect ID:4.1`` has them all."""

_NAMES_SHOWN = 8
"""Names that the last replay had others for."""
BINARY_SHOWN = 256
"""Bytes of a binary body that are shown, as hexadecimal digits."""


def print_inspection(terminal: Terminal, inspection: Inspection, *, full: bool, uploads: bool = False) -> None:
    """The screen of ``rewind inspect``; ``full``: long and unchanged messages, too; ``uploads``: telemetry, too."""
    match inspection:
        case SessionOverview():
            _print_overview(terminal, inspection, uploads=uploads)
        case StepDetail():
            _print_step(terminal, inspection)
        case ToolCallDetail(session=session, call=call):
            _print_tool_call(terminal, session, call)
        case StepContext():
            _print_context(terminal, inspection, full=full)


def _print_overview(terminal: Terminal, overview: SessionOverview, *, uploads: bool) -> None:
    recording, outline = overview.recording, overview.outline
    ended_well = outcome_of(recording.session) is Outcome.OK
    facts = session_facts(recording.session, recording.damage, recording.surroundings)
    facts += _run_facts(outline, overview.spent, overview.context_window)
    print_facts(terminal, [*facts, *_replay_facts(overview)])
    terminal.line()
    shown = outline.steps if uploads else outline.run_steps
    if shown:
        _print_steps(terminal, outline, shown, overview.costs, ended_well=ended_well)
    else:
        terminal.line("no steps")
    if not uploads and (folded := outline.uploads):
        terminal.line(Span(f"+ {uploads_shown(folded)}: --all shows them", "dim"))
    if shown:
        err().line(hint(f"→ rewind inspect {recording.session.ref}:{shown[0].step.index}"))


def _replay_facts(overview: SessionOverview) -> Iterator[tuple[str, str | Span]]:
    """What the last replay called otherwise; nothing where all was exact."""
    replayed = overview.replayed
    if replayed is None or not replayed.renamed:
        return
    yield "last replay", f"{moment(replayed.ts)}: {plural(len(replayed.renamed), 'step')} the same but for"
    pairs = list(dict.fromkeys(pair for pairs in replayed.renamed.values() for pair in pairs))
    for pair in pairs[:_NAMES_SHOWN]:
        yield "", f"{pair.kind} {safe_line(pair.then, 60)} → {safe_line(pair.now, 60)}"
    if len(pairs) > _NAMES_SHOWN:
        yield "", f"… and {len(pairs) - _NAMES_SHOWN} more"


def _print_context(terminal: Terminal, context: StepContext, *, full: bool) -> None:
    since = context.since
    heading = "no earlier call to compare with" if since is None else f"compared with step {since}"
    terminal.line(Span(f"{context.session}:{context.step}", "bold"), f"  what the model read, {heading}")
    if context.asked.note:
        terminal.line(Span(context.asked.note, "yellow"))
    terminal.line()
    if since is None:
        print_context(terminal, context.entries, full=full)
    else:
        print_changes(terminal, context.changes, since, full=full)


def _run_facts(outline: Outline, spent: Spending, window: int | None) -> Iterator[tuple[str, str | Span]]:
    """What the steps come to; ``window`` is the context window of the model with the fullest context."""
    calls = [entry for entry in outline.steps if entry.kind is StepKind.LLM_CALL]
    if not calls:
        return
    summary = plural(len(calls), "LLM call")
    if outline.threads:
        summary += f" in {plural(outline.threads, 'thread')}"
    facts = [summary]
    if outline.tools:
        facts.append(plural(len(outline.tools), "tool call"))
    if retried := sum(entry.retry_of is not None for entry in outline.run_steps):
        facts.append(plural(retried, "retry", "retries"))
    yield "calls", ", ".join(facts)
    usages = [entry.reading.usage for entry in calls if entry.reading.usage.is_told]
    if usages:
        yield "tokens", _tokens(usages)
    turns = [entry.reading.usage.input or 0 for entry in calls if entry.place is not None]
    if peak := max(turns, default=0):
        share = f" of {window:,} ({_share(peak, window)})" if window else ""
        yield "peak context", f"{peak:,} tokens{share}"
    unpriced = f" ({plural(spent.unpriced, 'call')} unpriced)" if spent.unpriced else ""
    yield "cost", dollars(spent.usd) + unpriced


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if part * 100 >= whole else "<1%"


def _tokens(usages: Sequence[Usage]) -> str:
    def kind(name: str, words: str) -> str:
        count = sum(getattr(usage, name) or 0 for usage in usages)
        return f"{count:,} {words}" if count else ""

    read = ", ".join(filter(None, (kind("cache_read", "from cache"), kind("cache_write", "to cache"))))
    thought = kind("reasoning", "thinking")
    incoming = kind("input", "in") or "0 in"
    outgoing = kind("output", "out") or "0 out"
    return incoming + (f" ({read})" if read else "") + ", " + outgoing + (f" ({thought})" if thought else "")


def _print_steps(
    terminal: Terminal,
    outline: Outline,
    steps: Sequence[OutlineStep],
    costs: Mapping[int, float | None],
    *,
    ended_well: bool,
) -> None:
    """The table of ``rewind inspect``. The thread is shown where there are several."""
    several = outline.threads > 1
    tools = outline.tools_of()
    rows = []
    shown_as_tool = {call.recorded_as for call in outline.tools}
    for entry in steps:
        if entry.step.index in shown_as_tool:
            continue
        rows.append(_step_row(entry, costs.get(entry.step.index)))
        rows += [_tool_row(call, ended_well) for call in tools.get(entry.step.index, ())]
    hidden = set() if several else {"thread"}
    if terminal.width < NARROW:
        hidden |= {"first", "ms"}
    shown = [at for at, column in enumerate(COLUMNS) if column.title not in hidden]
    print_table(terminal, [COLUMNS[at] for at in shown], [[row[at] for at in shown] for row in rows])


def step_status(step: Step) -> Span:
    """The HTTP status; how the answer ended where it did not end well."""
    response = step.response
    if response is None:
        return Span("no answer", "yellow")
    code = str(response.head.status) if response.head else ""
    if response.ending is not Ending.COMPLETE:
        return Span(f"{code} {response.ending.value.replace('_', ' ')}".strip(), "yellow")
    if response.reading.error or (response.head and response.head.status >= 400):
        return Span(f"✗ {code}", "red")
    return Span(code)


def tool_shown(call: ToolCall, limit: int = _TOOL_SHOWN) -> str:
    """``lookup({"id":7}) ← active``."""
    asked = part_text(call.use).removeprefix("→ ")[:limit]
    if call.result is None and call.ends:
        return f"{asked} (ends the conversation)"
    if call.result is None:
        return f"{asked} (no result seen)"
    sign = "✗" if call.result.failed else "←"
    return f"{asked} {sign} {' '.join(part_text(part) for part in call.result.parts)[:limit]}"


def _thread(entry: OutlineStep) -> str:
    """``2``; ``2 ← 4`` where step 4 of another conversation started it."""
    if entry.place is None:
        return ""
    started = entry.place.started_by
    return str(entry.place.thread) if started is None else f"{entry.place.thread} ← {started}"


def _step_row(entry: OutlineStep, cost: float | None) -> list[Cell]:
    step, reading = entry.step, entry.reading
    request, response = step.request, step.response
    address = f"{request.head.method} {request.head.host}{request.head.path}"
    text = Span(address)
    if entry.label in ("http", "upload") and not entry.asked.messages:
        # Nobody reads its body: the address says more than how that begins.
        text = Span(f"{address}: {reading.error}", "red") if reading.error else text
    elif reading.error:
        text = Span(reading.error, "red")
    elif reading.text:
        text = Span(reading.text)
    elif reason := (response.reason if response is not None else None) or reading.note or entry.asked.note:
        text = Span(reason, "yellow")
    if entry.retry_of is not None:
        text = Span(f"retry of {entry.retry_of}: {text.text}", text.style)
    is_call = entry.kind is StepKind.LLM_CALL
    return [
        str(step.index),
        Span(entry.label, "cyan" if is_call else ""),
        _thread(entry),
        reading.model or request.model or NONE,
        number(reading.usage.input),
        number(reading.usage.output),
        dollars(cost) if is_call else "",
        number(response.ms if response else None),
        number(response.first_ms if response else None),
        step_status(step),
        text,
    ]


def _tool_row(call: ToolCall, ended_well: bool) -> list[Cell]:
    """A call without a result is worth a look, but not where a run that came to a good end ends with it."""
    failed = call.result is not None and call.result.failed
    expected = call.result is not None or (call.ends and ended_well)
    status = Span("✗ error", "red") if failed else Span("" if expected else "no result", "yellow")
    text = tool_shown(call)
    return [call.label, "tool", "", "", "", "", "", number(call.ms), "", status, Span(text, "red") if failed else text]


def _print_step(terminal: Terminal, detail: StepDetail) -> None:
    """What it means, then the asking half and the answering half."""
    entry = detail.step
    request = entry.step.request
    headline = (Span(f"{detail.session}:{request.index}", "bold"), Span("  "), *_headline(entry))
    for line in wrapped(headline, terminal.width):
        terminal.line(*line)
    print_facts(terminal, [*_facts(entry, detail.cost), *(("damage", Span(one, "red")) for one in detail.damage)])
    if detail.request_body is not None:
        terminal.line()
        terminal.line(Span(f"{request.head.method} {request.head.url}", "bold"))
        _print_headers(terminal, request.head.headers)
        if request.note:
            terminal.line(Span(request.note, "yellow"))
        _print_body(terminal, detail.request_body, request.head.headers)
    if detail.with_response:
        terminal.line()
        _print_response(terminal, entry, detail.response_body)


def _print_tool_call(terminal: Terminal, session_id: str, call: ToolCall) -> None:
    """A tool call in full."""
    terminal.line(
        Span(f"{session_id}:{call.label}", "bold"), "  tool_call  ", Span(safe_line(call.use.name, 200), "cyan")
    )
    facts: list[tuple[str, str | Span]] = [("asked for in", f"step {call.asked_in}")]
    if call.answered_in is not None:
        facts.append(("result in", f"step {call.answered_in}"))
    if call.recorded_as is not None:
        facts.append(("recorded as", f"step {call.recorded_as}"))
        facts.append(("took", f"{number(call.ms)} ms"))
    elif call.ms is not None:
        facts.append(("took", f"{call.ms:,.1f} ms at most, from the asking answer to the request with the result"))
    if call.use.id:
        facts.append(("id", call.use.id))
    print_facts(terminal, facts)
    terminal.line()
    terminal.line(Span("arguments", "bold"))
    arguments = plain_json(call.use.arguments)
    terminal.line(arguments if isinstance(arguments, str) else json.dumps(arguments, indent=2, ensure_ascii=False))
    terminal.line()
    if call.result is None:
        ends = "No later request brought a result: the conversation ends with this call."
        terminal.line(ends if call.ends else Span("No later request brought a result.", "yellow"))
        return
    terminal.line(Span("result, an error", "bold red") if call.result.failed else Span("result", "bold"))
    for part in call.result.parts:
        terminal.line(part_text(part))


def _headline(entry: OutlineStep) -> Iterator[Span]:
    request, reading = entry.step.request, entry.reading
    yield Span(entry.kind.value)
    if model := reading.model or request.model:
        yield Span("  ")
        yield Span(safe_line(model, 200), "cyan")
    if reading.usage.is_told:
        yield Span(f"  {usage_shown(reading.usage)}")
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


def _facts(entry: OutlineStep, cost: float | None) -> Iterator[tuple[str, str | Span]]:
    """What the exchange means, where a codec reads it."""
    reading = entry.reading
    if entry.place is not None:
        goes_on = "" if entry.place.parent is None else f", goes on from step {entry.place.parent}"
        started = "" if entry.place.started_by is None else f", started by step {entry.place.started_by}"
        yield "thread", f"{entry.place.thread}{goes_on}{started}"
    if entry.telemetry is not None:
        yield "telemetry", f"{entry.telemetry}: an upload, and no part of the run"
    if entry.retry_of is not None:
        yield "retry of", Span(f"step {entry.retry_of}", "yellow")
    if entry.asked.model and reading.model and entry.asked.model != reading.model:
        yield "asked for", entry.asked.model
    if entry.answered is not None and entry.answered.stop:
        yield "stopped", entry.answered.stop
    if entry.kind is StepKind.LLM_CALL:
        yield "cost", dollars(cost)
        if entry.asked.messages:
            tools = f", {plural(len(entry.asked.tools), 'tool')}" if entry.asked.tools else ""
            yield "read", f"{plural(len(entry.asked.messages), 'message')}{tools}: --context shows them"
    if entry.asked.note:
        yield "note", Span(entry.asked.note, "yellow")


def _print_response(terminal: Terminal, entry: OutlineStep, body: bytes | None) -> None:
    step, response = entry.step, entry.step.response
    if response is None:
        terminal.line(Span("No answer is recorded.", "yellow"))
        return
    if response.head is not None:
        terminal.line(Span(f"HTTP/{response.head.version} {response.head.status} {response.head.reason}", "bold"))
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
            Span(f"ended: {response.ending.value.replace('_', ' ')}. {response.reason or ''}".rstrip(), "yellow")
        )
    if entry.reading.error:
        terminal.line(Span(f"error: {entry.reading.error}", "red"))
    if body is not None and (left := response.body_size - len(body)) > 0:
        terminal.line(Span(f"{left:,} more bytes are not shown; --raw writes all of them", "yellow"))
    elif entry.reading.note:
        terminal.line(Span(entry.reading.note, "yellow"))


def _timing(response: StepResponse) -> str:
    first = NONE if response.first_ms is None else f"{response.first_ms:,.1f} ms"
    return (
        f"{response.ms:,.1f} ms in all, first byte {first}, "
        f"{plural(response.body_size, 'byte')} in {plural(len(response.chunks), 'piece')}"
    )


def _print_headers(terminal: Terminal, headers: Headers) -> None:
    for name, value in headers:
        terminal.line(Span(f"{name}: ", "dim"), value)


def _print_body(terminal: Terminal, data: bytes, headers: Headers, response: StepResponse | None = None) -> None:
    if not data:
        return
    terminal.line()
    read = read_body(data, headers)
    if read.note:
        terminal.line(Span(read.note, "yellow"))
    if read.binary is not None:
        shown = read.binary[:BINARY_SHOWN].hex(" ", 4)
        terminal.line(Span(plural(len(read.binary), "byte") + " that are not text: ", "dim"), shown)
        if len(read.binary) > BINARY_SHOWN:
            terminal.line(Span("… --raw shows them all", "dim"))
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
        terminal.line(Span(f"{time:>{width}}  ", "dim"), Span(f"{event['event']}  ", "cyan"), str(event["data"]))
