"""What a reference ``@SESSION:STEP`` names: the value that another step has in the place of an edit."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rewind.edit.edits import (
    AppendSystem,
    Edit,
    ReferencedAnswer,
    ReferencedMessage,
    ReferencedParameter,
    ReferencedResult,
    ReferencedSystem,
    ResolvedValue,
    SetMessage,
    SetModel,
    SetParameter,
    SetResponse,
    SetSystem,
    SetToolResult,
    StepReference,
)
from rewind.edit.results import found_results, new_results_of, new_results_text, results_in
from rewind.errors import CannotEdit, UsageError
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Asked, Text
from rewind.providers.api import Document, Patcher
from rewind.providers.catalogue import identify
from rewind.providers.shared.patch import ABSENT, value_at
from rewind.providers.shared.request_body import body_of
from rewind.providers.shared.write import with_matched_ids

LookUp = Callable[[str, int], tuple[HttpRequest, HttpResponse | None]]
"""Session and step → the exchange as it was recorded. Raises RewindError where there is none."""


def resolve(edit: Edit, look_up: LookUp) -> Edit:
    """The edit with what its reference names, taken from that step; one without a reference is itself.

    Raises UsageError where that step has no such value.
    """
    if not isinstance(edit.value, StepReference):
        return edit
    request, response = look_up(edit.value.session, edit.value.step)
    return replace(edit, value=ResolvedValue(origin=edit.value, value=value_for(edit, edit.value, request, response)))


def value_for(edit: Edit, origin: StepReference, request: HttpRequest, response: HttpResponse | None) -> Any:
    """The value for that edit. Raises UsageError where the step has none."""
    step = f"Step {origin.step} of {origin.session}"
    hint = f"rewind inspect {origin.session}:{origin.step} --context"
    asked = identify(request.head).reader.asked(request)
    match edit:
        case SetSystem() | AppendSystem():
            return _system(request, asked, step, hint)
        case SetModel():
            if not asked.model:
                raise UsageError(f"{step} does not name a model.", hint=hint)
            return asked.model
        case SetParameter(path=path):
            return _parameter(path, request, asked, step, hint)
        case SetMessage(index=index):
            return _message(index, request, asked, step, hint)
        case SetToolResult(name=name):
            return _results(name, request, asked, step, hint)
        case SetResponse():
            if response is None:
                raise UsageError(f"{step} has no answer.", hint=hint.removesuffix(" --context"))
            answered = identify(request.head).reader.answered(request, response)
            return ReferencedAnswer(
                form=identify(request.head).speaker_for(request).form, response=response, answered=answered
            )


def _read(request: HttpRequest) -> tuple[Patcher, Document] | None:
    """The request's own words; ``None`` where they cannot be taken out, and only their meaning is known."""
    try:
        document = body_of(request).document
    except CannotEdit:
        return None
    return identify(request.head).patcher_for(request.head, document), document


def _system(request: HttpRequest, asked: Asked, step: str, hint: str) -> ReferencedSystem:
    texts = [part.text for part in asked.system if isinstance(part, Text)]
    if not texts:
        raise UsageError(f"{step} has no system prompt.", hint=hint)
    raw, name = None, ""
    if (read := _read(request)) is not None:
        patcher, document = read
        raw, name = patcher.system(document), patcher.name
    return ReferencedSystem(patcher=name, raw=raw, text="\n\n".join(texts))


def _parameter(path: tuple[str, ...], request: HttpRequest, asked: Asked, step: str, hint: str) -> Any:
    if (read := _read(request)) is not None:
        patcher, document = read
        value = value_at(document, patcher.parameter(document, path))
        if value is not ABSENT:
            return ReferencedParameter(patcher=patcher.name, value=value)
    value = value_at(dict(asked.parameters), path)
    if value is ABSENT:
        there = ", ".join(sorted(asked.parameters)) or "none"
        raise UsageError(f"{step} does not set {'.'.join(path)}; it sets: {there}.", hint=hint)
    return ReferencedParameter(patcher="", value=value)


def _turns(request: HttpRequest) -> tuple[Patcher, Document, list[Any]] | None:
    """The messages as they are written; ``None`` where no patcher knows them."""
    if (read := _read(request)) is None:
        return None
    patcher, document = read
    try:
        return patcher, document, patcher.turns(document)
    except CannotEdit:
        return None


def _message(index: int, request: HttpRequest, asked: Asked, step: str, hint: str) -> ReferencedMessage:
    read = _turns(request)
    messages = asked.messages if read is None else tuple(map(read[0].message, read[2]))
    if not -len(messages) <= index < len(messages):
        raise UsageError(f"{step} has no messages[{index}]: it has {len(messages)}.", hint=hint)
    # Which tool a result is of is told by the messages before it.
    message = with_matched_ids(messages)[index]
    if read is None:
        return ReferencedMessage(patcher="", raw=None, message=message)
    return ReferencedMessage(patcher=read[0].name, raw=read[2][index], message=message)


def _results(name: str, request: HttpRequest, asked: Asked, step: str, hint: str) -> tuple[ReferencedResult, ...]:
    if (read := _turns(request)) is not None:
        patcher, document, _ = read
        found = found_results(patcher, document)
        known = patcher.name
    else:
        found, known = results_in(asked.messages), ""
    new = new_results_of(found, name)
    if not new:
        raise UsageError(f"{step} brings no new result of {name!r}; {new_results_text(found)}.", hint=hint)
    return tuple(ReferencedResult(patcher=known, raw=one.raw, text=one.text, failed=one.result.failed) for one in new)
