"""A session as a report in Markdown: for an incident, to be read without Rewind.

What agents and models wrote stands in code spans and fences that nothing in it can close, so no word of it becomes a
heading, a link, a mention or HTML.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rewind.conversation.outline import Outline, Understood
from rewind.model.outcome import Outcome, outcome_of
from rewind.model.session import Recording, Session
from rewind.model.step import Ending, StepKind
from rewind.reading.removal import Removed
from rewind.redaction.scan import Finding
from rewind.text import moment
from rewind.views.markdown import code, fenced, table
from rewind.views.report_conversation import UNKNOWN, conversation, titled

_CELL = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a report is made of."""

    recording: Recording
    outline: Outline
    cost: str
    """Of the whole run, as people read it; ``—`` where it is not known."""
    costs: Mapping[int, str]
    """Step → the same."""
    redactions: int
    """Secrets that were removed while recording."""
    removed: Removed
    findings: Sequence[Finding]
    printed: Sequence[tuple[str, str]] = ()
    """What the agent printed: the name of the stream, and the end of what came on it."""
    left_out: int = 0
    """Steps of the session that are not told."""
    exporting: str
    """The command that writes a cassette of what is told here, but for the name of the file."""
    replayable: bool = True
    """Whether there is something that an agent could be answered from."""


def report(one: Report) -> str:
    """The whole text."""
    return "\n".join(_lines(one)) + "\n"


def _lines(one: Report) -> Iterator[str]:
    session = one.recording.session
    name = f" · {code(session.start.name)}" if session.start.name else ""
    yield f"# Session {session.id}{name}"
    yield ""
    yield from table(("", ""), _facts(one))
    yield from ("", "## What went wrong", "")
    yield from _errors(one)
    yield from ("", "## Steps", "")
    yield from table(
        ("step", "kind", "model", "status", "tokens in", "tokens out", "ms", "cost", "answer"), _rows(one)
    )
    yield from ("", "## What was said", "")
    yield from conversation(one.outline)
    if one.printed:
        yield from ("## What the agent printed", "")
        for stream, text in one.printed:
            yield from titled(stream, text)
    yield from ("## Secrets", "")
    yield from _secrets(one)
    yield from ("", "## How to open this run", "")
    yield from _opening(one)


# ── the head ─────────────────────────────────────────────────────────────────────────────────────────────────


def _facts(one: Report) -> Iterator[tuple[str, str]]:
    session, start, end = one.recording.session, one.recording.session.start, one.recording.session.end
    took = f", {end.ended - start.started:,.1f} s" if end is not None else ""
    yield "when", moment(start.started) + took
    yield "ended", _ended(session)
    yield "command", code(shlex.join(start.command)) if start.command else UNKNOWN
    yield "models", ", ".join(f"{code(model)} × {count}" for model, count in _models(one.outline)) or UNKNOWN
    calls = [step for step in one.outline.steps if step.kind is StepKind.LLM_CALL]
    left = f" (of {len(one.recording.steps) + one.left_out})" if one.left_out else ""
    yield "steps", f"{len(one.recording.steps)}{left}, {len(calls)} of them LLM calls"
    read, written = _sum(calls, "input"), _sum(calls, "output")
    yield "tokens", f"{read} in, {written} out"
    yield "cost", one.cost
    found = one.recording.surroundings
    if found is not None and found.commit:
        branch = f" on {code(found.branch)}" if found.branch else ""
        yield "git", f"{code(found.commit[:12])}{branch}{', with uncommitted changes' if found.dirty else ''}"
    if start.forked_from is not None:
        origin = start.forked_from
        yield "forked from", f"{origin.session}:{origin.step} {' '.join(map(code, origin.edits))}".rstrip()
    yield from ((f"tag {code(key)}", code(value)) for key, value in start.tags.items())
    yield from (("remark", code(remark)) for remark in (end.remarks if end is not None else ()))
    yield from (("damage", code(damage)) for damage in one.recording.damage)


def _ended(session: Session) -> str:
    end = session.end
    match outcome_of(session):
        case Outcome.OK:
            return "well (exit code 0)"
        case Outcome.FAILED:
            return f"**failed** (exit code {end.exit_code})" if end is not None else "**failed**"
        case Outcome.BROKEN:
            return (
                f"the recording is not complete: {code(end.broken or '')}"
                if end is not None
                else "not complete"
            )
        case outcome:
            return outcome.value


