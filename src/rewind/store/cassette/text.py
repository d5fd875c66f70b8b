"""Text as a cassette shows it: cut where a change stays on one line, and with nothing in it that hides."""

import re
from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

WIDTH = 110
"""What is not longer stays on one line."""
MOST_LINES = 2_000_000
"""Of a text whose lines others refer to."""
_LONG = 400
"""A stretch of text without any place to cut it is cut when it is longer than this."""
_SENTENCE = re.compile(r"[.!?] (?=\S)|[。！？]")
_MEMBER = re.compile(r'["}\]], ?(?=["{\[])')
_UNSEEN = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""Control characters that a terminal would obey, marks that turn text around, and halves of pairs: in strings only."""
_WORDS = {True: "true", False: "false", None: "null"}


def pieces_of(text: str) -> list[str]:
    """Lines; of long ones the sentences; of what is still long, pieces that fit."""
    pieces: list[str] = []
    for line in lines_of(text):
        if len(line) <= WIDTH:
            pieces.append(line)
            continue
        for sentence in _cut_after(_SENTENCE, line):
            for member in (sentence,) if len(sentence) <= _LONG else _cut_after(_MEMBER, sentence):
                if len(member) <= _LONG:
                    pieces.append(member)
                else:
                    pieces.extend(_wrapped(member))
    return pieces


def _cut_after(end: re.Pattern[str], text: str) -> Iterator[str]:
    start = 0
    for found in end.finditer(text):
        yield text[start : found.end()]
        start = found.end()
    if start < len(text):
        yield text[start:]


def _wrapped(text: str) -> Iterator[str]:
    """Cut after the last space that fits, or else where the line is full."""
    start = 0
    while len(text) - start > WIDTH:
        space = text.rfind(" ", start + WIDTH // 2, start + WIDTH)
        end = space + 1 if space >= 0 else start + WIDTH
        yield text[start:end]
        start = end
    yield text[start:]


def lines_of(text: str, end: str = "\n") -> list[str]:
    """Cut after each ``end``, and nowhere else."""
    lines = [line + end for line in text.split(end)]
    last = lines.pop()[: -len(end)]
    return [*lines, last] if last else lines


def line_begins(text: str) -> "array[int]":
    """Where its lines begin, and where the last one ends."""
    begins = array("I", (0,))
    begins.extend(accumulate(len(line) + 1 for line in text.split("\n")[:-1]))
    if begins[-1] < len(text):
        begins.append(len(text))
    return begins


def visible(text: str) -> str:
    """The text of JSON values, with nothing in it that shows itself otherwise than it is."""
    if text.isascii() and "\x7f" not in text:
        return text
    try:
        text.encode()
    except UnicodeEncodeError:  # two halves that stand together are one character, to every reader
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def literal(value: Any) -> str:
    """A number, true, false or null as JSON."""
    if value is True or value is False or value is None:
        return _WORDS[value]
    if type(value) is int or type(value) is float:
        return repr(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def filled(numbers: Iterable[str], inner: str) -> Iterator[str]:
    """As many on a line as fit."""
    line: list[str] = []
    size = 0
    for number in numbers:
        size += len(number) + 2
        if size > WIDTH and line:
            yield inner + ", ".join(line) + ","
            line, size = [], len(number) + 2
        line.append(number)
    yield inner + ", ".join(line)
