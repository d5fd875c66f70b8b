"""One edit on one request: the pieces that a first call and the later ones share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewind.edit.edits import (
    AppendSystem,
    Edit,
    From,
    Literal,
    SetMessage,
    SetModel,
    SetParameter,
    SetSystem,
    SetToolResult,
    Source,
    Taken,
    TakenMessage,
    TakenParameter,
    TakenResult,
    TakenSystem,
)
from rewind.errors import CannotEdit, UsageError
from rewind.model.http import RequestHead
from rewind.model.message import Role
from rewind.providers.shared.patch import Dialect, Document, Given
from rewind.providers.shared.values import ABSENT, json_or_text, with_model, with_value

_STRUCTURE = frozenset(
    {
        *("messages", "input", "contents", "tools", "toolConfig", "tool_config", "functions"),
        *("systemInstruction", "system_instruction", "tool_choice", "response_format", "text"),
    }
)
"""Parameters that every API writes in its own way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A request while it is edited."""

    head: RequestHead
    document: Document
    dialect: Dialect

    def with_document(self, document: Document) -> "Draft":
        return replace(self, document=document)


def literal(source: Source) -> str | None:
    """The text as the user wrote it; ``None`` for a value that was taken from a step."""
    if isinstance(source, From):
        raise UsageError(f"{source.written} has not been looked up.")
    return source.text if isinstance(source, Literal) else None


def taken(source: Source) -> Any:
    assert isinstance(source, Taken), "what is neither written nor looked up was refused before"
    return source.value


def with_system(draft: Draft, edit: SetSystem | AppendSystem) -> Draft:
    dialect, document = draft.dialect, draft.document
    text = literal(edit.value)
    if text is None:
        found = taken(edit.value)
        assert isinstance(found, TakenSystem), "a system prompt was looked up"
        if isinstance(edit, SetSystem) and found.raw is not None and found.dialect == dialect.name:
            return draft.with_document(dialect.with_system(document, found.raw))
        text = found.text
    put = dialect.with_system_text if isinstance(edit, SetSystem) else dialect.with_more_system
    return draft.with_document(put(document, text))


def with_another_model(draft: Draft, edit: SetModel) -> Draft:
    name = literal(edit.value)
    head, document = with_model(
        draft.head,
        draft.document,
        str(taken(edit.value)) if name is None else name,
        anywhere=draft.dialect.name in _MODEL_IN_BODY,
    )
    return replace(draft, head=head, document=document)


_MODEL_IN_BODY = (
    "anthropic",
    "openai-chat",
    "openai-responses",
    "ollama",
    "ollama-generate",
    "cohere",
    "completions",
)


def with_parameter(draft: Draft, edit: SetParameter) -> Draft:
    dialect = draft.dialect
    written = literal(edit.value)
    if written is not None:
        value = ABSENT if edit.removes else json_or_text(written)
    else:
        found = taken(edit.value)
        assert isinstance(found, TakenParameter), "a parameter was looked up"
        if edit.path[0] in _STRUCTURE and found.dialect != dialect.name:
            raise CannotEdit(
                f"{edit.written}: {edit.path[0]} of one API means nothing to another.",
                hint="take it from a step that speaks the same API",
            )
        value = found.value
    place = dialect.parameter(draft.document, edit.path)
    return draft.with_document(with_value(draft.document, place, value))


def with_message(draft: Draft, edit: SetMessage, at: int) -> Draft:
    """With the edit's value in place of the message at that (absolute) place."""
    turns = draft.dialect.turns(draft.document)
    new = _new_turns(draft.dialect, turns[at], edit)
    return draft.with_document(
        draft.dialect.with_turns(draft.document, [*turns[:at], *new, *turns[at + 1 :]])
    )


def in_order(draft: Draft, edits: Sequence[Edit]) -> list[tuple[Edit, int]]:
    """The edits, each with the place of its message (-1 for others), in the order in which they are made.

    Messages from the last to the first, then results, then all else: so every number means what the user saw.
    Raises CannotEdit where there is no such message.
    """
    placed = [(edit, _absolute(draft, edit) if isinstance(edit, SetMessage) else -1) for edit in edits]

    def turn(one: tuple[Edit, int]) -> tuple[int, int]:
        edit, at = one
        rank = 0 if isinstance(edit, SetMessage) else 1 if isinstance(edit, SetToolResult) else 2
        return rank, -at

    return sorted(placed, key=turn)


def _absolute(draft: Draft, edit: SetMessage) -> int:
    count = len(draft.dialect.turns(draft.document))
    if not -count <= edit.index < count:
        there = f"they are 0 to {count - 1}" if count else "it has none"
        raise CannotEdit(f"The request has no messages[{edit.index}]: {there}.")
    return edit.index % count


def _new_turns(dialect: Dialect, turn: Any, edit: SetMessage) -> Sequence[Any]:
    written = literal(edit.value)
    if written is not None:
        value = json_or_text(written)
        return [value] if isinstance(value, dict) else [_with_words(dialect, turn, written, edit)]
    found = taken(edit.value)
    assert isinstance(found, TakenMessage), "a message was looked up"
    if found.dialect == dialect.name:
        return [found.raw]
    new = dialect.written(found.message)
    if not new:
        raise CannotEdit(f"{edit.written}: that message holds nothing that another API could be given.")
    return new


def _with_words(dialect: Dialect, turn: Any, text: str, edit: SetMessage) -> Any:
    if dialect.message(turn).role is Role.TOOL and (results := dialect.results(turn)):
        # A message that only brings results has no other text than theirs.
        if len(results) > 1:
            raise CannotEdit(
                f"messages[{edit.index}] brings {len(results)} results of tools.",
                hint="tool.NAME.result=VALUE",
            )
        return dialect.with_results(turn, [Given(text=text)])
    return dialect.with_words(turn, text)


def given_by(edit: SetToolResult, dialect: Dialect) -> Callable[[int], Given]:
    """What the edit puts in place of the first, second, … result of its tool."""
    text = literal(edit.value)
    if text is not None:
        return lambda _number: Given(text=text)
    found: tuple[TakenResult, ...] = taken(edit.value)

    def given(number: int) -> Given:
        one = found[min(number, len(found) - 1)]
        raw = one.raw if one.dialect == dialect.name else None
        return Given(text=one.text, failed=one.failed, raw=raw)

    return given
