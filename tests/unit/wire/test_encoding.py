"""Content codings: what they unfold to, and what is refused."""

import gzip
import zlib

import brotli
import pytest
import zstandard

from rewind.wire.encoding import StreamDecoder, UndecodableBody, decode, decode_as_far_as_possible, encode

TEXT = b'{"answer": "' + b"forty-two " * 400 + b'"}'
CODINGS = ["gzip", "deflate", "br", "zstd", "gzip, br", "identity", "GZIP , zstd", "x-gzip", None, ""]


@pytest.mark.parametrize("coding", CODINGS)
def test_what_is_encoded_is_decoded_again(coding: str | None) -> None:
    assert decode(encode(TEXT, coding), coding) == TEXT


@pytest.mark.parametrize("coding", CODINGS)
def test_a_stream_decoder_fed_byte_by_byte_gives_the_same(coding: str | None) -> None:
    decoder = StreamDecoder(coding)
    encoded = encode(TEXT, coding)
    assert b"".join(decoder.feed(encoded[i : i + 1]) for i in range(len(encoded))) == TEXT
    assert decoder.finished()


def test_deflate_is_read_in_both_of_its_spellings() -> None:
    raw = zlib.compressobj(wbits=-15)
    assert decode(raw.compress(TEXT) + raw.flush(), "deflate") == TEXT
    assert decode(zlib.compress(TEXT), "deflate") == TEXT


def test_several_gzip_members_and_zstd_frames_are_one_body() -> None:
    assert decode(gzip.compress(b"one ") + gzip.compress(b"two"), "gzip") == b"one two"
    assert decode(zstandard.compress(b"one ") + zstandard.compress(b"two"), "zstd") == b"one two"


def test_padding_after_the_end_of_gzip_is_ignored_as_clients_do() -> None:
    assert decode(gzip.compress(TEXT) + b"\0\0\0", "gzip") == TEXT


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_damaged_and_cut_bodies_are_refused(coding: str) -> None:
    encoded = encode(TEXT, coding)
    with pytest.raises(UndecodableBody):
        decode(encoded[:-3], coding)
    with pytest.raises(UndecodableBody):
        decode(b"\xff" * 40, coding)


def test_an_unknown_coding_is_named() -> None:
    with pytest.raises(UndecodableBody, match="'snappy'"):
        decode(TEXT, "snappy")
    with pytest.raises(UndecodableBody, match="'snappy'"):
        encode(TEXT, "snappy")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
def test_a_body_that_unfolds_beyond_the_limit_is_refused(coding: str) -> None:
    bomb = encode(bytes(20_000_000), coding)
    with pytest.raises(UndecodableBody, match="limit"):
        decode(bomb, coding, limit=1_000_000)
    assert len(decode(bomb, coding, limit=20_000_000)) == 20_000_000


def test_a_pile_of_codings_is_refused() -> None:
    with pytest.raises(UndecodableBody, match="codings"):
        decode(b"x", ", ".join(["gzip"] * 50))


def test_empty_bodies_are_empty_in_every_coding() -> None:
    assert [decode(b"", coding) for coding in CODINGS] == [b""] * len(CODINGS)


def test_of_a_cut_body_we_get_what_came_and_what_is_wrong() -> None:
    noisy = bytes(range(256)) * 2000
    for coding in ("gzip", "br", "zstd"):
        encoded = encode(noisy + brotli.compress(noisy), coding)
        plain, trouble = decode_as_far_as_possible(encoded[: len(encoded) - 2], coding)
        assert noisy.startswith(plain[: len(noisy)])
        assert trouble == "the compressed data breaks off"
    assert decode_as_far_as_possible(TEXT, None) == (TEXT, None)
    assert decode_as_far_as_possible(TEXT, "snappy") == (b"", "unknown content coding 'snappy'")
