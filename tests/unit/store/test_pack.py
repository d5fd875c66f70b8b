"""Frames that were cut, forged or moved: refused before they can do harm, and the next one is found."""

import hashlib
import os
import random
import signal
import struct
import sys
import threading
import tracemalloc
import zlib
from contextlib import closing
from pathlib import Path

import pytest
import zstandard

from rewind.errors import DamagedStore
from rewind.model.ids import BlobId
from rewind.store.files import read_at
from rewind.store.pack import frames
from rewind.store.pack.bodies import PackReader, PackWriter, blocks_of, name_of
from rewind.store.pack.frames import (
    NEW,
    BadFrame,
    FrameRole,
    Recipe,
    decode_header,
    decode_payload,
    decode_table,
    encode_frame,
)
from support.effort import in_short

PACKER = zstandard.ZstdCompressor(level=3)
CHUNK = b"some text " * 30
NAME = hashlib.sha256(CHUNK).digest()


def frame_with_payload(payload: bytes, *, raw_size: int = len(CHUNK)) -> bytes:
    """A frame whose checksums all fit, whatever its payload is."""
    table = struct.pack("<I32sI", 1, NAME, raw_size)
    sizes = (0, 1, len(table), raw_size, len(payload), zlib.crc32(table), zlib.crc32(payload))
    header = struct.pack("<4sBBHIIIIII", b"RWP1", 1, FrameRole.RESPONSE, *sizes)
    return header + struct.pack("<I", zlib.crc32(header)) + table + payload


def unpack(frame: bytes) -> dict[bytes, bytes]:
    header = decode_header(frame)
    start = frames.HEADER_SIZE + header.table_size
    table = decode_table(header, frame[frames.HEADER_SIZE : start])
    return decode_payload(header, table, frame[start:], zstandard.ZstdDecompressor())


def test_a_frame_gives_back_its_chunks() -> None:
    assert unpack(frame_with_payload(PACKER.compress(CHUNK))) == {NAME: CHUNK}
    recipe = Recipe(NAME, 7, ((0, 3), (NEW, 2), (5, 1)), (NAME, b"o" * 32))
    frame = encode_frame(FrameRole.REQUEST, 4, {NAME: CHUNK}, recipe, PACKER)
    header = decode_header(frame)
    assert (header.role, header.step, str(header)) == (FrameRole.REQUEST, 4, "request of step 4")
    assert decode_table(header, frame[36 : 36 + header.table_size]).recipe == recipe


@pytest.mark.parametrize("declared", [2**40, 2**62, len(CHUNK) + 1, 0])
def test_a_payload_that_declares_another_size_is_not_unpacked(declared: int) -> None:
    # Magic, a descriptor with an 8-byte content size and a window byte, the size; then one empty last block.
    forged = b"\x28\xb5\x2f\xfd" + b"\xc0\x00" + struct.pack("<Q", declared) + b"\x01\x00\x00"
    with pytest.raises(BadFrame, match="another size"):
        unpack(frame_with_payload(forged))


def test_a_payload_without_a_declared_size_is_refused() -> None:
    undeclared = zstandard.ZstdCompressor(write_content_size=False).compress(CHUNK)
    with pytest.raises(BadFrame):
        unpack(frame_with_payload(undeclared))


def test_a_cut_payload_is_refused() -> None:
    payload = PACKER.compress(CHUNK)
    for size in range(len(payload)):
        with pytest.raises(BadFrame):
            unpack(frame_with_payload(payload[:size]))
    with pytest.raises(BadFrame):
        unpack(frame_with_payload(payload + b"more"))


def test_bytes_that_are_not_what_their_name_says_are_refused() -> None:
    with pytest.raises(BadFrame, match="not the one its name says"):
        unpack(frame_with_payload(PACKER.compress(CHUNK[:-1] + b"!")))


def test_a_frame_larger_than_any_we_write_is_refused() -> None:
    with pytest.raises(BadFrame, match="makes no sense"):
        decode_header(frame_with_payload(b"", raw_size=frames.MOST_RAW + 1))


