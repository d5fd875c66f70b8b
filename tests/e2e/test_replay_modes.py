"""Replay in all its ways: misses that explain themselves, drift, live calls, latency, and a network nobody touches."""

import http.server
import json
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.answers import anthropic_stream, openai_chat, openai_stream
from support.cli import KEYS, Result, run_rewind
from support.lab import Lab
from support.rawhttp import ask, message
from support.script import Answer, Playbook, Request

pytestmark = pytest.mark.e2e

MakeLab = Callable[[Playbook], Lab]
HOST, CHAT = "api.openai.com", "/v1/chat/completions"

ASKS = """
import json, sys, urllib.error, urllib.request
for text in sys.argv[1:]:
    body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(
        "https://api.openai.com/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            print(json.load(answer)["choices"][0]["message"]["content"], flush=True)
    except urllib.error.HTTPError as error:
        print(error.code, json.load(error)["error"]["message"][:60], flush=True)
"""
"""Asks each of its arguments, and prints what comes."""


def asks(*questions: str) -> list[str]:
    return [sys.executable, "-c", ASKS, *questions]


def numbered(request: Request) -> Answer:
    question = request.json()["messages"][-1]["content"]
    return openai_chat(request, f"answer {request.hit} to {question}")


def replayed(lab: Lab, session: str, *command: str, options: tuple[str, ...] = ()) -> Result:
    return lab.replay(session, *options, *(["--", *command] if command else []))


# Misses


def test_a_miss_is_refused_with_its_reason_its_nearest_call_and_exit_code_4(lab: MakeLab) -> None:
    bench = lab(numbered)
    session = bench.record(asks("How warm is it in Oslo?", "Tell me a joke.")).ok().session
    result = replayed(bench, session, *asks("How warm is it in Rome?", "Tell me a joke."))
    assert result.code == 4
    first, second = result.text.splitlines()
    assert first.startswith("424 ")
    assert second == "answer 2 to Tell me a joke."
    assert "Never recorded" in result.talk
    assert "step 1, not yet played" in result.talk
    assert "messages[0].content" in result.talk
    assert "Oslo" in result.talk and "Rome" in result.talk
    assert "1 miss" in result.talk and "1/2 steps replayed" in result.talk and "0 network calls" in result.talk


def test_one_question_more_than_recorded_is_already_played(lab: MakeLab) -> None:
    bench = lab(numbered)
    session = bench.record(asks("Is it done?")).ok().session
    result = replayed(bench, session, *asks("Is it done?", "Is it done?"))
    assert result.code == 4
    assert "Already played" in result.talk
    assert result.text.splitlines()[0] == "answer 1 to Is it done?"


def test_the_refusal_says_so_in_its_headers_and_the_connection_goes_on(lab: MakeLab) -> None:
    bench = lab(numbered)
    body = json.dumps({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "yes"}]}).encode()
    other = body.replace(b"yes", b"no")
    kind = [("Content-Type", "application/json")]
    with bench.recording() as gate, gate.tls(HOST) as line:
        ask(line, message("POST", CHAT, HOST, body, kind))
    with bench.replaying(gate.ended().session) as again, again.tls(HOST) as line:
        refused = ask(line, message("POST", CHAT, HOST, other, kind))
        served = ask(line, message("POST", CHAT, HOST, body, kind))
    assert refused.status == 424
    miss = refused.header("x-rewind-miss")
    assert miss is not None and "never recorded" in miss and "step 1" in miss
    assert refused.header("x-should-retry") == "false"
    assert served.status == 200
    assert again.ended().code == 4


def test_an_sdk_does_not_ask_again_after_a_miss(lab: MakeLab, tmp_path: Path) -> None:
    """The count is the gateway's: one miss for one call, although the SDK retries twice by default."""
    agent = tmp_path / "agent.py"
    agent.write_text(
        "import sys\nfrom openai import OpenAI, APIStatusError\n"
        "try:\n"
        "    OpenAI().chat.completions.create(model='m', messages=[{'role': 'user', 'content': sys.argv[1]}])\n"
        "    print('answered')\n"
        "except APIStatusError as error:\n"
        "    print(error.status_code, error.response.headers['x-rewind-miss'][:7])\n"
    )
    bench = lab(numbered)
    command = [sys.executable, str(agent)]
    session = bench.record([*command, "one"]).ok().session
    result = bench.replay(session, "--json", "--", *command, "two", env=KEYS)
    told = json.loads(result.stdout)
    assert result.code == 4
    assert len(told["misses"]) == 1
    assert b"424 Rewind:" in result.stderr


