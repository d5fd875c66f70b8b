"""The same kind of question through requests, urllib, and aiohttp with its default session."""

import asyncio
import hashlib
import json
import os
import urllib.request

import aiohttp
import requests
from saying import say

URL = "https://api.openai.com/v1/chat/completions"
HEADERS = {"authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'none')}", "content-type": "application/json"}


def question(client: str) -> dict:
    return {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": f"Hello from {client}"}]}


def tell(client: str, status: int, body: bytes) -> None:
    text = json.loads(body)["choices"][0]["message"]["content"]
    say(client=client, status=status, text=text, sha256=hashlib.sha256(body).hexdigest())


answer = requests.post(URL, json=question("requests"), headers=HEADERS, timeout=30)
tell("requests", answer.status_code, answer.content)

request = urllib.request.Request(URL, json.dumps(question("urllib")).encode(), HEADERS)
with urllib.request.urlopen(request, timeout=30) as reply:
    tell("urllib", reply.status, reply.read())


async def with_aiohttp() -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(URL, json=question("aiohttp"), headers=HEADERS) as reply,
    ):
        tell("aiohttp", reply.status, await reply.read())


asyncio.run(with_aiohttp())
