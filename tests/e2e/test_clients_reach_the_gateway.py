"""Real clients, as child processes with the variables of ``prepare``, reach a stand-in for the gateway."""

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rewind.gateway.authority import Authority
from rewind.gateway.certificates import make_ca
from rewind.gateway.environment import prepare
from rewind.providers.hosts import LLM_HOSTS, HostRules, hosts_from_environment

pytestmark = pytest.mark.e2e

NODE_MODULES = Path(__file__).parents[1] / "support" / "node" / "node_modules"
MESSAGE = "from the gateway"
CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": MESSAGE}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": MESSAGE}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
GEMINI = {"candidates": [{"content": {"role": "model", "parts": [{"text": MESSAGE}]}, "finishReason": "STOP"}]}


@dataclass(frozen=True)
class Seen:
    door: str
    """``connect``, ``sni``, ``absolute`` or ``plain``."""
    host: str
    path: str


class StandIn:
    """One loopback port with the gateway's doors; answers every request with a fixed JSON."""

    def __init__(self, authority: Authority) -> None:
        self.authority = authority
        self.seen: list[Seen] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._welcome, args=(sock,), daemon=True).start()

    def _welcome(self, sock: socket.socket) -> None:
        sock.settimeout(20)
        try:
            with sock:
                if sock.recv(1, socket.MSG_PEEK) == b"\x16":
                    with self.authority.sni_context().wrap_socket(sock, server_side=True) as secure:
                        self._serve(secure, "sni", getattr(secure, "rewind_server_name", ""))
                    return
                if sock.recv(8, socket.MSG_PEEK) == b"CONNECT ":
                    target = _head(sock).split()[1].decode()
                    sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    host = target.rpartition(":")[0]
                    if sock.recv(1, socket.MSG_PEEK) != b"\x16":
                        self._serve(sock, "connect", target)
                        return
                    context = self.authority.server_context(host)
                    with context.wrap_socket(sock, server_side=True) as secure:
                        self._serve(secure, "connect", host)
                    return
                self._serve(sock, "plain", "")
        except (OSError, ssl.SSLError):
            return  # the client refused our certificate, or has heard enough; the test looks at the client

    def _serve(self, sock: socket.socket, door: str, host: str) -> None:
        while head := _head(sock):
            lines = head.decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            path = lines[0].split(" ")[1]
            through = door
            if path.startswith("http://"):
                authority, _, path = path.removeprefix("http://").partition("/")
                path, through, host = "/" + path, "absolute", authority
            elif door == "plain":
                host = headers["host"]
            _drain(sock, headers)
            self.seen.append(Seen(through, host, path))
            answer = GEMINI if "generateContent" in path else ANTHROPIC if "messages" in path else CHAT
            body = json.dumps(answer).encode()
            sock.sendall(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
            )


def _head(sock: socket.socket) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = sock.recv(1)
        if not byte:
            return b""
        head += byte
    return head


def _drain(sock: socket.socket, headers: dict[str, str]) -> None:
    left = int(headers.get("content-length", 0))
    while left > 0:
        left -= len(sock.recv(min(left, 65536)))
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while not body.endswith(b"0\r\n\r\n"):
            body += sock.recv(1)


@pytest.fixture
def gateway() -> Iterator[StandIn]:
    rules = HostRules((*LLM_HOSTS, "llm.example.org", "127.0.0.1", "localhost"))
    stand_in = StandIn(Authority(make_ca(rules), rules))
    yield stand_in
    stand_in.close()


USERS_OWN = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k", "PYTHONWARNINGS": "error"}


