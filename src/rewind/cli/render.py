"""Values → text for people: states, facts, and the tables of sessions and steps."""

import itertools
from collections.abc import Iterable, Sequence

from rewind.cli.table import Cell, Column, print_table
from rewind.cli.terminal import Span, Terminal
from rewind.cli.wording import NONE, age, command_line, number, plural, seconds
from rewind.model.session import Session, Status
from rewind.model.step import Ending, Step, StepKind
from rewind.views import Totals, moment

SESSION_COLUMNS = (
    Column("id"),
    Column("name", flexible=True),
    Column("age", right=True),
    Column("status"),
    Column("steps", right=True),
    Column("llm", right=True),
    Column("tokens", right=True),
    Column("exit", right=True),
    Column("command", flexible=True, least=16),
)

STEP_COLUMNS = (
    Column("#", right=True),
    Column("kind"),
    Column("model", flexible=True),
    Column("in", right=True),
    Column("out", right=True),
    Column("ms", right=True),
    Column("first", right=True),
    Column("status"),
    Column("text", flexible=True, least=16),
)


def status(session: Session) -> Span:
    """A sign and a word; colour only helps."""
    match session.status:
        case Status.RUNNING:
            return Span("● running", "cyan")
        case Status.ENDED if session.end is not None and session.end.exit_code == 0:
            return Span("✓ ended", "green")
        case Status.ENDED:
            return Span("✗ ended", "red")
        case Status.INTERRUPTED:
            return Span("◐ interrupted", "yellow")
        case Status.BROKEN:
            return Span("! broken", "red")


def unique_prefixes(ids: Iterable[str]) -> dict[str, int]:
    """Id → how many of its first characters no other id shares."""
    ordered = sorted(set(ids))
    lengths = dict.fromkeys(ordered, 1)
    for left, right in itertools.pairwise(ordered):
        shared = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), len(left))
        lengths[left] = max(lengths[left], shared + 1)
        lengths[right] = max(lengths[right], shared + 1)
    return lengths


def print_sessions(
    terminal: Terminal, rows: Iterable[tuple[Session, Totals]], *, now: float, prefixes: dict[str, int]
) -> None:
    """The table of ``rewind list``."""
    print_table(terminal, SESSION_COLUMNS, [_session_row(*row, now, prefixes) for row in rows])


def print_steps(terminal: Terminal, steps: Iterable[Step]) -> None:
    """The table of ``rewind inspect``."""
    print_table(terminal, STEP_COLUMNS, [_step_row(step) for step in steps])


def print_facts(terminal: Terminal, facts: Iterable[tuple[str, str | Span]]) -> None:
    """Names and values, one a line."""
    known = list(facts)
    width = max((len(name) for name, _ in known), default=0)
    for name, value in known:
        terminal.line(Span(f"{name:<{width}}", "dim"), "  ", value)


def session_facts(session: Session, damage: Sequence[str] = ()) -> list[tuple[str, str | Span]]:
    """The head of ``rewind inspect``."""
    start, end = session.start, session.end
    facts: list[tuple[str, str | Span]] = [("session", Span(session.id, "bold"))]
    if start.name:
        facts.append(("name", start.name))
    facts += [
        ("command", command_line(start.command)),
        ("folder", start.cwd),
        ("started", moment(start.started)),
        ("status", status(session)),
    ]
    if end is not None:
        facts.append(("took", seconds(end.ended - start.started)))
        facts.append(("exit code", Span(str(end.exit_code), "" if end.exit_code == 0 else "red")))
        if end.redactions:
            facts.append(("secrets", f"{plural(end.redactions, 'secret')} removed"))
        if end.broken:
            facts.append(("broken", Span(end.broken, "red")))
        facts += [("remark", Span(remark, "yellow")) for remark in end.remarks]
    if start.replay_of:
        facts.append(("replay of", start.replay_of))
    facts += [("tag", f"{key}={value}") for key, value in start.tags.items()]
    facts += [("damage", Span(one, "red")) for one in damage]
    return facts


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


def _session_row(session: Session, totals: Totals, now: float, prefixes: dict[str, int]) -> list[Cell]:
    unique = prefixes.get(session.id, len(session.id))
    tokens = None
    if totals.tokens_in is not None or totals.tokens_out is not None:
        tokens = (totals.tokens_in or 0) + (totals.tokens_out or 0)
    code = session.end.exit_code if session.end else None
    return [
        (Span(session.id[:unique], "bold"), Span(session.id[unique:], "dim")),
        session.start.name or NONE,
        age(now - session.start.started),
        status(session),
        number(totals.steps),
        number(totals.llm_calls),
        number(tokens),
        Span(NONE if code is None else str(code), "red" if code else ""),
        command_line(session.start.command),
    ]


def _step_row(step: Step) -> list[Cell]:
    request, response = step.request, step.response
    reading = response.reading if response else None
    text: Cell = f"{request.head.method} {request.head.host}{request.head.path}"
    if reading is not None and reading.error:
        text = Span(reading.error, "red")
    elif reading is not None and reading.text:
        text = reading.text
    elif response is not None and response.reason:
        text = Span(response.reason, "yellow")
    return [
        str(step.index),
        request.kind.value.removesuffix("_call")
        if request.kind is not StepKind.LLM_CALL
        else Span("llm", "cyan"),
        (reading.model if reading else None) or request.model or NONE,
        number(reading.tokens_in if reading else None),
        number(reading.tokens_out if reading else None),
        number(response.ms if response else None),
        number(response.first_ms if response else None),
        step_status(step),
        text,
    ]
