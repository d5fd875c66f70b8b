"""Which kind of file this is: by what it begins with, and only then by its ending."""

import json
import re
from enum import StrEnum

BEGINNING = 64 * 1024
"""So many bytes tell."""

_ZSTD = b"\x28\xb5\x2f\xfd"
_TNETSTRING = re.compile(rb"\d{1,12}:\d{1,12}:")
_YAML_CASSETTE = re.compile(rb"^(?:(?:http_)?interactions:|- request:|- !ruby/struct:VCR::)", re.MULTILINE)
_JSON_HAR = re.compile(rb'"log"\s*:\s*\{')
_JSON_CASSETTE = re.compile(rb'"(?:http_)?interactions"\s*:|\A\[\s*\{\s*"request"\s*:')


class FileKind(StrEnum):
    """What can be imported."""

    CASSETTE = "a Rewind cassette"
    TRACE = "a trace"
    VCR = "a VCR cassette"
    HAR = "a HAR file"
    FLOWS = "a mitmproxy flow file"


_ENDINGS = (
    ((".rw", ".rw.zst"), FileKind.CASSETTE),
    ((".jsonl",), FileKind.TRACE),
    ((".yaml", ".yml"), FileKind.VCR),
    ((".har",), FileKind.HAR),
    ((".flow", ".flows", ".mitm"), FileKind.FLOWS),
)

_OWN_ENDINGS = (".rw", ".rw.zst", ".har", ".flow", ".flows", ".mitm")
"""Of files that are nothing else."""

ACCEPTED = (
    "Rewind reads its own cassettes (.rw, .rw.zst) and traces (.jsonl), VCR cassettes (.yaml, .json), "
    "HAR files (.har) and mitmproxy flow files."
)


def kind_of(beginning: bytes, name: str) -> FileKind | None:
    """``None`` for a file that is nothing we know."""
    return _by_content(beginning) or kind_by_ending(name)


def kind_by_ending(name: str) -> FileKind | None:
    """What a file says it is by its name."""
    return next((kind for endings, kind in _ENDINGS if name.lower().endswith(endings)), None)


def is_recording(beginning: bytes, name: str) -> bool:
    """Whether a file that nobody named is meant for us: YAML and JSON lines may be anything, so their content tells."""
    return _by_content(beginning) is not None or name.lower().endswith(_OWN_ENDINGS)


def name_without_ending(name: str) -> str:
    """What a file is called: ``test_refund.test_late.yaml`` keeps the name of its test."""
    known = (*(ending for endings, _ in _ENDINGS for ending in endings), ".json")
    ending = max((one for one in known if name.lower().endswith(one)), key=len, default="")
    return name[: len(name) - len(ending)] or name


def _by_content(beginning: bytes) -> FileKind | None:
    text = beginning.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(_ZSTD):
        return FileKind.CASSETTE
    if _TNETSTRING.match(text):
        return FileKind.FLOWS
    if text[:1] not in (b"{", b"["):
        return FileKind.VCR if _YAML_CASSETTE.search(text) else None
    if (kind := _by_first_line(text)) is not None:
        return kind
    found = [
        (place.start(), kind)
        for pattern, kind in ((_JSON_HAR, FileKind.HAR), (_JSON_CASSETTE, FileKind.VCR))
        if (place := pattern.search(text))
    ]
    return min(found)[1] if found else None


def _by_first_line(text: bytes) -> FileKind | None:
    """Our own files have one JSON object a line."""
    line, newline, _ = text.partition(b"\n")
    try:
        first = json.loads(line) if newline else None
    except (ValueError, RecursionError):
        return None
    match first:
        case {"rewind_cassette": _}:
            return FileKind.CASSETTE
        case {"kind": str()}:
            return FileKind.TRACE
        case _:
            return None
