"""Why did two runs part? Decided from what differs, in a fixed order of evidence; nothing is guessed.

A cause is something that was not the same *before* the answers parted: what was asked for, said, brought or kept. If
nothing was, the model itself answered otherwise. All causes are named. First stands what the parted answer takes up
(:mod:`rewind.compare.attribution`), then what else changed, in the order of :class:`CauseKind`; what changes in every
run stands last. See :class:`Standing`, and ``docs/comparing.md``.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import IntEnum, StrEnum

from rewind.compare.align import Row
from rewind.compare.attribution import DecisionWords, Use
from rewind.compare.comparison import FOLDER_NAME, Comparison, heard
from rewind.compare.default_parameters import is_idle
from rewind.compare.delta import LASTING, Aspect, Difference
from rewind.compare.provenance import SAID_ONCE, is_reworded, lost_history, model_calls, origin_of, path_reason
from rewind.compare.run import answer_status, is_held_elsewhere, status_of
from rewind.compare.tool_results import ResultChange, result_change
from rewind.compare.turn import turn_differences
from rewind.conversation.message_digest import json_text
from rewind.conversation.sketch import settings_of
from rewind.dataclass import dataclass


class CauseKind(StrEnum):
    """In the order in which they are suspected, where nothing else tells them apart."""

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


class Standing(IntEnum):
    """How much speaks for a cause, the strongest first."""

    USED = 0
    """The answers differ in what it says, or it is the answer that failed."""
    CHANGED = 1
    """It is not the same, and the answers may have to do with it."""
    CARRIED = 2
    """It only brings what an earlier step came to."""
    IDLE = 3
    """A parameter that is given its default, or nothing."""
    FIGURES = 4
    """A result differs in figures alone, and the answers take up none of them."""
    DATED = 5
    """Nothing but a day or a time of day differs, which a run may turn on."""
    SAMPLED = 6
    """Nothing differs that counts: the model itself answered otherwise."""
    UNUSED = 7
    """A result differs in codes, or in figures that differ in every call of that tool, and no answer takes them up."""
    VARIES = 8
    """It differs among good runs, too."""
    VOLATILE = 9
    """Ids, times and durations: they differ between any two runs."""


KIND_OF_ASPECT = {
    **{aspect: CauseKind[aspect.name] for aspect in Aspect if aspect.name in CauseKind.__members__},
    Aspect.STATUS: CauseKind.ERROR,
}
"""In the order of the evidence. What an answer says is never a cause."""
LASTING_KINDS = frozenset(KIND_OF_ASPECT[aspect] for aspect in LASTING)
"""Causes that, once there, are there in every later step."""
_ORDER = {kind: at for at, kind in enumerate(CauseKind)}
FOLDED = frozenset({Standing.UNUSED, Standing.VOLATILE})
"""What is seen at many steps and tells as little at each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One thing that was different before the answers parted."""

    kind: CauseKind
    since: Row
    """Where it is first seen."""
    differences: tuple[Difference, ...] = ()
    evidence: str = ""
    """What else speaks for it, or against it, in a sentence."""
    standing: Standing = Standing.CHANGED
    use: Use = Use()
    """What the parted answer takes up of it."""
    rows: int = 1
    """In how many steps such a thing is seen: equal ones are one cause."""


def causes_of(comparison: Comparison, row: Row) -> tuple[Cause, ...]:
    """Why two answers differ that belong together, or why a move was made by one run only."""
    paired = row.a is not None and row.b is not None
    last = row if paired else _last_shared(comparison, row)
    suspects = [] if last is None else [*_suspects(comparison, last, frozenset())]
    if not paired:
        suspects += _brought_to_one_run(comparison, row)
    found = ranked(_judged(comparison, row, suspects))
    if any(cause.kind in _FOUND_BY_SEARCH and cause.standing <= Standing.CHANGED for cause in found):
        found = ranked([*_embeddings(comparison, row), *found])
    if any(cause.standing < Standing.SAMPLED for cause in found):
        found = tuple(cause for cause in found if not _is_folder(cause))
    if not paired:
        return ranked([*found, Cause(kind=CauseKind.PATH, since=row)])
    return with_sampling(comparison, row, found)


_FOUND_BY_SEARCH = frozenset({CauseKind.INPUT, CauseKind.TOOL_OUTPUT})
_FIRST_OF_ALL = Use(weight=1000.0)


def _embeddings(comparison: Comparison, row: Row) -> Iterator[Cause]:
    """Vectors that were made with another model before: whatever is searched with them is found otherwise."""
    for place in comparison.rows[: comparison.rows.index(row)]:
        if place.thread != (None, None) or place.a is None or place.b is None or place.b.sketch is None:
            continue
        found = tuple(one for one in comparison.differences(place) if one.aspect is Aspect.MODEL)
        if found and comparison.b.asked(place.b.index).embeds:
            evidence = "what is searched with its vectors is found otherwise"
            yield Cause(
                kind=CauseKind.MODEL,
                since=place,
                differences=found,
                evidence=evidence,
                standing=Standing.USED,
                use=_FIRST_OF_ALL,
            )
            return


def _is_folder(cause: Cause) -> bool:
    """Whether nothing differs but where the runs ran, which explains nothing that anything else could."""
    return bool(cause.differences) and all(
        one.noise is not None and FOLDER_NAME in one.noise.names for one in cause.differences
    )


def with_sampling(comparison: Comparison, row: Row, causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """The same, and that the model itself answered otherwise, where nothing else explains it."""
    explained = any(cause.standing < Standing.FIGURES or cause.kind is CauseKind.SAMPLING for cause in causes)
    paired = row.a is not None and row.b is not None
    return ranked(causes if explained or not paired else [*causes, _sampling(comparison, row)])


def ranked(causes: Iterable[Cause]) -> tuple[Cause, ...]:
    """One for each kind and each thing, the likeliest first; of equal kind the one that was there first."""
    kept: dict[Hashable, Cause] = {}
    for cause in causes:
        key: Hashable = cause.kind, tuple((one.place, one.after) for one in cause.differences)
        if cause.standing in FOLDED:
            key = cause.kind, cause.standing
        kept[key] = _folded(kept[key], cause) if key in kept else cause
    return tuple(sorted(kept.values(), key=_place))


def _place(cause: Cause) -> tuple[int, float, int, int]:
    """By standing and kind; of what is said once, the last comes first: after the others the answers still agreed."""
    weight = -cause.use.weight if cause.standing is Standing.USED else 0.0
    last = max(index or 0 for index in cause.since.indexes)
    return cause.standing, weight, _ORDER[cause.kind], 0 if cause.kind in LASTING_KINDS else -last


def _folded(first: Cause, later: Cause) -> Cause:
    """Equal things at several steps are one cause, seen first at the first of them."""
    known = {(one.before, one.after) for one in first.differences}
    more = tuple(one for one in later.differences if (one.before, one.after) not in known)
    if first.standing not in FOLDED:
        more = ()
    return replace(first, differences=(*first.differences, *more), rows=first.rows + later.rows)


# ── what is suspected ────────────────────────────────────────────────────────────────────────────────────────


def _suspects(comparison: Comparison, row: Row, followed: frozenset[int]) -> Iterator[Cause]:
    """What differs at the row, and what came into the conversation earlier and stayed there; in order of steps. What
    is but the answer of another conversation is followed by what made that one."""
    stateful = any(is_held_elsewhere(run.asked(move.index)) for run, move in model_calls(comparison, row))
    for place in (*comparison.earlier(row), row):
        differences = comparison.differences(place)
        if stateful:
            differences = (*differences, *lost_history(comparison, place))
        for aspect, kind in KIND_OF_ASPECT.items():
            found = [one for one in differences if one.aspect is aspect]
            # An answer that failed names no model: what answered before it is known from there.
            if not found or (place is not row and aspect not in (*SAID_ONCE, Aspect.SNAPSHOT)):
                found = [one for one in found if one.noise is not None]
            since = _first_seen(comparison, place, aspect) if aspect in LASTING else place
            for one in found:
                if one.noise is None and (why := path_reason(comparison, place, one)):
                    yield Cause(kind=kind, since=since, differences=(one,), standing=Standing.UNUSED, evidence=why)
                    continue
                origin = origin_of(comparison, place, one) if aspect in SAID_ONCE and one.noise is None else None
                if origin is not None and id(origin) not in followed:
                    behind = [*_suspects(comparison, origin, followed | {id(origin)})]
                    yield from behind
                    if any(cause.standing < Standing.FIGURES for cause in behind):
                        evidence = f"it is the answer of step {_step(origin)}"
                        yield Cause(
                            kind=kind, since=since, differences=(one,), standing=Standing.CARRIED, evidence=evidence
                        )
                        continue
                    if is_reworded(one):
                        evidence = f"it is the answer of step {_step(origin)} in other words"
                        yield Cause(
                            kind=kind, since=since, differences=(one,), standing=Standing.UNUSED, evidence=evidence
                        )
                        continue
                yield Cause(kind=kind, since=since, differences=(one,), standing=_standing(one))


def _brought_to_one_run(comparison: Comparison, row: Row) -> Iterator[Cause]:
    """What tools gave the move that only one run made, where they gave the other run's next move something else."""
    lone, other = (row.a, comparison.b) if row.b is None else (row.b, comparison.a)
    assert lone is not None, "a row has a move"
    later = (one for one in comparison.rows[comparison.rows.index(row) + 1 :])
    following = (one.b if row.b is None else one.a for one in later)
    partner = next((move for move in following if move is not None and move.sketch is not None), None)
    if partner is None or lone.sketch is None:
        return
    run = comparison.a if row.b is None else comparison.b
    mine, theirs = (run.asked(lone.index), run.held(lone)), (other.asked(partner.index), other.held(partner))
    old, new = (mine, theirs) if row.b is None else (theirs, mine)
    for one in turn_differences(old[0], new[0], old[1], new[1]):
        if one.aspect is Aspect.TOOL_OUTPUT and one.noise is None and one.before is not None and one.after is not None:
            yield Cause(kind=CauseKind.TOOL_OUTPUT, since=row, differences=(one,))


