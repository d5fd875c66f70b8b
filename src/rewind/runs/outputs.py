"""The agent's standard streams on their way to the store, redacted like everything else."""

import threading
from functools import partial

from rewind.redaction.redactor import Redactor
from rewind.redaction.stream_redactor import StreamRedactor
from rewind.runs.writer_thread import WriterThread
from rewind.store.journal.writer import Stream

PRINTED: tuple[Stream, ...] = ("stdout", "stderr")


class Outputs:
    """Takes what passed through ``stdin``, ``stdout`` and ``stderr``; called from the threads that pump them."""

    def __init__(self, writer_thread: WriterThread, redactor: Redactor) -> None:
        self._writer_thread = writer_thread
        self._redactor = redactor
        self._streams: dict[Stream, StreamRedactor] = {}
        self._lock = threading.Lock()
        for name in PRINTED:
            self._writer_thread.later(
                partial(writer_thread.writer.output, name, b"")
            )  # it was there, even if nothing is printed

    def tee(self, name: Stream, data: bytes) -> None:
        with self._lock:
            stream = self._streams.get(name)
            if stream is None:
                stream = self._streams[name] = self._redactor.output()
            self._write(name, stream.feed(data))

    def finish(self) -> None:
        """Write what was held back in case a secret was beginning."""
        with self._lock:
            for name, stream in self._streams.items():
                self._write(name, stream.finish())
            self._streams.clear()

    def _write(self, name: Stream, data: bytes) -> None:
        if data:
            self._writer_thread.later(lambda: self._writer_thread.writer.output(name, data))
