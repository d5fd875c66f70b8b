"""Why did two runs part? Decided from what differs, in a fixed order of evidence; nothing is guessed.

A cause is something that was not the same *before* the answers parted: what was asked for, said, brought or kept. If
nothing was, the model itself answered otherwise. All causes are named; their order is that of
:class:`CauseKind`, from what was chosen for the whole run to what happened in it.
"""

from collections.abc import Hashable, Iterator, Sequence
from enum import StrEnum

from rewind.compare.align import Row
from rewind.compare.comparison import Comparison, Relation
from rewind.compare.delta import LASTING, Aspect, Difference
from rewind.compare.run import Move
from rewind.conversation.message_digest import json_text
from rewind.conversation.sketch import NOTHING, Sketch, settings_of
from rewind.dataclass import dataclass
from rewind.model.message import results_in


class CauseKind(StrEnum):
    """In the order in which they are suspected."""

    MODEL = "model changed"
    SNAPSHOT = "model snapshot changed"
    SYSTEM = "system prompt changed"
    TOOLS = "tool definitions changed"
    PARAMETERS = "parameters changed"
    INPUT = "user input changed"
    TOOL_OUTPUT = "tool output changed"
    HISTORY = "history changed"
    ERROR = "provider error or retry"
    PATH = "path changed"
    SAMPLING = "same request, different answer"


