"""VCR cassettes: vcrpy and pytest-recording in YAML or JSON, their older forms, and the dialects of other VCRs.

Version 1 is ``{interactions: [{request: {method, uri, body, headers}, response: {status: {code, message}, headers,
body: {string}}}], version: 1}``. Before it a cassette was a list, with the URL in parts and the response headers as
lines; vcrpy's httpx stub wrote ``status_code`` and ``content`` for a while; pydantic-ai keeps JSON bodies as
``parsed_body``; Ruby's VCR says ``http_interactions`` and ``recorded_at``.

YAML of strangers is read as plain values only, under limits that hold before anything is built. The events are looked
at first: they come one by one whatever the nesting, so depth, tags and what aliases would unfold to are known, and
refused, before a value exists.
"""

import base64
import importlib
import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

from rewind.errors import BadCassette, EnvironmentProblem
from rewind.formats import repair
from rewind.formats.exchanges import ForeignExchange, ForeignRecording, read_entries
from rewind.formats.repair import Remarks, Unreadable
from rewind.model.http import Headers, HttpRequest, HttpResponse, ResponseHead, header

DEEPEST = 200
MOST_VALUES = 500_000
"""With every alias unfolded. PyYAML takes some 400 bytes and ten microseconds for each."""
MOST_REPEATED = 64 * 1024 * 1024
"""Characters that aliases may add to the text."""

_CORE = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(
    _CORE + name for name in ("str", "int", "float", "bool", "null", "binary", "map", "seq", "timestamp", "omap", "set")
)
_TEXT_TAGS = (_CORE + "python/str", _CORE + "python/unicode")
_LIST_TAG = _CORE + "python/tuple"
_FILE_TAG = _CORE + "python/object/new:_io.BytesIO"
_HARMLESS_TAGS = frozenset((*_TEXT_TAGS, _LIST_TAG, _FILE_TAG))
"""vcrpy wrote these where a program gave it such values; read as the text, the list and the bytes they hold."""
_PORTS = {"http": 80, "https": 443}


def read_vcr(data: bytes) -> ForeignRecording:
    """Raises BadCassette, or EnvironmentProblem where a YAML file needs PyYAML."""
    rows, tool = _interactions(_document(data))
    remarks = Remarks()
    read = partial(_exchange, remarks=remarks)
    exchanges = tuple(read_entries(rows, "interaction", read, remarks))
    if exchanges and all(exchange.started is None for exchange in exchanges):
        remarks.add("the file does not say how long an answer took: each counts as given at once")
    return ForeignRecording(exchanges=exchanges, tool=tool, remarks=remarks.texts())


