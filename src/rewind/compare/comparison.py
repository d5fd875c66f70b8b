"""Two runs side by side, and for each pair of moves what differs.

Digests decide what they can. Bodies are read where a digest differs, to see whether it is more than ids and times; for
prompts, tools and parameters, which stand in every call, once for each pair of values.

A history that differs because an earlier step did is *inherited*, and no difference of its own: where both calls simply
go on from calls that belong together, the step adds nothing to what is known already.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from itertools import takewhile

from rewind.compare.align import Alignment, Row, align
from rewind.compare.decision import ChangeKind, DecisionDifference, Ids, Weight, compare_decisions
from rewind.compare.delta import (
    Aspect,
    Difference,
    NamedPlace,
    answer_differences,
    noise_of,
    text_differences,
    tool_differences,
    value_differences,
)
from rewind.compare.folders import RunFolders
from rewind.compare.run import ComparedRun, Move, status_of
from rewind.compare.texts import noise_values
from rewind.compare.turn import GrowingHistories, turn_differences
from rewind.conversation.context import parts_text
from rewind.conversation.sketch import Sketch, settings_of
from rewind.dataclass import dataclass
from rewind.model.message import Answered, Asked, Message, Thinking

FOLDER_NAME = "a folder"
_SAID = frozenset({Aspect.ANSWER, Aspect.CALLS})
_NO_DIFFERENCE = DecisionDifference(Weight.SAME)
_DRAWN = ("an id",)
"""Made up at random by providers and frameworks, never chosen by a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """How two moves that belong together stand to each other."""

    changed: frozenset[Aspect] = frozenset()
    noise: frozenset[Aspect] = frozenset()
    """What differs in ids and times alone."""
    inherited: bool = False
    """The history differs, and an earlier step is why."""
    retried: bool = False
    """One run needed more tries than the other."""
    reworded: bool = False
    """The answers come to the same in other words: the run goes on the same way."""

    @property
    def answers_alike(self) -> bool:
        return not self.changed & {Aspect.ANSWER, Aspect.CALLS, Aspect.STATUS}

    @property
    def alike(self) -> bool:
        return not self.changed


