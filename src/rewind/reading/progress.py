"""How far a long use case has come: the callback that it takes."""

from collections.abc import Callable

OnProgress = Callable[[str, int, int], None]
"""Called with what is counted ("steps read"), how many are done, and of how many."""


def ignored(_what: str, _done: int, _total: int) -> None:
    """For callers that show no progress."""
