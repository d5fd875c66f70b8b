"""Bodies as they should never be: cut, flipped, spliced, and JSON whose values are of another kind than promised.

Every choice comes from the given dice, so a seed tells the whole damage again.
"""

import gzip
import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rewind.model.http import Headers, HttpRequest, HttpResponse
from rewind.wire.eventstream import begins_with_a_frame, read_frames
from support.aws_frames import frame

Dice = random.Random

MEDIA = (
    "application/json",
    "text/event-stream",
    "application/x-ndjson",
    "application/vnd.amazon.eventstream",
    "text/plain; charset=latin-1",
    "application/octet-stream",
    "image/png",
    "",
)
CODINGS = ("gzip", "br", "zstd", "deflate", "gzip, br", "snappy")
DEEP = "@deep@"
"""Stands for a value nested deeper than any writer of JSON would follow."""
DEPTHS = (40, 300, 700, 950, 3_000, 60_000)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**53 + 1, 10**30, 10**400, 0.5, 1e308),
    *(float("nan"), float("inf"), float("-inf")),
    *("", "x", "0", "\ud800", "a\ud83d", "\0", "data: {}\n\n", "9" * 5000, DEEP),
    *([], {}, [[]], [None], {"": None}, {"type": []}, [{"type": {}}], {"index": -1}, {"index": 1e300}),
)


def damaged(dice: Dice, body: bytes, other: bytes) -> bytes:
    """The body after one to three accidents; pieces of ``other`` may end up in it."""
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        body = dice.choice(ACCIDENTS)(dice, body, other)
    return body


def damaged_request(dice: Dice, request: HttpRequest, other: bytes) -> HttpRequest:
    headers = _changed_headers(dice, request.head.headers)
    return HttpRequest(head=replace(request.head, headers=headers), body=damaged(dice, request.body, other))


def damaged_response(dice: Dice, response: HttpResponse, other: bytes) -> HttpResponse:
    head = replace(response.head, headers=_changed_headers(dice, response.head.headers))
    if dice.random() < 0.1:
        head = replace(head, status=dice.choice((101, 200, 204, 302, 400, 404, 429, 500, 529, 999)))
    return replace(response, head=head, body=damaged(dice, response.body, other))


def _changed_headers(dice: Dice, headers: Headers) -> Headers:
    if dice.random() < 0.15:
        others = tuple((name, value) for name, value in headers if name.lower() != "content-type")
        headers = (*others, ("content-type", dice.choice(MEDIA)))
    if dice.random() < 0.05:
        headers = (*headers, ("content-encoding", dice.choice(CODINGS)))
    return headers


# ── accidents to bytes ───────────────────────────────────────────────────────────────────────────────────────


def cut(dice: Dice, body: bytes, other: bytes) -> bytes:
    return body[: dice.randint(0, len(body))]


def flipped(dice: Dice, body: bytes, other: bytes) -> bytes:
    changed = bytearray(body)
    for _ in range(dice.randint(1, 8) if changed else 0):
        changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def holed(dice: Dice, body: bytes, other: bytes) -> bytes:
    start = dice.randint(0, len(body))
    return body[:start] + body[start + dice.randint(1, 200) :]


def invaded(dice: Dice, body: bytes, other: bytes) -> bytes:
    place = dice.randint(0, len(body))
    strange = dice.choice(
        (b"\xff\xfe", b"\0", b"\xed\xa0\x80", b"\xc3", b'"', b"}", b"\n\n", b"\r", b"\xef\xbb\xbf", b"NaN")
    )
    return body[:place] + strange * dice.choice((1, 3)) + body[place:]


def spliced(dice: Dice, body: bytes, other: bytes) -> bytes:
    return body[: dice.randint(0, len(body))] + other[dice.randint(0, len(other)) :]


def packed(dice: Dice, body: bytes, other: bytes) -> bytes:
    return gzip.compress(body, 1)[: dice.choice((None, -1, -9, 12))]


