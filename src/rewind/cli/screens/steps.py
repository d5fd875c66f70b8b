"""A run step by step, for people: what it came to, then a row for each call and each tool between the calls."""

from collections.abc import Iterator, Mapping, Sequence

from rewind.cli.screens.table import Cell, Column, print_table
from rewind.cli.screens.terminal import Span, Terminal
from rewind.conversation.context import part_text
from rewind.conversation.outline import Outline, Understood
from rewind.conversation.tools import ToolCall
from rewind.model.step import Ending, Step, StepKind
from rewind.model.usage import Usage
from rewind.pricing.spending import Spending
from rewind.text import NONE, dollars, number, plural

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


def run_facts(outline: Outline, spent: Spending, window: int | None) -> Iterator[tuple[str, str | Span]]:
    """What the steps come to; ``window`` is the context window of the model with the fullest context."""
    calls = [one for one in outline.steps if one.kind is StepKind.LLM_CALL]
    if not calls:
        return
    told = [plural(len(calls), "LLM call")]
    if outline.threads:
        told.append(f"in {plural(outline.threads, 'thread')}")
    facts = [" ".join(told)]
    if outline.tools:
        facts.append(plural(len(outline.tools), "tool call"))
    if retried := sum(one.retry_of is not None for one in outline.steps):
        facts.append(plural(retried, "retry", "retries"))
    yield "calls", ", ".join(facts)
    usages = [one.reading.usage for one in calls if one.reading.usage.is_told]
    if usages:
        yield "tokens", _tokens(usages)
    turns = [one.reading.usage.input or 0 for one in calls if one.place is not None]
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


def print_steps(terminal: Terminal, outline: Outline, costs: Mapping[int, float | None]) -> None:
    """The table of ``rewind inspect``. The thread is shown where there are several."""
    several = outline.threads > 1
    tools = outline.tools_of()
    rows = []
    shown_as_tool = {call.recorded_as for call in outline.tools}
    for one in outline.steps:
        if one.step.index in shown_as_tool:
            continue
        rows.append(_step_row(one, costs.get(one.step.index)))
        rows += [_tool_row(call) for call in tools.get(one.step.index, ())]
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
    if call.result is None:
        return f"{asked} (no result seen)"
    sign = "✗" if call.result.failed else "←"
    return f"{asked} {sign} {' '.join(part_text(part) for part in call.result.parts)[:limit]}"


def _thread(one: Understood) -> str:
    """``2``; ``2 ← 4`` where step 4 of another conversation started it."""
    if one.place is None:
        return ""
    started = one.place.started_by
    return str(one.place.thread) if started is None else f"{one.place.thread} ← {started}"


def _step_row(one: Understood, cost: float | None) -> list[Cell]:
    step, reading = one.step, one.reading
    request, response = step.request, step.response
    text = Span(f"{request.head.method} {request.head.host}{request.head.path}")
    if reading.error:
        text = Span(reading.error, "red")
    elif reading.text:
        text = Span(reading.text)
    elif told := (response.reason if response is not None else None) or reading.note or one.asked.note:
        text = Span(told, "yellow")
    if one.retry_of is not None:
        text = Span(f"retry of {one.retry_of}: {text.text}", text.style)
    is_call = one.kind is StepKind.LLM_CALL
    return [
        str(step.index),
        Span("llm", "cyan") if is_call else _kind(one),
        _thread(one),
        reading.model or request.model or NONE,
        number(reading.usage.input),
        number(reading.usage.output),
        dollars(cost) if is_call else "",
        number(response.ms if response else None),
        number(response.first_ms if response else None),
        step_status(step),
        text,
    ]


def _kind(one: Understood) -> str:
    provider = one.step.request.provider
    return provider if provider == "mcp" else one.kind.value.removesuffix("_call")


def _tool_row(call: ToolCall) -> list[Cell]:
    failed = call.result is not None and call.result.failed
    status = Span("✗ error", "red") if failed else Span("" if call.result else "no result", "yellow")
    text = tool_shown(call)
    return [
        call.label,
        "tool",
        "",
        "",
        "",
        "",
        "",
        number(call.ms),
        "",
        status,
        Span(text, "red") if failed else text,
    ]
