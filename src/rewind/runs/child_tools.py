"""Tool calls and notes of a child process: its SDK brings them to the gateway, on a host that is reserved for them.

    POST http://tools.rewind.invalid/TOKEN/call/NAME         200 or 500: the recording's answer, the tool is not run
                                                             202: run it, and tell its answer under this number
                                                             424: it cannot be answered, and must not be run
    POST http://tools.rewind.invalid/TOKEN/end/NUMBER/STATUS its answer; status 0: it never answered, and why
    POST http://tools.rewind.invalid/TOKEN/note/METHOD       a note, or how the run failed
    POST http://tools.rewind.invalid/TOKEN/remark/SUBJECT    what a person should know at the end of the run

At the junction each becomes an exchange of its own, as a call of this process does (``inprocess/tool_calls.py``). The
token is the run's own: no other program on this machine can put an answer into a recording.
"""

import asyncio
import hmac
from collections.abc import Callable, Coroutine
from dataclasses import replace
from itertools import count
from typing import Any
from urllib.parse import unquote

from rewind.gateway.exchange import Decided, Exchange, Hold, Pass, Play, Reply, Route, Verdict
from rewind.model.http import Headers, RequestHead, ResponseHead
from rewind.model.step import Ending, Step
from rewind.model.tool_call import DELAY_HEADER, MS_HEADER, STEP_HEADER, TOOLS_HOST
from rewind.playback.tools import own_answer_head, own_request_head
from rewind.providers import notes, tools
from rewind.runs.junction import Junction
from rewind.runs.pass_through import PassThrough, refusal
from rewind.runs.tally import MissNote

_DONE = Reply(status=204, reason="No Content", headers=(), body=b"")
_UNKNOWN = Reply(status=404, reason="Not Found", headers=(), body=b"")


class ChildToolCalls:
    """A junction, and before it the host that is reserved for the agent's own code."""

    def __init__(self, junction: Junction, token: str) -> None:
        self._junction = junction
        self._token = token
        self._numbers = count(1)
        self._running: dict[str, Exchange] = {}
        """Calls whose tool was told to run, by their numbers."""

    @property
    def forwards_everything(self) -> bool:
        return self._junction.forwards_everything

    def route(self, host: str, port: int) -> Route:
        return self._junction.route(host, port)

    def remark(self, subject: str, text: str) -> None:
        self._junction.remark(subject, text)

    def begin(self, head: RequestHead) -> Exchange:
        return _OwnExchange(self, head) if head.host == TOOLS_HOST else self._junction.begin(head)

    def arrived(self, head: RequestHead, body: bytes) -> Verdict:
        """The verdict on a request for the reserved host."""
        _, token, kind, *rest = [*head.target.split("/"), "", ""][:6]
        if head.method != "POST" or not hmac.compare_digest(token.encode(), self._token.encode()):
            return _UNKNOWN
        first, second = map(unquote, rest[:2])
        match kind:
            case "call":
                return self._call(rest[0], body)
            case "end" if (exchange := self._running.pop(first, None)) is not None:
                return _kept(_answered(exchange, int(second) if second in ("200", "500") else 0, body))
            case "note" if first in (notes.NOTED, notes.FAILED):
                return self._note(first, body)
            case "remark":
                self._junction.remark(self._junction.redactor.text(first), self._text(body))
                return _DONE
        return _UNKNOWN

    def _text(self, body: bytes) -> str:
        return self._junction.redactor.text(body.decode(errors="replace"))

    def _call(self, name: str, body: bytes) -> Verdict:
        served = self._junction.tally.served
        before = len(served)
        exchange = self._junction.begin(own_request_head(tools.SCHEME, "CALL", name))
        verdict = exchange.arrived(body)

        def told(decided: Decided) -> Decided:
            return self._told(exchange, decided, served[-1] if len(served) > before else None)

        return _later(verdict.decided, told) if isinstance(verdict, Hold) else told(verdict)

    def _told(self, exchange: Exchange, decided: Decided, step: Step | None) -> Decided:
        """What the child is told of it; the step is the recorded one that answers, if one does."""
        match decided:
            case Play(response=None):
                which = "" if step is None else f" of step {step.index}"
                reason = f"Rewind: the tool call{which} never returned when it was recorded."
                self._junction.tally.misses.append(MissNote(reason=reason))
                return refusal({"error": reason}, reason)
            case Play(response=response) if response is not None:
                ms = 0.0 if step is None or step.response is None else step.response.ms
                index = "0" if step is None else str(step.index)
                more = (
                    ("Content-Length", str(response.size)),
                    (STEP_HEADER, index),
                    (MS_HEADER, str(ms)),
                    (DELAY_HEADER, str(ms / 1000 * decided.pace)),
                )
                return replace(decided, pace=0.0, response=replace(response, head=_with_headers(response.head, more)))
            case Pass():
                number = str(next(self._numbers))
                self._running[number] = exchange
                return Reply(status=202, reason="Run It", headers=(), body=number.encode())
        return decided

    def _note(self, method: str, body: bytes) -> Verdict:
        exchange = self._junction.begin(own_request_head(notes.SCHEME, method, ""))
        if not isinstance(exchange.arrived(body), Pass):
            return _DONE
        exchange.answer_began(own_answer_head(204))
        return _kept(exchange.answer_ended(Ending.COMPLETE))


class _OwnExchange(PassThrough):
    """A request for the reserved host. It becomes no step itself."""

    def __init__(self, calls: ChildToolCalls, head: RequestHead) -> None:
        self._calls = calls
        self._head = head

    def early(self) -> bool:
        return False

    def arrived(self, body: bytes | None) -> Verdict:
        return self._calls.arrived(self._head, body or b"")


async def _answered(exchange: Exchange, status: int, body: bytes) -> None:
    if not status:
        await exchange.answer_ended(Ending.NO_ANSWER, reason=body.decode(errors="replace"))
        return
    exchange.answer_began(own_answer_head(status))
    exchange.answer_piece(body, ends_chunk=True)
    await exchange.answer_ended(Ending.COMPLETE)


def _kept(work: Coroutine[Any, Any, None]) -> Hold:
    """The child goes on once it is on disk."""
    return _later(asyncio.get_running_loop().create_task(work), lambda _nothing: _DONE)


def _later(first: "asyncio.Future[Any]", told: Callable[[Any], Decided]) -> Hold:
    decided: asyncio.Future[Decided] = asyncio.get_running_loop().create_future()

    def done(first: "asyncio.Future[Any]") -> None:
        if decided.done():
            return
        if first.cancelled():
            decided.cancel()
        elif (error := first.exception()) is not None:
            decided.set_exception(error)
        else:
            decided.set_result(told(first.result()))

    first.add_done_callback(done)
    if not isinstance(first, asyncio.Task):  # what is being kept is kept, whoever waits for it
        decided.add_done_callback(lambda decided: first.cancel() if decided.cancelled() else None)
    return Hold(decided)


def _with_headers(head: ResponseHead, more: Headers) -> ResponseHead:
    return replace(head, headers=(*(pair for pair in head.headers if pair[0].lower() != "content-length"), *more))
