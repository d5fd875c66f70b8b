"""Sessions made for measuring: real journal lines, a million of them in seconds, and nothing in the packs.

A line of each kind is written once by the store itself, with marks in place of what varies; the others are
copies of it with values in place of the marks, each with a checksum of its own.
"""

import json
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rewind.model.http import Chunk, RequestHead, ResponseHead
from rewind.model.ids import BlobId, MatchKey, SessionId
from rewind.model.session import SessionEnd, SessionStart
from rewind.model.step import Ending, Reading, StepKind, StepRequest, StepResponse
from rewind.model.usage import Usage
from rewind.store.files import folder_name, prepare_home
from rewind.store.journal import records as journal
from rewind.store.journal.lines import Fields, seal, stamped
from rewind.store.journal.totals import Totals, totals_fields

DAYS = 28
"""Over which the sessions are spread, so that all are among the last thirty."""
MODELS = (
    ("anthropic", "api.anthropic.com", "/v1/messages", "claude-sonnet-4-5"),
    ("openai_chat", "api.openai.com", "/v1/chat/completions", "gpt-4o"),
    ("openai_chat", "api.openai.com", "/v1/chat/completions", "gpt-4o-mini"),
    ("openai_responses", "api.openai.com", "/v1/responses", "gpt-5"),
    ("gemini", "generativelanguage.googleapis.com", "/v1beta/models/x:generateContent", "gemini-2.5-flash"),
)
NAMES = (None, "refund", "support", "triage")
_REQUEST_HEADERS = (
    ("Content-Type", "application/json"),
    ("Accept", "application/json"),
    ("User-Agent", "Example/Python 1.50.0"),
    ("x-runtime", "CPython"),
    ("x-runtime-version", "3.11.7"),
    ("Content-Length", "12345"),
    ("Host", "api.example.com"),
)
_ANSWER_HEADERS = (
    ("Content-Type", "application/json"),
    ("request-id", "req_0123456789abcdef01234567"),
    ("Date", "Sun, 15 Nov 2026 20:22:57 GMT"),
    ("x-ratelimit-limit-requests", "10000"),
    ("x-ratelimit-remaining-requests", "9999"),
    ("Server", "example"),
)


def make_sessions(
    home: Path, count: int, steps: int, *, last: float, seed: int, system: Callable[[int], str] = lambda _nth: "5" * 12
) -> list[Path]:
    """That many sessions of so many steps each, the last of which ends then; their folders.

    ``system`` gives the digest of the system prompt that the nth session has in its sketches.
    """
    sessions = prepare_home(home)
    source = random.Random(seed)
    folders = []
    for nth in range(count):
        started = last - DAYS * 86_400 * (count - nth) / count - seed / 1000
        start = SessionStart(
            id=SessionId(f"{source.getrandbits(32):08x}"),
            name=source.choice(NAMES),
            command=("python", "agent.py", "--case", str(nth)),
            cwd="/srv/agent",
            started=started,
            rewind_version="bench",
            tags={"ticket": str(nth % 50)} if nth % 3 == 0 else {},
        )
        folder = sessions / folder_name(start)
        folder.mkdir()
        (folder / "journal.jsonl").write_bytes(b"".join(_lines(start, steps, source, system(nth))))
        folders.append(folder)
    return folders


