"""What an answer decides, apart from how it words it.

An answer that asks for tools decides which, with which arguments; in which order it names them does not count, and
the words beside them are prose. An answer without tools decides by what it says: see :mod:`rewind.compare.wording`.
``docs/comparing.md`` has the whole of it on one page.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any

from rewind.compare.arguments import canonical, drawn_ids, less_drawn, value_changes
from rewind.compare.stance import stance_of
from rewind.compare.text_facts import FactKind, facts_of
from rewind.compare.wording import Change, ChangeKind, Weight, excerpt, is_asking, text_changes
from rewind.dataclass import dataclass
from rewind.model.message import Answered, Media, Refusal, ToolUse, Vectors

__all__ = [
    "CallDecision",
    "Change",
    "ChangeKind",
    "Decision",
    "DecisionDifference",
    "Ids",
    "Weight",
    "compare_decisions",
    "decision_classes",
    "decision_of",
]


@dataclass(frozen=True)
class CallDecision:
    """A tool that is asked for."""

    tool: str
    arguments: Any

    @cached_property
    def signature(self) -> Hashable:
        return self.tool, canonical(self.arguments)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What one answer decides."""

    calls: tuple[CallDecision, ...] = ()
    hosted: frozenset[str] = frozenset()
    """Tools that the provider ran within the answer."""
    text: str = ""
    """The words; those beside tool calls decide nothing."""
    finish: str = ""
    """Why the model stopped, in one word for all providers; empty for the usual end."""
    failed: str = ""
    """How the exchange failed; empty where it did not."""
    refuses: bool = False
    """Whether the provider says that the model declined."""
    media: tuple[str, ...] = ()
    """Pictures, sounds and vectors in the answer, by kind."""

    @cached_property
    def signature(self) -> Hashable:
        """Equal for the same decision, by all that is exact: tools, arguments that count, facts of the text, ending.

        Unequal signatures may still be one decision, said otherwise: :func:`compare_decisions` tells.
        """
        if self.failed:
            return ("failed", self.failed)
        if self.calls:
            return ("calls", frozenset(Counter(call.signature for call in self.calls).items()))
        return ("text", self.finish, self.refuses, self.hosted, self.media, self._text_signature)

    @cached_property
    def tools(self) -> Hashable:
        """Coarser: only which tools, or how the answer ends."""
        if self.failed:
            return ("failed",)
        if self.calls:
            return ("calls", tuple(sorted(call.tool for call in self.calls)))
        kind = "json" if self.structure is not None else "text" if self.text else "empty"
        return (kind, self.finish, self.refuses, self.media)

    @cached_property
    def structure(self) -> Any:
        """The JSON value that the text is; ``None`` where it is none."""
        return _json_of(self.text)

    @cached_property
    def _text_signature(self) -> Hashable:
        if self.structure is not None:
            return canonical(self.structure)
        text = less_drawn(self.text)
        facts, stance = facts_of(text), stance_of(text)
        exact = frozenset(one.key for one in facts.facts if one.kind is not FactKind.NAME)
        words = facts.stems if len(facts.stems) <= 3 else None
        return (facts.language, exact, stance.heads, stance.opening, stance.refuses, is_asking(text), words)


@dataclass(frozen=True, slots=True)
class DecisionDifference:
    """How two decisions differ."""

    weight: Weight
    changes: tuple[Change, ...] = ()
    """Decisive ones first."""


_SAME = DecisionDifference(Weight.SAME)
_FINISHES = {
    "length": "length max_tokens max_output_tokens model_length max_token error_max_tokens",
    "filtered": "content_filter safety recitation blocklist prohibited_content spii guardrail_intervened",
    "refusal": "refusal",
    "paused": "pause_turn",
    "error": "error error_toxic malformed_function_call",
}
_FINISH_OF = {word: name for name, words in _FINISHES.items() for word in words.split()}


