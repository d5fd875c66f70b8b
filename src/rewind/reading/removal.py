"""A recording without what a person's patterns match, so that it can be given away and still be replayed.

What a request means has changed with its words, so match keys and digests are made anew from what is left. Nothing of
the old ones stays: by a digest of a whole request, what was taken out of it could be guessed and confirmed.
"""

from collections.abc import Callable
from dataclasses import field, replace

from rewind.conversation.sketch import said_of, sketch_of
from rewind.dataclass import dataclass
from rewind.match.call import understand
from rewind.model.http import Chunk, Headers, HttpRequest, HttpResponse, header
from rewind.model.ids import BlobId, MatchKey, blob_id
from rewind.model.session import Lineage, Recording, SessionEnd
from rewind.model.step import NO_BYTES, Step, StepKind, StepRequest, StepResponse
from rewind.providers.summary import short
from rewind.redaction.recording_texts import TextPlace, with_outline_changed, with_texts_changed
from rewind.redaction.removal import Removal

Blob = Callable[[BlobId], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """What the patterns took out."""

    steps: dict[int, int] = field(default_factory=dict)
    """Step → how many."""
    elsewhere: int = 0
    """In the command line, in what was printed, in names and tags."""
    misses: tuple[int, ...] = ()
    """Steps that a replay will not find: the agent itself sends what was removed."""
    answers: tuple[int, ...] = ()
    """Steps whose answers give the agent something else than it was given: it may go another way."""
    unread: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Steps of which something could not be read, and so was left out; and why."""
    idle: tuple[str, ...] = ()
    """Patterns that matched nothing."""

    @property
    def count(self) -> int:
        return sum(self.steps.values()) + self.elsewhere


def with_matches_removed(
    recording: Recording, blob: Blob, removal: Removal, on_step: Callable[[int, int], None] = lambda _done, _total: None
) -> tuple[Recording, Blob, Removed]:
    """The recording without what ``removal`` finds, how its bytes are read, and what that was."""
    return _Rewriting(recording, blob, removal, on_step).done()


class _Rewriting:
    def __init__(self, recording: Recording, blob: Blob, removal: Removal, on_step: Callable[[int, int], None]) -> None:
        self._recording = recording
        self._ignore = recording.session.start.ignore
        self._rules_changed = False
        self._old = blob
        self._removal = removal
        self._on_step = on_step
        self._new: dict[BlobId, bytes] = {}
        self._keys: dict[MatchKey, MatchKey] = {}
        self._heard: set[tuple[str, int]] = set()
        """What the tape gives the agent, and so what the agent may give back: placeholders."""
        self._own: set[tuple[str, int]] = set()
        """What the agent had before the tape gave it: it will send the value itself."""

    def done(self) -> tuple[Recording, Blob, Removed]:
        self._learn()
        self._removal.learned()
        changed = self._outline(self._recording)
        elsewhere = self._removal.count
        unread: dict[int, tuple[str, ...]] = {}
        counts: dict[int, int] = {}
        misses: list[int] = []
        answers: list[int] = []
        steps: list[Step] = []
        for step in self._recording.steps:
            before = self._removal.count
            request = self._request(step.request)
            met, lost = self._removal.met(), self._removal.unread()
            self._own |= met - self._heard
            if lost or (met & self._own and not _asks_the_same(request, step.request)):
                misses.append(step.index)
            response = None if step.response is None else self._response(step.response)
            self._heard |= self._removal.met()
            if lost := (*lost, *self._removal.unread()):
                unread[step.index] = tuple(dict.fromkeys(lost))
            if response is not None and step.response is not None and response.body != step.response.body:
                answers.append(step.index)
            changed_step = self._understood(step, Step(request=request, response=response))
            if self._removal.count > before:
                counts[step.index] = self._removal.count - before
            elif changed_step != step and not lost and not self._rules_changed:
                counts[step.index] = 1  # only what is told of it in short
            steps.append(changed_step)
            self._on_step(len(steps), len(self._recording.steps))
        lineage = changed.session.start.forked_from
        start = replace(changed.session.start, forked_from=lineage and self._lineage(lineage))
        changed = replace(changed, session=replace(changed.session, start=start), steps=tuple(steps))
        removed = Removed(
            steps=counts,
            elsewhere=elsewhere,
            misses=tuple(misses),
            answers=tuple(answers),
            unread=unread,
            idle=self._removal.idle,
        )
        return changed, self._blob, removed

    def _blob(self, name: BlobId) -> bytes:
        return self._new[name] if name in self._new else self._old(name)

    def _learn(self) -> None:
        recording = self._recording
        start, end = recording.session.start, recording.session.end
        self._removal.learn(" ".join(start.command))
        with_outline_changed(recording, self._hear)
        for name in () if end is None else (end.stdin, end.stdout, end.stderr):
            if name is not None:
                self._removal.learn_body(self._old(name), ())
        for step in recording.steps:
            self._on_step(0, len(recording.steps))
            with_texts_changed(step, self._hear)
            self._removal.learn(step.request.head.url)
            self._removal.learn_body(self._old(step.request.body), step.request.head.headers)
            if step.response is not None and step.response.head is not None:
                self._removal.learn_body(self._old(step.response.body), step.response.head.headers)

    def _hear(self, text: str, place: TextPlace) -> str:
        if not place.is_word:
            self._removal.learn(text)
        return text

    def _scrubbed(self, text: str, place: TextPlace) -> str:
        if place.is_word:
            return text
        if place.path.startswith("session.start.base_urls."):
            self._removal.met()
            text = self._removal.location(text)
            self._heard |= self._removal.met()  # a replay gives the agent these, so it may ask there
            return text
        if place.path == "session.start.hosts" or (place.is_header and place.name.lower() == "host"):
            return self._removal.location(text)
        if place.repeats_a_body:
            return self._removal.repeated_text(text)
        return self._removal.text(text)

    # ── the session ──────────────────────────────────────────────────────────────────────────────────────────

    def _outline(self, recording: Recording) -> Recording:
        """All but the steps. What was printed is no request's; what the agent is given again, it may send."""
        changed = with_outline_changed(recording, self._scrubbed)
        start = changed.session.start
        start = replace(start, command=self._removal.arguments(start.command))
        self._rules_changed = start.ignore != self._ignore
        self._ignore = start.ignore
        self._removal.met()
        end = None if changed.session.end is None else self._end(changed.session.end)
        self._removal.met()
        return replace(changed, session=replace(changed.session, start=start, end=end))

    def _lineage(self, lineage: Lineage) -> Lineage:
        """Its keys are those of steps, so they change with these."""
        return replace(
            lineage,
            key=self._keys.get(lineage.key, lineage.key),
            earlier=tuple(replace(edit, key=self._keys.get(edit.key, edit.key)) for edit in lineage.earlier),
        )

    def _end(self, end: SessionEnd) -> SessionEnd:
        stdin = self._output(end.stdin)
        self._heard |= self._removal.met()
        return replace(end, stdin=stdin, stdout=self._output(end.stdout), stderr=self._output(end.stderr))

    def _output(self, name: BlobId | None) -> BlobId | None:
        return None if name is None else self._put(self._removal.body(self._old(name), ()))

    def _put(self, data: bytes) -> BlobId:
        if not data:
            return NO_BYTES
        name = blob_id(data)
        self._new[name] = data
        return name

    # ── a step ───────────────────────────────────────────────────────────────────────────────────────────────

    def _request(self, request: StepRequest) -> StepRequest:
        before = self._old(request.body)
        body = self._removal.body(before, request.head.headers)
        kept = with_texts_changed(request, self._scrubbed)
        head = self._removal.address(kept.head)
        if body == before:
            return replace(kept, head=head)
        head = replace(head, headers=_counted(head.headers, before, body))
        return replace(kept, head=head, body=self._put(body), body_size=len(body))

    def _response(self, response: StepResponse) -> StepResponse:
        if response.head is None:
            return with_texts_changed(response, self._scrubbed)
        before = self._old(response.body)
        body = self._removal.answer(before, response.head)
        kept = with_texts_changed(response, self._scrubbed)
        assert kept.head is not None, "a head stays a head"
        if body == before:
            return kept
        chunks = response.chunks
        if len(body) != len(before):  # compressed anew: the old pieces do not fit it
            chunks = (Chunk(chunks[-1].at, len(body)),) if chunks and body else ()
        head = replace(kept.head, headers=_counted(kept.head.headers, before, body))
        return replace(kept, head=head, body=self._put(body), body_size=len(body), chunks=chunks)

    def _understood(self, before: Step, step: Step) -> Step:
        """A changed step, understood anew."""
        if step == before and not self._rules_changed:
            return step
        request, response = step.request, step.response
        asked = HttpRequest(head=request.head, body=self._blob(request.body))
        call = understand(asked, ignore=self._ignore)
        meaning = call.provider.reader.asked(asked)
        is_llm = call.provider.kind is StepKind.LLM_CALL
        sketch = sketch_of(meaning, call.provider, self._ignore) if is_llm else None
        if self._rules_changed or not _asks_the_same(request, before.request):
            # What the agent had sent before a fork changed it is not recorded, so its key cannot be made anew.
            self._keys[before.request.agents_key] = call.key
            request = replace(
                request, match_key=call.key, asked_key=None, sketch=None if sketch is None else str(sketch)
            )
        old = before.response
        if response is not None and response.head is not None and old is not None and response.body != old.body:
            whole = HttpResponse(
                head=response.head, body=self._blob(response.body), chunks=(), trailers=response.trailers
            )
            answered = call.provider.reader.answered(asked, whole)
            # The words of a line are a beginning, in which half of a value may be left: they are read anew.
            reading = replace(short(meaning, answered), said=said_of(answered))
            response = replace(response, reading=with_texts_changed(reading, self._scrubbed))
        return Step(request=request, response=response)


def _asks_the_same(one: StepRequest, other: StepRequest) -> bool:
    return (one.head, one.body) == (other.head, other.body)


def _counted(headers: Headers, before: bytes, after: bytes) -> Headers:
    """The headers with the new length, where they told the old one."""
    if len(before) == len(after) or header(headers, "content-length") != str(len(before)):
        return headers
    return tuple((name, str(len(after)) if name.lower() == "content-length" else value) for name, value in headers)