def run(gateway: StandIn, folder: Path, command: list[str], **variables: str) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), **USERS_OWN, **variables}
    rules = HostRules((*LLM_HOSTS, *hosts_from_environment(env)))
    child = prepare(folder, env, port=gateway.port, authority_pem=gateway.authority.ca.certificate_pem, rules=rules)
    return subprocess.run(
        command, env=env | child.variables, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def python(gateway: StandIn, folder: Path, code: str, **variables: str) -> str:
    done = run(gateway, folder, [sys.executable, "-c", code], **variables)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "the hook is quiet"
    return done.stdout.strip()


URLLIB = "import urllib.request as u; print(u.urlopen('https://api.openai.com/v1/x').read().decode())"
REQUESTS = "import requests; print(requests.get('https://api.openai.com/v1/x').text)"
URLLIB3 = "import urllib3; print(urllib3.PoolManager().request('GET', 'https://api.openai.com/v1/x').data.decode())"
AIOHTTP = """
import asyncio, aiohttp
async def main():
    async with aiohttp.ClientSession() as session, session.get('URL') as response:
        print(await response.text())
"""
OVER_TLS = AIOHTTP.replace("URL", "https://api.openai.com/v1/x")
RUN = "asyncio.run(main())\n"
RUN_UVLOOP = "import uvloop\nuvloop.run(main())\n"
ASYNC_TRANSPORT = """
import asyncio, httpx2
async def main():
    async with httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport()) as client:
        print((await client.get('https://api.openai.com/v1/x')).text)
"""
STREAMS = """
import asyncio, ssl
async def main():
    reader, writer = await asyncio.open_connection('api.openai.com', 443, ssl=ssl.create_default_context())
    writer.write(b'GET /v1/x HTTP/1.1\\r\\nHost: api.openai.com\\r\\n\\r\\n')
    head = await reader.readuntil(b'\\r\\n\\r\\n')
    print((await reader.readexactly(int(head.split(b'length: ')[1].split()[0]))).decode())
    writer.close()
    await writer.wait_closed()
"""
OWN_ROOTS = """
import ssl, urllib3, certifi
pool = urllib3.PoolManager(ssl_context=ssl.create_default_context(cafile=certifi.where()))
print(pool.request('GET', 'https://api.openai.com/v1/x').data.decode())
"""


@pytest.mark.parametrize(
    ("code", "door"),
    [
        pytest.param(URLLIB, "connect", id="urllib"),
        pytest.param(REQUESTS, "connect", id="requests"),
        pytest.param(URLLIB3, "sni", id="urllib3"),
        pytest.param(OWN_ROOTS, "sni", id="urllib3-with-certifi"),
        pytest.param(OVER_TLS + RUN, "sni", id="aiohttp"),
        pytest.param(OVER_TLS + RUN_UVLOOP, "sni", id="aiohttp-uvloop"),
        pytest.param(ASYNC_TRANSPORT + RUN, "sni", id="httpx2-async-own-transport"),
        pytest.param(ASYNC_TRANSPORT + RUN_UVLOOP, "sni", id="httpx2-async-own-transport-uvloop"),
        pytest.param(STREAMS + RUN, "sni", id="asyncio-streams"),
        pytest.param(STREAMS + RUN_UVLOOP, "sni", id="uvloop-streams"),
    ],
)
def test_python_libraries_reach_the_gateway(gateway: StandIn, tmp_path: Path, code: str, door: str) -> None:
    assert json.loads(python(gateway, tmp_path, code)) == CHAT
    assert gateway.seen == [Seen(door, "api.openai.com", "/v1/x")]


OPENAI = "messages=[{'role': 'user', 'content': 'hi'}], model='m'"
OPENAI_SYNC = f"import openai; print(openai.OpenAI().chat.completions.create({OPENAI}).choices[0].message.content)"
OPENAI_ASYNC = f"""
import asyncio, openai
async def main():
    async with openai.AsyncOpenAI() as client:
        print((await client.chat.completions.create({OPENAI})).choices[0].message.content)
asyncio.run(main())
"""
ANTHROPIC_SDK = (
    f"import anthropic; print(anthropic.Anthropic().messages.create({OPENAI}, max_tokens=9).content[0].text)"
)
GENAI = """
from google import genai
with genai.Client(api_key='k') as client:
    print(client.models.generate_content(model='m', contents='hi').text)
"""


@pytest.mark.parametrize(
    ("code", "host"),
    [
        pytest.param(OPENAI_SYNC, "api.openai.com", id="openai"),
        pytest.param(OPENAI_ASYNC, "api.openai.com", id="openai-async"),
        pytest.param(ANTHROPIC_SDK, "api.anthropic.com", id="anthropic"),
        pytest.param(GENAI, "generativelanguage.googleapis.com", id="google-genai"),
    ],
)
def test_python_sdks_reach_the_gateway(gateway: StandIn, tmp_path: Path, code: str, host: str) -> None:
    # The SDKs' own deprecation warnings are not the subject.
    assert python(gateway, tmp_path, code, PYTHONWARNINGS="ignore") == MESSAGE
    assert [seen.host for seen in gateway.seen] == [host]


@pytest.mark.parametrize(
    ("base_url", "host"),
    [
        ("http://llm.example.org:8000/v1", "llm.example.org:8000"),
        ("http://localhost:8000/v1", "localhost:8000"),
        ("http://127.0.0.1:8000/v1", "127.0.0.1:8000"),
    ],
)
@pytest.mark.parametrize("loop", [RUN, RUN_UVLOOP], ids=["asyncio", "uvloop"])
def test_a_client_that_ignores_proxies_is_brought_in_for_a_plain_base_url(
    gateway: StandIn, tmp_path: Path, base_url: str, host: str, loop: str
) -> None:
    code = AIOHTTP.replace("URL", base_url + "/models") + loop
    assert json.loads(python(gateway, tmp_path, code, OPENAI_BASE_URL=base_url)) == CHAT
    assert gateway.seen == [Seen("plain", host, "/v1/models")]


def test_a_no_proxy_that_names_the_model_server_does_not_hide_it(gateway: StandIn, tmp_path: Path) -> None:
    code = "import requests; print(requests.get('http://llm.example.org:8000/v1/models').text)"
    base = {"OPENAI_BASE_URL": "http://llm.example.org:8000/v1", "NO_PROXY": "example.org,other.test"}
    assert json.loads(python(gateway, tmp_path, code, **base)) == CHAT
    assert gateway.seen == [Seen("absolute", "llm.example.org:8000", "/v1/models")]


def test_python_without_site_still_runs(gateway: StandIn, tmp_path: Path) -> None:
    for switch in ("-S", "-I", "-E"):
        done = run(gateway, tmp_path, [sys.executable, switch, "-c", "import socket; print('ran')"])
        assert (done.stdout, done.stderr) == ("ran\n", "")


def test_the_users_own_sitecustomize_runs_too(gateway: StandIn, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.seen = __file__\n")
    shown = python(
        gateway, tmp_path, "import sitecustomize; print(seen, sitecustomize.__file__)", PYTHONPATH=str(tmp_path)
    )
    own = str(tmp_path / "sitecustomize.py")
    assert shown == f"{own} {own}"


def test_an_error_in_the_users_own_sitecustomize_is_told_as_ever(gateway: StandIn, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise RuntimeError('mine')\n")
    without = subprocess.run(
        [sys.executable, "-c", "print(1)"],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    with_us = run(gateway, tmp_path, [sys.executable, "-c", "print(1)"], PYTHONPATH=str(tmp_path))
    assert (with_us.stdout, with_us.stderr) == (without.stdout, without.stderr)
    assert "mine" in with_us.stderr


def test_names_that_are_not_recorded_resolve_as_ever(gateway: StandIn, tmp_path: Path) -> None:
    code = """
import socket
print(socket.getaddrinfo('localhost', 443)[0][4][0] in ('127.0.0.1', '::1'), socket.gethostbyname('localhost'))
with socket.create_server(('127.0.0.1', 0)) as server:
    with socket.create_connection(server.getsockname()) as client:
        print(client.getpeername() == server.getsockname())
"""
    assert python(gateway, tmp_path, code).split() == ["True", "127.0.0.1", "True"]


NODE_FETCH = "fetch('https://api.openai.com/v1/x').then((r) => r.text()).then(console.log)"
NODE_HTTPS = "require('https').get('https://api.openai.com/v1/x', (r) => r.pipe(process.stdout))"
NODE_OWN_ROOTS = """
const ca = require('tls').rootCertificates[0];
require('https').get('https://api.openai.com/v1/x', { ca }, (r) => r.pipe(process.stdout));
"""
NODE_TLS = """
const s = require('tls').connect(443, 'api.openai.com', () =>
  s.write('GET /v1/x HTTP/1.1\\r\\nHost: api.openai.com\\r\\n\\r\\n'));
s.once('data', (d) => { console.log(d.toString().split('\\r\\n\\r\\n')[1]); s.end(); });
"""
NODE_WORKER = f"""
const {{ Worker }} = require('worker_threads');
new Worker({json.dumps(NODE_FETCH)}, {{ eval: true }});
"""
NODE_CHILD = f"""
require('child_process').spawn(process.execPath, ['-e', {json.dumps(NODE_HTTPS)}], {{ stdio: 'inherit' }});
"""


def node(gateway: StandIn, folder: Path, code: str, *, kind: str = "commonjs", **variables: str) -> str:
    executable = shutil.which("node")
    if executable is None:
        pytest.skip("node is not installed")
    done = run(gateway, folder, [executable, f"--input-type={kind}", "-e", code], **variables)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "the hook is quiet"
    return done.stdout.strip()


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(NODE_FETCH, id="fetch"),
        pytest.param(NODE_HTTPS, id="https"),
        pytest.param(NODE_OWN_ROOTS, id="https-own-roots"),
        pytest.param(NODE_TLS, id="tls"),
        pytest.param(NODE_WORKER, id="worker"),
        pytest.param(NODE_CHILD, id="child-process"),
    ],
)
def test_node_reaches_the_gateway(gateway: StandIn, tmp_path: Path, code: str) -> None:
    assert json.loads(node(gateway, tmp_path, code)) == CHAT
    assert [(seen.host, seen.path) for seen in gateway.seen] == [("api.openai.com", "/v1/x")]


@pytest.mark.parametrize(
    "code",
    [
        "fetch('http://127.0.0.1:8000/v1/models').then((r) => r.text()).then(console.log)",
        "require('http').get('http://127.0.0.1:8000/v1/models', (r) => r.pipe(process.stdout))",
    ],
    ids=["fetch", "http"],
)
def test_node_reaches_the_gateway_for_a_plain_base_url(gateway: StandIn, tmp_path: Path, code: str) -> None:
    base = {"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1", "NO_PROXY": "localhost,127.0.0.1"}
    assert json.loads(node(gateway, tmp_path, code, **base)) == CHAT
    assert [(seen.host, seen.path) for seen in gateway.seen] == [("127.0.0.1:8000", "/v1/models")]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("fetch('http://vllm.test:8000/v1/models').then((r) => r.text()).then(console.log)", "commonjs"),
        (
            "import { get } from 'node:http'; get('http://vllm.test:8000/v1/models', (r) => r.pipe(process.stdout))",
            "module",
        ),
    ],
    ids=["fetch", "http"],
)
def test_node_reaches_the_gateway_over_plain_http_to_a_host_nobody_named(
    gateway: StandIn, tmp_path: Path, code: str, kind: str
) -> None:
    assert json.loads(node(gateway, tmp_path, code, kind=kind)) == CHAT
    assert gateway.seen == [Seen("plain", "vllm.test:8000", "/v1/models")]


