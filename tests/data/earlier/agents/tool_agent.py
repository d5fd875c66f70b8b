"""A session in process: a tool of the agent's own, a note, and a call of a model."""

import json
import os
import urllib.request

import rewind


@rewind.tool
def price(item: str, count: int = 1) -> dict[str, float]:
    return {"item": item, "total": 2.5 * count}


@rewind.session(name="tools")
def run() -> None:
    print(price("tea", count=3))
    rewind.note("asked for a price")
    body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "thank you"}]}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    headers = {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
        print(len(answer.read()))


run()
