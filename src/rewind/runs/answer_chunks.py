"""An answer while it is still coming: its pieces merge into the chunks that replay will send."""

from dataclasses import dataclass, field

from rewind.model.http import Chunk


@dataclass(slots=True)
class Draft:
    """When each chunk of a body came, and how long it is."""

    chunks: list[Chunk] = field(default_factory=list)
    first_at: int | None = None
    size: int = 0
    _open: int = 0
    """Bytes of a transfer chunk whose end has not come yet."""

    def piece(self, at: int, size: int, *, ends_chunk: bool) -> None:
        """Some bytes came at that time (microseconds since the request was complete)."""
        if self.first_at is None and size:
            self.first_at = at
        self.size += size
        self._open += size
        if ends_chunk and self._open:
            self.chunks.append(Chunk(at, self._open))
            self._open = 0

    def finish(self, at: int) -> tuple[Chunk, ...]:
        """All chunks; one that broke off in the middle counts as far as it came."""
        if self._open:
            self.chunks.append(Chunk(at, self._open))
            self._open = 0
        return tuple(self.chunks)
