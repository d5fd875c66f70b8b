"""Decide about a return: look the order up, read the queue, then ask the model what to do.

    returns_desk.py DAYS QUEUE

The provider at OPENAI_BASE_URL decides; DAYS and QUEUE are what the two tools answer.
"""

import json
import os
import sys
from typing import Any
from urllib.request import Request, urlopen

TOOLS = [
    {"type": "function", "function": {"name": name, "description": name, "parameters": {"type": "object"}}}
    for name in ("order_of", "queue_length", "refund")
]


def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    body = json.dumps({"model": "gpt-4o", "messages": messages, "tools": TOOLS}).encode()
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    with urlopen(Request(url, body, {"content-type": "application/json"}), timeout=30) as answer:
        message: dict[str, Any] = json.load(answer)["choices"][0]["message"]
        return message


def main() -> None:
    days, queue = (int(word) for word in sys.argv[1:3])
    results = {
        "order_of": {"order": "A-17", "days_since_delivery": days, "status": "delivered"},
        "queue_length": {"waiting": queue},
        "refund": {"done": True},
    }
    messages: list[dict[str, Any]] = [{"role": "user", "content": "I want to send order A-17 back."}]
    while (said := ask(messages)).get("tool_calls"):
        messages.append(said)
        for call in said["tool_calls"]:
            result = json.dumps(results[call["function"]["name"]])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    print(said["content"])


main()
