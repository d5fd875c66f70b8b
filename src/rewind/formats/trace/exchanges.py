"""What a trace tells of, as exchanges: a head, a request and an answer for every event.

Bodies are put together when they are asked for: each call repeats what was said before, which is kept once.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from rewind.dataclass import dataclass
from rewind.formats.trace.api import RequestForm, Turn, only, text_of
from rewind.formats.trace.conversation import FirstTurns, ModelCall, OtherLine, TracedTool, TraceEvent
from rewind.formats.trace.fields import counts_in, error_in, final_text_in
from rewind.formats.trace.lines import TraceLimits, TraceLine
from rewind.model.http import RequestHead, ResponseHead
from rewind.model.ids import BlobId
from rewind.model.session import TRACE_SCHEME
from rewind.model.step import NO_BYTES, StepKind
from rewind.providers import notes, tools
from rewind.providers.shared.json_fields import start_of

_FRAMES_HELD = 64
"""Requests whose text around the turns is kept in memory."""
_RECORDER_FIELDS = ("pid", "cut", "blob_ref")
_JSON = (("content-type", "application/json"),)
_OK = ResponseHead(status=200, reason="OK", headers=_JSON)
_FAILED = ResponseHead(status=500, reason="", headers=_JSON)
_TEXT = ResponseHead(status=200, reason="OK", headers=(("content-type", "text/plain; charset=utf-8"),))
_NO_CONTENT = ResponseHead(status=204, reason="No Content", headers=())


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class LazyBody:
    """A body that is made when it is asked for."""

    name: BlobId
    size: int
    data: Callable[[], bytes]


@dataclass(slots=True)
class _GrowingHash:
    """The hash of the latest request of a conversation, up to its last turn: the next request goes on from it."""

    turns: list[Turn]
    """Held, so that nothing else can get its id."""
    opening: bytes
    digest: Any
    size: int
    count: int = 0
    empty: bool = True

    def add(self, piece: bytes) -> None:
        if not self.empty:
            self.digest.update(b",")
            self.size += 1
        self.empty = False
        self.digest.update(piece)
        self.size += len(piece)


class TraceBodies(Mapping[BlobId, bytes]):
    """The bodies of a session by their names."""

    def __init__(self) -> None:
        self._bodies: dict[BlobId, LazyBody] = {}
        self._turns: dict[int, tuple[Turn, bytes]] = {}
        self._hashes: dict[int, _GrowingHash] = {}
        self._frames: dict[int, tuple[RequestForm, bytes, bytes]] = {}
        self.size = 0
        """Of all of them together."""

    def whole(self, document: Any) -> LazyBody:
        """A JSON document."""
        return self._held(_json(document))

    def text(self, text: str) -> LazyBody:
        return self._held(text.encode("utf-8", "replace"))

    def request(self, form: RequestForm, turns: FirstTurns) -> LazyBody:
        """A request around its turns; each turn is written and hashed once, however often it is repeated."""
        opening, closing = self.frame(form)
        growing = self._hashes.get(id(turns.all))
        if growing is None or growing.opening != opening or growing.count > turns.count:
            digest = hashlib.sha256(opening)
            growing = _GrowingHash(turns.all, opening, digest, len(opening), empty=not form.first)
            self._hashes[id(turns.all)] = growing
        for turn in turns.since(growing.count):
            growing.add(self.turn(turn))
        growing.count = turns.count
        whole = growing.digest.copy()
        whole.update(closing)

        def data() -> bytes:
            opening, closing = self.frame(form)  # not held: those of many calls are much
            between = b"," if form.first and len(turns) else b""
            return opening + between + b",".join(map(self.turn, turns.since(0))) + closing

        return self._named(whole.hexdigest(), growing.size + len(closing), data)

    def frame(self, form: RequestForm) -> tuple[bytes, bytes]:
        """The text of a request before and behind its turns."""
        known = self._frames.get(id(form))
        if known is None:
            before = _json(form.before)[:-1] + (b"," if form.before else b"")
            after = (b"," + _json(form.after)[1:]) if form.after else b"}"
            first = b",".join(map(_json, form.first))
            known = form, b"%s%s:[%s" % (before, _json(form.turns_at), first), b"]" + after
            while len(self._frames) >= _FRAMES_HELD:
                del self._frames[next(iter(self._frames))]
            self._frames[id(form)] = known
        return known[1:]

    def turn(self, turn: Turn) -> bytes:
        """One turn as JSON."""
        # Known by identity, and held, so that nothing else can get its id.
        known = self._turns.get(id(turn))
        if known is None:
            known = self._turns[id(turn)] = turn, _json(turn)
        return known[1]

    def _held(self, data: bytes) -> LazyBody:
        return self._named(hashlib.sha256(data).hexdigest(), len(data), lambda: data)

    def _named(self, digest: str, size: int, data: Callable[[], bytes]) -> LazyBody:
        body = LazyBody(BlobId("sha256:" + digest), size, data)
        self.size += size
        if body.name != NO_BYTES:
            self._bodies.setdefault(body.name, body)
        return body

    def __getitem__(self, name: BlobId) -> bytes:
        return self._bodies[name].data()

    def __iter__(self) -> Iterator[BlobId]:
        return iter(self._bodies)

    def __len__(self) -> int:
        return len(self._bodies)


def _json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


# ── exchanges ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceExchange:
    """A step but for its number and its times."""

    kind: StepKind
    head: RequestHead
    request: LazyBody
    answer: LazyBody | None
    answer_head: ResponseHead = _OK
    shown: str | None = None
    """The text for lists, where no provider reads the answer."""
    error: str | None = None
    note: str | None = None


def exchange_of(event: TraceEvent, bodies: TraceBodies, limits: TraceLimits) -> TraceExchange:
    match event:
        case ModelCall():
            return _model_call(event, bodies, limits)
        case TracedTool():
            return _tool(event, bodies)
        case OtherLine(line=line):
            return _other(line, bodies)


def _model_call(call: ModelCall, bodies: TraceBodies, limits: TraceLimits) -> TraceExchange:
    form, turns, note = call.form, call.turns, None
    if bodies.size > limits.request_bytes:
        note = "what was said before is left out: the trace is too long to repeat it in every call"
        if sum(map(len, bodies.frame(form))) > limits.short_settings_bytes:
            form = replace(form, before=only(("model", form.before.get("model"))), first=(), after={})
        last = turns.since(max(0, len(turns) - 1))
        turns = FirstTurns(last, len(last))
    document: Any = {"error": {"message": call.error}} if call.error else None
    if call.said is not None:
        document = call.said.document
        if call.usage and not (document.get("usage") or document.get("usageMetadata")):
            document = call.api.with_usage(document, call.usage, counts_in(call.usage))
    return TraceExchange(
        kind=StepKind.LLM_CALL,
        head=_head("POST", call.form.target, call.line),
        request=bodies.request(form, turns),
        answer=None if document is None else bodies.whole(document),
        answer_head=_FAILED if call.error else _OK,
        note=note,
    )


def _tool(run: TracedTool, bodies: TraceBodies) -> TraceExchange:
    answer, failed = None, run.result is not None and run.result.failed
    if run.result is not None:
        answer = bodies.whole({"error": run.result.text} if failed else {"result": run.result.output})
    return TraceExchange(
        kind=StepKind.TOOL_CALL,
        head=_head("CALL", "/" + quote(run.use.name or "tool", safe=""), run.line, tools.SCHEME),
        request=bodies.whole({"arguments": run.use.arguments}),
        answer=answer,
        answer_head=_FAILED if failed else _OK,
    )


def _other(line: TraceLine, bodies: TraceBodies) -> TraceExchange:
    match line.kind:
        case "error":
            error = error_in(line.fields) or "error"
            return TraceExchange(
                kind=StepKind.ERROR,
                head=_head("ERROR", "/error", line),
                request=bodies.whole(_fields_but(line, error)),
                answer=bodies.whole({"error": error}),
                answer_head=_FAILED,
                shown="",
                error=start_of(error, 500),
            )
        case "final":
            text = final_text_in(line.fields)
            return TraceExchange(
                kind=StepKind.FINAL,
                head=_head("FINAL", "/final", line),
                request=bodies.whole(_fields_but(line, text)),
                answer=bodies.text(text),
                answer_head=_TEXT,
                shown=start_of(text, 500),
            )
        case _:
            text = _note_text(line)
            return TraceExchange(
                kind=StepKind.NOTE,
                head=_head("NOTE", "/", line, notes.SCHEME),
                request=bodies.whole({"text": text, "fields": _fields_but(line)}),
                answer=bodies.text(""),
                answer_head=_NO_CONTENT,
                shown=start_of(text, 500),
            )


def _fields_but(line: TraceLine, text: str | None = None) -> dict[str, Any]:
    """The fields that the agent gave, less the one with that text."""
    return {
        name: value
        for name, value in line.fields.items()
        if name not in _RECORDER_FIELDS and (text is None or text_of(value) != text)
    }


def _note_text(line: TraceLine) -> str:
    """The text of a note, or else all its fields, behind its kind."""
    names = ("text", "message", "note", "content")
    own = next((value for name in names if (value := line.fields.get(name))), None)
    text = own if isinstance(own, str) else json.dumps(_fields_but(line), ensure_ascii=False)
    return text if line.kind == "note" else f"{line.kind}: {text}"


def _head(method: str, target: str, line: TraceLine, scheme: str = TRACE_SCHEME) -> RequestHead:
    headers = (*_JSON, ("x-trace-line", str(line.number)))
    return RequestHead(method=method, scheme=scheme, host="", port=0, target=target, headers=headers)
