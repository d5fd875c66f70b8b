"""A recorded conversation as the message list of an API: its own, word for word, or any other's.

Within one API the messages are those that were sent, and the answer is put as that API takes it back. For another
API they are read into our neutral shape and written anew: texts, pictures, calls and results stay, what only the
first API can read (thinking, hosted tools) is left out, and every such loss is told in a remark.
"""

from collections.abc import Sequence
from typing import Any

from rewind.dataclass import dataclass
from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Answered, Asked, Message, Role
from rewind.providers.api import Document, LossLog, Writer
from rewind.providers.catalogue import BY_SHAPE, identify
from rewind.providers.shared.answer_stream import read_answer, request_json
from rewind.providers.shared.request_body import body_of
from rewind.providers.shared.write import media_in, with_matched_ids

_USUAL_SHAPE = next(iter(BY_SHAPE))
"""OpenAI's, which most servers speak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredCall:
    """A call, and the answer as far as it came."""

    request: HttpRequest
    response: HttpResponse | None

    @property
    def asked(self) -> Asked:
        return identify(self.request.head).reader.asked(self.request)

    @property
    def answered(self) -> Answered | None:
        """``None`` where no model said anything: no answer came, or an error."""
        if self.response is None:
            return None
        answered = identify(self.request.head).reader.answered(self.request, self.response)
        return None if answered.error or not answered.parts else answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A conversation, ready to be asked on from."""

    api: str
    model: str | None
    system: Any
    """What this API takes beside the list; ``None`` where there is nothing, or it is the list's first message."""
    messages: list[Document]
    remarks: tuple[str, ...]
    """What was lost on the way."""


def transcript_of(calls: Sequence[AnsweredCall], shape: str | None = None) -> Transcript:
    """The conversation up to and including the last answer, for that API (default: its own).

    The calls before the last are those whose messages the provider keeps, so that the last does not repeat them.
    """
    last = calls[-1]
    asked = last.asked
    own = {shape_of(call.request) for call in calls}
    wanted = shape or shape_of(last.request) or _nearest_shape(last.request)
    losses = LossLog()
    written = _in_own_words(calls, writer_of(wanted), losses) if own == {wanted} else None
    system, messages = written or _anew(calls, asked, writer_of(wanted), losses)
    return Transcript(
        api=wanted,
        model=asked.model,
        system=system,
        messages=messages,
        remarks=(*losses.remarks(), *_remarks(last, wanted)),
    )


def writer_of(shape: str) -> Writer:
    """The writer of the API that has this shape, one of ``BY_SHAPE``."""
    writer = BY_SHAPE[shape].writer
    assert writer is not None, "an API that has a shape has its writer"
    return writer.load()


def shape_of(request: HttpRequest) -> str | None:
    """In which of the shapes a request is written; ``None`` for any other API."""
    api = identify(request.head)
    document, _ = request_json(request)
    if BY_SHAPE.get(api.shape) is not api or not isinstance(document, dict):
        return None
    # Some requests of these APIs have no messages, and another patcher: the legacy completions.
    return api.shape if api.patcher_for(request.head, document).name == api.name else None


def _nearest_shape(request: HttpRequest) -> str:
    nearest = identify(request.head).nearest_shape
    return nearest(request_json(request)[0]) if nearest else _USUAL_SHAPE


def _remarks(last: AnsweredCall, wanted: str) -> list[str]:
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


# ── in its own words ─────────────────────────────────────────────────────────────────────────────────────────


def _in_own_words(calls: Sequence[AnsweredCall], writer: Writer, losses: LossLog) -> tuple[Any, list[Document]] | None:
    """``None`` where a body cannot be taken apart, or an answer cannot be put back as it came."""
    messages: list[Document] = []
    beside: Any = None
    first: list[Document] = []
    for call in calls:
        head = call.request.head
        try:
            document = body_of(call.request).document
            turns = identify(head).patcher_for(head, document).turns(document)
        except CannotEdit:
            return None
        answer: list[Document] | None = []
        if (answered := call.answered) is not None and call.response is not None:
            answer = writer.own_answer(answered, read_answer(call.response).documents, losses)
        if answer is None:
            return None
        messages += [*turns, *answer]
        beside, first = writer.own_system(document)
    return beside, [*first, *messages]


# ── for another API ──────────────────────────────────────────────────────────────────────────────────────────


def _anew(calls: Sequence[AnsweredCall], asked: Asked, writer: Writer, losses: LossLog) -> tuple[Any, list[Document]]:
    messages: list[Message] = []
    documents: list[Any] = []
    for call in calls:
        answered = call.answered
        answer = [Message(Role.ASSISTANT, answered.parts)] if answered is not None else []
        messages += [*call.asked.messages, *answer]
        documents.append(request_json(call.request)[0])
        documents += read_answer(call.response).documents if call.response is not None else ()
    losses.data = media_in(documents, messages)
    return writer.conversation(asked.system, with_matched_ids(messages), losses)
