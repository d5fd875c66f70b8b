"""What a trace tells of, in the form of exchanges: who would read it, what was asked, what was answered."""

import json
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from rewind.formats.trace.apis.base import Form, only, text_of
from rewind.formats.trace.bodies import LONGEST_RUN, Bodies, Body
from rewind.formats.trace.events import Call, Event, Note, ToolRun, Turns
from rewind.formats.trace.fields import counts_in, error_in, final_text
from rewind.formats.trace.lines import Entry
from rewind.model.http import RequestHead, ResponseHead
from rewind.model.session import TRACE_SCHEME
from rewind.model.step import StepKind
from rewind.providers import notes, tools
from rewind.providers.shared.json_fields import start_of

_SHORT = 16 * 1024
"""Bytes of settings and system prompt that are repeated in every call of a trace that is too long to repeat all."""
_JSON = (("content-type", "application/json"),)
_OURS = ("pid", "cut", "blob_ref")
"""Fields that the recorder adds itself."""
_OK = ResponseHead(status=200, reason="OK", headers=_JSON)
_FAILED = ResponseHead(status=500, reason="", headers=_JSON)
_WORDS = ResponseHead(status=200, reason="OK", headers=(("content-type", "text/plain; charset=utf-8"),))
_NOTHING = ResponseHead(status=204, reason="No Content", headers=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A step but for its number and its times."""

    kind: StepKind
    head: RequestHead
    request: Body
    answer: Body | None
    answer_head: ResponseHead = _OK
    shown: str | None = None
    """The words for lists, where no provider reads them."""
    error: str | None = None
    note: str | None = None


def exchange_of(event: Event, bodies: Bodies) -> Exchange:
    match event:
        case Call():
            return _call(event, bodies)
        case ToolRun():
            return _tool(event, bodies)
        case Note(entry=entry):
            return _other(entry, bodies)


def _call(call: Call, bodies: Bodies) -> Exchange:
    too_long = bodies.size > LONGEST_RUN
    form, turns = _short(call, bodies) if too_long else (call.form, call.turns)
    document: Any = {"error": {"message": call.error}} if call.error else None
    if call.said is not None:
        document = call.said.document
        if call.usage and not (document.get("usage") or document.get("usageMetadata")):
            document = call.api.with_usage(document, call.usage, counts_in(call.usage))
    return Exchange(
        kind=StepKind.LLM_CALL,
        head=_head("POST", call.form.target, call.entry),
        request=bodies.request(form, turns),
        answer=None if document is None else bodies.whole(document),
        answer_head=_FAILED if call.error else _OK,
        note="what was said before is left out: the trace is too long to repeat it in every call"
        if too_long
        else None,
    )


def _short(call: Call, bodies: Bodies) -> tuple[Form, Turns]:
    """The last turn, and the settings where they are short."""
    form = call.form
    if sum(map(len, bodies.around(form))) > _SHORT:
        form = replace(form, before=only(("model", form.before.get("model"))), first=(), after={})
    last = call.turns.since(max(0, len(call.turns) - 1))
    return form, Turns(last, len(last))


def _tool(run: ToolRun, bodies: Bodies) -> Exchange:
    result = run.result
    answer: dict[str, Any] | None = None
    if result is not None:
        answer = {"error": result.text} if result.failed else {"result": result.output}
    return Exchange(
        kind=StepKind.TOOL_CALL,
        head=_head("CALL", "/" + quote(run.use.name or "tool", safe=""), run.entry, scheme=tools.SCHEME),
        request=bodies.whole({"arguments": run.use.arguments}),
        answer=None if answer is None else bodies.whole(answer),
        answer_head=_FAILED if result is not None and result.failed else _OK,
    )


def _other(entry: Entry, bodies: Bodies) -> Exchange:
    match entry.kind:
        case "error":
            error = error_in(entry.fields) or "error"
            return Exchange(
                kind=StepKind.ERROR,
                head=_head("ERROR", "/error", entry),
                request=bodies.whole(_rest(entry, error)),
                answer=bodies.whole({"error": error}),
                answer_head=_FAILED,
                shown="",
                error=start_of(error, 500),
            )
        case "final":
            words = final_text(entry.fields)
            return Exchange(
                kind=StepKind.FINAL,
                head=_head("FINAL", "/final", entry),
                request=bodies.whole(_rest(entry, words)),
                answer=bodies.text(words),
                answer_head=_WORDS,
                shown=start_of(words, 500),
            )
        case _:
            words = _words(entry)
            return Exchange(
                kind=StepKind.NOTE,
                head=_head("NOTE", "/", entry, scheme=notes.SCHEME),
                request=bodies.whole({"text": words, "fields": _rest(entry)}),
                answer=bodies.text(""),
                answer_head=_NOTHING,
                shown=start_of(words, 500),
            )


def _rest(entry: Entry, told: str | None = None) -> dict[str, Any]:
    """The fields of a line, less what is told elsewhere."""
    return {
        name: value
        for name, value in entry.fields.items()
        if name not in _OURS and (told is None or text_of(value) != told)
    }


def _words(entry: Entry) -> str:
    """A note's own words, or all that it tells, behind its kind."""
    own = next(
        (found for name in ("text", "message", "note", "content") if (found := entry.fields.get(name))), None
    )
    told = own if isinstance(own, str) else json.dumps(_rest(entry), ensure_ascii=False)
    return told if entry.kind == "note" else f"{entry.kind}: {told}"


def _head(method: str, target: str, entry: Entry, *, scheme: str = TRACE_SCHEME) -> RequestHead:
    headers = (*_JSON, ("x-trace-line", str(entry.number)))
    return RequestHead(method=method, scheme=scheme, host="", port=0, target=target, headers=headers)
