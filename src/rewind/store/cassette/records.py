"""The records of a cassette: what a reviewer reads of a session and its steps, and the small print at the end.

The small print holds what differs between any two recordings, or follows from what was shown before: times, headers
of answers, keys and digests, sizes and hashes, packed bytes. Values become fields and fields become values, side by
side. The names are those of the journal.
"""

import re
from collections.abc import Callable
from dataclasses import asdict
from itertools import accumulate, pairwise
from typing import Any

from rewind.model.http import Chunk, Headers, RequestHead, ResponseHead
from rewind.model.ids import BlobId, MatchKey, SessionId
from rewind.model.session import SessionEnd, SessionStart, Surroundings
from rewind.model.step import Ending, Reading, StepKind, StepRequest, StepResponse
from rewind.model.usage import Usage
from rewind.store.cassette import fields as check
from rewind.store.cassette.fields import Fields
from rewind.store.cassette.references import Addressed
from rewind.store.journal.records import USAGE_KINDS, lineage_in, response_fields

MOST_STEPS = 100_000
OF_THE_SESSION = "session"
"""Whose small print it is, where it is not a step's."""

_Checks = dict[str, Callable[[Fields, str], Any]]
"""Fields that have the same name in a record and in its value, and how each is checked."""
_SESSION: _Checks = {
    "name": check.some_text,
    "command": check.texts,
    "cwd": check.text,
    "tags": check.named_texts,
    "key_variables": check.texts,
    "base_urls": check.named_texts,
    "hosts": check.texts,
    "all_hosts": check.flag,
    "ignore": check.paths,
    "facts": check.named_texts,
}
_SURROUNDINGS: _Checks = {
    "commit": check.some_text,
    "branch": check.some_text,
    "changes": check.some_text,
    "locks": check.named_texts,
}
_SHOWN_OF_ANSWER = (
    "status", "ending", "reason", "tape", "model", "text", "tokens_in", "tokens_out", *USAGE_KINDS, "tier", "usage",
    "error", "note",
)  # fmt: skip
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://(\[[^\]/?#]*\]|[^\[\]/?#:]*)(?::(\d{1,5}))?(/.*)", re.DOTALL | re.ASCII)
_ADDRESS = ("scheme", "host", "port", "target")
_USUAL_PORTS = {"http": 80, "https": 443}
_SIZE = "@size"


def _checked(fields: Fields, checks: _Checks) -> dict[str, Any]:
    return {name: check_field(fields, name) for name, check_field in checks.items()}


def _without_empty(fields: Fields) -> Fields:
    return {name: value for name, value in fields.items() if value not in (None, "", (), [], {}, False)}


def session_record(start: SessionStart) -> Fields:
    fields = asdict(start)
    for name in ("id", "started", "rewind_version", "part_of", "imported"):  # in the small print, of a store, or known
        del fields[name]
    always = {name: fields.pop(name) for name in ("name", "command", "cwd")}
    stdin = fields.pop("stdin_kind")
    rest = _without_empty(fields) | ({"stdin_kind": stdin} if stdin != "none" else {})
    return {"session": start.id, **always, **rest}


def session_in(record: Fields, small: Fields) -> SessionStart:
    origin = record.get("forked_from")
    lineage = lineage_in(origin)
    if origin is not None:
        check.session_id(check.fields_of(origin, "'forked_from'"), "session")
        if lineage is None:
            check.bad("'forked_from' does not name a step.")
    replayed = record.get("replay_of")
    return SessionStart(
        id=SessionId(check.session_id(record, "session")),
        started=check.number(small, "started"),
        rewind_version=check.text(small, "rewind_version"),
        **_checked(record, _SESSION),
        stdin_kind=check.some_text(record, "stdin_kind") or "none",
        replay_of=None if replayed is None else SessionId(check.session_id(record, "replay_of")),
        forked_from=lineage,
        imported=True,
    )


