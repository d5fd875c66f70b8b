"""What a reference ``@SESSION:STEP`` names: the value that another step has in the place of an edit."""

from typing import Any

from rewind.edit.edits import (
    AppendSystem,
    Edit,
    From,
    SetMessage,
    SetModel,
    SetParameter,
    SetResponse,
    SetSystem,
    SetToolResult,
    TakenAnswer,
    TakenMessage,
    TakenParameter,
    TakenResult,
    TakenSystem,
)
from rewind.edit.patchers import dialect_of
from rewind.edit.results import brought, found_results, new_results_of, results_in
from rewind.edit.speakers import speaker_of
from rewind.errors import CannotEdit, UsageError
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Asked, Text
from rewind.providers.catalogue import identify
from rewind.providers.shared.call_ids import tied
from rewind.providers.shared.patch import Dialect, Document
from rewind.providers.shared.request_body import opened
from rewind.providers.shared.values import ABSENT, value_at


def taken(edit: Edit, origin: From, request: HttpRequest, response: HttpResponse | None) -> Any:
    """The value for that edit. Raises UsageError where the step has none."""
    step = f"Step {origin.step} of {origin.session}"
    hint = f"rewind inspect {origin.session}:{origin.step} --context"
    asked = identify(request.head).asked(request)
    match edit:
        case SetSystem() | AppendSystem():
            return _system(request, asked, step, hint)
        case SetModel():
            if not asked.model:
                raise UsageError(f"{step} names no model.", hint=hint)
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
            answered = identify(request.head).answered(request, response)
            return TakenAnswer(form=speaker_of(request).form, response=response, answered=answered)


def _read(request: HttpRequest) -> tuple[Dialect, Document] | None:
    """The request's own words; ``None`` where they cannot be taken out, and only their meaning is known."""
    try:
        document = opened(request).document
    except CannotEdit:
        return None
    return dialect_of(request.head, document), document


def _system(request: HttpRequest, asked: Asked, step: str, hint: str) -> TakenSystem:
    texts = [part.text for part in asked.system if isinstance(part, Text)]
    if not texts:
        raise UsageError(f"{step} has no system prompt.", hint=hint)
    raw, name = None, ""
    if (read := _read(request)) is not None:
        dialect, document = read
        raw, name = dialect.system(document), dialect.name
    return TakenSystem(dialect=name, raw=raw, text="\n\n".join(texts))


def _parameter(path: tuple[str, ...], request: HttpRequest, asked: Asked, step: str, hint: str) -> Any:
    if (read := _read(request)) is not None:
        dialect, document = read
        value = value_at(document, dialect.parameter(document, path))
        if value is not ABSENT:
            return TakenParameter(dialect=dialect.name, value=value)
    value = value_at(dict(asked.parameters), path)
    if value is ABSENT:
        there = ", ".join(sorted(asked.parameters)) or "none"
        raise UsageError(f"{step} sets no {'.'.join(path)}; it sets: {there}.", hint=hint)
    return TakenParameter(dialect="", value=value)


def _turns(request: HttpRequest) -> tuple[Dialect, Document, list[Any]] | None:
    """The messages as they are written; ``None`` where no dialect knows them."""
    if (read := _read(request)) is None:
        return None
    dialect, document = read
    try:
        return dialect, document, dialect.turns(document)
    except CannotEdit:
        return None


def _message(index: int, request: HttpRequest, asked: Asked, step: str, hint: str) -> TakenMessage:
    read = _turns(request)
    messages = asked.messages if read is None else tuple(map(read[0].message, read[2]))
    if not -len(messages) <= index < len(messages):
        raise UsageError(f"{step} has no messages[{index}]: it has {len(messages)}.", hint=hint)
    # Which tool a result is of is told by the messages before it.
    message = tied(messages)[index]
    if read is None:
        return TakenMessage(dialect="", raw=None, message=message)
    return TakenMessage(dialect=read[0].name, raw=read[2][index], message=message)


def _results(name: str, request: HttpRequest, asked: Asked, step: str, hint: str) -> tuple[TakenResult, ...]:
    if (read := _turns(request)) is not None:
        dialect, document, _ = read
        found = found_results(dialect, document)
        known = dialect.name
    else:
        found, known = results_in(asked.messages), ""
    new = new_results_of(found, name)
    if not new:
        raise UsageError(f"{step} brings no new result of {name!r}; {brought(found)}.", hint=hint)
    return tuple(
        TakenResult(dialect=known, raw=one.raw, text=one.text, failed=one.result.failed) for one in new
    )
