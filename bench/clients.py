"""``python -m bench.clients``: what a recorded and a replayed call cost with the clients that people use.

Each client makes its calls one after the other over what it takes for a kept-alive connection, as a child process:
directly, recorded, and replayed. The table shows the milliseconds that Rewind adds to the median call.
"""

import argparse
import asyncio
import http.client
import json
import os
import shutil
import ssl
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from bench import machine, traffic
from bench.setup import Setup, surroundings

Ask = Callable[[bytes], object]
PATH = "/v1/chat/completions"
HEADERS = {"Authorization": f"Bearer {traffic.KEY}", "Content-Type": "application/json"}
NODE = """
const [kind, url, calls, file] = process.argv.slice(1);
const text = require('fs').readFileSync(file, 'utf8');
const headers = JSON.parse(process.env.BENCH_HEADERS);
const https = require('https'), agent = new https.Agent({ keepAlive: true });
const ask = kind === 'fetch'
  ? (body) => fetch(url, { method: 'POST', headers, body }).then((answer) => answer.text())
  : (body) => new Promise((done, failed) => https.request(url, { method: 'POST', headers, agent }, (answer) => {
      answer.on('data', () => {}); answer.on('end', done);
    }).on('error', failed).end(body));
(async () => {
  const took = [];
  for (let number = 0; number < calls; number++) {
    const body = text.replace('call-00000000', 'call-' + String(number).padStart(8, '0'));
    const began = performance.now();
    await ask(body);
    took.push(performance.now() - began);
  }
  console.log(JSON.stringify(took));
})();
"""


def with_requests(url: str) -> Iterator[Ask]:
    import requests

    with requests.Session() as session:
        yield lambda body: session.post(url + PATH, data=body, headers=HEADERS, timeout=30).raise_for_status()


def with_urllib3(url: str) -> Iterator[Ask]:
    import urllib3

    with urllib3.PoolManager(ca_certs=os.environ["SSL_CERT_FILE"]) as pool:
        yield lambda body: pool.request("POST", url + PATH, body=body, headers=HEADERS)


def with_httpx(url: str) -> Iterator[Ask]:
    import httpx

    with httpx.Client() as client:
        yield lambda body: client.post(url + PATH, content=body, headers=HEADERS).raise_for_status()


def with_aiohttp(url: str) -> Iterator[Ask]:
    import aiohttp

    with asyncio.Runner() as runner:

        async def opened() -> aiohttp.ClientSession:
            return aiohttp.ClientSession()

        session = runner.run(opened())

        async def call(body: bytes) -> None:
            async with session.post(url + PATH, data=body, headers=HEADERS) as answer:
                await answer.read()

        yield lambda body: runner.run(call(body))
        runner.run(session.close())


def with_http_client(url: str) -> Iterator[Ask]:
    place = urlsplit(url)
    assert place.hostname is not None, "a URL names its host"
    connection = http.client.HTTPSConnection(place.hostname, place.port, context=ssl.create_default_context())

    def ask(body: bytes) -> None:
        connection.request("POST", PATH, body, HEADERS)
        connection.getresponse().read()

    yield ask
    connection.close()


def with_openai(url: str) -> Iterator[Ask]:
    import openai

    with openai.OpenAI(base_url=f"{url}/v1", api_key=traffic.KEY) as client:
        yield lambda body: client.chat.completions.create(**json.loads(body))


def with_anthropic(url: str) -> Iterator[Ask]:
    import anthropic

    with anthropic.Anthropic(base_url=url.replace(traffic.HOST, "api.anthropic.com"), api_key=traffic.KEY) as client:

        def ask(body: bytes) -> None:
            asked = json.loads(body)["messages"]
            client.messages.create(
                model="claude-haiku-4-5", max_tokens=100, system=asked[0]["content"], messages=asked[1:]
            )

        yield ask


PYTHON: dict[str, Callable[[str], Iterator[Ask]]] = {
    "requests": with_requests,
    "requests, base URL": with_requests,
    "urllib3": with_urllib3,
    "httpx": with_httpx,
    "aiohttp": with_aiohttp,
    "http.client": with_http_client,
    "openai": with_openai,
    "anthropic": with_anthropic,
}
OTHERS = {"curl": "curl", "node fetch": "node", "node https": "node"}
"""The command that each needs."""


