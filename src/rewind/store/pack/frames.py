"""The frames of a pack, with the recipes in them: bytes in, bytes out, nothing believed unchecked.

::

    offset  size
    0       4     magic "RWP1"
    4       1     kind: 1 chunks, 2 chunks and the recipe of a body
    5       1     role: 1 request, 2 response, 3 stdin, 4 stdout, 5 stderr
    6       2     zero
    8       4     step number (0 for the streams)
    12      4     size of the table
    16      4     size of the payload, unpacked
    20      4     size of the payload
    24      4     CRC-32 of the table
    28      4     CRC-32 of the payload
    32      4     CRC-32 of the 32 bytes before
    36            table, then payload (one zstd frame: the chunks, one after the other)

    table   count of chunks (4), then for each its SHA-256 (32) and its size (4);
            kind 2 goes on with the recipe:
            SHA-256 of the body (32), offset of the base frame or all ones (8), count of spans (4),
            count of older names (4), count of new entries (4),
            the spans (4 + 4 each), the older names (32 each), the new entries (4 each)

Numbers are unsigned and little-endian. A recipe is the list of chunk names of a body, told in spans: a start and a
count point into the recipe of the base frame; a start of all ones takes the next so many of the new entries. An
entry counts through the chunks of this frame and then through the older names.

A request differs from the one before in a few places (an id at its front, a cache marker near its end, the new
messages), so a recipe leans on that of an earlier body: the writing side picks which, the reading side follows it back.
"""

import hashlib
import struct
import zlib
from collections import OrderedDict, deque
from collections.abc import Callable
from enum import IntEnum
from itertools import islice
from typing import NamedTuple

import zstandard

from rewind.dataclass import dataclass
from rewind.wire.chunks import common_run

MAGIC = b"RWP1"
_HEADER = struct.Struct("<4sBBHIIIIIII")
HEADER_SIZE = _HEADER.size
_COUNT = struct.Struct("<I")
_CHUNK = struct.Struct("<32sI")
_RECIPE = struct.Struct("<32sQIII")
_NO_BASE = 2**64 - 1
MOST_RAW = 16 * 1024 * 1024
"""No frame unpacks to more: a reader's memory is bounded before it unpacks anything."""
_MOST_TABLE = 64 * 1024 * 1024
_REMEMBERED = 32
_SHORT_RECIPE = 8
_ALIKE = 0.9
_GROWING = 8 * 1024 * 1024
"""Bytes of the bodies that later ones may begin like."""
_MOST_GROWING = 32
"""Of the bodies that are kept: each is looked at when another one is read."""
_STRIDE = 16
_MOST_NAMES = 2**22

# Values that a scan makes one of for each frame are tuples.
Span = tuple[int, int]
"""Where in the base's recipe, and how many names; or ``NEW``, and how many new ones."""
NEW = 2**32 - 1


class FrameRole(IntEnum):
    """Whose bytes a frame holds; with the step number it makes a pack readable without its journal."""

    REQUEST = 1
    RESPONSE = 2
    STDIN = 3
    STDOUT = 4
    STDERR = 5


_ROLES = {role.value: role for role in FrameRole}


class BadFrame(ValueError):
    """Bytes that are not a frame, or not the one that was written; says why."""


class Recipe(NamedTuple):
    """The chunk names of a body, as what changed since an earlier body."""

    body: bytes
    base: int | None
    """Offset of the frame whose recipe this one leans on."""
    spans: tuple[Span, ...]
    fresh: tuple[bytes, ...]
    """The names that the spans marked ``NEW`` take, in order."""


class FrameHeader(NamedTuple):
    """The fixed first bytes of a frame."""

    role: FrameRole
    step: int
    has_recipe: bool
    table_size: int
    raw_size: int
    packed_size: int
    table_crc: int
    payload_crc: int

    @property
    def frame_size(self) -> int:
        return HEADER_SIZE + self.table_size + self.packed_size

    def __str__(self) -> str:
        name = self.role.name.lower()
        return f"{name} of step {self.step}" if self.step else name


class FrameTable(NamedTuple):
    """What a frame holds."""

    names: tuple[bytes, ...]
    sizes: tuple[int, ...]
    recipe: Recipe | None


