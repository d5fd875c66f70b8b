"""Decides on a refund with one tool and says so: over Chat Completions, or streamed over Messages.

``shop_agent.py openai|anthropic RULE``; it prints what was decided, one JSON object a line.
"""

import json
import sys

from saying import say

RULE = sys.argv[2]
QUESTION = "My cup arrived broken. Order 4711."
NAME, DESCRIPTION = "decide", "Decide what happens with the order"
SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "action": {"enum": ["refund", "deny"]}},
    "required": ["reason", "action"],
}


def over_chat() -> None:
    from openai import OpenAI

    client = OpenAI()
    function = {"name": NAME, "description": DESCRIPTION, "parameters": SCHEMA}
    tools = [{"type": "function", "function": function}]
    messages: list = [{"role": "system", "content": RULE}, {"role": "user", "content": QUESTION}]
    ask = {"model": "gpt-4o-mini", "temperature": 0.8, "max_tokens": 30, "tools": tools}
    answer = client.chat.completions.create(messages=messages, tool_choice="required", **ask).choices[0].message
    messages.append(answer.model_dump(exclude_none=True))
    for call in answer.tool_calls:
        arguments = json.loads(call.function.arguments)
        say(**arguments)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps({"done": arguments["action"]})})
    words = client.chat.completions.create(messages=messages, tool_choice="none", **ask).choices[0]
    say(text=words.message.content, finish=words.finish_reason)


def over_messages() -> None:
    from anthropic import Anthropic

    client = Anthropic()
    tools = [{"name": NAME, "description": DESCRIPTION, "input_schema": SCHEMA}]
    messages: list = [{"role": "user", "content": QUESTION}]
    ask = {"model": "claude-sonnet-4-5", "max_tokens": 30, "system": RULE, "tools": tools}
    for choice in ("any", "none"):
        with client.messages.stream(messages=messages, tool_choice={"type": choice}, **ask) as stream:
            answer = stream.get_final_message()
        messages.append({"role": "assistant", "content": answer.model_dump()["content"]})
        results = []
        for block in answer.content:
            if block.type == "tool_use":
                say(**block.input)
                done = json.dumps({"done": block.input["action"]})
                results.append({"type": "tool_result", "tool_use_id": block.id, "content": done})
            else:
                say(text=block.text, finish=answer.stop_reason)
        messages.append({"role": "user", "content": results})


over_chat() if sys.argv[1] == "openai" else over_messages()