def body_of(number: int) -> bytes:
    return traffic.call(number).partition(b"\r\n\r\n")[2]


def run_client(name: str, url: str, calls: int) -> None:
    """In the child: make the calls, and print the milliseconds of each as a list."""
    if name.endswith("base URL") and (port := os.environ.get("REWIND_GATEWAY_PORT")):
        url = f"http://127.0.0.1:{port}/openai"
    took = []
    for ask in PYTHON[name](url):
        for number in range(calls):
            body = body_of(number)
            began = time.perf_counter()
            ask(body)
            took.append((time.perf_counter() - began) * 1000)
    print(json.dumps(took))


def command(setup: Setup, name: str, url: str, calls: int) -> list[str]:
    if name in PYTHON:
        return [sys.executable, "-m", "bench.clients", "--client", name, "--url", url, "--calls", str(calls)]
    file = setup.folder / "body.json"
    file.write_bytes(body_of(0))
    if name == "curl":
        fields = [part for key, value in HEADERS.items() for part in ("-H", f"{key}: {value}")]
        each = ["-o", "/dev/null", url + PATH]
        return ["curl", "-sS", *fields, "--data-binary", f"@{file}", "-w", "%{time_total}\n", *(each * calls)]
    return ["node", "-e", NODE, "--", name.removeprefix("node "), url + PATH, str(calls), str(file)]


def measured(setup: Setup, line: list[str], variables: dict[str, str], allowed: tuple[int, ...] = (0,)) -> float:
    """The median call, in ms; the first three have the connection to make."""
    env = setup.environment(**variables, BENCH_HEADERS=json.dumps(HEADERS))
    done = subprocess.run(line, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    if done.returncode not in allowed:
        raise SystemExit(f"{' '.join(line)[:300]}\nended with {done.returncode}: {done.stderr[-2000:]}")
    lines = done.stdout.strip().splitlines()
    took = json.loads(lines[-1]) if lines[-1].startswith("[") else [float(line) * 1000 for line in lines]
    return statistics.median(took[3:])


def round_of(setup: Setup, name: str, calls: int) -> Iterator[tuple[str, float]]:
    """The client once in each way: directly, recorded, replayed."""
    ca = str(setup.upstream_ca)
    trust = dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"), ca)
    yield "direct", measured(setup, command(setup, name, f"https://localhost:{setup.upstream_port}", calls), trust)
    rewind = str(Path(sys.executable).with_name("rewind"))
    home = {"REWIND_HOME": str(setup.folder / "home")}
    line = command(setup, name, f"https://{traffic.HOST}", calls)
    to_upstream = ("--connect-to", f"::127.0.0.1:{setup.upstream_port}", "--upstream-ca", ca)
    yield "recorded", measured(setup, [rewind, "record", "--name", "client", *to_upstream, "--", *line], home)
    yield "replayed", measured(setup, [rewind, "replay", "client", "--", *line], home, allowed=(0, 1))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.clients", description=__doc__)
    parser.add_argument("--calls", type=int, default=60, metavar="N", help="calls of a client in a round")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--only", metavar="NAME", help="measure this client alone")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        run_client(options.client, options.url, options.calls)
        return 0
    names = [*PYTHON, *(name for name, needed in OTHERS.items() if shutil.which(needed))]
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    load = machine.load()
    with surroundings(pinned=False) as setup:
        for _ in range(options.rounds):
            for name in [options.only] if options.only else names:
                for way, ms in round_of(setup, name, options.calls):
                    found[name][way].append(ms)
    print(f"{machine.description()}; load {load:.1f} before, {machine.load():.1f} after; {options.rounds} rounds")
    print("\n| client | direct, ms | recorded | replayed |\n|---|---|---|---|")
    for name, ways in found.items():
        direct, recorded, replayed = (statistics.median(ways[way]) for way in ("direct", "recorded", "replayed"))
        print(f"| {name} | {direct:.2f} | {recorded - direct:+.2f} | {replayed - direct:+.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
