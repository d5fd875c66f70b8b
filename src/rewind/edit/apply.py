"""Edits on a recorded request, and the answer that is made up for one.

:func:`edited` changes the request at which a fork begins. The agent does not know of it, and will send the old
values again in later calls; :mod:`rewind.edit.carry_over` puts the new ones in their place there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewind.dataclass import dataclass
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
    Source,
    StepReference,
    TextValue,
)
from rewind.edit.results import found_results, new_results_of, new_results_text, with_results
from rewind.errors import CannotEdit, UsageError
from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Role
from rewind.providers.api import AnswerContent, Document, NewResult, Patcher
from rewind.providers.catalogue import identify
from rewind.providers.shared.framing import compact, whole_body
from rewind.providers.shared.patch import ABSENT, json_or_text, with_model, with_value
from rewind.providers.shared.request_body import body_of
from rewind.providers.shared.speak import content_of, content_or_document


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDraft:
    """A request while it is edited."""

    head: RequestHead
    document: Document
    patcher: Patcher

    def with_document(self, document: Document) -> "RequestDraft":
        return replace(self, document=document)


def edited(request: HttpRequest, edits: Sequence[Edit], *, names: Mapping[str, str] | None = None) -> HttpRequest:
    """The request with these edits, all else as it was; ``response=`` is no edit of a request.

    ``names`` tells the tools of calls that the request does not show (id → name), where the provider keeps the
    history. Raises CannotEdit, with the reason.
    """
    changes = [edit for edit in edits if not isinstance(edit, SetResponse)]
    if not changes:
        return request
    refuse_signed(request)
    body = body_of(request)
    draft = RequestDraft(
        head=request.head,
        document=body.document,
        patcher=identify(request.head).patcher_for(request.head, body.document),
    )
    for edit, at in in_order(draft, changes):
        draft = _changed(draft, edit, at, names)
    return body.rewritten(draft.document, draft.head)


def _changed(draft: RequestDraft, edit: Edit, at: int, names: Mapping[str, str] | None) -> RequestDraft:
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


def _with_tool_result(draft: RequestDraft, edit: SetToolResult, names: Mapping[str, str] | None) -> RequestDraft:
    found = found_results(draft.patcher, draft.document, names)
    wanted = [one.number for one in new_results_of(found, edit.name)]
    if not wanted:
        raise CannotEdit(f"The request brings no new result of {edit.name!r}; {new_results_text(found)}.")
    given = replacements_by(edit, draft.patcher)
    return draft.with_document(
        with_results(
            draft.patcher,
            draft.document,
            found,
            lambda one: given(wanted.index(one.number)) if one.number in wanted else None,
        )
    )


def answer_for(request: HttpRequest, edit: SetResponse) -> HttpResponse:
    """The answer that the edit makes up for a request, in its API's shape, streamed where a stream was asked for.

    Raises CannotEdit where the API cannot say that.
    """
    speaker = identify(request.head).speaker_for(request)
    written = written_text(edit.value)
    if written is None:
        return _again(request, resolved_value(edit.value))
    said = content_or_document(written, request.body, by_model=speaker.is_model)
    return speaker.response(speaker.document(said) if isinstance(said, AnswerContent) else said)


def _again(request: HttpRequest, recorded: ReferencedAnswer) -> HttpResponse:
    """A recorded answer: as it is where it fits, else what it says, told anew."""
    speaker = identify(request.head).speaker_for(request)
    if recorded.form == speaker.form:
        return recorded.response
    if recorded.answered.error:
        told = identify(request.head).reader.refusal(recorded.answered.error)
        status = recorded.response.head.status
        return whole_body(compact(told), media="application/json", status=status if status >= 400 else 400)
    return speaker.response(speaker.document(content_of(recorded.answered, request.body)))


# ── requests that cannot be changed ──────────────────────────────────────────────────────────────────────────

_SCHEME = "aws4-hmac"


def is_signed(request: HttpRequest) -> bool:
    head = request.head
    return (
        identify(head).signed
        or any(name.lower().startswith("x-amz-") for name, _ in head.headers)
        or (head.header("authorization") or "").lower().startswith(_SCHEME)
    )


def refuse_signed(request: HttpRequest) -> None:
    """Raises CannotEdit for a signed request."""
    if is_signed(request):
        raise CannotEdit(
            "The request is signed by the agent (AWS SigV4) and a changed body would be refused.",
            hint="response=VALUE makes up its answer, since nothing is sent then",
        )


# ── one edit on one request: shared with later calls ─────────────────────────────────────────────────────────

_STRUCTURE = frozenset(
    {
        *("messages", "input", "contents", "tools", "toolConfig", "tool_config", "functions"),
        *("systemInstruction", "system_instruction", "tool_choice", "response_format", "text"),
    }
)
"""Parameters that every API writes in its own way."""


def written_text(source: Source) -> str | None:
    """The text as the user wrote it; ``None`` for a value that was taken from a step."""
    if isinstance(source, StepReference):
        raise UsageError(f"{source.written} has not been looked up.")
    return source.text if isinstance(source, TextValue) else None


def resolved_value(source: Source) -> Any:
    assert isinstance(source, ResolvedValue), "what is neither written nor looked up was refused before"
    return source.value


def with_system(draft: RequestDraft, edit: SetSystem | AppendSystem) -> RequestDraft:
    patcher, document = draft.patcher, draft.document
    text = written_text(edit.value)
    if text is None:
        found = resolved_value(edit.value)
        assert isinstance(found, ReferencedSystem), "a system prompt was looked up"
        if isinstance(edit, SetSystem) and found.raw is not None and found.patcher == patcher.name:
            return draft.with_document(patcher.with_system(document, found.raw))
        text = found.text
    put = patcher.with_system_text if isinstance(edit, SetSystem) else patcher.with_more_system
    return draft.with_document(put(document, text))


def with_another_model(draft: RequestDraft, edit: SetModel) -> RequestDraft:
    name = written_text(edit.value)
    head, document = with_model(
        draft.head,
        draft.document,
        str(resolved_value(edit.value)) if name is None else name,
        anywhere=draft.patcher.model_in_body,
    )
    return replace(draft, head=head, document=document)


def with_parameter(draft: RequestDraft, edit: SetParameter) -> RequestDraft:
    patcher = draft.patcher
    written = written_text(edit.value)
    if written is not None:
        value = ABSENT if edit.removes else json_or_text(written)
    else:
        found = resolved_value(edit.value)
        assert isinstance(found, ReferencedParameter), "a parameter was looked up"
        if edit.path[0] in _STRUCTURE and found.patcher != patcher.name:
            raise CannotEdit(
                f"{edit.written}: {edit.path[0]} of one API means nothing to another.",
                hint="take it from a step that speaks the same API",
            )
        value = found.value
    place = patcher.parameter(draft.document, edit.path)
    return draft.with_document(with_value(draft.document, place, value))


def with_message(draft: RequestDraft, edit: SetMessage, at: int) -> RequestDraft:
    """With the edit's value in place of the message at that (absolute) place."""
    turns = draft.patcher.turns(draft.document)
    new = _new_turns(draft.patcher, turns[at], edit)
    return draft.with_document(draft.patcher.with_turns(draft.document, [*turns[:at], *new, *turns[at + 1 :]]))


