"""A request that is decided on later: its connection waits, others go on, and a client may give up."""

import asyncio

import pytest

from rewind.gateway.exchange import Decided, Hold, Play, Reply, Verdict
from rewind.model.http import Chunk, HttpResponse, RequestHead, ResponseHead
from rewind.model.step import Ending
from unit.gateway.wiring import Ledger, Remembered, answer_on, client, eventually, gateway, run

HELD = b"POST /v1/held HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"
FREE = b"POST /v1/free HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"


def played(text: bytes) -> Play:
    head = ResponseHead(status=200, reason="OK", headers=(("Content-Length", str(len(text))),))
    return Play(response=HttpResponse(head=head, body=text, chunks=(Chunk(0, len(text)),)), ending=Ending.COMPLETE)


class Holding(Remembered):
    """Held where its path says so; else denied at once."""

    decided: "asyncio.Future[Decided]"

    def arrived(self, body: bytes | None) -> Verdict:
        self.decided = asyncio.get_running_loop().create_future()
        self.body = body
        if "held" in self.head.target:
            return Hold(self.decided)
        return Reply(status=404, reason="No", headers=(), body=b"no")


def holding(head: RequestHead) -> Remembered:
    return Holding(head, streams=False)


def is_held(ledger: Ledger) -> bool:
    return bool(ledger.exchanges) and ledger.exchanges[0].body is not None


def future(ledger: Ledger) -> "asyncio.Future[Decided]":
    exchange = ledger.exchanges[0]
    assert isinstance(exchange, Holding)
    return exchange.decided


@pytest.mark.parametrize(
    "verdict", [played(b"played"), Reply(status=424, reason="No", headers=(), body=b"denied")], ids=["play", "deny"]
)
def test_it_is_answered_when_that_is_decided_and_the_connection_goes_on(verdict: Decided) -> None:
    async def play() -> None:
        ledger = Ledger(make=holding)
        async with gateway(ledger, online=False) as port, client(port) as (reader, writer):
            writer.write(HELD + FREE)
            async with client(port) as (other_reader, other_writer):
                other_writer.write(FREE)
                assert (await answer_on(other_reader)).endswith(b"no"), "other connections go on"
            assert len(ledger.exchanges) == 2, "what follows on the same connection waits"
            future(ledger).set_result(verdict)
            assert (await answer_on(reader)).endswith(b"yed" if isinstance(verdict, Play) else b"ied")
            assert (await answer_on(reader)).endswith(b"no")

    run(play())


def test_a_client_that_gives_up_cancels_what_was_to_be_decided() -> None:
    async def play() -> None:
        ledger = Ledger(make=holding)
        async with gateway(ledger, online=False) as port:
            async with client(port) as (_, writer):
                writer.write(HELD)
                await eventually(lambda: is_held(ledger))
            await eventually(future(ledger).cancelled)

    run(play())


def test_a_fault_ends_the_connection_and_is_told() -> None:
    """The client must not wait for an answer that will never come."""
    faults: list[object] = []

    async def play() -> None:
        ledger = Ledger(make=holding)
        async with gateway(ledger, online=False) as port, client(port) as (reader, writer):
            asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context.get("exception")))
            writer.write(HELD)
            await eventually(lambda: is_held(ledger))
            future(ledger).set_exception(KeyError("a bug"))
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await answer_on(reader)

    run(play())
    assert [type(fault) for fault in faults] == [KeyError]
