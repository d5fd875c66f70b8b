"""Edits on a recorded request, and the answer that is made up for one.

:func:`edited` changes the request at which a fork begins. The agent does not know of it, and will send the old
values again in later calls; :class:`Holding` puts the new ones in their place there.
"""

from collections.abc import Mapping, Sequence

from rewind.edit.carry_over import Holding, held_edits
from rewind.edit.change import (
    Draft,
    given_by,
    in_order,
    literal,
    taken,
    with_another_model,
    with_message,
    with_parameter,
    with_system,
)
from rewind.edit.edits import (
    AppendSystem,
    Edit,
    SetMessage,
    SetModel,
    SetParameter,
    SetResponse,
    SetSystem,
    SetToolResult,
    TakenAnswer,
)
from rewind.edit.patchers import dialect_of
from rewind.edit.results import brought, found_results, new_results_of, with_results
from rewind.edit.signing import refuse_signed
from rewind.edit.speakers import speaker_of
from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest, HttpResponse
from rewind.providers.catalogue import identify
from rewind.providers.shared.framing import compact, whole_body
from rewind.providers.shared.request_body import opened
from rewind.providers.shared.speak import Said, said_in, said_or_document

__all__ = ["Holding", "answer_for", "edited", "held_edits"]


def edited(
    request: HttpRequest, edits: Sequence[Edit], *, names: Mapping[str, str] | None = None
) -> HttpRequest:
    """The request with these edits, all else as it was; ``response=`` is no edit of a request.

    ``names`` tells the tools of calls that the request does not show (id → name), where the provider keeps the
    history. Raises CannotEdit, with the reason.
    """
    changes = [edit for edit in edits if not isinstance(edit, SetResponse)]
    if not changes:
        return request
    refuse_signed(request)
    body = opened(request)
    draft = Draft(head=request.head, document=body.document, dialect=dialect_of(request.head, body.document))
    for edit, at in in_order(draft, changes):
        draft = _changed(draft, edit, at, names)
    return body.closed(draft.document, draft.head)


def _changed(draft: Draft, edit: Edit, at: int, names: Mapping[str, str] | None) -> Draft:
    match edit:
        case SetMessage():
            return with_message(draft, edit, at)
        case SetToolResult():
            return _with_tool_result(draft, edit, names)
        case SetSystem() | AppendSystem():
            return with_system(draft, edit)
        case SetModel():
            return with_another_model(draft, edit)
        case SetParameter():
            return with_parameter(draft, edit)
        case SetResponse():
            return draft


def _with_tool_result(draft: Draft, edit: SetToolResult, names: Mapping[str, str] | None) -> Draft:
    found = found_results(draft.dialect, draft.document, names)
    wanted = [one.number for one in new_results_of(found, edit.name)]
    if not wanted:
        raise CannotEdit(f"The request brings no new result of {edit.name!r}; {brought(found)}.")
    given = given_by(edit, draft.dialect)
    return draft.with_document(
        with_results(
            draft.dialect,
            draft.document,
            found,
            lambda one: given(wanted.index(one.number)) if one.number in wanted else None,
        )
    )


def answer_for(request: HttpRequest, edit: SetResponse) -> HttpResponse:
    """The answer that the edit makes up for a request, in its API's shape, streamed where a stream was asked for.

    Raises CannotEdit where the API cannot say that.
    """
    speaker = speaker_of(request)
    written = literal(edit.value)
    if written is None:
        return _again(request, taken(edit.value))
    said = said_or_document(written, request.body, by_model=speaker.is_model)
    return speaker.response(speaker.document(said) if isinstance(said, Said) else said)


def _again(request: HttpRequest, recorded: TakenAnswer) -> HttpResponse:
    """A recorded answer: as it is where it fits, else what it says, told anew."""
    speaker = speaker_of(request)
    if recorded.form == speaker.form:
        return recorded.response
    if recorded.answered.error:
        told = identify(request.head).refusal(recorded.answered.error)
        status = recorded.response.head.status
        return whole_body(compact(told), media="application/json", status=status if status >= 400 else 400)
    return speaker.response(speaker.document(said_in(recorded.answered, request.body)))
