"""One request, start to end. Read this file first.

    request ─► gateway ─► understand ─► policy.decide ─┬─ Serve    the tape answers
               (sockets)  (Call)                       ├─ Forward  upstream answers ─► capture ─► store
                                                       └─ Refuse   the reason, in the provider's own error shape

Every byte on its way to the store passes the redactor here, and nowhere else. The gateway's thread never waits for
the disk except at the end of an answer: writing happens on the pen's thread, in order.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from rewind.capture.redact import Redactor
from rewind.conversation.threads import Place, Threads
from rewind.gateway.exchange import Deny, Exchange, Pass, Play, Route, Verdict
from rewind.match.call import Call, understand
from rewind.model.clock import Clock
from rewind.model.http import Headers, HttpRequest, HttpResponse, RequestHead, ResponseHead
from rewind.model.message import Answered, Asked
from rewind.model.step import Ending, Reading, Step, StepKind, StepRequest, StepResponse
from rewind.playback.decision import Decision, Forward, Policy, Refuse, Serve
from rewind.playback.policies import RecordAll
from rewind.providers.catalogue import identify, looks_like_llm
from rewind.providers.hosts import HostRules
from rewind.providers.reading import short
from rewind.runs.answer import Answer
from rewind.runs.pen import Pen
from rewind.runs.shield import Shield
from rewind.runs.tally import MissNote, Tally

T = TypeVar("T")

MISS_STATUS = 424
"""SDKs retry 408, 409, 429 and 5xx; this one they do not, and no provider uses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Junction:
    """Decides for hosts and requests, and sees to it that what happened is kept."""

    policy: Policy
    rules: HostRules
    redactor: Redactor
    clock: Clock
    online: bool
    """False: whatever the policy, nothing leaves this machine."""
    pen: Pen | None = None
    """``None`` when nothing is recorded."""
    answer_of: Callable[[Step], HttpResponse | None] | None = None
    """The recorded answer of a step, with its bytes."""
    live_hosts: HostRules = HostRules(())
    """Hosts that are always asked themselves, on tape or not."""
    pace: float = 0.0
    ignore: tuple[str, ...] = ()
    tally: Tally = field(default_factory=Tally)
    threads: Threads = field(default_factory=lambda: Threads(with_starters=False))
    """Used on the pen's thread only."""

    @property
    def forwards_everything(self) -> bool:
        return isinstance(self.policy, RecordAll)

    def route(self, host: str, port: int) -> Route:
        if self.rules.records(host):
            return Route.INTERCEPT
        if self.online or self.live_hosts.records(host):
            return Route.TUNNEL
        self.tally.remark(f"{host}:{port}", "was not recorded, and a replay stays offline: refused")
        return Route.REFUSE

    def begin(self, head: RequestHead) -> Exchange:
        try:
            return self._begin(head)
        except Exception as error:
            if not self.online:
                raise
            self.remark("a bug in Rewind", f"a step was not kept: {error!r}")
            return Passage()

    def _begin(self, head: RequestHead) -> Exchange:
        self.redactor.secrets.learn(head)
        if self.live_hosts.records(head.host):
            return Passage()
        if head.scheme == "https" or self.rules.records(head.host) or looks_like_llm(head):
            crossing = _Crossing(self, head)
            return Shield(crossing, self.remark) if self.online else crossing
        if self.online:
            return Passage()
        self.tally.remark(head.origin, "was not recorded, and a replay stays offline: refused")
        return _Refused(f"{head.origin} is not on tape, and a replay stays offline")

    def remark(self, subject: str, text: str) -> None:
        self.tally.remark(subject, text)


class Passage:
    """An exchange that is none of our business: it passes untouched and leaves no trace."""

    def early(self) -> bool:
        return True

    def arrived(self, body: bytes | None) -> Verdict:
        return Pass()

    def answer_began(self, head: ResponseHead) -> None: ...

    def answer_piece(self, data: bytes, *, ends_chunk: bool) -> None: ...

    def about_to_show(self) -> None: ...

    async def answer_ended(
        self, ending: Ending, *, trailers: Headers = (), reason: str | None = None
    ) -> None: ...

    def frame_agrees(self, recorded: str, sent: str) -> bool:
        return recorded == sent

    def missed(self, reason: str) -> None: ...


