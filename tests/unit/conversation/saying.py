"""Small conversations, invented: calls and answers in a few words."""

from typing import Any

from rewind.conversation.threads import ThreadPlace, Threads
from rewind.model.ids import MatchKey
from rewind.model.message import Answered, Asked, Message, Part, Role, Text, ToolResult, ToolUse


def user(text: str) -> Message:
    return Message(Role.USER, (Text(text),))


def assistant(*parts: str | Part) -> Message:
    return Message(Role.ASSISTANT, tuple(Text(part) if isinstance(part, str) else part for part in parts))


def result(tool_id: str, text: str, **more: Any) -> Message:
    return Message(Role.TOOL, (ToolResult(tool_id, (Text(text),), **more),))


def asking(*messages: Message, system: str = "Be kind.", **more: Any) -> Asked:
    return Asked(system=(Text(system),) if system else (), messages=messages, **more)


def saying(*parts: str | Part, **more: Any) -> Answered:
    return Answered(parts=tuple(Text(part) if isinstance(part, str) else part for part in parts), **more)


def use(tool_id: str, name: str = "look", **arguments: Any) -> ToolUse:
    return ToolUse(tool_id, name, arguments)


def places(*exchanges: tuple[Asked, Answered | None]) -> list[ThreadPlace]:
    """Where each call stands, when they are made one after the other."""
    threads = Threads()
    found = []
    for index, (asked, answered) in enumerate(exchanges, 1):
        found.append(threads.call(index, MatchKey(f"rw1:{asked!r}"), asked))
        if answered is not None:
            threads.answer(index, answered)
    return found
