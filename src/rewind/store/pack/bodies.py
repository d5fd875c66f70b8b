"""The pack: one append-only file per session with every body, the repeated parts of requests only once.

A request is a recipe: a list of chunk names, of which only the new chunks are stored. Recipes lean on an earlier
recipe, chosen among the last ones of the conversations seen lately, so that parallel conversations each lean on
their own. A response shares nothing with anybody: damage elsewhere cannot reach it, and it is all replay needs.
"""

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from weakref import WeakSet

import zstandard

from rewind.errors import DamagedStore
from rewind.model.ids import BlobId
from rewind.model.step import NO_BYTES
from rewind.store.files import GrowingFile, open_to_read, read_at
from rewind.store.pack import frames
from rewind.store.pack.frames import (
    NEW,
    BadFrame,
    FrameHeader,
    FrameRole,
    GrowingBodies,
    PackIndex,
    RecentRecipes,
    Recipe,
    RecipeReader,
)
from rewind.wire.chunks import LARGEST, BodyCutter, CutBody

BLOCK = 4 * LARGEST
"""What goes into one frame; also the size in which long streams are stored."""
_LEVEL = 3
_QUICK_LEVEL = 1
_MUCH = 32 * 1024
_GLANCE = 4096
_WINDOW = 256 * 1024
_CACHE = 32 * 1024 * 1024
_LOOK = 64 * 1024
_LARGE = 24 * 1024 * 1024


def name_of(digest: bytes) -> BlobId:
    return BlobId("sha256:" + digest.hex())


class _Packer(threading.local):
    """A compressor is one thread's at a time, and costs too much to be made for each frame."""

    def __init__(self) -> None:
        self.usual = zstandard.ZstdCompressor(level=_LEVEL)
        self.quick = zstandard.ZstdCompressor(level=_QUICK_LEVEL)

    def for_chunks(self, chunks: dict[bytes, bytes]) -> zstandard.ZstdCompressor:
        """Much at once is packed in half the time; it takes a tenth more room."""
        return self.quick if sum(map(len, chunks.values())) > _MUCH else self.usual


class PackWriter:
    """Adds bodies to a pack. Raises OSError, with the pack as whole as before.

    Requests are added one at a time; whole bodies by any thread, at any time.
    """

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        self._file = GrowingFile(path, durable=durable)
        self._appending = threading.Lock()
        self._packer = _Packer()
        self._chunks: dict[bytes, bytes] = {}
        self._bodies: set[bytes] = set()
        self._recent = RecentRecipes()
        self._cutter = BodyCutter()

    @property
    def size(self) -> int:
        return self._file.size

    def close(self) -> None:
        self._file.close()

    def add_request(self, step: int, body: bytes) -> BlobId:
        """Store the chunks of it that are new."""
        digest = hashlib.sha256(body).digest()
        if body and digest not in self._bodies:
            self._add_recipe(step, digest, self._cutter.cut(body))
            self._bodies.add(digest)
        return name_of(digest)

    def _add_recipe(self, step: int, body: bytes, cut: CutBody) -> None:
        # What it shares with a body that was stored is stored: only what follows is looked at.
        names = cut.names
        if cut.known is not None:
            names += cut.known.names[: cut.shared]
        fresh: dict[bytes, bytes] = {}
        size = 0
        for piece in cut.pieces(len(names)):
            digest = hashlib.sha256(piece).digest()
            # One object per name: lists of names then compare by identity, which is what makes them quick.
            name = self._chunks.get(digest, digest)
            if name is digest and digest not in fresh:
                if size + len(piece) > BLOCK:
                    self._append(FrameRole.REQUEST, step, fresh, None)
                    self._chunks.update((known, known) for known in fresh)
                    fresh, size = {}, 0
                fresh[digest] = piece
                size += len(piece)
            names.append(name)
        if len(names) == 1 and not fresh:
            return
        recipe = self._recent.recipe_for(body, names) if len(names) > 1 else None
        offset = self._append(FrameRole.REQUEST, step, fresh, recipe)
        self._chunks.update((known, known) for known in fresh)
        first = 0 if cut.known is None else cut.shared
        names[first:] = [self._chunks[name] for name in names[first:]]
        if recipe is not None:
            self._recent.remember(offset, names)

    def add_whole(
        self, role: FrameRole, step: int, blocks: Iterable[bytes], *, beside: bytes = b""
    ) -> tuple[BlobId, int]:
        """Store bytes that lean on nothing, in frames of their own, with a few more bytes ``beside`` the last.

        Blocks are of ``BLOCK`` bytes at most. Gives the name and the size of the whole.
        """
        whole, size = hashlib.sha256(), 0
        names: list[bytes] = []
        waiting: dict[bytes, bytes] = {}
        for block in blocks:
            if waiting:
                self._append(role, step, waiting, None)
            whole.update(block)
            size += len(block)
            names.append(hashlib.sha256(block).digest())
            waiting = {names[-1]: block}
        if beside:
            waiting[hashlib.sha256(beside).digest()] = beside
        recipe = Recipe(whole.digest(), None, ((NEW, len(names)),), tuple(names)) if len(names) > 1 else None
        if waiting:
            self._append(role, step, waiting, recipe)
        return name_of(whole.digest()), size

    def _append(self, role: FrameRole, step: int, chunks: dict[bytes, bytes], recipe: Recipe | None) -> int:
        frame = frames.encode_frame(role, step, chunks, recipe, self._packer.for_chunks(chunks))
        with self._appending:
            offset = self._file.size
            self._file.append(frame)
        return offset


