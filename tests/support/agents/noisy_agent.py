"""An agent with tools, described by a file: ``noisy_agent.py openai|anthropic SPEC``; it prints the last answer.

The file names the model, the prompt, the tools, the question, and what each tool gives back, by the tool's name and
the argument it turns on.
"""

import json
import sys

from saying import say

with open(sys.argv[2]) as file:
    SPEC = json.load(file)
RESULTS = {key: list(texts) for key, texts in SPEC["results"].items()}


def result(name: str, arguments: dict) -> str:
    texts = RESULTS[f"{name} {arguments.get('path') or arguments.get('target') or ''}".strip()]
    return texts.pop(0) if len(texts) > 1 else texts[0]


def over_chat() -> None:
    from openai import OpenAI

    client = OpenAI()
    tools = [{"type": "function", "function": {**tool, "parameters": tool["schema"]}} for tool in SPEC["tools"]]
    for tool in tools:
        del tool["function"]["schema"]
    messages: list = [{"role": "system", "content": SPEC["system"]}, {"role": "user", "content": SPEC["question"]}]
    while True:
        answer = client.chat.completions.create(model=SPEC["model"], messages=messages, tools=tools, temperature=0.1)
        said = answer.choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return say(text=said.content)
        for call in said.tool_calls:
            text = result(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


def over_messages() -> None:
    from anthropic import Anthropic

    client = Anthropic()
    tools = [
        {"name": tool["name"], "description": tool["description"], "input_schema": tool["schema"]}
        for tool in SPEC["tools"]
    ]
    ask = {"model": SPEC["model"], "max_tokens": 1024, "system": SPEC["system"], "tools": tools}
    messages: list = [{"role": "user", "content": SPEC["question"]}]
    while True:
        with client.messages.stream(messages=messages, **ask) as stream:
            answer = stream.get_final_message()
        messages.append({"role": "assistant", "content": answer.model_dump()["content"]})
        uses = [block for block in answer.content if block.type == "tool_use"]
        if not uses:
            return say(text=answer.content[0].text)
        results = [
            {"type": "tool_result", "tool_use_id": use.id, "content": result(use.name, use.input)} for use in uses
        ]
        messages.append({"role": "user", "content": results})


over_chat() if sys.argv[1] == "openai" else over_messages()
