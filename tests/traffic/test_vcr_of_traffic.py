"""606 real exchanges as other tools' files: by vcrpy's own serialiser and as HAR, imported, and played whole."""

import gzip
import json
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from vcr.request import Request
from vcr.serialize import serialize
from vcr.serializers import yamlserializer

from rewind.formats.exchanges import ForeignExchange, ForeignRecording
from rewind.formats.har import har_pieces, read_har
from rewind.formats.vcr import read_vcr
from rewind.match.call import Call, understand
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.ids import SessionId
from rewind.model.session import SessionFile
from rewind.model.step import Step
from rewind.playback.decision import Serve
from rewind.playback.policies import Replay
from rewind.playback.tape import Tape
from rewind.reading.import_ import session_of_exchanges
from rewind.store.session_files import SessionFileReader
from rewind.wire.encoding import decode
from support.imported import playing, taken_in
from support.lab import Lab
from support.provider import FakeProvider
from support.rawhttp import Reader, message
from support.script import routes
from support.traffic import Exchange
from support.trust import Trust

pytestmark = pytest.mark.traffic

EXCHANGES = 606
FRAMING = ("connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")


def by_vcrpy(exchanges: list[Exchange]) -> bytes:
    """As vcrpy writes them. Every third answer says that it is compressed, and every sixth is."""
    cassette: dict[str, list[Any]] = {"requests": [], "responses": []}
    for number, one in enumerate(exchanges):
        head, answer = one.request.head, one.response
        headers: dict[str, list[str]] = {}
        for name, value in answer.head.headers:
            headers.setdefault(name, []).append(value)
        body = answer.body
        if number % 3 == 0 and body:
            headers["content-encoding"] = ["gzip"]
            headers["transfer-encoding"] = ["chunked"]
            body = gzip.compress(body, 1, mtime=0) if number % 6 == 0 else body
        cassette["requests"].append(Request(head.method, head.url, one.request.body, dict(head.headers)))
        cassette["responses"].append(
            {"status": {"code": answer.head.status, "message": "OK"}, "headers": headers, "body": {"string": body}}
        )
    text: str = serialize(cassette, yamlserializer)
    return text.encode()


def session_of(foreign: ForeignRecording) -> SessionFile:
    return session_of_exchanges(foreign, session_id=SessionId("0123abcd"), name="traffic", tags={}, env={})


def by_us(exchanges: list[Exchange]) -> bytes:
    """As our own HAR."""
    foreign = tuple(ForeignExchange(request=one.request, response=one.response) for one in exchanges)
    portable = session_of(ForeignRecording(exchanges=foreign, tool="traffic"))
    return b"".join(har_pieces(portable.recording, SessionFileReader(portable).blob))


def cassettes(exchanges: list[Exchange]) -> Iterator[list[Exchange]]:
    for _, group in groupby(exchanges, key=lambda one: one.cassette):
        yield list(group)


def played(portable: SessionFile, asked: list[Exchange]) -> list[HttpResponse | str]:
    """What a replay gives to these requests, one after the other; or why it gives nothing."""
    reader = SessionFileReader(portable)

    def call_of(step: Step) -> Call:
        return understand(HttpRequest(head=step.request.head, body=reader.blob(step.request.body)))

    policy = Replay(Tape(portable.recording.steps), call_of, session="0123abcd")
    answers: list[HttpResponse | str] = []
    for one in asked:
        match policy.decide(understand(one.request)):
            case Serve(step=step) if step.response is not None and step.response.head is not None:
                answers.append(HttpResponse(head=step.response.head, body=reader.blob(step.response.body), chunks=()))
            case other:
                answers.append(f"{one.name}: {other}")
    return answers


def test_every_cassette_of_the_set_in_vcrpy_s_form_is_played_whole(exchanges: list[Exchange]) -> None:
    count = 0
    for group in cassettes(exchanges):
        for one, answer in zip(group, played(session_of(read_vcr(by_vcrpy(group))), group), strict=True):
            assert isinstance(answer, HttpResponse), answer
            assert answer.head.status == one.response.head.status
            assert decode(answer.body, answer.head.header("content-encoding")) == one.response.body
            count += 1
    assert count == EXCHANGES


def test_every_cassette_of_the_set_as_har_is_played_whole_and_written_the_same_again(exchanges: list[Exchange]) -> None:
    for group in cassettes(exchanges):
        file = by_us(group)
        portable = session_of(read_har(file))
        for one, answer in zip(group, played(portable, group), strict=True):
            assert isinstance(answer, HttpResponse), answer
            assert (answer.head.status, answer.body) == (one.response.head.status, one.response.body)
        again = json.loads(b"".join(har_pieces(portable.recording, SessionFileReader(portable).blob)))
        for entry, before in zip(again["log"]["entries"], json.loads(file)["log"]["entries"], strict=True):
            assert entry["response"]["content"] == before["response"]["content"]
            assert entry["request"].get("postData") == before["request"].get("postData")


@pytest.mark.e2e
@pytest.mark.timeout(300)
@pytest.mark.parametrize("ending", ["yaml", "har"])
def test_the_whole_set_in_one_file_is_imported_and_played_over_the_wire(
    exchanges: list[Exchange], trust: Trust, tmp_path: Path, ending: str
) -> None:
    file = tmp_path / f"everything.{ending}"
    file.write_bytes((by_vcrpy if ending == "yaml" else by_us)(exchanges))
    with FakeProvider(routes({}), trust=trust) as provider:
        bench = Lab(tmp_path, trust, provider)
        imported = taken_in(bench, file)
        assert imported.steps == EXCHANGES
        with playing(bench, imported.session_id) as gate, ExitStack() as stack:
            lines: dict[str, tuple[Any, Reader]] = {}
            for one in exchanges:
                head = one.request.head
                if head.host not in lines:
                    sock = stack.enter_context(gate.tls(head.host))
                    lines[head.host] = (sock, Reader(sock))
                sock, reader = lines[head.host]
                headers = [pair for pair in head.headers if pair[0].lower() not in FRAMING]
                sock.sendall(message(head.method, head.target, head.host, one.request.body, headers))
                reply = reader.next(head.method)
                assert reply.status == one.response.head.status, (one.name, reply.body[:300])
                assert decode(reply.body, reply.header("content-encoding")) == one.response.body, one.name
    assert f"{EXCHANGES}/{EXCHANGES} steps replayed" in gate.ended().talk
