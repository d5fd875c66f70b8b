"""Steps of a tape that a request asks for by other names."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from rewind.dataclass import dataclass
from rewind.errors import DamagedStore
from rewind.match.call import Call
from rewind.match.outline import Outlines
from rewind.match.renaming import Renaming, WorkBudget
from rewind.model.http import HttpResponse
from rewind.model.names import Renamed
from rewind.model.step import Step
from rewind.playback.decision import Serve
from rewind.playback.tape import Tape
from rewind.playback.translation import AnswerNames, translated


@dataclass(frozen=True, slots=True)
class RenamedStep:
    """A step that a request asks for by other names."""

    step: Step
    names: tuple[Renamed, ...]

    def served(self, in_our_names: Callable[[HttpResponse], HttpResponse]) -> Serve:
        """Its answer. Without another name it was exact, by rules that were others when it was recorded."""
        if not self.names:
            return Serve(step=self.step)
        return Serve(step=self.step, renamed=self.names, in_our_names=in_our_names)


class RenamedSteps:
    """Finds the step whose request is the same but for names. Steps are looked at in their order, and only as far as
    one is needed."""

    def __init__(self, tape: Tape, call_of: Callable[[Step], Call], begin: Callable[[], Renaming]) -> None:
        """``begin`` is called with the first request that is not exact: mostly there is none."""
        self._tape = tape
        self._call_of = call_of
        self._begin = begin
        self._by_outline: dict[int, list[Step]] = defaultdict(list)
        self._indexes = iter(tape.indexes())
        self._exact: list[int] = []
        """Those that were asked for exactly, and not looked at since; steps of a long recording are not held."""

    @cached_property
    def _renaming(self) -> Renaming:
        return self._begin()

    @cached_property
    def _unplayed(self) -> list[int]:
        """The next one last; some of them were played since."""
        return list(self._tape.indexes())[::-1]

    @cached_property
    def _outlines(self) -> Outlines:
        return self._renaming.outlines()

    @cached_property
    def _names(self) -> AnswerNames:
        return AnswerNames(self._renaming.folders())

    def was_exact(self, step: Step) -> None:
        self._exact.append(step.index)

    def take(self, call: Call) -> RenamedStep | None:
        """The step, now played; ``None`` where there is none."""
        work = WorkBudget()
        # Most agents ask in the order of the recording: what comes first would be tried first anyway.
        first = self._first_unplayed()
        if first is not None and (found := self._tried(first, call, work)) is not None:
            return found
        for step in self._candidates(self._outlines.of(call)):
            if first is not None and step.index == first.index:
                continue
            if (found := self._tried(step, call, work)) is not None:
                return found
            if not work.spend(1):
                return None
        return None

    def _tried(self, step: Step, call: Call, work: WorkBudget) -> RenamedStep | None:
        self._look_at_exact()
        recorded = self._call(step)
        trial = None if recorded is None else self._renaming.trial(recorded, call, work)
        if trial is None:
            return None
        self._names.update(trial.translated)
        return RenamedStep(self._tape.take_step(step.index), self._renaming.keep(trial, call))

    def _first_unplayed(self) -> Step | None:
        while self._unplayed and self._tape.played(self._unplayed[-1]):
            self._unplayed.pop()
        return self._step(self._unplayed[-1]) if self._unplayed else None

    def _look_at_exact(self) -> None:
        for index in self._exact:
            step = self._step(index)
            recorded = None if step is None else self._call(step)
            if recorded is not None:
                self._renaming.was_exact(recorded)
        self._exact.clear()

    def frame_names(self, recorded: Any, sent: Any) -> tuple[Renamed, ...] | None:
        """The names in which two WebSocket messages differ, which hold from then on."""
        return self._renaming.values(recorded, sent)

    def translated(self, response: HttpResponse) -> HttpResponse:
        """An answer of the recording in the names of this run."""
        return translated(response, self._names)

    def _candidates(self, outline: int) -> Iterator[Step]:
        """Unplayed steps of that outline, in their order."""
        known = self._by_outline[outline]
        known[:] = [step for step in known if not self._tape.played(step.index)]
        yield from tuple(known)
        for index in self._indexes:
            step = None if self._tape.played(index) else self._step(index)
            call = None if step is None else self._call(step)
            if step is None or call is None:
                continue
            found = self._outlines.of(call)
            self._by_outline[found].append(step)
            if found == outline:
                yield step

    def _step(self, index: int) -> Step | None:
        """``None`` for one that cannot be read."""
        try:
            return self._tape.step(index)
        except DamagedStore:
            return None

    def _call(self, step: Step) -> Call | None:
        """``None`` for a step whose request cannot be read: nothing can be compared with it."""
        try:
            return self._call_of(step)
        except DamagedStore:
            return None
