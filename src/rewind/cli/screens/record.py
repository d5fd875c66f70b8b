"""What is said when a recording has ended."""

from rewind.cli.screens.terminal import Span, Terminal, err, hint
from rewind.pricing.spending import Spending
from rewind.runs.record import RecordResult
from rewind.text import dollars, duration, plural

_FAILED = "the agent itself failed (exit code {code}), perhaps before it asked a model: see what it printed"
NO_CALL = (
    "the agent made no call in this run",
    "its client ignores the proxy variables: 'rewind init' shows which clients work here",
    "it talks to a host that is not recorded: --host PATTERN, or --all-hosts",
    "it brings its own certificates and refused ours",
)


def show_recorded(result: RecordResult, spent: Spending | None, *, quiet: bool) -> None:
    """The last lines of ``rewind record``, on stderr; ``spent`` is ``None`` where there is nothing to price."""
    cost = None if spent is None else dollars(spent.usd, spent.unpriced)
    print_recorded(err(), result, quiet=quiet, cost=cost)


def print_recorded(terminal: Terminal, result: RecordResult, *, quiet: bool, cost: str | None = None) -> None:
    """The same there; with ``quiet`` only what went wrong."""
    if not result.session_id:
        terminal.line(Span("rewind: this run was not recorded: ", "bold red"), result.broken or "")
        terminal.line("  The agent itself ran as it would without Rewind.")
        return
    if result.broken is not None:
        terminal.line(Span("rewind: the recording is not complete: ", "bold red"), result.broken)
        terminal.line("  What came after that is not recorded. The agent itself was not disturbed.")
    if result.lost_calls > 0:
        terminal.line(f"  {plural(result.lost_calls, 'call')} could not be written.")
    holds_something = result.llm_calls + result.other_calls + result.telemetry > 0
    if not quiet and (holds_something or not result.lost_calls):
        terminal.line("Session recorded: ", Span(result.session_id, "bold"), f"  ({_totals(result, cost)})")
        if result.redactions:
            terminal.line(f"  {plural(result.redactions, 'secret')} removed")
    for remark in result.remarks:
        terminal.line("  ", Span(remark, "yellow"))
    if not result.llm_calls and not result.lost_calls:
        terminal.line(Span("rewind: no LLM call was seen.", "bold yellow"), "" if quiet else " Likely reasons:")
        failed = (_FAILED.format(code=result.exit_code),) if result.exit_code else ()
        for reason in () if quiet else (*failed, *NO_CALL[len(failed) :]):
            terminal.line(hint(f"  · {reason}", ""))
    if not quiet and holds_something:
        terminal.line(hint(f"→ rewind inspect {result.session_id}"))


def _totals(result: RecordResult, cost: str | None) -> str:
    parts = [plural(result.llm_calls, "LLM call")]
    if result.other_calls:
        parts.append(plural(result.other_calls, "other call"))
    if result.telemetry:
        parts.append(plural(result.telemetry, "telemetry upload"))
    if result.tokens is not None:
        parts.append(plural(result.tokens, "token"))
        parts += [cost] if cost is not None else []
    return ", ".join([*parts, duration(result.seconds)])
