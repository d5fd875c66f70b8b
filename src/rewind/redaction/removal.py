"""Takes what a person's own patterns match out of a recording that is about to be given away.

Patterns are matched against what a reader reads (see ``writings``), and what they match is replaced as it is written,
byte for byte, so framing, offsets and pieces stay as they are. Every value that was matched is then known, and goes
through the door of ``redact`` as well: in URLs, in base64, in JSON inside JSON.

What cannot be read cannot be looked through, so it is left out: the end of a body that is cut or damaged inside its
compression, and what is no whole frame of a binary stream. ``unread`` says why.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from rewind.errors import UsageError
from rewind.model.http import Headers, RequestHead, ResponseHead
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets
from rewind.redaction.user_patterns import Matching

_HOST = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]{0,30}://)?(?:[^/?#@]{0,500}@)?([^/?#@:]{1,300})")


def compiled(patterns: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """The patterns as expressions. Raises UsageError."""
    found = []
    for pattern in patterns:
        try:
            expression = re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as problem:
            raise UsageError(
                f"{pattern!r} is no regular expression: {problem}.",
                hint="a text to be taken as it stands needs a backslash before each of . ^ $ * + ? { } [ ] \\ | ( )",
            ) from problem
        if expression.fullmatch(""):
            raise UsageError(f"{pattern!r} matches nothing at all, and so would be found everywhere.")
        found.append(expression)
    return tuple(found)


class Removal:
    """Both passes over one recording: first what the patterns match, then the same values in other forms."""

    def __init__(self, patterns: Sequence[re.Pattern[str]]) -> None:
        self._matching = Matching(patterns)
        self._known: Redactor | None = None
        self._uncounted = 0

    def __bool__(self) -> bool:
        return bool(self._matching)

    @property
    def count(self) -> int:
        return self._matching.count + (self._known.count if self._known is not None else 0) - self._uncounted

    def met(self) -> frozenset[tuple[str, int]]:
        """The values that were removed since the last time this was asked, with the lengths of their placeholders."""
        met = frozenset(self._matching.met)
        self._matching.met.clear()
        return met

    def unread(self) -> tuple[str, ...]:
        """Why something was left out since the last time this was asked."""
        unread = tuple(self._matching.unread)
        self._matching.unread.clear()
        return unread

    @property
    def idle(self) -> tuple[str, ...]:
        """The patterns that have matched nothing."""
        return self._matching.idle

    def learn(self, text: str) -> None:
        """Hear of a text, so that what is in it is known before anything is written."""
        self._matching.text(text)

    def learn_body(self, data: bytes, headers: Headers) -> None:
        self._matching.body(data, headers)

    def learned(self) -> None:
        """All has been heard; from now on texts are changed, and counted."""
        self._matching.count = 0
        self._matching.met.clear()
        self._matching.unread.clear()
        self._known = self._matching.known()

    def text(self, text: str) -> str:
        return self._door.text(self._matching.text(text))

    def told_again(self, text: str) -> str:
        """A text that only repeats what a body says, and so does not count."""
        before = self.count
        text = self.text(text)
        self._uncounted += self.count - before
        return text

    def body(self, data: bytes, headers: Headers) -> bytes:
        return self._door.body(self._matching.body(data, headers), headers)

    def answer(self, data: bytes, head: ResponseHead) -> bytes:
        """The body of an answer, which may be a stream."""
        data = self._matching.body(data, head.headers)
        stream = self._door.stream(head)
        given = stream.feed(data) + stream.finish()
        return given if stream.replacement is None else stream.replacement

    def arguments(self, arguments: Sequence[str]) -> tuple[str, ...]:
        """A command line, read as one text."""
        return tuple(map(self._door.text, self._matching.parts(arguments, " ")))

    def address(self, head: RequestHead) -> RequestHead:
        """A request's head with nothing left in its URL; scheme and port are no texts."""
        head = _addressed(self._matching, head)
        return replace(head, host=self._door.text(head.host).lower(), target=self._door.text(head.target))

    def location(self, text: str) -> str:
        """A URL, a host or a pattern of hosts, as somebody wrote it; the host is one whatever its case."""
        text = self.text(text)
        found = _HOST.match(text)
        return (
            text[: found.start(1)] + self._matching.host(found[1]) + text[found.end(1) :] if found else text
        )

    @property
    def _door(self) -> Redactor:
        assert self._known is not None, "all is heard before anything is changed"
        return self._known


class PatternedRedactor(Redactor):
    """The usual door, and a person's own patterns behind it: so an agent's requests match a recording that was exported
    with these patterns."""

    def __init__(self, secrets: Secrets, patterns: Sequence[re.Pattern[str]]) -> None:
        super().__init__(secrets)
        self._matching = Matching(patterns)

    def text(self, text: str) -> str:
        return self._matching.text(super().text(text))

    def request_head(self, head: RequestHead) -> RequestHead:
        return _addressed(self._matching, super().request_head(head))

    def body(self, data: bytes, headers: Headers) -> bytes:
        return self._matching.body(super().body(data, headers), headers)


def _addressed(matching: Matching, head: RequestHead) -> RequestHead:
    """The URL is matched as a whole, and its host once more for itself."""
    if not head.host:
        return replace(head, target=matching.text(head.target))
    begin = head.origin.index(head.host, len(head.scheme))
    before, after = head.origin[:begin], head.origin[begin + len(head.host) :]
    _, host, _, target = matching.parts((before, head.host, after, matching.text(head.target)))
    return replace(head, host=matching.host(host.lower()), target=target)
