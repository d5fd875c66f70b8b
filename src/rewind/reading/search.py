"""Where something was said, in everything recorded."""

from collections.abc import Sequence
from pathlib import Path

from rewind.dataclass import dataclass
from rewind.errors import UsageError
from rewind.providers.summary import TextKind
from rewind.reading.progress import OnProgress, ignored
from rewind.store.library import Library
from rewind.store.search.fill import LONGEST
from rewind.store.search.index import IndexState, SearchHit, SearchIndex, SearchQuery

TEXT_KINDS = {
    "system": (TextKind.SYSTEM,),
    "user": (TextKind.USER,),
    "assistant": (TextKind.ASSISTANT,),
    "thinking": (TextKind.THINKING,),
    "tool": (TextKind.TOOL_DEFINITION, TextKind.TOOL_USE, TextKind.TOOL_RESULT),
    "error": (TextKind.ERROR,),
    "http": (TextKind.HTTP,),
}
"""What people call a kind of text → the kinds that it means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchReport:
    """What a search found, newest session first and its last step first."""

    home: Path
    """The store."""
    texts: tuple[str, ...]
    narrowed: bool
    """Whether only a part of the store was searched."""
    limit: int
    hits: tuple[SearchHit, ...]
    more: bool
    """Whether there are older ones beyond the limit."""
    index: IndexState
    """How much was searched."""
    longest: int = LONGEST
    """Characters of a text that are searched."""


def search(
    home: Path,
    texts: Sequence[str],
    *,
    case: bool = False,
    kinds: Sequence[str] = (),
    session: str | None = None,
    since: float | None = None,
    limit: int = 0,
    on_progress: OnProgress = ignored,
) -> SearchReport:
    """The texts of these kinds (of :data:`TEXT_KINDS`; none means all) that contain all of ``texts``.

    At most ``limit`` of them; 0 for all.
    """
    if not all(text.strip() for text in texts):
        raise UsageError("There is nothing to search for: TEXT is empty.", hint='rewind search "refund policy"')
    query = SearchQuery(
        texts=tuple(texts),
        case=case,
        kinds=tuple(kind for name in kinds for kind in TEXT_KINDS[name]),
        folder=Library(home).find(session).folder if session else None,
        since=since,
        limit=limit,
    )
    result = _index(home, on_progress).search(query)
    return SearchReport(
        home=home,
        texts=query.texts,
        narrowed=bool(query.kinds or query.folder or query.since is not None),
        limit=limit,
        hits=result.hits,
        more=result.more,
        index=result.index,
    )


def folders_with(home: Path, texts: Sequence[str], on_progress: OnProgress = ignored) -> frozenset[str]:
    """The folders of the sessions in which a search for these texts finds something."""
    return frozenset(_index(home, on_progress).sessions_with(*texts))


def _index(home: Path, on_progress: OnProgress) -> SearchIndex:
    return SearchIndex(home, on_progress=lambda done, of: on_progress("sessions made searchable", done, of))
