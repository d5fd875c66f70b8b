"""What the agent's own code does and tells us of: tool calls and notes. They take the same path as requests.

A call is decided on the gateway's loop like any other exchange. Where the world is to answer, the world is the agent's
own code: it runs where it was called, and its answer is kept when it is told.
"""

import json
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from rewind.errors import ReplayMiss
from rewind.gateway.exchange import Exchange, Pass, Play, Reply, Verdict
from rewind.inprocess.shared_gateway import GatewayGone, SharedGateway
from rewind.model.http import ResponseHead
from rewind.model.step import Ending
from rewind.model.tool_call import PlayedTool
from rewind.playback.tools import own_answer_head, own_request_head
from rewind.providers import notes, tools
from rewind.runs.junction import Junction
from rewind.runs.pass_through import PassThrough


class ToolUnderWay:
    """The tool is to be run now; tell its answer by ``ended``, from any thread."""

    def __init__(self, gateway: SharedGateway, exchange: Exchange) -> None:
        self._gateway = gateway
        self._exchange = exchange
        self._answered = False

    def ended(self, status: int, body: bytes) -> None:
        """Its answer, once: kept when this returns. Whatever goes wrong with keeping it is not the tool's affair."""
        self._tell(own_answer_head(status), body)

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


class ToolCalls:
    """Brings tool calls and notes of one run to its junction."""

    def __init__(self, gateway: SharedGateway, junction: Junction) -> None:
        self._gateway = gateway
        self._junction = junction
        self.tools = 0
        """Tool calls, played or run."""
        self.notes = 0

    def tool(self, name: str, body: bytes) -> PlayedTool | ToolUnderWay:
        """Raises ReplayMiss."""
        head = own_request_head(tools.SCHEME, "CALL", quote(name, safe=""))

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
                return ToolUnderWay(self._gateway, exchange)
            case _:
                raise AssertionError("nobody steps through a run of this process")

    def note(self, text: str, fields: Mapping[str, Any], *, error: bool = False) -> None:
        head = own_request_head(notes.SCHEME, notes.FAILED if error else notes.NOTED, "")
        body = json.dumps({"text": text, **({"fields": dict(fields)} if fields else {})}, default=repr).encode()

        async def keep() -> None:
            self.notes += 1
            exchange = self._junction.begin(head)
            if isinstance(exchange.arrived(body), Pass):
                exchange.answer_began(own_answer_head(204))
                await exchange.answer_ended(Ending.COMPLETE)

        with suppress(GatewayGone):
            _see_to(self._gateway, keep)


def _see_to(gateway: SharedGateway, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Have it done, and wait until it is, where one may wait. Raises GatewayGone."""
    done = gateway.later(work)
    if not gateway.is_this_thread:
        gateway.wait_for(done)
