"""The messages of a WebSocket in the form in which the gateway logs and plays them: one JSON object a line."""

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

OPS = {1: "text", 2: "binary", 8: "close", 9: "ping", 10: "pong"}  # RFC 6455, 11.8


@dataclass(frozen=True, slots=True)
class Message:
    """One message, whole."""

    from_client: bool
    at: int
    """Microseconds since the connection was made."""
    op: str
    data: bytes


def frame_log(messages: Iterable[Message]) -> bytes:
    """The body of an answer with status 101."""
    return b"".join(
        json.dumps(_entry(message), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        for message in messages
    )


def _entry(message: Message) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "from": "client" if message.from_client else "server",
        "at": max(0, message.at),
        "op": message.op,
        "fin": True,
    }
    if message.op == "text":
        try:
            return {**entry, "text": message.data.decode()}
        except UnicodeDecodeError:
            pass
    return {**entry, "base64": base64.b64encode(message.data).decode()}


def close_payload(code: int, reason: str) -> bytes:
    """What a close frame carries (RFC 6455, 5.5.1); nothing for codes that are never sent."""
    if not 1000 <= code <= 4999 or code in (1004, 1005, 1006, 1015):
        return b""
    return code.to_bytes(2, "big") + reason.encode("utf-8", "replace")[:123]


def read_log(body: bytes) -> list[Message]:
    """The messages of a log; the pieces of one that came in several frames are joined."""
    messages: list[Message] = []
    for line in body.splitlines():
        entry = json.loads(line)
        data = entry["text"].encode() if "text" in entry else base64.b64decode(entry["base64"])
        client = entry["from"] == "client"
        if entry["op"] == "cont":
            _join(messages, client, data)
        else:
            messages.append(Message(client, entry["at"], entry["op"], data))
    return messages


def _join(messages: list[Message], client: bool, data: bytes) -> None:
    for place in range(len(messages) - 1, -1, -1):
        one = messages[place]
        if one.from_client == client and one.op in ("text", "binary"):
            messages[place] = Message(one.from_client, one.at, one.op, one.data + data)
            return