_FIGURES_OF_EVERY_CALL = 2
"""Calls of one tool whose results differ in figures alone: then they always do."""


def _less_unused(causes: Sequence[Cause]) -> Iterator[Cause]:
    """Results that differ in nothing that one would look at twice are told so."""
    changes = [_change_of_result(cause) for cause in causes]
    figures = Counter(
        cause.differences[0].tool
        for cause, change in zip(causes, changes, strict=True)
        if change is ResultChange.FIGURES
    )
    for cause, change in zip(causes, changes, strict=True):
        often = figures[cause.differences[0].tool] >= _FIGURES_OF_EVERY_CALL if cause.differences else False
        if change is ResultChange.CODES or (change is ResultChange.FIGURES and often):
            what = "codes" if change is ResultChange.CODES else "figures"
            evidence = f"only {what} differ that no answer takes up"
            yield replace(cause, standing=Standing.UNUSED, evidence=evidence)
        elif change is ResultChange.FIGURES:
            yield replace(cause, standing=Standing.FIGURES, evidence="only figures differ, and no answer takes them up")
        else:
            yield cause


def _change_of_result(cause: Cause) -> ResultChange | None:
    if cause.kind is not CauseKind.TOOL_OUTPUT or cause.standing is not Standing.CHANGED:
        return None
    (one,) = cause.differences
    return None if one.before is None or one.after is None else result_change(one.before, one.after)


