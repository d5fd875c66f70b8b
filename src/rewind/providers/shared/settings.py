"""Where a parameter belongs: beside the messages, or among settings that an API keeps in an object of their own."""

import re
from dataclasses import dataclass

from rewind.providers.shared.patch import Document, Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The object for settings, and the names that stand beside it."""

    inside: str = ""
    beside: frozenset[str] = frozenset()
    two_spellings: bool = False
    """Whether ``maxOutputTokens`` and ``max_output_tokens`` are the same field."""

    def place(self, document: Document, path: Path) -> Path:
        """A bare name goes inside, unless it stands, or belongs, beside."""
        first = self._spelled(document, path[0])
        if self.inside and len(path) == 1 and first not in document and not self._is_beside(first):
            path = (self.inside, *path)
        spelled: list[str] = []
        where: object = document
        for name in path:
            name = self._spelled(where, name)
            spelled.append(name)
            where = where.get(name) if isinstance(where, dict) else None
        return tuple(spelled)

    def _is_beside(self, name: str) -> bool:
        return bool({name, camel(name)} & self.beside) if self.two_spellings else name in self.beside

    def _spelled(self, where: object, name: str) -> str:
        """The spelling that the document has, where it has one."""
        if not self.two_spellings or not isinstance(where, dict):
            return name
        return next((one for one in (name, snake(name), camel(name)) if one in where), name)


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def camel(name: str) -> str:
    return re.sub("_([a-z])", lambda letter: letter[1].upper(), name)
