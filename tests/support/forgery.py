"""A small run as a cassette, and cassettes that lie about it under a seal that fits.

A forgery is told from its honest twin by nothing but what a file states of its own bodies: both have the same heads,
bodies, times and ids. So every command must say the same of both.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewind.conversation.outline import outline_of, read_step
from rewind.conversation.sketch import said_of, sketch_of
from rewind.match.call import understand
from rewind.model.http import Chunk, HttpRequest, HttpResponse
from rewind.model.ids import BlobId, MatchKey, SessionId, blob_id
from rewind.model.session import Recording, Session, SessionEnd, SessionStart, Status
from rewind.model.step import Ending, Reading, Step, StepKind, StepRequest, StepResponse
from rewind.model.usage import Usage
from rewind.providers.summary import short
from rewind.store.cassette.write import write_cassette
from support.exchanges import answer_with, request_of, stream_of
from unit.store.taping import resealed

Dice = random.Random
_ANTHROPIC: dict[str, Any] = {"host": "api.anthropic.com", "target": "/v1/messages"}
_WORDS = ("refund", "order", "late", "pay", "28 days", "24 days", "never", "at once", "Ada", "the handbook")


@dataclass(frozen=True, slots=True)
class Run:
    """A recording with its bytes."""

    recording: Recording
    blobs: dict[BlobId, bytes]

    def with_step(self, index: int, **changes: Any) -> "Run":
        """One step changed: ``request`` and ``response`` are replaced, ``asked`` and ``answered`` are new bodies."""
        blobs = dict(self.blobs)
        steps = list(self.recording.steps)
        step = steps[index]
        request, response = changes.get("request", step.request), changes.get("response", step.response)
        if (asked := changes.get("asked")) is not None:
            blobs[blob_id(asked)] = asked
            request = replace(request, body=blob_id(asked), body_size=len(asked))
        if (answered := changes.get("answered")) is not None:
            assert response is not None, "it was answered"
            blobs[blob_id(answered)] = answered
            whole = (Chunk(round(response.ms * 1000), len(answered)),)
            response = replace(response, body=blob_id(answered), body_size=len(answered), chunks=whole)
        steps[index] = Step(request=request, response=response)
        return Run(replace(self.recording, steps=tuple(steps)), blobs)

    def bodies(self, index: int) -> tuple[bytes, bytes]:
        return self.recording.steps[index].bodies(self.blobs.__getitem__)

    def cassette(self) -> bytes:
        return write_cassette(self.recording, self.blobs.__getitem__)


def a_run() -> Run:
    """Two conversations, a stream, a retry, and plain HTTP."""
    chat: list[dict[str, Any]] = [{"role": "user", "content": "I want my money back for order 8821."}]
    said = [{"type": "tool_use", "id": "toolu_1", "name": "lookup", "input": {"order": "8821"}}]
    brought = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": '{"days": 28}'}]
    asked = {"model": "claude-sonnet-4-6", "max_tokens": 100, "system": "You are a support agent."}
    usage = {"input_tokens": 1000, "output_tokens": 100}
    second = [*chat, {"role": "assistant", "content": said}, {"role": "user", "content": brought}]
    stream = [
        {"model": "gpt-4o", "choices": [{"index": 0, "delta": {"content": text}}]} for text in ("It ", "is late.")
    ]
    question = {"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": "Is order 8821 late?"}]}
    exchanges = [
        (
            request_of({**asked, "messages": chat}, **_ANTHROPIC),
            answer_with({"type": "message", "model": "claude-sonnet-4-6", "content": said, "usage": usage}),
        ),
        (request_of(question), answer_with({"error": {"message": "Slow down.", "type": "requests"}}, status=429)),
        (request_of(question), stream_of(*stream, end=b"data: [DONE]\n\n")),
        (request_of({"order": 8821}, host="shop.example", target="/orders"), answer_with({"days": 28})),
        (
            request_of({**asked, "messages": second}, **_ANTHROPIC),
            answer_with(
                {
                    "type": "message",
                    "model": "claude-sonnet-4-6",
                    "content": [{"type": "text", "text": "You get it back within 28 days, says the handbook."}],
                    "usage": usage,
                }
            ),
        ),
    ]
    steps = tuple(_step(index, *pair) for index, pair in enumerate(exchanges, 1))
    blobs = {blob_id(half.body): half.body for pair in exchanges for half in pair}
    start = SessionStart(
        id=SessionId("7f3a2b9c"),
        name="support",
        command=("python", "agent.py"),
        cwd="/srv/agent",
        started=1_763_197_320.0,
        rewind_version="0.1.0",
    )
    end = SessionEnd(ended=start.started + 20, exit_code=0, stdin=None, stdout=None, stderr=None, redactions=0)
    session = Session(start=start, end=end, status=Status.ENDED, folder="")
    return honest(Run(Recording(session=session, steps=steps), blobs))


def _step(index: int, asked: HttpRequest, answered: HttpResponse) -> Step:
    request = StepRequest(
        index=index,
        ts=1_763_197_320.0 + 2 * index,
        kind=StepKind.HTTP_CALL,
        provider="",
        match_key=MatchKey(""),
        head=asked.head,
        body=blob_id(asked.body),
        body_size=len(asked.body),
    )
    response = StepResponse(
        ending=Ending.COMPLETE,
        head=answered.head,
        body=blob_id(answered.body),
        body_size=len(answered.body),
        chunks=(Chunk(250_000, len(answered.body)),),
        ms=250.0,
        first_ms=250.0,
    )
    return Step(request=request, response=response)


def honest(run: Run) -> Run:
    """The same with all that a recorder writes beside the bodies."""

    def bodies(step: Step) -> tuple[bytes, bytes]:
        return step.bodies(run.blobs.__getitem__)

    steps: list[Step] = []
    for step in run.recording.steps:
        talk = read_step(step, bodies)
        request = HttpRequest(head=step.request.head, body=bodies(step)[0])
        call = understand(request, ignore=run.recording.session.start.ignore)
        is_call = call.provider.kind is StepKind.LLM_CALL
        half = replace(
            step.request,
            kind=call.provider.kind,
            provider=call.provider.name,
            match_key=call.key,
            model=talk.asked.model,
            sketch=str(sketch_of(talk.asked, call.provider)) if is_call else None,
        )
        response = step.response
        if response is not None and talk.answered is not None:
            reading = replace(short(talk.asked, talk.answered), said=said_of(talk.answered))
            response = replace(response, reading=reading)
        steps.append(Step(request=half, response=response))
    made = replace(run.recording, steps=tuple(steps))
    places = {one.step.index: one.place for one in outline_of(made, bodies).steps}
    steps = [
        replace(step, request=replace(step.request, thread=place.thread if (place := places[step.index]) else None))
        for step in steps
    ]
    return Run(replace(made, steps=tuple(steps)), run.blobs)


# ── forgeries ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Forged:
    """A file that lies, and the one that says the same and does not."""

    what: str
    file: bytes
    twin: Run


def forged(dice: Dice) -> Forged:
    """One to three changes; what was derived from the bodies stays as it was, or becomes something else."""
    run = a_run()
    what: list[str] = []
    for _ in range(dice.choice((1, 1, 2, 3))):
        change = dice.choice(CHANGES)
        run = change(dice, run)
        what.append(change.__name__)
    file = run.cassette()
    if dice.random() < 0.3:
        rewritten = dice.choice((_other_digest, _other_size))
        file = rewritten(dice, file)
        what.append(rewritten.__name__)
    return Forged(" ".join(what), file, honest(run))


def _any_step(dice: Dice, run: Run) -> int:
    return dice.randrange(len(run.recording.steps))


def _other_request(dice: Dice, run: Run) -> Run:
    index = _any_step(dice, run)
    return run.with_step(index, asked=_reworded(dice, run.bodies(index)[0]))


def _other_answer(dice: Dice, run: Run) -> Run:
    index = _any_step(dice, run)
    return run.with_step(index, answered=_reworded(dice, run.bodies(index)[1]))


def _reworded(dice: Dice, body: bytes) -> bytes:
    """Another number, or another word in a text."""
    found = list(re.finditer(rb"28|8821|[a-z]{4,}(?= [a-z])|late\.", body))
    if not found:
        return body + b" "
    place = dice.choice(found)
    return body[: place.start()] + dice.choice(_WORDS).encode() + body[place.end() :]


def _other_order(dice: Dice, run: Run) -> Run:
    """Two steps change their bodies, and nothing else."""
    one, two = dice.sample(range(len(run.recording.steps)), 2)
    (a, b), (c, d) = run.bodies(one), run.bodies(two)
    if dice.random() < 0.5:
        return run.with_step(one, answered=d).with_step(two, answered=b)
    return run.with_step(one, asked=c, answered=d).with_step(two, asked=a, answered=b)


def _digest(dice: Dice, known: str | None, others: Sequence[str | None]) -> str | None:
    """Somebody else's, one by another rule, one that nobody has, or none."""
    rule, _, rest = (known or "rs1:-:-:-:-:-:-").partition(":")
    made = "".join(dice.choice("0123456789abcdef") if letter.isalnum() else letter for letter in rest)
    return dice.choice((*others, f"{rule[:2]}9:{rest}", f"{rule}:{made}", "nonsense", None))


