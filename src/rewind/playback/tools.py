"""What the agent's own code does, on a tape: tool calls and notes, which ask nothing of the network."""

from collections.abc import Callable, Iterable, Sequence

from rewind.match.call import Call
from rewind.model.http import Headers, HttpRequest, RequestHead, ResponseHead
from rewind.model.ids import blob_id
from rewind.model.step import Step, StepKind
from rewind.playback.decision import Decision, Forward, Policy, Serve, StopRun
from rewind.playback.tape import Tape
from rewind.providers import notes, tools

OWN_SCHEMES = (tools.SCHEME, notes.SCHEME)
"""Of calls that ask nothing of the network."""
_JSON: Headers = (("Content-Type", "application/json"),)
_REASONS = {200: "OK", 204: "No Content", 500: "Internal Server Error"}
_CLOCKS_GRAIN = 0.001
"""Seconds by which times of one moment may differ in a journal."""


def own_request_head(scheme: str, method: str, path: str) -> RequestHead:
    """Of a tool call or a note, in the form of a request."""
    return RequestHead(method=method, scheme=scheme, host="", port=0, target=f"/{path}", headers=_JSON)


def own_answer_head(status: int) -> ResponseHead:
    """200: what a tool returned; 500: how it failed; 204: a note is taken."""
    return ResponseHead(status=status, reason=_REASONS[status], headers=() if status == 204 else _JSON)


class ToolCallPolicy(Policy):
    """Policy around a policy: notes need not be on tape, and live tools are always run anew."""

    def __init__(
        self,
        policy: Policy,
        tape: Tape,
        *,
        live_tools: bool,
        before: int | None = None,
        over: Callable[[], str | None] = lambda: None,
    ) -> None:
        """``before``: only steps before that one are played. ``over`` says why nothing more is answered."""
        self._policy = policy
        self._tape = tape
        self._live = OWN_SCHEMES if live_tools else (notes.SCHEME,)
        self._before = before
        self._over = over

    def early(self, head: RequestHead) -> Forward | None:
        return self._policy.early(head)

    def at_a_glance(self, request: HttpRequest) -> Serve | None:
        return None if request.head.scheme in OWN_SCHEMES else self._policy.at_a_glance(request)

    def decide(self, call: Call) -> Decision:
        scheme = call.request.head.scheme
        if scheme not in self._live:
            return self._policy.decide(call)
        if (reason := self._over()) is not None and scheme == tools.SCHEME:
            return StopRun(reason=reason)
        # It happened again, whatever it answers now.
        step = self._tape.take(call.key, blob_id(call.request.body))
        if step is None or scheme == tools.SCHEME or (self._before is not None and step.index >= self._before):
            return Forward()
        return Serve(step=step)


def is_note(step: Step) -> bool:
    return step.request.kind in (StepKind.NOTE, StepKind.ERROR)


def askable_steps(tape: Tape, served: Sequence[Step]) -> list[Step]:
    """The steps that a run could have asked for: no notes, nor what a tool had asked for that was played, not run."""
    hidden = within_tools(tape.steps(), served)
    return [
        step for step in tape.steps() if not is_note(step) and (tape.played(step.index) or step.index not in hidden)
    ]


def within_tools(steps: Iterable[Step], played: Iterable[Step]) -> set[int]:
    """The steps that began and ended while one of these tools ran when it was recorded: the tool's own doing, as far as
    times can tell where several things go on at once."""
    ended = {step.index: step.ended for step in played if step.request.kind is StepKind.TOOL_CALL}
    latest, within = 0.0, set()
    for step in sorted(steps, key=lambda step: step.index) if ended else ():
        if step.ended <= latest + _CLOCKS_GRAIN:
            within.add(step.index)
        latest = max(latest, ended.get(step.index, 0.0))
    return within