def decision_of(answered: Answered | None, failed: str = "") -> Decision:
    """What an answer decides; ``failed`` is how the exchange failed, in a word or two."""
    if answered is None:
        return Decision(failed=failed or "no answer")
    if failed or answered.error:
        return Decision(failed=failed or excerpt(answered.error or ""))
    uses = [part for part in answered.parts if isinstance(part, ToolUse)]
    return Decision(
        calls=tuple(sorted(_calls(uses), key=lambda call: call.tool)),
        hosted=frozenset(use.name for use in uses if use.hosted),
        text=answered.text,
        finish=_FINISH_OF.get(answered.stop.lower(), ""),
        refuses=any(isinstance(part, Refusal) for part in answered.parts),
        media=tuple(sorted(_media(answered))),
    )


def _calls(uses: Sequence[ToolUse]) -> Iterator[CallDecision]:
    return (CallDecision(use.name, use.arguments) for use in uses if not use.hosted)


def _media(answered: Answered) -> Iterator[str]:
    for part in answered.parts:
        if isinstance(part, Media):
            yield part.kind
        elif isinstance(part, Vectors):
            yield f"{part.count} vectors of {part.dimensions or '?'}"


def _json_of(text: str) -> Any:
    stripped = text.strip()
    fenced = re.fullmatch(r"```(?:json)?\s*\n(.*?)\n?```", stripped, re.DOTALL)
    stripped = fenced[1].strip() if fenced else stripped
    if stripped[:1] not in ("{", "[") or stripped[-1:] not in ("}", "]"):
        return None
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError):
        return None


Ids = frozenset[str]

# ── comparing ────────────────────────────────────────────────────────────────────────────────────────────────


def compare_decisions(
    before: Decision, after: Decision, both_knew: Callable[[Ids, Ids], bool] | None = None
) -> DecisionDifference:
    """How much two answers differ, and in what.

    An id that looks drawn by the run was chosen if both models knew it. ``both_knew`` is asked where such ids differ:
    those of the first answer alone, and those of the second.
    """
    try:
        if before == after:
            return _SAME
    except RecursionError:  # a stranger's arguments, nested without end
        return DecisionDifference(
            Weight.DECISIVE, (Change(ChangeKind.VALUE, "nested too deeply", "nested too deeply"),)
        )
    changes = sorted(_changes(before, after), key=lambda one: one.weight is not Weight.DECISIVE)
    if both_knew is not None and (not changes or changes[0].weight is not Weight.DECISIVE):
        chosen = _chosen_id(before, after, both_knew)
        changes = [chosen, *changes] if chosen is not None else changes
    if not changes:
        return _SAME
    return DecisionDifference(changes[0].weight, tuple(changes))


def _chosen_id(before: Decision, after: Decision, both_knew: Callable[[Ids, Ids], bool]) -> Change | None:
    ours, theirs = (frozenset().union(*(drawn_ids(call.arguments) for call in one.calls)) for one in (before, after))
    gone, come = ours - theirs, theirs - ours
    if not gone or not come or not both_knew(gone, come):
        return None
    return Change(ChangeKind.ID, min(gone), min(come), before.calls[0].tool)


def decision_classes(decisions: Sequence[Decision]) -> list[int]:
    """For each decision the number of its class: one class holds what is the same in other words."""
    first: list[Decision] = []
    known: dict[Hashable, int] = {}
    found: list[int] = []
    for one in decisions:
        number = known.get(one.signature)
        if number is None:
            alike = (at for at, other in enumerate(first) if _is_alike(other, one))
            number = next(alike, len(first))
            if number == len(first):
                first.append(one)
            known[one.signature] = number
        found.append(number)
    return found


def _is_alike(one: Decision, other: Decision) -> bool:
    return one.tools == other.tools and compare_decisions(one, other).weight is not Weight.DECISIVE