def encode_frame(
    role: FrameRole, step: int, chunks: dict[bytes, bytes], recipe: Recipe | None, packer: zstandard.ZstdCompressor
) -> bytes:
    """A whole frame. ``chunks`` go by their SHA-256."""
    raw = b"".join(chunks.values())
    assert len(raw) <= MOST_RAW, "the pack spills before a frame grows this large"
    payload = packer.compress(raw)
    table = _COUNT.pack(len(chunks)) + b"".join(_CHUNK.pack(name, len(data)) for name, data in chunks.items())
    if recipe is not None:
        table += _encode_recipe(recipe, chunks)
    sizes = len(table), len(raw), len(payload), zlib.crc32(table), zlib.crc32(payload)
    header = struct.pack("<4sBBHIIIIII", MAGIC, 1 if recipe is None else 2, role, 0, step, *sizes)
    return b"".join((header, _COUNT.pack(zlib.crc32(header)), table, payload))


def _encode_recipe(recipe: Recipe, chunks: dict[bytes, bytes]) -> bytes:
    number = {name: i for i, name in enumerate(chunks)}
    entries = [number.setdefault(name, len(number)) for name in recipe.fresh]
    older = list(number)[len(chunks) :]
    base = _NO_BASE if recipe.base is None else recipe.base
    numbers = [part for span in recipe.spans for part in span]
    return b"".join(
        (
            _RECIPE.pack(recipe.body, base, len(recipe.spans), len(older), len(entries)),
            struct.pack(f"<{len(numbers)}I", *numbers),
            *older,
            struct.pack(f"<{len(entries)}I", *entries),
        )
    )


def decode_header(data: bytes, at: int = 0) -> FrameHeader:
    """That of the frame that begins there. Raises BadFrame."""
    if len(data) - at < HEADER_SIZE:
        raise BadFrame("it is cut short")
    magic, kind, role, _, step, table, raw, packed, table_crc, payload_crc, crc = _HEADER.unpack_from(data, at)
    if magic != MAGIC or zlib.crc32(data[at : at + HEADER_SIZE - 4]) != crc:
        raise BadFrame("its header is damaged")
    if kind not in (1, 2) or raw > MOST_RAW or table > _MOST_TABLE:
        raise BadFrame("its header makes no sense")
    if role not in _ROLES:
        raise BadFrame(f"its role {role} is unknown")
    return FrameHeader(_ROLES[role], step, kind == 2, table, raw, packed, table_crc, payload_crc)


def decode_table(header: FrameHeader, data: bytes) -> FrameTable:
    """Raises BadFrame."""
    names, sizes = _chunks_in_table(header, data)
    try:
        rest = data[_COUNT.size + len(names) * _CHUNK.size :]
        return FrameTable(names, sizes, _decode_recipe(rest, names) if header.has_recipe else None)
    except (struct.error, IndexError) as error:
        raise BadFrame("its table makes no sense") from error


def names_in_table(header: FrameHeader, data: bytes) -> tuple[tuple[bytes, ...], bytes | None]:
    """Names of the chunks, and of the body whose recipe follows them. Raises BadFrame."""
    names, _ = _chunks_in_table(header, data)
    if not header.has_recipe:
        return names, None
    try:
        return names, _RECIPE.unpack_from(data, _COUNT.size + len(names) * _CHUNK.size)[0]
    except struct.error as error:
        raise BadFrame("its table makes no sense") from error


def _chunks_in_table(header: FrameHeader, data: bytes) -> tuple[tuple[bytes, ...], tuple[int, ...]]:
    """Names and sizes of the chunks."""
    if zlib.crc32(data) != header.table_crc or len(data) != header.table_size:
        raise BadFrame("its table is damaged")
    try:
        (count,) = _COUNT.unpack_from(data)
        if count == 1:  # as nearly all answers are
            name, size = _CHUNK.unpack_from(data, _COUNT.size)
            names, sizes = (name,), (size,)
        else:
            pairs = list(_CHUNK.iter_unpack(data[_COUNT.size : _COUNT.size + count * _CHUNK.size]))
            names, sizes = tuple([name for name, _ in pairs]), tuple([size for _, size in pairs])
    except struct.error as error:
        raise BadFrame("its table makes no sense") from error
    if len(names) != count or sum(sizes) != header.raw_size:
        raise BadFrame("its table makes no sense")
    return names, sizes