def blocks_of(data: bytes) -> Iterator[bytes]:
    """The data in blocks, for ``add_whole``."""
    for start in range(0, len(data), BLOCK):
        yield data[start : start + BLOCK]


class PackReader:
    """Gives back bodies, every byte hash-checked. Raises DamagedStore, which names what is damaged.

    Any thread may read: a fork copies an answer while the gateway plays it.
    """

    def __init__(self, path: Path) -> None:
        self._reading = threading.RLock()
        self._fd = open_to_read(path)
        # glibc gives a block back to the system if it is larger than any that was freed before. The bodies of a
        # conversation grow, so each would get fresh pages, which takes longer than filling them. It is not touched.
        bytes(_LARGE)
        self._index = PackIndex()
        self._scanning = threading.Lock()
        self._cache: OrderedDict[int, dict[bytes, bytes]] = OrderedDict()
        self._cached = 0
        self._decompressor = zstandard.ZstdDecompressor()
        self._window = (0, b"")
        self._look = (0, b"")
        self._recipes = RecipeReader(self._recipe_at)
        self._lately = GrowingBodies()
        with _opening:
            _open.add(self)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def index(self) -> PackIndex:
        """Scan what has been added since the last time. Headers and tables only; payloads are skipped."""
        with self._scanning:
            self._scan(None)
        return self._index

    def _look_for(self, name: bytes) -> None:
        """Scan on until that name is known: the first answers of a long session need not wait for all of it."""
        if name not in self._index.chunks and name not in self._index.recipes:
            with self._scanning:
                self._scan(name)

    def _has_more(self) -> bool:
        """Whether the rest of the pack, now scanned, holds anything: what is damaged may stand there once more."""
        before = self._index.scanned
        return self.index().scanned > before

    def _scan(self, wanted: bytes | None) -> None:
        index, size = self._index, os.fstat(self._fd).st_size
        index.torn = False
        while index.scanned < size:
            offset = index.scanned
            start, look = self._look
            if offset < start or offset + _GLANCE > start + len(look):
                if wanted is not None and (wanted in index.chunks or wanted in index.recipes):
                    return  # what one look shows is all taken along: the next answers stand there
                # Where frames are small, one look shows many of them; the first answer waits for no more than it needs.
                start, look = self._look = offset, read_at(self._fd, _LOOK if index.offsets else _GLANCE, offset)
            at = offset - start
            unfinished = len(look) - at < frames.HEADER_SIZE and look.startswith(frames.MAGIC[: len(look) - at], at)
            try:
                header = frames.decode_header(look, at)
                end = offset + header.frame_size
                unfinished = end > size
                if unfinished:
                    raise BadFrame("it is cut short")
            except BadFrame as why:
                # The frame before may have lost bytes: then this one begins inside of what it says it has.
                following = self._next_frame(min(index.last, offset) + 1, size, but=offset)
                if following is None and unfinished:
                    index.torn = True
                    self._look = (0, b"")  # whoever writes here may go on, or write something else
                    break
                index.damage.append(f"pack bytes {offset} to {following or size}: no frame can be read there, {why}")
                index.scanned, index.last = following or size, offset
                continue
            index.scanned, index.last = end, offset
            at += frames.HEADER_SIZE
            table = look[at : at + header.table_size]
            if len(table) < header.table_size:
                table = read_at(self._fd, header.table_size, offset + frames.HEADER_SIZE)
            try:
                index.add(offset, *frames.names_in_table(header, table))
            except BadFrame as why:
                index.damage.append(f"pack frame at {offset} ({header}): {why}")

    def _next_frame(self, offset: int, size: int, *, but: int) -> int | None:
        """Where the next sound header begins, other than that one."""
        overlap = frames.HEADER_SIZE - 1
        while offset < size:
            window = read_at(self._fd, BLOCK, offset)
            found = window.find(frames.MAGIC)
            while found >= 0:
                if offset + found != but and self._is_frame(offset + found):
                    return offset + found
                found = window.find(frames.MAGIC, found + 1)
            offset += max(1, len(window) - overlap)
        return None

    def _is_frame(self, offset: int) -> bool:
        try:
            frames.decode_header(read_at(self._fd, frames.HEADER_SIZE, offset))
        except BadFrame:
            return False
        return True

    def blob(self, blob: BlobId) -> bytes:
        """The bytes of that name."""
        return b"".join(self.blocks(blob))

    def blocks(self, blob: BlobId) -> list[bytes]:
        """The same in pieces. All of them are checked before any is given."""
        if blob == NO_BYTES:
            return []
        with self._reading:
            return self._checked(blob)

    def _checked(self, blob: BlobId) -> list[bytes]:
        name, index = _digest(blob), self._index
        self._look_for(name)
        problems: list[str] = []
        for offset in index.chunks.of(name):
            try:
                return [self._load(offset)[name]]
            except BadFrame as why:
                problems.append(self._frame_problem(offset, why))
        for offset in index.recipes.of(name):
            try:
                names = self._recipes.names(offset)
                pieces, digest = self._lately.whole(names, self._chunk)
            except BadFrame as why:
                problems.append(str(why))
                continue
            if digest == name:
                return pieces
            problems.append(f"the recipe at {offset} gives other bytes")
        if self._has_more():
            return self.blocks(blob)
        reason = "; ".join(problems) or "; ".join(index.damage[:3]) or "the pack does not hold it"
        raise DamagedStore(f"The bytes {blob[:19]}… cannot be read back: {reason}.")

    def stream(self, blob: BlobId) -> Iterator[bytes]:
        """The same in pieces, one at a time: for a body that is too long to be held. Each piece is checked before it is
        given; what is damaged behind it raises DamagedStore when it is its turn."""
        if blob == NO_BYTES:
            return
        name, index = _digest(blob), self._index
        self._look_for(name)
        if name in index.chunks or name not in index.recipes:
            yield from self.blocks(blob)
            return
        try:
            with self._reading:
                names = self._recipes.names(index.recipes[name])
            if (gone := next((piece for piece in names if piece not in index.chunks), None)) is not None:
                self._chunk(gone)  # raises, before anybody has seen a part of it
            for piece in names:
                yield self._chunk(piece)
        except BadFrame as why:
            raise DamagedStore(f"The bytes {blob[:19]}… cannot be read back: {why}.") from why

    def _chunk(self, name: bytes) -> bytes:
        problem = f"chunk {name.hex()[:12]} is not in the pack"
        for offset in self._index.chunks.of(name):
            try:
                return self._load(offset)[name]
            except BadFrame as why:
                problem = self._frame_problem(offset, why)
        if self._has_more():
            return self._chunk(name)
        raise BadFrame(problem)

    def _load(self, offset: int) -> dict[bytes, bytes]:
        """The chunks of the frame there, hashed when they are unpacked."""
        with self._reading:
            if (chunks := self._cache.get(offset)) is not None:
                self._cache.move_to_end(offset)
                return chunks
            header = frames.decode_header(self._read(offset, frames.HEADER_SIZE))
            start = frames.HEADER_SIZE + header.table_size
            data = self._read(offset, start + header.packed_size)
            table = frames.decode_table(header, data[frames.HEADER_SIZE : start])
            chunks = frames.decode_payload(header, table, data[start:], self._decompressor)
            self._cache[offset] = chunks
            self._cached += sum(map(len, chunks.values()))
            while self._cached > _CACHE and len(self._cache) > 1:
                _, gone = self._cache.popitem(last=False)
                self._cached -= sum(map(len, gone.values()))
            return chunks

    def _recipe_at(self, offset: int) -> Recipe | None:
        """Looked at anew where it is needed: most are never asked for. Raises BadFrame."""
        if offset not in self._index.offsets:
            return None
        glance = read_at(self._fd, _GLANCE, offset)
        header = frames.decode_header(glance)
        table = glance[frames.HEADER_SIZE : frames.HEADER_SIZE + header.table_size]
        if len(table) < header.table_size:
            table = read_at(self._fd, header.table_size, offset + frames.HEADER_SIZE)
        return frames.decode_table(header, table).recipe

    def _read(self, offset: int, size: int) -> bytes:
        """Those bytes of the file. Answers are mostly read in the order they were written, so one look takes many."""
        start, window = self._window
        if offset < start or offset + size > start + len(window):
            start, window = self._window = offset, read_at(self._fd, max(size, _WINDOW), offset)
        return window[offset - start : offset - start + size]

    def check(self, offset: int) -> str | None:
        """What is wrong with the frame there; ``None`` if nothing is."""
        try:
            self._load(offset)
        except BadFrame as why:
            return self._frame_problem(offset, why)
        return None

    def headers(self) -> dict[int, FrameHeader]:
        """Of all frames, by their offsets."""
        return {offset: self._header(offset) for offset in self.index().offsets}

    def _header(self, offset: int) -> FrameHeader:
        return frames.decode_header(read_at(self._fd, frames.HEADER_SIZE, offset))

    def _frame_problem(self, offset: int, why: BadFrame) -> str:
        return f"pack frame at {offset} ({self._header(offset)}): {why}"


_opening = threading.Lock()
_open: "WeakSet[PackReader]" = WeakSet()
_held: list[list[Callable[[], None]]] = []


def _before_fork() -> None:
    """A forked child goes on reading: nobody must be in the middle of it, since nobody there would let go."""
    _opening.acquire()
    releases = [_opening.release]
    for reader in _open:
        for lock in (reader._reading, reader._scanning):  # in the order in which readers take them
            lock.acquire()
            releases.append(lock.release)
    _held.append(releases)


def _after_fork() -> None:
    for release in reversed(_held.pop()):
        release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _digest(blob: BlobId) -> bytes:
    rule, _, digits = blob.partition(":")
    if rule != "sha256" or len(digits) != 64:
        raise DamagedStore(f"{blob[:80]!r} is not the name of bytes.")
    try:
        return bytes.fromhex(digits)
    except ValueError as error:
        raise DamagedStore(f"{blob[:80]!r} is not the name of bytes.") from error
