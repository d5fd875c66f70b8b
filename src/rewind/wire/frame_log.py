"""The log of a WebSocket, as it is recorded: one JSON object a line, in the order in which the frames passed.

``{"from":"client","at":1200,"op":"text","fin":true,"text":"…"}``, with ``base64`` in place of ``text`` for bytes.
"""

import base64
import binascii
import json
from typing import Any

from rewind.dataclass import dataclass

OPERATIONS = ("cont", "text", "binary", "close", "ping", "pong")


class BadFrameLog(ValueError):
    """A line that is not a frame; says which."""


@dataclass(frozen=True, slots=True)
class LoggedFrame:
    """One frame."""

    from_client: bool
    at: int
    """Microseconds since the connection was made."""
    op: str
    """One of :data:`OPERATIONS`."""
    fin: bool
    text: str | None
    """``None`` where it was not text, or not all of it."""
    data: bytes


def read_frame_log(body: bytes) -> list[LoggedFrame]:
    """The frames of a log. Raises BadFrameLog: the body of an answer with status 101 may be anything."""
    return [_frame(number, line) for number, line in enumerate(body.splitlines(), 1)]


def _frame(number: int, line: bytes) -> LoggedFrame:
    try:
        fields: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadFrameLog(f"line {number} is not JSON") from error
    match fields:
        case {"from": "client" | "server" as side, "at": int(at), "op": str(op)} if op in OPERATIONS:
            text, data = _payload(number, fields)
            return LoggedFrame(side == "client", at, op, fields.get("fin") is not False, text, data)
    raise BadFrameLog(f"line {number} is not a frame")


def _payload(number: int, fields: dict[str, Any]) -> tuple[str | None, bytes]:
    match fields:
        case {"text": str(text)}:
            return text, text.encode("utf-8", "surrogatepass")
        case {"base64": str(packed)}:
            try:
                return None, base64.b64decode(packed, validate=True)
            except (binascii.Error, ValueError) as error:
                raise BadFrameLog(f"line {number} is not base64") from error
    raise BadFrameLog(f"line {number} has no content")
