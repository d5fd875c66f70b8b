"""The corners of HTTP, through the real gateway: recorded, and replayed with the provider gone.

``bench.recording()`` starts ``rewind record`` around a child that only tells its environment; the test then speaks
to the gateway itself, byte by byte, as any client of that child would.
"""

import base64
import hashlib
import json
import random
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from support.answers import json_answer, openai_chat, openai_stream
from support.cli import agent_command, plain_environment, run
from support.lab import Gate, Lab
from support.parent_proxy import ParentProxy
from support.provider import FakeProvider
from support.rawhttp import Reader, Reply, ask, message
from support.script import Answer, Playbook, Request, in_order, routes
from support.trust import Trust

pytestmark = pytest.mark.e2e

HOST = "api.openai.com"
CHAT = "/v1/chat/completions"
MakeLab = Callable[[Playbook], Lab]


def question(text: str, target: str = CHAT, host: str = HOST, **more: str) -> bytes:
    body = json.dumps({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": text}]}).encode()
    return message("POST", target, host, body, [("Content-Type", "application/json"), *more.items()])


def numbered(request: Request) -> Answer:
    return openai_chat(request, f"hit {request.hit}")


def twice(bench: Lab, *requests: bytes, options: tuple[str, ...] = ()) -> list[Reply]:
    """Ask on one connection while recording, then again from the recording; both times the same came."""
    with bench.recording(*options) as gate, gate.tls(HOST) as line:
        recorded = [ask(line, request) for request in requests]
    assert gate.ended().code == 0, gate.ended().talk
    with bench.replaying(gate.ended().session) as again, again.tls(HOST) as line:
        replayed = [ask(line, request) for request in requests]
    assert again.ended().code == 0, again.ended().talk
    for first, second in zip(recorded, replayed, strict=True):
        assert (second.status, second.body, second.ended) == (first.status, first.body, first.ended)
        assert second.trailers == first.trailers
        assert second.headers == first.headers
    return recorded


# What the provider is sent


def test_the_provider_gets_the_bytes_it_would_have_got_without_rewind(lab: MakeLab) -> None:
    """Odd spelling, odd order, doubled headers, an empty value: nothing is tidied."""
    body = b'{ "model":"gpt-4o-mini",\t"messages" : [ {"content":"\xc3\xa9 \\u00e9","role":"user"} ] }\n'
    odd = (
        b"POST /v1/chat/completions?b=2&a=1&&x=%%2f HTTP/1.1\r\n"
        b"hOsT: api.openai.com\r\nX-Twice: one\r\nUser-Agent:  spaced \r\nx-twice: two\r\nX-Empty:\r\n"
        b"Authorization: Bearer sk-odd-0123456789\r\nAccept-Encoding: br;q=1.0, gzip\r\n"
        b"Content-Type: application/json\r\ncontent-LENGTH: %d\r\n\r\n%b" % (len(body), body)
    )
    chunked = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: api.openai.com\r\nContent-Type: application/json\r\n"
        b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"mod\r\nA;ext=1\r\nel":"gpt-4\r\n3\r\n"} \r\n0\r\nX-Sum: 9\r\n\r\n'
    )
    bench = lab(numbered)
    with bench.recording() as gate, gate.tls(HOST) as line:
        for request in (odd, chunked):
            assert ask(line, request).status == 200
    assert [request.raw for request in bench.provider.requests] == [odd, chunked]
    assert len(bench.steps(gate.ended().session)) == 2


def test_a_real_sdk_sends_the_same_bytes_with_and_without_rewind(lab: MakeLab) -> None:
    bench = lab(numbered)
    env = {"OPENAI_BASE_URL": bench.provider.url + "/v1", "OPENAI_API_KEY": "sk-same-0123456789"}
    trusting = {"SSL_CERT_FILE": str(bench.trust.ca_file)}
    direct = run(agent_command("openai_repeat.py"), plain_environment(bench.home, **env, **trusting)).ok()
    recorded = bench.record("openai_repeat.py", env=env).ok()
    raw = [request.raw for request in bench.provider.requests]
    assert len(direct.lines) == len(recorded.lines) == 4
    assert raw[:4] == raw[4:]
    assert bench.replay(recorded.session, env={"OPENAI_BASE_URL": env["OPENAI_BASE_URL"]}).stdout == recorded.stdout


