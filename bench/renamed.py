"""``python -m bench.renamed``: a tape of which every request is asked by other names, beside one that is exact.

The same agent is recorded twice. Once its prompts hold what is the same in every run, and once the clock and an id that
it draws, so that no request of the replay is exact. It asks questions one by one, or goes on with conversations of 30
turns.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

AGENT = """
import datetime, http.client, json, os, sys, uuid
port, steps, turns, drawn = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "drawn"
line = http.client.HTTPConnection("127.0.0.1", port)
words = "please look at this order and tell me what is due because the handbook says so " * 30
for step in range(steps):
    if step % turns == 0:
        now = datetime.datetime.now(datetime.UTC).isoformat() if drawn else "noon"
        session = str(uuid.uuid4()) if drawn else "one"
        messages = [{"role": "system", "content": f"It is {now}. Session {session}. Conversation {step}."}]
    messages.append({"role": "user", "content": f"Question number {step}: {words}"})
    body = json.dumps({"model": "gpt-4o-mini", "messages": messages})
    line.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    said = json.load(line.getresponse())["choices"][0]["message"]
    messages.append({"role": "assistant", "content": said["content"]})
"""
ANSWER = (
    b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "It is due."}, "finish_reason": "stop"}]}'
)


class Provider(BaseHTTPRequestHandler):
    """Gives every question the same answer."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, *_: object) -> None:
        pass


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.renamed", description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=3000, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    options = parser.parse_args()
    print(
        f"{options.steps} steps; wall time of `rewind replay`, the agent included; medians of {options.rounds} rounds"
    )
    with tempfile.TemporaryDirectory(prefix="rewind-bench-") as folder:
        for name, turns in (("one by one", 1), ("conversations of 30 turns", 30)):
            exact, drawn = measure(Path(folder), options.steps, turns, options.rounds)
            print(f"{name:28} exact {exact:6.2f} s   renamed {drawn:6.2f} s   {drawn / exact:.2f} times")
    return 0


def measure(folder: Path, steps: int, turns: int, rounds: int) -> tuple[float, float]:
    """Seconds that the exact tape takes, and the one that is asked by other names."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    home = folder / f"store-{turns}"
    times: dict[str, list[float]] = {"fixed": [], "drawn": []}
    for kind in times:
        agent = (sys.executable, "-c", AGENT, str(port), str(steps), str(turns), kind)
        rewind(home, port, "record", "-q", "--name", kind, "--", *agent)
    server.shutdown()
    server.server_close()
    for _ in range(rounds):
        for kind, seconds in times.items():
            began = time.perf_counter()
            rewind(home, port, "replay", kind)
            seconds.append(time.perf_counter() - began)
    return statistics.median(times["fixed"]), statistics.median(times["drawn"])


def rewind(home: Path, port: int, *words: str) -> None:
    """Run a command. Its failure ends the benchmark: a replay with misses would be quick."""
    env = {**os.environ, "REWIND_HOME": str(home), "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"}
    subprocess.run([sys.executable, "-m", "rewind", *words], env=env, check=True, capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
