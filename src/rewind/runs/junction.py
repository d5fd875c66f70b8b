"""One request, start to end. Read this file first.

    request ─► gateway ─► understand ─► policy.decide ─┬─ Serve    the tape answers
               (sockets)  (Call)                       ├─ Forward  upstream answers ─► redaction ─► store
                                                       ├─ Put      an edit's answer, made up
                                                       ├─ Refuse   the reason, in the provider's own error shape
                                                       └─ StopRun  the same, to everything from now on

Requests and answers are redacted here before they reach the store; standard streams in ``runs/harness.py``, imports
in ``reading/import_.py``. The gateway's thread keeps what is short itself, and appends what is arriving to the step's
part file (one write); it waits for the writer thread only at the end of an answer to a long request.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from typing import Any

from rewind.conversation.threads import Threads
from rewind.dataclass import dataclass
from rewind.errors import DamagedStore, RewindError
from rewind.gateway.exchange import Decided, Exchange, Pass, Play, Reply, Route, Verdict
from rewind.match.call import Call, understand
from rewind.model.clock import Clock
from rewind.model.http import Chunk, Headers, HttpRequest, HttpResponse, RequestHead, ResponseHead
from rewind.model.ids import blob_id
from rewind.model.step import Ending, Step, StepKind, StepResponse
from rewind.playback.decision import Change, Decision, Forward, Policy, Put, Refuse, Serve, StopRun
from rewind.playback.policies import RecordAll
from rewind.playback.tape import RecordedUploads, empty_answer
from rewind.playback.tools import OWN_SCHEMES
from rewind.providers.api import Api
from rewind.providers.catalogue import FALLBACK, identify, looks_like_llm
from rewind.providers.hosts import HostRules
from rewind.providers.telemetry import UploadRow, upload_name, upload_row
from rewind.redaction.redactor import Redactor
from rewind.runs.held_requests import HeldRequests
from rewind.runs.pass_through import FaultGuard, PassThrough, RefusedExchange, ThankedUpload, UnreachableHost, refusal
from rewind.runs.step_writer import AnswerRecorder, StepWriter, as_it_goes_out
from rewind.runs.tally import MissNote, Tally
from rewind.runs.writer_thread import WriterThread

REMEMBERED_CALLS = 2000
"""Calls that a new one may go on from, while recording; views look at all."""
PUT_IN = 0
"""The ``tape`` of an answer that an edit put in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Junction:
    """Decides for hosts and requests, and sees to it that what happened is kept."""

    policy: Policy = field(default_factory=RecordAll)
    rules: HostRules
    redactor: Redactor
    clock: Clock
    online: bool
    """False: whatever the policy, nothing leaves this machine."""
    writer_thread: WriterThread | None = None
    """``None`` when nothing is recorded."""
    answer_of: Callable[[Step], HttpResponse | None] | None = None
    """The recorded answer of a step, with its bytes."""
    recall: Callable[[Step], Call] | None = None
    """The recorded call of a step."""
    watch: Callable[[Step], None] | None = None
    """Told of each step that asked the world, once it is written; on the writer thread."""
    watch_first: bool = False
    """Whether an answer's end is shown to the agent only after ``watch`` has been told of it."""
    held_requests: HeldRequests | None = None
    """Has requests wait until somebody has looked at them."""
    live_hosts: HostRules = HostRules(())
    """Hosts that are always asked themselves, on tape or not."""
    uploads: RecordedUploads | None = None
    """What answers telemetry; ``None`` where it goes to its hosts."""
    upload_hosts: HostRules = HostRules(())
    """Hosts that are spoken for so that their uploads are answered, recorded or not; all else there is refused."""
    refused: Callable[[str], None] | None = None
    """Told where a request was to go that was refused there."""
    pace: float = 0.0
    ignore: tuple[str, ...] = ()
    tally: Tally = field(default_factory=Tally)
    threads: Threads = field(default_factory=lambda: Threads(with_starters=False, most=REMEMBERED_CALLS))
    """Used on the writer thread only."""

    @property
    def forwards_everything(self) -> bool:
        return isinstance(self.policy, RecordAll)

    def route(self, host: str, port: int) -> Route:
        if self.rules.records(host):
            return Route.INTERCEPT
        if self.online or self.live_hosts.records(host):
            return Route.TUNNEL
        if self.upload_hosts.records(host):
            return Route.INTERCEPT
        self.tally.remark(f"{host}:{port}", "was not recorded, and a replay stays offline: refused")
        return Route.REFUSE

    def begin(self, head: RequestHead) -> Exchange:
        try:
            return self._begin(head)
        except Exception as error:
            if not self.online:
                raise
            self.remark("a bug in Rewind", f"a step was not recorded: {error!r}")
            return PassThrough()

    def _begin(self, head: RequestHead) -> Exchange:
        self.redactor.secrets.learn(head)
        if self.live_hosts.records(head.host):
            return PassThrough()
        if head.scheme not in ("http", "https") or self.rules.records(head.host) or looks_like_llm(head):
            exchange = RecordedExchange(self, head)
            return FaultGuard(exchange, self.remark, otherwise=self._otherwise) if self.online else exchange
        if self.online:
            return PassThrough()
        row = upload_row(head.method, head.host, head.path)
        if row is not None and self.uploads is not None:
            self.tally.telemetry += 1
            return ThankedUpload(head, row)
        if self.refused is not None:
            self.refused(head.origin)
        self.tally.remark(head.origin, "was not recorded, and a replay stays offline: refused")
        if head.scheme == "https":
            return UnreachableHost()
        return RefusedExchange(f"{head.origin} is not on tape, and a replay stays offline")

    @property
    def _otherwise(self) -> Verdict:
        """For a request that a bug of ours hits: it is forwarded, unless a tape might have answered it."""
        if self.forwards_everything:
            return Pass()
        reason = "Rewind: a bug in Rewind: nobody was asked"
        return refusal({"error": {"message": reason}}, reason, word="Stopped")

    def remark(self, subject: str, text: str) -> None:
        self.tally.remark(subject, text)


