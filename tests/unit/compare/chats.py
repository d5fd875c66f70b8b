"""Runs to compare, written as conversations and turned into the wire bytes of the Anthropic API."""

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rewind.compare.run import ComparedRun
from rewind.conversation.outline import read_step
from rewind.conversation.sketch import said_of, sketch_of
from rewind.match.call import understand
from rewind.model.http import Headers, HttpRequest, RequestHead, ResponseHead
from rewind.model.ids import SessionId
from rewind.model.session import Recording, Session, SessionStart, Status
from rewind.model.step import Ending, Reading, Step, StepRequest, StepResponse

Calls = Sequence[tuple[str, dict[str, Any]]]


@dataclass
class Tape:
    """Steps, in order of arrival."""

    steps: list[tuple[Step, bytes, bytes]] = field(default_factory=list)

    def add(
        self,
        request: dict[str, Any],
        answer: dict[str, Any],
        *,
        status: int = 200,
        ending: Ending = Ending.COMPLETE,
        at: float | None = None,
        path: str = "/v1/messages",
        host: str = "api.anthropic.com",
        headers: Headers = (),
    ) -> None:
        index = len(self.steps) + 1
        head = RequestHead(
            method="POST",
            scheme="https",
            host=host,
            port=443,
            target=path,
            headers=(("content-type", "application/json"),),
        )
        body, answered = json.dumps(request).encode(), json.dumps(answer).encode()
        call = understand(HttpRequest(head=head, body=body), index=index)
        step = Step(
            request=StepRequest(
                index=index,
                ts=1000.0 + index * 10 if at is None else at,
                kind=call.provider.kind,
                provider=call.provider.name,
                match_key=call.key,
                head=head,
                model=request.get("model"),
            ),
            response=StepResponse(
                ending=ending,
                head=ResponseHead(status=status, reason="", headers=(("content-type", "application/json"), *headers)),
                ms=5000.0,
                reading=Reading(model=answer.get("model")),
            ),
        )
        self.steps.append((step, body, answered))

    def run(self) -> ComparedRun:
        bodies = {step.index: (asked, answered) for step, asked, answered in self.steps}
        start = SessionStart(id=SessionId("7f3a2b9c"), name=None, command=(), cwd="", started=0.0, rewind_version="")
        session = Session(start=start, end=None, status=Status.ENDED, folder="")
        steps = tuple(step for step, _, _ in self.steps)
        return ComparedRun(Recording(session=session, steps=steps), lambda step: bodies[step.index])


@dataclass
class Chat:
    """One conversation of a run."""

    tape: Tape
    system: str = "Be kind."
    model: str = "claude-sonnet-4-6"
    tools: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=lambda: {"max_tokens": 100})
    messages: list[dict[str, Any]] = field(default_factory=list)
    number: int = 0
    prefix: str = "toolu_a"
    """Of the ids that the model draws."""

    def user(self, text: str) -> "Chat":
        self.messages.append({"role": "user", "content": text})
        return self

    def results(self, *texts: str) -> "Chat":
        """What the tools gave that the last answer asked for."""
        uses = [block for block in self.messages[-1]["content"] if block["type"] == "tool_use"]
        blocks = [
            {"type": "tool_result", "tool_use_id": use["id"], "content": text}
            for use, text in zip(uses, texts, strict=True)
        ]
        self.messages.append({"role": "user", "content": blocks})
        return self

    def says(self, text: str = "", calls: Calls = (), **more: Any) -> "Chat":
        """The model answers; its answer becomes part of the conversation."""
        content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        for name, arguments in calls:
            self.number += 1
            use_id = f"{self.prefix}{self.number:020d}"
            content.append({"type": "tool_use", "id": use_id, "name": name, "input": arguments})
        answer = {
            "id": f"msg_{self.prefix}{self.number}",
            "type": "message",
            "role": "assistant",
            "model": more.pop("snapshot", self.model),
            "content": content,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
        self.tape.add(self._request(), answer, **more)
        self.messages.append({"role": "assistant", "content": content})
        return self

    def fails(self, status: int = 529, message: str = "Overloaded", **more: Any) -> "Chat":
        error = {"type": "error", "error": {"type": "overloaded_error", "message": message}}
        self.tape.add(self._request(), error, status=status, **more)
        return self

    def _request(self) -> dict[str, Any]:
        request: dict[str, Any] = {"model": self.model, **self.settings, "messages": copy.deepcopy(self.messages)}
        if self.system:
            request["system"] = self.system
        if self.tools:
            request["tools"] = self.tools
        return request


def sketched(run: ComparedRun) -> ComparedRun:
    """The same run as it is read back from a journal that has the digests."""
    steps = []
    recording = run.recording
    threads = {move.index: move.thread for move in run.moves}
    for step in recording.steps:
        talk = read_step(step, run.bodies)
        sketch = str(sketch_of(talk.asked, talk.provider))
        request = replace(step.request, sketch=sketch, thread=threads.get(step.index))
        assert step.response is not None
        reading = step.response.reading
        if talk.answered is not None:
            reading = replace(
                reading, said=said_of(talk.answered), error=talk.answered.error, model=talk.answered.model
            )
        steps.append(Step(request=request, response=replace(step.response, reading=reading)))
    return ComparedRun(replace(recording, steps=tuple(steps)), run.bodies)
