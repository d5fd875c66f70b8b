"""Requests without a list of messages: a prompt, something to embed, or anything else that is a JSON object."""

from collections.abc import Sequence
from typing import Any

from rewind.errors import CannotEdit
from rewind.model.message import Message, Role, Text, text_of
from rewind.providers.openai_chat.messages import given as given_texts
from rewind.providers.shared.patch import Document, Given, Path, appended, without
from rewind.providers.shared.settings import Settings


class Plain:
    """Has parameters, and at most a prompt and a system prompt in fields of their own."""

    def __init__(
        self,
        name: str,
        *,
        api: str,
        system: str = "",
        prompt: str = "",
        settings: Settings | None = None,
    ) -> None:
        self.name = name
        self._api = api
        self._system = system
        self._prompt = prompt
        self._settings = settings or Settings()

    def system(self, document: Document) -> Any:
        return (document.get(self._system) or None) if self._system else None

    def with_system(self, document: Document, raw: Any) -> Document:
        if not self._system:
            raise CannotEdit(f"{self._api} takes no system prompt.")
        return {**document, self._system: raw} if raw else without(document, self._system)

    def with_system_text(self, document: Document, text: str) -> Document:
        return self.with_system(document, text)

    def with_more_system(self, document: Document, text: str) -> Document:
        old = self.system(document)
        return self.with_system(document, appended(old if isinstance(old, str) else "", text))

    def turns(self, document: Document) -> list[Any]:
        prompt = document.get(self._prompt) if self._prompt else None
        if prompt is None:
            raise CannotEdit(f"{self._api} has no messages that Rewind can change.")
        several = isinstance(prompt, list) and all(isinstance(one, str) for one in prompt)
        return prompt if several else [prompt]

    def with_turns(self, document: Document, turns: list[Any]) -> Document:
        return {**document, self._prompt: turns if isinstance(document.get(self._prompt), list) else turns[0]}

    def message(self, turn: Any) -> Message:
        return next(iter(given_texts(turn)), Message(Role.USER, ()))

    def with_words(self, turn: Any, text: str) -> Any:
        return text

    def results(self, turn: Any) -> list[Any]:
        return []

    def with_results(self, turn: Any, given: Sequence[Given | None]) -> Any:
        return turn

    def written(self, message: Message) -> list[Any]:
        return [text_of(tuple(part for part in message.parts if isinstance(part, Text)))]

    def parameter(self, document: Document, path: Path) -> Path:
        return self._settings.place(document, path)
