"""Are two requests the same but for names?

Two texts are compared from their beginning. Where they part, a token must stand on both sides that begins at the same
place and is of one kind (see :mod:`rewind.match.tokens`); its evidence must hold; then the comparison goes on behind
both. A token that was drawn by lot has one name in the recording and one in the replay, both ways, from the first
request to the last: so two conversations that differ only in an id keep apart.

A trial leaves no trace unless it is kept. All of this happens only after an exact match failed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from rewind.dataclass import dataclass
from rewind.match.call import Call, host_class
from rewind.match.canonical import canonical_path, canonical_query
from rewind.match.facts import RunFacts, SameFact, same_facts, stands_alone
from rewind.match.tokens import (
    BASE64,
    FOLDER,
    HEXADECIMAL,
    KINDS,
    LABELLED,
    PATTERN,
    PORT,
    PREFIXED,
    TEMPORARY,
    TIME,
    ULID,
    UUID,
    Evidence,
    Scope,
    TokenKind,
    is_hash,
)
from rewind.model.message import ToolResult
from rewind.model.names import MatchMode, Renamed
from rewind.wire.growing_json import read_each

_AROUND = 160
"""Characters on both sides of a difference in which a token is looked for; none is longer."""
_BLOCK = 512
_MOST_KNOWN = 100_000
_CLOCK_TIME = re.compile(r":\d|\d{9}|\d[T_]\d")
_ESCAPES = re.compile(r"\\+[nrt]|(?:\x1b|\\+(?:u001[bB]|x1[bB]|033))\[[0-9;]*m")
"""Line breaks and tabs of JSON within a text, and colours of a terminal."""
_TRANSLATED = (UUID, ULID, PREFIXED, LABELLED, HEXADECIMAL, BASE64, TEMPORARY)
_BOUND = tuple((kind, pattern) for kind in KINDS if kind.evidence is Evidence.BOUND for pattern in kind.patterns)


@dataclass(slots=True)
class _Trial:
    """What would be renamed if two requests were taken for the same."""

    forth: dict[str, str] = field(default_factory=dict)
    back: dict[str, str] = field(default_factory=dict)
    pairs: dict[Renamed, None] = field(default_factory=dict)
    translated: dict[str, str] = field(default_factory=dict)
    items: list[tuple[Any, Any]] = field(default_factory=list)
    results: frozenset[str] = frozenset()
    """What tools gave back, in the request."""
    bodies: tuple[bytes, bytes] = (b"", b"")
    """Both requests whole."""


class Renaming:
    """The names of one replay, beside those of its recording."""

    def __init__(
        self, then: RunFacts, now: RunFacts, *, mode: MatchMode = "renamed", ignore_text: Iterable[str] = ()
    ) -> None:
        self._then, self._now = then, now
        self._only_fields = mode == "fields"
        self._facts = same_facts(then, now)
        self._patterns = tuple(re.compile(pattern) for pattern in ignore_text)
        self._forth: dict[str, str] = {}
        self._back: dict[str, str] = {}
        self._unchanged: set[str] = set()
        """Words that may be ids and were the same in both runs."""
        self._same_items: dict[tuple[int, int], tuple[Any, Any]] = {}
        """Parts of requests that were found the same: they come again with every request of a conversation. Kept
        themselves, so that no other object takes their place in memory."""
        self._translated = {fact.then: fact.now for fact in self._facts if fact.kind is FOLDER and not fact.is_part}

    @property
    def words(self) -> frozenset[str]:
        """The names that the two runs have for themselves."""
        return frozenset({*self._then.names.values(), *self._now.names.values()})

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────

    def trial(self, recorded: Call, asked: Call) -> "_Trial | None":
        """What would be renamed if one were taken for the other; ``None`` where they differ in more than names."""
        old, new = recorded.request.head, asked.request.head
        if old.method != new.method or host_class(old.host) != host_class(new.host):
            return None
        trial = _Trial(results=frozenset(_results(asked)), bodies=(recorded.request.body, asked.request.body))
        same = (
            self._texts(canonical_path(old), canonical_path(new), trial, in_result=False)
            and self._same(_query(recorded), _query(asked), trial)
            and self._same(recorded.canonical, asked.canonical, trial)
        )
        return trial if same else None

    def keep(self, trial: "_Trial", asked: Call) -> tuple[Renamed, ...]:
        """The two are taken for the same: from now on these names hold."""
        self._unchanged |= _drawn(asked.canonical) - self._back.keys() - trial.back.keys()
        self._forth |= trial.forth
        self._back |= trial.back
        self._translated |= trial.translated
        if len(self._same_items) > _MOST_KNOWN:
            self._same_items.clear()
        self._same_items.update({(id(one), id(other)): (one, other) for one, other in trial.items})
        return tuple(trial.pairs)

    def was_exact(self, asked: Call) -> None:
        """A request that was recorded as it is: the ids in it have kept their names."""
        self._unchanged |= _drawn(asked.canonical) - self._back.keys()

    def translations(self) -> Mapping[str, str]:
        """What an answer has to say in place of what was recorded, the longest first: it goes to an agent that is in
        another folder, and knows its things by other ids. Times and names are words in an answer, and stay."""
        return {old: self._translated[old] for old in sorted(self._translated, key=len, reverse=True)}

    # ── what is printed ──────────────────────────────────────────────────────────────────────────────────────

    def outputs(self, then: str, now: str) -> tuple[Renamed, ...] | None:
        """In what two outputs differ, if only in names, and in where lines break because a name has another length."""
        names = self._printed(then, now)
        if names is None:
            names = self._printed(_unwrapped(then), _unwrapped(now))
            if names and all(len(name.then) == len(name.now) for name in names):
                return None
        return names or None

    def _printed(self, then: str, now: str) -> tuple[Renamed, ...] | None:
        trial = _Trial(bodies=(then.encode("utf-8", "replace"), now.encode("utf-8", "replace")))
        return tuple(trial.pairs) if self._texts(then, now, trial, printed=True) else None

    # ── comparing ────────────────────────────────────────────────────────────────────────────────────────────

    def _same(self, then: Any, now: Any, trial: _Trial, *, whole: bool = False) -> bool:
        """``whole``: the value is that of a field, of an object."""
        if then is now or (id(then), id(now)) in self._same_items:
            return True
        if type(then) is not type(now) and not (isinstance(then, list) and isinstance(now, list)):
            return False
        if isinstance(then, str):
            return self._texts(then, now, trial, is_field=whole)
        if isinstance(then, dict):
            return then.keys() == now.keys() and all(
                self._same(value, now[key], trial, whole=True) for key, value in then.items()
            )
        if isinstance(then, list):
            return len(then) == len(now) and self._items(then, now, trial)
        if then == now:
            return True
        if isinstance(then, int | float) and not isinstance(then, bool):
            return self._texts(str(then), str(now), trial, is_field=True)
        return False

    def _items(self, then: Sequence[Any], now: Sequence[Any], trial: _Trial) -> bool:
        for one, other in zip(then, now, strict=True):
            if one is other or (id(one), id(other)) in self._same_items:
                continue
            if not (one == other and _written_alike(one, other)) and not self._same(one, other, trial):
                return False
            if isinstance(one, dict):
                trial.items.append((one, other))
        return True

    def _texts(
        self,
        then: str,
        now: str,
        trial: _Trial,
        *,
        is_field: bool = False,
        in_result: bool | None = None,
        printed: bool = False,
    ) -> bool:
        """Whether two texts are the same but for tokens."""
        if then == now:
            return True
        i = j = 0
        legible: tuple[str, str] | None = None
        while True:
            same = _common_beginning(then, now, i, j)
            low_i, low_j = i, j
            i, j = i + same, j + same
            if i == len(then) and j == len(now):
                return True
            if in_result is None:
                in_result = printed or _is_result(now, trial.results)
            if legible is None:
                legible = _legible(then), _legible(now)
            ends = self._token(_Place(legible[0], i, low_i, legible[1], j, low_j, is_field), trial, in_result, printed)
            if ends is None:
                return False
            i, j = ends

    def _token(self, at: "_Place", trial: _Trial, in_result: bool, printed: bool) -> tuple[int, int] | None:
        """Where the tokens end in which the texts part there; ``None`` where there are none."""
        for fact in self._facts:
            ends = at.behind(fact)
            if ends is not None:
                trial.pairs[Renamed(fact.kind.noun, fact.then, fact.now)] = None
                return ends
        for kind, pattern in self._rows(in_result=in_result, printed=printed):
            for old, new in at.tokens(pattern):
                if self._only_fields and kind.noun == "id" and not printed and not at.is_whole(old, new):
                    continue
                if self._proven(kind, old, new, trial):
                    return _span(old)[1], _span(new)[1]
        return None

    def _rows(self, *, in_result: bool, printed: bool) -> Iterator[tuple[TokenKind, re.Pattern[str]]]:
        for pattern in self._patterns:
            yield PATTERN, pattern
        for kind in KINDS:
            scope = kind.uses.output if printed else kind.uses.matching
            if self._only_fields and not printed and scope is Scope.RESULTS:
                continue
            if scope is Scope.FOLDED or (scope is Scope.RESULTS and in_result):
                for pattern in kind.patterns:
                    yield kind, pattern

    def _proven(self, kind: TokenKind, old: re.Match[str], new: re.Match[str], trial: _Trial) -> bool:
        (begin, end), (start, stop) = _span(old), _span(new)
        then, now = old.string[begin:end], new.string[start:stop]
        if kind.is_drawn is not None and not (kind.is_drawn(then) and kind.is_drawn(now)):
            return False
        if kind.evidence is Evidence.CLOCK and not (self._then.clock.shows(old) and self._now.clock.shows(new)):
            return False
        if kind is HEXADECIMAL and (is_hash(old.string, begin) or is_hash(new.string, start)):
            return False
        if kind.evidence is Evidence.BOUND and not self._bound(then, now, trial):
            return False
        trial.pairs[Renamed(_noun(kind, then), then, now)] = None
        if kind in _TRANSLATED:
            trial.translated[then] = now
        elif kind is PORT:
            trial.translated[f":{then}"] = f":{now}"
        return True

    def _bound(self, then: str, now: str, trial: _Trial) -> bool:
        """Whether one may be the other's name, by all that was renamed so far."""
        known = trial.forth.get(then) or self._forth.get(then)
        known_back = trial.back.get(now) or self._back.get(now)
        if known is not None or known_back is not None:
            return known == now and known_back == then
        if self._then.was_given(then) or self._now.was_given(now):
            return False
        if then in self._unchanged or now in self._unchanged:
            return False
        if then.encode() in trial.bodies[1] or now.encode() in trial.bodies[0]:
            return False  # it has kept its name elsewhere in the request
        trial.forth[then], trial.back[now] = now, then
        return True


