"""Sessions to write and to damage, for the store's tests."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewind.model.http import Chunk, RequestHead, ResponseHead
from rewind.model.ids import MatchKey, SessionId
from rewind.model.session import Session, SessionStart
from rewind.model.step import Ending, Reading, StepKind, StepRequest, StepResponse
from rewind.model.usage import Usage
from rewind.store.catalog.database import Catalog
from rewind.store.journal.writer import SessionWriter
from rewind.store.library import Library

HEADERS = (
    ("Content-Type", "application/json"),
    ("Accept", "application/json"),
    ("User-Agent", "Anthropic/Python 0.40.0"),
    ("anthropic-version", "2023-06-01"),
    ("Content-Length", "12345"),
)
ANSWER_HEAD = ResponseHead(
    status=200,
    reason="OK",
    headers=(
        ("Content-Type", "application/json"),
        ("request-id", "req_011CTest"),
        ("Date", "Sun, 15 Nov 2026 20:22:57 GMT"),
    ),
)


def start(**changes: Any) -> SessionStart:
    fields: dict[str, Any] = {
        "id": SessionId("7f3a2b9c"),
        "name": "support",
        "command": ("python", "agent.py"),
        "cwd": "/srv/agent",
        "started": 1794774177.123,
        "rewind_version": "0.1.0",
    }
    return SessionStart(**{**fields, **changes})


def request(index: int, **changes: Any) -> StepRequest:
    fields: dict[str, Any] = {
        "index": index,
        "ts": 1794774178.5 + index,
        "kind": StepKind.LLM_CALL,
        "provider": "anthropic",
        "match_key": MatchKey(f"rw1:{index:032x}"),
        "head": RequestHead(
            method="POST", scheme="https", host="api.anthropic.com", port=443, target="/v1/messages", headers=HEADERS
        ),
        "model": "claude-sonnet-4-6",
    }
    return StepRequest(**{**fields, **changes})


def response(**changes: Any) -> StepResponse:
    fields: dict[str, Any] = {
        "ending": Ending.COMPLETE,
        "head": ANSWER_HEAD,
        "ms": 812.5,
        "first_ms": 400.25,
        "chunks": (Chunk(400250, 700), Chunk(812500, 324)),
        "reading": Reading(model="claude-sonnet-4-6", text="Understood.", usage=Usage(input=1200, output=80)),
    }
    return StepResponse(**{**fields, **changes})


class PerToken:
    """Prices for tests: so much for a token of these models, or of all."""

    def __init__(self, dollars: float = 0.001, models: tuple[str, ...] | None = None) -> None:
        self._dollars, self._models = dollars, models
        self.fingerprint = str(dollars)

    def cost(
        self, *, host: str, target: str, provider: str, model: str | None, usage: Usage, ts: float
    ) -> float | None:
        if (usage.input is usage.output is None) or (self._models is not None and model not in self._models):
            return None
        return self._dollars * ((usage.input or 0) + (usage.output or 0))


def words(source: random.Random, size: int) -> str:
    """Text that packs about as well as English does."""
    text: list[str] = []
    length = 0
    while length < size:
        word = source.choice(_VOCABULARY)
        text.append(word)
        length += len(word) + 1
    return " ".join(text)[:size]


_LETTERS = "etaoinshrdlucmfwypvbgkjqxz"
_SOURCE = random.Random(7)
_VOCABULARY = [
    "".join(_LETTERS[min(int(_SOURCE.expovariate(0.16)), 25)] for _ in range(_SOURCE.randint(2, 9)))
    for _ in range(1500)
]


class GrowingAgent:
    """Anthropic-style turns: every request carries all that was said, and the cache marker moves on."""

    def __init__(self, seed: int = 1, said: int = 2000, answered: int = 1000) -> None:
        self._source = random.Random(seed)
        self._said, self._answered = said, answered
        self._messages: list[dict[str, Any]] = []
        self._system = words(self._source, 3000)

    def turn(self) -> tuple[bytes, bytes]:
        for message in self._messages:
            for block in message["content"]:
                block.pop("cache_control", None)
        block = {"type": "text", "text": words(self._source, self._said), "cache_control": {"type": "ephemeral"}}
        self._messages.append({"role": "user", "content": [block]})
        asked = {
            "model": "claude-sonnet-4-6",
            "max_tokens": 4096,
            "system": [{"type": "text", "text": self._system}],
            "metadata": {"user_id": f"{self._source.getrandbits(64):016x}"},
            "messages": self._messages,
        }
        body = json.dumps(asked).encode()
        text = words(self._source, self._answered)
        answer = {
            "id": f"msg_{self._source.getrandbits(96):024x}",
            "role": "assistant",
            "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": 1200, "output_tokens": 80},
        }
        self._messages.append({"role": "assistant", "content": [{"type": "text", "text": text}]})
        return body, json.dumps(answer).encode()


def record(home: Path, exchanges: list[tuple[bytes, bytes]], *, end: bool = True, **changes: Any) -> Session:
    """A session of those exchanges, as the library gives it back."""
    begun = start(**changes)
    writer = SessionWriter.create(home, begun)
    for index, (asked, answered) in enumerate(exchanges, 1):
        writer.request(request(index), asked)
        writer.response(index, response(), answered)
    if end:
        writer.end(ended=begun.started + 9, exit_code=0, redactions=0, remarks=())
    else:
        writer.close()
    assert writer.broken is None
    return next(found for found in Library(home).sessions() if found.folder == writer.folder.name)


def sql(catalog: Catalog, query: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """What the catalog answers; nothing where there is no store."""
    return catalog.ask(lambda db: db.execute(query, list(params)).fetchall(), nothing=[])
