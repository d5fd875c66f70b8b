"""The results of tools in a request: which tool each is of, and whether it is new."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewind.dataclass import dataclass
from rewind.model.message import Message, Other, Role, Text, ToolResult
from rewind.providers.api import Document, NewResult, Patcher
from rewind.providers.shared.write import json_text, with_matched_ids

ToolNames = Mapping[str, str]
"""Id of a call → its tool, for calls that the request does not show because the provider keeps them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundResult:
    """One result, and its place."""

    number: int
    """Counts all results of the request, from 0."""
    turn: int
    result: ToolResult
    """Under the id that the request has, with the tool's name where it can be told."""
    raw: Any
    new: bool
    """Whether it stands behind the last message of the model."""

    @property
    def text(self) -> str:
        return result_text(self.result)


def result_text(result: ToolResult) -> str:
    """What a tool gave back, as a text; a value that is none is written as JSON."""
    return "".join(
        json_text(part.value) if isinstance(part, Other) else part.text
        for part in result.parts
        if isinstance(part, Text | Other)
    )


def found_results(patcher: Patcher, document: Document, names: ToolNames | None = None) -> list[FoundResult]:
    """All results of a request, in order."""
    turns = patcher.turns(document)
    raws = [patcher.results(turn) for turn in turns]
    return _found([patcher.message(turn) for turn in turns], raws, names)


def results_in(messages: Sequence[Message]) -> list[FoundResult]:
    """The same of messages whose own words are not known."""
    return _found(messages, [[None for _ in _results(message)] for message in messages], None)


def _found(messages: Sequence[Message], raws: Sequence[list[Any]], names: ToolNames | None) -> list[FoundResult]:
    spoke = max((n for n, message in enumerate(messages) if message.role is Role.ASSISTANT), default=-1)
    found: list[FoundResult] = []
    for at, named in enumerate(with_matched_ids(messages, names)):
        results = list(zip(_results(messages[at]), _results(named), strict=True))
        if len(raws[at]) != len(results):
            continue  # a block that is two things at once: left alone
        for raw, (result, known) in zip(raws[at], results, strict=True):
            one = replace(result, name=known.name)
            found.append(FoundResult(number=len(found), turn=at, result=one, raw=raw, new=at > spoke))
    return found


def _results(message: Message) -> list[ToolResult]:
    return [part for part in message.parts if isinstance(part, ToolResult) and not part.hosted]


def with_results(
    patcher: Patcher, document: Document, found: list[FoundResult], choose: Callable[[FoundResult], NewResult | None]
) -> Document:
    """The document with what ``choose`` gives in place of each result; ``None`` leaves it."""
    chosen: dict[int, list[NewResult | None]] = {}
    for one in found:
        chosen.setdefault(one.turn, []).append(choose(one))
    if not any(given for row in chosen.values() for given in row):
        return document
    turns = [
        patcher.with_results(turn, chosen[at]) if any(chosen.get(at, ())) else turn
        for at, turn in enumerate(patcher.turns(document))
    ]
    return patcher.with_turns(document, turns)


def new_results_of(found: list[FoundResult], name: str) -> list[FoundResult]:
    """The new results of that tool. The only new one counts where nothing tells whose it is."""
    new = [one for one in found if one.new]
    named = [one for one in new if one.result.name == name]
    return named or [one for one in new if len(new) == 1 and not one.result.name]


def new_results_text(found: Sequence[FoundResult]) -> str:
    """In words, which results there are."""
    new = dict.fromkeys(one.result.name or "a tool it does not name" for one in found if one.new)
    return f"it brings new results of: {', '.join(new)}" if new else "it brings no new results at all"
