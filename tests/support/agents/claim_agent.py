"""Decides on a claim with one call of Chat Completions: ``claim_agent.py RULE``; prints what was decided."""

import json
import os
import sys
import urllib.request

from saying import say

SHAPE = {"type": "object", "properties": {"next": {"enum": ["refund", "deny"]}}, "required": ["next"]}

request = {
    "model": "gpt-4o-mini",
    "temperature": 1.0,
    "max_tokens": 40,
    "messages": [{"role": "system", "content": sys.argv[1]}, {"role": "user", "content": "A cracked plate."}],
    "response_format": {"type": "json_schema", "json_schema": {"name": "decision", "schema": SHAPE}},
}
call = urllib.request.Request(
    "https://api.openai.com/v1/chat/completions",
    data=json.dumps(request).encode(),
    headers={"content-type": "application/json", "authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
)
with urllib.request.urlopen(call, timeout=120) as answer:
    decided = json.loads(json.load(answer)["choices"][0]["message"]["content"])
say(**decided)