class _Refused(Passage):
    """An exchange that replay will not let out."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def early(self) -> bool:
        return False

    def arrived(self, body: bytes | None) -> Verdict:
        return _denial({"error": {"message": f"rewind: {self._reason}"}}, self._reason)


class _Crossing(Passage):
    """An exchange that is recorded, or played, or both."""

    def __init__(self, junction: Junction, head: RequestHead) -> None:
        self._junction = junction
        self._head = head
        self._ts = junction.clock.now()
        self._began_at = junction.clock.ticks()
        self._pen = junction.pen
        self._index = junction.pen.next_index() if junction.pen is not None else 0
        self._early = junction.policy.early(head) is not None
        self._arrived = False
        self._call: Call | None = None
        self._request: HttpRequest | None = None
        self._answer: Answer | None = None
        self._asked = Asked()

    def early(self) -> bool:
        return self._early

    def arrived(self, body: bytes | None) -> Verdict:
        self._arrived = True
        self._began_at = self._junction.clock.ticks()
        note = "the request body was too large to keep" if body is None else None
        if self._early:
            # The answer does not depend on what the request says: understanding it can wait for the pen.
            self._count(identify(self._head).kind)
            self._write(lambda: self._write_request(self._understand(self._redacted(body)), note))
            return Pass()
        # As it came: a request that equals a recorded one to the byte has nothing in it that would be redacted.
        served = self._junction.policy.at_a_glance(HttpRequest(head=self._head, body=body or b""))
        if served is not None and self._pen is None:
            return self._serve(served)
        call = self._understand(self._redacted(body))
        self._count(call.provider.kind)
        self._write(lambda: self._write_request(call, note))
        return self._carry(served or self._junction.policy.decide(call), call)

    def answer_began(self, head: ResponseHead) -> None:
        self._answer = Answer(head, self._junction.redactor)

    def answer_piece(self, data: bytes, *, ends_chunk: bool) -> None:
        assert self._answer is not None, "a body follows a head"
        self._answer.piece(self._since_request(), data, ends_chunk=ends_chunk)

    def about_to_show(self) -> None:
        if self._answer is not None and self._pen is not None:
            self._answer.secure(self._pen, self._index, self._since_request())

    async def answer_ended(
        self, ending: Ending, *, trailers: Headers = (), reason: str | None = None
    ) -> None:
        at = self._since_request()
        if not self._arrived:
            note = "the exchange ended before the request was complete; its body is not kept"
            self._write(lambda: self._write_request(self._understand(self._redacted(b"")), note))
        if ending is Ending.NO_ANSWER:
            self._junction.remark(
                self._head.host, f"gave no answer: {self._junction.redactor.text(reason or '')}"
            )
        if self._pen is not None:
            redactor, answer = self._junction.redactor, self._answer
            response = StepResponse(
                ending=ending,
                head=None,
                ms=at / 1000,
                reason=None if reason is None else redactor.text(reason),
            )
            if answer is not None:
                response = answer.finish(at, response, redactor.response_headers(trailers))
            reading = await _written(self._pen, lambda: self._write_response(answer, response))
            if reading is not None:
                self._junction.tally.read(reading)

    def frame_agrees(self, recorded: str, sent: str) -> bool:
        return bool(_frame_meaning(recorded) == _frame_meaning(self._junction.redactor.text(sent)))

    def missed(self, reason: str) -> None:
        self._junction.tally.misses.append(MissNote(reason=reason, report=f"{self._head.url}: {reason}"))

    # ── deciding ─────────────────────────────────────────────────────────────────────────────────────────

    def _redacted(self, body: bytes | None) -> HttpRequest:
        redactor = self._junction.redactor
        return HttpRequest(
            head=redactor.request_head(self._head), body=redactor.body(body or b"", self._head.headers)
        )

    def _understand(self, request: HttpRequest) -> Call:
        self._request = request
        self._call = understand(request, ignore=self._junction.ignore, index=self._index)
        return self._call

    def _carry(self, decision: Decision, call: Call) -> Verdict:
        match decision:
            case Serve():
                return self._serve(decision)
            case Forward():
                self._junction.tally.live += 1
                return Pass()
            case Refuse(reason=reason, report=report):
                self._junction.tally.misses.append(MissNote(reason=reason, report=report))
                return _denial(call.provider.refusal(reason), reason)

    def _serve(self, decision: Serve) -> Play:
        step, junction = decision.step, self._junction
        assert junction.answer_of is not None and step.response is not None, "a tape has answers"
        junction.tally.served.append(step)
        junction.tally.drifted += decision.drifted
        response = junction.answer_of(step)
        self._write(lambda: self._copy(step, response))
        return Play(response=response, ending=step.response.ending, pace=junction.pace)

    def _count(self, kind: StepKind) -> None:
        if kind is StepKind.LLM_CALL:
            self._junction.tally.llm_calls += 1
        else:
            self._junction.tally.other_calls += 1

    def _since_request(self) -> int:
        return self._junction.clock.ticks() - self._began_at

    # ── writing: on the pen's thread ─────────────────────────────────────────────────────────────────────

    def _write(self, work: Callable[[], Any]) -> None:
        if self._pen is not None:
            self._pen.later(work)

    def _write_request(self, call: Call, note: str | None) -> None:
        assert self._pen is not None and self._request is not None, "there is something to write"
        nothing: tuple[Asked, Place | None] = (Asked(), None)
        asked, place = self._understood(lambda: self._place(call), nothing)
        self._asked = asked
        request = StepRequest(
            index=self._index,
            ts=self._ts,
            kind=call.provider.kind,
            provider=call.provider.name,
            match_key=call.key,
            head=self._request.head,
            model=asked.model and asked.model[:200],
            thread=None if place is None else place.thread,
            note=note,
        )
        self._pen.writer.request(request, self._request.body)

    def _write_response(self, answer: Answer | None, response: StepResponse) -> Reading:
        assert self._pen is not None, "there is something to write"
        body = b"" if answer is None else answer.body
        response = replace(response, reading=self._read(answer, response))
        self._pen.writer.response(self._index, response, body)
        return response.reading

    def _read(self, answer: Answer | None, response: StepResponse) -> Reading:
        if answer is None or response.head is None or self._request is None or self._call is None:
            return Reading()
        if answer.copy is None:
            return Reading(note="a long answer; read when it is looked at")
        whole = HttpResponse(head=response.head, body=b"".join(answer.copy), chunks=())
        answered = self._understood(lambda: self._take_answer(whole), Answered())
        return short(self._asked, answered)

    def _copy(self, step: Step, response: HttpResponse | None) -> None:
        assert self._pen is not None and step.response is not None, "there is something to copy"
        body = response.body if response is not None else b""
        self._pen.writer.response(self._index, replace(step.response, tape=step.index), body)
        if response is not None:
            self._understood(lambda: self._take_answer(response), Answered())

    # ── understanding: for lists only; whatever it comes to, the bytes are kept ──────────────────────────────

    def _place(self, call: Call) -> tuple[Asked, Place | None]:
        asked = call.provider.asked(call.request)
        if call.provider.kind is not StepKind.LLM_CALL or asked.embeds:
            return asked, None
        return asked, self._junction.threads.call(self._index, call.key, asked)

    def _take_answer(self, response: HttpResponse) -> Answered:
        assert self._call is not None, "an answer follows a request"
        answered = self._call.provider.answered(self._call.request, response)
        self._junction.threads.answer(self._index, answered)
        return answered

    def _understood(self, work: Callable[[], T], otherwise: T) -> T:
        try:
            return work()
        except Exception as error:  # noqa: BLE001  a codec's fault must not cost a step
            self._junction.remark("a bug in Rewind", f"a step is kept, but was not understood: {error!r}")
            return otherwise


async def _written(pen: Pen, work: Callable[[], T]) -> T | None:
    """Have this written, and wait until it is; ``None`` when that failed, which the pen keeps in mind."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T | None] = loop.create_future()

    def tell(result: T | None) -> None:
        # Once the gateway has ended nobody waits any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(done.set_result, result)

    pen.ask(work, tell)
    return await done


def _denial(payload: dict[str, Any], reason: str) -> Deny:
    """A refusal that SDKs do not retry, and that a person can recognise."""
    line = reason.encode("ascii", "replace").decode().replace("\r", " ").replace("\n", " ")
    return Deny(
        status=MISS_STATUS,
        reason="Rewind Miss",
        headers=(
            ("Content-Type", "application/json"),
            ("x-rewind-miss", line[:500]),
            ("x-should-retry", "false"),
        ),
        body=json.dumps(payload).encode(),
    )


def _frame_meaning(text: str) -> Any:
    """A WebSocket message less the id that clients make up for each one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, dict):
        value.pop("event_id", None)
    return value
