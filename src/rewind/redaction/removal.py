"""Takes what a person's own patterns match out of a recording that is about to be given away.

Patterns are matched against what a reader reads (see ``body_texts``), and what they match is replaced as it is written,
byte for byte, so framing, offsets and pieces stay as they are. Every value that was matched is then known, and goes
through the :class:`Redactor` as well: in URLs, in base64, in JSON inside JSON.

What cannot be read cannot be looked through, so it is left out: the end of a body that is cut or damaged inside its
compression, and what is not a whole frame of a binary stream. ``unread`` says why.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from rewind.errors import UsageError
from rewind.model.http import Headers, RequestHead, ResponseHead, header
from rewind.redaction.aws_frames import inner_lines, other_texts, sealed, whole_frames, with_inner_lines
from rewind.redaction.body_texts import Bytes, texts_of
from rewind.redaction.redactor import Redactor
from rewind.redaction.scanner import united
from rewind.redaction.secrets import Secrets
from rewind.redaction.values import SHORTEST, placeholder
from rewind.wire.encoding import UndecodableBody, decode_as_far_as_possible, encode
from rewind.wire.eventstream import begins_with_a_frame

_MOST_VALUES = 2000
"""Matched values that are searched for in every other form, too."""


class PatternMatcher:
    """What these patterns match, removed; counts, and remembers the values it met."""

    def __init__(self, patterns: Sequence[re.Pattern[str]]) -> None:
        self._patterns = tuple(patterns)
        self.count = 0
        self.values: dict[str, None] = {}
        self.met: set[tuple[str, int]] = set()
        """The values of late, each with the length of its placeholder; whoever wants to know empties it first."""
        self.unread: dict[str, None] = {}
        """Why something of late was left out; emptied likewise."""
        self._useful: set[str] = set()

    @property
    def idle(self) -> tuple[str, ...]:
        """The patterns that have matched nothing."""
        return tuple(one.pattern for one in self._patterns if one.pattern not in self._useful)

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def text(self, text: str) -> str:
        """A text that stands for itself: a header, a URL, an argument."""
        spans = united(list(self._found(text)))
        for start, end in reversed(spans):
            size = len(text[start:end].encode("utf-8", "surrogatepass"))
            self.met.add((text[start:end], size))
            text = text[:start] + cover(size).decode() + text[end:]
        self.count += len(spans)
        return text

    def parts(self, parts: Sequence[str], between: str = "") -> list[str]:
        """Texts that are read as one: what is matched is taken out of each that it reaches into."""
        whole = between.join(parts)
        spans = united(list(self._found(whole)))
        self.count += len(spans)
        changed, begin = list(parts), 0
        for number, part in enumerate(parts):
            for start, end in reversed(spans):
                low, high = max(start - begin, 0), min(end - begin, len(part))
                if low < high:
                    size = len(part[low:high].encode("utf-8", "surrogatepass"))
                    changed[number] = changed[number][:low] + cover(size).decode() + changed[number][high:]
            begin += len(part) + len(between)
        for start, end in spans:
            self.met.add((whole[start:end], len(whole[start:end].encode("utf-8", "surrogatepass"))))
        return changed

    def host(self, host: str) -> str:
        """A host's name, which was written in lower case whatever it was: so is what stands in its place."""
        for pattern in self._patterns:
            for match in re.finditer(pattern.pattern, host, pattern.flags | re.IGNORECASE):
                covering = cover(len(match[0])).decode().lower()
                if match[0] not in ("", covering):
                    self._useful.add(pattern.pattern)
                    self.count += 1
                    self.met.add((match[0], len(match[0])))
                    host = host.replace(match[0], covering)
        return host

    def body(self, data: bytes, headers: Headers) -> bytes:
        """A body; a compressed one is only packed again when there was something to remove or to leave out."""
        if not (data and self._patterns):
            return data
        coding, media = header(headers, "content-encoding"), (header(headers, "content-type") or "").lower()
        plain, problem = decode_as_far_as_possible(data, coding)
        if problem is not None and not plain and _is_text(data):  # the coding is a wrong claim
            return self._plain(data, media)
        changed = self._plain(plain, media)
        if problem is None and changed == plain:
            return data
        if problem is not None:
            self.unread.setdefault(problem)
        try:
            return encode(changed, coding)
        except UndecodableBody:  # nobody here knows the coding, so nothing of it was read
            return b""

    def known(self) -> Redactor:
        """Removes every other form of the values that were met."""
        return Redactor(Secrets(islice(self.values, _MOST_VALUES)))

    def _plain(self, plain: bytes, media: str) -> bytes:
        if begins_with_a_frame(plain):
            return self._frames(plain)
        changed = bytearray(plain)
        done: set[Bytes] = set()
        for text in texts_of(plain, media):
            for start, end in self._found(text.text):
                spans = text.spans(start, end)
                if not spans or spans[0] in done:
                    continue
                done.add(spans[0])
                self.met.add((text.text[start:end], sum(high - low for low, high in spans)))
                if text.number:
                    low, high = text.offset, text.offset + len(text.text)
                    changed[low:high] = b"0".ljust(high - low)
                else:
                    cover_up(changed, spans)
        self.count += len(done)
        return bytes(changed)

    def _frames(self, plain: bytes) -> bytes:
        whole = whole_frames(plain)
        if whole != plain:
            self.unread.setdefault("frames that are cut or damaged")
        changed = bytearray(with_inner_lines(whole, self._plain(inner_lines(whole), "application/x-ndjson")))
        for low, high in other_texts(whole):
            changed[low:high] = self._plain(whole[low:high], "text/plain")
        return whole if changed == whole else sealed(changed)

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        for pattern in self._patterns:
            for match in pattern.finditer(text):
                if match[0] and not _is_cover(match[0]):
                    self.values.setdefault(match[0])
                    self._useful.add(pattern.pattern)
                    yield match.span()


