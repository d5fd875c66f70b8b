"""A loop of its own around the OpenAI client, which asks about a word of its command line."""

import json
import sys
from pathlib import Path

from openai import OpenAI

client = OpenAI()
parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
tools = [{"type": "function", "function": {"name": "read_note", "parameters": parameters}}]
messages = [{"role": "user", "content": f"Who keeps the light at {sys.argv[1]}?"}]
while True:
    answer = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=tools).choices[0].message
    if not answer.tool_calls:
        break
    messages.append(answer.model_dump(exclude_none=True))
    for call in answer.tool_calls:
        text = Path(json.loads(call.function.arguments)["path"]).read_text()
        messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
print(answer.content)
