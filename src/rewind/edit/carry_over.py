"""Edits that hold: in later calls, the old value in the same place is replaced again.

The agent goes on from its own state, which an edit of one request does not touch. It sends the old system prompt
again, and the old message stands in its history. Which later calls are meant is told by what they carry: the place
must hold what it held at the forked step. Model and parameters are held for calls of the same agent only, known by
its system prompt; an agent without one is known by its first message or by its tools.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rewind.dataclass import dataclass
from rewind.edit.apply import (
    RequestDraft,
    in_order,
    is_signed,
    replacements_by,
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
)
from rewind.edit.results import FoundResult, ToolNames, found_results, new_results_of, with_results
from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Asked, Message, Thinking
from rewind.providers.api import UnissuedAnswers
from rewind.providers.catalogue import identify
from rewind.providers.shared.patch import value_at
from rewind.providers.shared.request_body import body_of


@dataclass(frozen=True, slots=True, kw_only=True)
class _System:
    """A system prompt, which is known by the agent itself."""

    edit: SetSystem | AppendSystem

    def applied(self, draft: RequestDraft, asked: Asked, names: ToolNames) -> RequestDraft:
        return with_system(draft, self.edit)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    edit: SetModel
    old: str | None

    def applied(self, draft: RequestDraft, asked: Asked, names: ToolNames) -> RequestDraft:
        return with_another_model(draft, self.edit) if asked.model == self.old else draft


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parameter:
    edit: SetParameter
    old: Any

    def applied(self, draft: RequestDraft, asked: Asked, names: ToolNames) -> RequestDraft:
        place = draft.patcher.parameter(draft.document, self.edit.path)
        return with_parameter(draft, self.edit) if value_at(draft.document, place) == self.old else draft


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    edit: SetMessage
    at: int
    old: Message

    def applied(self, draft: RequestDraft, asked: Asked, names: ToolNames) -> RequestDraft:
        """In its old place; where the history has moved, wherever it stands now."""
        turns = draft.patcher.turns(draft.document)
        equal = [n for n, turn in enumerate(turns) if _spoken(draft.patcher.message(turn)) == self.old]
        for at in [self.at] if self.at in equal else reversed(equal):
            draft = with_message(draft, self.edit, at)
        return draft


@dataclass(frozen=True, slots=True, kw_only=True)
class _Results:
    edit: SetToolResult
    old: tuple[FoundResult, ...]

    def applied(self, draft: RequestDraft, asked: Asked, names: ToolNames) -> RequestDraft:
        """As messages are: first in the old place, then wherever an equal one stands."""
        found = found_results(draft.patcher, draft.document, names)
        given = replacements_by(self.edit, draft.patcher)
        chosen: dict[int, int] = {}
        for nth, old in enumerate(self.old):
            equal = [one.number for one in found if _is_same(one, old)]
            for number in [old.number] if old.number in equal else equal:
                chosen.setdefault(number, nth)
        document = with_results(
            draft.patcher,
            draft.document,
            found,
            lambda one: given(chosen[one.number]) if one.number in chosen else None,
        )
        return draft.with_document(document)


def _is_same(one: FoundResult, old: FoundResult) -> bool:
    if one.result.id and old.result.id:
        return one.result.id == old.result.id and one.text == old.text
    # An unnamed result stands for that tool where the call is not shown.
    same_tool = one.result.name == old.result.name or not (one.result.name and old.result.name)
    return same_tool and one.text == old.text


_Rule = _System | _Model | _Parameter | _Message | _Results
_RULES_OF_THE_SAME_AGENT = (_System, _Model, _Parameter)


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedEdits:
    """What the edits replaced at the forked step, to be replaced again."""

    asked: Asked
    rules: tuple[_Rule, ...]
    names: ToolNames

    def apply(self, request: HttpRequest) -> HttpRequest:
        """A later request with the edits that fit it; the very same one where none does. Never raises."""
        if not self.rules or is_signed(request):
            return request
        try:
            body = body_of(request)
        except CannotEdit:
            return request
        asked = identify(request.head).reader.asked(request)
        same_agent = self._is_same_agent(asked)
        draft = RequestDraft(
            head=request.head,
            document=body.document,
            patcher=identify(request.head).patcher_for(request.head, body.document),
        )
        for rule in self.rules:
            if same_agent or not isinstance(rule, _RULES_OF_THE_SAME_AGENT):
                draft = _applied(rule, draft, asked, self.names)
        try:
            return body.rewritten(draft.document, draft.head)
        except CannotEdit:
            return request

    def _is_same_agent(self, asked: Asked) -> bool:
        if asked.system != self.asked.system:
            return False
        first = asked.messages[:1]
        tools = [tool.name for tool in asked.tools]
        return bool(
            asked.system
            or (first and first == self.asked.messages[:1])
            or (tools and tools == [tool.name for tool in self.asked.tools])
        )


def carried_edits(original: HttpRequest, edits: Sequence[Edit], *, names: ToolNames | None = None) -> CarriedEdits:
    """What to hold from now on, as the forked step's own request shows it before it is edited.

    ``names`` is what :func:`rewind.edit.apply.edited` takes. ``response=`` holds nothing: what it says comes back
    in the agent's own history.
    """
    asked = identify(original.head).reader.asked(original)
    nothing = CarriedEdits(asked=asked, rules=(), names=names or {})
    if is_signed(original):
        return nothing
    try:
        document = body_of(original).document
        draft = RequestDraft(
            head=original.head, document=document, patcher=identify(original.head).patcher_for(original.head, document)
        )
        return replace(nothing, rules=tuple(_rules(draft, asked, edits, names or {})))
    except CannotEdit:
        # What cannot be edited here was refused when it was to be edited; there is nothing to hold.
        return nothing


def _rules(draft: RequestDraft, asked: Asked, edits: Sequence[Edit], names: ToolNames) -> Iterable[_Rule]:
    """One for each edit, in the order in which they were made: an edit may find what another put there."""
    for edit, at in in_order(draft, edits):
        rule = _rule(draft, asked, edit, at, names)
        if rule is not None:
            yield rule
            draft = _applied(rule, draft, asked, names)


def _rule(draft: RequestDraft, asked: Asked, edit: Edit, at: int, names: ToolNames) -> _Rule | None:
    match edit:
        case SetMessage():
            old = draft.patcher.message(draft.patcher.turns(draft.document)[at])
            return _Message(edit=edit, at=at, old=_spoken(old))
        case SetToolResult(name=name):
            found = found_results(draft.patcher, draft.document, names)
            return _Results(edit=edit, old=tuple(new_results_of(found, name)))
        case SetSystem() | AppendSystem():
            return _System(edit=edit)
        case SetModel():
            return _Model(edit=edit, old=asked.model)
        case SetParameter(path=path):
            place = draft.patcher.parameter(draft.document, path)
            return _Parameter(edit=edit, old=value_at(draft.document, place))
        case SetResponse():
            return None


def _applied(rule: _Rule, draft: RequestDraft, asked: Asked, names: ToolNames) -> RequestDraft:
    try:
        return rule.applied(draft, asked, names)
    except CannotEdit:
        return draft


def _spoken(message: Message) -> Message:
    """Without what the model thought, which agents send back or leave out as they like."""
    return replace(message, parts=tuple(part for part in message.parts if not isinstance(part, Thinking)))


class MadeUpAnswers:
    """The answers of one run that were made up, for the APIs whose provider keeps the history."""

    def __init__(self) -> None:
        self._by_api: dict[str, UnissuedAnswers] = {}

    def add(self, request: HttpRequest, response: HttpResponse) -> None:
        """An answer that was made up for this request; of APIs that keep no history nothing needs to be known."""
        api = identify(request.head)
        if api.unissued is not None:
            if api.name not in self._by_api:
                self._by_api[api.name] = api.unissued.load()()
            self._by_api[api.name].add(request, response)

    def apply(self, request: HttpRequest) -> HttpRequest:
        """A later request as the provider can follow it; the very same one where nothing is to be done."""
        known = self._by_api.get(identify(request.head).name) if self._by_api else None
        return request if known is None else known.apply(request)
