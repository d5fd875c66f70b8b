"""What a reader of another tool's file has to say: each thing once, with how often it was so."""

from collections import Counter


class Remarks:
    """Told while a file is read."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, text: str) -> None:
        self._counts[text] += 1

    def texts(self) -> tuple[str, ...]:
        """In the order in which they first came up."""
        return tuple(
            text + (f" ({count} times)" if count > 1 else "") for text, count in self._counts.items()
        )
