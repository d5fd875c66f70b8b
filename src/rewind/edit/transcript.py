"""A recorded conversation as the message list of an API: its own, word for word, or any other's.

Within one API the messages are those that were sent, and the answer is put as that API takes it back. For another
API they are read into our neutral shape and written anew: texts, pictures, calls and results stay, what only the
first API can read (thinking, hosted tools) is left out, and every such loss is told in a remark.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rewind.edit.own_words import anthropic_turns, chat_turns, gemini_turns, responses_turns
from rewind.edit.patchers import dialect_of
from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Answered, Asked, Message, Part, Role
from rewind.providers.anthropic import write as anthropic
from rewind.providers.catalogue import identify
from rewind.providers.gemini import write as gemini
from rewind.providers.openai_chat import write as openai_chat
from rewind.providers.openai_responses import write as openai_responses
from rewind.providers.shared.answer_stream import answer_of, asked_for
from rewind.providers.shared.call_ids import tied
from rewind.providers.shared.json_fields import at
from rewind.providers.shared.patch import Document
from rewind.providers.shared.request_body import opened
from rewind.providers.shared.write import Pen, media_in

Fields = dict[str, Any]

SHAPES = ("openai", "responses", "anthropic", "gemini")
_OWN = {
    "openai-chat": "openai",
    "openai-responses": "responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A call, and the answer as far as it came."""

    request: HttpRequest
    response: HttpResponse | None

    @property
    def asked(self) -> Asked:
        return identify(self.request.head).asked(self.request)

    @property
    def answered(self) -> Answered | None:
        """``None`` where no model said anything: no answer came, or an error."""
        if self.response is None:
            return None
        answered = identify(self.request.head).answered(self.request, self.response)
        return None if answered.error or not answered.parts else answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Retold:
    """A conversation, ready to be asked on from."""

    api: str
    model: str | None
    system: Any
    """What this API takes beside the list; ``None`` where there is nothing, or it is the list's first message."""
    messages: list[Fields]
    remarks: tuple[str, ...]
    """What was lost on the way."""


def retold(exchanges: Sequence[Exchange], api: str | None = None) -> Retold:
    """The conversation up to and including the last answer, for that API (default: its own).

    The exchanges before the last are those whose messages the provider keeps, so that the last does not repeat them.
    """
    last = exchanges[-1]
    asked = last.asked
    own = {shape_of(one.request) for one in exchanges}
    wanted = api or shape_of(last.request) or usual_shape(last.request)
    pen = Pen()
    found = _in_own_words(exchanges, wanted, pen) if own == {wanted} else None
    system, messages = found or _anew(exchanges, asked, wanted, pen)
    remarks = [f"{what} ({count}×)" if count > 1 else what for what, count in pen.lost.items()]
    return Retold(
        api=wanted,
        model=asked.model,
        system=system,
        messages=messages,
        remarks=(*remarks, *_remarks(last, wanted)),
    )


def _remarks(last: Exchange, wanted: str) -> list[str]:
    answered = last.answered
    remarks = []
    if answered is None:
        remarks.append("no answer: the list ends with what was asked")
    elif answered.alternatives:
        remarks.append("other choices of the last answer left out: a conversation goes on from one")
    if answered is not None and answered.note:
        remarks.append(f"the last answer is not whole: {answered.note}")
    if shape_of(last.request) is None:
        remarks.append(f"recorded from {identify(last.request.head).name}, written as {wanted}")
    return remarks


def shape_of(request: HttpRequest) -> str | None:
    """In which of the shapes a request is written; ``None`` for any other API."""
    document, _ = asked_for(request)
    return _OWN.get(dialect_of(request.head, document).name) if isinstance(document, dict) else None


def usual_shape(request: HttpRequest) -> str:
    """The nearest shape to an API that has none of its own here."""
    document, _ = asked_for(request)
    return "anthropic" if at(document, "anthropic_version") is not None else "openai"


# ── in its own words ─────────────────────────────────────────────────────────────────────────────────────────


def _in_own_words(exchanges: Sequence[Exchange], api: str, pen: Pen) -> tuple[Any, list[Fields]] | None:
    """``None`` where a body cannot be taken apart, or an answer cannot be put back as it came."""
    messages: list[Fields] = []
    system: Any = None
    for one in exchanges:
        try:
            document = opened(one.request).document
            turns = dialect_of(one.request.head, document).turns(document)
        except CannotEdit:
            return None
        said = _own_answer(one, api, pen)
        if said is None:
            return None
        messages += [*turns, *said]
        system = _own_system(one.request, document, api)
    if api == "responses" and system:
        return None, [{"role": "system", "content": system}, *messages]
    return system, messages


def _own_system(request: HttpRequest, document: Document, api: str) -> Any:
    match api:
        case "openai":
            return None  # the first messages
        case "responses":
            return document.get("instructions")
        case _:
            return dialect_of(request.head, document).system(document)


def _own_answer(one: Exchange, api: str, pen: Pen) -> list[Fields] | None:
    answered = one.answered
    if answered is None or one.response is None:
        return []
    documents = answer_of(one.response).documents
    match api:
        case "openai":
            return chat_turns(answered, pen)
        case "anthropic":
            return anthropic_turns(documents)
        case "responses":
            return responses_turns(documents, pen)
        case _:
            return gemini_turns(documents)


# ── for another API ──────────────────────────────────────────────────────────────────────────────────────────


def _anew(exchanges: Sequence[Exchange], asked: Asked, api: str, pen: Pen) -> tuple[Any, list[Fields]]:
    messages: list[Message] = []
    documents: list[Any] = []
    for one in exchanges:
        answered = one.answered
        said = [Message(Role.ASSISTANT, answered.parts)] if answered is not None else []
        messages += [*one.asked.messages, *said]
        documents.append(asked_for(one.request)[0])
        documents += answer_of(one.response).documents if one.response is not None else ()
    pen.data = media_in(documents, messages)
    return written(asked.system, tied(messages), api, pen)


def written(
    system: tuple[Part, ...], messages: Sequence[Message], api: str, pen: Pen
) -> tuple[Any, list[Fields]]:
    """What an API takes beside its list, and the list."""
    match api:
        case "openai":
            first = [openai_chat.system_turn(system, pen)] if system else []
            return None, [*first, *openai_chat.written(messages, pen)]
        case "responses":
            first = [openai_responses.system_item(system, pen)] if system else []
            return None, [*first, *openai_responses.written(messages, pen)]
        case "anthropic":
            return anthropic.system(system), anthropic.written(messages, pen)
        case _:
            return gemini.system(system), gemini.written(messages, pen)
