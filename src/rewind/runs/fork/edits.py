"""The edits of a fork at work: at the step they are made for, and on, wherever they still fit.

A fork of a fork carries on what the forks behind its recording had changed, as far as that holds at its step.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from rewind.dataclass import dataclass
from rewind.edit.apply import answer_for, edited
from rewind.edit.carry_over import CarriedEdits, MadeUpAnswers, carried_edits
from rewind.edit.edits import (
    AppendSystem,
    Edit,
    EditPlace,
    ResolvedValue,
    SetResponse,
    SetSystem,
    StepReference,
    parse_edit,
)
from rewind.edit.references import value_for
from rewind.errors import SessionNotFound, UsageError
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.session import Edited, Recording
from rewind.model.step import Step
from rewind.runs.fork.manual_edits import ManualEdit, SentBody, holds_placeholder, merged, refuse_placeholders
from rewind.runs.junction import PUT_IN

__all__ = ["EarlierEdits", "ForkEdits", "ManualEdit", "merged"]


BY_HAND = "edited by hand"


@dataclass(frozen=True, slots=True)
class EarlierEdits:
    """Edits of a fork that the recording comes from, and the prefix step from which on they hold."""

    step: int
    edits: tuple[Edit, ...]


class ForkEdits:
    """What happens to the requests of one run. Used on the gateway's thread alone."""

    def __init__(
        self,
        edits: Sequence[Edit],
        *,
        by_hand: ManualEdit | None = None,
        first: Sequence[Edit] = (),
        as_sent: SentBody | None = None,
        earlier: Sequence[EarlierEdits] = (),
        made_up: Mapping[int, HttpResponse] | None = None,
        names: Mapping[str, str] | None = None,
        check: Callable[[HttpRequest], None] = lambda _request: None,
    ) -> None:
        """``first`` is what an earlier fork had changed at this very step, and ``as_sent`` what had gone out there
        where that was changed by hand, too. ``made_up`` has the prefix answers that no provider gave. ``names`` tells
        the tools of calls by id, for APIs that keep the history; ``check`` may raise against what is about to go out.
        """
        self._first = tuple(first)
        self._edits = tuple(edit for edit in edits if not isinstance(edit, SetResponse))
        self._response = next((edit for edit in reversed(edits) if isinstance(edit, SetResponse)), None)
        self._as_sent = as_sent
        self._made_up = made_up or {}
        self._unissued = MadeUpAnswers()
        self._by_hand = by_hand
        self._earlier = tuple(earlier)
        self._names = names or {}
        self._check = check
        self._inherited: dict[int, CarriedEdits] = {}
        """By their place among the earlier ones."""
        self._own: CarriedEdits | None = None

    @property
    def substitutes(self) -> bool:
        return self._response is not None

    def played(self, index: int) -> Callable[[HttpRequest], None] | None:
        places = [at for at, earlier in enumerate(self._earlier) if earlier.step == index]
        wanted = bool(places) or index in self._made_up
        return (lambda request: self._inherit(places, index, request)) if wanted else None

    def _inherit(self, places: Sequence[int], index: int, request: HttpRequest) -> None:
        if index in self._made_up:
            self._unissued.add(self._as_before(request), self._made_up[index])
        for at in places:
            self._inherited[at] = carried_edits(self._as_before(request), self._earlier[at].edits, names=self._names)

    def before(self, request: HttpRequest) -> HttpRequest:
        return self._let_go(self._as_before(request))

    def at_the_step(self, request: HttpRequest) -> HttpRequest:
        changed = self._hold(request)
        if self._as_sent is None:
            changed = edited(changed, (*self._first, *self._edits), names=self._names)
        else:
            changed = self._as_sent.apply(edited(changed, self._first, names=self._names))
            changed = edited(changed, self._edits, names=self._names)
        if self._by_hand is not None:
            changed = self._by_hand.apply(changed)
        return self._let_go(changed)

    def afterwards(self, request: HttpRequest) -> HttpRequest:
        request = self._as_before(request)
        return self._let_go(request if self._own is None else self._own.apply(request))

    def answer(self, request: HttpRequest) -> HttpResponse:
        assert self._response is not None, "there is an answer to put in"
        request = self._hold(request)
        answer = answer_for(request, self._response)
        self._unissued.add(request, answer)
        return answer

    def _hold(self, request: HttpRequest) -> HttpRequest:
        request = self._as_before(request)
        self._own = carried_edits(request, (*self._first, *self._edits), names=self._names)
        return request

    def _as_before(self, request: HttpRequest) -> HttpRequest:
        """With what earlier forks had changed, and going on from answers that the provider knows."""
        request = self._unissued.apply(request)
        for at in range(len(self._earlier)):
            if at in self._inherited:
                request = self._inherited[at].apply(request)
        return request

    def _let_go(self, request: HttpRequest) -> HttpRequest:
        self._check(request)
        return request


@dataclass(frozen=True, slots=True, kw_only=True)
class InheritedEdits:
    """Edits of earlier forks."""

    first: tuple[Edit, ...] = ()
    """Made at this very step: the agent does not send them."""
    by_hand: bool = False
    """Whether its request was changed in an editor, too."""
    earlier: tuple[EarlierEdits, ...] = ()
    """Made at steps before it."""
    made_up: tuple[int, ...] = ()
    """Steps before it whose answers were put in."""
    kept: tuple[Edited, ...] = ()
    """For a fork of this fork."""
    dropped: tuple[str, ...] = ()
    """What is not carried on, in the user's words."""


