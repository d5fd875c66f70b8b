"""HAR, the archive that browsers, mitmproxy, HTTP Toolkit and Polly.js write: read here, written next door.

The format keeps what a page saw: bodies without their content coding, text without its charset. Bodies are optional,
and several tools leave large or streamed ones out; such an answer is not taken for an empty one.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from rewind.errors import BadCassette
from rewind.formats.body_fit import fitted_request, fitted_response
from rewind.formats.exchanges import Foreign, ForeignExchange, in_order, sound_moment
from rewind.formats.har_write import CREATOR, write_har
from rewind.formats.heads import UnusableAddress, request_head, sound_headers
from rewind.formats.remarks import Remarks
from rewind.formats.texts import charset_of, from_base64, in_charset, read_json
from rewind.formats.websocket_messages import OPS, Message, frame_log
from rewind.model.http import Headers, HttpRequest, HttpResponse, ResponseHead, header
from rewind.model.step import Ending

__all__ = ["read_har", "write_har"]

_NOT_HELD = "the file does not hold the answer's body"
_Fields = dict[str, Any]


def read_har(data: bytes) -> Foreign:
    """Raises BadCassette."""
    try:
        document = read_json(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise BadCassette("The file is no HAR: it cannot be read as JSON.") from error
    match document:
        case {"log": {"entries": list(entries)} as log}:
            creator = _creator(log)
        case _:
            raise BadCassette("The file is no HAR: it has no log with entries.")
    remarks = Remarks()
    exchanges = tuple(_exchanges(entries, creator, remarks))
    if creator != CREATOR:  # our own are in order, also where several were asked at one moment
        exchanges = in_order(exchanges)
    return Foreign(
        exchanges=exchanges, tool=f"HAR ({creator})" if creator else "HAR", remarks=remarks.texts()
    )


def _creator(log: Any) -> str:
    match log:
        case {"creator": {"name": str(name)}}:
            return name[:60].strip()
        case _:
            return ""


def _exchanges(entries: list[Any], creator: str, remarks: Remarks) -> Iterator[ForeignExchange]:
    for number, entry in enumerate(entries, 1):
        match entry:
            case {"request": dict(asked), "response": dict(answered)}:
                try:
                    yield _Entry(entry, asked, answered, creator, remarks).exchange()
                except UnusableAddress as problem:
                    remarks.add(f"an entry was left out: {problem}")
                except _Unreadable as problem:
                    raise BadCassette(f"Entry {number} of the HAR: {problem}.") from problem
            case _:
                raise BadCassette(f"Entry {number} of the HAR has no request or no response.")


class _Unreadable(ValueError):
    """A value that is not what its place asks for; the message says which."""


class _Entry:
    """One entry, taken apart."""

    def __init__(
        self, entry: _Fields, asked: _Fields, answered: _Fields, creator: str, remarks: Remarks
    ) -> None:
        self._entry = entry
        self._asked = asked
        self._answered = answered
        self._creator = creator
        self._remarks = remarks

    def exchange(self) -> ForeignExchange:
        asked = self._asked
        head = request_head(
            str(asked.get("method") or "GET"), str(asked.get("url") or ""), self._headers(asked)
        )
        body, note = self._asked_body(head.headers)
        request = fitted_request(HttpRequest(head=head, body=body), self._remarks)
        response, ending, reason = self._answer(head.method)
        if ending is None:
            self._remarks.add(f"an answer cannot be played: {reason}")
            note = "; ".join(filter(None, (note, reason)))
            reason = None
        return ForeignExchange(
            request=request,
            response=response,
            started=self._started,
            ms=_positive(self._entry.get("time")),
            ending=ending,
            reason=reason,
            note=note,
        )

    @property
    def _started(self) -> float | None:
        given = self._entry.get("startedDateTime")
        try:
            moment = datetime.fromisoformat(given)  # type: ignore[arg-type]  # whatever it is
            return sound_moment((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
        except (TypeError, ValueError, OverflowError):
            return None

    def _headers(self, half: _Fields) -> Headers:
        given = half.get("headers")
        pairs = [
            (one.get("name"), one.get("value"))
            for one in (given if isinstance(given, list) else [])
            if isinstance(one, dict)
        ]
        return sound_headers(pairs, self._remarks)

    # ── what was asked ───────────────────────────────────────────────────────────────────────────────────

    def _asked_body(self, headers: Headers) -> tuple[bytes, str | None]:
        """The body, and what is to be known of it."""
        posted = self._asked.get("postData") or self._asked.get("_content")
        match posted:
            case {"encoding": "base64", "text": str(text)}:
                return _unpacked(text), None
            case {"text": str(text)} if text:
                return in_charset(text, self._charset(posted, headers)), None
            case {"params": [_, *_] as params}:
                self._remarks.add("the fields of a form were kept, not its text: it was written anew")
                return _form(params), None
        if (size := _positive(self._asked.get("bodySize"))) is not None:
            self._remarks.add("the body of a request is not in the file: a replay will not recognise it")
            return b"", f"the request had a body of {size:.0f} bytes that the file does not hold"
        return b"", None

    # ── what was answered ────────────────────────────────────────────────────────────────────────────────

    def _answer(self, method: str) -> tuple[HttpResponse | None, Ending | None, str | None]:
        """The answer, how it ended, and why; without an ending, why it cannot be played."""
        status = self._answered.get("status")
        error = self._answered.get("_error") or self._entry.get("_error")
        reason = error[:300] if isinstance(error, str) and error else None
        match self._entry.get("_rewind"):
            case {"ending": None}:
                return None, None, "it was not recorded"
        if status in (0, None):
            return None, Ending.NO_ANSWER, reason or "the request was blocked or given up"
        if not isinstance(status, int) or isinstance(status, bool) or not 100 <= status <= 999:
            raise _Unreadable(f"{str(status)[:40]!r} is no status")
        headers = self._headers(self._answered)
        text = self._answered.get("statusText")
        phrase = text if isinstance(text, str) and text.isascii() and text.isprintable() else ""
        head = ResponseHead(status=status, reason=phrase, headers=headers)
        if status == 101:
            return self._conversation(head, reason)
        if status < 200:
            return None, None, f"status {status} is only the beginning of an answer"
        body = self._answered_body(method, head, cut=reason is not None)
        if body is None:
            return None, None, _NOT_HELD
        whole = HttpResponse(head=head, body=body, chunks=())
        fitting = fitted_response(method, whole, self._remarks, cut=reason is not None)
        return fitting, Ending.COMPLETE if reason is None else self._cut_ending, reason

    @property
    def _cut_ending(self) -> Ending:
        match self._entry.get("_rewind"):
            case {"ending": Ending.CLIENT_CLOSED | Ending.INTERRUPTED as name}:
                return Ending(name)
            case _:
                return Ending.UPSTREAM_CUT

    def _answered_body(self, method: str, head: ResponseHead, *, cut: bool) -> bytes | None:
        """``None``: there was one, and the file does not hold it."""
        content = self._answered.get("content")
        content = content if isinstance(content, dict) else {}
        text = content.get("text")
        if isinstance(text, str):
            body = (
                _unpacked(text)
                if content.get("encoding") == "base64"
                else in_charset(text, self._charset(content, head.headers))
            )
            if body:
                return None if not cut and self._is_a_beginning(head, body) else body
        nothing = method == "HEAD" or head.status in (204, 304)
        return b"" if nothing or self._is_empty(content, head) else None

    def _is_empty(self, content: _Fields, head: ResponseHead) -> bool:
        """Whether an answer without a text had none: sizes, headers and the media type agree with that."""
        sizes = (content.get("size"), self._answered.get("bodySize"), _number(head.header("content-length")))
        media = (head.header("content-type") or "").lower()
        return all(_positive(size) is None for size in sizes) and "event-stream" not in media

    def _is_a_beginning(self, head: ResponseHead, body: bytes) -> bool:
        """Whether a tool kept only so much of a long answer."""
        length = _number(head.header("content-length"))
        return length is not None and not head.header("content-encoding") and len(body) < length

    def _conversation(
        self, head: ResponseHead, reason: str | None
    ) -> tuple[HttpResponse | None, Ending | None, str | None]:
        """A WebSocket, of which Chrome and mitmproxy keep the messages."""
        messages = self._entry.get("_webSocketMessages")
        if not isinstance(messages, list):
            return None, None, "the messages of the WebSocket are not in the file"
        body = frame_log(self._message(one) for one in messages if isinstance(one, dict))
        ending = Ending.COMPLETE if reason is None else self._cut_ending
        return HttpResponse(head=head, body=body, chunks=()), ending, reason

    def _message(self, one: _Fields) -> Message:
        op = OPS.get(one.get("opcode", 1), "binary") if isinstance(one.get("opcode", 1), int) else "text"
        data = one.get("data")
        text = data if isinstance(data, str) else ""
        moment, began = _positive(one.get("time")), self._started
        at = 0 if moment is None or began is None else round((moment - began) * 1_000_000)
        payload = text.encode("utf-8", "surrogatepass") if op == "text" else _unpacked(text)
        return Message(one.get("type") == "send", min(at, 10**15), op, payload)

    def _charset(self, held: Any, headers: Headers) -> str:
        media = held.get("mimeType")
        given = header(headers, "content-type") or (media if isinstance(media, str) else "")
        return charset_of(given, latin_by_default=self._creator == "mitmproxy")


def _form(params: list[Any]) -> bytes:
    pairs = [
        (str(one.get("name", "")), str(one.get("value") or "")) for one in params if isinstance(one, dict)
    ]
    return urlencode(pairs).encode()


def _unpacked(text: str) -> bytes:
    """base64; or, as Polly.js writes a body that came in pieces, a JSON list of such texts."""
    try:
        if text.startswith("["):
            return b"".join(from_base64(str(piece)) for piece in read_json(text))
        return from_base64(text)
    except (ValueError, RecursionError, TypeError) as error:
        raise _Unreadable("a body is no base64") from error


def _positive(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15:
        return float(value)
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else None