def _changes(before: Decision, after: Decision) -> Iterator[Change]:
    if before.failed or after.failed:
        if before.failed != after.failed:
            yield Change(ChangeKind.STATUS, before.failed or "answered", after.failed or "answered")
        return
    if before.finish != after.finish:
        yield Change(ChangeKind.FINISH, before.finish or "stop", after.finish or "stop")
    if before.calls or after.calls:
        yield from _call_changes(before.calls, after.calls)
        if before.text != after.text:
            yield Change(ChangeKind.WORDS, excerpt(before.text), excerpt(after.text), weight=Weight.PROSE)
        return
    if before.refuses != after.refuses:
        yield Change(ChangeKind.REFUSAL, *(("refuses", "answers") if before.refuses else ("answers", "refuses")))
    if before.hosted != after.hosted:
        yield Change(ChangeKind.TOOL, _names(before.hosted - after.hosted), _names(after.hosted - before.hosted))
    if before.media != after.media:
        yield Change(ChangeKind.VALUE, _names(before.media), _names(after.media))
    yield from _answer_changes(before, after)


def _names(names: Sequence[str] | frozenset[str]) -> str | None:
    return ", ".join(sorted(names)) or None


def _answer_changes(before: Decision, after: Decision) -> Iterator[Change]:
    if before.text == after.text:
        return
    if before.structure is not None and after.structure is not None:
        found = value_changes(before.structure, after.structure, "", ChangeKind.VALUE)
        yield from found
        return
    if not before.text.strip() or not after.text.strip():
        yield Change(ChangeKind.WORDS, excerpt(before.text) or None, excerpt(after.text) or None)
        return
    yield from text_changes(less_drawn(before.text), less_drawn(after.text), is_answer=True)


def _call_changes(before: Sequence[CallDecision], after: Sequence[CallDecision]) -> Iterator[Change]:
    """Calls to one tool belong together as they resemble each other most, whatever their order."""
    gone: list[str] = []
    come: list[str] = []
    for tool in dict.fromkeys(call.tool for call in (*before, *after)):
        ours, theirs = ([call for call in calls if call.tool == tool] for calls in (before, after))
        for one in [call for call in ours if call in theirs]:
            if one in theirs:
                ours.remove(one)
                theirs.remove(one)
        pairs = _pairs(ours, theirs, tool)
        for _, _, changes in pairs:
            yield from changes
        gone += [tool] * (len(ours) - len(pairs))
        come += [tool] * (len(theirs) - len(pairs))
    if gone or come:
        yield Change(ChangeKind.TOOL, _counted(gone), _counted(come))


def _pairs(
    ours: Sequence[CallDecision], theirs: Sequence[CallDecision], tool: str
) -> list[tuple[int, int, list[Change]]]:
    """The calls that resemble each other most, each given away once; very many are taken in order."""
    if len(ours) * len(theirs) > _MOST_RIVALS:
        met = enumerate(zip(ours, theirs, strict=False))
        return [(at, at, value_changes(one.arguments, other.arguments, tool)) for at, (one, other) in met]
    rivals = [
        (value_changes(one.arguments, other.arguments, tool), i, j)
        for i, one in enumerate(ours)
        for j, other in enumerate(theirs)
    ]
    found: list[tuple[int, int, list[Change]]] = []
    taken: tuple[set[int], set[int]] = set(), set()
    for changes, i, j in sorted(rivals, key=lambda rival: _cost(rival[0])):
        if i not in taken[0] and j not in taken[1]:
            found.append((i, j, changes))
            taken[0].add(i)
            taken[1].add(j)
    return found


_MOST_RIVALS = 400
"""Pairs of calls to one tool that are compared with each other."""


def _cost(changes: Sequence[Change]) -> int:
    return sum(10 if one.weight is Weight.DECISIVE else 1 for one in changes)


def _counted(names: Sequence[str]) -> str | None:
    counts = Counter(names)
    return ", ".join(name + (f" ×{count}" if count > 1 else "") for name, count in counts.items()) or None
