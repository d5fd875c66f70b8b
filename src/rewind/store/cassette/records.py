"""The records of a cassette: what a reviewer reads of a session and its steps, and the small print at the end.

The small print holds what differs between any two recordings, or follows from what was shown before: times, headers
of answers, keys and digests, sizes and hashes, packed bytes. Values become fields and fields become values, side by
side. The names are those of the journal.
"""

import re
from dataclasses import asdict
from itertools import accumulate, pairwise
from typing import Any

from rewind.model.http import Chunk, Headers, RequestHead, ResponseHead
from rewind.model.ids import BlobId, MatchKey, SessionId
from rewind.model.session import SessionEnd, SessionStart
from rewind.model.step import Ending, Reading, StepKind, StepRequest, StepResponse
from rewind.model.surroundings import Surroundings
from rewind.model.usage import Usage
from rewind.store.cassette.checks import (
    Fields,
    bad,
    count,
    counts,
    fields_of,
    flag,
    head_text,
    headers_in,
    headers_shown,
    named_counts,
    named_texts,
    number,
    session_id,
    some_count,
    some_number,
    some_text,
    text,
    texts,
)
from rewind.store.cassette.layout import Addressed
from rewind.store.journal.format import USAGE_KINDS, lineage_in, response_fields

MOST_STEPS = 100_000
OF_THE_SESSION = "session"
"""Whose small print it is, where it is not a step's."""

_IN_SMALL_PRINT = ("id", "started", "rewind_version", "imported")
_SEEN_OF_ANSWER = (
    "status",
    "ending",
    "reason",
    "tape",
    "model",
    "text",
    "tokens_in",
    "tokens_out",
    *USAGE_KINDS,
    "tier",
    "usage",
    "error",
    "note",
)
_URL = re.compile(
    r"([a-z][a-z0-9+.-]*)://(\[[^\]/?#]*\]|[^\[\]/?#:]*)(?::(\d{1,5}))?(/.*)", re.DOTALL | re.ASCII
)
_USUAL_PORTS = {"http": 80, "https": 443}


def told(fields: Fields) -> Fields:
    """Only what says something."""
    return {name: value for name, value in fields.items() if value not in (None, "", (), [], {}, False)}


def session_record(start: SessionStart) -> Fields:
    fields = asdict(start)
    for name in _IN_SMALL_PRINT:
        del fields[name]
    always = {name: fields.pop(name) for name in ("name", "command", "cwd")}
    usual = fields.pop("stdin_kind")
    rest = told(fields) | ({"stdin_kind": usual} if usual != "none" else {})
    return {"session": start.id, **always, **rest}


def session_in(record: Fields, small: Fields) -> SessionStart:
    origin = record.get("forked_from")
    lineage = lineage_in(origin)
    if origin is not None:
        session_id(fields_of(origin, "A lineage"), "session")
        if lineage is None:
            bad("A lineage tells no step.")
    replayed = record.get("replay_of")
    return SessionStart(
        id=SessionId(session_id(record, "session")),
        name=some_text(record, "name"),
        command=texts(record, "command"),
        cwd=text(record, "cwd"),
        started=number(small, "started"),
        rewind_version=text(small, "rewind_version"),
        tags=named_texts(record, "tags"),
        key_variables=texts(record, "key_variables"),
        base_urls=named_texts(record, "base_urls"),
        hosts=texts(record, "hosts"),
        all_hosts=flag(record, "all_hosts"),
        ignore=texts(record, "ignore"),
        stdin_kind=some_text(record, "stdin_kind") or "none",
        replay_of=None if replayed is None else SessionId(session_id(record, "replay_of")),
        forked_from=lineage,
        imported=True,
    )


def surroundings_record(found: Surroundings) -> Fields:
    return {"surroundings": told(asdict(found)) | ({"dirty": False} if found.dirty is False else {})}


def surroundings_in(record: Fields) -> Surroundings:
    fields = fields_of(record["surroundings"], "What the run stood on")
    return Surroundings(
        commit=some_text(fields, "commit"),
        branch=some_text(fields, "branch"),
        dirty=None if fields.get("dirty") is None else flag(fields, "dirty"),
        changes=some_text(fields, "changes"),
        locks=named_texts(fields, "locks"),
    )


def end_record(end: SessionEnd) -> Fields:
    """Without what the agent read and wrote, which is added as bodies."""
    fields = told({"redactions": end.redactions, "remarks": end.remarks, "broken": end.broken})
    return {"exit_code": end.exit_code, **fields}


def end_in(fields: Fields, small: Fields, streams: dict[str, BlobId | None]) -> SessionEnd:
    return SessionEnd(
        ended=number(small, "ended"),
        exit_code=count(fields, "exit_code", least=-(2**31), most=2**32),
        redactions=some_count(fields, "redactions") or 0,
        remarks=texts(fields, "remarks"),
        broken=some_text(fields, "broken"),
        stdin=streams["stdin"],
        stdout=streams["stdout"],
        stderr=streams["stderr"],
    )


def step_record(request: StepRequest) -> Fields:
    """What was asked, but for the request itself."""
    seen = told({"model": request.model, "thread": request.thread, "note": request.note})
    return {"step": request.index, "kind": request.kind.value, "provider": request.provider, **seen}


def request_record(request: StepRequest) -> Fields:
    head = request.head
    where: Fields = {"url": head.url}
    if _parts_of(head.url) != (head.scheme, head.host, head.port, head.target):
        where = {"scheme": head.scheme, "host": head.host, "port": head.port, "target": head.target}
    headers = headers_shown(head.headers, request.body_size)
    name = f"request {request.index} headers"
    return {"method": head.method, **where, **({"headers": Addressed(name, headers)} if headers else {})}


