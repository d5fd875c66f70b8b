"""The edits of a fork at work: at the step they are made for, and on, wherever they still fit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rewind.edit.apply import Holding, answer_for, edited, held_edits
from rewind.edit.grammar import Edit, SetResponse
from rewind.edit.unissued import Unissued
from rewind.model.http import HttpRequest, HttpResponse
from rewind.runs.fork.manual_edits import ManualEdit, SentBody, merged

__all__ = ["EarlierEdits", "ForkEdits", "ManualEdit", "merged"]


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
        self._unissued = Unissued()
        self._by_hand = by_hand
        self._earlier = tuple(earlier)
        self._names = names or {}
        self._check = check
        self._inherited: dict[int, Holding] = {}
        """By their place among the earlier ones."""
        self._own: Holding | None = None

    @property
    def substitutes(self) -> bool:
        return self._response is not None

    def played(self, index: int) -> Callable[[HttpRequest], None] | None:
        found = [at for at, one in enumerate(self._earlier) if one.step == index]
        wanted = bool(found) or index in self._made_up
        return (lambda request: self._inherit(found, index, request)) if wanted else None

    def _inherit(self, found: Sequence[int], index: int, request: HttpRequest) -> None:
        if index in self._made_up:
            self._unissued.add(self._as_before(request), self._made_up[index])
        for at in found:
            self._inherited[at] = held_edits(
                self._as_before(request), self._earlier[at].edits, names=self._names
            )

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
        self._own = held_edits(request, (*self._first, *self._edits), names=self._names)
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