@dataclass(slots=True)
class _Inheritance:
    """Goes through the edits of one recording's forks."""

    recording: Recording
    step: Step
    places: frozenset[EditPlace]
    """What the new fork sets itself."""
    resolve: Callable[[Edit], Edit]
    request_at: Callable[[int], HttpRequest]
    first: list[Edit] = field(default_factory=list)
    earlier: list[EarlierEdits] = field(default_factory=list)
    made_up: list[int] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)

    def take(self, fork: Edited, cut: int, others: Sequence[EditPlace]) -> Edited:
        """The edits of one fork, made at the step ``cut``; ``others`` names all places that were changed there."""
        edits: list[Edit] = []
        kept: list[str] = []
        for text in fork.edits:
            edit = parse_edit(text)
            if isinstance(edit, SetResponse):
                kept.append(text)
                self._answer(edit, cut)
            elif (resolved := self._request(edit, cut, alone=others.count(edit.place) == 1)) is not None:
                kept.append(text)
                edits.append(resolved)
        if cut == self.step.index:
            self.first += edits
        elif edits:
            self.earlier.append(EarlierEdits(cut, tuple(edits)))
        return replace(fork, edits=tuple(kept))

    def _answer(self, edit: SetResponse, cut: int) -> None:
        if cut < self.step.index:
            self.made_up.append(cut)
        elif edit.place not in self.places:
            self.dropped.append(f"{edit.written} (the step is asked this time)")

    def _request(self, edit: Edit, cut: int, *, alone: bool) -> Edit | None:
        """The edit with its value; ``None`` where it has none any more, and the new fork gives another."""
        given_again = edit.place in self.places
        if holds_placeholder(edit.value) and given_again:
            return None
        try:
            resolved = self.resolve(edit)
        except SessionNotFound as gone:
            if given_again:
                return None
            resolved = self._as_it_went_out(edit, cut, gone, alone=alone)
        if holds_placeholder(resolved.value) and given_again:
            return None
        refuse_placeholders([resolved])
        return resolved

    def _as_it_went_out(self, edit: Edit, cut: int, gone: SessionNotFound, *, alone: bool) -> Edit:
        """The request that was sent has the value, if nothing else has changed the same place."""
        origin = edit.value
        assert isinstance(origin, StepReference), "only what is elsewhere can be gone"
        if alone and (found := self._found_in(edit, origin, cut)) is not None:
            return found
        raise SessionNotFound(
            f"{edit.written}, which the fork {self.recording.session.id} changed, cannot be applied again: "
            f"the session {origin.session} is no longer in the store. Nothing was run.",
            hint=f"give the value itself: --set {edit.place}=…",
        ) from gone

    def _found_in(self, edit: Edit, origin: StepReference, cut: int) -> Edit | None:
        # What was appended cannot be told from what it was appended to: together they are the new prompt.
        whole = SetSystem(origin) if isinstance(edit, AppendSystem) else edit
        try:
            value = value_for(whole, StepReference(self.recording.session.id, cut), self.request_at(cut), None)
        except UsageError:
            return None
        return replace(whole, value=ResolvedValue(origin=origin, value=value))


def inherited(
    recording: Recording,
    step: Step,
    own: Sequence[Edit],
    *,
    resolve: Callable[[Edit], Edit],
    request_at: Callable[[int], HttpRequest],
) -> InheritedEdits:
    """What holds at that step of what earlier forks had changed, and what comes too late for that.

    ``own`` is what the new fork changes: a value that is lost is not asked for where another is given. Raises
    RewindError where a value is lost.
    """
    before = recording.session.start.forked_from
    if before is None:
        return InheritedEdits()
    last = Edited(key=before.key, edits=before.edits, by_hand=before.by_hand)
    cuts = [(fork, _cut(recording, fork, is_last=fork is last)) for fork in (*before.earlier, last)]
    inheritance = _Inheritance(recording, step, frozenset(edit.place for edit in own), resolve, request_at)
    kept, by_hand = [], False
    for fork, cut in cuts:
        if cut is None or cut > step.index:
            inheritance.dropped += [*fork.edits, *([BY_HAND] if fork.by_hand else [])]
            continue
        there = [other for other, at in cuts if at == cut]
        places = [parse_edit(text).place for other in there for text in other.edits]
        # What was changed by hand may be the same place: then nothing is told apart.
        kept.append(inheritance.take(fork, cut, [] if any(other.by_hand for other in there) else places))
        by_hand = by_hand or (fork.by_hand and cut == step.index)
    return InheritedEdits(
        first=tuple(inheritance.first),
        by_hand=by_hand,
        earlier=tuple(inheritance.earlier),
        made_up=tuple(inheritance.made_up),
        kept=tuple(kept),
        dropped=tuple(inheritance.dropped),
    )


def _cut(recording: Recording, fork: Edited, *, is_last: bool) -> int | None:
    """The step at which those edits were made."""
    steps = recording.steps
    index = next((step.index for step in steps if step.request.agents_key == fork.key), None)
    if index is None and is_last:
        # The agent asked otherwise, and drift was allowed: it is the first step that was changed on its way.
        return next((step.index for step in steps if _was_changed(step)), None)
    return index


def _was_changed(step: Step) -> bool:
    """Whether the fork of which it is a step changed it, and not one before that."""
    tape = None if step.response is None else step.response.tape
    return tape == PUT_IN or (tape is None and step.request.asked_key is not None)
