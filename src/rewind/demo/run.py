"""The demo: record a good and a bad run through the real gateway, then replay one with the provider gone.

The provider is a scripted model on 127.0.0.1 that speaks the Anthropic Messages API, streams included. It costs
nothing, but its calls are priced as those of the model that it plays. Its behaviour depends on what it is told, as a
real model's does: with a system prompt that asks for confirmation it stops before the refund.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from rewind.dataclass import dataclass
from rewind.errors import EnvironmentProblem, ExitCode
from rewind.pricing.prices import DEMO_PATH, Prices
from rewind.reading.sessions import cost_of_session
from rewind.runs.record import RecordOptions, RecordResult, record
from rewind.runs.replay import replay
from rewind.runs.replay_options import ReplayOptions
from rewind.store.library import Library
from rewind.text import dollars, number

AGENT = (sys.executable, "-m", "rewind.demo.agent", "8821")
ORDER = "order 8821"
TYPING_SECONDS = 0.01
"""Between two pieces of an answer, so that a stream looks like one."""

Block = tuple[str, str, dict[str, Any] | None]
"""Text, tool name, tool arguments; a tool-less block has no name."""


def answer(request: dict[str, Any]) -> list[Block]:
    """What the model says to this conversation."""
    order = str(request["messages"][0]["content"]).rstrip(".").rpartition(" ")[2]
    results = sum(
        block.get("type") == "tool_result"
        for message in request["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
    )
    match results:
        case 0:
            return [("Understood, I'll look into the account.", "lookup_account", {"order": order})]
        case 1:
            return [("The account is active. Let me check the order.", "check_order", {"order": order})]
        case 2 if "explicit confirmation" in str(request["system"]):
            return [("I cannot complete this action without explicit confirmation.", "", None)]
        case 2:
            return [
                (
                    "It was delivered 6 days ago, so I'll proceed with the refund.",
                    "refund",
                    {"order": order, "amount": 189.0},
                )
            ]
    return [(f"Done: $189.00 for order {order} is on its way back to you.", "", None)]


def stream(request: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """The events of a streamed answer."""
    prompt_tokens = len(json.dumps(request)) // 4
    usage = {"input_tokens": prompt_tokens, "output_tokens": 1}
    message = {"id": f"msg_demo_{number:04d}", "type": "message", "role": "assistant", "model": request["model"]}
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "usage": usage}}
    index = tokens = 0
    tool_used = False
    for text, tool, arguments in answer(request):
        yield {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
        for word in text.split(" "):
            tokens += 1
            piece = word if word == text.split(" ")[-1] else word + " "
            delta = {"type": "text_delta", "text": piece}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
        index += 1
        if tool:
            tool_used = True
            block = {"type": "tool_use", "id": f"toolu_demo_{number:04d}", "name": tool, "input": {}}
            yield {"type": "content_block_start", "index": index, "content_block": block}
            encoded = json.dumps(arguments)
            for piece in (encoded[: len(encoded) // 2], encoded[len(encoded) // 2 :]):
                tokens += 4
                delta = {"type": "input_json_delta", "partial_json": piece}
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
            index += 1
    reason = "tool_use" if tool_used else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": tokens}}
    yield {"type": "message_stop"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "DemoProvider"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in stream(request, self.server.next_number()):
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            time.sleep(TYPING_SECONDS)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is http.server's
        """The demo speaks for itself."""


class DemoProvider(ThreadingHTTPServer):
    """The provider, as a context manager that serves in a thread of its own."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._number = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{DEMO_PATH.rstrip('/')}"

    @property
    def asked(self) -> int:
        """How many calls reached it."""
        return self._number

    def next_number(self) -> int:
        with self._lock:
            self._number += 1
            return self._number

    def __enter__(self) -> "DemoProvider":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demo left behind."""

    code: ExitCode
    """0 when the replay was exact."""
    good: str
    bad: str
    """Ids of the two sessions."""


def run_demo(home: Path, say: Callable[[str], None], prices: Prices) -> Demo:
    """Record, record again, and replay: the main job from end to end."""
    with DemoProvider() as provider:
        variables = {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "sk-ant-demo-key-0001"}
        say(f"A support agent handles {ORDER}. Recording it through the gateway:")
        good = _record(home, "refund-good", AGENT, variables)
        say("")
        say("Somebody changed its system prompt. Recording it again:")
        bad = _record(home, "refund-bad", (*AGENT, "--strict"), variables)
        asked = provider.asked
    say("")
    say("The provider is gone now. Replaying the good run:")
    result = replay(ReplayOptions(session=Library(home).find(good.session_id), home=home))
    exact = result.output == "identical" and result.played == result.total and not result.misses
    worked = good.exit_code == 0 and bad.exit_code == 0
    say(
        f"{result.played}/{result.total} steps replayed · {result.network_calls} network calls · output {result.output}"
    )
    say("")
    for label, run in (("good", good), ("bad", bad)):
        spent = cost_of_session(home, run.session_id, prices)
        say(_line(label, run, dollars(spent.usd if spent is not None else None)))
    say(f"{asked} calls went to the provider while recording, none in the replay.")
    code = ExitCode.AGENT_FAILED if not worked else ExitCode.OK if exact else ExitCode.DIFFERENT
    return Demo(code, good.session_id, bad.session_id)


def _record(home: Path, name: str, command: tuple[str, ...], variables: dict[str, str]) -> RecordResult:
    result = record(RecordOptions(command=command, home=home, name=name, variables=variables))
    if not result.session_id:
        raise EnvironmentProblem(
            f"The demo could not be recorded. {result.broken}", hint="--home DIR, for a store elsewhere"
        )
    return result


def _line(label: str, result: RecordResult, cost: str) -> str:
    calls, tokens = f"{result.llm_calls} LLM calls", f"{number(result.tokens)} tokens"
    return f"{label:5} {result.session_id}  {calls}  {tokens}  {cost}  {result.seconds:.1f} s"
