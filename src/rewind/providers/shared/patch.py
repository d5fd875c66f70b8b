"""What a dialect is: a few pure functions that know where one API's requests keep things, and put others there.

Documents and turns are values: every function gives back a new one, and what it does not change is the same object
in the same order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rewind.errors import CannotEdit
from rewind.model.message import Message

Document = dict[str, Any]
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a tool is said to have given back."""

    text: str
    failed: bool = False
    raw: Any = None
    """The same as this very dialect writes it; ``None`` where only the text is known."""


class Dialect(Protocol):
    """How one API writes a request. Raises CannotEdit where it has no such thing."""

    @property
    def name(self) -> str:
        """Pieces can be moved as they are between requests of the same name."""
        ...

    def system(self, document: Document) -> Any:
        """The system prompt as it is written; ``None`` where there is none."""
        ...

    def with_system(self, document: Document, raw: Any) -> Document:
        """Another one, written in this dialect."""
        ...

    def with_system_text(self, document: Document, text: str) -> Document:
        """Another one; an empty text leaves none."""
        ...

    def with_more_system(self, document: Document, text: str) -> Document:
        """The same one with a text at its end."""
        ...

    def turns(self, document: Document) -> list[Any]:
        """The messages as they are written."""
        ...

    def with_turns(self, document: Document, turns: list[Any]) -> Document: ...

    def message(self, turn: Any) -> Message:
        """One of them, read."""
        ...

    def with_words(self, turn: Any, text: str) -> Any:
        """The same message with another text."""
        ...

    def results(self, turn: Any) -> list[Any]:
        """What tools gave back in that message as it is written, one for each result that ``message`` reads."""
        ...

    def with_results(self, turn: Any, given: Sequence[Given | None]) -> Any:
        """The message with other results, in the order of ``results``; ``None`` leaves one as it is."""
        ...

    def written(self, message: Message) -> list[Any]:
        """A message of another API in this one's words; it may take several."""
        ...

    def parameter(self, document: Document, path: Path) -> Path:
        """Where a parameter stands, or belongs."""
        ...


# ── texts and lists of blocks ────────────────────────────────────────────────────────────────────────────────


def appended(text: str, more: str) -> str:
    """The text with more at its end, on a line of its own."""
    return text + more if not text or text[-1].isspace() else f"{text}\n{more}"


@dataclass(frozen=True, slots=True)
class Words:
    """How a dialect tells words from other blocks of a message, and writes such a block."""

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


def without(document: Document, *names: str) -> Document:
    return {name: value for name, value in document.items() if name not in names}


def listed(document: Document, name: str) -> list[Any]:
    """The list of that name; an absent one is empty. Raises CannotEdit for anything else."""
    found = document.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise CannotEdit(f"{name} of the request is no list.")
    return found


def as_object(turn: Any) -> dict[str, Any]:
    if not isinstance(turn, dict):
        raise CannotEdit("The message is no JSON object.")
    return turn
