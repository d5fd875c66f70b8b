"""Exact search for many byte strings at once, in whole bodies and in streams.

A regular expression with one branch for each form slows down with every form: base64 forms begin with any letter, so
no position can be skipped (7 MB/s with 100 forms). Here the text is sampled instead. Of every form, the machine words
that stand at each offset near its end are put in a table; as they cover every alignment, any occurrence shows one of
them at a position that is a multiple of the step. Sampled words are looked up in C, and only what is found there is
compared byte by byte. The speed does not depend on the number of forms (see docs/adr/0005-redaction.md).

For streams, ``pending`` tells how many of the last bytes could be the beginning of a form, and ``cut`` how much is
settled: whatever follows, no hit will cross that point. So any cutting of a stream gives the same hits.
"""

import sys
from collections.abc import Iterable

from rewind.redaction.escapes import Escapes

Span = tuple[int, int]

_LONGEST_CHAIN = 64 * 1024
_MOST_ESCAPES = 64
_LONGEST_ESCAPES = 256
"""More bytes than one escape has, with all the backslashes before it."""
_LONGEST_LETTER = 12
"""Bytes of a letter that is written as an escape, with some backslashes before it."""


class _Tier:
    """The forms that are long enough to be found by looking at one word in every ``step`` bytes."""

    def __init__(self, word: int, step: int) -> None:
        self.window = word + step - 1
        """Every stretch of this length holds a whole word at a sampled position."""
        self._word = word
        self._step = step
        self._table: dict[int, list[tuple[bytes, int]]] = {}
        self._words: frozenset[int] = frozenset()

    def add(self, form: bytes) -> None:
        # The end of a key is random where its beginning ("sk-proj-") is not, so samples there rarely mislead.
        for offset in range(len(form) - self.window, len(form) - self._word + 1):
            word = int.from_bytes(form[offset : offset + self._word], sys.byteorder)
            self._table.setdefault(word, []).append((form, offset))

    def ready(self) -> bool:
        """All forms are added; whether there are any."""
        self._words = frozenset(self._table)
        return bool(self._words)

    def find(self, data: bytes) -> list[Span]:
        whole = len(data) - len(data) % self._word
        view = memoryview(data)[:whole]
        words = view.cast("Q") if self._word == 8 else view.cast("I")
        samples = words[:: self._step // self._word]
        if self._words.isdisjoint(samples):
            return []
        return [
            (number * self._step - offset, number * self._step - offset + len(form))
            for number, word in enumerate(samples)
            for form, offset in self._table.get(word, ())
            if number * self._step >= offset and data.startswith(form, number * self._step - offset)
        ]


class Scanner:
    """Finds the given forms. Never changes, so it can be shared and swapped without locks."""

    def __init__(self, forms: Iterable[bytes], letters: Iterable[str] = ()) -> None:
        """``letters`` are looked for as escapes, too: see :mod:`rewind.redaction.escapes`."""
        self._forms = frozenset(forms)
        self._escapes = Escapes(letters)
        tiers = (_Tier(8, 32), _Tier(8, 8), _Tier(4, 4))
        for form in self._forms:
            next(tier for tier in tiers if len(form) >= tier.window).add(form)
        self._tiers = tuple(tier for tier in tiers if tier.ready())
        self.longest = max(map(len, self._forms), default=0)
        self._reach = max(1, _LONGEST_LETTER * self.longest)
        """How far back from its end a form may begin that is written as escapes."""
        self._shortest = min(map(len, self._forms), default=0)
        self._beginnings: dict[bytes, list[bytes]] = {}
        for form in self._forms:
            self._beginnings.setdefault(form[:3], []).append(form)
        self._escaped = any(form.startswith(b"\\") for form in self._forms)
        self._ones = frozenset(form[:1] for form in self._forms)
        self._twos = frozenset(form[:2] for form in self._forms)
        self._threes = frozenset(form[at : at + 3] for form in self._forms for at in range(len(form) - 3))

    def __bool__(self) -> bool:
        return bool(self._forms)

    def find(self, data: bytes) -> list[Span]:
        """Where forms stand, in order. Those that overlap are one span, so no part of either is left."""
        return self.search(data)[0]

    def search(self, data: bytes, clean: int = 0) -> tuple[list[Span], bool]:
        """As ``find``, and whether the data is clean: it holds no form, and no escape that makes one possible.

        The first ``clean`` bytes are the beginning of data that was found to be; they are not searched again.
        """
        start = max(0, clean - self.longest - _LONGEST_ESCAPES)
        rest = data[start:] if start else data
        spans = self._as_written(rest)
        if not self._forms or (unfolded := self._escapes.unfolded(rest)) is None:
            return [(begin + start, end + start) for begin, end in united(spans)], not spans
        if start:
            return self.search(data)  # such escapes count in all of it
        spans += (unfolded.place(*span) for span in self._as_written(unfolded.text))
        return united(spans), False

    def _as_written(self, data: bytes) -> list[Span]:
        spans: list[Span] = []
        if len(data) >= self._shortest:
            for tier in self._tiers:
                spans += tier.find(data)
        if spans and self._escaped:
            spans = [(_before_escapes(data, start), end) for start, end in spans]
        return spans

    def pending(self, data: bytes) -> int:
        """How many of the last bytes must wait, as they could be the beginning of a form."""
        size = self._beginning(data)
        if size and self._escaped:
            size = len(data) - _before_escapes(data, len(data) - size)
        tail = data[-self._reach :]
        return max(size, self._pending_escaped(tail)) if self._escapes.may_be_in(tail) else size

    def _pending_escaped(self, tail: bytes) -> int:
        begun = self._escapes.begun(tail)
        whole = tail[: len(tail) - begun]
        unfolded = self._escapes.unfolded_end(whole)
        if unfolded is None:
            return begun and begun + self._beginning(whole)
        if not (size := self._beginning(unfolded.text)):
            return begun
        return len(tail) - unfolded.place(len(unfolded.text) - size, len(unfolded.text))[0]

    def _beginning(self, data: bytes) -> int:
        """How many of the last bytes are the beginning of a form that is not complete."""
        if data[-3:] in self._threes:
            first = max(0, len(data) - self.longest + 1)
            for start in range(first, len(data) - 2):
                for form in self._beginnings.get(data[start : start + 3], ()):
                    if len(form) > len(data) - start and form.startswith(data[start:]):
                        return len(data) - start
        if data[-2:] in self._twos:
            return 2
        return int(data[-1:] in self._ones)

    def dead(self, pending: bytes, text: bytes) -> bool:
        """A quick check: True if one or two pending bytes cannot be continued by this text."""
        joined = pending + text[:2]
        if self._escapes.may_be_in(joined):
            return False
        return len(joined) == len(pending) + 2 and not any(
            joined[at : at + 3] in self._beginnings for at in range(len(pending))
        )

    def cut(self, data: bytes) -> tuple[list[Span], int]:
        """The hits that nothing to come can change, and where the unsettled rest begins."""
        spans = self.find(data)
        settled = len(data) - self.pending(data)
        while spans and spans[-1][1] > settled:
            settled = min(settled, spans.pop()[0])
        if len(data) - settled > self.longest + _LONGEST_CHAIN:
            # A value that can overlap itself, again and again ("abababab"): all of it goes.
            return [*spans, (settled, len(data))], len(data)
        return spans, settled

    def end(self, data: bytes) -> list[Span]:
        """The hits in the unsettled rest at the end of the stream, with a value that was cut off there.

        A short beginning is left: an answer may well end with "sk-ant-", and so do sentences about keys.
        """
        spans = self.find(data)
        if size := self._cut_off(data):
            spans.append((len(data) - size, len(data)))
        tail = data[-self._reach :]
        unfolded = self._escapes.unfolded_end(tail[: len(tail) - self._escapes.begun(tail)])
        if unfolded is not None and (size := self._cut_off(unfolded.text)):
            start, _ = unfolded.place(len(unfolded.text) - size, len(unfolded.text))
            spans.append((len(data) - len(tail) + start, len(data)))
        return united(spans)

    def _cut_off(self, data: bytes) -> int:
        """How many of the last bytes are most of a form; 0 where they are few."""
        size = self._beginning(data)
        rest = data[len(data) - size :]
        long_enough = size >= 6 and any(
            form.startswith(rest) and (size >= 16 or 4 * size >= 3 * len(form)) for form in self._forms
        )
        return size if long_enough else 0


def _before_escapes(data: bytes, start: int) -> int:
    """A form that begins with an escape takes the backslashes before it along.

    In JSON inside JSON they belong to it, and a placeholder after a lone backslash would be no JSON.
    """
    first = start
    while data.startswith(b"\\", start) and first > 0 and start - first < _MOST_ESCAPES and data[first - 1] == 0x5C:
        first -= 1
    return first


def united(spans: list[Span]) -> list[Span]:
    """In order; those that overlap are one."""
    if len(spans) < 2:
        return spans
    spans.sort()
    joined = [spans[0]]
    for start, end in spans[1:]:
        if start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
