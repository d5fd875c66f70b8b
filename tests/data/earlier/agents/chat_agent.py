"""OpenAI Chat Completions: a refused call tried again, two calls at once, an answer that is left early."""

import gzip
import json
import os
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

BASE = os.environ["OPENAI_BASE_URL"]


def ask(text: str, *, stream: bool = False, lines: int | None = None) -> str:
    body = {"model": "gpt-4o-mini", "stream": stream, "messages": [{"role": "user", "content": text}]}
    headers = {
        "content-type": "application/json",
        "authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", ""),
    }
    request = urllib.request.Request(f"{BASE}/chat/completions", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            if lines is None:
                body_bytes = answer.read()
                return (
                    gzip.decompress(body_bytes) if answer.headers.get("content-encoding") else body_bytes
                ).decode()
            return "".join(answer.readline().decode() for _ in range(lines))
    except urllib.error.HTTPError as refused:
        return f"{refused.code}"


print(ask("busy?"))
print(ask("busy?"))
with ThreadPoolExecutor(2) as pool:
    for said in pool.map(ask, ["left", "right"]):
        print(said)
print(ask("count", stream=True, lines=3))
print(ask("count on", stream=True))
sys.exit(0)
