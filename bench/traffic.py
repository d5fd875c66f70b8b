"""The requests that every contender carries and the answers it gets: made once, the same for all."""

import json
import random
from itertools import accumulate

HOST = "api.openai.com"
PORT = 443
KEY = "sk-bench-0123456789abcdefghijklmnopqrstuvwxyz"
EVENTS = 40
SLOW_EVENTS = 8
MARK = b"call-"
"""Before the eight digits that say which call this is; the answer repeats them, so a wrong answer is noticed."""


def prose(size: int, seed: int) -> str:
    """Text that compresses about as well as English does: words of made-up syllables, few of them common."""
    return " ".join(random.Random(seed).choices(WORDS, cum_weights=WEIGHTS, k=size // 2))[:size]


def _words(count: int) -> list[str]:
    dice = random.Random(0)
    syllables = [first + second for first in "bcdfghklmnprstvz" for second in ("a", "e", "i", "o", "u", "an", "er")]
    return ["".join(dice.choices(syllables, k=dice.choice((1, 2, 2, 3)))) for _ in range(count)]


WORDS = _words(2000)
WEIGHTS = list(accumulate(1 / (rank + 2) for rank in range(len(WORDS))))
SYSTEM_PROMPT = prose(3200, seed=1)
QUESTIONS = prose(65536, seed=2)
ANSWERS = prose(65536, seed=3)


def call(number: int) -> bytes:
    """A whole request of about 4 kB, unlike every other one."""
    at = number * 37 % (len(QUESTIONS) - 400)
    messages = [
        {"role": "system", "content": SYSTEM_PROMPT},
        {"role": "user", "content": f"{QUESTIONS[at : at + 400]} {MARK.decode()}{number:08d}"},
    ]
    return request({"model": "gpt-5-mini", "temperature": 0, "messages": messages})


def large_call(number: int, size: int, *, fresh: bool) -> bytes:
    """A request of ``size`` bytes whose long message is new each time, or the same with another question behind it."""
    messages = [
        {"role": "user", "content": prose(size, seed=number if fresh else 0)},
        {"role": "user", "content": f"{MARK.decode()}{number:08d}"},
    ]
    return request({"model": "gpt-5-mini", "temperature": 0, "messages": messages})


def thoughtful_call(number: int, think_ms: int) -> bytes:
    """As :func:`call`, answered after ``think_ms``."""
    head, _, body = call(number).partition(b"\r\n\r\n")
    return head + f"\r\nX-Bench-Think: {think_ms}\r\n\r\n".encode() + body


def streamed_call(number: int, gap_ms: int) -> bytes:
    """The same, answered with an event stream whose events are ``gap_ms`` apart."""
    messages = [{"role": "user", "content": f"Go on. {MARK.decode()}{number:08d}"}]
    body = {"model": "gpt-5-mini", "stream": True, "messages": messages}
    return request(body, f"X-Bench-Gap: {gap_ms}\r\n")


def conversation(turns: int) -> list[bytes]:
    """Requests of an agent whose context grows by about 2 kB with every turn."""
    messages = [{"role": "system", "content": SYSTEM_PROMPT}]
    requests = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"{prose(400, seed=1000 + turn)} {MARK.decode()}{turn:08d}"})
        requests.append(request({"model": "gpt-5-mini", "temperature": 0, "messages": messages}))
        messages.append({"role": "assistant", "content": prose(1600, seed=5000 + turn)})
    return requests


def request(body: dict[str, object], more_headers: str = "") -> bytes:
    content = json.dumps(body).encode()
    return (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {KEY}\r\n"
        "Content-Type: application/json\r\nAccept: application/json\r\nUser-Agent: bench\r\n"
        f"{more_headers}Content-Length: {len(content)}\r\n\r\n"
    ).encode() + content


def answer(number: int) -> bytes:
    """A whole response of about 1.6 kB."""
    at = number * 53 % (len(ANSWERS) - 1150)
    content = (
        f'{{"id":"chatcmpl-{number:012d}","object":"chat.completion","created":1760000000,'
        '"model":"gpt-5-mini-2025-08-07","choices":[{"index":0,"message":{"role":"assistant",'
        f'"content":"{ANSWERS[at : at + 1150]}","refusal":null,"annotations":[]}},'
        '"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":1012,"completion_tokens":301,'
        f'"total_tokens":1313}},"service_tier":"default","system_fingerprint":"{MARK.decode()}{number:08d}"}}'
    )
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nx-request-id: req_{number:012d}\r\n"
        f"openai-processing-ms: 12\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return (head + content).encode()


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
)
STREAM_END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


def event(place: int, sent_ns: int) -> bytes:
    """One event in a chunk of its own; ``sent_ns`` is the system's monotonic clock, the same in all processes."""
    data = (
        'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"gpt-5-mini",'
        f'"choices":[{{"index":0,"delta":{{"content":" word{place:03d}"}},"finish_reason":null}}],'
        f'"sent":{sent_ns}}}\n\n'
    )
    return f"{len(data):x}\r\n{data}\r\n".encode()
