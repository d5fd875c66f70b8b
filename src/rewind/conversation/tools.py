"""Tool calls happen inside the agent, yet the wire shows them: asked for in one answer, their results brought in a
later request of the same conversation.

A result belongs to a call if it stands behind it in a later history, under the id that the history gives the call
(clients rename calls, and some servers number them anew in every turn); where the API has no ids, by the tool's name
and the order. The duration is what passed between the end of the asking answer and the request that brought the
result: what the agent took, for all tools of that answer together. Where the agent recorded the tool's run itself (a
``tool_call`` step), that step has the true duration and the two are shown as one.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, takewhile

from rewind.conversation.message_digest import Digest, part_digest
from rewind.conversation.threads import ThreadPlace
from rewind.dataclass import dataclass
from rewind.model.message import Answered, Asked, Message, Role, ToolResult, ToolUse, results_in

_LATER_TURNS = 20
"""How many later calls of a conversation may bring a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call, from the asking to the result."""

    asked_in: int
    """The step whose answer asks for it."""
    number: int
    """Counts the tool calls of that answer, from 1: ``4.1`` is the first one asked for in step 4."""
    use: ToolUse
    result: ToolResult | None = None
    """``None`` when no later request brings it: the run ended, or the result went elsewhere."""
    ends: bool = False
    """Whether its conversation ends with it: structured output is asked for as a tool that has no result."""
    answered_in: int | None = None
    """The step whose request brings the result."""
    ms: float | None = None
    recorded_as: int | None = None
    """The step in which the agent itself recorded the run of this tool."""

    @property
    def label(self) -> str:
        return f"{self.asked_in}.{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTurn:
    """An LLM step as this module needs it."""

    index: int
    place: ThreadPlace
    began: float
    """When its request arrived; seconds since 1970."""
    ended: float | None
    """When its answer was complete."""
    asked: Asked
    answered: Answered | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """A tool's run that the agent recorded itself."""

    index: int
    ms: float | None
    use: ToolUse
    result: ToolResult | None


def with_recorded_runs(calls: Sequence[ToolCall], runs: Sequence[ToolRun]) -> tuple[ToolCall, ...]:
    """The calls seen on the wire, each with the run that the agent recorded of it: the next of that name and those
    arguments after it was asked for. Runs that no model asked for are steps of their own already."""
    found = list(calls)
    left = sorted(runs, key=_index)
    # Those that fit best choose first: a run with defaults besides must not be taken from the call it is of.
    for kind, fits in ((part_digest, _same), (_name, _with_defaults), (_name, _in_its_time)):
        waiting: dict[object, list[ToolRun]] = {}
        for run in left:
            waiting.setdefault(kind(run.use), []).append(run)
        for number, call in enumerate(found):
            if call.recorded_as is None and (group := waiting.get(kind(call.use))):
                first = bisect_right(group, call.asked_in, key=_index)
                at = next((at for at in range(first, len(group)) if fits(call, group[at])), None)
                if at is not None:
                    run = group.pop(at)
                    result = call.result or run.result
                    found[number] = replace(call, ms=run.ms, result=result, recorded_as=run.index)
        left = sorted((run for group in waiting.values() for run in group), key=_index)
    return tuple(found)


def _index(one: ToolTurn | ToolRun) -> int:
    return one.index


def _name(use: ToolUse) -> str:
    return use.name


def _same(_call: ToolCall, _run: ToolRun) -> bool:
    """Their digests are equal already."""
    return True


def _with_defaults(call: ToolCall, run: ToolRun) -> bool:
    """A function's own record names the arguments that the model left out, too."""
    asked, given = call.use.arguments, run.use.arguments
    if not isinstance(asked, dict) or not isinstance(given, dict):
        return False
    return all(name in given and given[name] == value for name, value in asked.items())


def _in_its_time(call: ToolCall, run: ToolRun) -> bool:
    """The agent may hand the arguments on in another form: then what ran between asking and answering is meant."""
    return call.answered_in is not None and run.index < call.answered_in


def tool_calls(turns: Sequence[ToolTurn]) -> tuple[ToolCall, ...]:
    """The tool calls of a run, in the order in which they were asked for."""
    by_thread: dict[int, list[ToolTurn]] = {}
    for turn in sorted(turns, key=_index):
        by_thread.setdefault(turn.place.thread, []).append(turn)
    return tuple(
        call
        for turn in turns
        if turn.answered is not None and turn.answered.tool_uses
        for call in _calls_of(turn, turn.answered.tool_uses, by_thread[turn.place.thread])
    )


def _calls_of(asking: ToolTurn, uses: Sequence[ToolUse], thread: Sequence[ToolTurn]) -> Iterator[ToolCall]:
    after = bisect_right(thread, asking.index, key=_index)
    later = thread[after : after + _LATER_TURNS]
    same: Counter[Digest | None] = Counter()
    for number, use in enumerate(uses, 1):
        digest = part_digest(use)
        call = ToolCall(asked_in=asking.index, number=number, use=use, ends=not later)
        found = _first_result(use, digest, same[digest], later)
        same[digest] += 1
        yield call if found is None else _with_result(call, asking, *found)


def _with_result(call: ToolCall, asking: ToolTurn, bringing: ToolTurn, result: ToolResult) -> ToolCall:
    ms = None if asking.ended is None else max(0.0, round((bringing.began - asking.ended) * 1000, 3))
    return replace(call, result=result, answered_in=bringing.index, ms=ms)


def _first_result(
    use: ToolUse, digest: Digest | None, nth: int, later: Iterable[ToolTurn]
) -> tuple[ToolTurn, ToolResult] | None:
    for turn in later:
        if (result := _result_in(turn.asked.messages, use, digest, nth)) is not None:
            return turn, result
    return None


def _result_in(messages: Sequence[Message], use: ToolUse, digest: Digest | None, nth: int) -> ToolResult | None:
    """The result that this history has of the call: behind the last turn in which the model asks for it.

    ``nth`` tells equal calls of one answer apart. A history that does not show the call, because the provider keeps
    it or the agent dropped it, can still bring its result by id.
    """
    results: list[ToolResult] = []
    asked: list[ToolUse] = []
    for message in chain(reversed(messages), [None]):
        if message is not None and message.role is Role.ASSISTANT:
            asked[:0] = [part for part in message.parts if isinstance(part, ToolUse) and not part.hosted]
            continue
        if asked:
            equal = [one for one in asked if one.name == use.name and part_digest(one) == digest]
            if nth < len(equal):
                return _of(equal[nth], asked, results)
            asked = []
        if message is not None:
            results[:0] = results_in((message,))
    return next((result for result in reversed(results) if use.id and result.id == use.id), None)


def _of(use: ToolUse, asked: Sequence[ToolUse], results: Sequence[ToolResult]) -> ToolResult | None:
    """By the id that this history gives the call; without ids, by the order of the calls to that tool."""
    if use.id and any(result.id for result in results):
        return next((result for result in results if result.id == use.id), None)
    before = sum(1 for one in takewhile(lambda one: one is not use, asked) if one.name == use.name)
    candidates = [result for result in results if not result.id and result.name in ("", use.name)]
    return candidates[before] if before < len(candidates) else None
