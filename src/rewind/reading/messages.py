"""The conversation of a recorded session up to a step, as the message list of an API."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from rewind.conversation.outline import Outline, OutlineStep
from rewind.dataclass import dataclass
from rewind.edit.transcript import AnsweredCall, Transcript, transcript_of
from rewind.errors import SessionNotFound, UsageError
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.session import Recording
from rewind.model.step import Step
from rewind.providers.catalogue import FALLBACK, SHAPES, identify
from rewind.reading.progress import OnProgress, ignored
from rewind.reading.session import open_session, read_outline
from rewind.reading.thread_outline import last_call
from rewind.settings import read_settings
from rewind.store.journal.reader import SessionReader

APIS = SHAPES
"""What a conversation can be written for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What was said, and where it was found."""

    session: str
    step: int
    """The call whose messages and answer these are."""
    thread: int
    threads: int
    """How many conversations the session has up to that step."""
    transcript: Transcript


class Messages(list[dict[str, Any]]):
    """The message list, ready for a fresh call; what that call takes besides is beside it."""

    def __init__(self, conversation: Conversation) -> None:
        transcript = conversation.transcript
        super().__init__(transcript.messages)
        self.api = transcript.api
        """``openai``, ``responses``, ``anthropic`` or ``gemini``."""
        self.model = transcript.model
        """The model that was asked."""
        self.system = transcript.system
        """For Anthropic and Gemini, which take the system prompt beside the list; else ``None``."""
        self.remarks = transcript.remarks
        """What could not be written for this API."""
        self.step = conversation.step
        self.thread = conversation.thread


def messages(
    ref: str,
    upto: int | None = None,
    as_: str | None = None,
    home: str | os.PathLike[str] | None = None,
    *,
    thread: int | None = None,
) -> Messages:
    """The conversation of a session up to a step, as the message list of an API: what was asked, and the answer.

    ``as_`` is ``openai``, ``responses``, ``anthropic`` or ``gemini`` (default: the API of the step). The system
    prompt is the first message for the first two, and the list's ``system`` for the others. Raises RewindError.
    """
    settings = read_settings({"home": None if home is None else os.fspath(home)})
    return Messages(conversation(settings.home, ref, upto=upto, thread=thread, api=as_))


def conversation(
    home: Path,
    ref: str,
    *,
    upto: int | None = None,
    thread: int | None = None,
    api: str | None = None,
    on_progress: OnProgress = ignored,
) -> Conversation:
    """The last call to a model up to step ``upto`` (default: all), with its answer.

    Of several threads, that of this last call, or the one named. Raises SessionNotFound or UsageError.
    """
    if api is not None and api not in APIS:
        raise UsageError(f"Messages cannot be written for {api!r}.", hint=f"one of: {', '.join(APIS)}")
    with open_session(home, ref) as reader:
        recording = _upto(reader.recording(), upto)
        if (told := last_call(reader, recording, thread)) is not None:
            last, place, threads = told
            exchanges = [_exchange(reader, last.step)]
        else:
            outline = read_outline(reader, recording, on_progress)
            last = _last(recording, outline, thread)
            assert last.place is not None, "only conversations have threads"
            place, threads = last.place, outline.threads
            exchanges = [_exchange(reader, entry.step) for entry in _history(outline, last)]
        return Conversation(
            session=recording.session.id,
            step=last.step.index,
            thread=place.thread,
            threads=threads,
            transcript=transcript_of(exchanges, api),
        )


def _upto(recording: Recording, upto: int | None) -> Recording:
    if upto is None:
        return recording
    known = [step.index for step in recording.steps]
    session = recording.session.id
    if upto not in known:
        there = f"it has {len(known)}, from {known[0]} to {known[-1]}" if known else "it has none"
        raise SessionNotFound(
            f"Session {session} has no step {upto}; {there}.", hint=f"rewind inspect {recording.session.ref}"
        )
    return replace(recording, steps=tuple(step for step in recording.steps if step.index <= upto))


def _last(recording: Recording, outline: Outline, thread: int | None) -> OutlineStep:
    # A call that was known when it was recorded, and that no codec of today reads, has no messages for us.
    calls = [entry for entry in outline.steps if entry.place and identify(entry.step.request.head) is not FALLBACK]
    session = recording.session.id
    if not calls:
        raise UsageError(
            f"No model was called in session {session} up to that step.", hint=f"rewind inspect {recording.session.ref}"
        )
    fitting = [entry for entry in calls if entry.place is not None and thread in (None, entry.place.thread)]
    if not fitting:
        raise UsageError(
            f"Session {session} has no thread {thread} up to that step; its threads are 1 to {outline.threads}.",
            hint=f"rewind inspect {recording.session.ref}",
        )
    return fitting[-1]


def _history(outline: Outline, last: OutlineStep) -> list[OutlineStep]:
    """The call, after those whose messages the provider keeps for it (as :meth:`Outline.held` has them)."""
    calls = [last]
    while (first := calls[0]).asked.continues or first.asked.history:
        before = outline.step(first.place.parent) if first.place and first.place.parent else None
        if before is None:
            break
        calls.insert(0, before)
    return calls


def _exchange(reader: SessionReader, step: Step) -> AnsweredCall:
    """As it was recorded; what is damaged is named, not taken for empty."""
    request = HttpRequest(head=step.request.head, body=reader.blob(step.request.body))
    response = None
    if step.response is not None and step.response.head is not None:
        body = reader.blob(step.response.body)
        response = HttpResponse(head=step.response.head, body=body, chunks=step.response.chunks)
    return AnsweredCall(request=request, response=response)