def write_pack(path: Path, count: int = 4) -> list[tuple[bytes, bytes]]:
    """Requests and answers; some hold what looks like the start of a frame."""
    pack = PackWriter(path)
    bodies = [(b"RWP1 asked %d " % n * 50, b"answered RWP1%d" % n) for n in range(1, count + 1)]
    for step, (asked, answered) in enumerate(bodies, 1):
        pack.add_request(step, asked)
        pack.add_whole(FrameRole.RESPONSE, step, blocks_of(answered))
    pack.close()
    return bodies


def test_a_pack_cut_anywhere_gives_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "pack"
    bodies = write_pack(path)
    whole = path.read_bytes()
    reader = PackReader(path)
    ends = [offset + header.frame_size for offset, header in reader.headers().items()]
    reader.close()
    assert ends[-1] == len(whole)
    for size in in_short(range(len(whole)), 200):
        path.write_bytes(whole[:size])
        reader = PackReader(path)
        index = reader.index()
        assert index.damage == []
        assert index.torn == (size not in (0, *ends))
        assert len(index.offsets) == sum(end <= size for end in ends)
        reader.close()
    assert len(bodies) * 2 == len(ends)


def test_the_frames_after_a_damaged_one_are_found(tmp_path: Path) -> None:
    path = tmp_path / "pack"
    bodies = write_pack(path)
    hurt = bytearray(path.read_bytes())
    hurt[13] ^= 0xFF  # a length in the first header
    path.write_bytes(hurt)
    reader = PackReader(path)
    index = reader.index()
    assert len(index.offsets) == 7
    assert len(index.damage) == 1
    assert reader.blob(name_of(hashlib.sha256(bodies[0][1]).digest())) == bodies[0][1]
    with pytest.raises(DamagedStore, match="no frame can be read there"):
        reader.blob(name_of(hashlib.sha256(bodies[0][0]).digest()))
    reader.close()


def test_a_growing_pack_is_read_as_it_grows(tmp_path: Path) -> None:
    pack = PackWriter(tmp_path / "pack")
    reader = PackReader(tmp_path / "pack")
    for step in range(5):
        blob = pack.add_request(step, b"%d" % step * 1000)
        assert reader.blob(blob) == b"%d" % step * 1000
    pack.close()
    reader.close()


def test_a_first_body_does_not_wait_for_the_rest_of_the_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (_, first), *_ = write_pack(tmp_path / "pack", 200)
    looks: list[int] = []

    def counted(fd: int, size: int, offset: int) -> bytes:
        looks.append(offset)
        return read_at(fd, size, offset)

    monkeypatch.setattr("rewind.store.pack.bodies.read_at", counted)
    with closing(PackReader(tmp_path / "pack")) as reader:
        assert reader.blob(name_of(hashlib.sha256(first).digest())) == first
    assert len(looks) < 10


def test_a_body_that_stands_twice_is_read_from_where_it_is_whole(tmp_path: Path) -> None:
    path, body = tmp_path / "pack", b"an answer that came twice"
    writer = PackWriter(path)
    name, _ = writer.add_whole(FrameRole.RESPONSE, 1, blocks_of(body))
    end = writer.size
    writer.add_whole(FrameRole.RESPONSE, 2, blocks_of(b"another"))
    writer.add_whole(FrameRole.RESPONSE, 3, blocks_of(body))
    writer.close()
    data = bytearray(path.read_bytes())
    data[end - 1] ^= 1
    path.write_bytes(data)
    with closing(PackReader(path)) as reader:
        assert reader.blob(name) == body


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_pack_read_bit_by_bit_gives_what_it_gives_when_read_whole(tmp_path: Path, seed: int) -> None:
    chance, path = random.Random(seed), tmp_path / "pack"
    bodies = [body for pair in write_pack(path, 6) for body in pair]
    data = bytearray(path.read_bytes())
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data))
        data[at : at + chance.randint(0, 40)] = chance.randbytes(chance.randint(0, 40))
    path.write_bytes(data)

    def read(reader: PackReader, body: bytes) -> bytes | None:
        try:
            return reader.blob(name_of(hashlib.sha256(body).digest()))
        except DamagedStore:
            return None

    with closing(PackReader(path)) as whole, closing(PackReader(path)) as by_and_by:
        damage = list(whole.index().damage)
        for body in bodies:
            assert read(by_and_by, body) == read(whole, body)
        assert by_and_by.index().damage == damage


