"""The journal: one append-only file of small JSON lines per session; the truth.

A last line without its newline is what a killed recorder leaves, and no damage. Unknown kinds and fields are skipped:
the format only grows. Values become fields and fields become values in pure functions, side by side.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeVar

from rewind.dataclass import dataclass
from rewind.model.http import Chunk, Headers, RequestHead, ResponseHead
from rewind.model.ids import BlobId, MatchKey, SessionId
from rewind.model.session import Edited, Lineage, SessionEnd, SessionStart, Surroundings
from rewind.model.step import NO_BYTES, Ending, Reading, StepKind, StepRequest, StepResponse
from rewind.model.usage import Usage
from rewind.store.journal.lines import BadLine, Fields

USAGE_KINDS = ("cache_read", "cache_write", "reasoning")
"""Kinds of tokens that have a field of their own, beside ``tokens_in`` and ``tokens_out`` that they are part of."""
_REQUEST_LINE = ("method", "scheme", "host", "port", "target")
_MEANING = frozenset({"model", "text", "tokens_in", "tokens_out"})
_IN_PART = frozenset({"status", "body", "chunks", "head"})
_TEXT_SHOWN = 500
_ERROR_SHOWN = 2000
_WHOLE = 2**63


def session_fields(start: SessionStart) -> Fields:
    fields = {"format": 1, **asdict(start)}
    return {"kind": "session", "ts": fields.pop("started"), "run": fields.pop("id"), **fields}


def session_start(fields: Fields) -> SessionStart:
    """What a ``session`` line says. Raises BadLine."""
    _check(fields, _SESSION)
    return SessionStart(
        id=SessionId(fields["run"]),
        name=fields.get("name"),
        command=tuple(fields.get("command") or ()),
        cwd=fields.get("cwd") or "",
        started=fields["ts"],
        rewind_version=fields.get("rewind_version") or "",
        tags=fields.get("tags") or {},
        key_variables=tuple(fields.get("key_variables") or ()),
        base_urls=fields.get("base_urls") or {},
        hosts=tuple(fields.get("hosts") or ()),
        all_hosts=bool(fields.get("all_hosts")),
        ignore=tuple(fields.get("ignore") or ()),
        facts=fields.get("facts") or {},
        stdin_kind=fields.get("stdin_kind") or "none",
        replay_of=fields.get("replay_of"),
        forked_from=lineage_in(fields.get("forked_from")),
        part_of=fields.get("part_of"),
        imported=bool(fields.get("imported")),
    )


def lineage_in(fields: Any) -> Lineage | None:
    """Where a fork comes from; ``None`` if the fields do not name a session and a step."""
    if not isinstance(fields, dict) or not isinstance(fields.get("session"), str):
        return None
    step, sample = fields.get("step"), fields.get("sample")
    if not isinstance(step, int):
        return None
    return Lineage(
        session=SessionId(fields["session"]),
        step=step,
        key=MatchKey(str(fields.get("key") or "")),
        edits=_texts(fields.get("edits")),
        by_hand=bool(fields.get("by_hand")),
        earlier=tuple(
            Edited(
                key=MatchKey(str(edited.get("key") or "")),
                edits=_texts(edited.get("edits")),
                by_hand=bool(edited.get("by_hand")),
            )
            for edited in _list(fields.get("earlier"))
            if isinstance(edited, dict)
        ),
        sample=sample if isinstance(sample, int) else None,
        probe=bool(fields.get("probe")),
    )


def request_fields(request: StepRequest) -> Fields:
    head = request.head
    return {
        "kind": "request",
        "ts": request.ts,
        "step": request.index,
        "type": request.kind.value,
        "provider": request.provider,
        "model": request.model,
        **{name: getattr(head, name) for name in _REQUEST_LINE},
        "key": request.match_key,
        "body": request.body,
        "size": request.body_size,
        **({"thread": request.thread} if request.thread else {}),
        **({"sketch": request.sketch} if request.sketch else {}),
        **({"asked_key": request.asked_key} if request.asked_key else {}),
        **({"note": request.note} if request.note else {}),
        "headers": head.headers,
    }


def asked_fields(request: StepRequest) -> Fields:
    """A request in short, for an answer that is quicker than its ``request`` line."""
    fields = request_fields(request)
    return {name: fields[name] for name in fields if name not in ("model", "key")} | {"kind": "asked"}


def step_request(fields: Fields) -> StepRequest:
    """What a ``request`` line says, or ``asked``, which has no key. Raises BadLine."""
    if fields.get("kind") == "asked":
        fields = {**fields, "key": ""}
    _check(fields, _REQUEST)
    return StepRequest(
        index=fields["step"],
        ts=fields["ts"],
        kind=_member(StepKind, fields["type"]),
        provider=fields["provider"],
        match_key=MatchKey(fields["key"]),
        head=_request_head(*[fields[name] for name in _REQUEST_LINE], _headers(fields.get("headers"))),
        body=BlobId(fields.get("body") or NO_BYTES),
        body_size=fields.get("size") or 0,
        model=fields.get("model"),
        thread=fields.get("thread"),
        sketch=fields.get("sketch"),
        asked_key=fields.get("asked_key"),
        note=fields.get("note"),
    )


def response_fields(index: int, ts: float, response: StepResponse, times: BlobId | None) -> Fields:
    """``times`` names the blob with the arrival times if they are too many for a line."""
    reading, head = response.reading, response.head
    complete = response.ending is Ending.COMPLETE
    optional = {
        "ending": None if complete else response.ending.value,
        "reason": response.reason,
        "tape": response.tape,
        "said": reading.said,
        "error": reading.error and reading.error[:_ERROR_SHOWN],
        "note": reading.note,
        "trailers": response.trailers,
    }
    return {
        "kind": "step" if complete else "cut",
        "ts": ts,
        "step": index,
        "model": reading.model,
        "status": head.status if head else None,
        "text": reading.text[:_TEXT_SHOWN],
        **_usage_fields(reading.usage),
        "ms": response.ms,
        "first_ms": response.first_ms,
        **{name: value for name, value in optional.items() if value or value == 0},
        "body": response.body,
        "size": response.body_size,
        "chunks": times or [(chunk.at, chunk.size) for chunk in response.chunks],
        "head": head and {"version": head.version, "reason": head.reason, "headers": head.headers},
    }


def answered_fields(index: int, ts: float, response: StepResponse, times: BlobId | None, *, in_part: bool) -> Fields:
    """An answer in short, without its meaning; ``in_part`` where its head and its bytes are still in its part."""
    fields = response_fields(index, ts, response, times)
    left_out = _MEANING | (_IN_PART if in_part else frozenset())
    kept = {name: value for name, value in fields.items() if name not in left_out}
    return {**kept, "kind": "answered"} | ({"part": True} if in_part else {})


def _usage_fields(usage: Usage) -> Fields:
    optional = {name: getattr(usage, name) for name in USAGE_KINDS} | {"tier": usage.tier, "usage": usage.more}
    given = {name: value for name, value in optional.items() if value}
    return {"tokens_in": usage.input, "tokens_out": usage.output, **given}


def usage_in(fields: Fields) -> Usage:
    """The tokens that a ``step`` line tells, each a count or left out."""
    return Usage(
        input=as_count(fields.get("tokens_in")),
        output=as_count(fields.get("tokens_out")),
        **{name: as_count(fields[name]) for name in USAGE_KINDS if name in fields},
        more=as_counts(fields.get("usage")),
        tier=tier if isinstance(tier := fields.get("tier"), str) else "",
    )


def as_count(value: Any) -> int | None:
    """The value if it is an integer of 64 bits."""
    return value if type(value) is int and -_WHOLE <= value < _WHOLE else None


def as_counts(value: Any) -> dict[str, int]:
    """Counts by name; other values are left out."""
    pairs = value.items() if isinstance(value, dict) else ()
    return {name: count for name, inner in pairs if (count := as_count(inner)) is not None}


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """A response as the journal has it."""

    response: StepResponse
    times: BlobId | None
    """Where its chunks are, when the line does not hold them."""
    in_part: bool = False
    """Its head and its bytes are in its part."""


def response_head(fields: Any) -> ResponseHead:
    """Status line and headers. Raises BadLine."""
    _check(fields, _HEAD)
    return _response_head(
        fields["status"], fields["reason"], _headers(fields["headers"]), fields.get("version") or "1.1"
    )


def step_answer(fields: Fields) -> AnswerLine:
    """What a ``step`` or ``cut`` line says. Raises BadLine."""
    _check(fields, _ANSWER)
    head, chunks = fields.get("head"), fields.get("chunks") or ()
    response = StepResponse(
        ending=_member(Ending, fields.get("ending") or Ending.COMPLETE),
        head=None if head is None else response_head({**head, "status": fields.get("status")}),
        body=BlobId(fields.get("body") or NO_BYTES),
        body_size=fields.get("size") or 0,
        chunks=() if isinstance(chunks, str) else tuple(Chunk(at, size) for at, size in _pairs(chunks)),
        trailers=_headers(fields.get("trailers")),
        ms=fields["ms"],
        first_ms=fields.get("first_ms"),
        reading=Reading(
            model=fields.get("model"),
            text=fields.get("text") or "",
            usage=usage_in(fields),
            error=fields.get("error"),
            said=fields.get("said"),
            note=fields.get("note"),
        ),
        reason=fields.get("reason"),
        tape=fields.get("tape"),
    )
    return AnswerLine(response, BlobId(chunks) if isinstance(chunks, str) else None, bool(fields.get("part")))


def encode_times(chunks: tuple[Chunk, ...]) -> bytes:
    """Arrival times as JSON: ``[[microseconds since the one before, size], …]``."""
    befores = (0, *(chunk.at for chunk in chunks))
    pairs = [(chunk.at - before, chunk.size) for before, chunk in zip(befores, chunks, strict=False)]
    return json.dumps(pairs, separators=(",", ":")).encode()


def decode_times(data: bytes) -> tuple[Chunk, ...]:
    """Raises BadLine."""
    at, chunks = 0, []
    try:
        pairs = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadLine(f"they are not JSON ({error})") from error
    for since, size in _pairs(pairs):
        at += since
        chunks.append(Chunk(at, size))
    return tuple(chunks)


def surroundings_fields(surroundings: Surroundings, ts: float) -> Fields:
    return {"kind": "surroundings", "ts": ts, **asdict(surroundings)}


def surroundings_in(fields: Fields) -> Surroundings:
    """What a ``surroundings`` line says, each value of the right type or left out."""
    texts = {name: fields.get(name) for name in ("commit", "branch", "changes")}
    dirty, locks = fields.get("dirty"), fields.get("locks")
    return Surroundings(
        **{name: value for name, value in texts.items() if isinstance(value, str)},
        dirty=dirty if isinstance(dirty, bool) else None,
        locks={
            name: value for name, value in (locks.items() if isinstance(locks, dict) else ()) if isinstance(value, str)
        },
    )


def end_fields(end: SessionEnd, totals: Fields, pack_size: int) -> Fields:
    fields = asdict(end)
    return {"kind": "end", "ts": fields.pop("ended"), **fields, "totals": totals, "pack_size": pack_size}


def session_end(fields: Fields) -> SessionEnd:
    """What an ``end`` line says. Raises BadLine."""
    _check(fields, _END)
    return SessionEnd(
        ended=fields["ts"],
        exit_code=fields["exit_code"],
        stdin=fields.get("stdin"),
        stdout=fields.get("stdout"),
        stderr=fields.get("stderr"),
        redactions=fields.get("redactions") or 0,
        remarks=tuple(fields.get("remarks") or ()),
        broken=fields.get("broken"),
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(text for text in _list(value) if isinstance(text, str))


# The steps of a session repeat what they send: what is equal is held once, which halves the memory of a long session.


@lru_cache(maxsize=4096)
def _pair(name: str, value: str) -> tuple[str, str]:
    return name, value


@lru_cache(maxsize=1024)
def _request_head(method: str, scheme: str, host: str, port: int, target: str, headers: Headers) -> RequestHead:
    return RequestHead(method=method, scheme=scheme, host=host, port=port, target=target, headers=headers)


@lru_cache(maxsize=1024)
def _response_head(status: int, reason: str, headers: Headers, version: str) -> ResponseHead:
    return ResponseHead(status=status, reason=reason, headers=headers, version=version)


def _headers(pairs: Any) -> Headers:
    try:
        headers = tuple([_pair(name, value) for name, value in pairs or ()])
    except (TypeError, ValueError) as error:
        raise BadLine("its headers are not pairs") from error
    for name, value in headers:
        if type(name) is not str or type(value) is not str:
            raise BadLine("its headers are not texts")
    return headers


def _pairs(chunks: Any) -> Iterator[tuple[int, int]]:
    """Time and size of each piece of a body; sizes are what a replay cuts by."""
    try:
        for at, size in chunks:
            if type(at) is not int or type(size) is not int or size < 0:
                raise BadLine("its chunks make no sense")
            yield at, size
    except (TypeError, ValueError) as error:
        raise BadLine("its chunks make no sense") from error


_Member = TypeVar("_Member", bound=StrEnum)


def _member(kind: type[_Member], value: str) -> _Member:
    try:
        return kind(value)
    except ValueError as error:
        raise BadLine(f"{value[:40]!r} is not known here") from error


# A line whose checksum fits may still be of another shape than ours: edited by hand, or written by another tool.
_NONE = type(None)
_TEXT, _COUNT, _NUMBER = (str,), (int,), (int, float)
_SOME_TEXT, _SOME_COUNT, _SOME_NUMBER = (str, _NONE), (int, _NONE), (int, float, _NONE)
_LIST, _TABLE = (list, tuple, _NONE), (dict, _NONE)
_Shape = dict[str, tuple[type, ...]]
_SESSION: _Shape = {
    "run": _TEXT, "ts": _NUMBER, "name": _SOME_TEXT, "command": _LIST, "cwd": _SOME_TEXT,
    "rewind_version": _SOME_TEXT, "tags": _TABLE, "key_variables": _LIST, "base_urls": _TABLE, "hosts": _LIST,
    "ignore": _LIST, "facts": _TABLE, "stdin_kind": _SOME_TEXT, "replay_of": _SOME_TEXT, "part_of": _SOME_TEXT,
}  # fmt: skip
_REQUEST: _Shape = {
    "step": _COUNT, "ts": _NUMBER, "type": _TEXT, "provider": _TEXT, "key": _TEXT, "method": _TEXT, "scheme": _TEXT,
    "host": _TEXT, "port": _COUNT, "target": _TEXT, "body": _SOME_TEXT, "size": _SOME_COUNT, "model": _SOME_TEXT,
    "thread": _SOME_COUNT, "sketch": _SOME_TEXT, "asked_key": _SOME_TEXT, "note": _SOME_TEXT,
}  # fmt: skip
_ANSWER: _Shape = {
    "step": _COUNT, "ms": _NUMBER, "first_ms": _SOME_NUMBER, "ending": _SOME_TEXT, "head": _TABLE, "body": _SOME_TEXT,
    "size": _SOME_COUNT, "chunks": (str, list, _NONE), "model": _SOME_TEXT, "text": _SOME_TEXT, "error": _SOME_TEXT,
    "said": _SOME_TEXT, "note": _SOME_TEXT, "reason": _SOME_TEXT, "tape": _SOME_COUNT,
}  # fmt: skip
_HEAD: _Shape = {"status": _COUNT, "reason": _TEXT, "headers": (list,), "version": _SOME_TEXT}
_END: _Shape = {
    "ts": _NUMBER, "exit_code": _COUNT, "stdin": _SOME_TEXT, "stdout": _SOME_TEXT, "stderr": _SOME_TEXT,
    "redactions": _SOME_COUNT, "remarks": _LIST, "broken": _SOME_TEXT, "pack_size": _SOME_COUNT,
}  # fmt: skip
_OF_TEXTS = ("command", "key_variables", "hosts", "ignore", "remarks", "tags", "base_urls", "facts")
"""Lists and tables that hold nothing but texts."""
_YEAR_1, _YEAR_10000 = -62_135_596_800, 253_402_300_800


def _check(fields: Any, shape: _Shape) -> None:
    """Raises BadLine unless every field is what it should be."""
    if type(fields) is not dict:
        raise BadLine("it is not an object")
    for name, kinds in shape.items():
        value: Any = fields.get(name)
        kind = type(value)
        if kind not in kinds:
            raise BadLine(f"its {name!r} makes no sense")
        if kind is str or value is None:  # as most are
            continue
        if (kind is float or kind is int) and not -_WHOLE <= value < _WHOLE:
            raise BadLine(f"its {name!r} makes no sense")
        if name in _OF_TEXTS and value and not all(type(text) is str for text in _held(value)):
            raise BadLine(f"its {name!r} does not hold texts")
        if name == "ts" and not _YEAR_1 <= value < _YEAR_10000:
            raise BadLine("its time is in no calendar")


def _held(value: list[Any] | dict[str, Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value