def surroundings_record(surroundings: Surroundings) -> Fields:
    clean = {"dirty": False} if surroundings.dirty is False else {}
    return {"surroundings": _without_empty(asdict(surroundings)) | clean}


def surroundings_in(record: Fields) -> Surroundings:
    fields = check.fields_of(record["surroundings"], "'surroundings'")
    dirty = None if fields.get("dirty") is None else check.flag(fields, "dirty")
    return Surroundings(**_checked(fields, _SURROUNDINGS), dirty=dirty)


def end_record(end: SessionEnd) -> Fields:
    """The end, without what the agent read and wrote, which is added as bodies."""
    fields = _without_empty({"redactions": end.redactions, "remarks": end.remarks, "broken": end.broken})
    return {"exit_code": end.exit_code, **fields}


def end_in(fields: Fields, small: Fields, streams: dict[str, BlobId | None]) -> SessionEnd:
    return SessionEnd(
        ended=check.number(small, "ended"),
        exit_code=check.count(fields, "exit_code", least=-(2**31), most=2**32),
        redactions=check.some_count(fields, "redactions") or 0,
        remarks=check.texts(fields, "remarks"),
        broken=check.some_text(fields, "broken"),
        **streams,
    )


def step_record(request: StepRequest) -> Fields:
    """A step, without its request."""
    rest = _without_empty({"model": request.model, "thread": request.thread, "note": request.note})
    return {"step": request.index, "kind": request.kind.value, "provider": request.provider, **rest}


def request_record(request: StepRequest) -> Fields:
    head = request.head
    address = {name: getattr(head, name) for name in _ADDRESS}
    where: Fields = {"url": head.url} if _address_of(head.url) == address else address
    headers = headers_record(head.headers, request.body_size)
    name = f"request {request.index} headers"
    return {"method": head.method, **where, **({"headers": Addressed(name, headers)} if headers else {})}


def request_in(record: Fields, small: Fields, body: BlobId, size: int) -> StepRequest:
    fields = check.fields_of(record.get("request"), "A request")
    if "url" in fields:
        address = _address_of(check.text(fields, "url")) or check.bad("The address of a request cannot be read.")
    else:
        port = check.count(fields, "port", most=65535)
        address = {name: check.head_text(fields, name) for name in _ADDRESS if name != "port"} | {"port": port}
    asked_key = check.some_text(small, "asked_key")
    return StepRequest(
        index=check.count(record, "step", least=1),
        ts=check.number(small, "ts"),
        kind=StepKind(_one_of(record, "kind", StepKind)),
        provider=check.text(record, "provider"),
        match_key=MatchKey(check.text(small, "key")),
        head=RequestHead(
            method=check.head_text(fields, "method"), headers=headers_in(fields.get("headers", {}), size), **address
        ),
        body=body,
        body_size=size,
        model=check.some_text(record, "model"),
        thread=check.some_count(record, "thread", least=1),
        sketch=check.some_text(small, "sketch"),
        asked_key=None if asked_key is None else MatchKey(asked_key),
        note=check.some_text(record, "note"),
    )


def request_small_print(request: StepRequest) -> Fields:
    keys = _without_empty({"asked_key": request.asked_key, "sketch": request.sketch})
    return {"ts": request.ts, "key": request.match_key, **keys}


def answer_record(response: StepResponse) -> Fields:
    """An answer, without its body."""
    fields = response_fields(0, 0.0, response, None)
    shown = {name: fields.get(name) for name in _SHOWN_OF_ANSWER}
    return {name: value for name, value in shown.items() if value not in (None, "")}


def answer_small_print(index: int, response: StepResponse) -> Fields:
    """The small print of an answer, without its times."""
    head, size = response.head, response.body_size
    fields: Fields = _without_empty({"said": response.reading.said})
    if head is not None:
        fields |= {"version": head.version, "reason": head.reason}
        headers = headers_record(head.headers, size)
        fields |= {"headers": Addressed(f"answer {index} headers", headers)} if headers else {}
    if response.trailers:
        fields["trailers"] = headers_record(response.trailers, size)
    return fields


