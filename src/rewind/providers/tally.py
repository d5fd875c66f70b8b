"""What is gathered while the documents of an answer go by, whole or in deltas."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rewind.model.http import HttpResponse
from rewind.model.step import Reading
from rewind.providers.answer import Answer, error_of
from rewind.providers.fields import asked_tool, said, text_at, writable


@dataclass(slots=True)
class ToolAsked:
    """A tool call that the model asks for; its arguments may come in pieces of JSON."""

    name: str = ""
    arguments: Any = None
    pieces: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return asked_tool(self.name, "".join(self.pieces) or self.arguments)


@dataclass(slots=True)
class Tally:
    """Filled by a provider, document by document, and read once at the end."""

    model: str = ""
    texts: list[str] = field(default_factory=list)
    tools: dict[int, ToolAsked] = field(default_factory=dict)
    tokens_in: int | None = None
    tokens_out: int | None = None
    note: str | None = None

    def named(self, document: Any, *path: str | int) -> None:
        """The model that answers, where the document names it."""
        self.model = text_at(document, *path) or self.model

    def text(self, text: str) -> None:
        if text:
            self.texts.append(text)

    def tool(self, number: int | None) -> ToolAsked:
        """The tool call with that number, new or known; without a number, one more."""
        if number is None:
            number = max(self.tools, default=-1) + 1
        return self.tools.setdefault(number, ToolAsked())

    def reading(self, response: HttpResponse, answer: Answer, asked: Callable[[], str | None]) -> Reading:
        """``asked`` gives the model of the request; it is called only where the answer names none."""
        return Reading(
            model=writable(self.model)[:200] or asked(),
            text=said(self.texts, map(str, self.tools.values())),
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            error=error_of(response, answer),
            note=answer.note or self.note,
        )
