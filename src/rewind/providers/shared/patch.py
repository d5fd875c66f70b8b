"""What patchers share: blocks of text, values in a document by their path, the model of a request, and requests
without a list of messages.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from rewind.dataclass import dataclass
from rewind.errors import CannotEdit
from rewind.model.http import RequestHead
from rewind.model.message import Message, Role, Text, text_of
from rewind.providers.api import Document, FieldPath, NewResult, Patcher
from rewind.providers.shared.chat_messages import input_messages
from rewind.providers.shared.json_fields import without

# ── texts and lists of blocks ────────────────────────────────────────────────────────────────────────────────


def appended(text: str, more: str) -> str:
    """The text with more at its end, on a line of its own."""
    return text + more if not text or text[-1].isspace() else f"{text}\n{more}"


@dataclass(frozen=True, slots=True)
class TextBlocks:
    """How an API tells texts from other blocks of a message, and writes such a block."""

    are: Callable[[Any], bool]
    made: Callable[[str, Any], Any]
    """From a text, and the block that it replaces (``None`` where there was none)."""

    def replaced(self, blocks: Sequence[Any], text: str, *, at: int = 0) -> list[Any]:
        """One block of words in place of all; where there was none, it is put in at ``at``."""
        places = [number for number, block in enumerate(blocks) if self.are(block)]
        old = blocks[places[-1]] if places else None
        kept = [block for block in blocks if not self.are(block)]
        kept.insert(places[0] if places else at, self.made(text, old))
        return kept

    def extended(self, blocks: Sequence[Any], text: str) -> list[Any]:
        """The last words with more behind them."""
        last = next((at for at in reversed(range(len(blocks))) if self.are(blocks[at])), None)
        if last is None:
            return [*blocks, self.made(text, None)]
        old = blocks[last]
        return [*blocks[:last], self.made(appended(old["text"], text), old), *blocks[last + 1 :]]


def is_text_of(*kinds: str) -> Callable[[Any], bool]:
    """Whether a block is of one of these types and has a text."""

    def are(block: Any) -> bool:
        return isinstance(block, dict) and block.get("type") in kinds and isinstance(block.get("text"), str)

    return are


def listed(document: Document, name: str) -> list[Any]:
    """The list of that name; an absent one is empty. Raises CannotEdit for anything else."""
    found = document.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise CannotEdit(f"The field {name} of the request is not a list.")
    return found


def as_object(turn: Any) -> dict[str, Any]:
    if not isinstance(turn, dict):
        raise CannotEdit("The message is not a JSON object.")
    return turn


# ── values by their path ─────────────────────────────────────────────────────────────────────────────────────

ABSENT = object()
"""What is not there, which is not the same as ``null``."""

_IN_PATH = (
    re.compile(r"(?<=/deployments/)[^/?]+(?=/)"),
    re.compile(r"(?<=/models/)(?:(?!%3a)[^/?:])+(?=:|%3a)", re.IGNORECASE),
)
"""Azure names a deployment in the path; Google a model, also one of Anthropic's."""


def value_at(document: Any, path: FieldPath) -> Any:
    """The value there, or ``ABSENT``."""
    for name in path:
        if not isinstance(document, dict) or name not in document:
            return ABSENT
        document = document[name]
    return document


def with_value(document: Document, path: FieldPath, value: Any) -> Document:
    """The document with that value; objects on the way are made where there are none. ``ABSENT`` takes it out."""
    name, *rest = path
    if not rest:
        if value is ABSENT:
            return {key: kept for key, kept in document.items() if key != name}
        return {**document, name: value}
    inner = document.get(name)
    if inner is None and value is ABSENT:
        return document
    if not isinstance(inner, dict | None):
        raise CannotEdit(f"The field {name} of the request is not an object, so it has no {'.'.join(rest)}.")
    return {**document, name: with_value(inner or {}, tuple(rest), value)}


def json_or_text(written: str) -> Any:
    """The JSON value that the text is, or the text itself."""

    def no_json(word: str) -> Any:
        raise ValueError(word)  # NaN and Infinity are Python's own, not JSON's

    try:
        return json.loads(written, parse_constant=no_json)
    except (ValueError, RecursionError):
        return written


def with_model(head: RequestHead, document: Document, name: str, *, anywhere: bool) -> tuple[RequestHead, Document]:
    """The request with another model, in its path or body, or both.

    Where neither names one, it is put into the body if the API takes it there (``anywhere``).
    """
    path, mark, query = head.target.partition("?")
    found = next((place for place in _IN_PATH if place.search(path)), None)
    if found is None and "model" not in document and not anywhere:
        raise CannotEdit("The request does not name a model.")
    if found is not None:
        bare = name.removeprefix("models/")
        if re.search("[/:]", bare):
            raise CannotEdit(f"The request names its model in the path of its URL, where {name!r} cannot stand.")
        path = found.sub(lambda _: quote(bare, safe=""), path, count=1)
        head = replace(head, target=f"{path}{mark}{query}")
    old = document.get("model")
    if "model" in document or found is None:
        spelled = isinstance(old, str) and old.startswith("models/") and not name.startswith("models/")
        document = {**document, "model": f"models/{name}" if spelled else name}
    return head, document


# ── where a parameter belongs ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterPlaces:
    """The object for settings, and the names that stand beside it."""

    inside: str = ""
    beside: frozenset[str] = frozenset()
    two_spellings: bool = False
    """Whether ``maxOutputTokens`` and ``max_output_tokens`` are the same field."""

    def place(self, document: Document, path: FieldPath) -> FieldPath:
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


# ── requests without a list of messages ──────────────────────────────────────────────────────────────────────


class FieldPatcher:
    """Has parameters, and at most a prompt and a system prompt in fields of their own."""

    def __init__(
        self,
        name: str,
        *,
        api: str,
        system: str = "",
        prompt: str = "",
        settings: ParameterPlaces | None = None,
        model_in_body: bool = False,
    ) -> None:
        self.name = name
        self._api = api
        self._system = system
        self._prompt = prompt
        self.model_in_body = model_in_body
        self._settings = settings or ParameterPlaces()

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
        return next(iter(input_messages(turn)), Message(Role.USER, ()))

    def with_words(self, turn: Any, text: str) -> Any:
        return text

    def results(self, turn: Any) -> list[Any]:
        return []

    def with_results(self, turn: Any, results: Sequence[NewResult | None]) -> Any:
        return turn

    def written(self, message: Message) -> list[Any]:
        return [text_of(tuple(part for part in message.parts if isinstance(part, Text)))]

    def parameter(self, document: Document, path: FieldPath) -> FieldPath:
        return self._settings.place(document, path)


def plain_patcher(name: str, head: RequestHead) -> Patcher:
    """For a call of which only the fields can be set."""
    return FieldPatcher(name, api=f"This call to {head.host}")
