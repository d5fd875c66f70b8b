"""Edits that hold: in later calls, the old value in the same place is replaced again.

The agent goes on from its own state, which an edit of one request does not touch. It sends the old system prompt
again, and the old message stands in its history. Which later calls are meant is told by what they carry: the place
must hold what it held at the forked step. Model and parameters are held for calls of the same agent only, known by
its system prompt; an agent without one is known by its first message or by its tools.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewind.edit.change import (
    Draft,
    given_by,
    in_order,
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
from rewind.edit.patchers import dialect_of
from rewind.edit.results import Found, Names, found_results, new_results_of, with_results
from rewind.edit.signing import is_signed
from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest
from rewind.model.message import Asked, Message, Thinking
from rewind.providers.catalogue import identify
from rewind.providers.shared.request_body import opened
from rewind.providers.shared.values import value_at


@dataclass(frozen=True, slots=True, kw_only=True)
class _System:
    """A system prompt, which is known by the agent itself."""

    edit: SetSystem | AppendSystem

    def applied(self, draft: Draft, asked: Asked, names: Names) -> Draft:
        return with_system(draft, self.edit)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    edit: SetModel
    old: str | None

    def applied(self, draft: Draft, asked: Asked, names: Names) -> Draft:
        return with_another_model(draft, self.edit) if asked.model == self.old else draft


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parameter:
    edit: SetParameter
    old: Any

    def applied(self, draft: Draft, asked: Asked, names: Names) -> Draft:
        place = draft.dialect.parameter(draft.document, self.edit.path)
        return with_parameter(draft, self.edit) if value_at(draft.document, place) == self.old else draft


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    edit: SetMessage
    at: int
    old: Message

    def applied(self, draft: Draft, asked: Asked, names: Names) -> Draft:
        """In its old place; where the history has moved, wherever it stands now."""
        turns = draft.dialect.turns(draft.document)
        equal = [n for n, turn in enumerate(turns) if _spoken(draft.dialect.message(turn)) == self.old]
        for at in [self.at] if self.at in equal else reversed(equal):
            draft = with_message(draft, self.edit, at)
        return draft


@dataclass(frozen=True, slots=True, kw_only=True)
class _Results:
    edit: SetToolResult
    old: tuple[Found, ...]

    def applied(self, draft: Draft, asked: Asked, names: Names) -> Draft:
        """As messages are: first in the old place, then wherever an equal one stands."""
        found = found_results(draft.dialect, draft.document, names)
        given = given_by(self.edit, draft.dialect)
        chosen: dict[int, int] = {}
        for nth, old in enumerate(self.old):
            equal = [one.number for one in found if _is_same(one, old)]
            for number in [old.number] if old.number in equal else equal:
                chosen.setdefault(number, nth)
        document = with_results(
            draft.dialect,
            draft.document,
            found,
            lambda one: given(chosen[one.number]) if one.number in chosen else None,
        )
        return draft.with_document(document)


def _is_same(one: Found, old: Found) -> bool:
    if one.result.id and old.result.id:
        return one.result.id == old.result.id and one.text == old.text
    # An unnamed result stands for that tool where the call is not shown.
    same_tool = one.result.name == old.result.name or not (one.result.name and old.result.name)
    return same_tool and one.text == old.text


_Rule = _System | _Model | _Parameter | _Message | _Results
_OF_THE_AGENT = (_System, _Model, _Parameter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What the edits replaced at the forked step, to be replaced again."""

    asked: Asked
    rules: tuple[_Rule, ...]
    names: Names

    def apply(self, request: HttpRequest) -> HttpRequest:
        """A later request with the edits that fit it; the very same one where none does. Never raises."""
        if not self.rules or is_signed(request):
            return request
        try:
            body = opened(request)
        except CannotEdit:
            return request
        asked = identify(request.head).asked(request)
        same_agent = self._is_same_agent(asked)
        draft = Draft(
            head=request.head, document=body.document, dialect=dialect_of(request.head, body.document)
        )
        for rule in self.rules:
            if same_agent or not isinstance(rule, _OF_THE_AGENT):
                draft = _applied(rule, draft, asked, self.names)
        try:
            return body.closed(draft.document, draft.head)
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


def held_edits(original: HttpRequest, edits: Sequence[Edit], *, names: Names | None = None) -> Holding:
    """What to hold from now on, as the forked step's own request shows it before it is edited.

    ``names`` is what :func:`rewind.edit.apply.edited` takes. ``response=`` holds nothing: what it says comes back
    in the agent's own history.
    """
    asked = identify(original.head).asked(original)
    nothing = Holding(asked=asked, rules=(), names=names or {})
    if is_signed(original):
        return nothing
    try:
        document = opened(original).document
        draft = Draft(head=original.head, document=document, dialect=dialect_of(original.head, document))
        return replace(nothing, rules=tuple(_rules(draft, asked, edits, names or {})))
    except CannotEdit:
        # What cannot be edited here was refused when it was to be edited; there is nothing to hold.
        return nothing


def _rules(draft: Draft, asked: Asked, edits: Sequence[Edit], names: Names) -> Iterable[_Rule]:
    """One for each edit, in the order in which they were made: an edit may find what another put there."""
    for edit, at in in_order(draft, edits):
        rule = _rule(draft, asked, edit, at, names)
        if rule is not None:
            yield rule
            draft = _applied(rule, draft, asked, names)


def _rule(draft: Draft, asked: Asked, edit: Edit, at: int, names: Names) -> _Rule | None:
    match edit:
        case SetMessage():
            old = draft.dialect.message(draft.dialect.turns(draft.document)[at])
            return _Message(edit=edit, at=at, old=_spoken(old))
        case SetToolResult(name=name):
            found = found_results(draft.dialect, draft.document, names)
            return _Results(edit=edit, old=tuple(new_results_of(found, name)))
        case SetSystem() | AppendSystem():
            return _System(edit=edit)
        case SetModel():
            return _Model(edit=edit, old=asked.model)
        case SetParameter(path=path):
            place = draft.dialect.parameter(draft.document, path)
            return _Parameter(edit=edit, old=value_at(draft.document, place))
        case SetResponse():
            return None


def _applied(rule: _Rule, draft: Draft, asked: Asked, names: Names) -> Draft:
    try:
        return rule.applied(draft, asked, names)
    except CannotEdit:
        return draft


def _spoken(message: Message) -> Message:
    """Without what the model thought, which agents send back or leave out as they like."""
    return replace(message, parts=tuple(part for part in message.parts if not isinstance(part, Thinking)))