def cover(size: int) -> bytes:
    """What stands in the place of so many bytes: the placeholder, or what is left of it where they are few."""
    return placeholder(size).encode() if size >= SHORTEST else b"x" * size


def cover_up(body: bytearray, spans: Sequence[Bytes]) -> None:
    """Slices of one placeholder in all these places."""
    covering = cover(sum(high - low for low, high in spans))
    for low, high in spans:
        body[low:high] = covering[: high - low]
        covering = covering[high - low :]


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_cover(text: str) -> bool:
    return text in (placeholder(len(text)), "x" * len(text))


# ── a whole recording ────────────────────────────────────────────────────────────────────────────────────────────

_HOST = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]{0,30}://)?(?:[^/?#@]{0,500}@)?([^/?#@:]{1,300})")


def compiled_patterns(patterns: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """The patterns as expressions. Raises UsageError."""
    found = []
    for pattern in patterns:
        try:
            expression = re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as problem:
            raise UsageError(
                f"{pattern!r} is not a valid regular expression: {problem}.",
                hint="to match a text literally, write a backslash before each of . ^ $ * + ? { } [ ] \\ | ( )",
            ) from problem
        if expression.fullmatch(""):
            raise UsageError(f"{pattern!r} matches the empty string, so it would be found everywhere.")
        found.append(expression)
    return tuple(found)


class Removal:
    """Both passes over one recording: first what the patterns match, then the same values in other forms."""

    def __init__(self, patterns: Sequence[re.Pattern[str]]) -> None:
        self._matcher = PatternMatcher(patterns)
        self._known: Redactor | None = None
        self._uncounted = 0

    def __bool__(self) -> bool:
        return bool(self._matcher)

    @property
    def count(self) -> int:
        return self._matcher.count + (self._known.count if self._known is not None else 0) - self._uncounted

    def met(self) -> frozenset[tuple[str, int]]:
        """The values that were removed since the last time this was asked, with the lengths of their placeholders."""
        met = frozenset(self._matcher.met)
        self._matcher.met.clear()
        return met

    def unread(self) -> tuple[str, ...]:
        """Why something was left out since the last time this was asked."""
        unread = tuple(self._matcher.unread)
        self._matcher.unread.clear()
        return unread

    @property
    def idle(self) -> tuple[str, ...]:
        """The patterns that have matched nothing."""
        return self._matcher.idle

    def learn(self, text: str) -> None:
        """Read a text, so that what is in it is known before anything is written."""
        self._matcher.text(text)

    def learn_body(self, data: bytes, headers: Headers) -> None:
        self._matcher.body(data, headers)

    def learned(self) -> None:
        """Everything has been read; from now on texts are changed, and counted."""
        self._matcher.count = 0
        self._matcher.met.clear()
        self._matcher.unread.clear()
        self._known = self._matcher.known()

    def text(self, text: str) -> str:
        return self._redactor.text(self._matcher.text(text))

    def repeated_text(self, text: str) -> str:
        """A text that only repeats what a body says, and so does not count."""
        before = self.count
        text = self.text(text)
        self._uncounted += self.count - before
        return text

    def body(self, data: bytes, headers: Headers) -> bytes:
        return self._redactor.body(self._matcher.body(data, headers), headers)

    def answer(self, data: bytes, head: ResponseHead) -> bytes:
        """The body of an answer, which may be a stream."""
        data = self._matcher.body(data, head.headers)
        stream = self._redactor.stream(head)
        given = stream.feed(data) + stream.finish()
        return given if stream.replacement is None else stream.replacement

    def arguments(self, arguments: Sequence[str]) -> tuple[str, ...]:
        """A command line, read as one text."""
        return tuple(map(self._redactor.text, self._matcher.parts(arguments, " ")))

    def address(self, head: RequestHead) -> RequestHead:
        """A request's head with nothing left in its URL; scheme and port are not texts."""
        head = _addressed(self._matcher, head)
        return replace(head, host=self._redactor.text(head.host).lower(), target=self._redactor.text(head.target))

    def location(self, text: str) -> str:
        """A URL, a host or a pattern of hosts, as somebody wrote it; the host is one whatever its case."""
        text = self.text(text)
        found = _HOST.match(text)
        return text[: found.start(1)] + self._matcher.host(found[1]) + text[found.end(1) :] if found else text

    @property
    def _redactor(self) -> Redactor:
        assert self._known is not None, "all is heard before anything is changed"
        return self._known


class PatternedRedactor(Redactor):
    """The usual redactor, and a person's own patterns after it: so an agent's requests match a recording that was
    exported with these patterns."""

    def __init__(self, secrets: Secrets, patterns: Sequence[re.Pattern[str]]) -> None:
        super().__init__(secrets)
        self._matcher = PatternMatcher(patterns)

    def text(self, text: str) -> str:
        return self._matcher.text(super().text(text))

    def request_head(self, head: RequestHead) -> RequestHead:
        return _addressed(self._matcher, super().request_head(head))

    def body(self, data: bytes, headers: Headers) -> bytes:
        return self._matcher.body(super().body(data, headers), headers)


def _addressed(matcher: PatternMatcher, head: RequestHead) -> RequestHead:
    """The URL is matched as a whole, and its host once more for itself."""
    if not head.host:
        return replace(head, target=matcher.text(head.target))
    begin = head.origin.index(head.host, len(head.scheme))
    before, after = head.origin[:begin], head.origin[begin + len(head.host) :]
    _, host, _, target = matcher.parts((before, head.host, after, matcher.text(head.target)))
    return replace(head, host=matcher.host(host.lower()), target=target)
