"""Fork: the steps before one are played, that one goes live with its edits, and so does all that follows.

It goes by step, not by count: what a request matches decides, in whatever order parallel calls come. A prefix step
that is asked late is still played; a later step that is asked early goes live as it is.

Whoever asks the step once more while it has no good answer means the same request, edits and all. After a good answer
an equal request is another call: agents ask whether something is done, again and again.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from rewind.match.call import Call
from rewind.match.miss import Miss
from rewind.match.nearest import RecordedCall, nearest_call
from rewind.match.renaming import Renaming
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.ids import BlobId, MatchKey, blob_id
from rewind.model.step import Step, StepKind
from rewind.playback.decision import Decision, Forward, Policy, Put, Refuse, Serve, StopRun
from rewind.playback.policies import RecordedCalls
from rewind.playback.renamed_steps import RenamedSteps
from rewind.playback.tape import Tape


class Alterations(Protocol):
    """What a fork does on the way. Each is given the request as it really came, and may raise ``RewindError``."""

    @property
    def substitutes(self) -> bool:
        """Whether the step is answered by ``answer`` and asks nobody."""
        ...

    def played(self, index: int) -> Callable[[HttpRequest], None] | None:
        """Who wants to see the request that this prefix step answers."""
        ...

    def before(self, request: HttpRequest) -> HttpRequest:
        """What goes out before the step was asked."""
        ...

    def at_the_step(self, request: HttpRequest) -> HttpRequest:
        """What goes out as the step."""
        ...

    def afterwards(self, request: HttpRequest) -> HttpRequest:
        """What goes out later: edits hold on where they still fit."""
        ...

    def answer(self, request: HttpRequest) -> HttpResponse: ...


class ForkAt(Policy):
    """Plays the steps before ``at``, and lets the rest go live.

    The tape holds all steps of the recording; ``recall`` gives one of them as a call, to explain a miss.
    """

    def __init__(
        self,
        tape: Tape,
        recall: Callable[[Step], Call],
        alterations: Alterations,
        *,
        session: str,
        at: int,
        renaming: Callable[[], Renaming] | None = None,
        lenient: Callable[[], Renaming] | None = None,
        on_miss_live: bool = False,
        allow_drift: bool = False,
    ) -> None:
        self.over: str | None = None
        """Why nothing more is answered; set from outside."""
        self.askings: list[int] = []
        """The steps of the new session that ask what the step asked: more than one where the agent asks again."""
        self.drifted: list[int] = []
        """The recorded steps for which a changed request was taken."""
        self.missed: list[Call] = []
        """What came before the step and was not recorded, refused or not."""
        self._tape = tape
        self._calls = RecordedCalls(tape, recall, session, lenient=lenient, fork_at=at)
        self._renamed = None if renaming is None else RenamedSteps(tape, self._calls.call, renaming)
        self._alterations = alterations
        self._at = at
        self._on_miss_live = on_miss_live
        self.allow_drift = allow_drift
        self._key: MatchKey | None = None
        self._body: BlobId | None = None
        self._under_way: set[int] = set()
        """Of the askings."""
        self._answered = False

    @property
    def was_asked(self) -> bool:
        return bool(self.askings)

    def ended(self, index: int, *, good: bool) -> None:
        """A step of the new session was answered, well or badly."""
        self._under_way.discard(index)
        self._answered = self._answered or (good and index in self.askings)

    def decide(self, call: Call) -> Decision:
        if self.over is not None:
            return StopRun(reason=self.over)
        body = blob_id(call.request.body)
        open_still = call.key == self._key and not self._answered
        if open_still and body == self._body:
            return self._ask(call)
        step = self._tape.take(call.key, body)
        named: Serve | None = None
        if step is None and self._renamed is not None and (found := self._renamed.take(call)) is not None:
            step = found.step
            named = found.served(self._renamed.translated)
        elif step is not None and self._renamed is not None:
            self._renamed.was_exact(step)
        drifted = step is None and self.allow_drift and (step := self._drift(call)) is not None
        if step is not None and step.index < self._at:
            return replace(named or Serve(step=step, drifted=drifted), seen=self._alterations.played(step.index))
        if step is not None and step.index == self._at:
            return self._cut(call, body)
        is_tool = call.provider.kind is StepKind.TOOL_CALL
        if step is not None and is_tool and not self.was_asked:
            return named or Serve(step=step, drifted=drifted)  # run before the step, it would do things once more
        # A client that gave up sends the very same bytes; other ones, while the first are under way, are a twin's.
        if open_still and not self._under_way:
            return self._ask(call)
        if self.was_asked:
            # Edits are of what models are asked; what the agent asks of its own code stays as it is.
            return Forward(change=None if is_tool else self._alterations.afterwards)
        if step is None:
            self.missed.append(call)
            if not self._on_miss_live:
                return self._refuse(call)
        return Forward(change=None if is_tool else self._alterations.before)

    def _cut(self, call: Call, body: BlobId) -> Decision:
        self._key, self._body = call.key, body
        if self._alterations.substitutes:
            self.askings.append(call.index)
            self._answered = True
            return Put(answer=self._alterations.answer)
        return self._ask(call)

    def _ask(self, call: Call) -> Forward:
        self.askings.append(call.index)
        self._under_way.add(call.index)
        return Forward(change=self._alterations.at_the_step)

    def _drift(self, call: Call) -> Step | None:
        """The unplayed step nearest to the call, if its conversation is as long as the call's."""
        left = {recorded.index: recorded for recorded in self._calls.recorded(self._tape.unplayed())}
        nearest = self._calls.explain(call, list(left.values())).servable
        if nearest is None or _length(left[nearest].call) != _length(call):
            return None
        if nearest <= self._at:
            self.drifted.append(nearest)
        return self._tape.take_step(nearest)

    def _refuse(self, call: Call) -> Refuse:
        miss = self._calls.explain(call, self._calls.recorded(self._tape.steps()))
        return Refuse(reason=miss.reason, miss=miss)

    def unasked(self) -> tuple[int, ...]:
        """The prefix steps that were not asked for."""
        return tuple(step.index for step in self._tape.unplayed() if step.index < self._at)

    def nearest_miss(self, step: Step) -> Miss | None:
        """How the missed call that comes closest to that step differs from it; ``None`` where none was missed."""
        wanted = self._calls.call(step)
        pool = [RecordedCall(index=at, call=call, played=False) for at, call in enumerate(self.missed)]
        nearest = nearest_call(wanted, pool)
        if nearest is None:
            return None
        only = [RecordedCall(index=step.index, call=wanted, played=False)]
        return self._calls.explain(nearest.call, only)


def _length(call: Call) -> int:
    return len(call.provider.reader.asked(call.request).messages)
