"""What a step means in short, made anew from its bodies: its match key and sketch, its place, what its answer says.

A recorder writes these beside the bodies, for lists and comparisons. In a file from elsewhere they may be anything:
made by another rule, by an older codec, or by somebody who wants a comparison to say "the same". So of such a file only
heads, bodies and times are believed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace

from rewind.conversation.outline import CallsInTime, answered_at
from rewind.conversation.sketch import said_of, sketch_of
from rewind.match.call import understand
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.ids import BlobId, MatchKey
from rewind.model.message import Answered, Asked
from rewind.model.session import TRACE_SCHEME
from rewind.model.step import NO_BYTES, Reading, Step, StepKind, StepRequest
from rewind.providers.api import Api
from rewind.providers.catalogue import FALLBACK, identify, named
from rewind.providers.summary import LONG_ANSWER, READ_LIMIT, short

_TRACE_RULE = "rt1:"
"""Of keys of calls that a trace tells in pieces: they are made from its lines, which a cassette does not have."""
_SHOWN = 8
"""Steps that a remark names."""


def without_meaning(step: Step) -> Step:
    """The step less all that its bodies say better. Its match key is not made anew: that takes the body."""
    request, response = step.request, step.response
    api = identify(request.head)
    if not _is_told_by_nobody_else(step, api):
        request = replace(request, provider=api.name, kind=_kind(request, api), model=None)
        response = response and replace(response, reading=Reading())
    request = replace(request, thread=None, sketch=None)
    return Step(request=request, response=response and replace(response, reading=replace(response.reading, said=None)))


def answer_reading(step: Step, body: bytes) -> Reading:
    """What the answer says in short, read without its question: enough to know what it cost."""
    answered = answered_at(step, b"", body)
    return Reading() if answered is None else short(Asked(), answered)


class Meanings:
    """The steps of a recording with their meaning made anew, one after the other and only as far as they are asked for.

    ``asked_key`` stays as it is: what an agent had asked before an edit is nowhere recorded but in this key. Of a
    provider that is not known here the names and figures stay; digests, by which runs are compared, never do.
    """

    def __init__(self, steps: Sequence[Step], blobs: Mapping[BlobId, bytes], ignore: tuple[str, ...]) -> None:
        """``steps`` as the file states them."""
        self._steps = steps
        self._blobs = blobs
        self._ignore = ignore
        self._threads = CallsInTime()
        self._done: list[Step] = []

    def steps(self, upto: int | None = None) -> tuple[Step, ...]:
        """All steps; those behind ``upto`` may be without meaning."""
        while len(self._done) < len(self._steps):
            step = self._steps[len(self._done)]
            if upto is not None and step.index > upto:
                break
            self._done.append(self._anew(step))
        return (*self._done, *map(without_meaning, self._steps[len(self._done) :]))

    def bare_steps(self) -> tuple[Step, ...]:
        return tuple(map(without_meaning, self._steps))

    def with_reading(self, step: Step) -> Step:
        if step.response is None or step.response.reading != Reading():
            return step
        reading = answer_reading(step, self._blob(step.response.body))
        return replace(step, response=replace(step.response, reading=reading))

    def remarks(self) -> tuple[str, ...]:
        found: dict[str, list[int]] = {}
        for stated, made in zip(self._steps, self.steps(), strict=True):
            for name in _stated_otherwise(stated, made):
                found.setdefault(name, []).append(stated.index)
        return tuple(_remark(name, steps) for name, steps in found.items())

    def _blob(self, blob: BlobId) -> bytes:
        return b"" if blob == NO_BYTES else self._blobs[blob]

    def _anew(self, step: Step) -> Step:
        request_body, response_body = step.bodies(self._blob)
        request, response = step.request, step.response
        call = understand(HttpRequest(head=request.head, body=request_body), ignore=self._ignore, index=step.index)
        api, asked = call.provider, call.provider.reader.asked(call.request)
        answered, reading = self._answer(step, api, call.request, asked, response_body)
        kept = _is_told_by_nobody_else(step, api)
        if kept and response is not None:
            reading = replace(response.reading, said=reading.said, note=_told_by_the_file(request.provider))
        request = replace(
            request,
            kind=request.kind if kept else _kind(request, api),
            provider=request.provider if kept else api.name,
            match_key=_key(request, call.key),
            model=request.model if kept else asked.model and asked.model[:200],
            sketch=str(sketch_of(asked, api, self._ignore)) if api.kind is StepKind.LLM_CALL else None,
            thread=None,
        )
        step = Step(request=request, response=response and replace(response, reading=reading))
        if api.kind is not StepKind.LLM_CALL or asked.embeds:
            return step
        place = self._threads.place(step, asked, answered)
        return replace(step, request=replace(request, thread=place.thread))

    def _answer(
        self, step: Step, api: Api, request: HttpRequest, asked: Asked, body: bytes
    ) -> tuple[Answered | None, Reading]:
        if step.response is None or step.response.head is None:
            return None, Reading()
        if len(body) > READ_LIMIT:
            return None, LONG_ANSWER
        answered = api.reader.answered(request, HttpResponse(head=step.response.head, body=body, chunks=()))
        return answered, replace(short(asked, answered), said=said_of(answered))


def _is_told_by_nobody_else(step: Step, api: Api) -> bool:
    """Whether a provider was at work that is not known here, so that only the recording tells what it read."""
    return api is FALLBACK and named(step.request.provider) is None


def _told_by_the_file(provider: str) -> str:
    return f"as the file says it: this Rewind does not know the provider {provider!r}"


def _kind(request: StepRequest, api: Api) -> StepKind:
    """What traces tell besides calls is read by nobody, and is as they say."""
    return request.kind if api is FALLBACK and request.head.scheme == TRACE_SCHEME else api.kind


def _key(request: StepRequest, made: MatchKey) -> MatchKey:
    from_lines = request.head.scheme == TRACE_SCHEME and request.match_key.startswith(_TRACE_RULE)
    return request.match_key if from_lines else made


# ── what was stated otherwise ────────────────────────────────────────────────────────────────────────────────────


def _remark(name: str, steps: list[int]) -> str:
    shown = ", ".join(map(str, steps[:_SHOWN])) + (f" and {len(steps) - _SHOWN:,} more" if len(steps) > _SHOWN else "")
    where = f"step {shown}" if len(steps) == 1 else f"steps {shown}"
    return f"{where}: the {name} in the file is not what the bodies say; Rewind goes by the bodies"


def _stated_otherwise(stated: Step, made: Step) -> Iterator[str]:
    """What a step was said to mean and does not, by the names that cassettes use.

    Digests by another rule cannot be compared, and threads depend on the moment, so neither is told.
    """
    asked, read = stated.request, made.request
    for name, was, now in (("key", asked.match_key, read.match_key), ("sketch", asked.sketch, read.sketch)):
        if was is not None and was != now and (now is None or was.partition(":")[0] == now.partition(":")[0]):
            yield name
    for name in ("kind", "provider", "model"):
        if getattr(asked, name) != getattr(read, name):
            yield name
    if stated.response is None or made.response is None or made.response.reading == LONG_ANSWER:
        return
    for field in fields(Reading):
        was, now = getattr(stated.response.reading, field.name), getattr(made.response.reading, field.name)
        if was != now and field.name != "note":
            yield {"usage": "tokens"}.get(field.name, f"answer's {field.name}" if field.name == "model" else field.name)
