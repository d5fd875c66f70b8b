"""Requests that wait for their turn, while somebody looks at one of them. The gateway goes on meanwhile.

What a request gets is decided when it comes, so that the tape is asked in order of arrival; only carrying that out
waits. Whoever gives up waiting leaves its step on the tape, for it will ask again.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue

from rewind.dataclass import dataclass
from rewind.gateway.exchange import Decided, Hold, Verdict
from rewind.match.call import Call
from rewind.model.clock import Clock
from rewind.model.step import Step
from rewind.playback.decision import Decision, Serve
from rewind.playback.policies import Release, StopRule


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Held:
    """A request that waits, and what it will get."""

    call: Call
    """As it may be shown: redacted."""
    decision: Decision
    carry: Callable[[], Decided]
    decided: "asyncio.Future[Decided]"

    @property
    def step(self) -> Step | None:
        """The recorded step that will answer it."""
        return self.decision.step if isinstance(self.decision, Serve) else None


class HeldRequests:
    """Lets requests go on, or has them wait in the order in which they came."""

    def __init__(
        self, stop_rule: StopRule, *, put_back: Callable[[Step], None], clock: Clock, pace: float = 0.0
    ) -> None:
        self._stop_rule = stop_rule
        self._put_back = put_back
        self._clock = clock
        self._pace = pace
        self._waiting: deque[Held] = deque()
        """The first of them is the one that somebody looks at."""
        self._stops: SimpleQueue[Held] = SimpleQueue()
        self._free = False
        self._last_due = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    # ── on the gateway's thread ──────────────────────────────────────────────────────────────────────────

    def take(self, call: Call, decision: Decision, carry: Callable[[], Decided]) -> Verdict:
        """A request has come: its verdict, or the promise of one."""
        step = decision.step if isinstance(decision, Serve) else None
        release = Release.AT_ONCE if self._free and not self._waiting else self._stop_rule.release(step)
        if release is Release.AT_ONCE or (release is Release.IN_ORDER and not self._waiting):
            self._answering(step)
            return carry()
        self._loop = asyncio.get_running_loop()
        held = Held(call=call, decision=decision, carry=carry, decided=self._loop.create_future())
        held.decided.add_done_callback(lambda decided: self._given_up(held) if decided.cancelled() else None)
        self._waiting.append(held)
        if len(self._waiting) == 1:
            self._stops.put(held)
        return Hold(held.decided)

    def _answering(self, step: Step | None) -> None:
        if step is not None and step.response is not None:
            due = self._clock.ticks() + round(step.response.ms * 1000 * self._pace)
            self._last_due = max(self._last_due, due)

    def _given_up(self, held: Held) -> None:
        if held.step is not None:
            self._put_back(held.step)

    def _release(self) -> None:
        """The one that was looked at is let go, and those behind it up to the next one to look at."""
        looked_at = self._waiting[0]
        self._let_go()
        while self._waiting:
            held = self._waiting[0]
            # One whose client had given up is asked again by it: that was looked at.
            known = held.decided.cancelled() or held.step is looked_at.step
            if not (self._free or known) and self._stop_rule.release(held.step) is Release.LOOKED_AT:
                self._stops.put(held)
                return
            self._let_go()

    def _let_go(self) -> None:
        held = self._waiting.popleft()
        if held.decided.done():
            return  # its client has given up
        self._answering(held.step)
        try:
            held.decided.set_result(held.carry())
        except Exception as error:  # noqa: BLE001  a fault of ours: the connection has to hear of it
            held.decided.set_exception(error)

    # ── on the thread of whoever looks ───────────────────────────────────────────────────────────────────

    def next(self, seconds: float) -> Held | None:
        """The next request to look at; ``None`` when none came in that time."""
        try:
            return self._stops.get(timeout=seconds)
        except Empty:
            return None

    def go_on(self, *, freely: bool = False) -> None:
        """The request that was looked at gets what was decided; ``freely``: so do all others, from now on."""
        self._free = self._free or freely
        assert self._loop is not None, "something was held"
        with contextlib.suppress(RuntimeError):  # the gateway has ended
            self._loop.call_soon_threadsafe(self._release)

    @property
    def answering(self) -> bool:
        """Whether a recorded answer that is played slowly is still under way."""
        return self._clock.ticks() < self._last_due

    def close(self) -> None:
        """The gateway has ended: what still waits was not played."""
        for held in self._waiting:
            self._given_up(held)