def test_what_node_says_to_others_over_tcp_goes_to_them(gateway: StandIn, tmp_path: Path) -> None:
    code = """
const net = require('net');
const server = net.createServer((s) => s.end('hello')).listen(0, '127.0.0.1', () =>
  net.connect(server.address().port, '127.0.0.1').on('data', (d) => { console.log(String(d)); server.close(); }));
"""
    assert node(gateway, tmp_path, code) == "hello"
    assert gateway.seen == []


NODE_SDKS = {
    "openai": """
import OpenAI from 'openai';
const done = await new OpenAI().chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });
console.log(done.choices[0].message.content);
""",
    "@anthropic-ai/sdk": """
import Anthropic from '@anthropic-ai/sdk';
const asked = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] };
console.log((await new Anthropic().messages.create(asked)).content[0].text);
""",
}


@pytest.mark.parametrize("name", NODE_SDKS)
def test_node_sdks_reach_the_gateway(gateway: StandIn, tmp_path: Path, name: str) -> None:
    if not (NODE_MODULES / name).is_dir():
        pytest.skip(f"{name} is not installed in tests/support/node (npm ci)")
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    assert node(gateway, tmp_path, NODE_SDKS[name], kind="module") == MESSAGE


def test_curl_reaches_the_gateway(gateway: StandIn, tmp_path: Path) -> None:
    done = run(gateway, tmp_path, ["curl", "-sS", "https://api.openai.com/v1/x"])
    assert json.loads(done.stdout) == CHAT, done.stderr
    assert gateway.seen == [Seen("connect", "api.openai.com", "/v1/x")]


