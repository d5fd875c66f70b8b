"""What vcrpy and mitmproxy really recorded, imported and played to the same clients with nobody there."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from support.answers import (
    anthropic_stream,
    gemini_content,
    gemini_stream,
    openai_chat,
    openai_embeddings,
    openai_response,
    openai_stream,
)
from support.cli import AGENTS, KEYS, PATIENCE, Result, agent_command, plain_environment, run
from support.imported import playing, taken_in
from support.lab import Gate, Lab
from support.rawhttp import Reader, Reply, message
from support.script import Answer, Playbook, Request, routes

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
MITMPROXY = ROOT / ".venv-mitmproxy" / "bin"
MakeLab = Callable[[Playbook], Lab]
TEXTS = ["Once", " upon", " a", " time", " — ", "“quoted”", " 🎞"]


def chat(request: Request) -> Answer:
    asked = request.json()
    if asked.get("stream"):
        return openai_stream(request, TEXTS)
    tools = [("order_status", {"order": "4711"})] if asked.get("tools") and len(asked["messages"]) == 1 else []
    answer = openai_chat(request, None if tools else f"Grüße {request.hit} 🙂", tools)
    return answer.compressed("gzip") if "gzip" in request.header("accept-encoding") else answer


def gemini(request: Request) -> Answer:
    if "stream" in request.path:
        return gemini_stream(request, TEXTS)
    tools = [("weather", {"city": "Oslo"})] if "tools" in request.json() else []
    return gemini_content(request, "" if tools else "Hello")


PLAYBOOK = routes(
    {
        "/v1/chat/completions": chat,
        "/v1/responses": lambda request: openai_response(request, "Hello"),
        "/v1/embeddings": openai_embeddings,
        "/v1/messages": lambda request: anthropic_stream(request, TEXTS),
        "/v1/models": gemini,
        "/v1beta/models": gemini,
    }
)


@pytest.mark.parametrize(
    ("cassette", "agents"),
    [
        (
            "test_sdks.yaml",
            ("openai_stream", "openai_tools", "openai_gather", "openai_responses", "anthropic_stream", "gemini_calls"),
        ),
        ("test_clients.yaml", ("http_clients",)),
    ],
)
def test_what_vcrpy_recorded_is_played_to_the_same_clients_whole(
    lab: MakeLab, cassette: str, agents: tuple[str, ...]
) -> None:
    bench = lab(PLAYBOOK)
    files = [str(AGENTS / f"{agent}.py") for agent in agents]
    trusting = dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), str(bench.trust.ca_file))
    env = plain_environment(bench.home, **KEYS, **trusting)
    under_vcr = [*agent_command("under_vcr.py"), str(bench.provider.port), cassette, *files]
    recorded = run(under_vcr, env, cwd=bench.folder).ok()
    calls = bench.provider.calls
    imported = taken_in(bench, bench.folder / cassette)
    assert (imported.steps, imported.tool) == (calls, "vcrpy")
    again = ["--", *agent_command("in_turn.py"), *files]
    replayed = bench.replay(imported.session_id, *again, env=KEYS).ok()
    assert replayed.stdout == recorded.stdout
    assert f"{calls}/{calls} steps replayed" in replayed.talk
    for key in KEYS.values():
        assert not any(key.encode() in file.read_bytes() for file in bench.home.rglob("*") if file.is_file())


@pytest.fixture
def flows(lab: MakeLab) -> tuple[Lab, Path]:
    """An empty store, and a flow file that mitmproxy wrote."""
    if not (MITMPROXY / "mitmdump").exists():
        reason = "mitmproxy has no environment here: make .venv-mitmproxy/.ready"
        if os.environ.get("REWIND_TESTS_NEED_MITMPROXY"):
            pytest.fail(reason)
        pytest.skip(reason)
    bench = lab(routes({}))
    file = bench.folder / "incident.flow"
    beside_mitmproxy(bench, "python", ROOT / "tests" / "support" / "flow_writing.py", file).ok()
    return bench, file


def beside_mitmproxy(bench: Lab, program: str, *args: str | Path) -> Result:
    """Run something of mitmproxy's own environment, in which Rewind is installed, too."""
    return run([MITMPROXY / program, *args], plain_environment(bench.home), cwd=bench.folder)


