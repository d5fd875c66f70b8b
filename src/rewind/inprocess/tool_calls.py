"""What the agent's own code does and tells us of: tool calls and notes. They take the same path as requests.

A call is decided on the gateway's loop like any other exchange. Where the world is to answer, the world is the agent's
own code: it runs where it was called, and its answer is kept when it is told.
"""

import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from rewind.dataclass import dataclass
from rewind.errors import ReplayMiss
from rewind.gateway.exchange import Exchange, Pass, Play, Reply, Verdict
from rewind.inprocess.options import OWN_SCHEMES
from rewind.inprocess.shared_gateway import GatewayGone, SharedGateway
from rewind.match.call import Call
from rewind.model.http import Headers, HttpRequest, RequestHead, ResponseHead
from rewind.model.ids import blob_id
from rewind.model.step import Ending, Step, StepKind
from rewind.playback.decision import Decision, Forward, Policy, Serve
from rewind.playback.tape import Tape
from rewind.providers import notes, tools
from rewind.runs.junction import Junction
from rewind.runs.pass_through import PassThrough

_JSON: Headers = (("Content-Type", "application/json"),)
_CLOCKS_GRAIN = 0.001
"""Seconds by which times of one moment may differ in a journal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedTool:
    """The recording answers: the tool is not run."""

    status: int
    """200, or 500 where the tool had failed."""
    body: bytes
    step: int
    """The recorded step."""
    ms: float
    """How long it had taken."""


class ToolUnderWay:
    """The tool is to be run now; tell its answer by ``ended``, from any thread."""

    def __init__(self, gateway: SharedGateway, exchange: Exchange) -> None:
        self._gateway = gateway
        self._exchange = exchange
        self._answered = False

    def ended(self, status: int, body: bytes) -> None:
        """Its answer, once: kept when this returns. Whatever goes wrong with keeping it is not the tool's affair."""
        self._tell(ResponseHead(status=status, reason=_REASONS[status], headers=_JSON), body)

    def abandoned(self, reason: str) -> None:
        """It never answered."""
        self._tell(None, b"", reason)

    def _tell(self, head: ResponseHead | None, body: bytes, reason: str | None = None) -> None:
        if self._answered:
            return
        self._answered = True
        exchange = self._exchange

        async def keep() -> None:
            if head is not None:
                exchange.answer_began(head)
                exchange.answer_piece(body, ends_chunk=True)
            ending = Ending.COMPLETE if head is not None else Ending.NO_ANSWER
            await exchange.answer_ended(ending, reason=reason)

        with suppress(GatewayGone):  # or this is a forked child: nobody keeps anything here
            _see_to(self._gateway, keep)


_REASONS = {200: "OK", 500: "Internal Server Error"}


class ToolCallPolicy(Policy):
    """Policy around a policy: what the agent's own code does need not be on tape, or is always done anew."""

    def __init__(self, policy: Policy, tape: Tape, *, live_tools: bool) -> None:
        self._policy = policy
        self._tape = tape
        self._live = OWN_SCHEMES if live_tools else (notes.SCHEME,)

    def early(self, head: RequestHead) -> Forward | None:
        return self._policy.early(head)

    def at_a_glance(self, request: HttpRequest) -> Serve | None:
        return None if request.head.scheme in OWN_SCHEMES else self._policy.at_a_glance(request)

    def decide(self, call: Call) -> Decision:
        if call.request.head.scheme not in self._live:
            return self._policy.decide(call)
        # It happened again, whatever it answers now.
        step = self._tape.take(call.key, blob_id(call.request.body))
        if step is not None and call.request.head.scheme == notes.SCHEME:
            return Serve(step=step)
        return Forward()


class ToolCalls:
    """Brings tool calls and notes of one run to its junction."""

    def __init__(self, gateway: SharedGateway, junction: Junction) -> None:
        self._gateway = gateway
        self._junction = junction
        self.tools = 0
        """Tool calls, played or run."""
        self.notes = 0
        self.ran = 0
        """Of both, those that no tape answered."""

    def tool(self, name: str, body: bytes) -> PlayedTool | ToolUnderWay:
        """Raises ReplayMiss."""
        head = _head(tools.SCHEME, "CALL", quote(name, safe=""))

        def decide(junction: Junction) -> PlayedTool | ToolUnderWay:
            self.tools += 1
            exchange = junction.begin(head)
            return self._decided(exchange, exchange.arrived(body))

        async def decide_there() -> PlayedTool | ToolUnderWay:
            return decide(self._junction)

        if self._gateway.is_this_thread:
            return decide(self._junction)
        try:
            return self._gateway.wait_for(self._gateway.later(decide_there))
        except GatewayGone:
            return self._decided_alone(decide)

    def _decided_alone(self, decide: Callable[[Junction], PlayedTool | ToolUnderWay]) -> PlayedTool | ToolUnderWay:
        """In a forked child, with its own copy of the tape; or after the gateway has ended."""
        if self._gateway.is_here:
            return decide(self._junction)
        try:
            return decide(replace(self._junction, writer_thread=None))  # the session is its parent's
        except ReplayMiss:
            # What tools do in a forked child is not recorded, so it cannot be asked of a recording.
            return ToolUnderWay(self._gateway, PassThrough())

    def _decided(self, exchange: Exchange, verdict: Verdict) -> PlayedTool | ToolUnderWay:
        match verdict:
            case Play(response=response) if response is not None:
                step = self._junction.tally.served[-1]
                assert step.response is not None, "a tape has answers"
                return PlayedTool(status=response.head.status, body=response.body, step=step.index, ms=step.response.ms)
            case Play():
                step = self._junction.tally.served[-1]
                raise ReplayMiss(f"The tool call of step {step.index} never returned when it was recorded.")
            case Reply(message=message):
                raise ReplayMiss(message)
            case Pass():
                self.ran += 1
                return ToolUnderWay(self._gateway, exchange)
            case _:
                raise AssertionError("nobody steps through a run of this process")

    def note(self, text: str, fields: Mapping[str, Any], *, error: bool = False) -> None:
        head = _head(notes.SCHEME, notes.FAILED if error else notes.NOTED, "")
        body = json.dumps({"text": text, **({"fields": dict(fields)} if fields else {})}, default=repr).encode()

        async def keep() -> None:
            self.notes += 1
            exchange = self._junction.begin(head)
            if isinstance(exchange.arrived(body), Pass):
                self.ran += 1
                exchange.answer_began(ResponseHead(status=204, reason="No Content", headers=()))
                await exchange.answer_ended(Ending.COMPLETE)

        with suppress(GatewayGone):
            _see_to(self._gateway, keep)


def _see_to(gateway: SharedGateway, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Have it done, and wait until it is, where one may wait. Raises GatewayGone."""
    done = gateway.later(work)
    if not gateway.is_this_thread:
        gateway.wait_for(done)


def within_tools(steps: Iterable[Step], played: Iterable[Step]) -> set[int]:
    """The steps that began and ended while one of these tools ran when it was recorded: the tool's own doing, as far as
    times can tell where several things go on at once."""
    tools = [step for step in played if step.request.kind is StepKind.TOOL_CALL]
    return {step.index for step in steps if any(_within(step, tool) for tool in tools)}


def _within(step: Step, tool: Step) -> bool:
    return step.index > tool.index and step.ended <= tool.ended + _CLOCKS_GRAIN


def _head(scheme: str, method: str, path: str) -> RequestHead:
    return RequestHead(method=method, scheme=scheme, host="", port=0, target=f"/{path}", headers=_JSON)
