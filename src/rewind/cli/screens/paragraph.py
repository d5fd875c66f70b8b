"""Text that runs over several lines: broken between words, and hanging from a label."""

import re
from collections.abc import Iterable, Iterator, Sequence

from rewind.cli.screens.table import display_width
from rewind.cli.screens.terminal import Span, Terminal
from rewind.safe import safe

WIDEST = 120
"""Columns beyond which a line of text is hard to read, however wide the screen is."""
LEAST = 20
_WORD = re.compile(r"\s+|\S+")

Line = tuple[Span, ...]


def room(terminal: Terminal, indent: int = 0) -> int:
    """Columns for a line of text that begins there."""
    return max(LEAST, min(terminal.width, WIDEST) - indent)


def print_hanging(
    terminal: Terminal, lines: Iterable[Line], *, indent: int, label: str = "", style: str = "dim"
) -> None:
    """Every line broken to fit; the first stands behind the label, the others below it."""
    head = Span(label.ljust(indent), style)
    for line in lines:
        for part in wrapped(line, room(terminal, indent)):
            terminal.line(head, *part)
            head = Span(" " * indent)


def wrapped(line: Sequence[Span], width: int) -> Iterator[Line]:
    """The line in as many as it takes, all indented as it is; a word that is wider than a line is cut."""
    words = list(_words(line))
    lead = words.pop(0) if words and words[0][0].text.isspace() else ()
    width = max(LEAST // 2, width - _width(lead))
    shown: list[Span] = []
    taken = 0
    for piece in (piece for word in words for piece in _cut(word, width)):
        size = _width(piece)
        if shown and taken + size > width:
            yield (*lead, *_ended(shown))
            shown, taken = [], 0
        if shown or not piece[0].text.isspace():
            shown += piece
            taken += size
    yield (*lead, *_ended(shown)) if shown else ()


def _cut(word: Line, width: int) -> Iterator[Line]:
    """The word itself where it fits."""
    if _width(word) <= width:
        yield word
        return
    piece: list[Span] = []
    taken = 0
    for span in word:
        for character in span.text:
            size = display_width(character)
            if taken + size > width:
                yield tuple(piece)
                piece, taken = [], 0
            piece.append(Span(character, span.style))
            taken += size
    yield tuple(piece)


def _width(spans: Iterable[Span]) -> int:
    return sum(display_width(span.text) for span in spans)


def _words(line: Sequence[Span]) -> Iterator[Line]:
    """White space, and what stands between it, in whatever styles."""
    word: list[Span] = []
    for span in line:
        # What a control character takes on the screen is known once it is made visible.
        text = safe(span.text.replace("\n", "⏎").replace("\t", " "))
        for piece in _WORD.findall(text):
            if piece.isspace():
                if word:
                    yield tuple(word)
                yield (Span(piece, span.style),)
                word = []
            else:
                word.append(Span(piece, span.style))
    if word:
        yield tuple(word)


def _ended(shown: list[Span]) -> Line:
    """Neighbours of one style in one; no white space at the end."""
    joined: list[Span] = []
    for span in shown:
        if joined and joined[-1].style == span.style:
            joined[-1] = Span(joined[-1].text + span.text, span.style)
        else:
            joined.append(span)
    while joined and not joined[-1].text.strip():
        joined.pop()
    if joined:
        joined[-1] = Span(joined[-1].text.rstrip(), joined[-1].style)
    return tuple(joined)
