"""What a search found, as plain JSON."""

from collections.abc import Sequence
from typing import Any, Protocol

from rewind.views import moment


class Hit(Protocol):
    """A text in which all was found."""

    @property
    def session(self) -> str: ...
    @property
    def folder(self) -> str: ...
    @property
    def step(self) -> int: ...
    @property
    def ts(self) -> float: ...
    @property
    def kind(self) -> str: ...
    @property
    def snippet(self) -> str: ...
    @property
    def marks(self) -> Sequence[tuple[int, int]]: ...


class IndexState(Protocol):
    """How much was searched."""

    @property
    def sessions(self) -> int: ...
    @property
    def texts(self) -> int: ...
    @property
    def cut(self) -> int: ...
    @property
    def unreadable(self) -> int: ...


class Found(Protocol):
    """The hits, newest first."""

    @property
    def hits(self) -> Sequence[Hit]: ...
    @property
    def more(self) -> bool: ...
    @property
    def index(self) -> IndexState: ...


def search(found: Found) -> dict[str, Any]:
    """The hits of a search. ``marks`` are start and end of each place, counted in characters of the snippet."""
    index = found.index
    return {
        "schema": "rewind/search@1",
        "hits": [
            {
                "session": hit.session,
                "step": hit.step,
                "kind": hit.kind,
                "started": moment(hit.ts),
                "snippet": hit.snippet,
                "marks": [list(mark) for mark in hit.marks],
                "folder": hit.folder,
            }
            for hit in found.hits
        ],
        "more": found.more,
        "searched": {
            "sessions": index.sessions,
            "texts": index.texts,
            "cut": index.cut,
            "unreadable": index.unreadable,
        },
    }