def _standing(difference: Difference) -> Standing:
    """By itself, before it is known what the answer takes up."""
    if difference.noise is not None:
        return Standing.DATED if difference.noise.may_be_fact else Standing.VOLATILE
    if difference.aspect is Aspect.PARAMETERS and is_idle(difference):
        return Standing.IDLE
    return Standing.CHANGED


def _step(row: Row) -> str:
    a, b = row.indexes
    return f"{a}" if a == b else f"{a} / {b}"


# ── how much speaks for it ───────────────────────────────────────────────────────────────────────────────────


def _judged(comparison: Comparison, row: Row, suspects: Sequence[Cause]) -> Iterator[Cause]:
    """With what the parted answer takes up of each; what belongs to one step and stands alike is one cause."""
    if not suspects:
        return
    decision = _decision(comparison, row)
    judged = _less_unused([_with_use(comparison, row, cause, decision.use_of(cause.differences)) for cause in suspects])
    grouped: dict[Hashable, list[Cause]] = {}
    for cause in judged:
        grouped.setdefault((cause.kind, id(cause.since), cause.standing), []).append(cause)
    for causes in grouped.values():
        yield _joined(causes)


def _with_use(comparison: Comparison, row: Row, cause: Cause, use: Use) -> Cause:
    if cause.kind is CauseKind.ERROR and _is_fault_of_the_provider(row):
        return replace(cause, standing=Standing.USED, evidence=_tries(row))
    if cause.kind is CauseKind.ERROR:
        return replace(cause, evidence=_tries(row))
    if cause.kind is CauseKind.MODEL and (fallback := _fallback(comparison, row)):
        return replace(cause, since=row, standing=Standing.USED, evidence=fallback)
    if use.enough and cause.standing is not Standing.CARRIED:
        return replace(cause, standing=Standing.USED, use=use)
    return cause


