"""The part of a report that tells what was said, step by step: each text once, where it first appears."""

import json
from collections.abc import Iterator

from rewind.conversation.context import Change, Fate, compare, context_of
from rewind.conversation.outline import Outline, Understood
from rewind.model.message import (
    Answered,
    Media,
    Other,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Vectors,
)
from rewind.model.step import StepKind
from rewind.views.call import plain
from rewind.views.markdown import code, fenced

UNKNOWN = "—"
FOLDED_FROM = 1_500
"""Characters from which on a text is folded away."""
LONGEST = 60_000
"""Characters of one text that are shown; the cassette has all."""


def conversation(outline: Outline) -> Iterator[str]:
    several = outline.threads > 1
    for one in outline.steps:
        index = one.step.index
        thread = f", thread {one.place.thread}" if several and one.place is not None else ""
        yield f"### Step {index}"
        yield ""
        head = one.step.request.head
        model = one.reading.model or one.step.request.model
        asked = f" of {code(model, 60)}" if model else ""
        yield f"{one.kind.value}{asked}{thread}, {code(f'{head.method} {head.url}', 300)}"
        yield ""
        if one.kind is not StepKind.LLM_CALL:
            yield from titled("answer", one.reading.text)
            continue
        if one.retry_of is not None:
            yield from (f"Asks again what step {one.retry_of} asked.", "")
        for change in _new(outline, one):
            yield from _entry(change)
        yield from _answer(one.answered)


def _new(outline: Outline, one: Understood) -> Iterator[Change]:
    """What the model reads that it had not read at the call before."""
    index = one.step.index
    entries = context_of(one.asked, outline.held(index))
    parent = one.retry_of or (one.place.parent if one.place is not None else None)
    before = None if parent is None else outline.step(parent)
    if before is None or parent is None:
        yield from (Change(fate=Fate.ADDED, entry=entry) for entry in entries)
        return
    for change in compare(context_of(before.asked, outline.held(parent)), entries, before.answered):
        if change.fate is not Fate.SAME and not change.own_answer:
            yield change


def _entry(change: Change) -> Iterator[str]:
    entry = change.entry
    label = f" {code(entry.label, 80)}" if entry.label else ""
    fate = "" if change.fate is Fate.ADDED else f" ({change.fate.value})"
    yield from titled(f"{entry.what}{fate}", entry.text, label)


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
        yield from titled("error", answered.error)


def _part(part: Part) -> Iterator[str]:
    match part:
        case Text(text):
            yield from titled("answer", text)
        case Refusal(text):
            yield from titled("refusal", text)
        case Thinking(text, sealed):
            yield from titled("thinking", text or ("(kept by the provider)" if sealed else ""))
        case ToolUse(name=name, arguments=arguments):
            yield from titled("asks for the tool", _json(arguments), f" {code(name)}")
        case ToolResult():
            yield from titled("result of a tool", part.text, f" {code(part.name)}" if part.name else "")
        case Media():
            yield from (f"**{part.kind}** {code(part.media_type or part.reference or '-')}", "")
        case Vectors(count, dimensions):
            yield from (f"**{count} vectors** of {dimensions or UNKNOWN}", "")
        case Other(kind, value):
            yield from titled("other", _json(value), f" {code(kind)}")


def titled(title: str, text: str, label: str = "") -> Iterator[str]:
    """A text under its title, folded away where it is long."""
    if not text:
        return
    shown = text if len(text) <= LONGEST else text[:LONGEST]
    cut = f", the first {LONGEST:,} of them here" if shown is not text else ""
    if len(text) > FOLDED_FROM:
        yield f"**{title}**{label}, {len(text):,} characters{cut}"
        yield from ("", "<details><summary>show</summary>", "", *fenced(shown), "", "</details>", "")
    else:
        yield from (f"**{title}**{label}", "", *fenced(shown), "")


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(plain(value), indent=2, ensure_ascii=False)
