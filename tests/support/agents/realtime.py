"""Talks over a WebSocket: text, binary and a large frame; tells every frame that came back."""

import hashlib
import os

from saying import say
from websockets.sync.client import connect

key = os.environ.get("OPENAI_API_KEY", "none")
with connect(
    "wss://api.openai.com/v1/realtime?model=gpt-realtime",
    additional_headers={"Authorization": f"Bearer {key}"},
    open_timeout=30,
    close_timeout=30,
    max_size=None,
) as line:
    for message in ('{"type":"response.create"}', b"\x00\xff" * 8, "x" * 200_000):
        line.send(message)
        for _answer in range(2):
            got = line.recv(timeout=30)
            data = got.encode() if isinstance(got, str) else got
            digest = hashlib.sha256(data).hexdigest()
            say(kind=type(got).__name__, size=len(data), start=data[:40].decode("latin-1"), sha256=digest)
