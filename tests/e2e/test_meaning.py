"""What a real run means: tools between the calls, retries, its cost, the list, the figures, the search, and MCP."""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from support.answers import json_answer, openai_chat, openai_error
from support.lab import Lab
from support.script import Answer, Playbook, Request

pytestmark = pytest.mark.e2e

MakeLab = Callable[[Playbook], Lab]

USAGE = {"prompt_tokens": 1_000_000, "completion_tokens": 1_000_000, "total_tokens": 2_000_000}
COST_OF_A_CALL = 0.15 + 0.60
"""gpt-4o-mini, a million tokens each way, in US dollars."""

MCP_AGENT = """
import json, urllib.request
def post(number, method, params, **headers):
    body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    accepted = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
    request = urllib.request.Request("https://tools.example.com/mcp", json.dumps(body).encode(), accepted)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["result"]
client = {"name": "t", "version": "1"}
post(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
session = {"mcp-protocol-version": "2025-06-18"}
print(post(2, "tools/list", {}, **session)["tools"][0]["name"])
print(post(3, "tools/call", {"name": "look", "arguments": {"city": "Oslo"}}, **session)["content"][0]["text"])
"""


def with_usage(answer: Answer) -> Answer:
    document = json.loads(answer.body) | {"usage": USAGE}
    return replace(answer, pieces=(json.dumps(document).encode(),))


def orders(request: Request) -> Answer:
    """A busy moment first, then a tool call, then the answer."""
    if request.hit == 1:
        return openai_error(request, 429, "Too many requests", headers=(("retry-after-ms", "1"),))
    if request.json()["messages"][-1]["role"] == "tool":
        return with_usage(openai_chat(request, "Your order is on its way."))
    return with_usage(openai_chat(request, None, [("order_status", {"order": "4711"})]))


def mcp(request: Request) -> Answer:
    results: dict[str, Any] = {
        "initialize": {"protocolVersion": "2025-06-18", "serverInfo": {"name": "atlas", "version": "1.2"}},
        "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "snow"}], "isError": False},
    }
    asked = request.json()
    return json_answer(request, {"jsonrpc": "2.0", "id": asked["id"], "result": results[asked["method"]]})


def test_a_run_of_a_real_agent_is_understood_counted_and_found_again(lab: MakeLab) -> None:
    bench = lab(orders)
    recorded = bench.record("openai_tools.py", options=["--name", "orders", "--tag", "ticket=4711"]).ok()
    # The 429 told no tokens, so it costs nothing that anybody knows of; the two answers do.
    assert re.search(r"\(3 LLM calls, 4,000,000 tokens, \$1\.50, [0-9.]+ s\)", recorded.stderr.decode())

    shown = bench.rewind("inspect", "orders").ok().stdout.decode()
    assert "3 LLM calls in 1 thread, 1 tool call, 1 retry" in shown
    assert re.search(r"^ +1 +llm .*✗ 429 +Too many requests$", shown, re.MULTILINE)
    assert re.search(r"^ +2 +llm .*\$0\.750 .*retry of 1: → order_status", shown, re.MULTILINE)
    assert re.search(r'^2\.1 +tool .*order_status\({"order":"4711"}\) ← .*shipped', shown, re.MULTILINE)
    assert re.search(r"^ +3 +llm .*Your order is on its way\.$", shown, re.MULTILINE)
    context = bench.rewind("inspect", "orders:3", "--context").ok().stdout.decode()
    assert "compared with step 2" in context
    assert "+ added  tool" in context

    assert bench.replay("orders").ok().stderr.count(b"saved $1.50") == 1

    (row,) = json.loads(
        bench.rewind("list", "--tag", "ticket=4711", "--model", "gpt-4o*", "--json").ok().stdout.decode()
    )["sessions"]
    assert (row["name"], row["threads"], row["retries"], row["tags"]) == ("orders", 1, 1, {"ticket": "4711"})
    assert row["cost_usd"] == pytest.approx(2 * COST_OF_A_CALL)
    (again,) = json.loads(bench.rewind("list", "--json").ok().stdout)["sessions"]
    assert again == row, "journals and catalog tell the same"

    stats = json.loads(bench.rewind("stats", "--json").ok().stdout)
    assert stats["total"]["calls"] == 3
    assert stats["total"]["cost_usd"] == pytest.approx(2 * COST_OF_A_CALL)
    assert stats["total"]["retries"] == 1
    assert stats["saved_by_replay"]["cost_usd"] == pytest.approx(2 * COST_OF_A_CALL)

    hits = json.loads(bench.rewind("search", "shipped", "--json").ok().stdout)["hits"]
    assert [(hit["session"], hit["step"]) for hit in hits] == [(recorded.session, 3)]


def test_mcp_is_shown_as_such_with_all_hosts(lab: MakeLab) -> None:
    bench = lab(mcp)
    recorded = bench.record([sys.executable, "-c", MCP_AGENT], options=["--all-hosts"]).ok()
    assert recorded.stdout.split() == [b"look", b"snow"]
    shown = bench.rewind("inspect", recorded.session).ok().stdout.decode()
    kinds = re.findall(r"^ *[0-9]+ +(\S+) ", shown, re.MULTILINE)
    assert kinds == ["mcp", "mcp", "mcp"]
    assert "initialize: atlas 1.2" in shown
    assert "1 tool: look" in shown
    assert re.search(r'→ look\({"city":"Oslo"}\) ← snow', shown)
    assert bench.replay(recorded.session).ok().stdout.split() == [b"look", b"snow"]
