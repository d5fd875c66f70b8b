"""VCR cassettes: vcrpy and pytest-recording in YAML or JSON, their older forms, and the dialects of other VCRs.

Version 1 is ``{interactions: [{request: {method, uri, body, headers}, response: {status: {code, message}, headers,
body: {string}}}], version: 1}``. Before it a cassette was a list, with the URL in parts and the response headers as
lines; vcrpy's httpx stub wrote ``status_code`` and ``content`` for a while; pydantic-ai keeps JSON bodies as
``parsed_body``; Ruby's VCR says ``http_interactions`` and ``recorded_at``.

Ruby's VCR writes placeholders for what a program calls sensitive (``<HOST>``), addresses among them.
"""

import base64
import json
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

from rewind.errors import BadCassette
from rewind.formats import repair
from rewind.formats.exchanges import ForeignExchange, ForeignRecording, read_entries
from rewind.formats.repair import Remarks, Unreadable
from rewind.formats.yaml_values import read_yaml
from rewind.model.http import Headers, HttpRequest, HttpResponse, ResponseHead, header

_PLACEHOLDER = re.compile(r"<[^<>/]*>|\{\{?[^{}/]*\}?\}|\[[^\]:/]*\]|%[A-Za-z_][^%/]*%|\$\{?\w+\}?|\*+")
_ADDRESS = re.compile(
    rf"(?:(?P<scheme>https?)://(?:[^/?#@]*@)?)?(?P<host>(?:{_PLACEHOLDER.pattern}|[\w.-])+)"
    rf"(?::(?P<port>\d+|{_PLACEHOLDER.pattern}))?(?=[/?#]|$)",
    re.IGNORECASE,
)
"""Also one that is a placeholder from its first letter, scheme and all: ``<BASE_URL>/v1/chat``."""
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
    return read_yaml(data)


def _interactions(document: Any) -> tuple[list[Any], str]:
    match document:
        case {"interactions": list(rows)}:
            return rows, "vcrpy"
        case {"http_interactions": list(rows)}:
            return rows, "VCR"
        case [{"request": {"method": str(method)}}, *_] if method.startswith(":"):
            return document, "VCR"  # before version 2, with Ruby's symbols
        case [{"request": dict()}, *_]:
            return document, "vcrpy"
        case {"interactions": None}:
            return [], "vcrpy"
        case _:
            raise BadCassette("It is not a VCR cassette: it has no list of interactions.")


def _exchange(interaction: dict[Any, Any], remarks: Remarks) -> ForeignExchange:
    asked, answered = interaction["request"], interaction["response"]
    method = str(asked.get("method") or "GET").removeprefix(":").upper()
    headers = _headers(asked.get("headers"), remarks)
    head = repair.request_head(method, _without_placeholders(_uri(asked), headers, remarks), headers)
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


def _without_placeholders(uri: str, headers: Headers, remarks: Remarks) -> str:
    """The URI with an address that can be used, where the file has a placeholder in its place.

    What was called sensitive cannot be known again, but the answers can be read and replayed all the same.
    """
    given = _ADDRESS.match(uri)
    if given is None or not _PLACEHOLDER.search(given["host"]):
        return uri
    port = f":{given['port']}" if (given["port"] or "").isdecimal() else ""
    named = (header(headers, "host") or "").partition(":")[0]
    host = _PLACEHOLDER.sub(lambda found: _slug(found[0]), given["host"])
    if given["host"].count(".") < 1:
        host = named if named and not _PLACEHOLDER.search(named) else f"{_slug(host)}.invalid"
    remarks.add(f"the host is the placeholder {given['host'][:80]!r}: it stands as {host}")
    return f"{given['scheme'] or 'https'}://{host}{port}{uri[given.end() :]}"


def _slug(placeholder: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", placeholder.lower())) or "host"


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
