"""Characters written as escapes: every letter of a secret, or some of them, as ``\\u0073``, ``\\x73``, ``%73`` or
``&#115;``.

Writers of JSON, URLs and HTML may escape any character, so such spellings cannot be listed. A text that holds escapes
of characters that secrets have is searched once more with these unfolded. Such texts are rare: nobody needs to escape
a letter or a digit.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

_LONGEST_ESCAPE = 80
_BEGUN = re.compile(
    rb"(?:\\{1,64}(?:u[0-9a-fA-F]{0,3}|u\{[0-9a-fA-F]{0,6}|x[0-9a-fA-F]?)?|%[0-9a-fA-F]?|&(?:#[xX]?[0-9a-fA-F]{0,6})?)\Z"
)
"""An escape that is not complete, at the end of a text."""
_OFTEN_ESCAPED = "\"'<>&\\"
"""Characters that careful writers of JSON escape in any text; :func:`rewind.redaction.values.forms` has these."""
_HEX_LETTERS = {ord(letter): f"[{letter}{letter.upper()}]" for letter in "abcdef"}


class UnfoldedText(NamedTuple):
    """A text without those escapes, and how to find its places in what was written."""

    text: bytes
    starts: list[int]
    """Where pieces begin in ``text``: what stands between escapes, and each escape."""
    written: list[int]
    """Where they begin as they are written; and the end of all."""

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where these bytes of the text are written; a part of an escape is all of it."""
        return self._written_at(start), self._written_at(end - 1, after=True)

    def _written_at(self, at: int, *, after: bool = False) -> int:
        piece = bisect_right(self.starts, at) - 1
        first, last = self.written[piece], self.written[piece + 1]
        size = (self.starts[piece + 1] if piece + 1 < len(self.starts) else len(self.text)) - self.starts[piece]
        if last - first == size:  # as it is
            return first + at - self.starts[piece] + after
        return last if after else first


class Escapes:
    """The escapes of some characters. Never changes."""

    def __init__(self, letters: Iterable[str]) -> None:
        self._letters = {ord(letter): letter.encode() for letter in set(letters) if ord(letter) < 0xD800}
        unneeded = [code for code in self._letters if 0x20 <= code < 0x7F and chr(code) not in _OFTEN_ESCAPED]
        plain = [code for code in unneeded if chr(code).isalnum() or chr(code) in "-._~"]
        bare, decimal = _any_of("{:x}", plain), _any_of("{:d}", plain)
        telling = {
            b"\\": rf"\\(?:u00{_pairs(unneeded)}|u\{{0*{bare}\}}|x{_pairs(plain)})",
            b"%": f"%{_pairs(plain)}",
            b"&": f"&#(?:[xX]0*{bare}|0*{decimal});",
        }
        self._telling = tuple((sign, re.compile(text.encode())) for sign, text in telling.items()) if plain else ()
        """Escapes that nobody needs: where there is one of these, all are unfolded."""
        every = self._letters.keys()
        four, two = _any_of("{:04x}", every), _pairs([code for code in every if code < 0x80])
        bare, decimal = _any_of("{:x}", every), _any_of("{:d}", every)
        self._all = re.compile(
            # Inside JSON inside JSON the backslashes double; all of them belong to the escape.
            rf"\\{{1,64}}(?:u({four})|u\{{0*({bare})\}}|x({two}))|%({two})|&#(?:[xX]0*({bare})|0*({decimal}));".encode()
        )

    def unfolded(self, data: bytes) -> UnfoldedText | None:
        """The text with its escapes of these characters resolved; ``None`` where none stands there without need."""
        for sign, telling in self._telling:
            if sign in data and telling.search(data):
                return self._unfold(data)
        return None

    def may_be_in(self, data: bytes) -> bool:
        """A quick look: False where there is surely none, not even the beginning of one."""
        return bool(self._telling) and (b"\\" in data or b"%" in data or b"&" in data)

    def unfolded_end(self, data: bytes) -> UnfoldedText | None:
        """The end of a text that goes on, in which an escape without need may yet follow; ``None`` without any."""
        return self._unfold(data) if self.may_be_in(data) and self._all.search(data) else None

    def _unfold(self, data: bytes) -> UnfoldedText:
        pieces: list[bytes] = []
        starts: list[int] = []
        written: list[int] = []
        size = done = 0
        for found in self._all.finditer(data):
            assert found.lastindex is not None, "one of the spellings was found"
            is_decimal = found.lastindex == self._all.groups
            letter = self._letters[int(found[found.lastindex], 10 if is_decimal else 16)]
            for piece, at in ((data[done : found.start()], done), (letter, found.start())):
                if piece:
                    pieces.append(piece)
                    starts.append(size)
                    written.append(at)
                    size += len(piece)
            done = found.end()
        if done < len(data):
            pieces.append(data[done:])
            starts.append(size)
            written.append(done)
        return UnfoldedText(b"".join(pieces), starts, [*written, len(data)])

    def begun(self, data: bytes) -> int:
        """How many of the last bytes are an escape that may go on."""
        tail = data[-_LONGEST_ESCAPE:]
        found = _BEGUN.search(tail) if self.may_be_in(tail[-12:]) else None
        return len(tail) - found.start() if found else 0


def _any_of(form: str, codes: Iterable[int]) -> str:
    """One of these numbers, its digits small or in capitals."""
    return f"(?:{'|'.join(form.format(code).translate(_HEX_LETTERS) for code in sorted(codes)) or '(?!)'})"


def _pairs(codes: Iterable[int]) -> str:
    """The same for two hexadecimal digits, by the first of them: that is quicker to search for."""
    by_first: dict[str, list[str]] = {}
    for code in sorted(codes):
        first, second = divmod(code, 16)
        by_first.setdefault(f"{first:x}", []).append(f"{second:x}{second:X}" if second > 9 else f"{second}")
    classes = [f"{first}[{''.join(seconds)}]" for first, seconds in by_first.items()]
    return f"(?:{'|'.join(classes) or '(?!)'})"
