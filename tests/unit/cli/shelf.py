"""A store that a test fills itself, and what a command left behind."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewind.model.http import Chunk, RequestHead, ResponseHead
from rewind.model.ids import MatchKey, SessionId
from rewind.model.session import SessionStart
from rewind.model.step import Ending, Reading, StepKind, StepRequest, StepResponse
from rewind.model.usage import Usage
from rewind.store.journal.writer import SessionWriter


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left behind."""

    code: int
    data: bytes
    talk: str

    @property
    def text(self) -> str:
        return self.data.decode()

    def json(self) -> Any:
        return json.loads(self.data)


Rewind = Callable[..., Ran]


@dataclass(frozen=True, slots=True)
class Shelf:
    """Puts sessions into the store."""

    home: Path

    def begin(self, session: str, *, started: float = 1_700_000_000.0, **changes: Any) -> SessionWriter:
        fields: dict[str, Any] = {
            "id": SessionId(session),
            "name": None,
            "command": ("python", "agent.py"),
            "cwd": "/somewhere",
            "started": started,
            "rewind_version": "0.1.0",
        }
        return SessionWriter.create(self.home, SessionStart(**(fields | changes)))

    def add(
        self, session: str, *bodies: bytes, answer: bytes = b'{"ok": true}', exit_code: int = 0, **changes: Any
    ) -> Path:
        """A whole session with one step for each request body; its folder."""
        writer = self.begin(session, **changes)
        for index, body in enumerate(bodies, 1):
            writer.request(a_request(index), body)
            writer.response(index, an_answer(len(answer)), answer)
        writer.output("stdout", b"done\n")
        writer.end(ended=1_700_000_008.4, exit_code=exit_code, redactions=0, remarks=())
        return writer.folder


def a_request(index: int = 1, **changes: Any) -> StepRequest:
    headers = (("content-type", "application/json"), ("x-client", "test"))
    head = RequestHead(method="POST", scheme="https", host="api.example", port=443, target="/v1/chat", headers=headers)
    fields: dict[str, Any] = {
        "index": index,
        "ts": 1_700_000_001.0,
        "kind": StepKind.LLM_CALL,
        "provider": "openai_chat",
        "match_key": MatchKey("rw1:" + "0" * 32),
        "head": head,
        "model": "small-model",
    }
    return StepRequest(**(fields | changes))


def an_answer(size: int, *, content_type: str = "application/json", **changes: Any) -> StepResponse:
    fields: dict[str, Any] = {
        "ending": Ending.COMPLETE,
        "head": ResponseHead(status=200, reason="OK", headers=(("content-type", content_type),)),
        "chunks": (Chunk(3000, size),),
        "ms": 12.5,
        "first_ms": 3.0,
        "reading": Reading(model="small-model", text="fine, thank you", usage=Usage(input=1200, output=34)),
    }
    return StepResponse(**(fields | changes))
