"""The scripted model behind real APIs on loopback, for agents that are programs of their own."""

from collections.abc import Sequence
from dataclasses import dataclass

from rewind.model.http import HttpRequest, RequestHead
from rewind.model.message import Message, Role, ToolResult, ToolUse, text_of
from rewind.providers.catalogue import identify
from support.incidents.intent import CallIntent, Entry, FromModel, FromTool, FromUser, Mind
from support.incidents.stage import Run, Setup
from support.planted_agent import DIALECTS
from support.planted_wire import document
from support.script import Answer, Request


@dataclass(slots=True, kw_only=True)
class LiveModel:
    """A playbook. What it decides it reads from the request; ``run`` is how it words it."""

    mind: Mind
    role: str
    setup: Setup
    level: int
    run: str = ""

    def __call__(self, request: Request) -> Answer:
        head = RequestHead(
            method="POST", scheme="https", host=request.host, port=443, target=request.target, headers=()
        )
        asked = identify(head).reader.asked(HttpRequest(head=head, body=request.body))
        setup = self.setup.with_role(
            self.role, model=asked.model or "", system=text_of(asked.system), tools=asked.tools
        )
        run = Run(setup, seed="live", tag=f"{self.run} {len(asked.messages)}", level=self.level)
        talk = run.talk(self.role, self.mind)
        answered = talk.reply(_entries(asked.messages))
        dialect = DIALECTS[talk.role.api]
        if asked.streamed:
            headers = (("content-type", "text/event-stream; charset=utf-8"),)
            return Answer(headers=headers, pieces=tuple(dialect.events(answered, run.style)), framing="chunked")
        return Answer(pieces=(document(dialect.whole(answered, run.style)),))


def _entries(messages: Sequence[Message]) -> list[Entry]:
    """The conversation as the model reads it from the wire."""
    entries: list[Entry] = []
    calls: dict[str, CallIntent] = {}
    for message in messages:
        uses = [part for part in message.parts if isinstance(part, ToolUse)]
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        calls |= {use.id: CallIntent(tool=use.name, decisive=use.arguments) for use in uses}
        if message.role is Role.ASSISTANT:
            entries.append(FromModel(message.text, tuple((use.id, calls[use.id], use.arguments) for use in uses)))
        elif results:
            entries += [FromTool(one.id, calls[one.id], one.text) for one in results]
        else:
            entries.append(FromUser(message.text))
    return entries