def _document(data: bytes) -> Any:
    # JSON first: it needs no PyYAML, and is read a hundred times as fast.
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        try:
            return repair.read_json(data.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            pass  # YAML may begin with a bracket as well
    return _read_yaml(data)


def _interactions(document: Any) -> tuple[list[Any], str]:
    match document:
        case {"interactions": list(rows)}:
            return rows, "vcrpy"
        case {"http_interactions": list(rows)}:
            return rows, "VCR"
        case [{"request": dict()}, *_]:
            return document, "vcrpy"
        case {"interactions": None}:
            return [], "vcrpy"
        case _:
            raise BadCassette("It is not a VCR cassette: it has no list of interactions.")


def _exchange(interaction: dict[Any, Any], remarks: Remarks) -> ForeignExchange:
    asked, answered = interaction["request"], interaction["response"]
    method = str(asked.get("method") or "GET").upper()
    head = repair.request_head(method, _uri(asked), _headers(asked.get("headers"), remarks))
    request = HttpRequest(head=head, body=_body(asked, remarks))
    status, reason = _status(answered)
    response = HttpResponse(
        head=ResponseHead(status=status, reason=reason, headers=_headers(answered.get("headers"), remarks)),
        body=_body(answered, remarks),
        chunks=(),
    )
    if status < 200:
        remarks.add(f"an answer with status {status} is only the beginning of one, and cannot be played")
        return ForeignExchange(
            request=request, response=None, ending=None, note="the file does not hold the whole answer"
        )
    return ForeignExchange(
        request=repair.fitted_request(request, remarks),
        response=repair.fitted_response(head.method, response, remarks),
        started=_moment(interaction.get("recorded_at") or answered.get("recorded_at")),
    )


def _uri(asked: dict[Any, Any]) -> str:
    match asked:
        case {"uri": str(uri)} | {"url": str(uri)}:
            return uri
        case {"protocol": str(scheme), "host": str(host), "path": str(path)}:
            port = asked.get("port")
            usual = port is None or port == _PORTS.get(scheme)
            return f"{scheme}://{host}{'' if usual else f':{port}'}{path}"
        case _:
            raise Unreadable("the request has no URI")


def _status(answered: dict[Any, Any]) -> tuple[int, str]:
    match answered:
        case {"status": {"code": int(code), **more}}:
            reason = more.get("message")
        case {"status_code": int(code)} | {"code": int(code)} | {"status": int(code)}:
            reason = None
        case _:
            raise Unreadable("the response has no status")
    if not 100 <= code <= 999:
        raise Unreadable(f"{code} is not a valid status")
    return code, repair.reason_phrase(reason)


def _headers(given: Any, remarks: Remarks) -> Headers:
    match given:
        case None:
            return ()
        case dict():
            pairs = [
                (name, value)
                for name, values in given.items()
                for value in (values if isinstance(values, list) else [values])
            ]
        case list():
            # Before version 1: lines, as they had come.
            pairs = [_header_line(line) for line in given if isinstance(line, str)]
        case _:
            raise Unreadable("its headers are neither a mapping nor a list")
    return repair.sound_headers(pairs, remarks)


def _header_line(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()


def _body(half: dict[Any, Any], remarks: Remarks) -> bytes:
    if "parsed_body" in half and half.get("body") is None:
        remarks.add("the body was kept as parsed JSON: it was written anew, with the same meaning")
        return _written(half["parsed_body"])
    body = half.get("body", half.get("content"))
    match body:
        case {"base64_string": str(text)}:
            return repair.from_base64(text)
        case dict() if body.keys() <= {"string", "encoding"}:
            return _bytes(body.get("string"))
        case dict():
            return _given(body, half, remarks)
        case list() if not all(isinstance(piece, str | bytes) for piece in body):
            return _given(body, half, remarks)
        case list():
            return b"".join(map(_bytes, body))  # it was sent in pieces
        case _:
            return _bytes(body)


def _given(value: dict[Any, Any] | list[Any], half: dict[Any, Any], remarks: Remarks) -> bytes:
    """Of aiohttp, vcrpy keeps what the program gave as ``json=`` or ``data=``, and not what was sent."""
    remarks.add("the body was kept as the values it was made of: it was written anew, with the same meaning")
    if "x-www-form-urlencoded" in (header(_headers(half.get("headers"), remarks), "content-type") or ""):
        try:
            return urlencode(value, doseq=True).encode()
        except (TypeError, ValueError) as error:
            raise Unreadable("the fields of a form cannot be written") from error
    return _written(value)


def _bytes(value: Any) -> bytes:
    match value:
        case None:
            return b""
        case bytes():
            return value
        case str():
            return value.encode("utf-8", "surrogatepass")
        case bool():
            return b"true" if value else b"false"
        case int() | float():
            return str(value).encode()
        case _:
            raise Unreadable("a body is neither text nor bytes")


def _written(value: Any) -> bytes:
    """As pydantic-ai writes it again itself."""
    try:
        return json.dumps(value, default=_as_text).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise Unreadable("a parsed body cannot be written as JSON") from error


def _as_text(value: Any) -> Any:
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case set():
            return sorted(value, key=str)
        case _:
            return str(value)


def _moment(given: Any) -> float | None:
    """ISO 8601, or as in mail headers, which Ruby writes."""
    if not isinstance(given, str):
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(given)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
    return None


# ── YAML ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_yaml(data: bytes) -> Any:
    """The one document in it, as plain values. Raises BadCassette, or EnvironmentProblem where PyYAML is missing."""
    yaml = _pyyaml()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadCassette("It is not YAML: it is not UTF-8 text.") from error
    try:
        _check(yaml, text)
        return yaml.load(text, Loader=_loader(yaml))
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadCassette(f"It cannot be read as YAML: {_first_line(error)}.") from error


def _pyyaml() -> Any:
    try:
        return importlib.import_module("yaml")
    except ImportError as error:
        raise EnvironmentProblem("Reading YAML needs PyYAML.", hint="pip install pyyaml") from error


def _base_loader(yaml: Any) -> Any:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _check(yaml: Any, text: str) -> None:
    """Raises BadCassette for what must not be built, as soon as it is met."""
    alias, scalar = yaml.AliasEvent, yaml.ScalarEvent
    begin, close = yaml.CollectionStartEvent, yaml.CollectionEndEvent
    most = len(text) + MOST_REPEATED
    values = characters = 0
    opened: list[tuple[str | None, int, int]] = []
    """Of each open collection: its anchor, and how much had been counted where it began."""
    anchors: dict[str, tuple[int, int]] = {}
    for event in yaml.parse(text, Loader=_base_loader(yaml)):
        if isinstance(event, scalar):
            _check_tag(event.tag)
            size = len(event.value)
            if event.anchor:
                anchors[event.anchor] = 1, size
            values += 1
            characters += size
        elif isinstance(event, begin):
            _check_tag(event.tag)
            if len(opened) >= DEEPEST:
                raise BadCassette(f"It is nested deeper than {DEEPEST} levels.")
            anchors.pop(event.anchor, None)
            opened.append((event.anchor, values, characters))
            values += 1
        elif isinstance(event, close):
            name, before, length = opened.pop()
            if name:
                anchors[name] = values - before, characters - length
        elif isinstance(event, alias):
            if event.anchor not in anchors:
                raise BadCassette("It holds an alias of something that holds the alias itself.")
            more, longer = anchors[event.anchor]
            values += more
            characters += longer
        if values > MOST_VALUES:
            raise BadCassette(f"It holds more than {MOST_VALUES:,} values.")
        if characters > most:
            raise BadCassette("It unfolds to more than can be read: its aliases repeat too much.")


def _check_tag(tag: str | None) -> None:
    if tag is None or tag == "!" or tag in _PLAIN_TAGS or tag in _HARMLESS_TAGS:
        return
    shown = tag.replace(_CORE, "!!")[:80]
    if tag.startswith(_CORE + "python/"):
        raise BadCassette(
            f"It asks for a Python object ({shown}): such a file can run code, so it is not read.",
            hint="Record it again with a current vcrpy, or bring it up to date: python -m vcr.migration FILE",
        )
    raise BadCassette(f"It holds a value of an unknown kind ({shown}).")


def _loader(yaml: Any) -> Any:
    loader: Any = type("PlainValues", (_base_loader(yaml),), {})
    # A date stays the text it is: bodies are JSON, which has no dates.
    loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _CORE + "timestamp"]
        for first, resolvers in loader.yaml_implicit_resolvers.items()
    }
    for tag in _TEXT_TAGS:
        loader.add_constructor(tag, lambda loader, node: loader.construct_scalar(node))
    loader.add_constructor(_LIST_TAG, lambda loader, node: loader.construct_sequence(node, deep=True))
    loader.add_constructor(_FILE_TAG, _held_by_a_file)
    return loader


def _held_by_a_file(loader: Any, node: Any) -> bytes | str:
    """A request body that a program had given as an open file."""
    state = loader.construct_mapping(node, deep=True).get("state") or [b""]
    first = state[0] if isinstance(state, list) else b""
    return first if isinstance(first, bytes | str) else b""


def _first_line(error: Exception) -> str:
    """What went wrong and where, without the copy of the text that PyYAML adds."""
    mark = getattr(error, "problem_mark", None)
    words = getattr(error, "problem", None) or str(error).partition("\n")[0] or type(error).__name__
    return f"line {mark.line + 1}: {words}" if mark is not None else str(words)
