"""A session as a report in Markdown: for an incident, to be read without Rewind.

What agents and models wrote stands in code spans and fences that nothing in it can close, so no word of it becomes a
heading, a link, a mention or HTML.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from rewind.conversation.context import ContextChange, Fate, compare_contexts, context_of
from rewind.conversation.outline import Outline, OutlineStep
from rewind.dataclass import dataclass
from rewind.model.message import Answered, Media, Other, Part, Refusal, Text, Thinking, ToolResult, ToolUse, Vectors
from rewind.model.outcome import Outcome, outcome_of
from rewind.model.session import Recording, Session
from rewind.model.step import Ending, StepKind
from rewind.reading.removal import Removed
from rewind.redaction.scan import SecretFinding
from rewind.safe import plain_json, safe
from rewind.text import UNKNOWN, moment, uploads_shown

_CELL = 120
_FOLDED_FROM = 1_500
"""Characters from which on a text is folded away."""
_LONGEST = 60_000
"""Characters of one text that are shown; the cassette has all."""
_TICKS = re.compile(r"`+")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """What a report is made of."""

    recording: Recording
    outline: Outline
    cost: str
    """Of the whole run, as people read it; ``—`` where it is not known."""
    costs: Mapping[int, str]
    """Step → the same."""
    removed: Removed
    findings: Sequence[SecretFinding]
    printed: Sequence[tuple[str, str]] = ()
    """What the agent printed: the name of the stream, and the end of what came on it."""
    left_out: int = 0
    """Steps of the session that the report leaves out."""
    export_command: str
    """The command that writes a cassette of what is told here, but for the name of the file."""


def report_text(report: RunReport) -> str:
    """The whole text, safe to show on a terminal, too."""
    return safe("\n".join(_lines(report)) + "\n")


def _lines(report: RunReport) -> Iterator[str]:
    session = report.recording.session
    name = f" · {_code(session.start.name)}" if session.start.name else ""
    yield f"# Session {session.id}{name}"
    yield ""
    yield from _table(("", ""), _facts(report))
    yield from ("", "## What went wrong", "")
    yield from _errors(report)
    yield from ("", "## Steps", "")
    yield from _table(
        ("step", "kind", "model", "status", "tokens in", "tokens out", "ms", "cost", "answer"), _rows(report)
    )
    yield from ("", "## What was said", "")
    yield from _conversation(report.outline)
    if report.printed:
        yield from ("## What the agent printed", "")
        for stream, text in report.printed:
            yield from _titled(stream, text)
    yield from ("## Secrets", "")
    yield from _secrets(report)
    yield from ("", "## How to open this run", "")
    yield from _opening(report)


# ── the head ─────────────────────────────────────────────────────────────────────────────────────────────────


def _facts(report: RunReport) -> Iterator[tuple[str, str]]:
    session, start, end = (report.recording.session, report.recording.session.start, report.recording.session.end)
    took = f", {end.ended - start.started:,.1f} s" if end is not None else ""
    yield "when", moment(start.started) + took
    yield "ended", _ended(session)
    yield "command", _code(shlex.join(start.command)) if start.command else UNKNOWN
    yield ("models", ", ".join(f"{_code(model)} × {count}" for model, count in _models(report.outline)) or UNKNOWN)
    calls = [step for step in report.outline.steps if step.kind is StepKind.LLM_CALL]
    steps = len(report.outline.run_steps)
    left = f" (of {steps + report.left_out})" if report.left_out else ""
    yield "steps", f"{steps}{left}, {len(calls)} of them LLM calls"
    if uploads := report.outline.uploads:
        yield "telemetry", f"{_code(uploads_shown(uploads))}, not shown here"
    read, written = _sum(calls, "input"), _sum(calls, "output")
    yield "tokens", f"{read} in, {written} out"
    yield "cost", report.cost
    found = report.recording.surroundings
    if found is not None and found.commit:
        branch = f" on {_code(found.branch)}" if found.branch else ""
        yield ("git", f"{_code(found.commit[:12])}{branch}{', with uncommitted changes' if found.dirty else ''}")
    if start.forked_from is not None:
        origin = start.forked_from
        yield "forked from", f"{origin.session}:{origin.step} {' '.join(map(_code, origin.edits))}".rstrip()
    yield from ((f"tag {_code(key)}", _code(value)) for key, value in start.tags.items())
    yield from (("remark", _code(remark)) for remark in (end.remarks if end is not None else ()))
    yield from (("damage", _code(damage)) for damage in report.recording.damage)


def _ended(session: Session) -> str:
    end = session.end
    match outcome_of(session):
        case Outcome.OK:
            return "well (exit code 0)"
        case Outcome.FAILED:
            return f"**failed** (exit code {end.exit_code})" if end is not None else "**failed**"
        case Outcome.BROKEN:
            return f"the recording is not complete: {_code(end.broken or '')}" if end is not None else "not complete"
        case outcome:
            return outcome.value


def _models(outline: Outline) -> Iterator[tuple[str, int]]:
    counts: dict[str, int] = {}
    for step in outline.steps:
        model = step.reading.model or step.step.request.model
        if step.kind is StepKind.LLM_CALL and model:
            counts[model] = counts.get(model, 0) + 1
    yield from counts.items()


def _sum(calls: Sequence[OutlineStep], field: str) -> str:
    known = [value for call in calls if (value := getattr(call.reading.usage, field)) is not None]
    if not known:
        return UNKNOWN
    return f"{sum(known):,}" + ("+" if len(known) < len(calls) else "")


def _errors(report: RunReport) -> Iterator[str]:
    troubles = [(step, text) for step in report.outline.run_steps if (text := _trouble(step))]
    failed = [call for call in report.outline.tools if call.result is not None and call.result.failed]
    end = report.recording.session.end
    if end is not None and end.exit_code:
        yield f"- The agent ended with exit code {end.exit_code}."
    elif not troubles and not failed:
        yield "No step failed."
    for step, text in troubles:
        again = ", tried again" if any(other.retry_of == step.step.index for other in report.outline.steps) else ""
        yield f"- [Step {step.step.index}](#step-{step.step.index}){again}: {text}"
    for call in failed:
        assert call.result is not None, "a call that failed has a result"
        yield f"- Tool call {call.label}, {_code(call.use.name)}: {_code(call.result.text, 300)}"


def _trouble(call: OutlineStep) -> str:
    response = call.step.response
    if response is None:
        return "no answer was recorded"
    parts = []
    if response.head is not None and response.head.status >= 400:
        parts.append(f"status {response.head.status}")
    if call.reading.error:
        parts.append(_code(call.reading.error, 300))
    if response.ending is not Ending.COMPLETE:
        parts.append(
            f"{response.ending.value.replace('_', ' ')} {_code(response.reason, 200) if response.reason else ''}"
        )
    return ", ".join(parts).rstrip()


# ── the steps ────────────────────────────────────────────────────────────────────────────────────────────────


def _rows(report: RunReport) -> Iterator[tuple[str, ...]]:
    for step in report.outline.run_steps:
        response, usage = step.step.response, step.reading.usage
        status = UNKNOWN if response is None or response.head is None else str(response.head.status)
        model = step.reading.model or step.step.request.model
        yield (
            str(step.step.index),
            step.kind.value,
            _code(model, 60) if model else "",
            status,
            _number(usage.input),
            _number(usage.output),
            UNKNOWN if response is None else f"{response.ms:,.0f}",
            report.costs.get(step.step.index, "") if step.kind is StepKind.LLM_CALL else "",
            _code(step.reading.text or step.step.request.head.url, _CELL),
        )


# ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────


def _secrets(report: RunReport) -> Iterator[str]:
    end = report.recording.session.end
    yield f"- {end.redactions if end is not None else 0} removed while recording"
    if report.removed.count:
        yield f"- {report.removed.count} removed by `--redact`"
    for step, why in sorted(report.removed.unread.items()):
        yield f"- Of step {step} something was left out that could not be read: {', '.join(why)}"
    if not report.findings:
        yield "- Nothing that is left looks like a secret."
    for finding in report.findings:
        where = "" if finding.step is None else f"step {finding.step}, "
        place = " ".join(part for part in (finding.where, finding.path) if part)
        yield f"- **May be a secret**: {where}{_code(place, 200)}, {finding.kind} {_code(finding.excerpt)}"


def _opening(report: RunReport) -> Iterator[str]:
    file = f"{report.recording.session.id}.rw"
    yield "Where it was recorded, `rewind export` writes a cassette that holds every byte of it. With that file:"
    yield ""
    lines = [
        (f"{report.export_command} -o {file}", "where it was recorded"),
        (f"rewind inspect {file}", "look at it"),
        (f"rewind replay {file} -- COMMAND", "run the agent again, offline, answered by the recording"),
        (f"rewind import {file}", "keep it"),
    ]
    if report.recording.is_from_trace:
        lines[2] = (f"rewind messages {file}", "go on from any step of it")
    width = max(len(command) for command, _ in lines)
    yield from _fenced("\n".join(f"{command:{width}}  # {why}" for command, why in lines), "sh")
    if "PATTERN" in report.export_command:
        yield ""
        yield "PATTERN stands for what was taken out of this report: the same patterns give the same cassette."


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


# ── what was said, step by step: each text once, where it first appears ─────────────────────────────────────────────


def _conversation(outline: Outline) -> Iterator[str]:
    several = outline.threads > 1
    for step in outline.run_steps:
        index = step.step.index
        thread = f", thread {step.place.thread}" if several and step.place is not None else ""
        yield f"### Step {index}"
        yield ""
        head = step.step.request.head
        model = step.reading.model or step.step.request.model
        asked = f" of {_code(model, 60)}" if model else ""
        yield f"{step.kind.value}{asked}{thread}, {_code(f'{head.method} {head.url}', 300)}"
        yield ""
        if step.kind is not StepKind.LLM_CALL:
            yield from _titled("answer", step.reading.text)
            continue
        if step.retry_of is not None:
            yield from (f"Asks again what step {step.retry_of} asked.", "")
        for change in _new(outline, step):
            yield from _entry(change)
        yield from _answer(step.answered)


def _new(outline: Outline, call: OutlineStep) -> Iterator[ContextChange]:
    """What the model reads that it had not read at the call before."""
    index = call.step.index
    entries = context_of(call.asked, outline.held(index))
    parent = call.retry_of or (call.place.parent if call.place is not None else None)
    before = None if parent is None else outline.step(parent)
    if before is None or parent is None:
        yield from (ContextChange(fate=Fate.ADDED, entry=entry) for entry in entries)
        return
    for change in compare_contexts(context_of(before.asked, outline.held(parent)), entries, before.answered):
        if change.fate is not Fate.SAME and not change.own_answer:
            yield change


def _entry(change: ContextChange) -> Iterator[str]:
    entry = change.entry
    label = f" {_code(entry.label, 80)}" if entry.label else ""
    fate = "" if change.fate is Fate.ADDED else f" ({change.fate.value})"
    yield from _titled(f"{entry.what}{fate}", entry.text, label)


def _answer(answered: Answered | None) -> Iterator[str]:
    if answered is None:
        yield from ("**No answer.**", "")
        return
    for part in answered.parts:
        yield from _part(part)
    for number, choice in enumerate(answered.alternatives, 2):
        yield from (f"Choice {number}:", "")
        for part in choice:
            yield from _part(part)
    if answered.error:
        yield from _titled("error", answered.error)


def _part(part: Part) -> Iterator[str]:
    match part:
        case Text(text):
            yield from _titled("answer", text)
        case Refusal(text):
            yield from _titled("refusal", text)
        case Thinking(text, sealed):
            yield from _titled("thinking", text or ("(kept by the provider)" if sealed else ""))
        case ToolUse(name=name, arguments=arguments):
            yield from _titled("asks for the tool", _json(arguments), f" {_code(name)}")
        case ToolResult():
            yield from _titled("result of a tool", part.text, f" {_code(part.name)}" if part.name else "")
        case Media():
            yield from (f"**{part.kind}** {_code(part.media_type or part.reference or '-')}", "")
        case Vectors(count, dimensions):
            yield from (f"**{count} vectors** of {dimensions or UNKNOWN}", "")
        case Other(kind, value):
            yield from _titled("other", _json(value), f" {_code(kind)}")


def _titled(title: str, text: str, label: str = "") -> Iterator[str]:
    """A text under its title, folded away where it is long."""
    if not text:
        return
    shown = text if len(text) <= _LONGEST else text[:_LONGEST]
    cut = f", the first {_LONGEST:,} of them here" if shown is not text else ""
    if len(text) > _FOLDED_FROM:
        yield f"**{title}**{label}, {len(text):,} characters{cut}"
        yield from ("", "<details><summary>show</summary>", "", *_fenced(shown), "", "</details>", "")
    else:
        yield from (f"**{title}**{label}", "", *_fenced(shown), "")


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(plain_json(value), indent=2, ensure_ascii=False)


# ── Markdown around anybody's texts: nothing in them can get out ────────────────────────────────────────────────────


def _code(text: str, longest: int = 500) -> str:
    """The text as a code span on one line, fit for a table."""
    line = " ".join(text[: 2 * longest].split())
    if len(line) > longest:
        line = line[: longest - 1] + "…"
    if not line:
        return ""
    ticks = "`" * (1 + max(map(len, _TICKS.findall(line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}".replace("|", "\\|")


def _fenced(text: str, language: str = "") -> list[str]:
    """The text between fences longer than any run of backticks in it."""
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    return [f"{fence}{language}", text.replace("\r\n", "\n").replace("\r", "\n"), fence]


def _table(titles: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