KIND_OF_ASPECT = {
    **{aspect: CauseKind[aspect.name] for aspect in Aspect if aspect.name in CauseKind.__members__},
    Aspect.STATUS: CauseKind.ERROR,
}
"""In the order of the evidence. What an answer says is never a cause."""
LASTING_KINDS = frozenset(KIND_OF_ASPECT[aspect] for aspect in LASTING)
"""Causes that, once there, are there in every later step."""
_ORDER = {kind: at for at, kind in enumerate(CauseKind)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One thing that was different before the answers parted."""

    kind: CauseKind
    since: Row
    """Where it is first seen."""
    differences: tuple[Difference, ...] = ()
    evidence: str = ""
    """What else speaks for it, in a sentence."""


@dataclass(frozen=True, slots=True)
class RuledOut:
    """Something that was the same."""

    kind: CauseKind
    fact: str
    """How it was in both."""


def causes_of(comparison: Comparison, row: Row) -> tuple[Cause, ...]:
    """Why two answers differ that belong together, or why a move was made by one run only."""
    if row.a is None or row.b is None:
        return _ranked([*_causes_of_path(comparison, row)])
    relation = comparison.relation(row)
    found = [*_at(comparison, row, relation), *_before(comparison, row)]
    perhaps = [*_noise(comparison, row, may_be_fact=True)]
    if not found and not perhaps:
        # The last that can be suspected: what is noise as a rule.
        return (_sampling(comparison, row), *_ranked([*_noise(comparison, row, may_be_fact=False)]))
    return (*_ranked(found), *_ranked(perhaps))


def _ranked(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """One for each kind and each thing, the likeliest first; of equal kind the one that was there first."""
    kept: dict[Hashable, Cause] = {}
    for cause in causes:
        key = cause.kind, tuple((one.place, one.after) for one in cause.differences)
        kept.setdefault(key, cause)
    return tuple(sorted(kept.values(), key=lambda cause: _ORDER[cause.kind]))


def _at(comparison: Comparison, row: Row, relation: Relation) -> Iterator[Cause]:
    """What differs at the row itself."""
    differences = comparison.differences(row)
    for aspect, kind in KIND_OF_ASPECT.items():
        if aspect not in relation.changed:
            continue
        since = _first_seen(comparison, row, aspect) if aspect in LASTING else row
        found = tuple(one for one in differences if one.aspect is aspect and one.noise is None)
        evidence = _tries(row) if kind is CauseKind.ERROR else ""
        yield Cause(kind=kind, since=since, differences=found, evidence=evidence)


def _before(comparison: Comparison, row: Row) -> Iterator[Cause]:
    """What came into the conversation earlier and stayed there, though the answers were still the same."""
    for earlier in comparison.earlier(row):
        relation = comparison.relation(earlier)
        differences = comparison.differences(earlier) if relation.changed else ()
        # An answer that failed names no model: what answered before it is known from there.
        for aspect in (Aspect.SNAPSHOT, Aspect.INPUT, Aspect.TOOL_OUTPUT, Aspect.HISTORY):
            if aspect in relation.changed:
                found = tuple(one for one in differences if one.aspect is aspect and one.noise is None)
                yield Cause(kind=KIND_OF_ASPECT[aspect], since=earlier, differences=found)


def _first_seen(comparison: Comparison, row: Row, aspect: Aspect) -> Row:
    """The first row in which either run has the value that it has here."""
    wanted = _values(row, aspect)
    same = (
        one for one in comparison.rows if one.a is not None and one.b is not None and _values(one, aspect) == wanted
    )
    return next(same, row)


def _values(row: Row, aspect: Aspect) -> tuple[str | None, ...]:
    return tuple(None if move is None else move.lasting_value(aspect) for move in (row.a, row.b))


def _tries(row: Row) -> str:
    """Told where either run needed more than one."""
    good, bad = (len(move.failures) + 1 for move in row.moves)
    return f"tries: {good} in the good run, {bad} in the bad one" if max(good, bad) > 1 else ""


def _noise(comparison: Comparison, row: Row, *, may_be_fact: bool) -> Iterator[Cause]:
    """What was noise as long as the answers agreed. Now that they part it may be why."""
    for place in [*comparison.earlier(row), row]:
        for aspect, kind in KIND_OF_ASPECT.items():
            found = tuple(
                one
                for one in comparison.differences(place)
                if one.aspect is aspect and one.noise is not None and one.noise.may_be_fact is may_be_fact
            )
            if found:
                kinds = " and ".join(dict.fromkeys(str(one.noise) for one in found))
                yield Cause(kind=kind, since=place, differences=found, evidence=f"nothing but {kinds} differs")


def _sampling(comparison: Comparison, row: Row) -> Cause:
    """Nothing differs but what the model says: at this step, or before it in words that the run did not turn on."""
    reworded = [one for one in comparison.earlier(row) if comparison.relation(one).reworded]
    since = reworded[0] if reworded else row
    assert row.b is not None, "two moves are compared"
    settings = settings_of(comparison.b.asked(row.b.index), comparison.b.provider(row.b.index))
    facts = [f"{name} {json_text(settings[name])}" for name in ("temperature", "top_p", "seed") if name in settings]
    if not any(name in settings for name in ("temperature", "top_p")):
        facts.append("no temperature set: the provider's default")
    facts += [tries] if (tries := _tries(row)) else []
    return Cause(kind=CauseKind.SAMPLING, since=since, evidence=", ".join(facts))


def _causes_of_path(comparison: Comparison, row: Row) -> Iterator[Cause]:
    """A move that only one run made: what had changed by then, and that the agent went another way."""
    before = _last_shared(comparison, row)
    if before is not None:
        yield from _at(comparison, before, comparison.relation(before))
        yield from _before(comparison, before)
    yield Cause(kind=CauseKind.PATH, since=row)


def _last_shared(comparison: Comparison, row: Row) -> Row | None:
    """The row before it in which both runs made a move of that conversation, or of any if they share none."""
    shared = []
    for one in comparison.rows:
        if one is row:
            break
        if one.a is not None and one.b is not None and one.a.sketch is not None:
            shared.append(one)
    ours = [one for one in shared if any(a == b for a, b in zip(one.thread, row.thread, strict=True) if b)]
    candidates = ours or shared
    return candidates[-1] if candidates else None


# ── what is ruled out ────────────────────────────────────────────────────────────────────────────────────────


def ruled_out(comparison: Comparison, row: Row, causes: Sequence[Cause]) -> tuple[RuledOut, ...]:
    """What was the same when the answers parted."""
    if row.a is None or row.b is None or row.a.sketch is None or row.b.sketch is None:
        return ()
    suspected = {cause.kind for cause in causes}
    facts = _facts(comparison, row.a, row.b, row.b.sketch)
    return tuple(RuledOut(kind, fact) for kind, fact in facts if kind not in suspected)


def _facts(comparison: Comparison, other: Move, move: Move, sketch: Sketch) -> Iterator[tuple[CauseKind, str]]:
    asked = comparison.b.asked(move.index)
    yield CauseKind.MODEL, asked.model or "none named"
    if move.model_answered == other.model_answered != asked.model and move.model_answered:
        yield CauseKind.SNAPSHOT, move.model_answered
    if sketch.system != NOTHING:
        yield CauseKind.SYSTEM, f"{len(''.join(map(_letters, asked.system))):,} characters"
    if asked.tools:
        yield CauseKind.TOOLS, f"{len(asked.tools)}"
    settings = settings_of(asked, comparison.b.provider(move.index))
    if settings:
        shown = ", ".join(f"{name} {json_text(value)}" for name, value in settings.items())
        yield CauseKind.PARAMETERS, shown
    if asked.messages:
        yield CauseKind.INPUT, ""
    results = sum(1 for _ in results_in(asked.messages))
    if results:
        yield CauseKind.TOOL_OUTPUT, f"{results}"
    yield CauseKind.HISTORY, f"{len(asked.messages)} messages"


def _letters(part: object) -> str:
    return str(getattr(part, "text", ""))
