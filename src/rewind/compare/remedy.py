"""What would put a cause right: edits that give the bad run the good one's value in that place.

For a screen they are commands to paste, for a probe the thing to try.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from rewind.compare.cause import Cause, CauseKind
from rewind.compare.delta import FieldPlace, NamedPlace
from rewind.compare.divergence import Finding
from rewind.compare.run import ComparedRun, Move
from rewind.conversation.context import ContextPlace, Fate, parts_text
from rewind.dataclass import dataclass
from rewind.edit.edits import (
    Edit,
    SetMessage,
    SetModel,
    SetParameter,
    SetSystem,
    SetToolResult,
    StepReference,
    TextValue,
)
from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest
from rewind.model.message import Role
from rewind.providers.catalogue import identify
from rewind.providers.shared.request_body import body_of

_SAID = frozenset({CauseKind.INPUT, CauseKind.TOOL_OUTPUT, CauseKind.HISTORY})
"""What stands in the messages."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What is put back, and how."""

    kind: CauseKind
    what: str
    edits: tuple[Edit, ...]


def remedies(finding: Finding) -> tuple[Remedy, ...]:
    """One for each cause that can be put right at the step where the runs part, the likeliest first."""
    row = finding.at
    if row is None or row.a is None or row.b is None or None in row.thread:
        return ()
    found: list[Remedy] = []
    for cause in finding.causes:
        edits = tuple(_edits(finding, cause, row.a, row.b))
        if edits and all(edits != one.edits for one in found):
            found.append(Remedy(cause.kind, _what(cause.kind, edits), edits))
    return tuple(found)


def _what(kind: CauseKind, edits: Sequence[Edit]) -> str:
    if kind in _SAID and not all(isinstance(edit, SetToolResult) for edit in edits):
        return "the messages"
    return _WORDS[kind]


_WORDS = {
    CauseKind.MODEL: "the model",
    CauseKind.SNAPSHOT: "the model snapshot",
    CauseKind.SYSTEM: "the system prompt",
    CauseKind.TOOLS: "the tool definitions",
    CauseKind.PARAMETERS: "the parameters",
    CauseKind.TOOL_OUTPUT: "the tool output",
}


def _edits(finding: Finding, cause: Cause, good: Move, bad: Move) -> Iterator[Edit]:
    run, other = finding.comparison.a, finding.comparison.b
    origin = StepReference(run.recording.session.address, good.index)
    asked = run.asked(good.index)
    differences = cause.differences
    if cause.kind is CauseKind.SYSTEM and any(one.place is NamedPlace.SYSTEM for one in differences):
        yield SetSystem(origin if asked.system else TextValue(""))
    if run.provider(good.index) is not other.provider(bad.index):
        return  # what else one API is given means nothing to another
    match cause.kind:
        case CauseKind.MODEL if good.model_asked and not _is_deployment(bad):
            yield SetModel(origin)
        case CauseKind.SNAPSHOT if good.model_answered and not _is_deployment(bad):
            yield SetModel(TextValue(good.model_answered))
        case CauseKind.TOOLS:
            yield SetParameter(("tools",), origin if asked.tools else TextValue(""))
        case CauseKind.PARAMETERS:
            places = (one.place for one in differences)
            for name in dict.fromkeys(place.name for place in places if isinstance(place, FieldPlace)):
                yield SetParameter((name,), origin if name in asked.parameters else TextValue(""))
        case CauseKind.TOOL_OUTPUT if cause.since is finding.at and _tells_tools_apart(cause):
            for one in differences:
                yield SetToolResult(one.tool, origin)
        case CauseKind.INPUT | CauseKind.TOOL_OUTPUT | CauseKind.HISTORY:
            yield from _in_messages(finding, cause, good, bad, origin)


def _is_deployment(move: Move) -> bool:
    """Whether the address decides which model answers, as with Azure: what the body says of it is not read."""
    return "/deployments/" in move.step.request.head.path


def _tells_tools_apart(cause: Cause) -> bool:
    """An edit names a tool, not one of several calls to it."""
    names = [one.tool for one in cause.differences]
    return bool(names) and len(set(names)) == len(names) and all(one.before for one in cause.differences)


def _in_messages(finding: Finding, cause: Cause, good: Move, bad: Move, origin: StepReference) -> Iterator[Edit]:
    """Message by message where both runs have the same number of them, else all; in either case no prompt with it."""
    there, here = _written(finding.comparison.a, good), _written(finding.comparison.b, bad)
    if there is None or here is None:
        return
    numbers = list(_numbers(cause, there, here))
    alone = sum(one.kind in _SAID for one in finding.causes) == 1
    if numbers:
        yield from (SetMessage(number, origin) for number in dict.fromkeys(numbers))
    elif not alone:
        return  # with the whole conversation the other cause would be put right, too
    elif there.prompt == here.prompt:
        yield SetParameter((here.name,), origin)
    else:
        messages = [*here.prompt, *there.messages[len(there.prompt) :]]
        yield SetParameter((here.name,), TextValue(json.dumps(messages, ensure_ascii=False)))


def _numbers(cause: Cause, there: "_Written", here: "_Written") -> Iterator[int]:
    """Where the messages stand that differ; nothing unless each of them is found in the same place of both lists."""
    found = []
    for one in cause.differences:
        index = one.place.index if isinstance(one.place, ContextPlace) else None
        number = -1 if index is None else index
        if one.before is None or one.after is None or one.fate is Fate.REORDERED:
            return
        if len(there.prompt) != len(here.prompt) or not 0 <= number < min(len(there.texts), len(here.texts)):
            return
        if one.before not in there.texts[number] or one.after not in here.texts[number]:
            return
        found.append(number)
    yield from found


@dataclass(frozen=True, slots=True)
class _Written:
    """The messages of a request, as its API writes them."""

    name: str
    """What it calls them."""
    messages: list[Any]
    prompt: list[Any]
    """The instructions that some APIs keep among the messages, before all others."""
    texts: list[str]
    """Of each message."""


def _written(run: ComparedRun, move: Move) -> _Written | None:
    request = HttpRequest(head=move.step.request.head, body=run.bodies(move.step)[0])
    try:
        document = body_of(request).document
        patcher = identify(request.head).patcher_for(request.head, document)
        messages = patcher.turns(document)
        read = [patcher.message(turn) for turn in messages]
        prompt = len(list(takewhile(lambda message: message.role is Role.SYSTEM, read)))
        name = next((name for name, value in document.items() if messages and value == messages), None)
        texts = [parts_text(message.parts) for message in read]
        return None if name is None else _Written(name, messages, messages[:prompt], texts)
    except CannotEdit:
        return None
