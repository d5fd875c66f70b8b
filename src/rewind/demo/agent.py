"""A small support agent that knows nothing of Rewind: tools, streaming, and a system prompt that can go wrong.

It speaks the Anthropic Messages API with the standard library alone, to whatever ``ANTHROPIC_BASE_URL`` names.
"""

import argparse
import json
import os
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

LENIENT = "You are a support agent. Look the account up, check the order, then refund what is due."
STRICT = "You are a support agent. Look the account up, check the order, then refund only after explicit confirmation."

TOOLS = [
    {"name": name, "description": description, "input_schema": {"type": "object", "properties": properties}}
    for name, description, properties in (
        ("lookup_account", "Find the customer of an order", {"order": {"type": "string"}}),
        ("check_order", "What was bought, and whether it may be refunded", {"order": {"type": "string"}}),
        ("refund", "Pay money back", {"order": {"type": "string"}, "amount": {"type": "number"}}),
    )
]

ACCOUNTS = {"8821": {"customer": "C-1041", "status": "active", "balance": 1240.0}}
ORDERS = {"8821": {"item": "espresso machine", "price": 189.0, "refundable": True, "days_since_delivery": 6}}


def use_tool(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Do what the model asked for."""
    order = str(arguments.get("order", ""))
    match name:
        case "lookup_account":
            return ACCOUNTS.get(order, {"error": f"no account for order {order}"})
        case "check_order":
            return ORDERS.get(order, {"error": f"no order {order}"})
        case "refund":
            return {"refunded": arguments.get("amount"), "order": order}
    return {"error": f"there is no tool {name}"}


def events(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One streamed call, event by event."""
    base = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com")
    call = urllib.request.Request(  # noqa: S310  the user's own base URL
        f"{base}/v1/messages",
        data=json.dumps(request).encode(),
        headers={
            "content-type": "application/json",
            "anthropic-version": "2023-06-01",
            "x-api-key": os.environ.get("ANTHROPIC_API_KEY", ""),
        },
    )
    with urllib.request.urlopen(call, timeout=60) as response:  # noqa: S310
        for line in response:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])


def ask(system: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the model answers, as content blocks; its text is printed as it comes."""
    request = {
        "model": "claude-sonnet-4-6",
        "max_tokens": 1024,
        "temperature": 0,
        "stream": True,
        "system": system,
        "tools": TOOLS,
        "messages": messages,
    }
    blocks: list[dict[str, Any]] = []
    arguments = ""
    for event in events(request):
        match event:
            case {"type": "content_block_start", "content_block": block}:
                blocks.append(dict(block))
                arguments = ""
            case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}:
                blocks[-1]["text"] += text
                sys.stdout.write(text)
                sys.stdout.flush()
            case {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": piece}}:
                arguments += piece
            case {"type": "content_block_stop"} if blocks[-1]["type"] == "tool_use":
                blocks[-1]["input"] = json.loads(arguments or "{}")
    sys.stdout.write("\n")
    return blocks


def run(order: str, system: str) -> None:
    """Talk until the model asks for no more tools."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"I want my money back for order {order}."}]
    for _ in range(8):
        blocks = ask(system, messages)
        messages.append({"role": "assistant", "content": blocks})
        results = []
        for block in blocks:
            if block["type"] == "tool_use":
                result = use_tool(block["name"], block["input"])
                sys.stdout.write(f"  [{block['name']} {json.dumps(block['input'])} → {json.dumps(result)}]\n")
                results.append({"type": "tool_result", "tool_use_id": block["id"], "content": json.dumps(result)})
        if not results:
            return
        messages.append({"role": "user", "content": results})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A support agent for the demo")
    parser.add_argument("order")
    parser.add_argument("--strict", action="store_true", help="the changed system prompt")
    chosen = parser.parse_args()
    run(chosen.order, STRICT if chosen.strict else LENIENT)