# Exit codes


def test_the_same_run_is_0_and_another_output_is_1(lab: MakeLab, tmp_path: Path) -> None:
    bench = lab(numbered)
    session = bench.record(asks("Hello")).ok().session
    assert replayed(bench, session).code == 0
    loud = replayed(bench, session, *[*asks("Hello")[:2], ASKS + "\nprint('and more')", "Hello"])
    assert loud.code == 1
    assert "+and more" in loud.talk


def test_fewer_questions_than_recorded_are_told(lab: MakeLab) -> None:
    bench = lab(numbered)
    session = bench.record(asks("one", "two")).ok().session
    result = replayed(bench, session, *asks("one"))
    assert result.code == 1
    assert "1/2 steps replayed" in result.talk


def test_a_folder_that_is_gone_is_one_clear_sentence_and_the_command_can_be_given(lab: MakeLab, tmp_path: Path) -> None:
    bench = lab(numbered)
    work = tmp_path / "work"
    work.mkdir()
    words = ["record", *bench.upstream, "--", *asks("Hello")]
    recorded = run_rewind(words, bench.home, bench.env | KEYS, cwd=work).ok()
    shutil.rmtree(work)
    gone = bench.replay(recorded.session)
    assert gone.code == 6
    assert f"{work} where the session was recorded does not exist" in gone.talk
    assert "Traceback" not in gone.talk
    assert replayed(bench, recorded.session, *asks("Hello")).code == 0


# Drift


def test_drift_is_accepted_only_when_asked_for_and_always_told(lab: MakeLab) -> None:
    bench = lab(numbered)
    session = bench.record(asks("How warm is it in Oslo on Monday?")).ok().session
    other = asks("How warm is it in Oslo on Sunday?")
    missed = replayed(bench, session, *other)
    assert missed.code == 4
    assert f"rewind replay {session} --allow-drift -- {shlex.join(other)}" in missed.talk, "the command that was given"
    drifted = replayed(bench, session, *other, options=("--allow-drift",))
    assert drifted.code == 0, drifted.talk
    assert drifted.text == "answer 1 to How warm is it in Oslo on Monday?\n"
    assert "1 drifted" in drifted.talk


# Live


def test_a_miss_may_go_live_and_the_run_is_kept_as_a_session_that_replays_alone(lab: MakeLab) -> None:
    bench = lab(numbered)
    session = bench.record(asks("one", "two")).ok().session
    changed = asks("one", "three", "two")
    live = bench.rewind("replay", session, *bench.upstream, "--on-miss", "live", "--json", "--", *changed, env=KEYS)
    told = json.loads(live.stdout)
    assert bench.provider.calls == 3, "only the new question went out"
    assert (told["live"], told["misses"]) == (1, [])
    assert told["network_calls"] >= 1
    kept = told["kept_as"]
    assert kept and kept != session
    again = bench.replay(kept, "--json")
    told = json.loads(again.stdout)
    assert again.code == 0, again.talk
    assert (told["played"], told["total"], told["network_calls"]) == (3, 3, 0)
    assert told["output"] == "identical"
    assert b"answer 3 to three" in again.stderr
    assert [row["status"] for row in bench.steps(kept)] == [200, 200, 200]


def test_a_live_miss_that_streams_is_kept_with_its_chunks(lab: MakeLab) -> None:
    def streams(request: Request) -> Answer:
        return openai_stream(request, ["a", "b", "c"])

    bench = lab(streams)
    kind = [("Content-Type", "application/json")]
    body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"%s"}]}'
    with bench.recording() as gate, gate.tls(HOST) as line:
        ask(line, message("POST", CHAT, HOST, body % b"one", kind))
    session = gate.ended().session
    with bench._gate(["replay", session, *bench.upstream, "--on-miss", "live"], KEYS) as live, live.tls(HOST) as line:
        first = ask(line, message("POST", CHAT, HOST, body % b"two", kind))
    listed = json.loads(bench.rewind("list", "--json").ok().stdout)["sessions"]
    kept = next(row["id"] for row in listed if row["id"] != session)
    with bench.replaying(kept) as again, again.tls(HOST) as line:
        second = ask(line, message("POST", CHAT, HOST, body % b"two", kind))
    assert second.pieces == first.pieces
    assert second.raw == first.raw


