"""Writes one session as it happens: first the bytes, then the line that names them.

What a returned call has written survives the death of this process (and, if durable, of the machine). A disk that fails
never reaches the agent: the writer says why it is ``broken``, keeps what it had whole, and does nothing more.

A step may be written in two goes: its bytes with a short line (``asked``, ``answered``), so that the agent need not
wait for what they mean, and later the line that tells it (``request``, and ``step`` or ``cut``). Short lines stand in a
file of their own beside the journal, which is emptied when all that it tells of is in the journal.
"""

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from rewind.errors import EnvironmentProblem
from rewind.model.clock import Clock, SystemClock
from rewind.model.http import Chunk, ResponseHead
from rewind.model.ids import BlobId, SessionId, blob_id
from rewind.model.session import SessionEnd, SessionStart, Surroundings
from rewind.model.step import NO_BYTES, Reading, StepRequest, StepResponse
from rewind.pricing.spending import Pricing
from rewind.store.files import GrowingFile, folder_name, make_private_folder, prepare_home, reason, sync_names
from rewind.store.journal import records
from rewind.store.journal.lines import Fields, seal, stamped
from rewind.store.journal.part import SHORT_LINES, PartFile, part_blocks, part_records
from rewind.store.journal.totals import AnswerFacts, RequestFacts, Totals, TotalsCounter, totals_fields
from rewind.store.pack.bodies import BLOCK, PackWriter, blocks_of
from rewind.store.pack.frames import FrameRole

Stream = Literal["stdin", "stdout", "stderr"]
STREAMS: dict[Stream, FrameRole] = {"stdin": FrameRole.STDIN, "stdout": FrameRole.STDOUT, "stderr": FrameRole.STDERR}

_CHUNKS_IN_LINE = 16
_MOST_SHORT_LINES = 64 * 1024


