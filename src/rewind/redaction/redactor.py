"""Everything that is stored passes here, and leaves without known secrets.

Headers are kept by name, query parameters replaced by name; in all else, known values are replaced wherever and
however they are written. Unknown secrets are not guessed at: a wrong guess would change what a replay serves.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import unquote, unquote_plus

from rewind.credentials import is_dummy
from rewind.model.http import Headers, RequestHead, ResponseHead, header
from rewind.model.session import SessionStart
from rewind.redaction.names import (
    ACCOUNT_HEADERS,
    KEY_PARAMETERS,
    LOOSE_PARAMETERS,
    is_credential_header,
    is_kept_request_header,
    is_kept_response_header,
    option_kind,
)
from rewind.redaction.recording_texts import TextPlace, with_texts_changed
from rewind.redaction.scanner import Scanner, Span, united
from rewind.redaction.secrets import Secrets
from rewind.redaction.stream_redactor import StreamRedactor, redacted_output, redacted_stream, replaced
from rewind.redaction.values import is_location, looks_random, placeholder
from rewind.wire.chunks import common_run
from rewind.wire.encoding import UndecodableBody, decode, encode

_URL_USERINFO = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/?#@]*@")
_PARAMETER = re.compile(r"([?&#])([^=&#?]+)=([^&#]+)")


_SHORT = 16 * 1024
"""Bytes of a body that is searched again in less time than it takes to look it up."""
_SHORT_TEXT = 256
_CLEAN_TEXTS = 512
_ALIKE = 0.9
"""The share of a body that a later one repeats from which on it is the same conversation."""
_KEPT = 8
_KEPT_BYTES = 8 * 1024 * 1024


class CleanBeginnings:
    """The last bodies in which nothing was found: a conversation that grows is searched where it is new."""

    def __init__(self) -> None:
        # Replaced as a whole and never changed, since two threads may search at once.
        self._known: tuple[Scanner | None, tuple[bytes, ...]] = None, ()

    def find(self, scanner: Scanner, data: bytes) -> list[Span]:
        """As ``scanner.find``."""
        if len(data) < _SHORT:
            return scanner.find(data)
        searched_by, known = self._known
        if searched_by is not scanner:
            known = ()  # what was clean may hold a value that was learned since
        clean, best = max(((common_run(body, 0, data, 0), body) for body in known), default=(0, b""))
        spans, is_clean = scanner.search(data, clean)
        if is_clean:
            # What it goes on from is no longer needed; another conversation may begin with the same words.
            others = [body for body in known if body is not best or clean <= _ALIKE * len(body)]
            kept, size = [data], len(data)
            for body in others[: _KEPT - 1]:
                size += len(body)
                if size <= _KEPT_BYTES:
                    kept.append(body)
            self._known = scanner, tuple(kept)
        return spans


def _to_escape_end(data: bytes, start: int, end: int) -> Span:
    """A value that ends with a backslash stands with two of them in JSON; half an escape would swallow what follows."""
    backslashes = len(data[start:end]) - len(data[start:end].rstrip(b"\\"))
    return start, end + (backslashes % 2 == 1 and data[end : end + 1] == b"\\")


class Redactor:
    """Takes secrets out of everything that will be written or shown.

    ``count`` says how many were removed: each replaced value, each dropped header that says who is asking, and each
    dropped cookie or account id. Other headers that are not kept are not secrets and are not counted.
    """

    def __init__(self, secrets: Secrets) -> None:
        self.secrets = secrets
        self._clean = CleanBeginnings()
        self._clean_texts: tuple[Scanner | None, set[str]] = None, set()
        """Short texts in which nothing was found; the same headers come with every request."""
        self._removals: list[int] = []  # appended to, because two threads may remove something at once

    def request_head(self, head: RequestHead) -> RequestHead:
        """The head with the headers that may be kept, and no credentials in its target."""
        kept: list[tuple[str, str]] = []
        for name, value in head.headers:
            lowered = name.lower()
            if is_kept_request_header(lowered):
                kept.append((name, self.text(value)))
            elif is_credential_header(lowered) or lowered in ACCOUNT_HEADERS:
                self._removed(1)
        return replace(head, target=self._target(head.target), headers=tuple(kept))

    def response_head(self, head: ResponseHead) -> ResponseHead:
        """The head without cookies, keys and account ids."""
        return replace(head, reason=self.text(head.reason), headers=self.response_headers(head.headers))

    def response_headers(self, headers: Headers) -> Headers:
        """Response headers, or trailers, that may be kept."""
        kept: list[tuple[str, str]] = []
        for name, value in headers:
            lowered = name.lower()
            if not is_kept_response_header(lowered):
                self._removed(1)
            elif lowered in ("location", "content-location"):
                kept.append((name, self._target(value)))
            else:
                kept.append((name, self.text(value)))
        return tuple(kept)

    def text(self, text: str) -> str:
        """The text without known values."""
        scanner = self.secrets.scanner
        searched_by, clean = self._clean_texts
        if searched_by is not scanner or len(clean) > _CLEAN_TEXTS:
            clean = set()  # what was clean may hold a value that was learned since
            self._clean_texts = scanner, clean
        if text in clean:
            return text
        data = text.encode("utf-8", "surrogatepass")
        spans = scanner.find(data)
        if not spans:
            if len(text) < _SHORT_TEXT:
                clean.add(text)
            return text
        self._removed(len(spans))
        return replaced(data, spans).decode("utf-8", "surrogatepass")

    def argv(self, arguments: Sequence[str]) -> tuple[str, ...]:
        """A command line without known values, nor what stands where a secret is expected."""
        scrubbed, count = scrub_arguments([self.text(argument) for argument in arguments])
        self._removed(count)
        return tuple(scrubbed)

    def session_start(self, start: SessionStart) -> SessionStart:
        """The first line of a session: all that people and their machines have named, the folder and tags included."""
        return replace(with_texts_changed(start, self._named), command=self.argv(start.command))

    def _named(self, text: str, _place: TextPlace) -> str:
        text, passwords = _without_passwords(text)
        self._removed(passwords)
        return self.text(text)

    def body(self, data: bytes, headers: Headers) -> bytes:
        """A whole body. A compressed one is only packed again when there was something to remove."""
        if not self.secrets.scanner:
            return data
        coding = header(headers, "content-encoding")
        try:
            plain = decode(data, coding)
            spans = united([_to_escape_end(plain, *span) for span in self._clean.find(self.secrets.scanner, plain)])
            if not spans:
                return data
            packed = encode(replaced(plain, spans), coding)
        except UndecodableBody:
            # Nobody can read it, so nobody can find a secret in it, unless the coding is a wrong claim.
            spans = self.secrets.scanner.find(data)
            packed = replaced(data, spans)
        self._removed(len(spans))
        return packed

    def stream(self, head: ResponseHead) -> StreamRedactor:
        """For an answer as it arrives; ``head`` as the provider sent it."""
        return redacted_stream(self.secrets.scanner, head, self._removed)

    def output(self) -> StreamRedactor:
        """For what a process prints, as it is printed."""
        return redacted_output(lambda: self.secrets.scanner, self._removed)

    @property
    def count(self) -> int:
        return sum(self._removals)

    def _removed(self, count: int) -> None:
        if count:
            self._removals.append(count)

    def _target(self, target: str) -> str:
        target, users = _URL_USERINFO.subn(rf"\1{placeholder(0)}@", target)
        self._removed(users)
        return self.text(_PARAMETER.sub(self._parameter, target))

    def _parameter(self, found: re.Match[str]) -> str:
        name, value = unquote_plus(found[2]).lower(), unquote(found[3])
        if name not in KEY_PARAMETERS and not (name in LOOSE_PARAMETERS and (looks_random(value) or is_dummy(value))):
            return found[0]
        self._removed(1)
        return f"{found[1]}{found[2]}={placeholder(len(found[3]))}"


# ── command lines ────────────────────────────────────────────────────────────────────────────────────────────────


_PLAIN = re.compile(r"[-+0-9.,]+|true|false|yes|no|none|null|on|off|auto", re.IGNORECASE)
_ASSIGNED = re.compile(r"(-{0,2}[A-Za-z_][A-Za-z0-9_.-]*)=(.+)", re.DOTALL)
_OPTION = re.compile(r"-{1,2}[A-Za-z][A-Za-z0-9_.-]*")
_HEADER = re.compile(
    r"((?:-H|--[a-z-]+=)?([a-z][a-z0-9_-]*):\s*(?:(?:bearer|basic|token)\s+)?)(\S.*)", re.DOTALL | re.IGNORECASE
)
_BEARER = re.compile(r"(\b(?:bearer|basic)\s+)([A-Za-z0-9._~+/=-]+)", re.IGNORECASE)
_INNER = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)=(?:'([^']+)'|\"([^\"]+)\"|([^\s'\";&|()]+))")
_USERINFO = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/?#\s:@]*:)(?!REDACTED)([^/?#\s]+)(?=@)")


def scrub_arguments(arguments: Sequence[str]) -> tuple[list[str], int]:
    """The arguments without what stands where a secret is expected, and how many were replaced."""
    kept: list[str] = []
    count = 0
    expected: str | None = None
    for argument in arguments:
        if expected is not None and not argument.startswith("-") and _is_secret(argument, expected):
            kept.append(_hidden(argument))
            count += 1
            expected = None
            continue
        expected = option_kind(argument) if _OPTION.fullmatch(argument) else None
        scrubbed, found = _scrub(argument)
        kept.append(scrubbed)
        count += found
    return kept, count


def _scrub(argument: str) -> tuple[str, int]:
    if whole := _ASSIGNED.fullmatch(argument):
        kind = option_kind(whole[1])
        # A shell's script may well begin with an assignment; only an option's value has spaces in it.
        one_value = whole[1].startswith("-") or not any(map(str.isspace, whole[2]))
        if kind and one_value and _is_secret(whole[2], kind):
            return f"{whole[1]}={_hidden(whole[2])}", 1
    header = _HEADER.fullmatch(argument)
    if header and is_credential_header(header[2].lower()) and _is_secret(header[3], "plain"):
        return header[1] + _hidden(header[3]), 1
    argument, count = _without_passwords(argument)

    def inside(found: re.Match[str]) -> str:
        # Anywhere in a script, "name=value" is more often code than a key.
        nonlocal count
        value = found[2] or found[3] or found[4]
        if option_kind(found[1]) is None or not looks_random(value):
            return found[0]
        count += 1
        return found[0].replace(value, _hidden(value))

    def bearer(found: re.Match[str]) -> str:
        nonlocal count
        if not looks_random(found[2]):
            return found[0]
        count += 1
        return found[1] + _hidden(found[2])

    return _BEARER.sub(bearer, _INNER.sub(inside, argument)), count


def _without_passwords(text: str) -> tuple[str, int]:
    """The text with the passwords in its URLs replaced, and how many there were."""
    return _USERINFO.subn(lambda found: found[1] + _hidden(found[2]), text)


def _is_secret(value: str, kind: str) -> bool:
    if value.startswith("$") or _PLAIN.fullmatch(value) or is_location(value) or is_dummy(value):
        return False
    return kind == "plain" or looks_random(value)


def _hidden(value: str) -> str:
    return placeholder(len(value))