def test_a_live_host_is_always_asked_itself_recorded_or_not(lab: MakeLab) -> None:
    bench = lab(numbered)
    session = bench.record(asks("one")).ok().session
    live = bench.rewind("replay", session, *bench.upstream, "--live-host", HOST, "--json", env=KEYS)
    assert bench.provider.calls == 2
    assert b"answer 2 to one" in live.stderr
    told = json.loads(live.stdout)
    assert (told["played"], told["misses"]) == (0, [])
    assert told["network_calls"] >= 1


# Latency


@pytest.mark.parametrize(("factor", "least", "most"), [("recorded", 0.8, 6.0), ("0.1", 0.0, 0.75), ("none", 0.0, 0.5)])
def test_latency(lab: MakeLab, factor: str, least: float, most: float) -> None:
    """Eight gaps of a tenth of a second while recording."""
    bench = lab(lambda request: openai_stream(request, ["x"] * 6, gap=0.1))
    body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
    kind = [("Content-Type", "application/json")]
    with bench.recording() as gate, gate.tls(HOST) as line:
        recorded = ask(line, message("POST", CHAT, HOST, body, kind))
    with bench.replaying(gate.ended().session, "--latency", factor) as again, again.tls(HOST) as line:
        began = time.monotonic()
        reply = ask(line, message("POST", CHAT, HOST, body, kind))
        took = time.monotonic() - began
    assert reply.pieces == recorded.pieces
    assert least <= took <= most
    if factor == "recorded":
        assert reply.times[-1] - reply.times[0] >= 0.65, "spread out, not all at the end"


# Nothing leaves


class Witness(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "4")
        self.end_headers()
        self.wfile.write(b"live")

    def log_message(self, *args: object) -> None: ...


STRANGERS = {
    "urllib over TLS": "import urllib.request; urllib.request.urlopen('https://strange.example.com/', timeout=20)",
    "urllib": "import urllib.request; urllib.request.urlopen('http://strange.example.com/', timeout=20)",
    "aiohttp": (
        "import aiohttp, asyncio\n"
        "async def go():\n"
        "    async with aiohttp.ClientSession() as session, session.get('https://strange.example.com/') as answer:\n"
        "        answer.raise_for_status()\n"
        "asyncio.run(go())"
    ),
    "a bare socket": (
        "import socket, ssl\n"
        "line = socket.create_connection(('strange.example.com', 443), timeout=20)\n"
        "ssl.create_default_context().wrap_socket(line, server_hostname='strange.example.com')"
    ),
    "a bare socket to an address": (
        "import socket\n"
        "line = socket.create_connection(('192.0.2.1', 25), timeout=3)\n"
        "line.sendall(b'HELO\\r\\n')\n"
        "answer = line.recv(100)\n"
        "assert answer.startswith(b'250'), answer"
    ),
}


def _refused(lab: Lab, command: list[str]) -> Result:
    """An agent that makes one recorded call and one that was never recorded: the second fails, and is named."""
    session = lab.record(asks("one")).ok().session
    script = lab.folder / "agent.sh"
    quoted = " ".join(f"'{word}'" for word in asks("one")[3:])
    (lab.folder / "asks.py").write_text(ASKS)
    script.write_text(f'{sys.executable} asks.py {quoted}\n"$@" 2>stranger.err\ntest $? -ne 0\n')
    return replayed(lab, session, "sh", str(script), *command)


@pytest.mark.parametrize("client", STRANGERS)
def test_hosts_that_were_not_recorded_are_refused_in_a_replay(lab: MakeLab, client: str) -> None:
    bench = lab(numbered)
    result = _refused(bench, [sys.executable, "-c", STRANGERS[client]])
    assert result.text == "answer 1 to one\n", (bench.folder / "stranger.err").read_text()
    assert result.code in (0, 4), result.talk
    assert "0 network calls" in result.talk
    if "address" not in client:
        assert "strange.example.com" in result.talk
        assert "a replay stays offline: refused" in result.talk