# ── accidents to what the bytes say ──────────────────────────────────────────────────────────────────────────


def garbled(dice: Dice, body: bytes, other: bytes) -> bytes:
    """The same wire with other values in its documents: one of them, or the order they came in."""
    if begins_with_a_frame(body):
        return _reframed(dice, body)
    if b"data:" in body[:400] or b"\ndata:" in body:
        events = body.split(b"\n\n")
        _disorder(dice, events)
        place = dice.randrange(len(events)) if events else 0
        return b"\n\n".join(
            _garbled_event(dice, event) if number == place else event for number, event in enumerate(events)
        )
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return flipped(dice, body, other)
    return written(dice, garbled_value(dice, document))


def _garbled_event(dice: Dice, event: bytes) -> bytes:
    head, mark, data = event.partition(b"data:")
    try:
        return head + mark + b" " + written(dice, garbled_value(dice, json.loads(data)))
    except (ValueError, RecursionError):
        return event


def _reframed(dice: Dice, body: bytes) -> bytes:
    """Frames whose seals fit although what they carry is wrong."""
    frames = list(read_frames(body).frames)
    _disorder(dice, frames)
    place = dice.randrange(len(frames)) if frames else 0
    raw = b""
    for number, one in enumerate(frames):
        payload = one.payload
        if number == place:
            try:
                payload = written(dice, garbled_value(dice, json.loads(payload)))
            except (ValueError, RecursionError):
                payload = b"{"
        raw += frame([(name, 7, str(value)) for name, value in one.headers.items()], payload)
    return raw


def _disorder(dice: Dice, things: list[Any]) -> None:
    if not things:
        return
    match dice.randrange(5):
        case 0:
            del things[dice.randrange(len(things))]
        case 1:
            things.insert(dice.randrange(len(things)), dice.choice(things))
        case 2:
            one, two = dice.randrange(len(things)), dice.randrange(len(things))
            things[one], things[two] = things[two], things[one]


def garbled_value(dice: Dice, value: Any) -> Any:
    """The value with one to four of its inner values changed."""
    for _ in range(dice.randint(1, 4)):
        value = _changed(dice, value)
    return value


def _changed(dice: Dice, value: Any) -> Any:
    """Go down to a random depth and change what is there."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        name = dice.choice(list(value))
        match dice.randrange(8):
            case 0:
                return {key: inner for key, inner in value.items() if key != name}
            case 1:
                return {(dice.choice(list(value)) if key == name else key): v for key, v in value.items()}
            case 2:
                swapped = dice.choice(list(value))
                return {**value, name: value[swapped], swapped: value[name]}
            case _:
                return {**value, name: _changed(dice, value[name])}
    if isinstance(value, list) and value and dice.random() < 0.85:
        items = list(value)
        if dice.random() < 0.3:
            _disorder(dice, items)
        else:
            place = dice.randrange(len(items))
            items[place] = _changed(dice, items[place])
        return items
    if dice.random() < 0.1:
        return [value] if dice.random() < 0.5 else {dice.choice(("type", "text", "content")): value}
    return dice.choice(ODD_VALUES)


def written(dice: Dice, value: Any) -> bytes:
    """JSON, with what cannot be written by a careful writer."""
    raw = json.dumps(value, ensure_ascii=dice.random() < 0.5).encode("utf-8", "surrogatepass")
    if (mark := json.dumps(DEEP).encode()) in raw:
        depth = dice.choice(DEPTHS)
        opened, closed = dice.choice(((b"[", b"]"), (b'{"a":', b"}")))
        raw = raw.replace(mark, opened * depth + b"0" + closed * depth)
    return raw


ACCIDENTS: tuple[Callable[[Dice, bytes, bytes], bytes], ...] = (
    *(cut, flipped, holed, invaded, spliced, packed),
    *(garbled,) * 8,
)