def ask(gate: Gate, number: int) -> Reply:
    body = b'{"model":"gpt-4o-mini","messages":[{"role":"user","content":"question %d"}]}' % number
    headers = [("Content-Type", "application/json")]
    return send(gate, message("POST", "/v1/chat/completions", "api.openai.com", body, headers))


def send(gate: Gate, request: bytes, host: str = "api.openai.com") -> Reply:
    with gate.tls(host) as sock:
        sock.sendall(request)
        return Reader(sock).next()


def said(reply: Reply) -> str:
    text: str = json.loads(reply.body)["choices"][0]["message"]["content"]
    return text


def test_a_flow_file_is_imported_where_mitmproxy_is_and_played_anywhere(flows: tuple[Lab, Path]) -> None:
    bench, file = flows
    imported = beside_mitmproxy(bench, "rewind", "import", file, "--json").ok()
    row = json.loads(imported.stdout)
    session = json.loads(bench.rewind("list", "--json").ok().stdout)["sessions"][0]
    assert "mitmproxy" in imported.text and row
    with playing(bench, session["id"]) as gate:
        first, second, third = ask(gate, 1), ask(gate, 2), ask(gate, 3)
        assert said(first) == "one"
        assert second.header("content-encoding") == "gzip", "a flow file holds the bytes of the wire"
        assert json.loads(gzip.decompress(second.body))["choices"][0]["message"]["content"] == "two"
        assert third.body.startswith(b"data: ") and third.body.endswith(b"data: [DONE]\n\n")
        assert (third.header("transfer-encoding"), third.ended) == ("chunked", "complete")
        missed = ask(gate, 4)
        assert missed.header("x-rewind-miss") is not None, "its body passed by mitmproxy as a stream"
        refused = ask(gate, 5)
        assert (refused.status, refused.ended) == (0, "cut")
        half = ask(gate, 6)
        assert (half.status, half.body, half.ended) == (200, b'{"half":', "cut")
        tool = send(gate, message("GET", "/tool?token=x", "intern.example"), "intern.example")
        assert tool.body == b"tool", "a host that is no model's is played as well"
        converse(gate)
    assert not any(b"sk-proj-" in path.read_bytes() for path in bench.home.rglob("*") if path.is_file())


def converse(gate: Gate) -> None:
    """The agent's half of the WebSocket that was recorded."""
    host = "api.openai.com"
    way: dict[str, Any] = {"sock": gate.tunnel(host), "ssl": gate.trusting(), "proxy": None, "open_timeout": PATIENCE}
    with connect(f"wss://{host}/v1/realtime?model=m", **way) as line:
        line.send('{"say":"hi ü"}')
        assert line.recv(PATIENCE) == '{"said":"hello"}'
        assert line.recv(PATIENCE) == b"\x00\xff"


def test_where_mitmproxy_is_not_the_hint_leads_there(flows: tuple[Lab, Path]) -> None:
    bench, file = flows
    refused = bench.rewind("import", str(file))
    assert refused.code == 6
    assert "mitmdump -nr FILE --set hardump=flows.har" in refused.talk
    assert not bench.home.exists() or json.loads(bench.rewind("list", "--json").ok().stdout)["sessions"] == []
    beside_mitmproxy(bench, "mitmdump", "-nr", file, "--set", "hardump=flows.har").ok()
    imported = taken_in(bench, bench.folder / "flows.har")
    assert imported.tool == "HAR (mitmproxy)"
    with playing(bench, imported.session_id) as gate:
        assert [said(ask(gate, number)) for number in (1, 2)] == ["one", "two"]
        third = ask(gate, 3)
        assert "Grüße" in third.body.decode()
        converse(gate)