@pytest.mark.parametrize("url", ["https://strange.example.com/", "http://strange.example.com/"])
def test_curl_is_refused_in_a_replay(lab: MakeLab, url: str) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    result = _refused(lab(numbered), ["curl", "--fail", "--silent", "--show-error", "--max-time", "20", url])
    assert result.text == "answer 1 to one\n"
    assert "strange.example.com" in result.talk and "refused" in result.talk
    assert "0 network calls" in result.talk


def test_node_is_refused_in_a_replay(lab: MakeLab) -> None:
    if shutil.which("node") is None:
        pytest.skip("Node is not installed")
    code = "fetch('https://strange.example.com/').then(r => process.exit(r.ok ? 0 : 3), () => process.exit(4))"
    result = _refused(lab(numbered), ["node", "-e", code])
    assert result.text == "answer 1 to one\n"
    assert "strange.example.com" in result.talk and "refused" in result.talk
    assert "0 network calls" in result.talk


def _without_network() -> list[str]:
    """A command that starts another where there is no network but loopback; skips where that is not allowed."""
    prefix = ["unshare", "--net", "--", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("unshare or ip is not installed")
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("network namespaces cannot be made here")
    return prefix


@pytest.mark.parametrize("agent", ["openai_tools.py", "openai_stream.py", "anthropic_stream.py"])
def test_a_replay_runs_where_there_is_no_network_at_all(lab: MakeLab, agent: str) -> None:
    prefix = _without_network()
    bench = lab(_any_answer)
    recorded = bench.record(agent).ok()
    result = bench.replay(recorded.session, prefix=prefix)
    assert result.code == 0, result.talk
    assert result.stdout == recorded.stdout


def _any_answer(request: Request) -> Answer:
    if request.path.startswith("/v1/messages"):
        return anthropic_stream(request, ["Hel", "lo"])
    if b'"stream":true' in request.body.replace(b" ", b""):
        return openai_stream(request, ["a"] * 7)
    return openai_chat(request, "fine")


def test_a_server_of_the_agents_own_on_this_machine_is_still_reached(lab: MakeLab) -> None:
    """A database or a tool server on loopback is not the network."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Witness)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        bench = lab(numbered)
        session = bench.record(asks("one")).ok().session
        code = f"import socket; print(socket.create_connection(('127.0.0.1', {server.server_port}), 5) is not None)"
        result = replayed(bench, session, sys.executable, "-c", code)
        assert result.stdout == b"True\n"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_replay_never_opens_a_connection_even_when_the_gateway_is_asked_directly(lab: MakeLab) -> None:
    bench = lab(numbered)
    with bench.recording() as recording:
        pass
    with bench.replaying(recording.ended().session) as gate:
        with gate.plain() as line:
            line.sendall(b"CONNECT strange.example.com:443 HTTP/1.1\r\nHost: strange.example.com:443\r\n\r\n")
            assert line.recv(65536).startswith(b"HTTP/1.1 403 ")
        with gate.plain() as line:
            reply = ask(line, message("GET", "http://strange.example.com/", "strange.example.com"))
            assert reply.status == 424
    assert "strange.example.com" in gate.ended().talk


# A replay that tested nothing is not green


def test_a_replay_that_plays_nothing_or_has_nothing_to_play_says_so_and_is_not_green(lab: MakeLab) -> None:
    bench = lab(numbered)
    quiet = [sys.executable, "-c", "print('done')"]
    asked = bench.record(asks("one", "two")).ok().session
    result = replayed(bench, asked, *quiet)
    assert result.code == 4
    assert "None of the 2 recorded steps was asked for: this replay tested nothing." in result.talk
    assert "0/2 steps replayed" in result.talk

    empty = bench.record(quiet).ok().session
    result = replayed(bench, empty)
    assert result.code == 4
    assert "holds no answer that could be replayed" in result.talk and "0/0 steps replayed" in result.talk
    as_json = replayed(bench, empty, options=("--json",))
    assert as_json.code == 4 and json.loads(as_json.stdout)["total"] == 0

    bench.rewind("export", asked, "--output", "asked.rw").ok()
    assert replayed(bench, "asked.rw", "true").code == 4
