"""The Model Context Protocol over HTTP: agents list and call the tools of a server, in JSON-RPC 2.0.

Recognised by its headers, which every request carries after the first. That first one, ``initialize``, may lack them:
it is claimed where the client takes JSON and events alike, as the protocol demands and hardly anybody else does, and
where host or path says ``mcp`` (or ``sse``, the older transport). The providers of models are asked before this one.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked, Message, Other, Part, Role, Text, ToolResult, ToolUse
from rewind.model.step import StepKind
from rewind.providers.api import Api, Document, Lazy, Speaker, Volatile
from rewind.providers.shared.answer_draft import parameters_of
from rewind.providers.shared.answer_stream import error_of, read_answer, request_json
from rewind.providers.shared.framing import events, whole
from rewind.providers.shared.json_fields import at, inline, items_at, referred, text_at, words_at, writable
from rewind.text import plural

_HEADERS = ("mcp-protocol-version", "mcp-session-id")
_PLACES = frozenset({"mcp", "sse"})
_CALL = "tools/call"
_WITHOUT_BODY = {"GET": "listen to the server", "DELETE": "end the session"}


# Not the `id` of a message: the answer repeats it, and a client waits for its own (ADR 0003).
VOLATILE = tuple(
    Volatile(f"{batch}params._meta.{name}", reason)
    for batch in ("", "[*].")
    for name, reason in (
        ("progressToken", "Names the reports of progress on one call; the client counts them."),
        ("traceparent", "A label for dashboards that tracing draws anew for each run."),
        ("tracestate", "A label for dashboards that tracing draws anew for each run."),
    )
)


class McpReader:
    """A tool server. No model answers here; what its tools say is read by the model in the next call."""

    def claims(self, head: RequestHead) -> bool:
        if head.method not in ("POST", *_WITHOUT_BODY):
            return False
        return any(map(head.header, _HEADERS)) or (head.method == "POST" and _may_be_first(head))

    def asked(self, request: HttpRequest) -> Asked:
        document, note = request_json(request)
        told = tuple(_messages([document]))
        params = at(told[0], "params") if len(told) == 1 else None
        known = ("name", "arguments", "_meta") if _calls_a_tool(told[0] if told else None) else ("_meta",)
        messages = tuple(map(_asked, told))
        if not told and (doing := _WITHOUT_BODY.get(request.head.method)):
            messages = (Message(Role.USER, (Text(doing),)),)
        return Asked(messages=messages, parameters=parameters_of(params, known), note=note)

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        answer = read_answer(response)
        asked, _ = request_json(request)
        names = {_id(told): words_at(told, "params", "name") for told in _messages([asked])}
        return Answered(
            parts=tuple(part for told in _messages(answer.documents) for part in _answered(told, names)),
            error=error_of(response, answer),
            note=answer.note,
        )

    def refusal(self, message: str) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": message}}


def _may_be_first(head: RequestHead) -> bool:
    accepted = (head.header("accept") or "").lower()
    both = "application/json" in accepted and "text/event-stream" in accepted
    return both and (head.host.startswith("mcp.") or not _PLACES.isdisjoint(head.path.lower().split("/")))


def _messages(documents: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """The messages in these documents, batches taken apart."""
    for document in documents:
        for message in document if isinstance(document, list) else [document]:
            if isinstance(message, dict):
                yield message


def _id(message: Any) -> str:
    found = at(message, "id")
    return writable(str(found)) if isinstance(found, str | int) else ""


def _calls_a_tool(message: Any) -> bool:
    return text_at(message, "method") == _CALL


# ── what is asked ────────────────────────────────────────────────────────────────────────────────────────────


def _asked(message: dict[str, Any]) -> Message:
    params = at(message, "params")
    if _calls_a_tool(message):
        use = ToolUse(_id(message), words_at(params, "name"), at(params, "arguments"))
        return Message(Role.ASSISTANT, (use,))
    if method := words_at(message, "method"):
        return Message(Role.USER, (Text(f"{method} {_subject(params)}".strip()),))
    # The client answers what the server asked of it.
    parts = tuple(Other(key, message[key]) for key in ("result", "error") if key in message)
    return Message(Role.USER, (Text(f"answer to {_id(message) or 'the server'}"), *parts))


def _subject(params: Any) -> str:
    """What a message is about, where it says so."""
    if client := _named(at(params, "clientInfo")):
        return client
    for key in ("name", "uri", "level", "requestId", "reason"):
        if found := words_at(params, key):
            return found
    return words_at(params, "ref", "name") or words_at(params, "ref", "uri")


def _named(program: Any) -> str:
    return f"{words_at(program, 'name')} {words_at(program, 'version')}".strip()


# ── what is answered ─────────────────────────────────────────────────────────────────────────────────────────


def _answered(message: dict[str, Any], names: dict[str, str]) -> Iterator[Part]:
    if method := words_at(message, "method"):
        # A log line, a report of progress, or a question of the server's, sent along with the answer.
        yield Other(method, at(message, "params"))
    result = at(message, "result")
    if not isinstance(result, dict):
        return
    if "content" in result or "structuredContent" in result or "isError" in result:
        parts = tuple(_parts(items_at(result, "content")))
        if (value := at(result, "structuredContent")) is not None:
            parts = (*parts, Other("json", value))
        failed = at(result, "isError") is True
        yield ToolResult(_id(message), parts, names.get(_id(message), ""), failed=failed)
        return
    for key, reader in _RESULTS.items():
        if key in result:
            yield from reader(result)
            return
    if rest := parameters_of(result, ("_meta",)):
        yield Other("result", rest)


def _parts(blocks: Iterable[Any]) -> Iterator[Part]:
    for block in blocks:
        media_type = text_at(block, "mimeType")
        match kind := text_at(block, "type"):
            case "text":
                yield Text(words_at(block, "text"))
            case "image" | "audio":
                yield inline(at(block, "data"), media_type, kind)
            case "resource":
                yield from _contents([at(block, "resource")])
            case "resource_link":
                yield referred(text_at(block, "uri"), media_type)
            case _:
                yield Other(writable(kind), block)


def _contents(resources: Iterable[Any]) -> Iterator[Part]:
    for resource in resources:
        if isinstance(at(resource, "text"), str):
            yield Text(words_at(resource, "text"))
        else:
            yield inline(at(resource, "blob"), text_at(resource, "mimeType"))


def _list_of(key: str, noun: str) -> Callable[[dict[str, Any]], Iterator[Part]]:
    def read(result: dict[str, Any]) -> Iterator[Part]:
        rows = items_at(result, key)
        names = ", ".join(words_at(row, "name") or words_at(row, "uri") or "?" for row in rows)
        more = " and more" if text_at(result, "nextCursor") else ""
        yield Text(f"{plural(len(rows), noun)}{': ' if names else ''}{names}{more}")

    return read


def _introduction(result: dict[str, Any]) -> Iterator[Part]:
    protocol = words_at(result, "protocolVersion") or "unknown"
    yield Text(f"initialize: {_named(at(result, 'serverInfo'))}, protocol {protocol}")


def _prompt(result: dict[str, Any]) -> Iterator[Part]:
    for message in items_at(result, "messages"):
        yield from _parts([at(message, "content")])


_RESULTS: dict[str, Callable[[dict[str, Any]], Iterator[Part]]] = {
    "serverInfo": _introduction,
    "tools": _list_of("tools", "tool"),
    "prompts": _list_of("prompts", "prompt"),
    "resources": _list_of("resources", "resource"),
    "resourceTemplates": _list_of("resourceTemplates", "resource template"),
    "contents": lambda result: _contents(items_at(result, "contents")),
    "messages": _prompt,
}


# ── making up an answer ──────────────────────────────────────────────────────────────────────────────────────


def speaker_for(request: HttpRequest, _asked: Asked) -> Speaker:
    """The result of one call, under the id of the request."""
    request_id = at(request_json(request)[0], "id")
    as_events = "application/json" not in (request.head.header("accept") or "").lower()

    def response(document: Document) -> HttpResponse:
        told = document if "jsonrpc" in document else {"jsonrpc": "2.0", "result": document}
        answer = {**told, "id": request_id}
        return events([answer]) if as_events else whole(answer)

    return Speaker(
        # A client waits for the answer under its own id, so an answer to another one does not fit.
        form=f"mcp {request_id!r}",
        is_model=False,
        document=lambda content: {"content": [{"type": "text", "text": content.text}], "isError": False},
        response=response,
    )


API = Api(
    name="mcp",
    kind=StepKind.HTTP_CALL,
    reader=McpReader(),
    volatile=VOLATILE,
    is_llm=False,
    label="mcp",
    speaker=Lazy("rewind.providers.mcp:speaker_for"),
)