def _joined(causes: Sequence[Cause]) -> Cause:
    """Several differences of one step, the most telling first."""
    first = causes[0]
    by_use = sorted(causes, key=lambda cause: -cause.use.weight)
    differences = tuple(dict.fromkeys(one for cause in by_use for one in cause.differences))
    use = sum((cause.use for cause in by_use), Use())
    evidence = next((cause.evidence for cause in causes if cause.evidence), "")
    if use.enough:
        evidence = str(use)
    elif first.standing in (Standing.DATED, Standing.VOLATILE):
        evidence = _only_noise(differences)
    elif first.standing is Standing.IDLE:
        evidence = "the default, or nothing: it says what holds anyway"
    return replace(first, differences=differences, use=use, evidence=evidence)


def _only_noise(differences: Sequence[Difference]) -> str:
    kinds = " and ".join(dict.fromkeys(str(one.noise) for one in differences))
    return f"nothing but {kinds} differs"


def _decision(comparison: Comparison, row: Row) -> DecisionWords:
    sides = ((comparison.a, row.a), (comparison.b, row.b))
    answers = [None if move is None else run.answered(move.index) for run, move in sides]
    read = ["" if move is None or move.sketch is None else heard(run, move) for run, move in sides]
    return DecisionWords(answers[0], answers[1], read[0], read[1])


def _is_fault_of_the_provider(row: Row) -> bool:
    """Whether one answer failed by no fault of what was asked: the provider was down, or had had enough."""
    failed = [move for move in row.moves if move.failed]
    codes = [status_of(move)[:3] for move in failed]
    return bool(failed) and not any(code[0] == "4" and code not in ("408", "429") for code in codes)


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


def _fallback(comparison: Comparison, row: Row) -> str:
    """``429 ×2 from gpt-4o, then answered by gpt-4o-mini``, where one run had to ask another model."""
    told = []
    for name, run, move in (("good", comparison.a, row.a), ("bad", comparison.b, row.b)):
        if move is not None and move.fallback_from:
            steps = {step.index: step for step in run.recording.steps}
            counted = Counter(answer_status(steps[index]) for index in move.failures)
            failed = ", ".join(f"{status} ×{times}" for status, times in counted.items())
            told.append(f"{failed} from {move.fallback_from}, then answered by {move.model_asked}, in the {name} run")
    return "; ".join(told)


def _sampling(comparison: Comparison, row: Row) -> Cause:
    """Nothing differs but what the model says: at this step, or before it in words that the run did not turn on."""
    reworded = [one for one in comparison.earlier(row) if comparison.relation(one).reworded]
    since = reworded[0] if reworded else row
    assert row.b is not None, "two moves are compared"
    if row.b.sketch is None:
        return Cause(kind=CauseKind.SAMPLING, since=since, evidence=_tries(row), standing=Standing.SAMPLED)
    settings = settings_of(comparison.b.asked(row.b.index), comparison.b.provider(row.b.index))
    facts = [f"{name} {json_text(settings[name])}" for name in ("temperature", "top_p", "seed") if name in settings]
    if not any(name in settings for name in ("temperature", "top_p")):
        facts.append("no temperature set: the provider's default")
    facts += [tries] if (tries := _tries(row)) else []
    return Cause(kind=CauseKind.SAMPLING, since=since, evidence=", ".join(facts), standing=Standing.SAMPLED)


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
