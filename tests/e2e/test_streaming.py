"""Streams pass chunk by chunk: as soon as without Rewind, with their borders, and spread out as they were sent."""

import socket
import statistics
import time
from collections.abc import Callable

import pytest

from support.answers import openai_chat, openai_stream, stream_answer
from support.lab import Lab
from support.rawhttp import Reader, Reply, ask, message
from support.script import Answer, Playbook, Request

pytestmark = pytest.mark.e2e

MakeLab = Callable[[Playbook], Lab]
HOST = "api.openai.com"
GAP = 0.05
ROUNDS = 9
ATTEMPTS = 4
"""A busy machine may spoil one comparison; a recorder that buffers spoils all of them."""


def question(text: str) -> bytes:
    body = b'{"model":"gpt-4o-mini","stream":true,"messages":[{"role":"user","content":"%b"}]}' % text.encode()
    return message("POST", "/v1/chat/completions", HOST, body, [("Content-Type", "application/json")])


def five_events(request: Request) -> Answer:
    """Role, two texts, the reason and ``[DONE]``, 50 ms apart."""
    return openai_stream(request, ["a", "b"], gap=GAP)


def timed(sock: socket.socket, reader: Reader, request: bytes) -> tuple[float, Reply]:
    """Milliseconds from the sent request to the first chunk, and the answer."""
    start = time.monotonic()
    sock.sendall(request)
    reply = reader.next()
    return (reply.times[0] - start) * 1000, reply


def test_the_first_chunk_comes_within_5_ms_of_direct_and_the_rest_as_they_are_sent(lab: MakeLab) -> None:
    bench = lab(five_events)
    later, lumps = [], []
    with bench.recording() as gate:
        direct = bench.trust.client_context().wrap_socket(
            socket.create_connection(("127.0.0.1", bench.provider.port), timeout=30), server_hostname=HOST
        )
        recorded = gate.tls(HOST)
        with direct, recorded:
            lines = {"direct": (direct, Reader(direct)), "recorded": (recorded, Reader(recorded))}
            for attempt in range(ATTEMPTS):
                first: dict[str, list[float]] = {"direct": [], "recorded": []}
                spread: dict[str, list[float]] = {"direct": [], "recorded": []}
                for number in range(ROUNDS):
                    for way, (sock, reader) in lines.items():
                        waited, reply = timed(sock, reader, question(f"{way} {attempt} {number}"))
                        assert len(reply.pieces) == 5
                        first[way].append(waited)
                        spread[way].append((reply.times[-1] - reply.times[0]) * 1000)
                later.append(statistics.median(first["recorded"]) - statistics.median(first["direct"]))
                lumps.append(statistics.median(spread["direct"]) - statistics.median(spread["recorded"]))
                if later[-1] <= 5 and lumps[-1] <= 20:
                    break
    assert later[-1] <= 5, f"first chunk later than direct by {later} ms"
    assert lumps[-1] <= 20, f"the chunks came closer together than they were sent, by {lumps} ms"


def test_every_byte_and_border_of_a_stream_is_the_providers_own_when_recording_and_when_replaying(lab: MakeLab) -> None:
    pieces = [b'data: {"a":', b"1}\n", b"\ndata", b": \xf0\x9f", b"\x8e\x9e\n\n", b"x", b"data: [DONE]\n\n"]
    bench = lab(lambda request: stream_answer(request, pieces, gap=0.005))
    with bench.recording() as gate, gate.tls(HOST) as line:
        recorded = ask(line, question("borders"))
    assert recorded.pieces == pieces
    with bench.replaying(gate.ended().session) as again, again.tls(HOST) as line:
        replayed = ask(line, question("borders"))
    assert replayed.pieces == pieces
    assert replayed.body == recorded.body
    assert [field for field in replayed.headers if field[0] != "date"] == list(recorded.headers)


def test_recorded_pauses_can_be_played_again_and_are_left_out_by_default(lab: MakeLab) -> None:
    bench = lab(lambda request: openai_stream(request, ["a"] * 7, gap=0.1))
    with bench.recording() as gate, gate.tls(HOST) as line:
        ask(line, question("pauses"))
    spans = {}
    for latency in ("none", "recorded", "0.5"):
        with bench.replaying(gate.ended().session, "--latency", latency) as again, again.tls(HOST) as line:
            start = time.monotonic()
            reply = ask(line, question("pauses"))
            spans[latency] = time.monotonic() - start
            assert len(reply.pieces) == 10
    assert spans["recorded"] >= 0.85
    assert 0.4 <= spans["0.5"] < spans["recorded"]
    assert spans["none"] < spans["recorded"] / 2


def test_a_stream_does_not_wait_for_a_slow_neighbour(lab: MakeLab) -> None:
    """While one answer is held back by the provider, others on the same gateway come at once."""

    def play(request: Request) -> Answer:
        if b"slow" in request.body:
            return openai_stream(request, ["a"] * 7, gap=0.2)
        return openai_chat(request, "quick")

    bench = lab(play)
    with bench.recording() as gate, gate.tls(HOST) as slow, gate.tls(HOST) as quick:
        slow.sendall(question("slow"))
        started = time.monotonic()
        for number in range(5):
            assert ask(quick, question(f"quick {number}")).status == 200
        quick_done = time.monotonic() - started
        reply = Reader(slow).next()
        assert len(reply.pieces) == 10
        assert reply.times[-1] - started > 1.5
        assert quick_done < 1.5
    session = gate.ended().session
    assert len(bench.steps(session)) == 6