def _other_key(dice: Dice, run: Run) -> Run:
    index = _any_step(dice, run)
    request = run.recording.steps[index].request
    others = [step.request.match_key for step in run.recording.steps]
    key = MatchKey(_digest(dice, request.match_key, others) or "rw1:" + "0" * 32)
    return run.with_step(index, request=replace(request, match_key=key))


def _other_sketch(dice: Dice, run: Run) -> Run:
    index = _any_step(dice, run)
    request = run.recording.steps[index].request
    others = [step.request.sketch for step in run.recording.steps]
    return run.with_step(index, request=replace(request, sketch=_digest(dice, request.sketch, others)))


def _other_words(dice: Dice, run: Run) -> Run:
    """What the request is said to be."""
    index = _any_step(dice, run)
    request = run.recording.steps[index].request
    changes: dict[str, Any] = {
        "kind": dice.choice(list(StepKind)),
        "provider": dice.choice(("openai-chat", "anthropic", "http", "mcp")),
        "model": dice.choice(("gpt-4o-mini", "\x1b]0;owned\x07", None)),
        "thread": dice.choice((1, 2, 9, None)),
    }
    names = dice.sample(sorted(changes), dice.randint(1, len(changes)))
    return run.with_step(index, request=replace(request, **{name: changes[name] for name in names}))