def test_connections_to_the_provider_are_kept_and_used_again(lab: MakeLab) -> None:
    bench = lab(numbered)
    with bench.recording() as gate:
        for number in range(10):
            with gate.tls(HOST) as line:
                assert ask(line, question(f"question {number}")).status == 200
    assert bench.provider.calls == 10
    assert bench.provider.connections <= 3


def test_a_provider_that_drops_idle_connections_is_not_noticed(lab: MakeLab) -> None:
    def brief(request: Request) -> Answer:
        answer = openai_chat(request, f"hit {request.hit}")
        return Answer(headers=answer.headers, pieces=answer.pieces, hang_up=True)

    bench = lab(brief)
    with bench.recording() as gate, gate.tls(HOST) as line:
        for number in range(20):
            reply = ask(line, question(f"question {number}"))
            assert reply.status == 200
            assert json.loads(reply.body)["choices"][0]["message"]["content"] == f"hit {number + 1}"
    assert bench.provider.calls == 20


# What the client is answered


def test_expect_100_continue(lab: MakeLab) -> None:
    """The body is sent only after the interim answer, which in a replay comes from the tape's side."""
    bench = lab(numbered)
    request = question("may I?", Expect="100-continue")
    head, _, body = request.partition(b"\r\n\r\n")

    def polite(gate: Gate) -> Reply:
        with gate.tls(HOST) as line:
            line.sendall(head + b"\r\n\r\n")
            line.settimeout(20)
            assert line.recv(65536).startswith(b"HTTP/1.1 100")
            line.sendall(body)
            return Reader(line).next()

    with bench.recording() as gate:
        recorded = polite(gate)
    assert recorded.status == 200
    assert bench.provider.requests[0].body == body
    with bench.replaying(gate.ended().session) as again:
        assert polite(again).body == recorded.body


def test_interim_answers_go_through(lab: MakeLab) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n"
    answer = Answer(before=early + early, pieces=(b'{"ok":true}',))
    bench = lab(in_order(answer))
    with bench.recording() as gate, gate.tls(HOST) as line:
        recorded = ask(line, question("hints"))
    assert recorded.interim == [103, 103]
    assert (recorded.status, recorded.body) == (200, b'{"ok":true}')
    with bench.replaying(gate.ended().session) as again, again.tls(HOST) as line:
        assert ask(line, question("hints")).body == recorded.body


def test_answers_without_a_body_do_not_confuse_the_connection(lab: MakeLab) -> None:
    requests = [
        message("HEAD", "/v1/models", HOST),
        message("DELETE", "/v1/files/file-1", HOST),
        message("GET", "/v1/models", HOST, headers=[("If-None-Match", '"abc"')]),
        question("and then"),
    ]
    bench = lab(
        in_order(
            Answer(pieces=(b'{"data":[]}',)),
            Answer(status=204, headers=(), framing="none"),
            Answer(status=304, headers=(("etag", '"abc"'),), framing="none"),
            Answer(pieces=(b'{"ok":true}',)),
        )
    )
    head, deleted, unchanged, last = twice(bench, *requests)
    assert (head.status, head.body, head.header("content-length")) == (200, b"", "11")
    assert (deleted.status, unchanged.status) == (204, 304)
    assert last.body == b'{"ok":true}'


def test_trailers(lab: MakeLab) -> None:
    trailers = (("x-checksum", "abc123"), ("x-cost", "0.002"))
    bench = lab(in_order(Answer(pieces=(b"one", b"two"), framing="chunked", trailers=trailers)))
    (reply,) = twice(bench, question("trailers", TE="trailers"))
    assert reply.trailers == trailers


def test_an_answer_that_ends_with_its_connection(lab: MakeLab) -> None:
    bench = lab(in_order(Answer(pieces=(b"until", b" the", b" end"), framing="close", gap=0.01)))
    (reply,) = twice(bench, question("no length"))
    assert reply.body == b"until the end"


def test_pipelined_requests_are_answered_in_order(lab: MakeLab) -> None:
    bench = lab(lambda request: json_answer(request, request.json()["messages"][0]["content"]))
    requests = [question(f"number {number}") for number in range(5)]

    def pipeline(gate: Gate) -> list[bytes]:
        with gate.tls(HOST) as line:
            line.sendall(b"".join(requests))
            reader = Reader(line)
            return [reader.next().body for _ in requests]

    with bench.recording() as gate:
        recorded = pipeline(gate)
    assert recorded == [b'"number %d"' % number for number in range(5)]
    with bench.replaying(gate.ended().session) as again:
        assert pipeline(again) == recorded


