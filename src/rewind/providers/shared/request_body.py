"""The JSON that a request carries, taken out and put back in the way its author wrote it."""

import json
import re
from dataclasses import replace
from typing import Any

from rewind.dataclass import dataclass
from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest, RequestHead, without_headers
from rewind.wire.encoding import UndecodableBody, decode

_DIGESTS = ("content-md5", "digest", "content-digest", "repr-digest")
"""Of the old body; whoever gets the new one would find them wrong."""
_INDENT = re.compile(r"[{\[]\r?\n( +|\t+)")
_SPACED_START = re.compile(r'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s', re.DOTALL)
_COMPACT, _SPACED = (",", ":"), (", ", ": ")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonStyle:
    """How a JSON text was written."""

    separators: tuple[str, str] = _COMPACT
    ascii: bool = False
    indent: str | None = None

    def write(self, document: Any) -> bytes:
        """Raises CannotEdit for what nests too deep."""
        try:
            try:
                return self._text(document, ascii=self.ascii).encode()
            except UnicodeEncodeError:  # half a surrogate pair can only be written as an escape
                return self._text(document, ascii=True).encode()
        except RecursionError as problem:
            raise CannotEdit("The body of the request nests too deep to be written again.") from problem

    def _text(self, document: Any, *, ascii: bool) -> str:  # noqa: A002 - json's own word for it
        return json.dumps(document, ensure_ascii=ascii, separators=self.separators, indent=self.indent)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBody:
    """A request whose body is a JSON object."""

    request: HttpRequest
    document: dict[str, Any]
    style: JsonStyle

    def rewritten(self, document: dict[str, Any], head: RequestHead | None = None) -> HttpRequest:
        """The request with that body, and perhaps another head; the very same one where nothing differs."""
        head = head or self.request.head
        body = self.style.write(document)
        if body == self.style.write(self.document):
            return self.request if head == self.request.head else replace(self.request, head=head)
        return HttpRequest(head=_fitted(head, len(body)), body=body)


def body_of(request: HttpRequest) -> RequestBody:
    """The request, read. Raises CannotEdit where its body is no JSON object."""
    try:
        plain = decode(request.body, request.head.header("content-encoding"))
        text = plain.decode(json.detect_encoding(plain), "surrogatepass")
        document = json.loads(text)
    except UndecodableBody as problem:
        raise CannotEdit(f"The body of the request cannot be decoded: {problem}.") from problem
    except (ValueError, RecursionError) as problem:
        raise CannotEdit("The body of the request is not JSON.") from problem
    if not isinstance(document, dict):
        raise CannotEdit("The body of the request is not a JSON object.")
    return RequestBody(request=request, document=document, style=_style(text, document))


def _fitted(head: RequestHead, size: int) -> RequestHead:
    """The head of a body that is not compressed and has that size."""
    kept = without_headers(head.headers, ("content-encoding", *_DIGESTS))
    headers = tuple((name, str(size) if name.lower() == "content-length" else value) for name, value in kept)
    return replace(head, headers=headers)


def _style(text: str, document: Any) -> JsonStyle:
    """The one that gives back the very text; where none does, the one that looks like it."""
    begin = _INDENT.match(text.lstrip())
    if begin is not None:
        return JsonStyle(separators=(",", ": "), ascii=text.isascii(), indent=begin[1])
    # Python's own writer is spaced and escapes; those that write compactly seldom do.
    likely = (
        JsonStyle(separators=_COMPACT, ascii=False),
        JsonStyle(separators=_COMPACT, ascii=True),
        JsonStyle(separators=_SPACED, ascii=True),
        JsonStyle(separators=_SPACED, ascii=False),
    )
    try:
        return next(style for style in likely if style.write(document) == text.encode(errors="replace"))
    except (StopIteration, CannotEdit):
        spaced = _SPACED_START.match(text) is not None
        return JsonStyle(separators=_SPACED if spaced else _COMPACT, ascii=text.isascii() and "\\u" in text)
