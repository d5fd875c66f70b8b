"""Content codings of HTTP bodies: gzip, deflate, br and zstd, alone or stacked.

Bodies unfold piece by piece under a limit, so a small one that would become gigabytes is refused and never held.
"""

import gzip
import zlib
from collections.abc import Iterator
from typing import Protocol

import brotli
import zstandard

_MIB = 1024 * 1024
_LIMIT = 256 * _MIB
SHOWN_LIMIT = 64 * _MIB
"""For bodies that are only looked at: what a cassette takes."""
_ZSTD_PIECE = 1024
"""Four bytes of zstd can unfold to 128 KiB, so a piece of this size gives 32 MiB at most."""


class UndecodableBody(ValueError):
    """An unknown coding, damaged or unfinished data, or more than the limit; the message says which."""


class _Coding(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]:
        """What these bytes unfold to; raises UndecodableBody on damage."""
        ...

    def finished(self) -> bool:
        """Whether the data so far is whole."""
        ...


class _Zlib:
    """gzip (also several members in a row), or deflate in its two spellings: RFC 1950, and the raw RFC 1951."""

    def __init__(self, *, deflate: bool) -> None:
        self._deflate = deflate
        self._unfold = zlib.decompressobj(zlib.MAX_WBITS if deflate else 16 + zlib.MAX_WBITS)
        self._head = b""
        self._begun = False
        self._whole = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._deflate and not self._begun:
            # Servers disagree on what "deflate" is; the first two bytes tell a zlib header from a raw stream.
            self._head += data
            if len(self._head) < 2:
                return
            data, self._head = self._head, b""
            if (data[0] & 0x0F) != 8 or (data[0] * 256 + data[1]) % 31:
                self._unfold = zlib.decompressobj(-zlib.MAX_WBITS)
        self._begun = self._begun or bool(data)
        more = bool(data)
        while more:
            if self._unfold.eof:
                self._whole = True
                if self._deflate or not data:
                    return
                self._unfold = zlib.decompressobj(16 + zlib.MAX_WBITS)
            try:
                piece = self._unfold.decompress(data, _MIB)
            except zlib.error as problem:
                if self._whole:
                    return  # padding after the last member; clients ignore it too
                raise UndecodableBody(f"damaged {'deflate' if self._deflate else 'gzip'} data") from problem
            yield piece
            data = self._unfold.unused_data if self._unfold.eof else self._unfold.unconsumed_tail
            more = bool(data) or len(piece) == _MIB

    def finished(self) -> bool:
        return self._whole or self._unfold.eof or not (self._begun or self._head)


class _Brotli:
    def __init__(self) -> None:
        self._unfold = brotli.Decompressor()
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._begun = self._begun or bool(data)
        more = bool(data)
        while more and not self._unfold.is_finished():
            try:
                piece = self._unfold.process(data, output_buffer_limit=_MIB)
            except brotli.error as problem:
                raise UndecodableBody("damaged br data") from problem
            yield piece
            data = b""
            more = len(piece) >= _MIB or not self._unfold.can_accept_more_data()

    def finished(self) -> bool:
        return not self._begun or bool(self._unfold.is_finished())


class _Zstd:
    """Several frames in a row are one body (RFC 8878)."""

    def __init__(self) -> None:
        self._new_frame()
        self._whole = True

    def _new_frame(self) -> None:
        # RFC 9659 asks for a window of at most 8 MiB in HTTP; we grant 128 MiB, the default of zstd itself.
        self._unfold = zstandard.ZstdDecompressor(max_window_size=128 * _MIB).decompressobj()

    def feed(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _ZSTD_PIECE):
            piece = data[start : start + _ZSTD_PIECE]
            while piece:
                if self._unfold.eof:
                    self._new_frame()
                try:
                    yield self._unfold.decompress(piece)
                except zstandard.ZstdError as problem:
                    raise UndecodableBody("damaged zstd data") from problem
                self._whole = self._unfold.eof
                piece = self._unfold.unused_data if self._unfold.eof else b""

    def finished(self) -> bool:
        return self._whole


def _names(content_encoding: str | None) -> list[str]:
    """The codings in the order they were applied, ``identity`` left out."""
    given = (name.strip().lower() for name in (content_encoding or "").split(","))
    return [name for name in given if name and name != "identity"]


def _coding(name: str) -> _Coding:
    match name:
        case "gzip" | "x-gzip":
            return _Zlib(deflate=False)
        case "deflate":
            return _Zlib(deflate=True)
        case "br":
            return _Brotli()
        case "zstd":
            return _Zstd()
        case _:
            raise UndecodableBody(f"unknown content coding {name[:40]!r}")


class StreamDecoder:
    """Takes a body's codings off while it comes in; gives what can be known so far."""

    def __init__(self, content_encoding: str | None, *, limit: int = _LIMIT) -> None:
        names = _names(content_encoding)
        if len(names) > 4:
            raise UndecodableBody(f"{len(names)} content codings on one body")
        self._codings = [_coding(name) for name in reversed(names)]
        self._left = limit

    def feed(self, data: bytes) -> bytes:
        """What these bytes unfold to; raises UndecodableBody."""
        return b"".join(self.pieces(data))

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """As ``feed``, but what was unfolded before damage is met is given before it is raised."""
        yield from self._through(0, data)

    def finished(self) -> bool:
        """Whether every coding has come to its end."""
        return all(coding.finished() for coding in self._codings)

    def _through(self, depth: int, data: bytes) -> Iterator[bytes]:
        if depth == len(self._codings):
            self._left -= len(data)
            if self._left < 0:
                raise UndecodableBody("the body unfolds to more than the limit")
            yield data
            return
        for piece in self._codings[depth].feed(data):
            yield from self._through(depth + 1, piece)


def decode(body: bytes, content_encoding: str | None, *, limit: int = _LIMIT) -> bytes:
    """The body without its codings; raises UndecodableBody."""
    if not _names(content_encoding):
        return body
    decoder = StreamDecoder(content_encoding, limit=limit)
    plain = decoder.feed(body)
    if not decoder.finished():
        raise UndecodableBody("the compressed data breaks off")
    return plain


def decode_as_far_as_possible(
    body: bytes, content_encoding: str | None, *, limit: int = _LIMIT
) -> tuple[bytes, str | None]:
    """What can be unfolded of a body that may be cut or damaged, and what was wrong with it."""
    if not _names(content_encoding):
        return body, None
    plain = bytearray()
    try:
        decoder = StreamDecoder(content_encoding, limit=limit)
        for piece in decoder.pieces(body):
            plain += piece
    except UndecodableBody as problem:
        return bytes(plain), str(problem)
    return bytes(plain), None if decoder.finished() else "the compressed data breaks off"


def encode(body: bytes, content_encoding: str | None) -> bytes:
    """The body with those codings put on, in the order named; equal input gives equal output."""
    for name in _names(content_encoding):
        match name:
            case "gzip" | "x-gzip":
                body = gzip.compress(body, mtime=0)
            case "deflate":
                body = zlib.compress(body)
            case "br":
                body = brotli.compress(body, quality=5)
            case "zstd":
                body = zstandard.ZstdCompressor().compress(body)
            case _:
                raise UndecodableBody(f"unknown content coding {name[:40]!r}")
    return body