class Comparison:
    """Answers for one pair of moves at a time, and remembers what it found."""

    def __init__(self, a: ComparedRun, b: ComparedRun, *, exact_words: bool = False) -> None:
        """With ``exact_words``, an answer that asks for no tool, and the arguments of a tool, count word for word."""
        self.a = a
        self.b = b
        self.exact_words = exact_words
        self._weighed: dict[tuple[int, int], DecisionDifference] = {}
        self._relations: dict[tuple[int, int], Relation] = {}
        self._found: dict[Hashable, tuple[Difference, ...]] = {}
        self._told: set[tuple[int | None, str | None, str | None]] = set()
        """By conversation: the two texts of one thing that an earlier step brought."""
        self._known_ids: dict[tuple[Ids, Ids], bool] = {}
        self._learned: dict[int | None, int] = {}
        self._histories: dict[tuple[int | None, int | None], GrowingHistories] = {}
        """By conversation of either run: how far their histories are compared."""

    @cached_property
    def alignment(self) -> Alignment:
        return align(self.a, self.b)

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.alignment.rows

    def relation(self, row: Row) -> Relation:
        """For a row with a move of either run."""
        a, b = _both(row)
        key = a.index, b.index
        if key not in self._relations:
            self._relations[key] = self._relate(a, b)
        return self._relations[key]

    def decided(self, row: Row) -> DecisionDifference:
        """How much the two answers differ: not at all, in words, or in what is decided. Asks for no request."""
        a, b = _both(row)
        key = a.index, b.index
        if key not in self._weighed:
            self._weighed[key] = self._weigh(a, b)
        return self._weighed[key]

    def differences(self, row: Row) -> tuple[Difference, ...]:
        """Everything that differs between the two moves, in the order of the evidence."""
        return tuple(self._differences(*_both(row)))

    def earlier(self, row: Row) -> list[Row]:
        """The rows of the same conversation before it, in order."""
        before = takewhile(lambda one: one is not row, self.rows)
        return [one for one in before if one.thread == row.thread and one.a and one.b]

    def _relate(self, a: Move, b: Move) -> Relation:
        found = tuple(self._differences(a, b))
        changed = frozenset(one.aspect for one in found if one.noise is None)
        return Relation(
            changed=changed,
            noise=frozenset(one.aspect for one in found) - changed,
            inherited=self._history_differs(a, b) and self._inherits(self._stand_in(0, a), self._stand_in(1, b)),
            retried=len(a.failures) != len(b.failures),
            reworded=bool(changed & _SAID) and self.decided(Row(a, b)).weight is not Weight.DECISIVE,
        )

    def _weigh(self, a: Move, b: Move) -> DecisionDifference:
        if a.said == b.said and not a.failed and not b.failed:
            return _NO_DIFFERENCE
        decided = compare_decisions(self.a.decision(a), self.b.decision(b), partial(self._both_knew, a, b))
        if decided.weight is not Weight.DECISIVE and not self.exact_words:
            return decided
        if decided.changes and decided.changes[0].kind is ChangeKind.ID:
            return decided
        # Ids, and times that the model was told, are no decision of its own.
        changed = {one.aspect for one in self._in_answers(a, b) if one.noise is None}
        if not changed:
            return _NO_DIFFERENCE
        if changed == {Aspect.ANSWER} and self.a.decision(a).calls and self.b.decision(b).calls:
            return replace(decided, weight=Weight.PROSE)
        return replace(decided, weight=Weight.DECISIVE) if self.exact_words else decided

    def _both_knew(self, a: Move, b: Move, gone: Ids, come: Ids) -> bool:
        """Whether one of these ids, each of one run's answer alone, was known to the model of the other run."""
        if (gone, come) not in self._known_ids:
            by_a, by_b = heard(self.a, a), heard(self.b, b)
            known = any(one in by_b for one in gone) or any(one in by_a for one in come)
            self._known_ids[gone, come] = known
        return self._known_ids[gone, come]

    # ── piece by piece, and only where a digest differs ──────────────────────────────────────────────────────

    def _differences(self, a: Move, b: Move) -> Iterator[Difference]:
        if a.sketch is None or b.sketch is None:
            if a.step.request.match_key != b.step.request.match_key:
                yield from self._once(("request", a.index, b.index), lambda: self._in_plain_requests(a, b))
        else:
            yield from self._in_requests(a, b, a.sketch, b.sketch)
        yield from self._in_answers(a, b)

    def _in_requests(self, a: Move, b: Move, old: Sketch, new: Sketch) -> Iterator[Difference]:
        if a.model_asked != b.model_asked:
            yield _changed(Aspect.MODEL, NamedPlace.MODEL, a.model_asked, b.model_asked)
        if _other_snapshot(a, b):
            yield _changed(Aspect.SNAPSHOT, NamedPlace.SNAPSHOT, a.model_answered, b.model_answered)
        if old.system != new.system:
            yield from self._once(("system", old.system, new.system), lambda: self._prompts(a, b))
        if old.tools != new.tools:
            key = ("tools", old.tools, new.tools)
            yield from self._once(key, lambda: tool_differences(*(one.tools for one in self._asked(a, b))))
        if old.settings != new.settings:
            key = ("settings", old.settings, new.settings)
            yield from self._once(key, lambda: value_differences(Aspect.PARAMETERS, *self._settings(a, b)))
        yield from self._in_what_was_said(self._stand_in(0, a), self._stand_in(1, b))

    def _in_what_was_said(self, a: Move, b: Move) -> Iterator[Difference]:
        assert a.sketch is not None and b.sketch is not None, "conversations are calls to models"
        if a.sketch.turn != b.sketch.turn:
            key = ("turn", f"{a.index}", f"{b.index}")
            yield from self._once(key, lambda: turn_differences(*self._asked(a, b), *self._held(a, b)))
        if self._history_differs(a, b) and not self._inherits(a, b):
            yield from self._once(("history", a.index, b.index), lambda: self._own_history(a, b))

    def _stand_in(self, side: int, move: Move) -> Move:
        """Behind extra moves, the first of them: it heard what the other run heard before it went on."""
        return self._before_extras[side].get(move.index, move)

    @cached_property
    def _before_extras(self) -> tuple[dict[int, Move], dict[int, Move]]:
        """For either run: the move behind extra ones → the first of those."""
        found: tuple[dict[int, Move], dict[int, Move]] = {}, {}
        extra = [{row.moves[0].index for row in self.rows if row.extra and (row.a is None) is bool(n)} for n in (0, 1)]
        for run, indexes, behind in zip((self.a, self.b), extra, found, strict=True):
            first: dict[int | None, Move] = {}
            for move in run.moves if indexes else ():
                if move.index in indexes:
                    first.setdefault(move.thread, move)
                elif (known := first.pop(move.thread, None)) is not None:
                    behind[move.index] = known
        return found

    def _prompts(self, a: Move, b: Move) -> Iterator[Difference]:
        old, new = (parts_text(asked.system) for asked in self._asked(a, b))
        yield from text_differences(Aspect.SYSTEM, NamedPlace.SYSTEM, old, new)

    def _in_plain_requests(self, a: Move, b: Move) -> Iterator[Difference]:
        """For a request that is not a call to a model: the address, and the body."""
        sides = (self.a, a), (self.b, b)
        if a.model_asked != b.model_asked:
            yield _changed(Aspect.MODEL, NamedPlace.MODEL, a.model_asked, b.model_asked)
        if self.a.target(a) != self.b.target(b):
            yield _changed(Aspect.INPUT, NamedPlace.REQUEST, *(move.step.request.head.target for move in (a, b)))
        old, new = (
            run.without_learnt_ids(run.bodies(move.step)[0].decode("utf-8", "backslashreplace")) for run, move in sides
        )
        yield from text_differences(Aspect.INPUT, NamedPlace.REQUEST_BODY, old, new)

    def _in_answers(self, a: Move, b: Move) -> Iterator[Difference]:
        if a.failed != b.failed or (a.failed and status_of(a) != status_of(b)):
            yield _changed(Aspect.STATUS, NamedPlace.STATUS, status_of(a), status_of(b))
        if a.said != b.said:
            yield from self._once(("answer", a.index, b.index), lambda: self._answers(a, b))

    def _answers(self, a: Move, b: Move) -> Iterator[Difference]:
        """A time that a tool is called with is noise where the model has it from its question; else it chose it."""
        for found in answer_differences(self.a.answered(a.index), self.b.answered(b.index)):
            chosen = found.aspect is Aspect.CALLS and found.noise is not None and found.noise.names != _DRAWN
            yield replace(found, noise=None) if chosen and not self._was_told(found, a, b) else found

    def _was_told(self, found: Difference, a: Move, b: Move) -> bool:
        old, new = noise_values(found.before or ""), noise_values(found.after or "")
        heard_by_a, heard_by_b = (heard(run, move) for run, move in ((self.a, a), (self.b, b)))
        return all(one in heard_by_a for one in old - new) and all(one in heard_by_b for one in new - old)

    def _once(self, key: Hashable, find: Callable[[], Iterable[Difference]]) -> tuple[Difference, ...]:
        """Prompts, tools and parameters stand in every call: each pair of values is compared once."""
        if key not in self._found:
            self._found[key] = tuple(map(self._less_folders, find()))
        return self._found[key]

    def _less_folders(self, found: Difference) -> Difference:
        """Where a run ran is no reason why it went another way: its folders are noise, as ids are."""
        if found.noise is not None or not found.before or not found.after or not self._folders.differ:
            return found
        after = self._folders.as_in_first(found.after)
        noise = None if after == found.after else noise_of(found.aspect, found.before, after)
        return found if noise is None else replace(found, noise=replace(noise, names=(*noise.names, FOLDER_NAME)))

    @cached_property
    def _folders(self) -> RunFolders:
        return RunFolders(*(run.recording.session.start for run in (self.a, self.b)))

    def _asked(self, a: Move, b: Move) -> tuple[Asked, Asked]:
        return self.a.asked(a.index), self.b.asked(b.index)

    def _settings(self, a: Move, b: Move) -> tuple[dict[str, object], dict[str, object]]:
        old, new = self._asked(a, b)
        return settings_of(old, self.a.provider(a.index)), settings_of(new, self.b.provider(b.index))

    def _held(self, a: Move, b: Move) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
        return self.a.held(a), self.b.held(b)

    # ── histories ────────────────────────────────────────────────────────────────────────────────────────────

    @staticmethod
    def _history_differs(a: Move, b: Move) -> bool:
        return a.sketch is not None and b.sketch is not None and a.sketch.history != b.sketch.history

    def _inherits(self, a: Move, b: Move) -> bool:
        """Whether both calls go on from calls that belong together, adding nothing else."""
        before_a, before_b = self.a.goes_on_from(a), self.b.goes_on_from(b)
        return before_a is not None and before_b is not None and self._partners.get(before_a.index) == before_b.index

    def _own_history(self, a: Move, b: Move) -> Iterator[Difference]:
        """What differs in the histories and no earlier step of the conversation explains."""
        self._learn_before(a)
        histories = self._histories.setdefault((a.thread, b.thread), GrowingHistories())
        for found in histories.differences(*self._asked(a, b), *self._held(a, b)):
            if (a.thread, found.before, found.after) not in self._told:
                yield found

    def _learn_before(self, a: Move) -> None:
        """What the steps of the conversation before this one brought in different forms; each is looked at once."""
        thread = self.a.thread(a.thread)
        learned = self._learned.get(a.thread, 0)
        while learned < len(thread) and thread[learned].index < a.index:
            one = thread[learned]
            learned += 1
            self._learned[a.thread] = learned
            other = self._b_moves.get(self._partners.get(one.index, 0))
            if other is not None and (found := tuple(self._differences(one, other))):
                said = _as_quoted(self.a.answered(one.index)), _as_quoted(self.b.answered(other.index))
                self._told |= {(a.thread, each.before, each.after) for each in found} | {(a.thread, *said)}

    @cached_property
    def _partners(self) -> dict[int, int]:
        return {row.a.index: row.b.index for row in self.rows if row.a is not None and row.b is not None}

    @cached_property
    def _b_moves(self) -> dict[int, Move]:
        return {move.index: move for move in self.b.moves}


def _changed(aspect: Aspect, place: NamedPlace, before: str | None, after: str | None) -> Difference:
    return Difference(aspect=aspect, place=place, before=before, after=after)


def heard(run: ComparedRun, move: Move) -> str:
    """Everything that the model read."""
    asked = run.asked(move.index)
    messages = (*run.held(move), *asked.messages)
    return "\n".join((parts_text(asked.system), *(parts_text(message.parts) for message in messages)))


def _both(row: Row) -> tuple[Move, Move]:
    assert row.a is not None and row.b is not None, "two moves are compared"
    return row.a, row.b


def _as_quoted(answered: Answered | None) -> str | None:
    """An answer in the form in which a history brings it."""
    if answered is None:
        return None
    return parts_text([part for part in answered.parts if not isinstance(part, Thinking)])


def _other_snapshot(a: Move, b: Move) -> bool:
    """Whether another model answered though the same one was asked for."""
    if a.model_asked != b.model_asked or a.failed or b.failed:
        return False
    return bool(a.model_answered and b.model_answered and a.model_answered != b.model_answered)