def times_of(response: StepResponse) -> Fields:
    times: Fields = {"ms": response.ms, **({} if response.first_ms is None else {"first_ms": response.first_ms})}
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
        trailers=headers_in(small.get("trailers", {}), size),
        ms=check.number(times, "ms"),
        first_ms=check.some_number(times, "first_ms"),
        reading=Reading(
            model=check.some_text(fields, "model"),
            text=check.some_text(fields, "text") or "",
            usage=Usage(
                input=check.some_count(fields, "tokens_in"),
                output=check.some_count(fields, "tokens_out"),
                **{name: check.some_count(fields, name) for name in USAGE_KINDS},
                more=check.named_counts(fields, "usage"),
                tier=check.some_text(fields, "tier") or "",
            ),
            error=check.some_text(fields, "error"),
            said=check.some_text(small, "said"),
            note=check.some_text(fields, "note"),
        ),
        reason=check.some_text(fields, "reason"),
        tape=check.some_count(fields, "tape"),
    )


def _head_in(fields: Fields, small: Fields, size: int) -> ResponseHead | None:
    if "status" not in fields:
        return None
    return ResponseHead(
        status=check.count(fields, "status", most=999),
        reason=check.head_text(small, "reason"),
        headers=headers_in(small.get("headers", {}), size),
        version=check.head_text(small, "version") or check.bad("'version' is empty."),
    )


def _chunks(times: Fields) -> tuple[Chunk, ...]:
    waits, sizes = check.counts(times, "waits"), check.counts(times, "sizes")
    if len(waits) != len(sizes) or min(sizes, default=0) < 0:
        check.bad("The chunks of an answer do not fit their times.")
    return tuple(map(Chunk, accumulate(waits), sizes))


def _one_of(fields: Fields, name: str, words: Any) -> str:
    value = check.text(fields, name)
    if value not in set(words):
        check.bad(f"{name!r} is {value[:40]!r}, which this Rewind does not know.")
    return value


def _address_of(url: str) -> dict[str, Any] | None:
    """Scheme, host, port and target; ``None`` where the address does not tell them."""
    found = _URL.fullmatch(url)
    if found is None or len(url.split("\n", 1)[0]) < len(url) or "\r" in url or "\0" in url:
        return None
    scheme, host, port, target = found.groups()
    number = _USUAL_PORTS.get(scheme) if port is None else int(port)
    return None if number is None else dict(zip(_ADDRESS, (scheme, host.strip("[]"), number, target), strict=True))


def headers_record(headers: Headers, size: int) -> Fields | list[list[str]]:
    """An object if no name occurs twice. The length of the body becomes a mark, since it follows from the body."""
    pairs = [(name, _header_shown(name, value, size)) for name, value in headers]
    by_name = dict(pairs)
    return by_name if len(by_name) == len(pairs) else [list(pair) for pair in pairs]


def headers_in(shown: Any, size: int) -> Headers:
    pairs = list(shown.items()) if type(shown) is dict else shown
    if type(pairs) is not list:
        check.bad("Headers are neither an object nor a list.")
    headers: list[tuple[str, str]] = []
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            check.bad("A header is not a pair.")
        name, value = pair
        if type(name) is not str or type(value) is not str:
            check.bad("A header is not a pair of strings.")
        value = str(size) if value == _SIZE else value.removeprefix("@")
        if not (check.can_be_sent(name) and check.can_be_sent(value)):
            check.bad("A header cannot be sent.")
        headers.append((name, value))
    return tuple(headers)


def _header_shown(name: str, value: str, size: int) -> str:
    if name.lower() == "content-length" and value == str(size):
        return _SIZE
    return "@" + value if value.startswith("@") else value
