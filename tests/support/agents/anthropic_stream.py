"""Reads one Anthropic ``.stream()`` and tells every event on the wire and the finished message."""

import anthropic
from saying import say

client = anthropic.Anthropic(max_retries=0)
question = [{"role": "user", "content": "Tell me a story"}]
texts: list[str] = []
kinds: list[str] = []
error = None
final = None
try:
    raw = client.messages.create(model="claude-sonnet-5-5", max_tokens=100, messages=question, stream=True)
    kinds = [event.type for event in raw]
    with client.messages.stream(model="claude-sonnet-5-5", max_tokens=100, messages=question) as stream:
        texts = list(stream.text_stream)
        final = stream.get_final_message().to_dict()
except Exception as failure:  # noqa: BLE001 - whatever it is, it is what this agent tells
    error = f"{type(failure).__name__}: {failure}"
say(events=len(kinds), kinds=kinds, texts=texts, final=final, error=error)
