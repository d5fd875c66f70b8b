"""A small customer support agent: one model, two tools. Nothing in here knows that it is tested."""

import json
from typing import Any

from anthropic import Anthropic, AsyncAnthropic
from openai import OpenAI

MODEL = "claude-sonnet-5-5"
SYSTEM = "You are a support agent. Look the account up before you refund anything. Answer in one sentence."
ACCOUNTS = {"8821": {"owner": "Ada", "status": "active", "balance": 1240}}
TOOLS: list[Any] = [
    {
        "name": "lookup_account",
        "description": "The account that an order belongs to",
        "input_schema": {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
    },
    {
        "name": "refund",
        "description": "Pay an order back",
        "input_schema": {
            "type": "object",
            "properties": {"order": {"type": "string"}, "amount": {"type": "number"}},
            "required": ["order", "amount"],
        },
    },
]


def run_tool(name: str, arguments: dict[str, Any]) -> str:
    """What the tool gives back to the model."""
    match name:
        case "lookup_account":
            return json.dumps(ACCOUNTS.get(arguments["order"], {"status": "unknown"}))
        case "refund":
            return json.dumps({"order": arguments["order"], "refunded": arguments["amount"]})
    return json.dumps({"error": f"there is no tool {name}"})


def support(query: str) -> str:
    """Answer a customer."""
    client = Anthropic()
    messages: list[Any] = [{"role": "user", "content": query}]
    while True:
        answer = client.messages.create(model=MODEL, max_tokens=500, system=SYSTEM, tools=TOOLS, messages=messages)
        if answer.stop_reason != "tool_use":
            return "".join(block.text for block in answer.content if block.type == "text")
        messages += _next_turn(answer)


async def run_customer_support_agent(query: str) -> str:
    """The same agent, async."""
    client = AsyncAnthropic()
    messages: list[Any] = [{"role": "user", "content": query}]
    while True:
        answer = await client.messages.create(
            model=MODEL, max_tokens=500, system=SYSTEM, tools=TOOLS, messages=messages
        )
        if answer.stop_reason != "tool_use":
            return "".join(block.text for block in answer.content if block.type == "text")
        messages += _next_turn(answer)


def classify(message: str) -> str:
    """One word for a customer's message, streamed from another provider."""
    stream = OpenAI().chat.completions.create(
        model="gpt-4o-mini", messages=[{"role": "user", "content": f"Classify in one word: {message}"}], stream=True
    )
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices).strip().lower()


def _next_turn(answer: Any) -> list[Any]:
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": run_tool(block.name, block.input)}
        for block in answer.content
        if block.type == "tool_use"
    ]
    said = [block.model_dump(exclude_none=True) for block in answer.content]
    return [{"role": "assistant", "content": said}, {"role": "user", "content": results}]
