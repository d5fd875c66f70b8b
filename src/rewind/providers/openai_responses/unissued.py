"""Answers that the provider never gave, where it keeps the history.

An agent of OpenAI Responses goes on by naming the last answer (``previous_response_id``). One that was made up has a
name that the provider does not know, and neither does it know what had been asked there. So a call that goes on from
such an answer is made to go on from the last one that the provider did give, with all that was said since.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest, HttpResponse
from rewind.providers.api import Document
from rewind.providers.openai_responses.patch import ResponsesPatcher
from rewind.providers.openai_responses.read import OpenAIResponsesReader
from rewind.providers.openai_responses.write import answer_items
from rewind.providers.shared.answer_stream import answer_of
from rewind.providers.shared.json_fields import at, items_at, text_at, without
from rewind.providers.shared.losses import LossLog
from rewind.providers.shared.request_body import body_of

_BEFORE = "previous_response_id"
_PATCHER = ResponsesPatcher()
_READER = OpenAIResponsesReader()


@dataclass(frozen=True, slots=True)
class _MadeUp:
    before: str | None
    """The answer that the call had gone on from."""
    said: tuple[Any, ...]
    """What was asked and answered since."""
    items: dict[str, Any]
    """The answer's items, by the names under which an agent may refer to them."""


class UnissuedResponses:
    """The answers of one run that the provider does not know."""

    def __init__(self) -> None:
        self._known: dict[str, _MadeUp] = {}

    def add(self, request: HttpRequest, response: HttpResponse) -> None:
        """An answer that was made up for this request."""
        if (document := _read(request)) is None:
            return
        documents = answer_of(response).documents
        if name := _READER.answered(request, response).id:
            said = (*_PATCHER.turns(document), *answer_items(documents, LossLog()))
            items = dict(_items(documents))
            self._known[name] = _MadeUp(text_at(document, _BEFORE) or None, said, items)

    def apply(self, request: HttpRequest) -> HttpRequest:
        """A later request as the provider can follow it; the very same one where nothing is to be done."""
        if not self._known or (document := _read(request)) is None:
            return request
        turns = [self._meant(turn) for turn in _PATCHER.turns(document)]
        before = text_at(document, _BEFORE)
        named = before
        left = dict(self._known)
        while (known := left.pop(before, None)) is not None:
            turns = [*known.said, *turns]
            before = known.before or ""
        if before != named:
            document = {**document, _BEFORE: before} if before else without(document, _BEFORE)
        if turns != _PATCHER.turns(document):
            document = _PATCHER.with_turns(document, turns)
        return body_of(request).rewritten(document)

    def _meant(self, turn: Any) -> Any:
        """The item itself, where the agent only refers to one."""
        if text_at(turn, "type") != "item_reference":
            return turn
        name = text_at(turn, "id")
        return next((known.items[name] for known in self._known.values() if name in known.items), turn)


def _read(request: HttpRequest) -> Document | None:
    """The request of an API in which the provider may keep the history."""
    try:
        document = body_of(request).document
        _PATCHER.turns(document)
    except CannotEdit:
        return None
    return document


def _items(documents: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    """The answer's items with their names, as a request takes them."""
    for document in documents:
        for item in items_at(at(document, "response") or document, "output"):
            if name := text_at(item, "id"):
                yield name, without(item, "id", "status") if "call_id" in item else without(item, "id")