def request_in(record: Fields, small: Fields, body: BlobId, size: int) -> StepRequest:
    fields = fields_of(record.get("request"), "A request")
    parts = _parts_of(text(fields, "url")) if "url" in fields else None
    if parts is None:
        if "url" in fields:
            bad("The address of a request cannot be read.")
        port = count(fields, "port", most=65535)
        parts = head_text(fields, "scheme"), head_text(fields, "host"), port, head_text(fields, "target")
    scheme, host, port, target = parts
    return StepRequest(
        index=count(record, "step", least=1),
        ts=number(small, "ts"),
        kind=StepKind(_one_of(record, "kind", StepKind)),
        provider=text(record, "provider"),
        match_key=MatchKey(text(small, "key")),
        head=RequestHead(
            method=head_text(fields, "method"),
            scheme=scheme,
            host=host,
            port=port,
            target=target,
            headers=headers_in(fields.get("headers", {}), size),
        ),
        body=body,
        body_size=size,
        model=some_text(record, "model"),
        thread=some_count(record, "thread", least=1),
        sketch=some_text(small, "sketch"),
        asked_key=_key(some_text(small, "asked_key")),
        note=some_text(record, "note"),
    )


def request_small_print(request: StepRequest) -> Fields:
    keys = told({"asked_key": request.asked_key, "sketch": request.sketch})
    return {"ts": request.ts, "key": request.match_key, **keys}


def answer_record(response: StepResponse) -> Fields:
    """What was answered, but for the body."""
    fields = response_fields(0, 0.0, response, None)
    shown = {name: fields.get(name) for name in _SEEN_OF_ANSWER}
    return {name: value for name, value in shown.items() if value not in (None, "")}


def answer_small_print(index: int, response: StepResponse) -> Fields:
    """What is known of the answer besides; the times stand last."""
    head, size = response.head, response.body_size
    fields: Fields = told({"said": response.reading.said})
    if head is not None:
        fields |= {"version": head.version, "reason": head.reason}
        headers = headers_shown(head.headers, size)
        fields |= {"headers": Addressed(f"answer {index} headers", headers)} if headers else {}
    if response.trailers:
        fields["trailers"] = headers_shown(response.trailers, size)
    return fields


def times_of(response: StepResponse) -> Fields:
    times: Fields = {
        "ms": response.ms,
        **({} if response.first_ms is None else {"first_ms": response.first_ms}),
    }
    if response.chunks:
        times["waits"] = [later - at for at, later in pairwise((0, *(chunk.at for chunk in response.chunks)))]
        times["sizes"] = [chunk.size for chunk in response.chunks]
    return times


def answer_in(fields: Fields, small: Fields, times: Fields, body: BlobId, size: int) -> StepResponse:
    return StepResponse(
        ending=Ending(_one_of(fields, "ending", Ending)) if "ending" in fields else Ending.COMPLETE,
        head=_head_in(fields, small, size),
        body=body,
        body_size=size,
        chunks=_chunks(times),
        trailers=_headers(small, "trailers", size),
        ms=number(times, "ms"),
        first_ms=some_number(times, "first_ms"),
        reading=Reading(
            model=some_text(fields, "model"),
            text=some_text(fields, "text") or "",
            usage=Usage(
                input=some_count(fields, "tokens_in"),
                output=some_count(fields, "tokens_out"),
                **{name: some_count(fields, name) for name in USAGE_KINDS},
                more=named_counts(fields, "usage"),
                tier=some_text(fields, "tier") or "",
            ),
            error=some_text(fields, "error"),
            said=some_text(small, "said"),
            note=some_text(fields, "note"),
        ),
        reason=some_text(fields, "reason"),
        tape=some_count(fields, "tape"),
    )


def _head_in(fields: Fields, small: Fields, size: int) -> ResponseHead | None:
    if "status" not in fields:
        return None
    return ResponseHead(
        status=count(fields, "status", most=999),
        reason=head_text(small, "reason"),
        headers=_headers(small, "headers", size),
        version=head_text(small, "version") or bad("'version' is empty."),
    )


def _headers(fields: Fields, name: str, size: int) -> Headers:
    return headers_in(fields.get(name, {}), size)


def _chunks(times: Fields) -> tuple[Chunk, ...]:
    waits, sizes = counts(times, "waits"), counts(times, "sizes")
    if len(waits) != len(sizes) or min(sizes, default=0) < 0:
        bad("The pieces of an answer do not fit their times.")
    return tuple(map(Chunk, accumulate(waits), sizes))


def _one_of(fields: Fields, name: str, words: Any) -> str:
    value = text(fields, name)
    if value not in set(words):
        bad(f"{name!r} is {value[:40]!r}, which this Rewind does not know.")
    return value


def _key(value: str | None) -> MatchKey | None:
    return None if value is None else MatchKey(value)


def _parts_of(url: str) -> tuple[str, str, int, str] | None:
    """Scheme, host, port and target, or ``None`` where the address does not tell them."""
    found = _URL.fullmatch(url)
    if found is None or len(url.split("\n", 1)[0]) < len(url) or "\r" in url or "\0" in url:
        return None
    scheme, host, port, target = found.groups()
    number = _USUAL_PORTS.get(scheme) if port is None else int(port)
    return None if number is None else (scheme, host.strip("[]"), number, target)
