"""Sessions of an agent that talks to Anthropic's API, written into a store as the recorder writes them."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

from rewind.conversation.sketch import said_of, sketch_of
from rewind.conversation.threads import Threads
from rewind.match.call import understand
from rewind.model.http import HttpRequest, HttpResponse, RequestHead, ResponseHead
from rewind.model.step import Ending
from rewind.providers.summary import short
from rewind.store.journal.writer import SessionWriter
from unit.cli.shelf import Shelf, a_request, an_answer

HEAD = RequestHead(method="POST", scheme="https", host="api.anthropic.com", port=443, target="/v1/messages", headers=())
MORNING = 1_763_197_320.0
"""2025-11-15 09:02 UTC"""
SYSTEM = "You are a support agent. Look the account up, check the order, then refund what is due."
STRICT = "You are a support agent. Look the account up, check the order, then refund only after explicit confirmation."
TOOLS = [
    {"name": "lookup", "description": "Find the customer of an order", "input_schema": {"type": "object"}},
    {
        "name": "refund",
        "description": "Pay money back",
        "input_schema": {"type": "object", "properties": {"amount": {"type": "number"}}},
    },
]
ACTIVE = '{"customer": "C-1041", "status": "active", "balance": 1240.0}'


def use(name: str, **arguments: Any) -> dict[str, Any]:
    """A tool that an answer asks for."""
    return {"type": "tool_use", "name": name, "input": arguments}


@dataclass
class Talk:
    """A run: what is said to the model, and what it says. Its fields may be changed between two calls."""

    writer: SessionWriter
    started: float
    system: str | None = SYSTEM
    model: str = "claude-sonnet-4-6"
    snapshot: str = "claude-sonnet-4-6-20251001"
    tools: list[dict[str, Any]] = field(default_factory=lambda: list(TOOLS))
    parameters: dict[str, Any] = field(default_factory=lambda: {"max_tokens": 1024, "temperature": 0})
    headers: tuple[tuple[str, str], ...] = ()
    messages: list[dict[str, Any]] = field(default_factory=list)
    index: int = 0
    _asked_for: list[dict[str, Any]] = field(default_factory=list)
    _threads: Threads = field(default_factory=Threads)

    def says(self, text: str) -> "Talk":
        """The user."""
        self.messages.append({"role": "user", "content": text})
        return self

    def brings(self, *results: str) -> "Talk":
        """The results of the tools that the last answer asked for."""
        content = [
            {"type": "tool_result", "tool_use_id": one["id"], "content": result}
            for one, result in zip(self._asked_for, results, strict=True)
        ]
        self.messages.append({"role": "user", "content": content})
        return self

    def hears(self, *said: str | dict[str, Any]) -> "Talk":
        """A call, and its answer, which becomes part of the conversation."""
        content = [{"type": "text", "text": one} if isinstance(one, str) else dict(one) for one in said]
        for number, block in enumerate(content):
            if block["type"] == "tool_use":
                block["id"] = f"toolu_{self.writer.folder.name[-8:]}{self.index:04d}{number}"
        answer = {
            "type": "message",
            "id": f"msg_{self.writer.folder.name[-8:]}_{self.index}",
            "model": self.snapshot,
            "content": content,
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1000, "output_tokens": 100},
        }
        self.exchange(answer)
        self._asked_for = [block for block in content if block["type"] == "tool_use"]
        self.messages.append({"role": "assistant", "content": content})
        return self

    def fails(self, status: int, message: str) -> "Talk":
        """A call that the provider refuses."""
        self.exchange({"type": "error", "error": {"type": "api_error", "message": message}}, status=status)
        return self

    def exchange(self, answer: dict[str, Any], *, status: int = 200, at: float | None = None) -> None:
        self.index += 1
        body: dict[str, Any] = {"model": self.model, "messages": self.messages, **self.parameters}
        body |= {"tools": self.tools} if self.tools else {}
        body |= {"system": self.system} if self.system is not None else {}
        request = HttpRequest(head=replace(HEAD, headers=self.headers), body=json.dumps(body).encode())
        call = understand(request)
        asked = call.provider.reader.asked(request)
        place = self._threads.call(self.index, call.key, asked)
        ts = self.started + 2 * self.index if at is None else at
        half = a_request(
            self.index,
            ts=ts,
            head=request.head,
            provider=call.provider.name,
            model=asked.model,
            match_key=call.key,
            thread=place.thread,
            sketch=str(sketch_of(asked, call.provider)),
        )
        self.writer.request(half, request.body)
        answered_body = json.dumps(answer).encode()
        head = ResponseHead(status=status, reason="", headers=(("content-type", "application/json"),))
        response = HttpResponse(head=head, body=answered_body, chunks=(), trailers=())
        answered = call.provider.reader.answered(request, response)
        self._threads.answer(self.index, answered)
        reading = replace(short(asked, answered), said=said_of(answered))
        told = an_answer(
            len(answered_body), head=head, ending=Ending.COMPLETE, ms=250.0, first_ms=80.0, reading=reading
        )
        self.writer.response(self.index, told, answered_body)

    def end(self, exit_code: int = 0, seconds: float = 8.4) -> None:
        self.writer.end(ended=self.started + seconds, exit_code=exit_code, redactions=0, remarks=())


def begin(shelf: Shelf, session: str, *, minutes: float = 0.0, name: str | None = None, **changes: Any) -> Talk:
    """A run that began that many minutes after nine o'clock (and two minutes)."""
    started = MORNING + 60 * minutes
    return Talk(shelf.begin(session, started=started, name=name), started, **changes)


def refund(talk: Talk, *, agrees: bool = True) -> Talk:
    """The usual run: it looks, then pays or asks back."""
    talk.says("I want my money back for order 8821.")
    talk.hears("Understood, I'll look into the account.", use("lookup", order="8821"))
    talk.brings(ACTIVE)
    if agrees:
        talk.hears("It is active, so I'll proceed.", use("refund", order="8821", amount=189.0))
        talk.brings('{"refunded": 189.0}').hears("Done: $189.00 is on its way back to you.")
    else:
        talk.hears("I cannot complete this action without explicit confirmation.")
    return talk