def _decode_recipe(data: bytes, names: tuple[bytes, ...]) -> Recipe:
    body, base, span_count, older_count, entry_count = _RECIPE.unpack_from(data)
    numbers = struct.unpack_from(f"<{2 * span_count}I", data, _RECIPE.size)
    spans = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    older = _RECIPE.size + 8 * span_count
    end = older + 32 * older_count
    names += tuple(data[start : start + 32] for start in range(older, end, 32))
    fresh = tuple(names[i] for i in struct.unpack_from(f"<{entry_count}I", data, end))
    if sum(count for start, count in spans if start == NEW) != entry_count:
        raise BadFrame("its recipe makes no sense")
    return Recipe(body, None if base == _NO_BASE else base, spans, fresh)


def decode_payload(
    header: FrameHeader, table: FrameTable, data: bytes, decompressor: zstandard.ZstdDecompressor
) -> dict[bytes, bytes]:
    """The chunks by name, each one hashed. Raises BadFrame. A decompressor costs as much to make as to use.

    A declared size beyond ours is refused before unpacking: ``max_output_size`` does not hold against it.
    """
    if zlib.crc32(data) != header.payload_crc or len(data) != header.packed_size:
        raise BadFrame("its payload is damaged")
    try:
        if zstandard.get_frame_parameters(data).content_size != header.raw_size:
            raise BadFrame("its payload declares another size")
        raw = decompressor.decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise BadFrame(f"its payload cannot be unpacked ({error})") from error
    if len(raw) != header.raw_size:
        raise BadFrame("its payload has another size")
    chunks: dict[bytes, bytes] = {}
    start = 0
    for name, size in zip(table.names, table.sizes, strict=True):
        chunks[name] = raw[start : start + size]
        start += size
        if hashlib.sha256(chunks[name]).digest() != name:
            raise BadFrame("a chunk is not the one its name says")
    return chunks


class _Places(dict[bytes, int]):
    """By name, the offset of the first frame that has it. Nearly each stands in one frame alone: lists of them would
    take ten times the memory."""

    def __init__(self) -> None:
        super().__init__()
        self._again: dict[bytes, list[int]] = {}

    def add(self, name: bytes, offset: int) -> None:
        if self.setdefault(name, offset) != offset:
            self._again.setdefault(name, []).append(offset)

    def of(self, name: bytes) -> list[int]:
        """All frames that have it."""
        return [self[name], *self._again.get(name, ())] if name in self else []


class PackIndex:
    """What a scan of the pack found."""

    def __init__(self) -> None:
        self.offsets: dict[int, None] = {}
        """Of all frames whose header and table are sound."""
        self.chunks = _Places()
        self.recipes = _Places()
        self.damage: list[str] = []
        self.scanned = 0
        self.last = 0
        """Where the scan has found the frame before."""
        self.torn = False
        """An unfinished frame stands at the end."""

    def add(self, offset: int, names: tuple[bytes, ...], body: bytes | None) -> None:
        self.offsets[offset] = None
        for name in names:
            self.chunks.add(name, offset)
        if body is not None:
            self.recipes.add(body, offset)


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """A recipe that was written, ready to be leaned on."""

    offset: int
    names: list[bytes]
    where: dict[bytes, int]

    def share(self, names: list[bytes]) -> int:
        return sum(map(self.where.__contains__, names))


class RecentRecipes:
    """The last recipe of each conversation seen lately; a new recipe leans on the one it continues."""

    def __init__(self) -> None:
        self._recent: deque[_Known] = deque(maxlen=_REMEMBERED)

    def recipe_for(self, body: bytes, names: list[bytes]) -> Recipe:
        """The recipe of these chunk names, as short as the recent ones allow."""
        best, most = None, 0
        # A short recipe is hardly longer without a base: not worth to look far for one.
        for known in islice(reversed(self._recent), _REMEMBERED if len(names) > _SHORT_RECIPE else 4):
            share = known.share(names)
            if share > most:
                best, most = known, share
            if share > _ALIKE * len(names):
                break
        if best is None:
            return Recipe(body, None, ((NEW, len(names)),), tuple(names))
        self._recent.remove(best)
        if most < _ALIKE * len(best.names):  # not its continuation: that one may still come
            self._recent.append(best)
        spans, fresh = _spans(best, names)
        return Recipe(body, best.offset, tuple(spans), tuple(fresh))

    def remember(self, offset: int, names: list[bytes]) -> None:
        """Remember a recipe that was written at that offset."""
        self._recent.append(_Known(offset, names, {name: i for i, name in enumerate(names)}))