def test_an_answer_never_leans_on_other_bytes(tmp_path: Path) -> None:
    pack = PackWriter(tmp_path / "pack")
    pack.add_request(1, b"the same")
    for step in (1, 2):
        pack.add_whole(FrameRole.RESPONSE, step, blocks_of(b"the same"))
    pack.close()
    data = bytearray((tmp_path / "pack").read_bytes())
    reader = PackReader(tmp_path / "pack")
    found = list(reader.headers().items())
    reader.close()
    assert [str(header) for _, header in found] == ["request of step 1", "response of step 1", "response of step 2"]
    for offset, header in found[:2]:
        data[offset + header.frame_size - 3] ^= 1
    (tmp_path / "pack").write_bytes(data)
    reader = PackReader(tmp_path / "pack")
    assert reader.blob(name_of(hashlib.sha256(b"the same").digest())) == b"the same"
    reader.close()


def test_recipes_that_double_each_other_are_stopped(tmp_path: Path) -> None:
    data = b""
    base = None
    for n in range(30):
        spans = ((NEW, 2),) if base is None else ((0, 2**n), (0, 2**n))
        recipe = Recipe(bytes([n]) * 32, base, spans, (NAME, NAME) if base is None else ())
        base = len(data)
        data += encode_frame(FrameRole.REQUEST, n, {NAME: CHUNK} if not data else {}, recipe, PACKER)
    (tmp_path / "pack").write_bytes(data)
    reader = PackReader(tmp_path / "pack")
    with pytest.raises(DamagedStore, match="makes no sense"):
        reader.blob(name_of(bytes([29]) * 32))
    reader.close()


def test_several_threads_may_read_one_pack(tmp_path: Path) -> None:
    """A fork's gateway plays an answer while the writer copies it."""
    writer = PackWriter(tmp_path / "pack")
    names = []
    for number in range(3):
        lines = (hashlib.sha256(b"%d %d" % (number, line)).hexdigest() for line in range(12 * 1024 * 1024 // 64))
        names.append(writer.add_whole(FrameRole.RESPONSE, number, blocks_of("".join(lines).encode()))[0])
    wrong: list[str] = []

    def read(reader: PackReader, name: BlobId) -> None:
        try:
            whole = hashlib.sha256()
            for block in reader.stream(name):
                whole.update(block)
            if name_of(whole.digest()) != name:
                wrong.append("other bytes")
        except DamagedStore as problem:
            wrong.append(problem.message)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        for _ in range(4):
            reader = PackReader(tmp_path / "pack")
            reading = [threading.Thread(target=read, args=(reader, name)) for name in (*names, names[0])]
            for thread in reading:
                thread.start()
            for thread in reading:
                thread.join()
            reader.close()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


@pytest.mark.process
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_is_forked_while_a_pack_is_read_goes_on_reading(tmp_path: Path) -> None:
    path, bodies = tmp_path / "pack", [random.Random(seed).randbytes(50_000) for seed in range(60)]
    with closing(PackWriter(path)) as writer:
        names = [writer.add_whole(FrameRole.RESPONSE, 1, blocks_of(body))[0] for body in bodies]
    stopped = threading.Event()
    with closing(PackReader(path)) as reader:

        def read() -> None:
            while not stopped.is_set():
                for name in names:
                    reader.blob(name)

        others = [threading.Thread(target=read) for _ in range(2)]
        for other in others:
            other.start()
        try:
            for _ in range(30):
                if (child := os.fork()) == 0:
                    signal.alarm(10)
                    os._exit(0 if [reader.blob(name) for name in names] == bodies else 1)
                assert os.waitpid(child, 0)[1] == 0
        finally:
            stopped.set()
            for other in others:
                other.join()


def test_the_index_of_a_long_pack_takes_little_memory(tmp_path: Path) -> None:
    write_pack(tmp_path / "pack", 1000)
    with closing(PackReader(tmp_path / "pack")) as reader:
        tracemalloc.start()
        try:
            frames_found = len(reader.index().offsets)
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert held / frames_found < 400