def _lines(start: SessionStart, steps: int, source: random.Random, system: str) -> list[bytes]:
    run = start.id
    tools, settings = (f"{source.getrandbits(48):012x}" for _ in range(2))
    lines = [seal(stamped(journal.session_fields(start), run=run, number=0))]
    ts = start.started
    for step in range(1, steps + 1):
        request, answer = _TEMPLATES[source.randrange(len(MODELS))]
        ts += 0.5 + source.random()
        ms = round(source.lognormvariate(6.5, 0.6), 3)
        values = {
            "run": run,
            "step": step,
            "key": f"rw1:{source.getrandbits(128):032x}",
            "body": f"sha256:{source.getrandbits(256):064x}",
            "thread": 1 + step % 2,
            "sketch": f"{system}:{tools}:{settings}:{source.getrandbits(48):012x}:{source.getrandbits(48):012x}:-",
            "said": f"{source.getrandbits(64):016x}",
            "status": 200 if source.random() > 0.02 else 429,
            "tokens_in": source.randrange(500, 20_000),
            "tokens_out": source.randrange(10, 800),
            "cache_read": source.randrange(1, 400),
            "reasoning": source.randrange(1, 9),
            "ms": ms,
            "first_ms": ms / 2,
        }
        lines.append(_sealed(request % (values | {"ts": ts, "n": 2 * step - 1})))
        lines.append(_sealed(answer % (values | {"ts": ts + ms / 1000, "n": 2 * step})))
    end = SessionEnd(
        ended=ts + 1, exit_code=int(source.random() < 0.1), stdin=None, stdout=None, stderr=None, redactions=0
    )
    counted = Totals(steps=steps, llm_calls=steps)
    last = stamped(journal.end_fields(end, totals_fields(counted), 0), run=run, number=2 * steps + 1)
    return [*lines, seal(last)]


def _sealed(body: str) -> bytes:
    data = body.encode()
    return b'%b,"~":"%08x"}\n' % (data, zlib.crc32(data))


def _mark(name: str) -> Any:
    """Stands where a value will stand."""
    return f"@{name}@"


def _template(fields: Fields) -> str:
    """The line of these fields, less its checksum, with ``%(name)s`` for each mark."""
    marked = stamped(fields, run=_mark("run"), number=_mark("n"))
    text = json.dumps(marked, ensure_ascii=False, separators=(",", ":"))[:-1].replace("%", "%%")
    for name in ("run", "key", "body"):
        text = text.replace(f'"@{name}@"', f'"%({name})s"')
    text = text.replace("rs1:@sketch@", "rs1:%(sketch)s").replace("ra1:@said@", "ra1:%(said)s")
    for name in ("n", "ts", "step", "thread", "status", "tokens_in", "tokens_out", "cache_read", "reasoning"):
        text = text.replace(f'"@{name}@"', f"%({name})s")
    return text.replace('"@ms@"', "%(ms)s").replace('"@first_ms@"', "%(first_ms)s")


def _templates(provider: str, host: str, target: str, model: str) -> tuple[str, str]:
    request = StepRequest(
        index=_mark("step"),
        ts=_mark("ts"),
        kind=StepKind.LLM_CALL,
        provider=provider,
        match_key=MatchKey(_mark("key")),
        head=RequestHead(method="POST", scheme="https", host=host, port=443, target=target, headers=_REQUEST_HEADERS),
        body=BlobId(_mark("body")),
        body_size=4000,
        model=model,
        thread=_mark("thread"),
        sketch="rs1:" + _mark("sketch"),
    )
    usage = Usage(
        input=_mark("tokens_in"),
        output=_mark("tokens_out"),
        cache_read=_mark("cache_read"),
        reasoning=_mark("reasoning"),
    )
    text = "I looked at the order and it can be refunded within 30 days of its delivery. Shall I?"
    answer = StepResponse(
        ending=Ending.COMPLETE,
        head=ResponseHead(status=_mark("status"), reason="OK", headers=_ANSWER_HEADERS),
        body=BlobId(_mark("body")),
        body_size=1600,
        chunks=(Chunk(400_250, 800), Chunk(812_500, 800)),
        ms=_mark("ms"),
        first_ms=_mark("first_ms"),
        reading=Reading(model=model, text=text, usage=usage, said="ra1:" + _mark("said")),
    )
    return (
        _template(journal.request_fields(request)),
        _template(journal.response_fields(_mark("step"), _mark("ts"), answer, None)),
    )


_TEMPLATES = [_templates(*model) for model in MODELS]