def _noun(kind: TokenKind, token: str) -> str:
    return "date" if kind is TIME and _CLOCK_TIME.search(token) is None else kind.noun


def _common_beginning(then: str, now: str, i: int, j: int) -> int:
    """How many characters are the same from there on."""
    start, limit = i, min(len(then) - i, len(now) - j)
    same = 0
    while same < limit and then[i + same : i + same + _BLOCK] == now[j + same : j + same + _BLOCK]:
        same += _BLOCK
    same = min(same, limit)
    low, high = same, min(same + _BLOCK, limit)
    while low < high:
        middle = (low + high + 1) // 2
        if then[start + same : start + middle] == now[j + same : j + middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _legible(text: str) -> str:
    """The text, as long as it was, with blanks where its reader sees a line break or a colour: a token may begin behind
    them, and their letters are no part of it."""
    return _ESCAPES.sub(lambda found: " " * len(found[0]), text) if "\\" in text or "\x1b" in text else text


def _unwrapped(text: str) -> str:
    """An output less the line breaks that were made to fit a screen, and less the frames around its texts.

    A line as long as the longest one was cut there; where another one ends, words may stand apart.
    """
    lines = text.splitlines()
    width = max(map(len, lines), default=0)
    parts = []
    for line in lines:
        is_framed = len(line) == width > 4 and line[0] == line[-1] == "│"
        inner = line[2:-2].rstrip() if is_framed else line.rstrip()
        parts.append(inner if len(inner) == (width - 4 if is_framed else width) else inner + " ")
    return re.sub(r"\s+", " ", "".join(parts))


def _around(pattern: re.Pattern[str], text: str, at: int, low: int) -> Iterator[re.Match[str]]:
    """The tokens of that pattern that reach over this place, and begin behind what was compared before."""
    begin = max(0, at - _AROUND)
    # A window must not begin within a word: what stands there would look like the beginning of a token.
    while begin > 0 and at - begin < 2 * _AROUND and (text[begin - 1].isalnum() or text[begin - 1] in "_-"):
        begin -= 1
    for found in pattern.finditer(text, begin, min(len(text), at + _AROUND)):
        start, end = _span(found)
        if start > at:
            return
        if low <= start and at <= end and start < end:
            yield found


def _span(found: re.Match[str]) -> tuple[int, int]:
    return found.span("token") if "token" in found.re.groupindex else found.span()


class _Place(NamedTuple):
    """Where two texts part."""

    then: str
    i: int
    low_i: int
    """What stands before was compared already."""
    now: str
    j: int
    low_j: int
    is_field: bool
    """Whether the texts are the whole values of a field."""

    def tokens(self, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
        """Tokens on both sides that begin together."""
        for old in _around(pattern, self.then, self.i, self.low_i):
            for new in _around(pattern, self.now, self.j, self.low_j):
                if self.i - _span(old)[0] == self.j - _span(new)[0]:
                    yield old, new

    def is_whole(self, old: re.Match[str], new: re.Match[str]) -> bool:
        """Whether the tokens are the whole values of a field."""
        return self.is_field and _span(old) == (0, len(self.then)) and _span(new) == (0, len(self.now))

    def behind(self, fact: SameFact) -> tuple[int, int] | None:
        """Where both writings of a fact end, if they stand there."""
        shared = _common_beginning(fact.then, fact.now, 0, 0)
        is_beginning = shared == min(len(fact.then), len(fact.now))
        for more in range(max(len(fact.then), len(fact.now)) - shared + 1 if is_beginning else 1):
            start, begin = self.i - shared - more, self.j - shared - more
            if start < self.low_i or begin < self.low_j:
                return None
            end, stop = start + len(fact.then), begin + len(fact.now)
            if (
                self.then.startswith(fact.then, start)
                and self.now.startswith(fact.now, begin)
                and stands_alone(self.then, start, end, fact)
                and stands_alone(self.now, begin, stop, fact)
            ):
                return end, stop
        return None


def _query(call: Call) -> list[list[str]]:
    return canonical_query(call.request.head, call.provider.volatile, ())


def _drawn(value: Any) -> frozenset[str]:
    """All that looks drawn by lot, in a body or a part of one."""
    if isinstance(value, str):
        found = set()
        legible = _legible(value)
        for kind, pattern in _BOUND:
            for token in pattern.finditer(legible):
                start, end = _span(token)
                text = legible[start:end]
                if kind.is_drawn is None or kind.is_drawn(text):
                    found.add(text)
        return frozenset(found)
    if isinstance(value, dict):
        return frozenset().union(*map(_drawn, value.values()))
    if isinstance(value, list):
        return frozenset().union(*read_each(_drawn, value))
    return frozenset()


def _results(call: Call) -> Iterator[str]:
    """What tools gave back, in the words of the request."""
    for message in call.provider.reader.asked(call.request).messages:
        for part in message.parts:
            if isinstance(part, ToolResult):
                yield part.text


def _is_result(text: str, results: frozenset[str]) -> bool:
    return text in results or any(text in result for result in results)


def _written_alike(one: Any, other: Any) -> bool:
    """Of values that Python takes for equal: JSON tells ``true``, ``1`` and ``1.0`` apart."""
    return isinstance(one, str) or repr(one) == repr(other)