class SessionWriter:
    """The one writer of a session.

    Bytes and short lines may come from any thread, and so may ``PartFile.append``; all else comes from one.
    """

    def __init__(
        self,
        folder: Path,
        run: SessionId,
        lines: GrowingFile,
        pack: PackWriter,
        clock: Clock,
        pricing: Pricing | None = None,
    ) -> None:
        self.folder = folder
        self.broken: str | None = None
        """Why nothing is written any more."""
        self._run = run
        self._clock = clock
        self._number = 0
        self._counter = TotalsCounter(pricing)
        self.lost: set[int] = set()
        """Steps whose answers could not be kept, once it is broken."""
        self.totals = Totals()
        """What was written, once it has ended."""
        self._parts: dict[int, PartFile] = {}
        self._outputs: dict[Stream, GrowingFile] = {}
        self._journal = lines
        self._lines = threading.Lock()
        self._short_lines: GrowingFile | None = None
        self._told_in_short: set[int] = set()
        """Steps that the journal itself does not tell of, or not yet whole."""
        self._requested: set[int] = set()
        """Steps of which the journal tells the request, and not yet the answer."""
        self.storing = threading.RLock()
        """Held while the bytes of a request are stored."""
        self._pack = pack

    @classmethod
    def create(
        cls,
        home: Path,
        start: SessionStart,
        *,
        durable: bool = False,
        clock: Clock | None = None,
        pricing: Pricing | None = None,
    ) -> "SessionWriter":
        """Begin a session; with ``pricing``, its totals tell the cost. Raises EnvironmentProblem."""
        name = folder_name(start)
        sessions = prepare_home(home)
        # Built aside and renamed, so that nobody ever sees a session without its first line.
        aside, final = sessions / f".new-{name}", sessions / name
        if final.exists():
            raise EnvironmentProblem(f"There is a session {start.id} of that moment already.")
        try:
            make_private_folder(aside)
            with contextlib.ExitStack() as undo:
                undo.callback(shutil.rmtree, aside, ignore_errors=True)
                lines = GrowingFile(aside / "journal.jsonl", durable=durable)
                undo.callback(lines.close)
                lines.lock()
                pack = PackWriter(aside / "pack", durable=durable)
                undo.callback(pack.close)
                writer = cls(final, start.id, lines, pack, clock or SystemClock(), pricing)
                writer._write(records.session_fields(start))
                aside.rename(final)
                undo.pop_all()
            if durable:
                sync_names(final, sessions, home, *home.absolute().parents)
        except OSError as error:
            raise EnvironmentProblem(f"Cannot write a session to {sessions}: {reason(error)}.") from error
        return writer

    def request(self, request: StepRequest, body: bytes) -> None:
        """Keep a complete request."""
        self.request_line(self.request_bytes(request, body))

    def request_bytes(self, request: StepRequest, body: bytes) -> StepRequest:
        """Keep the bytes of a request; the request with their name. Waits while another thread keeps another's."""
        blob = NO_BYTES
        if self.broken is None:
            with self._writing(f"the request of step {request.index}"), self.storing:
                blob = self._pack.add_request(request.index, body)
        return replace(request, body=blob, body_size=len(body))

    def asked(self, request: StepRequest) -> None:
        """Say in short that this was asked. Told again once its bytes are kept; the last time counts."""
        if self.broken is None:
            with self._writing(f"the request of step {request.index}"):
                self._write_short(records.asked_fields(request))

    def request_line(self, request: StepRequest) -> None:
        """Say what was asked, and what it means."""
        if self.broken is None:
            with self._writing(f"the request of step {request.index}"):
                self._write(records.request_fields(request))
                self._counter.request(request.index, RequestFacts.of(request))
                self._requested.add(request.index)

    def part(self, index: int, head: ResponseHead) -> PartFile:
        """The file for an answer that is arriving."""
        if self.broken is not None:
            return PartFile.nowhere()
        part = PartFile(self.folder / f"part.{index}", head, broken=self._fail)
        self._parts[index] = part
        return part

    def response(self, index: int, response: StepResponse, body: bytes | Iterator[bytes] | None) -> None:
        """Keep a whole answer, given whole or in blocks. ``None`` takes the bytes, and if need be the chunks, from the
        part."""
        self.lost.add(index)
        if self._keep_response(index, response, body):
            self.lost.discard(index)

    def _keep_response(self, index: int, response: StepResponse, body: bytes | Iterator[bytes] | None) -> bool:
        """False where it could not be written."""
        part = self._parts.pop(index, None)
        if part is not None:
            part.close()
        if self.broken is None:
            with self._writing(f"the response of step {index}"):
                if body is None and part is not None:
                    body = part_blocks(part.path, BLOCK)
                    if not response.chunks:
                        chunks = tuple(Chunk(at, len(piece)) for at, piece in part_records(part.path))
                        response = replace(response, chunks=chunks)
                self._write_response(index, response, b"" if body is None else body)
                if part is not None:
                    part.path.unlink(missing_ok=True)
                return True
        return False

    def _write_response(self, index: int, response: StepResponse, body: bytes | Iterator[bytes]) -> None:
        self._response_line(index, *self._response_bytes(index, response, body))

    def _response_bytes(
        self, index: int, response: StepResponse, body: bytes | Iterator[bytes]
    ) -> tuple[StepResponse, BlobId | None]:
        """The answer with the name of its bytes, and the name of its times where a line cannot hold them."""
        times = records.encode_times(response.chunks) if len(response.chunks) > _CHUNKS_IN_LINE else b""
        blocks = blocks_of(body) if isinstance(body, bytes) else body
        blob, size = self._pack.add_whole(FrameRole.RESPONSE, index, blocks, beside=times)
        return replace(response, body=blob, body_size=size), blob_id(times) if times else None

    def _response_line(self, index: int, response: StepResponse, times: BlobId | None) -> None:
        self._write(records.response_fields(index, self._clock.now(), response, times))
        self._counter.answer(index, AnswerFacts.of(response))
        with self._lines:
            if index in self._requested:
                self._requested.discard(index)
                self._told_in_short.discard(index)
            lines = self._short_lines
            if lines is not None and lines.size > _MOST_SHORT_LINES and not self._told_in_short:
                lines.clear()

    def answered(
        self, index: int, response: StepResponse, body: bytes | Iterator[bytes] | None
    ) -> Callable[[Reading], object]:
        """Keep a whole answer, and say so in short, before the agent sees its end; ``None``: its part has the bytes.

        What it gives back writes the line with its meaning, later.
        """
        self.lost.add(index)
        if body is None or self.broken is not None:
            part = self._parts.get(index)
            if part is not None and self._journal.durable:
                part.sync()
                sync_names(self.folder)
            if self.broken is None:
                told = replace(response, body_size=0 if part is None else part.size)
                with self._writing(f"the response of step {index}"):
                    self._write_short(records.answered_fields(index, self._clock.now(), told, None, in_part=True))
                    self.lost.discard(index)
            return lambda reading: self._keep_response(index, replace(response, reading=reading), body)
        kept: tuple[StepResponse, BlobId | None] = response, None
        part = self._parts.pop(index, None)
        with self._writing(f"the response of step {index}"):
            kept = self._response_bytes(index, response, body)
            self._write_short(records.answered_fields(index, self._clock.now(), *kept, in_part=False))
            if part is not None:
                part.discard()
            self.lost.discard(index)
        return lambda reading: self._answer_read(index, *kept, reading)

    def _answer_read(self, index: int, response: StepResponse, times: BlobId | None, reading: Reading) -> None:
        if self.broken is None:
            with self._writing(f"the response of step {index}"):
                self._response_line(index, replace(response, reading=reading), times)

    def output(self, stream: Stream, data: bytes) -> None:
        """Keep what the agent read or wrote. Empty data says: the stream was there."""
        if self.broken is None:
            with self._writing(stream):
                if stream not in self._outputs:
                    self._outputs[stream] = GrowingFile(self.folder / f"{stream}.part")
                if data:
                    self._outputs[stream].append(data)

    def surroundings(self, surroundings: Surroundings) -> None:
        """Keep what the run stands on."""
        if self.broken is None:
            with self._writing("what the run stands on"):
                self._write(records.surroundings_fields(surroundings, self._clock.now()))

    def end(
        self, *, ended: float, exit_code: int, redactions: int, remarks: tuple[str, ...], broken: str | None = None
    ) -> None:
        """The last line, written even by a broken writer if the disk lets it. Everything is closed afterwards.

        ``broken`` is for a copy: why steps were missing already.
        """
        blobs = self._pack_outputs() if self.broken is None else {}
        end = SessionEnd(
            ended=ended,
            exit_code=exit_code,
            stdin=blobs.get("stdin"),
            stdout=blobs.get("stdout"),
            stderr=blobs.get("stderr"),
            redactions=redactions,
            remarks=remarks,
            broken=self.broken or broken,
        )
        with self._writing("the end of the session"):
            self.totals = self._counter.totals()
            self._write(records.end_fields(end, totals_fields(self.totals), self._pack.size))
            for stream in blobs:
                (self.folder / f"{stream}.part").unlink(missing_ok=True)
            if self.broken is None and not self._told_in_short:
                (self.folder / SHORT_LINES).unlink(missing_ok=True)
        self.close()

    def _pack_outputs(self) -> dict[Stream, BlobId]:
        blobs: dict[Stream, BlobId] = {}
        for stream, file in self._outputs.items():
            blocks = (file.read(BLOCK, start) for start in range(0, file.size, BLOCK))
            try:
                blobs[stream], _ = self._pack.add_whole(STREAMS[stream], 0, blocks)
            except OSError as error:
                self._fail(f"{stream} could not be written: {reason(error)}")
                break
        return blobs

    def abandon(self) -> None:
        """The session never began: nothing of it stays."""
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def close(self) -> None:
        """Let go of the files, as if the process had died: without ``end`` before, the session is interrupted."""
        for part in self._parts.values():
            part.close()
        for file in self._outputs.values():
            file.close()
        if self._short_lines is not None:
            self._short_lines.close()
        self._pack.close()
        self._journal.close()

    def _write(self, fields: Fields) -> None:
        with self._lines:
            self._journal.append(seal(stamped(fields, run=self._run, number=self._number)))
            self._number += 1

    def _write_short(self, fields: Fields) -> None:
        with self._lines:
            if self._short_lines is None:
                self._short_lines = GrowingFile(self.folder / SHORT_LINES, durable=self._journal.durable)
                if self._journal.durable:
                    sync_names(self.folder)
            self._short_lines.append(seal(stamped(fields, run=self._run, number=-1)))
            self._told_in_short.add(fields["step"])

    @contextlib.contextmanager
    def _writing(self, what: str) -> Iterator[None]:
        """A disk that fails breaks the writer, and reaches nobody else."""
        try:
            yield
        except OSError as error:
            self._fail(f"{what} could not be written: {reason(error)}")

    def _fail(self, why: str) -> None:
        if self.broken is None:
            self.broken = why