class RecordedExchange(PassThrough):
    """An exchange that is recorded, or played, or both."""

    def __init__(self, junction: Junction, head: RequestHead) -> None:
        self._junction = junction
        self._head = head
        self._step_writer: StepWriter | None = None
        if junction.writer_thread is not None:
            ts = junction.clock.now()
            self._step_writer = StepWriter(
                junction.writer_thread, ts, junction.threads, junction.ignore, junction.remark
            )
        self._began_at = junction.clock.ticks()
        self._early = junction.policy.early(head) is not None
        self._arrived = False
        self._answer: AnswerRecorder | None = None
        self._changed: HttpRequest | None = None
        self._served: int | None = None
        """The step that answers."""

    def early(self) -> bool:
        return self._early

    def arrived(self, body: bytes | None) -> Verdict:
        self._arrived = True
        self._began_at = self._junction.clock.ticks()
        note = "the request body was too large to keep" if body is None else None
        request = self._whole(body)
        if self._early:
            # The answer does not depend on what the request says: understanding it can wait for the writer thread.
            self._count(identify(self._head))
            self._keep(request, note)
            return Pass()
        # As it came: a request that equals a recorded one to the byte has nothing in it that would be redacted.
        served = self._junction.policy.at_a_glance(request)
        if served is not None and self._step_writer is None and self._junction.held_requests is None:
            with suppress(DamagedStore):  # refused below, in the words of the request's API
                return self._serve(served)
        if served is None and self._junction.uploads is not None:
            row = upload_row(self._head.method, self._head.host, self._head.path)
            if row is not None and identify(self._head) is FALLBACK:
                return self._take_upload(self._junction.uploads, row, request, note)
        call = self._understood(request)
        self._count(call.provider)
        decision, kept = self._on_its_way(served or self._junction.policy.decide(call), call, request)
        asked_key = call.key if kept.key != call.key else None
        if self._step_writer is not None:
            head, body = kept.request.head, kept.request.body
            self._step_writer.keep(head, len(body), lambda: body, lambda _same: kept, asked_key=asked_key, note=note)
        if self._junction.held_requests is None:
            return self._carry(decision, kept, request)
        return self._junction.held_requests.take(call, decision, lambda: self._carry(decision, kept, request))

    def answer_began(self, head: ResponseHead) -> None:
        self._answer = AnswerRecorder(head, self._junction.redactor)

    def answer_piece(self, data: bytes, *, ends_chunk: bool) -> None:
        assert self._answer is not None, "a body follows a head"
        self._answer.piece(self._since_request(), data, ends_chunk=ends_chunk)

    def about_to_show(self) -> None:
        if self._answer is not None and self._step_writer is not None:
            self._step_writer.about_to_show(self._answer, self._since_request())

    async def answer_ended(self, ending: Ending, *, trailers: Headers = (), reason: str | None = None) -> None:
        at = self._since_request()
        if not self._arrived:
            self._keep(self._whole(b""), "the exchange ended before the request was complete; its body is not kept")
        if ending is Ending.NO_ANSWER or (ending is Ending.UPSTREAM_CUT and self._answer is None):
            self._junction.remark(self._head.host, f"did not answer: {self._junction.redactor.text(reason or '')}")
        if self._step_writer is not None:
            redactor, answer = self._junction.redactor, self._answer
            response = StepResponse(
                ending=ending, head=None, ms=at / 1000, reason=None if reason is None else redactor.text(reason)
            )
            if answer is not None:
                response = answer.finish(at, response, redactor.response_headers(trailers))
            await self._step_writer.answered(answer, response, self._read, at_once=self._junction.watch_first)

    def frame_agrees(self, recorded: str, sent: str) -> bool:
        then, now = _frame_meaning(recorded), _frame_meaning(self._junction.redactor.text(sent))
        if then == now:
            return True
        names = self._junction.policy.frame_names(then, now)
        if names and self._served is not None:
            renamed = self._junction.tally.renamed
            renamed[self._served] = tuple(dict.fromkeys((*renamed.get(self._served, ()), *names)))
        return names is not None

    def missed(self, reason: str) -> None:
        self._junction.tally.misses.append(MissNote(reason=reason, detail=f"{self._head.url}: {reason}"))

    # ── telemetry ────────────────────────────────────────────────────────────────────────────────────────

    def _take_upload(self, uploads: RecordedUploads, row: UploadRow, request: HttpRequest, note: str | None) -> Play:
        """Nothing comes of it, so nobody is asked and nothing is missed, whatever it says."""
        junction = self._junction
        self._count(FALLBACK)
        self._keep(request, note)
        step = uploads.answer_to(junction.redactor.request_head(request.head), blob_id(request.body))
        if step is not None and junction.answer_of is not None:
            with suppress(DamagedStore):  # then an empty answer does as well
                response = junction.answer_of(step)
                self._write(lambda step_writer: step_writer.copy(step, response))
                return Play(response=response, ending=Ending.COMPLETE)
        response = empty_answer(row, self._head)
        self._keep_put(response, lambda _response: None)
        return Play(response=response, ending=Ending.COMPLETE)

    # ── deciding ─────────────────────────────────────────────────────────────────────────────────────────

    def _whole(self, body: bytes | None) -> HttpRequest:
        """As it came: with its keys, and for nobody's eyes but the upstream's."""
        return HttpRequest(head=self._head, body=body or b"")

    def _understood(self, request: HttpRequest) -> Call:
        """The request as it may be kept, understood."""
        redactor = self._junction.redactor
        return self._call(
            HttpRequest(
                head=redactor.request_head(request.head), body=redactor.body(request.body, request.head.headers)
            )
        )

    def _call(self, redacted: HttpRequest) -> Call:
        index = 0 if self._step_writer is None else self._step_writer.index
        return understand(redacted, ignore=self._junction.ignore, index=index)

    def _keep(self, request: HttpRequest, note: str | None) -> None:
        """Have a request kept that nobody needs to understand now."""
        if self._step_writer is not None:
            redactor, head, body = self._junction.redactor, request.head, request.body
            self._step_writer.keep(
                redactor.request_head(head), len(body), lambda: redactor.body(body, head.headers), self._call, note=note
            )

    def _on_its_way(self, decision: Decision, call: Call, request: HttpRequest) -> tuple[Decision, Call]:
        """What was decided, and the call in the form in which it will be kept."""
        match decision:
            case Forward(change=change) if change is not None:
                return self._change(change, call, request)
            case Serve(step=step, seen=seen):
                if seen is not None:
                    seen(request)
                if self._step_writer is not None and step.request.asked_key and call.key != step.request.match_key:
                    # The answer is to what had gone out, so that is what is kept beside it.
                    assert self._junction.recall is not None, "a tape knows its calls"
                    return decision, self._junction.recall(step)
        return decision, call

    def _change(self, change: Change, call: Call, request: HttpRequest) -> tuple[Decision, Call]:
        try:
            changed = change(request)
        except RewindError as problem:
            return StopRun(reason=problem.message), call
        if changed is request:
            return Forward(), call
        self._changed = changed
        return Forward(), self._understood(as_it_goes_out(changed, call.request.head))

    def _carry(self, decision: Decision, call: Call, request: HttpRequest) -> Decided:
        junction = self._junction
        match decision:
            case Serve(step=step):
                try:
                    return self._serve(decision)
                except DamagedStore as problem:
                    # Asked live it would be another answer, and cost money: nobody wanted that.
                    reason = f"Rewind: step {step.index} was recorded, but cannot be read: {problem.message}"
                    return self._carry(Refuse(reason=reason), call, request)
            case Forward():
                junction.tally.live += self._head.scheme not in OWN_SCHEMES
                junction.tally.tools_run += call.provider.kind is StepKind.TOOL_CALL
                return Pass(self._changed)
            case Put(answer=answer):
                try:
                    return self._put(answer(request))
                except RewindError as problem:
                    return self._carry(StopRun(reason=problem.message), call, request)
            case Refuse(reason=reason, miss=miss):
                junction.tally.misses.append(MissNote(reason=reason, miss=miss))
                return self._refuse(refusal(call.provider.reader.refusal(reason), reason))
            case StopRun(reason=reason):
                junction.tally.stopped = junction.tally.stopped or reason
                message = f"Rewind: {reason}"
                return self._refuse(refusal(call.provider.reader.refusal(message), message, word="Stopped"))

    def _serve(self, decision: Serve) -> Play:
        step, junction = decision.step, self._junction
        assert junction.answer_of is not None and step.response is not None, "a tape has answers"
        response = junction.answer_of(step)
        if decision.in_our_names is not None and response is not None:
            response = decision.in_our_names(response)
            junction.tally.renamed[step.index] = decision.renamed
        junction.tally.served.append(step)
        self._served = step.index
        junction.tally.drifted += decision.drifted
        if self._step_writer is not None:
            self._step_writer.later(lambda step_writer: step_writer.copy(step, response))
        return Play(response=response, ending=step.response.ending, pace=junction.pace)

    def _put(self, response: HttpResponse) -> Play:
        self._keep_put(response, self._tell)
        return Play(response=response, ending=Ending.COMPLETE, pace=self._junction.pace)

    def _refuse(self, refusal: Reply) -> Reply:
        """A refusal is kept as an answer, so that the session tells what the agent was told, and replays."""
        headers = (*refusal.headers, ("Content-Length", str(len(refusal.body))))
        head = ResponseHead(status=refusal.status, reason=refusal.reason, headers=headers)
        self._keep_put(HttpResponse(head=head, body=refusal.body, chunks=()), lambda _response: None)
        return refusal

    def _keep_put(self, response: HttpResponse, on_written: Callable[[StepResponse], None]) -> None:
        """Record an answer that no provider gave, as one that came at once."""
        answer = AnswerRecorder(response.head, self._junction.redactor)
        position = 0
        for chunk in response.chunks or (Chunk(0, len(response.body)),):
            answer.piece(0, response.body[position : position + chunk.size], ends_chunk=True)
            position += chunk.size
        bare = StepResponse(ending=Ending.COMPLETE, head=None, ms=0.0, tape=PUT_IN)
        kept = answer.finish(0, bare, self._junction.redactor.response_headers(response.trailers))
        self._write(lambda step_writer: step_writer.response(answer, kept, on_written))

    def _read(self, response: StepResponse) -> None:
        """A provider's answer is written, and understood."""
        self._junction.tally.read(response.reading)
        self._tell(response)

    def _tell(self, response: StepResponse) -> None:
        watch, step_writer = self._junction.watch, self._step_writer
        if watch is not None and step_writer is not None and step_writer.written is not None:
            watch(Step(request=step_writer.written, response=response))

    def _count(self, provider: Api) -> None:
        if provider.kind is StepKind.LLM_CALL:
            self._junction.tally.llm_calls += 1
        elif upload_name(provider.name, self._head) is not None:
            self._junction.tally.telemetry += 1
        else:
            self._junction.tally.other_calls += 1

    def _since_request(self) -> int:
        return self._junction.clock.ticks() - self._began_at

    def _write(self, work: Callable[[StepWriter], Any]) -> None:
        """Have it done in the writer thread's own time, where there is something to write with."""
        if self._step_writer is not None:
            self._step_writer.later(work)


def _frame_meaning(text: str) -> Any:
    """A WebSocket message less the ids that clients make up for each one: OpenAI's own, and Codex's of its session."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, dict):
        for name in ("event_id", "client_metadata"):
            value.pop(name, None)
    return value
