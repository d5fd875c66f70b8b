"""What writers share: arguments and results as text or JSON, the bytes of files, ids that tie results to calls."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewind.dataclass import dataclass
from rewind.model.message import Media, Message, Other, Part, Refusal, Role, Text, ToolResult, ToolUse
from rewind.providers.api import LossLog
from rewind.providers.shared.json_fields import inline


def result_parts(result: ToolResult) -> tuple[Part, ...]:
    """What a tool gave back, in texts and media: a value that is no text is written as JSON."""
    return tuple(
        Text(json_text(part.value)) if isinstance(part, Other) else part
        for part in result.parts
        if isinstance(part, Text | Refusal | Media | Other)
    )


def json_text(value: Any) -> str:
    """A JSON value as text; a text is its own."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        return ""


def arguments_text(arguments: Any) -> str:
    """Arguments as the JSON text in which OpenAI's APIs carry them; a text that is no JSON is itself."""
    return "{}" if arguments is None else json_text(arguments)


def arguments_object(arguments: Any, losses: LossLog) -> dict[str, Any]:
    """Arguments as the object that Anthropic and Google insist on."""
    if arguments is None:
        return {}
    if isinstance(arguments, dict):
        return arguments
    losses.counts['arguments that are not an object, written as {"input": …}'] += 1
    return {"input": arguments}


def media_in(documents: Iterable[Any], messages: Iterable[Message]) -> dict[str, str]:
    """Digest → base64 of what the messages hold inline, found again in the documents that they were read from."""
    wanted = {media.digest for message in messages for media in _media(message.parts) if media.digest}
    found: dict[str, str] = {}
    waiting = list(documents) if wanted else []
    while waiting and wanted:
        match waiting.pop():
            case dict() as fields:
                waiting += fields.values()
            case list() as items:
                waiting += items
            case str() as text:
                data = text.partition(",")[2] if text.startswith("data:") else text
                if (digest := inline(data, "").digest) in wanted:
                    found[digest] = data
                    wanted.discard(digest)
    return found


def _media(parts: Iterable[Part]) -> Iterator[Media]:
    for part in parts:
        if isinstance(part, Media):
            yield part
        elif isinstance(part, ToolResult):
            yield from _media(part.parts)


# ── which call does a result belong to? ───────────────────────────────────────────────────────────────────────
# By its id where there is one, else by the tool's name and the order. Some APIs have no ids, some servers number the
# calls anew in every turn, and some clients draw ids that another API would refuse.

_ACCEPTED = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""Ids that every API takes as they are."""


@dataclass(slots=True)
class _Call:
    given_id: str
    """Its id as the conversation has it."""
    name: str
    id: str
    """Its id from now on."""
    answered: bool = False


@dataclass(slots=True)
class _Calls:
    """The calls so far, the latest turn apart: a result mostly belongs to one of these."""

    names: Mapping[str, str]
    earlier: list[_Call]
    latest: list[_Call]
    used: set[str]

    def begin_turn(self) -> None:
        self.earlier += self.latest
        self.latest = []

    def call(self, use: ToolUse) -> ToolUse:
        call = _Call(use.id, use.name, self._fresh(use.id))
        self.latest.append(call)
        return replace(use, id=call.id)

    def result(self, result: ToolResult) -> ToolResult:
        call = self._called(result)
        if call is None:
            name = result.name or self.names.get(result.id, "")
            return replace(result, id=self._fresh(result.id), name=name)
        call.answered = True
        return replace(result, id=call.id, name=call.name or result.name)

    def _called(self, result: ToolResult) -> _Call | None:
        if result.id:
            same_id = [call for call in (*self.earlier, *self.latest) if call.given_id == result.id]
            unanswered = [call for call in same_id if not call.answered]
            return next(reversed(unanswered or same_id), None)
        for calls in (self.latest, self.earlier):
            fitting = (call for call in calls if not call.answered and result.name in ("", call.name))
            if (call := next(fitting, None)) is not None:
                return call
        return None

    def _fresh(self, given_id: str) -> str:
        made, number = given_id, 0
        while not _ACCEPTED.fullmatch(made) or made in self.used:
            number += 1
            # Nine letters and digits: the only form that Mistral takes, and all others do as well.
            made = f"call{len(self.used) + number:05}"
        self.used.add(made)
        return made


def with_matched_ids(messages: Sequence[Message], names: Mapping[str, str] | None = None) -> tuple[Message, ...]:
    """The messages with one id for each call and its result, and every result with its tool's name.

    ``names`` tells the tools of calls that the messages do not show, by id. What the provider ran itself stays as
    it is.
    """
    calls = _Calls(names or {}, [], [], set())
    found = []
    before: Role | None = None
    for message in messages:
        if message.role is Role.ASSISTANT and before is not Role.ASSISTANT:
            calls.begin_turn()
        before = message.role
        found.append(replace(message, parts=tuple(_matched(message.parts, calls))))
    return tuple(found)


def _matched(parts: Iterable[Part], calls: _Calls) -> Iterable[Part]:
    for part in parts:
        match part:
            case ToolUse(hosted=False):
                yield calls.call(part)
            case ToolResult(hosted=False):
                yield calls.result(part)
            case _:
                yield part
