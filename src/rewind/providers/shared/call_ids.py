"""Which call does a result belong to? Ids where they are told, else the tool's name and the order.

Some APIs have no ids, some servers number the calls anew in every turn, and some clients draw ids that another API
would refuse. A conversation that is tied has one id for each call and its result, and no id twice.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rewind.model.message import Message, Part, Role, ToolResult, ToolUse

_ACCEPTED = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""Ids that every API takes as they are."""


@dataclass(slots=True)
class _Call:
    told: str
    """Its id as the conversation has it."""
    name: str
    id: str
    """Its id from now on."""
    answered: bool = False


@dataclass(slots=True)
class _Knots:
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
            told = [call for call in (*self.earlier, *self.latest) if call.told == result.id]
            open_ones = [call for call in told if not call.answered]
            return next(reversed(open_ones or told), None)
        for calls in (self.latest, self.earlier):
            fitting = (call for call in calls if not call.answered and result.name in ("", call.name))
            if (found := next(fitting, None)) is not None:
                return found
        return None

    def _fresh(self, told: str) -> str:
        made, number = told, 0
        while not _ACCEPTED.fullmatch(made) or made in self.used:
            number += 1
            # Nine letters and digits: the only form that Mistral takes, and all others do as well.
            made = f"call{len(self.used) + number:05}"
        self.used.add(made)
        return made


def tied(messages: Sequence[Message], names: Mapping[str, str] | None = None) -> tuple[Message, ...]:
    """The messages with one id for each call and its result, and every result with its tool's name.

    ``names`` tells the tools of calls that the messages do not show, by id. What the provider ran itself stays as
    it is.
    """
    knots = _Knots(names or {}, [], [], set())
    found = []
    before: Role | None = None
    for message in messages:
        if message.role is Role.ASSISTANT and before is not Role.ASSISTANT:
            knots.begin_turn()
        before = message.role
        found.append(replace(message, parts=tuple(_tied(message.parts, knots))))
    return tuple(found)


def _tied(parts: Iterable[Part], knots: _Knots) -> Iterable[Part]:
    for part in parts:
        match part:
            case ToolUse(hosted=False):
                yield knots.call(part)
            case ToolResult(hosted=False):
                yield knots.result(part)
            case _:
                yield part
