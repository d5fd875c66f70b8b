"""Look for secrets in every file of a folder, however they may have been written."""

import base64
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

import zstandard

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
GZIP_MAGIC = b"\x1f\x8b\x08"
LIMIT = 64 * 1024 * 1024
DELTA = re.compile(rb'"(?:content|text|delta|partial_json|arguments)"\s*:\s*"((?:[^"\\]|\\.)*)"')
BASE64_RUN = re.compile(rb"[A-Za-z0-9+/_-]{24,}={0,2}")


def forms(secret: str) -> dict[str, bytes]:
    """The ways in which these characters may stand in a file."""
    raw = secret.encode()
    ascii_json = json.dumps(secret)[1:-1]
    found = {
        "raw": raw,
        "json": json.dumps(secret, ensure_ascii=False)[1:-1].encode(),
        "ascii json": ascii_json.encode(),
        "json in json": json.dumps(ascii_json)[1:-1].encode(),
        "url": quote(secret, safe="").encode(),
        "url path": quote(secret).encode(),
        "form": quote_plus(secret).encode(),
        "hex": raw.hex().encode(),
        "utf-16": secret.encode("utf-16-le"),
    }
    for shift in range(3):
        # The middle of a base64 text does not depend on what stands around the secret, only on where it began.
        whole = base64.b64encode(b"\0" * shift + raw)
        middle = whole[4 if shift else 0 : len(whole) - 4]
        found[f"base64 at {shift}"] = middle
        found[f"base64url at {shift}"] = middle.translate(bytes.maketrans(b"+/", b"-_"))
    return {name: data for name, data in found.items() if len(data) >= 8}


def layers(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The bytes themselves, and all that can be unpacked from anywhere inside them."""
    yield "as stored", data
    for at in _places(data, ZSTD_MAGIC):
        try:
            inner = zstandard.ZstdDecompressor().decompressobj().decompress(data[at:])
        except zstandard.ZstdError:
            continue
        yield from ((f"zstd at {at}: {name}", piece) for name, piece in layers(inner[:LIMIT]))
    for at in _places(data, GZIP_MAGIC):
        try:
            inner = zlib.decompressobj(31).decompress(data[at:], LIMIT)
        except zlib.error:
            continue
        yield f"gzip at {at}", inner
    deltas = b"".join(DELTA.findall(data))
    if deltas:
        yield "joined deltas", deltas
    for run in BASE64_RUN.findall(data):
        try:
            inner = base64.b64decode(run.translate(bytes.maketrans(b"-_", b"+/")) + b"===", validate=False)
        except ValueError:
            continue
        yield "base64 run", inner


def _places(data: bytes, mark: bytes) -> Iterator[int]:
    at = data.find(mark)
    while at >= 0:
        yield at
        at = data.find(mark, at + 1)


def find_canaries(folder: Path, secrets: dict[str, str]) -> list[str]:
    """Where each secret was found, in words; empty when it is nowhere."""
    wanted = {name: forms(secret) for name, secret in secrets.items()}
    hits = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        named = [("file name", path.name.encode()), *layers(path.read_bytes())]
        for layer, data in named:
            hits += [
                f"{name} ({form}) in {path.relative_to(folder)}, {layer}"
                for name, table in wanted.items()
                for form, value in table.items()
                if value in data
            ]
    return hits


def self_check(folder: Path) -> None:
    """The search finds what it is meant to find: an unfailing search proves nothing."""
    secret = 'canary "q" \\ ünd/ender+0123456789'
    packed = zstandard.ZstdCompressor().compress(json.dumps({"a": secret}).encode())
    (folder / "pack").write_bytes(b"head" + packed + b"tail")
    (folder / "zip").write_bytes(b"xx" + gzip.compress(secret.encode()))
    (folder / "b64").write_bytes(b"{" + base64.b64encode(b"ab" + secret.encode() + b"yz") + b"}")
    deltas = [json.dumps({"content": secret[at : at + 3]}, ensure_ascii=False) for at in range(0, 40, 3)]
    (folder / "sse").write_text("".join(f"data: {delta}\n\n" for delta in deltas))
    found = find_canaries(folder, {"planted": secret})
    for name in ("pack", "zip", "b64", "sse"):
        assert any(f" in {name}, " in hit for hit in found), (name, found)
