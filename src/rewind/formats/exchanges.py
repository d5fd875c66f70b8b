"""What another tool recorded, in our words: exchanges that a replay can play, and what got lost on the way."""

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from rewind.dataclass import dataclass
from rewind.errors import BadCassette
from rewind.formats.repair import Remarks, Unreadable, UnusableAddress
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.step import Ending
from rewind.wire.frame_log import read_frame_log

OPCODES = {1: "text", 2: "binary", 8: "close", 9: "ping", 10: "pong"}  # RFC 6455, 11.8
_END_OF_TIME = 253_402_300_800.0  # the end of the year 9999


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignExchange:
    """One request and its answer as the file holds them: nothing is redacted yet."""

    request: HttpRequest
    response: HttpResponse | None
    """``None`` when no answer came, or when the file does not hold it; ``ending`` tells which."""
    started: float | None = None
    """Seconds since 1970, UTC; ``None`` where the file does not say."""
    ms: float | None = None
    """From the request to the end of the answer."""
    ending: Ending | None = Ending.COMPLETE
    """``None``: there was an answer, but the file does not hold it, so there is nothing to play."""
    reason: str | None = None
    """For an ending that is not ``complete``: what happened, in words."""
    note: str | None = None
    """What a reader of this step should know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRecording:
    """All that a file holds, in the order in which it was asked."""

    exchanges: tuple[ForeignExchange, ...]
    tool: str
    """Which tool wrote the file: ``vcrpy``, ``HAR (mitmproxy)``, …"""
    remarks: tuple[str, ...] = ()
    """What could not be taken over as it was, and what was done instead."""


@dataclass(frozen=True, slots=True)
class ForeignAnswer:
    """How a request was answered."""

    response: HttpResponse | None = None
    ending: Ending | None = None
    """``None`` for an answer that cannot be played."""
    reason: str | None = None
    """Why it was cut, or why it cannot be played."""


@dataclass(frozen=True, slots=True)
class WebSocketMessage:
    """One message, whole."""

    from_client: bool
    at: int
    """Microseconds since the connection was made."""
    op: str
    data: bytes


# ── exchanges ────────────────────────────────────────────────────────────────────────────────────────────────


def read_entries(
    entries: list[Any], name: str, read: Callable[[dict[Any, Any]], ForeignExchange], remarks: Remarks
) -> Iterator[ForeignExchange]:
    """Each entry, read; ``name`` is what the format calls one. Raises BadCassette."""
    for number, entry in enumerate(entries, 1):
        match entry:
            case {"request": dict(), "response": dict()}:
                try:
                    yield read(entry)
                except UnusableAddress as problem:
                    remarks.add(f"an {name} was left out: {problem}")
                except Unreadable as problem:
                    raise BadCassette(f"Its {name} {number} cannot be read: {problem}.") from problem
            case _:
                raise BadCassette(f"Its {name} {number} has no request or no response.")


def answered_exchange(
    request: HttpRequest,
    answer: ForeignAnswer,
    remarks: Remarks,
    *,
    started: float | None,
    ms: float | None,
    note: str | None,
) -> ForeignExchange:
    """The exchange; of an answer that cannot be played, the reason becomes a remark and a note."""
    reason = answer.reason
    if answer.ending is None:
        remarks.add(f"an answer cannot be played: {reason}")
        note, reason = "; ".join(filter(None, (note, reason))), None
    return ForeignExchange(
        request=request,
        response=answer.response,
        started=started,
        ms=ms,
        ending=answer.ending,
        reason=reason,
        note=note,
    )


def in_order(exchanges: Iterable[ForeignExchange]) -> tuple[ForeignExchange, ...]:
    """In the order in which they were asked, where each says when that was; else as the file has them."""
    given = tuple(exchanges)
    if any(exchange.started is None for exchange in given):
        return given
    return tuple(sorted(given, key=lambda exchange: exchange.started or 0.0))


def sound_moment(seconds: float | None) -> float | None:
    """``None`` for what is not a moment after 1970 that a calendar has."""
    return seconds if seconds is not None and 0 < seconds < _END_OF_TIME else None


# ── WebSockets ───────────────────────────────────────────────────────────────────────────────────────────────


def websocket_log(messages: Iterable[WebSocketMessage]) -> bytes:
    """The body of an answer with status 101, as the gateway logs and plays it: one JSON object a line."""
    return b"".join(
        json.dumps(_log_line(message), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        for message in messages
    )


def _log_line(message: WebSocketMessage) -> dict[str, Any]:
    side = "client" if message.from_client else "server"
    line: dict[str, Any] = {"from": side, "at": max(0, message.at), "op": message.op, "fin": True}
    if message.op == "text":
        try:
            return {**line, "text": message.data.decode()}
        except UnicodeDecodeError:
            pass
    return {**line, "base64": base64.b64encode(message.data).decode()}


def read_websocket_log(body: bytes) -> list[WebSocketMessage]:
    """The messages of a log; the pieces of one that came in several frames are joined. Raises BadFrameLog."""
    messages: list[WebSocketMessage] = []
    for frame in read_frame_log(body):
        if frame.op != "cont":
            messages.append(WebSocketMessage(frame.from_client, frame.at, frame.op, frame.data))
            continue
        for place in range(len(messages) - 1, -1, -1):
            begun = messages[place]
            if begun.from_client == frame.from_client and begun.op in ("text", "binary"):
                messages[place] = replace(begun, data=begun.data + frame.data)
                break
    return messages