def in_order(draft: RequestDraft, edits: Sequence[Edit]) -> list[tuple[Edit, int]]:
    """The edits, each with the place of its message (-1 for others), in the order in which they are made.

    Messages from the last to the first, then results, then all else: so every number means what the user saw.
    Raises CannotEdit where there is no such message.
    """
    placed = [(edit, _absolute(draft, edit) if isinstance(edit, SetMessage) else -1) for edit in edits]

    def turn(one: tuple[Edit, int]) -> tuple[int, int]:
        edit, at = one
        rank = 0 if isinstance(edit, SetMessage) else 1 if isinstance(edit, SetToolResult) else 2
        return rank, -at

    return sorted(placed, key=turn)


def _absolute(draft: RequestDraft, edit: SetMessage) -> int:
    count = len(draft.patcher.turns(draft.document))
    if not -count <= edit.index < count:
        there = f"they are 0 to {count - 1}" if count else "it has none"
        raise CannotEdit(f"The request has no messages[{edit.index}]: {there}.")
    return edit.index % count


def _new_turns(patcher: Patcher, turn: Any, edit: SetMessage) -> Sequence[Any]:
    written = written_text(edit.value)
    if written is not None:
        value = json_or_text(written)
        return [value] if isinstance(value, dict) else [_with_words(patcher, turn, written, edit)]
    found = resolved_value(edit.value)
    assert isinstance(found, ReferencedMessage), "a message was looked up"
    if found.patcher == patcher.name:
        return [found.raw]
    new = patcher.written(found.message)
    if not new:
        raise CannotEdit(f"{edit.written}: that message holds nothing that another API could be given.")
    return new


def _with_words(patcher: Patcher, turn: Any, text: str, edit: SetMessage) -> Any:
    if patcher.message(turn).role is Role.TOOL and (results := patcher.results(turn)):
        # A message that only brings results has no other text than theirs.
        if len(results) > 1:
            raise CannotEdit(
                f"messages[{edit.index}] brings {len(results)} results of tools.", hint="tool.NAME.result=VALUE"
            )
        return patcher.with_results(turn, [NewResult(text=text)])
    return patcher.with_words(turn, text)


def replacements_by(edit: SetToolResult, patcher: Patcher) -> Callable[[int], NewResult]:
    """What the edit puts in place of the first, second, … result of its tool."""
    text = written_text(edit.value)
    if text is not None:
        return lambda _number: NewResult(text=text)
    found: tuple[ReferencedResult, ...] = resolved_value(edit.value)

    def given(number: int) -> NewResult:
        one = found[min(number, len(found) - 1)]
        raw = one.raw if one.patcher == patcher.name else None
        return NewResult(text=one.text, failed=one.failed, raw=raw)

    return given