# Ends that come too early


def test_the_provider_dies_before_it_answers(lab: MakeLab) -> None:
    bench = lab(lambda _request: Answer(headless=True, cut="rst"))
    with bench.recording() as gate, gate.tls(HOST) as line:
        recorded = ask(line, question("anybody?"))
    assert recorded.status >= 500 or recorded.ended == "cut"
    (step,) = bench.steps(gate.ended().session)
    assert step["ending"] == "no_answer"
    with bench.replaying(gate.ended().session) as again, again.tls(HOST) as line:
        replayed = ask(line, question("anybody?"))
    assert (replayed.status, replayed.ended) == (recorded.status, recorded.ended)


def test_the_provider_cannot_be_reached(lab: MakeLab) -> None:
    bench = lab(numbered)
    bench.provider.go_away()
    with bench.recording() as gate, gate.tls(HOST) as line:
        recorded = ask(line, question("anybody?"))
    assert recorded.status >= 500 or recorded.ended == "cut"
    (step,) = bench.steps(gate.ended().session)
    assert step["ending"] == "no_answer"


def test_the_client_leaves_before_the_answer_and_the_gateway_lives_on(lab: MakeLab) -> None:
    gone = threading.Event()

    def play(request: Request) -> Answer:
        if b"impatient" in request.body:
            return Answer(pieces=(b'{"late":true}',), hold=gone)
        return openai_chat(request, "still here")

    bench = lab(play)
    with bench.recording() as gate:
        line = gate.tls(HOST)
        line.sendall(question("impatient"))
        _until(lambda: bench.provider.calls == 1)
        line.close()
        gone.set()
        with gate.tls(HOST) as other:
            assert ask(other, question("patient")).status == 200
    impatient, patient = bench.steps(gate.ended().session)
    assert impatient["ending"] in ("client_closed", "complete")
    assert patient["ending"] == "complete"


def test_the_client_leaves_in_the_middle_of_its_request(lab: MakeLab) -> None:
    """As an agent does that is killed while it sends: nothing is damaged by it."""
    bench = lab(numbered)
    with bench.recording() as gate:
        for part in (40, -5):
            with gate.tls(HOST) as line:
                line.sendall(question("half of it")[:part])
        with gate.tls(HOST) as line:
            assert ask(line, question("all of it")).status == 200
    session = gate.ended().session
    assert [step["ending"] for step in bench.steps(session)].count("complete") == 1
    verified = bench.rewind("verify", session)
    assert verified.code == 0, verified.text
    with bench.replaying(session) as again, again.tls(HOST) as line:
        assert ask(line, question("all of it")).status == 200


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_an_answer_cut_by_the_provider_is_cut_at_the_same_byte_in_the_replay(
    lab: MakeLab, framing: Literal["length", "chunked"]
) -> None:
    def cut(_request: Request) -> Answer:
        return Answer(pieces=(b"x" * 1000, b"y" * 10), framing=framing, cut="fin")

    def missing(request: Request) -> Answer:
        """Promises more than it sends."""
        if framing == "chunked":
            return cut(request)
        return Answer(headers=(("content-length", "5000"),), pieces=(b"x" * 1000, b"y" * 10), framing="none", cut="fin")

    bench = lab(missing)
    with bench.recording() as gate, gate.tls(HOST) as line:
        recorded = ask(line, question("cut"))
    assert (recorded.ended, recorded.body) == ("cut", b"x" * 1000 + b"y" * 10)
    (step,) = bench.steps(gate.ended().session)
    assert step["ending"] == "upstream_cut"
    with bench.replaying(gate.ended().session) as again, again.tls(HOST) as line:
        replayed = ask(line, question("cut"))
    assert (replayed.ended, replayed.body) == ("cut", recorded.body)