def _spans(base: _Known, names: list[bytes]) -> tuple[list[Span], list[bytes]]:
    spans: list[Span] = []
    fresh: list[bytes] = []
    i = expected = unsaid = 0
    while i < len(names):
        # Glue repeats itself; where it is expected it most likely goes on.
        here = expected if base.names[expected : expected + 1] == [names[i]] else base.where.get(names[i])
        if here is None:
            fresh.append(names[i])
            i, expected, unsaid = i + 1, expected + 1, unsaid + 1
            continue
        if unsaid:
            spans.append((NEW, unsaid))
            unsaid = 0
        run = common_run(base.names, here, names, i)
        spans.append((here, run))
        i, expected = i + run, here + run
    if unsaid:
        spans.append((NEW, unsaid))
    return spans, fresh


class RecipeReader:
    """Gives back the full list of names of a recipe. Raises BadFrame if a base is gone."""

    def __init__(self, recipe_at: Callable[[int], Recipe | None]) -> None:
        """``recipe_at`` gives the recipe of the frame at an offset; ``None`` where there is none."""
        self._recipe_at = recipe_at
        self._lately: OrderedDict[int, list[bytes]] = OrderedDict()

    def names(self, offset: int) -> list[bytes]:
        """The names of the recipe there: down its bases to one that is known or has none, and up again."""
        chain: list[tuple[int, Recipe]] = []
        at: int | None = offset
        while at is not None and at not in self._lately:
            recipe = self._recipe_at(at)
            if recipe is None or (chain and at >= chain[-1][0]):
                raise BadFrame(f"the recipe at {chain[-1][0] if chain else offset} leans on one at {at} that is gone")
            chain.append((at, recipe))
            at = recipe.base
        names = [] if at is None else self._lately[at]
        for at, recipe in reversed(chain):
            names = _apply(at, recipe, names)
        self._lately[offset] = names
        self._lately.move_to_end(offset)
        if len(self._lately) > _REMEMBERED:
            self._lately.popitem(last=False)
        return names


def _apply(offset: int, recipe: Recipe, base: list[bytes]) -> list[bytes]:
    """The names of the recipe there, given those of its base."""
    names: list[bytes] = []
    fresh = iter(recipe.fresh)
    for start, count in recipe.spans:
        part = list(islice(fresh, count)) if start == NEW else base[start : start + count]
        names += part
        # The second bound keeps spans that repeat each other from doubling without end.
        if len(part) != count or len(names) > _MOST_NAMES:
            raise BadFrame(f"the recipe at {offset} makes no sense")
    return names


class _Assembled(NamedTuple):
    """A body that was put together."""

    names: list[bytes]
    pieces: list[bytes]
    sums: "list[hashlib._Hash]"
    """The digest of all pieces before every ``_STRIDE``-th."""
    size: int


class GrowingBodies:
    """Puts bodies together. Of one that begins like one of the last, only the rest is looked up and hashed."""

    def __init__(self) -> None:
        self._known: list[_Assembled] = []

    def whole(self, names: list[bytes], chunk: Callable[[bytes], bytes]) -> tuple[list[bytes], bytes]:
        """The pieces of these names, and the digest of all of them. Raises BadFrame."""
        shared, base = 0, _Assembled([], [], [], 0)
        for known in self._known:
            if (run := common_run(names, 0, known.names, 0)) > shared:
                shared, base = run, known
            if shared > _ALIKE * len(names):
                break
        pieces, sums = base.pieces[:shared], base.sums[: shared // _STRIDE + 1]
        pieces += map(chunk, names[shared:])
        whole = sums[-1].copy() if sums else hashlib.sha256()
        for at in range(max(0, len(sums) - 1) * _STRIDE, len(pieces), _STRIDE):
            if at // _STRIDE == len(sums):
                sums.append(whole.copy())
            whole.update(b"".join(pieces[at : at + _STRIDE]))
        goes_on = shared > _ALIKE * len(base.names)
        self._remember(_Assembled(names, pieces, sums, sum(map(len, pieces))), base if goes_on else None)
        return pieces, whole.digest()

    def _remember(self, new: _Assembled, gone_on_from: _Assembled | None) -> None:
        """The latest first; large ones are not worth their memory."""
        self._known, others = [], self._known
        size = 0
        for one in (new, *others):
            if len(self._known) == _MOST_GROWING:
                break
            if one is not gone_on_from and size + one.size <= _GROWING:
                self._known.append(one)
                size += one.size
