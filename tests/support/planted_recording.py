"""What a simulated agent leaves behind: its exchanges, as a recorder would have written them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from rewind.compare.run import ComparedRun
from rewind.conversation.outline import ReadStep, read_step
from rewind.conversation.sketch import said_of, sketch_of
from rewind.conversation.threads import Threads
from rewind.match.call import understand
from rewind.model.http import Chunk, HttpRequest, HttpResponse
from rewind.model.ids import MatchKey, SessionId, blob_id
from rewind.model.message import Answered, Asked
from rewind.model.session import Recording, Session, SessionEnd, SessionStart, Status
from rewind.model.step import Ending, Step, StepKind, StepRequest, StepResponse
from rewind.providers.catalogue import identify
from rewind.providers.summary import short
from support.planted_style import Style


class Call(NamedTuple):
    """A call by its place in the program: conversation and turn."""

    talk: str
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One attempt at a call."""

    call: Call
    began: float
    took: float
    request: HttpRequest
    response: HttpResponse
    ending: Ending = Ending.COMPLETE


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A run, and where in it the calls of the program are."""

    recording: Recording
    bodies: Mapping[int, tuple[bytes, bytes]]
    indexes: Mapping[Call, tuple[int, ...]]
    """The steps of each call; several where it was tried again, the last one being what it came to."""

    @property
    def run(self) -> ComparedRun:
        return ComparedRun(self.recording, lambda step: self.bodies[step.index])

    def talk(self, step: Step) -> ReadStep:
        return read_step(step, lambda one: self.bodies[one.index])

    @property
    def older_run(self) -> ComparedRun:
        """As recorded before steps had sketches."""
        steps = tuple(
            replace(
                step,
                request=replace(step.request, thread=None, sketch=None),
                response=step.response and replace(step.response, reading=replace(step.response.reading, said=None)),
            )
            for step in self.recording.steps
        )
        return ComparedRun(replace(self.recording, steps=steps), lambda step: self.bodies[step.index])


def played(exchanges: list[Exchange], style: Style, exit_code: int) -> Played:
    """The recording of these exchanges, which are given in the order in which they began."""
    started = style.started.timestamp()
    indexes: dict[Call, tuple[int, ...]] = {}
    for index, one in enumerate(exchanges, 1):
        indexes[one.call] = (*indexes.get(one.call, ()), index)
    start = SessionStart(
        id=SessionId(style.own("")[:8]),
        name=None,
        command=("python", "agent.py"),
        cwd="/somewhere",
        started=started,
        rewind_version="0.1.0",
    )
    ended = started + max(one.began + one.took for one in exchanges) + 0.1
    end = SessionEnd(ended=ended, exit_code=exit_code, stdin=None, stdout=None, stderr=None, redactions=0)
    session = Session(start=start, end=end, status=Status.ENDED, folder="")
    return Played(
        recording=Recording(session=session, steps=tuple(_steps(exchanges, started))),
        bodies={index: (one.request.body, one.response.body) for index, one in enumerate(exchanges, 1)},
        indexes=indexes,
    )


def _steps(exchanges: list[Exchange], started: float) -> Iterator[Step]:
    """The exchanges as a recorder writes them, with what it tells those who compare."""
    threads = Threads(with_starters=False)
    places: dict[int, int | None] = {}
    read: list[tuple[Asked, Answered]] = []
    for one in exchanges:
        provider = identify(one.request.head)
        read.append((provider.reader.asked(one.request), provider.reader.answered(one.request, one.response)))
    keys = [understand(one.request).key for one in exchanges]
    moments = [(one.began, True, at) for at, one in enumerate(exchanges)]
    moments += [(one.began + one.took, False, at) for at, one in enumerate(exchanges)]
    for _, is_call, at in sorted(moments):
        asked, answered = read[at]
        if _is_alone(exchanges[at], asked):
            places[at] = None
        elif is_call:
            places[at] = threads.call(at + 1, keys[at], asked).thread
        else:
            threads.answer(at + 1, answered)
    for at, one in enumerate(exchanges):
        asked, answered = read[at]
        yield Step(
            request=_request_half(at + 1, one, asked, keys[at], places[at], started),
            response=_response_half(one, asked, answered),
        )


def _is_alone(exchange: Exchange, asked: Asked) -> bool:
    """Whether it belongs to no conversation."""
    return identify(exchange.request.head).kind is not StepKind.LLM_CALL or asked.embeds


def _request_half(
    index: int, exchange: Exchange, asked: Asked, key: MatchKey, thread: int | None, started: float
) -> StepRequest:
    provider = identify(exchange.request.head)
    return StepRequest(
        index=index,
        ts=started + exchange.began,
        kind=provider.kind,
        provider=provider.name,
        match_key=key,
        head=exchange.request.head,
        body=blob_id(exchange.request.body),
        body_size=len(exchange.request.body),
        model=asked.model,
        thread=thread,
        sketch=str(sketch_of(asked, provider)) if provider.kind is StepKind.LLM_CALL else None,
    )


def _response_half(exchange: Exchange, asked: Asked, answered: Answered) -> StepResponse:
    size = len(exchange.response.body)
    return StepResponse(
        ending=exchange.ending,
        head=exchange.response.head,
        body=blob_id(exchange.response.body),
        body_size=size,
        chunks=(Chunk(1000, size // 2), Chunk(2000, size - size // 2)),
        ms=exchange.took * 1000,
        first_ms=exchange.took * 400,
        reading=replace(short(asked, answered), said=said_of(answered)),
        reason="connection reset" if exchange.ending is Ending.UPSTREAM_CUT else None,
    )