def _other_reading(dice: Dice, run: Run) -> Run:
    """What the answer is said to say, and to have cost."""
    index = _any_step(dice, run)
    response = run.recording.steps[index].response
    assert response is not None
    said = [step.response.reading.said for step in run.recording.steps if step.response is not None]
    reading = Reading(
        model=dice.choice(("gpt-4o-mini", "\x1b[2J", None)),
        text=dice.choice(_WORDS),
        usage=dice.choice((Usage(input=9, output=10**9), Usage(), response.reading.usage)),
        error=dice.choice(("it failed", None)),
        said=_digest(dice, response.reading.said, said),
    )
    return run.with_step(index, response=replace(response, reading=reading))


def _other_time(dice: Dice, run: Run) -> Run:
    index = _any_step(dice, run)
    request = run.recording.steps[index].request
    ts = dice.choice((0.0, -5.0, 1e11, run.recording.steps[0].request.ts, request.ts + dice.uniform(-9, 9)))
    return run.with_step(index, request=replace(request, ts=ts))


def _other_id(dice: Dice, run: Run) -> Run:
    session = run.recording.session
    changes: dict[str, Any] = {
        "id": SessionId(f"{dice.getrandbits(32):08x}"),
        "replay_of": SessionId(f"{dice.getrandbits(32):08x}"),
        "name": dice.choice(("\x1b]0;owned\x07", "last", "../../etc/passwd", None)),
    }
    name = dice.choice(sorted(changes))
    start = replace(session.start, **{name: changes[name]})
    return Run(replace(run.recording, session=replace(session, start=start)), run.blobs)


def _other_status(dice: Dice, run: Run) -> Run:
    index = _any_step(dice, run)
    response = run.recording.steps[index].response
    assert response is not None and response.head is not None
    status = dice.choice((0, 99, 100, 101, 103, 204, 304, 500, 999))
    return run.with_step(index, response=replace(response, head=replace(response.head, status=status)))


CHANGES: tuple[Callable[[Dice, Run], Run], ...] = (
    *(_other_request, _other_answer) * 2,
    *(_other_order, _other_key, _other_sketch, _other_words, _other_reading),
    *(_other_time, _other_id, _other_status),
)


def _other_digest(dice: Dice, file: bytes) -> bytes:
    """The SHA-256 of a body becomes another one's."""
    found = list(re.finditer(rb'(?<="sha256": ")[0-9a-f]{64}', file))[1:]
    place = dice.choice(found)
    return resealed(file[: place.start()] + b"%064x" % dice.getrandbits(256) + file[place.end() :])


def _other_size(dice: Dice, file: bytes) -> bytes:
    """The size of a body, or of all of them."""
    place = dice.choice(list(re.finditer(rb'(?<="size": )\d+', file)))
    size = max(int(place[0]) + dice.choice((-3, -1, 1, 5000)), 1)
    return resealed(file[: place.start()] + b"%d" % size + file[place.end() :])
