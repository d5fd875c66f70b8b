"""Are two requests the same but for names?

Two texts are compared from their beginning. Where they part, a token must stand on both sides that begins at the same
place and is of one kind (see :mod:`rewind.match.tokens`); its evidence must hold; then the comparison goes on behind
both. A token that was drawn by lot has one name in the recording and one in the replay, both ways, from the first
request to the last: so two conversations that differ only in an id keep apart.

A trial leaves no trace unless it is kept. All of this happens only after an exact match failed.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from itertools import repeat
from typing import Any, NamedTuple

from rewind.dataclass import dataclass
from rewind.match.call import Call, host_class
from rewind.match.canonical import canonical_path, canonical_query
from rewind.match.facts import RunFacts, same_facts
from rewind.match.outline import Outlines
from rewind.match.result_order import in_order_of
from rewind.match.text_memory import TextMemory
from rewind.match.token_search import (
    DifferencePlace,
    FoundFact,
    common_beginning,
    legible,
    same_breaks,
    token_span,
    unwrapped,
    window,
)
from rewind.match.tokens import (
    BASE64,
    BEDROCK,
    FOLDER,
    HEXADECIMAL,
    KINDS,
    LABELLED,
    MKDTEMP,
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
    differ_as_drawn,
    stands_for_something,
)
from rewind.match.written_times import same_reading
from rewind.model.message import Text, ToolResult
from rewind.model.names import MatchMode, Renamed

_MOST_SEEN = 300_000
"""Words that are remembered as seen."""
_MOST_WORK = 200_000
"""What finding one request may cost, in comparisons of some kilobytes; what takes more is not found."""
_TOKEN_WORK, _PAGE = 8, 4096
_CODE = re.compile(r"(?<![A-Za-z0-9])(?:[A-Za-z]++\d|\d++[A-Za-z])[A-Za-z0-9]*+")
"""A word with letters and digits in it: the least that an id is made of."""
_ID_FIELD = re.compile(r"(?:^|_|-|[a-z])(?:ids?|Ids?|ID|key|Key|uuid|UUID|nonce|token|session|trace|cursor|container)$")
_CLOCK_TIME = re.compile(r":\d|\d{9}|\d[T_]\d")
_WITHOUT_SHAPE = (HEXADECIMAL, BASE64, PREFIXED, LABELLED)
_TRANSLATED = (UUID, ULID, BEDROCK, PREFIXED, LABELLED, HEXADECIMAL, BASE64, TEMPORARY, MKDTEMP)


class WorkBudget:
    """How much may still be done for a request: a hostile one must not hold up all others."""

    def __init__(self, left: int = _MOST_WORK) -> None:
        self._left = left

    def spend(self, amount: int) -> bool:
        """Whether there was so much left."""
        self._left -= amount
        return self._left >= 0


@dataclass(slots=True)
class _Trial:
    """What would be renamed if two requests were taken for the same."""

    asked: Call | None = None
    """``None`` for what is no request: a message of a WebSocket, or something that was printed."""
    printed: bool = False
    bodies: tuple[bytes, bytes] = (b"", b"")
    """Both requests whole."""
    work: WorkBudget = field(default_factory=WorkBudget)
    forth: dict[str, str] = field(default_factory=dict)
    back: dict[str, str] = field(default_factory=dict)
    pairs: dict[Renamed, None] = field(default_factory=dict)
    translated: dict[str, str] = field(default_factory=dict)
    """What an answer has to say in place of what was recorded: it goes to an agent that knows its things by other
    ids. Times and names are words in an answer, and stay."""
    texts: dict[tuple[str, str], "_SameTexts"] = field(default_factory=dict)
    results: "_Results | None" = None

    def is_result(self, text: str) -> bool:
        """Whether a text of the request is what a tool gave back."""
        if self.asked is None:
            return self.printed
        if self.results is None:
            self.results = _results(self.asked)
        return self.results.hold(text)


class _SameTexts(NamedTuple):
    """Two texts that are the same but for these names."""

    pairs: tuple[Renamed, ...]
    only_as_result: bool


class _Results(NamedTuple):
    """The texts of a request: what tools gave back, and what anybody said."""

    given_back: frozenset[str]
    said: frozenset[str]

    def hold(self, text: str) -> bool:
        if text in self.given_back:
            return text not in self.said
        return text not in self.said and any(text in result for result in self.given_back)


class Renaming:
    """The names of one replay, beside those of its recording."""

    def __init__(
        self, then: RunFacts, now: RunFacts, *, mode: MatchMode = "renamed", ignore_text: Iterable[str] = ()
    ) -> None:
        self._then, self._now = then, now
        self._only_fields = mode == "fields"
        self._facts = tuple(map(FoundFact.of, same_facts(then, now)))
        self._patterns = tuple(re.compile(pattern) for pattern in ignore_text)
        self._rows = {printed: tuple(self._rows_for(printed=printed)) for printed in (False, True)}
        self._forth: dict[str, str] = {}
        self._back: dict[str, str] = {}
        self._seen: set[str] = set()
        """Words that requests held, where they may be ids: those of them that have no other name have kept theirs."""
        self._renamed_codes: set[str] = set()
        """Those that are in names of this run."""
        self._same_texts: TextMemory[_SameTexts] = TextMemory()
        self._seen_texts: TextMemory[bool] = TextMemory()

    def outlines(self) -> Outlines:
        """The coarse keys by which candidates are found."""
        names = {*self._then.names.values(), *self._now.names.values()}
        return Outlines(names.union(*((fact.then, fact.now) for fact in self._facts)), self._patterns)

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────

    def trial(self, recorded: Call, asked: Call, work: WorkBudget | None = None) -> "_Trial | None":
        """What would be renamed if one were taken for the other; ``None`` where they differ in more than names."""
        old, new = recorded.request.head, asked.request.head
        if old.method != new.method or host_class(old.host) != host_class(new.host):
            return None
        trial = _Trial(asked, bodies=(recorded.request.body, asked.request.body), work=work or WorkBudget())
        same = (
            self._texts(canonical_path(old), canonical_path(new), trial)
            and self._same(_query(recorded), _query(asked), trial)
            and self._same(recorded.canonical, asked.canonical, trial)
        )
        return trial if same else None

    def keep(self, trial: "_Trial", asked: Call) -> tuple[Renamed, ...]:
        """The two are taken for the same: from now on these names hold."""
        self._hold(trial)
        self.was_exact(asked)
        return tuple(trial.pairs)

    def _hold(self, trial: "_Trial") -> None:
        self._forth |= trial.forth
        self._back |= trial.back
        self._renamed_codes.update(code for name in trial.back for code in _CODE.findall(name))
        for (then, now), same in trial.texts.items():
            self._same_texts.put(same, then, now)

    def was_exact(self, asked: Call) -> None:
        """A request that was recorded as it is: the ids in it have kept their names."""
        if len(self._seen) > _MOST_SEEN:
            self._seen.clear()
            self._seen_texts = TextMemory()
        self._see(asked.canonical)

    def _see(self, value: Any) -> None:
        if isinstance(value, str):
            if self._seen_texts.get(value) is None:
                self._seen_texts.put(True, value)
                self._seen.update(_CODE.findall(legible(value)))
        elif isinstance(value, dict):
            for child in value.values():
                self._see(child)
        elif isinstance(value, list):
            for child in value:
                self._see(child)

    def folders(self) -> Mapping[str, str]:
        """The folders of the recording and what they are now, in all spellings."""
        facts = (fact.fact for fact in self._facts)
        return {fact.then: fact.now for fact in facts if fact.kind is FOLDER and not fact.is_part}

    def values(self, then: Any, now: Any) -> tuple[Renamed, ...] | None:
        """The names in which two plain JSON values differ, each a message of a WebSocket; they hold from then on.
        ``None`` where they differ in more."""
        written = [json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") for value in (then, now)]
        trial = _Trial(bodies=(written[0], written[1]))
        if not self._same(then, now, trial):
            return None
        self._hold(trial)
        self._see(now)
        return tuple(trial.pairs)

    # ── what is printed ──────────────────────────────────────────────────────────────────────────────────────

    def outputs(self, then: str, now: str) -> tuple[Renamed, ...] | None:
        """In what two outputs differ, if only in names, and in where lines break because a name has another length."""
        names = self._printed(then, now)
        if names is None:
            names = self._printed(unwrapped(then), unwrapped(now))
            if names and (all(len(name.then) == len(name.now) for name in names) or not same_breaks(then, now)):
                return None
        return names or None

    def _printed(self, then: str, now: str) -> tuple[Renamed, ...] | None:
        trial = _Trial(printed=True, bodies=(then.encode("utf-8", "replace"), now.encode("utf-8", "replace")))
        return tuple(trial.pairs) if self._texts(then, now, trial) else None

    # ── comparing ────────────────────────────────────────────────────────────────────────────────────────────

    def _same(self, then: Any, now: Any, trial: _Trial, *, whole: bool = False) -> bool:
        """``whole``: the value is that of a field for ids."""
        if then is now:
            return True
        if type(then) is not type(now) and not (isinstance(then, list) and isinstance(now, list)):
            return False
        if isinstance(then, str):
            return self._texts(then, now, trial, is_field=whole)
        if isinstance(then, dict):
            return then.keys() == now.keys() and all(
                self._same(value, now[key], trial, whole=_ID_FIELD.search(key) is not None)
                for key, value in then.items()
            )
        if isinstance(then, list):
            if len(then) != len(now):
                return False
            if not self._only_fields:
                now, moved = in_order_of(then, now)
                trial.pairs.update((Renamed("order of tool results", *orders), None) for orders in moved)
            return all(map(self._same, then, now, repeat(trial)))
        if then == now:
            return repr(then) == repr(now)  # JSON tells 0.0 and -0.0 apart
        if isinstance(then, int | float) and not isinstance(then, bool):
            return self._texts(str(then), str(now), trial, is_field=True)
        return False

    def _texts(self, then: str, now: str, trial: _Trial, *, is_field: bool = False) -> bool:
        """Whether two texts are the same but for tokens."""
        if then == now:
            return True
        known = self._same_texts.get(then, now) or trial.texts.get((then, now))
        if known is None or (known.only_as_result and not trial.is_result(now)):
            known = self._compared(then, now, trial, is_field)
            if known is None:
                return False
            if not self._only_fields:
                trial.texts[then, now] = known
        trial.pairs.update(dict.fromkeys(known.pairs))
        return True

    def _compared(self, then: str, now: str, trial: _Trial, is_field: bool) -> _SameTexts | None:
        if not trial.work.spend((len(then) + len(now)) // _PAGE):
            return None
        pairs: dict[Renamed, None] = {}
        only_as_result = False
        i = j = 0
        readable: tuple[str, str] | None = None
        while True:
            same = common_beginning(then, now, i, j)
            at, to = i + same, j + same
            if at == len(then) and to == len(now):
                return _SameTexts(tuple(pairs), only_as_result)
            if not trial.work.spend(_TOKEN_WORK):
                return None
            readable = readable or (legible(then), legible(now))
            windows = window(readable[0], at), window(readable[1], to)
            place = DifferencePlace(readable[0], at, i, readable[1], to, j, is_field, windows)
            found = self._token(place, trial, lambda: trial.is_result(now))
            if found is None:
                return None
            pairs[found.name] = None
            only_as_result = only_as_result or found.only_as_result
            i, j = found.end, found.stop

    def _token(self, at: "DifferencePlace", trial: _Trial, is_result: Callable[[], bool]) -> "_SameToken | None":
        """The tokens in which the texts part there; ``None`` where there are none."""
        for fact in self._facts:
            ends = at.behind(fact)
            if ends is not None:
                return _SameToken(Renamed(fact.kind.noun, fact.then, fact.now), *ends)
        is_strict = self._only_fields and not trial.printed
        for kind, pattern, scope in self._rows[trial.printed]:
            for old, new in at.tokens(pattern):
                if is_strict and kind.evidence is Evidence.BOUND and not at.is_whole(old, new):
                    continue
                if scope is Scope.RESULTS and not is_result():
                    break
                name = self._proven(kind, old, new, trial)
                if name is not None:
                    return _SameToken(name, token_span(old)[1], token_span(new)[1], scope is Scope.RESULTS)
                if kind.evidence is Evidence.BOUND and _looks_drawn(kind, old, new):
                    return None  # an id that has another name, or none: no part of it is a token by itself
        return None

    def _rows_for(self, *, printed: bool) -> Iterator[tuple[TokenKind, re.Pattern[str], Scope]]:
        for pattern in self._patterns:
            yield PATTERN, pattern, Scope.FOLDED
        for kind in KINDS:
            scope = kind.uses.output if printed else kind.uses.matching
            if scope is Scope.COUNTS or (scope is Scope.RESULTS and self._only_fields and not printed):
                continue
            for pattern in kind.patterns:
                yield kind, pattern, scope

    def _proven(self, kind: TokenKind, old: re.Match[str], new: re.Match[str], trial: _Trial) -> Renamed | None:
        (begin, end), (start, stop) = token_span(old), token_span(new)
        then, now = old.string[begin:end], new.string[start:stop]
        if then == now:
            return None
        if not _looks_drawn(kind, old, new):
            return None
        if kind.evidence is Evidence.CLOCK and (
            self._then.was_given(then)
            or self._now.was_given(now)
            or not same_reading(self._then.clock, old, self._now.clock, new)
        ):
            return None
        if kind in _WITHOUT_SHAPE and (
            stands_for_something(old.string, begin, end) or stands_for_something(new.string, start, stop)
        ):
            return None
        if kind.evidence is Evidence.BOUND and not self._bound(kind, then, now, trial):
            return None
        if kind in _TRANSLATED:
            trial.translated[then] = now
        elif kind is PORT:
            trial.translated[f":{then}"] = f":{now}"
        return Renamed(_noun(kind, then), then, now)

    def _bound(self, kind: TokenKind, then: str, now: str, trial: _Trial) -> bool:
        """Whether one may be the other's name, by all that was renamed so far."""
        known = trial.forth.get(then) or self._forth.get(then)
        known_back = trial.back.get(now) or self._back.get(now)
        if known is not None or known_back is not None:
            return known == now and known_back == then
        looked_through = len(trial.bodies[0]) + len(trial.bodies[1]) + len(self._then.given) + len(self._now.given)
        if not trial.work.spend(looked_through // _PAGE):
            return False
        if self._then.was_given(then) or self._now.was_given(now):
            return False
        if kind in _TRANSLATED:  # other ones are short: a number may well stand there by chance
            if not differ_as_drawn(then, now):
                return False
            if self._has_kept_its_name(then) or self._has_kept_its_name(now):
                return False
            if then.encode() in trial.bodies[1] or now.encode() in trial.bodies[0]:
                return False  # it has kept its name elsewhere in the request
        trial.forth[then], trial.back[now] = now, then
        return True

    def _has_kept_its_name(self, token: str) -> bool:
        codes = _CODE.findall(token)
        return self._seen.issuperset(codes) and not self._renamed_codes.issuperset(codes)


def _looks_drawn(kind: TokenKind, *found: re.Match[str]) -> bool:
    return kind.is_drawn is None or all(kind.is_drawn(one.string[slice(*token_span(one))]) for one in found)


def _noun(kind: TokenKind, token: str) -> str:
    return "date" if kind is TIME and _CLOCK_TIME.search(token) is None else kind.noun


class _SameToken(NamedTuple):
    """Two tokens that are one thing, and where they end."""

    name: Renamed
    end: int
    stop: int
    only_as_result: bool = False


def _query(call: Call) -> list[list[str]]:
    return canonical_query(call.request.head, call.provider.volatile, ())


def _results(call: Call) -> _Results:
    """What tools gave back, in the words of the request, and what else stands in it."""
    asked = call.provider.reader.asked(call.request)
    parts = [*asked.system, *(part for message in asked.messages for part in message.parts)]
    return _Results(
        frozenset(part.text for part in parts if isinstance(part, ToolResult)),
        frozenset(part.text for part in parts if isinstance(part, Text)),
    )
