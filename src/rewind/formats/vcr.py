"""VCR cassettes: vcrpy and pytest-recording in YAML or JSON, their older forms, and the dialects of other VCRs.

Version 1 is ``{interactions: [{request: {method, uri, body, headers}, response: {status: {code, message}, headers,
body: {string}}}], version: 1}``. Before it a cassette was a list, with the URL in parts and the response headers as
lines; vcrpy's httpx stub wrote ``status_code`` and ``content`` for a while; pydantic-ai keeps JSON bodies as
``parsed_body``; Ruby's VCR says ``http_interactions`` and ``recorded_at``.
"""

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode

from rewind.errors import BadCassette
from rewind.formats.body_fit import fitted_request, fitted_response
from rewind.formats.exchanges import Foreign, ForeignExchange
from rewind.formats.heads import UnusableAddress, request_head, sound_headers
from rewind.formats.remarks import Remarks
from rewind.formats.texts import from_base64, read_json
from rewind.formats.yaml_text import read_yaml
from rewind.model.http import Headers, HttpRequest, HttpResponse, ResponseHead, header

_PORTS = {"http": 80, "https": 443}


def read_vcr(data: bytes) -> Foreign:
    """Raises BadCassette, or EnvironmentProblem where a YAML file needs PyYAML."""
    document = _document(data)
    rows, tool = _interactions(document)
    remarks = Remarks()
    exchanges = tuple(_exchanges(rows, remarks))
    if exchanges and all(one.started is None for one in exchanges):
        remarks.add("the file does not say how long an answer took: each counts as given at once")
    return Foreign(exchanges=exchanges, tool=tool, remarks=remarks.texts())


def _document(data: bytes) -> Any:
    # JSON first: it needs no PyYAML, and is read a hundred times as fast.
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        try:
            return read_json(data.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            pass  # YAML may begin with a bracket as well
    return read_yaml(data)


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
            raise BadCassette("The file is no VCR cassette: it has no list of interactions.")


def _exchanges(rows: list[Any], remarks: Remarks) -> Iterator[ForeignExchange]:
    for number, row in enumerate(rows, 1):
        match row:
            case {"request": dict(asked), "response": dict(answered), **more}:
                try:
                    yield _exchange(asked, answered, more, remarks)
                except UnusableAddress as problem:
                    remarks.add(f"an interaction was left out: {problem}")
                except _Unreadable as problem:
                    raise BadCassette(f"Interaction {number} of the cassette: {problem}.") from problem
            case _:
                raise BadCassette(f"Interaction {number} of the cassette has no request or no response.")


class _Unreadable(ValueError):
    """A value that is not what its place asks for; the message says which."""


def _exchange(
    asked: dict[Any, Any], answered: dict[Any, Any], more: dict[Any, Any], remarks: Remarks
) -> ForeignExchange:
    head = request_head(
        str(asked.get("method") or "GET").upper(), _uri(asked), _headers(asked.get("headers"), remarks)
    )
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
        request=fitted_request(request, remarks),
        response=fitted_response(head.method, response, remarks),
        started=_moment(more.get("recorded_at") or answered.get("recorded_at")),
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
            raise _Unreadable("the request has no URI")


def _status(answered: dict[Any, Any]) -> tuple[int, str]:
    match answered:
        case {"status": {"code": int(code), **more}}:
            reason = more.get("message")
        case {"status_code": int(code)} | {"code": int(code)}:
            reason = None
        case {"status": int(code)}:
            reason = None
        case _:
            raise _Unreadable("the response has no status")
    if not 100 <= code <= 999:
        raise _Unreadable(f"{code} is no status")
    return code, _reason(reason)


def _reason(given: Any) -> str:
    text = given if isinstance(given, str) else ""
    return text if text.isascii() and text.isprintable() else ""


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
            raise _Unreadable("its headers are neither a table nor a list")
    return sound_headers(pairs, remarks)


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
            try:
                return from_base64(text)
            except ValueError as error:
                raise _Unreadable("a body is no base64") from error
        case dict() if body.keys() <= {"string", "encoding"}:
            return _bytes(body.get("string"))
        case dict():
            return _given(body, half, remarks)
        case list() if not all(isinstance(one, str | bytes) for one in body):
            return _given(body, half, remarks)
        case list():
            return b"".join(_bytes(one) for one in body)  # it was sent in pieces
        case _:
            return _bytes(body)


def _given(value: dict[Any, Any] | list[Any], half: dict[Any, Any], remarks: Remarks) -> bytes:
    """Of aiohttp, vcrpy keeps what the program gave as ``json=`` or ``data=``, and not what was sent."""
    remarks.add("the body was kept as the values it was made of: it was written anew, with the same meaning")
    if "x-www-form-urlencoded" in (header(_headers(half.get("headers"), remarks), "content-type") or ""):
        try:
            return urlencode(value, doseq=True).encode()
        except (TypeError, ValueError) as error:
            raise _Unreadable("the fields of a form cannot be written") from error
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
            raise _Unreadable("a body is neither text nor bytes")


def _written(value: Any) -> bytes:
    """As pydantic-ai writes it again itself."""
    try:
        return json.dumps(value, default=_as_text).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise _Unreadable("a parsed body cannot be written as JSON") from error


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