def _models(outline: Outline) -> Iterator[tuple[str, int]]:
    counts: dict[str, int] = {}
    for one in outline.steps:
        model = one.reading.model or one.step.request.model
        if one.kind is StepKind.LLM_CALL and model:
            counts[model] = counts.get(model, 0) + 1
    yield from counts.items()


def _sum(calls: Sequence[Understood], field: str) -> str:
    known = [value for one in calls if (value := getattr(one.reading.usage, field)) is not None]
    if not known:
        return UNKNOWN
    return f"{sum(known):,}" + ("+" if len(known) < len(calls) else "")


def _errors(one: Report) -> Iterator[str]:
    told = [(step, text) for step in one.outline.steps if (text := _trouble(step))]
    failed = [call for call in one.outline.tools if call.result is not None and call.result.failed]
    end = one.recording.session.end
    if end is not None and end.exit_code:
        yield f"- The agent ended with exit code {end.exit_code}."
    elif not told and not failed:
        yield "No step failed."
    for step, text in told:
        again = (
            ", tried again" if any(other.retry_of == step.step.index for other in one.outline.steps) else ""
        )
        yield f"- [Step {step.step.index}](#step-{step.step.index}){again}: {text}"
    for call in failed:
        assert call.result is not None, "a call that failed has a result"
        yield f"- Tool call {call.label}, {code(call.use.name)}: {code(call.result.text, 300)}"


def _trouble(one: Understood) -> str:
    response = one.step.response
    if response is None:
        return "no answer was recorded"
    parts = []
    if response.head is not None and response.head.status >= 400:
        parts.append(f"status {response.head.status}")
    if one.reading.error:
        parts.append(code(one.reading.error, 300))
    if response.ending is not Ending.COMPLETE:
        parts.append(
            f"{response.ending.value.replace('_', ' ')} {code(response.reason, 200) if response.reason else ''}"
        )
    return ", ".join(parts).rstrip()


# ── the steps ────────────────────────────────────────────────────────────────────────────────────────────────


def _rows(one: Report) -> Iterator[tuple[str, ...]]:
    for step in one.outline.steps:
        response, usage = step.step.response, step.reading.usage
        status = UNKNOWN if response is None or response.head is None else str(response.head.status)
        model = step.reading.model or step.step.request.model
        yield (
            str(step.step.index),
            step.kind.value,
            code(model, 60) if model else "",
            status,
            _number(usage.input),
            _number(usage.output),
            UNKNOWN if response is None else f"{response.ms:,.0f}",
            one.costs.get(step.step.index, "") if step.kind is StepKind.LLM_CALL else "",
            code(step.reading.text or step.step.request.head.url, _CELL),
        )


# ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────


def _secrets(one: Report) -> Iterator[str]:
    yield f"- {one.redactions} removed while recording"
    if one.removed.count:
        yield f"- {one.removed.count} removed by `--redact`"
    for step, why in sorted(one.removed.unread.items()):
        yield f"- Of step {step} something was left out that could not be read: {', '.join(why)}"
    if not one.findings:
        yield "- Nothing that is left looks like a secret."
    for finding in one.findings:
        where = "" if finding.step is None else f"step {finding.step}, "
        place = " ".join(part for part in (finding.where, finding.path) if part)
        yield f"- **May be a secret**: {where}{code(place, 200)}, {finding.kind} {code(finding.excerpt)}"


def _opening(one: Report) -> Iterator[str]:
    file = f"{one.recording.session.id}.rw"
    yield "Where it was recorded, `rewind export` writes a cassette that holds every byte of it. With that file:"
    yield ""
    lines = [
        (f"{one.exporting} -o {file}", "where it was recorded"),
        (f"rewind inspect {file}", "look at it"),
        (f"rewind replay {file} -- COMMAND", "run the agent again, offline, answered by the recording"),
        (f"rewind import {file}", "keep it"),
    ]
    if not one.replayable:
        lines[2] = (f"rewind messages {file}", "go on from any step of it")
    width = max(len(command) for command, _ in lines)
    yield from fenced("\n".join(f"{command:{width}}  # {why}" for command, why in lines), "sh")
    if "PATTERN" in one.exporting:
        yield ""
        yield "PATTERN stands for what was taken out of this report: the same patterns give the same cassette."


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"
