"""A request that is changed on its way: another body and target, and the client's head around them."""

import asyncio
from dataclasses import replace

import pytest

from rewind.gateway.exchange import Pass, Verdict
from rewind.model.http import HttpRequest, RequestHead, without_headers
from unit.gateway.wiring import Ledger, Remembered, answer_on, client, gateway, request_on, run, upstream

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Changing(Remembered):
    """Sends another body to another place."""

    def arrived(self, body: bytes | None) -> Verdict:
        self.body = body
        headers = without_headers(self.head.headers, ("content-encoding",))
        head = replace(self.head, target="/v1/other?x=1", headers=headers)
        return Pass(HttpRequest(head=head, body=b'{"changed": true}'))


def changing(head: RequestHead) -> Remembered:
    return Changing(head, streams=False)


CHUNKED = b"4\r\nwiki\r\n5;ext=1\r\npedia\r\n0\r\nX-Sum: 1\r\n\r\n"


@pytest.mark.parametrize(
    ("framing", "sent"),
    [
        (b"Content-Length: 9\r\n", b"wikipedia"),
        (b"Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n", CHUNKED),
        (b"Content-Encoding: gzip\r\nContent-Length: 9\r\n", b"wikipedia"),
    ],
    ids=["counted", "chunked", "content-encoded"],
)
def test_whatever_its_framing_was_it_goes_out_counted_with_every_other_line(framing: bytes, sent: bytes) -> None:
    seen: list[bytes] = []

    async def note(reader: Reader, writer: Writer) -> None:
        while True:
            seen.append(await request_on(reader))
            writer.write(OK)

    async def play() -> None:
        ledger = Ledger(make=changing)
        async with upstream(note) as server, gateway(ledger) as port, client(port) as (reader, writer):
            host = b"Host: 127.0.0.1:%d\r\n" % server.port
            for _ in range(2):  # the connection goes on
                writer.write(b"POST /v1/x HTTP/1.1\r\n" + host + b"x-Key:  k\r\n" + framing + b"B: 2\r\n\r\n" + sent)
                assert await answer_on(reader) == OK
            expected = (
                b"POST /v1/other?x=1 HTTP/1.1\r\n" + host + b"x-Key:  k\r\nContent-Length: 17\r\nB: 2\r\n\r\n"
                b'{"changed": true}'
            )
            assert seen == [expected, expected]
        assert [exchange.body for exchange in ledger.exchanges] == [b"wikipedia"] * 2

    run(play())
