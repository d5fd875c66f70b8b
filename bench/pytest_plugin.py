"""``python -m bench.pytest_plugin``: what the plugin costs: for everybody at start-up, and for each test it plays.

Start-up: pytest in an empty folder, with no plugin but ours and with none at all, in turn.

A test: the same body, one call of the OpenAI SDK by a client that the module made, in one pytest process each: its
answer comes from a cassette (``rewind``), from a transport that hands a stored answer out without any socket
(``stub``), or, for comparison, from vcrpy's cassette (``pytest-recording``). What is counted is the time from the
beginning of a test's setup to the end of its teardown, as a plugin sees it, less that of the stub; and the work of all
threads of the process in that time, which says more where others are at work on the machine. The first test of a
process is told apart: it pays for the imports.
"""

import argparse
import http.server
import json
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench import machine
from bench.certificates import make_certificates
from bench.traffic import HOST

KINDS = ("stub", "rewind", "pytest-recording")
ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1762000000,
    "model": "gpt-4o-mini",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "word " * 300}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 500, "completion_tokens": 300, "total_tokens": 800},
}
CONFTEST = """
import json, os, time
import pytest

taken = []

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    began = time.perf_counter(), time.process_time()
    result = yield
    taken.append((time.perf_counter() - began[0], time.process_time() - began[1]))
    return result

def pytest_unconfigure():
    if taken:
        with open(os.environ["BENCH_TAKEN"], "w") as file:
            json.dump(taken, file)
"""
TESTS = """
import json, os
import httpx2, pytest
from openai import OpenAI

KIND = os.environ["BENCH_KIND"]
ANSWER = json.loads(os.environ["BENCH_ANSWER"])
stub = httpx2.Client(transport=httpx2.MockTransport(lambda request: httpx2.Response(200, json=ANSWER)))
client = OpenAI(base_url="https://{host}/v1", api_key="sk-nobody", http_client=stub if KIND == "stub" else None)
pytestmark = {{"rewind": [pytest.mark.rewind], "pytest-recording": [pytest.mark.vcr]}}.get(KIND, [])

@pytest.mark.parametrize("number", range({tests}))
def test_call(number):
    system = {{"role": "system", "content": "You are a support agent. " * 80}}
    messages = [system, {{"role": "user", "content": str(number)}}]
    done = client.chat.completions.create(model="gpt-4o-mini", messages=messages)
    assert done.choices[0].message.content.startswith("word")
"""


class Provider(http.server.BaseHTTPRequestHandler):
    """Says the same to everybody."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """It has nothing to say."""


def main() -> int:
    options = parse()
    load = machine.load()
    with tempfile.TemporaryDirectory(prefix="rewind-bench-") as folder:
        root = Path(folder)
        print(f"{machine.description()}; {options.rounds} rounds in turn; load {load:.1f} before\n")
        start_up(root / "empty", options.rounds * 3)
        each_test(root / "project", options.rounds, options.tests)
    print(f"\nload {machine.load():.1f} after")
    return 0


def start_up(folder: Path, rounds: int) -> None:
    folder.mkdir()
    bare, ours = [], []
    run_empty(folder, "-p", "rewind.pytest_plugin.plugin")  # compiled and in memory before anything is timed
    for _ in range(rounds):
        bare.append(run_empty(folder))
        ours.append(run_empty(folder, "-p", "rewind.pytest_plugin.plugin"))
    added = statistics.median(ours) - statistics.median(bare)
    pairs = statistics.median(mine - other for mine, other in zip(ours, bare, strict=True))
    print("| an empty run of pytest, ms | median |\n|---|---|")
    print(f"| without plugins | {1000 * statistics.median(bare):.0f} |")
    print(f"| with rewind's | {1000 * statistics.median(ours):.0f} |")
    print(f"| added (goal: at most 60) | {1000 * added:.1f}; median of pairs {1000 * pairs:.1f} |\n")


def run_empty(folder: Path, *words: str) -> float:
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
        cwd=folder,
        env=environ,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    taken = time.perf_counter() - began
    assert done.returncode == 5, "there are no tests"
    return taken


def each_test(folder: Path, rounds: int, tests: int) -> None:
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_bench.py").write_text(TESTS.format(host=HOST, tests=tests))
    certificates = folder / "certificates"
    certificates.mkdir()
    ca, leaf = make_certificates(certificates)
    with provider(leaf) as port:
        detour = f"--rewind-connect-to={HOST}:443:127.0.0.1:{port}"
        run_tests(folder, "rewind", "--rewind=rewrite", detour, env={"REWIND_UPSTREAM_CA": str(ca)})
        # vcrpy records what it is handed, and does not care whose answer it is: the stub's will do, over a socket.
        resolve = {"BENCH_VCR_PORT": str(port), "SSL_CERT_FILE": str(ca)}
        (folder / "sitecustomize.py").write_text(
            "import os, socket\n"
            "if port := os.environ.get('BENCH_VCR_PORT'):\n"
            "    real = socket.getaddrinfo\n"
            "    socket.getaddrinfo = lambda host, _port, *rest, **more: "
            "real('127.0.0.1', int(port), *rest, **more)\n"
        )
        run_tests(folder, "pytest-recording", "--record-mode=rewrite", env={**resolve, "PYTHONPATH": str(folder)})
    first: dict[str, list[float]] = {kind: [] for kind in KINDS}
    others: dict[str, list[float]] = {kind: [] for kind in KINDS}
    work: dict[str, list[float]] = {kind: [] for kind in KINDS}
    modes = {"rewind": "--rewind=none", "pytest-recording": "--record-mode=none", "stub": "-q"}
    for _ in range(rounds):
        for kind in KINDS:
            taken = run_tests(folder, kind, modes[kind])
            first[kind].append(taken[0][0])
            others[kind] += [wall for wall, _ in taken[1:]]
            work[kind] += [busy for _, busy in taken[1:]]
    stub = statistics.median(others["stub"])
    print("| a test with one call, ms | stub | rewind | pytest-recording |\n|---|---|---|---|")
    rows = {
        "median": {kind: statistics.median(others[kind]) for kind in KINDS},
        "slowest of twenty": {kind: statistics.quantiles(others[kind], n=20)[-1] for kind in KINDS},
        "median, less the stub's (goal: at most 15)": {kind: statistics.median(others[kind]) - stub for kind in KINDS},
        "median of the work, less the stub's": {
            kind: statistics.median(work[kind]) - statistics.median(work["stub"]) for kind in KINDS
        },
        "the first test of a process": {kind: statistics.median(first[kind]) for kind in KINDS},
    }
    for title, row in rows.items():
        print(f"| {title} | {' | '.join(f'{1000 * row[kind]:.1f}' for kind in KINDS)} |")


def run_tests(folder: Path, kind: str, *words: str, env: Mapping[str, str] | None = None) -> list[tuple[float, float]]:
    taken = folder / "taken.json"
    environ = {
        **{name: value for name, value in os.environ.items() if "proxy" not in name.lower() and name != "CI"},
        "BENCH_KIND": kind,
        "BENCH_ANSWER": json.dumps(ANSWER),
        "BENCH_TAKEN": str(taken),
        **(env or {}),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{kind}: {done.stdout}\n{done.stderr}"
    return [(wall, work) for wall, work in json.loads(taken.read_text())]


@contextmanager
def provider(leaf: Path) -> Iterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(leaf)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.pytest_plugin", description="What the pytest plugin costs.")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="of all kinds in turn (5)")
    parser.add_argument("--tests", type=int, default=60, metavar="N", help="in each process (60)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
