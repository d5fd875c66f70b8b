"""The one door between capture and store: what passes here holds no known secret.

Headers are kept by name, query parameters replaced by name; in all else, known values are replaced wherever and
however they are written. Unknown secrets are not guessed at: a wrong guess would change what a replay serves.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import unquote, unquote_plus

from rewind.model.http import Headers, RequestHead, ResponseHead, header
from rewind.redaction.arguments import scrub_arguments
from rewind.redaction.forms import placeholder
from rewind.redaction.names import (
    ACCOUNT_HEADERS,
    KEY_PARAMETERS,
    LOOSE_PARAMETERS,
    is_credential_header,
    is_kept_request_header,
    is_kept_response_header,
)
from rewind.redaction.secrets import Secrets
from rewind.redaction.stream_redactor import StreamRedactor, redacted_output, redacted_stream, replaced
from rewind.redaction.values import is_dummy, looks_random
from rewind.wire.encoding import UndecodableBody, decode, encode

_USERINFO = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/?#@]*@")
_PARAMETER = re.compile(r"([?&#])([^=&#?]+)=([^&#]+)")


class Redactor:
    """Takes secrets out of everything that will be written or shown.

    ``count`` says how many were removed: each replaced value, each dropped header that says who is asking, and each
    dropped cookie or account id. Other headers that are not kept are no secrets and are not counted.
    """

    def __init__(self, secrets: Secrets) -> None:
        self.secrets = secrets
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
        data = text.encode("utf-8", "surrogatepass")
        spans = self.secrets.scanner.find(data)
        if not spans:
            return text
        self._removed(len(spans))
        return replaced(data, spans).decode("utf-8", "surrogatepass")

    def argv(self, arguments: Sequence[str]) -> tuple[str, ...]:
        """A command line without known values, nor what stands where a secret is expected."""
        scrubbed, count = scrub_arguments([self.text(argument) for argument in arguments])
        self._removed(count)
        return tuple(scrubbed)

    def body(self, data: bytes, headers: Headers) -> bytes:
        """A whole body. A compressed one is only packed again when there was something to remove."""
        if not self.secrets.scanner:
            return data
        coding = header(headers, "content-encoding")
        try:
            plain = decode(data, coding)
            spans = self.secrets.scanner.find(plain)
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
        target, users = _USERINFO.subn(rf"\1{placeholder(0)}@", target)
        self._removed(users)
        return self.text(_PARAMETER.sub(self._parameter, target))

    def _parameter(self, found: re.Match[str]) -> str:
        name, value = unquote_plus(found[2]).lower(), unquote(found[3])
        if name not in KEY_PARAMETERS and not (
            name in LOOSE_PARAMETERS and (looks_random(value) or is_dummy(value))
        ):
            return found[0]
        self._removed(1)
        return f"{found[1]}{found[2]}={placeholder(len(found[3]))}"
