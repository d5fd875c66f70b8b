"""Reads one streamed chat completion and tells every chunk. Arguments: question, and after how many chunks to close."""

import sys

import openai
from saying import say

question = sys.argv[1] if len(sys.argv) > 1 else "Tell me a story"
close_after = int(sys.argv[2]) if len(sys.argv) > 2 else None

client = openai.OpenAI(max_retries=0)
pieces: list[str | None] = []
error = None
try:
    stream = client.chat.completions.create(
        model="gpt-4o-mini", messages=[{"role": "user", "content": question}], stream=True
    )
    for chunk in stream:
        pieces.append(chunk.choices[0].delta.content)
        if len(pieces) == close_after:
            stream.close()
            break
except Exception as failure:  # noqa: BLE001 - whatever it is, it is what this agent tells
    error = type(failure).__name__
say(chunks=len(pieces), pieces=pieces, error=error)
