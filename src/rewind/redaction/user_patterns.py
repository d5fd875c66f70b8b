"""What a person's patterns match in every form of text and body, replaced as it is written, byte for byte."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from rewind.model.http import Headers, header
from rewind.redaction.aws_frames import inner_lines, other_texts, sealed, whole_frames, with_inner_lines
from rewind.redaction.body_texts import Bytes, writings
from rewind.redaction.forms import SHORTEST, placeholder
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets
from rewind.wire.encoding import UndecodableBody, decode_as_far_as_possible, encode
from rewind.wire.eventstream import begins_with_a_frame

_MOST_VALUES = 2000
"""Matched values that are searched for in every other form, too."""


class Matching:
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
        spans = _united(list(self._found(text)))
        for start, end in reversed(spans):
            size = len(text[start:end].encode("utf-8", "surrogatepass"))
            self.met.add((text[start:end], size))
            text = text[:start] + cover(size).decode() + text[end:]
        self.count += len(spans)
        return text

    def parts(self, parts: Sequence[str], between: str = "") -> list[str]:
        """Texts that are read as one: what is matched is taken out of each that it reaches into."""
        whole = between.join(parts)
        spans = _united(list(self._found(whole)))
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
        """The door for every other form of the values that were met."""
        return Redactor(Secrets(islice(self.values, _MOST_VALUES)))

    def _plain(self, plain: bytes, media: str) -> bytes:
        if begins_with_a_frame(plain):
            return self._frames(plain)
        changed = bytearray(plain)
        done: set[Bytes] = set()
        for written in writings(plain, media):
            for start, end in self._found(written.text):
                spans = written.spans(start, end)
                if not spans or spans[0] in done:
                    continue
                done.add(spans[0])
                self.met.add((written.text[start:end], sum(high - low for low, high in spans)))
                if written.number:
                    low, high = written.offset, written.offset + len(written.text)
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


def _united(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    united: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if united and start < united[-1][1]:
            united[-1] = (united[-1][0], max(end, united[-1][1]))
        else:
            united.append((start, end))
    return united