def test_garbage_on_the_port_hurts_nobody_else(lab: MakeLab) -> None:
    bench = lab(numbered)
    with bench.recording() as gate:
        for junk in (b"\x00\x01\x02\x03\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"\0" * 64, b"A" * 300_000):
            with gate.plain() as line:
                line.settimeout(20)
                line.sendall(junk)
                line.shutdown(socket.SHUT_WR)
                while _receive(line):
                    pass
        with gate.tls(HOST) as line:
            assert ask(line, question("still well?")).status == 200
    assert "Traceback" not in gate.ended().talk


# Flow


def test_a_large_upload_is_streamed_and_held_back_while_the_provider_does_not_read(
    trust: Trust, tmp_path: Path
) -> None:
    size = 64 * 1024 * 1024
    noise = random.Random(1).randbytes(1024 * 1024)
    reading = threading.Event()
    with FakeProvider(numbered, receive_buffer=65536, body_gate=reading) as provider:
        bench = Lab(tmp_path, trust, provider)
        host = f"127.0.0.1:{provider.port}"
        head = f"POST http://{host}{CHAT} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {size}\r\n\r\n".encode()
        with bench.recording() as gate, gate.plain() as line:
            line.sendall(head)
            line.settimeout(1.5)
            sent = _send_until_blocked(line, noise, size)
            assert 0 < sent < size // 2, f"{sent} bytes were taken while nobody read them"
            reading.set()
            line.settimeout(60)
            while sent < size:
                sent += line.send(noise[sent % len(noise) :][: size - sent])
            assert Reader(line).next().status == 200
        body = provider.requests[0].body
        assert hashlib.sha256(body).digest() == hashlib.sha256(noise * 64).digest()
        assert bench.body(gate.ended().session, 1, "--request") == body


def test_a_client_that_does_not_read_holds_the_provider_back(trust: Trust, tmp_path: Path) -> None:
    piece = random.Random(2).randbytes(1024 * 1024)
    big = Answer(pieces=(piece,) * 64, framing="chunked")
    with FakeProvider(lambda _request: big) as provider:
        bench = Lab(tmp_path, trust, provider)
        host = f"127.0.0.1:{provider.port}"
        with bench.recording() as gate, gate.plain() as line:
            line.sendall(question("big", f"http://{host}{CHAT}", host))
            _until(lambda: provider.sent > 0)
            _until_steady(lambda: provider.sent)
            assert provider.sent < len(big.body) // 2, f"{provider.sent} bytes went nowhere"
            reply = Reader(line).next()
        assert hashlib.sha256(reply.body).digest() == hashlib.sha256(big.body).digest()


# Doors and ways


def test_plain_http_in_absolute_form(trust: Trust, tmp_path: Path) -> None:
    """What looks like an LLM API is recorded on plain HTTP too, as local servers are."""
    with FakeProvider(numbered) as provider:
        bench = Lab(tmp_path, trust, provider)
        host = f"localhost:{provider.port}"
        request = question("local", f"http://{host}{CHAT}", host)
        with bench.recording() as gate, gate.plain() as line:
            recorded = ask(line, request)
        assert provider.requests[0].raw.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
        assert provider.requests[0].header("host") == host
        with bench.replaying(gate.ended().session) as again, again.plain() as line:
            assert ask(line, request).body == recorded.body


def test_the_base_url_door(lab: MakeLab) -> None:
    """No proxy and no certificate: the client is pointed at the gateway's own address."""
    bench = lab(numbered)
    script = 'OPENAI_BASE_URL="$REWIND_GATEWAY_URL/openai/v1" exec "$@"'
    recorded, _ = bench.record_and_replay(["sh", "-c", script, "sh", *agent_command("openai_repeat.py")])
    assert len(recorded.lines) == 4
    first = bench.provider.requests[0]
    assert (first.path, first.header("host")) == (CHAT, HOST)
    assert [step["url"] for step in bench.steps(recorded.session)] == [f"https://{HOST}{CHAT}"] * 4


def test_hosts_that_are_not_recorded_are_tunnelled_untouched(lab: MakeLab) -> None:
    """The client meets the host's own certificate, and nothing of it is kept."""
    bench = lab(numbered)
    other = "private.example.com"
    with bench.recording() as gate:
        with bench.trust.client_context().wrap_socket(gate.tunnel(other), server_hostname=other) as line:
            secret = question("between us", "/private", other)
            assert ask(line, secret).status == 200
        with gate.tls(HOST) as line:
            assert ask(line, question("for the record")).status == 200
    assert bench.provider.requests[0].raw == secret
    (step,) = bench.steps(gate.ended().session)
    assert step["url"].startswith(f"https://{HOST}/")


def test_a_replay_opens_no_tunnel(lab: MakeLab) -> None:
    bench = lab(numbered)
    with bench.recording() as gate, gate.tls(HOST) as line:
        ask(line, question("for the record"))
    with bench.replaying(gate.ended().session) as again:
        with again.plain() as line:
            line.settimeout(20)
            line.sendall(b"CONNECT private.example.com:443 HTTP/1.1\r\nHost: private.example.com:443\r\n\r\n")
            reply = b""
            while data := _receive(line):
                reply += data
            assert not reply.startswith(b"HTTP/1.1 200")
        with again.tls(HOST) as line:
            assert ask(line, question("for the record")).status == 200


def test_ipv6_loopback(trust: Trust, tmp_path: Path) -> None:
    try:
        provider = FakeProvider(numbered, trust=trust, address="::1")
    except OSError as error:
        pytest.skip(f"no IPv6 loopback here: {error}")
    with provider:
        bench = Lab(tmp_path, trust, provider)
        with bench.recording("--host", "::1") as gate:
            with gate.tls(HOST) as line:
                assert ask(line, question("by name")).status == 200
            with gate.tls("::1", provider.port) as line:
                assert ask(line, question("by address", host=f"[::1]:{provider.port}")).status == 200
        assert provider.calls == 2
        urls = [step["url"] for step in bench.steps(gate.ended().session)]
        assert urls == [f"https://{HOST}{CHAT}", f"https://[::1]:{provider.port}{CHAT}"]


@pytest.mark.parametrize("how", ["option", "HTTPS_PROXY", "https_proxy"])
def test_the_way_to_the_provider_may_lead_through_a_parent_proxy(lab: MakeLab, how: str) -> None:
    bench = lab(numbered)
    bench.hosts = ()  # no --connect-to: the parent proxy alone knows the way
    token = "Basic " + base64.b64encode(b"clerk:pa ss").decode()
    with ParentProxy(("127.0.0.1", bench.provider.port), required=token) as parent:
        url = f"http://clerk:pa%20ss@127.0.0.1:{parent.port}"
        options, env = (("--upstream-proxy", url), {}) if how == "option" else ((), {how: url})
        with bench.recording(*options, env=env) as gate:
            with gate.tls(HOST) as line:
                assert ask(line, question("through the parent")).status == 200
            other = "private.example.com"
            with bench.trust.client_context().wrap_socket(gate.tunnel(other), server_hostname=other) as line:
                assert ask(line, question("untouched", host=other)).status == 200
        asked = {head.split(" ")[1] for head in parent.heads}
    assert asked == {f"{HOST}:443", "private.example.com:443"}
    assert not any(b"pa%20ss" in path.read_bytes() for path in bench.home.rglob("*") if path.is_file())
    with bench.replaying(gate.ended().session) as again, again.tls(HOST) as line:
        assert ask(line, question("through the parent")).status == 200


def test_a_replay_needs_no_network_at_all(lab: MakeLab) -> None:
    """In a network namespace of its own there is nothing but loopback."""
    cut_off = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*cut_off, "true"], capture_output=True).returncode:
        pytest.skip("a network namespace cannot be made here")
    bench = lab(routes({CHAT: lambda request: openai_stream(request, ["a"] * 8)}))
    recorded = bench.record("openai_stream.py").ok()
    replayed = bench.rewind("replay", recorded.session, prefix=cut_off).ok()
    assert replayed.stdout == recorded.stdout


def _send_until_blocked(line: socket.socket, noise: bytes, size: int) -> int:
    sent = 0
    try:
        while sent < size:
            sent += line.send(noise[sent % len(noise) :][: size - sent])
    except TimeoutError:
        pass  # the other side has stopped reading
    return sent


def _receive(line: socket.socket) -> bytes:
    try:
        return line.recv(65536)
    except ConnectionError:
        return b""


def _until(happened: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


def _until_steady(measure: Callable[[], int], seconds: float = 30) -> None:
    """Wait until the number has not moved for a second."""
    deadline, last, since = time.monotonic() + seconds, measure(), time.monotonic()
    while time.monotonic() - since < 1:
        assert time.monotonic() < deadline, "it never came to rest"
        time.sleep(0.02)
        if measure() != last:
            last, since = measure(), time.monotonic()
