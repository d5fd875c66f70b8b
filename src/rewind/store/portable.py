"""A session from a file, behind the same methods as one of the store."""

from types import TracebackType

from rewind.errors import BadCassette
from rewind.model.ids import BlobId
from rewind.model.session import Portable, Recording
from rewind.model.step import NO_BYTES
from rewind.store.journal.writer import Stream


class PortableReader:
    """The same as a reader of the store's sessions, from memory."""

    def __init__(self, portable: Portable) -> None:
        self._portable = portable

    def __enter__(self) -> "PortableReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is open."""

    def make_ready(self) -> None:
        """All is in memory."""

    def recording(self) -> Recording:
        return self._portable.recording

    def blob(self, blob: BlobId) -> bytes:
        if blob == NO_BYTES:
            return b""
        try:
            return self._portable.blobs[blob]
        except KeyError:
            raise BadCassette(f"The file does not hold the bytes {blob}.") from None

    def output(self, stream: Stream) -> bytes | None:
        name = getattr(self._portable.session.end, stream, None)
        return None if name is None else self.blob(name)