JAVA = """
import java.net.*; import java.net.http.*; import java.io.*;
public class Client {
    public static void main(String[] args) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(args[0])).build();
        System.out.println(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body());
        var connection = (HttpURLConnection) new URL(args[0]).openConnection();
        System.out.println(new String(connection.getInputStream().readAllBytes()));
    }
}
"""


def test_java_reaches_the_gateway_from_a_folder_with_a_blank(gateway: StandIn, tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("java is not installed")
    folder = tmp_path / "with blank"
    folder.mkdir()
    (folder / "Client.java").write_text(JAVA)
    for url in ("https://api.openai.com/v1/x", "http://localhost:8000/v1/x"):
        done = run(gateway, folder, ["java", "Client.java", url], OPENAI_BASE_URL="http://localhost:8000")
        assert [json.loads(line) for line in done.stdout.splitlines()] == [CHAT, CHAT], done.stderr


STRANGER = "bank.example.com"
REFUSALS = {
    "python": [sys.executable, "-c", f"import urllib.request as u; print(u.urlopen('https://{STRANGER}/').status)"],
    "curl": ["curl", "-sS", f"https://{STRANGER}/"],
    "node": [
        "node",
        "-e",
        f"""
const tunnel = require('http').request({{ host: '127.0.0.1', port: process.env.REWIND_GATEWAY_PORT,
  method: 'CONNECT', path: '{STRANGER}:443' }});
tunnel.on('connect', (_, socket) => require('tls').connect({{ socket, servername: '{STRANGER}' }},
  () => {{ console.log('accepted'); process.exit(0); }})
  .on('error', (e) => {{ console.error(e.code + e); process.exit(3); }}));
tunnel.end();
""",
    ],
}


@pytest.mark.parametrize("client", REFUSALS)
def test_under_the_runs_ca_other_hosts_are_refused(gateway: StandIn, tmp_path: Path, client: str) -> None:
    if shutil.which(REFUSALS[client][0]) is None:
        pytest.skip(f"{client} is not installed")
    careless = Authority(gateway.authority.ca, HostRules((), all_hosts=True))
    gateway.authority = careless
    done = run(gateway, tmp_path, REFUSALS[client])
    assert done.returncode != 0
    assert "permitted subtree" in done.stderr.lower() or "PERMITTED" in done.stderr, done.stderr
    assert gateway.seen == []


@pytest.mark.parametrize("door", ["sni", "connect"])
def test_without_constraints_any_host_is_accepted(tmp_path: Path, door: str) -> None:
    """The other side of the test above, for ``--all-hosts``: it is the constraint that refuses, nothing else."""
    rules = HostRules((), all_hosts=True)
    stand_in = StandIn(Authority(make_ca(rules), rules))
    env = {"PATH": os.environ["PATH"]}
    child = prepare(tmp_path, env, port=stand_in.port, authority_pem=stand_in.authority.ca.certificate_pem, rules=rules)
    code = (URLLIB3 if door == "sni" else URLLIB).replace("api.openai.com", STRANGER)
    done = subprocess.run(
        [sys.executable, "-c", code], env=env | child.variables, capture_output=True, text=True, check=False
    )
    stand_in.close()
    assert json.loads(done.stdout) == CHAT, done.stderr
    assert stand_in.seen == [Seen(door, STRANGER, "/v1/x")]
