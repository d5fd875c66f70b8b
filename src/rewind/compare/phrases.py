"""What was found, in words that every view shares: the names of aspects and steps, and a sentence for every cause."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rewind.compare.align import Row
from rewind.compare.cause import FOLDED, LASTING_KINDS, Cause, CauseKind
from rewind.compare.decision import ChangeKind
from rewind.compare.delta import Aspect, Difference, ToolPlace, answer_words, asks_for_tool, call_text
from rewind.compare.divergence import Finding, Parting, PartingWeight
from rewind.compare.ruled_out import RuledOut
from rewind.compare.run import ComparedRun, Move, status_of
from rewind.conversation.context import Fate, parts_text
from rewind.dataclass import dataclass
from rewind.model.message import ToolUse
from rewind.model.step import StepKind
from rewind.providers.summary import unsaid
from rewind.text import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveResult:
    """An answer for people."""

    words: str = ""
    """What was said."""
    calls: tuple[str, ...] = ()
    """``refund({"order":"8821"})``"""
    failure: str = ""
    """``529 Overloaded``"""
    unsaid: str = ""
    """``(empty: content_filter)`` where nothing was said."""
    exchange: str = ""
    """For a request that is not a call to a model: what was asked of whom, and what came back."""

    def __str__(self) -> str:
        said = f'"{self.words}"' if self.words else ""
        asks = "→ " + ", ".join(self.calls) if self.calls else ""
        line = " ".join(word for word in (self.failure, self.exchange, said, asks) if word) or self.unsaid
        return line or "(an empty answer)"


def move_result(run: ComparedRun, move: Move) -> MoveResult:
    """Reads the bodies of the step."""
    if move.kind is not StepKind.LLM_CALL:
        return MoveResult(exchange=_exchange(run, move))
    answered = run.answered(move.index)
    parts = () if answered is None else answered.parts
    error = (answered is not None and answered.error) or _reason(move)
    return MoveResult(
        words=answer_words(parts),
        calls=tuple(call_text(part) for part in parts if asks_for_tool(part)),
        failure=f"{status_of(move)} {error}".rstrip() if move.failed else "",
        unsaid="" if answered is None else unsaid(answered),
    )


def _reason(move: Move) -> str:
    response = move.step.response
    return (response.reason or "") if response is not None else ""


def _exchange(run: ComparedRun, move: Move) -> str:
    """``look({"city":"Oslo"}) ← snow`` for a tool; else the address and the status."""
    messages, answered = run.asked(move.index).messages, run.answered(move.index)
    asked = [part for message in messages for part in message.parts if isinstance(part, ToolUse)]
    if asked:
        given = parts_text(answered.parts) if answered is not None else ""
        return " ".join([*map(call_text, asked), given or f"→ {status_of(move)}"])
    head = move.step.request.head
    return f"{head.method} {head.host}{head.path} → {status_of(move)}"


ASPECT_NAMES = {aspect: aspect.value for aspect in Aspect} | {
    Aspect.SNAPSHOT: "answered by",
    Aspect.SYSTEM: "system prompt",
    Aspect.INPUT: "user input",
}
NO_STEP = "–"
_LONGEST_CALLS = 120
"""Characters of the calls that a title names."""


def slug(name: Aspect | CauseKind) -> str:
    """The word by which programs know it: ``tool-output``."""
    return name.name.lower().replace("_", "-")


def step_label(row: Row) -> str:
    """``3``; ``4 / 5`` where the runs count differently; ``– / 5`` where only the second made it."""
    a, b = row.indexes
    return str(a) if a == b else f"{a or NO_STEP} / {b or NO_STEP}"


# ── partings ─────────────────────────────────────────────────────────────────────────────────────────────────


def folded_text(finding: Finding) -> str:
    """What differed and led to nothing, in a line: ``4 answers reworded, 1 extra read, re-sync at step 9``."""
    folded = finding.folded
    prose = [one for one in folded if one.weight is PartingWeight.PROSE]
    calls = sum(map(_is_worded_call, prose))
    extra = [one for one in folded if one.weight is PartingWeight.EXTRA]
    retried = sum(one.weight is PartingWeight.RETRIED for one in folded)
    answers = len(prose) - calls
    facts = [f"{plural(answers, 'answer')} reworded"] if answers else []
    facts += [f"{plural(calls, 'tool call')} worded otherwise"] if calls else []
    facts += [f"{plural(len(extra), 'extra read')}, re-sync at step {_resync(finding, extra[-1])}"] if extra else []
    facts += [f"{plural(retried, 'step')} took more tries in one run"] if retried else []
    world = sum(one.weight is PartingWeight.ANSWERED for one in folded)
    facts += [f"{plural(world, 'other host')} answered otherwise"] if world else []
    return ", ".join(facts)


def _is_worded_call(parting: Parting) -> bool:
    """Whether a tool is called with other words; other words beside the call are an answer's."""
    return any(change.kind is not ChangeKind.WORDS for change in parting.changes)


def _resync(finding: Finding, extra: Parting) -> str:
    rows = finding.comparison.rows
    behind = rows[rows.index(extra.row) + 1 :]
    ours = [n for n, thread in enumerate(extra.row.thread) if thread is not None]
    same = (row for row in behind if row.a and row.b and all(row.thread[n] == extra.row.thread[n] for n in ours))
    return next((step_label(row) for row in same), NO_STEP)


# ── causes ───────────────────────────────────────────────────────────────────────────────────────────────────


def cause_title(cause: Cause) -> str:
    """What changed, in a line, without the evidence."""
    match cause.kind:
        case CauseKind.MODEL if any(move.fallback_from for move in cause.since.moves):
            return "fell back to another model"
        case CauseKind.SNAPSHOT:
            asked = next((move.model_asked for move in cause.since.moves if move.model_asked), "the model")
            return f"model snapshot changed behind {asked}"
        case CauseKind.SYSTEM:
            return f"system prompt {_what_became(cause.differences)}"
        case CauseKind.TOOLS:
            return _with("tool definitions changed", _tools(cause.differences))
        case CauseKind.PARAMETERS:
            names = dict.fromkeys(str(one.place) for one in cause.differences)
            return _with("parameters changed", ", ".join(names) if len(names) > 1 else "")
        case CauseKind.TOOL_OUTPUT:
            many = cause.standing in FOLDED and len(cause.differences) > 1
            calls = _counted(cause.differences) if many else _calls(cause.differences)
            return _with("tool output changed", ", ".join(calls))
        case CauseKind.HISTORY:
            return _with("history changed", _fates(cause.differences))
        case CauseKind.ERROR:
            return _error(cause)
        case CauseKind.PATH:
            return _path(cause.since)
    return cause.kind.value


def cause_place(finding: Finding, cause: Cause, *, brief: bool = False) -> str:
    """Where it is seen, if that is not where the runs part; unless ``brief``, with what came of it until then."""
    assert finding.at is not None, "a cause is why runs part"
    if cause.since is finding.at or cause.kind is CauseKind.PATH:
        return ""
    label = step_label(cause.since)
    if cause.kind is CauseKind.SAMPLING:
        return f"in other words from step {label} on"
    where = f"from step {label} on" if cause.kind in LASTING_KINDS else f"at step {label}"
    rows = [row for row in finding.before if row.thread == finding.at.thread or finding.at.a is None]
    still = rows[rows.index(cause.since) :] if cause.since in rows else []
    if brief or not still:
        return where
    reworded = any(finding.comparison.relation(row).reworded for row in still)
    return f"{where} ({_still(still, reworded=reworded)})"


def _still(rows: Sequence[Row], *, reworded: bool) -> str:
    """That the answers did not part at once."""
    if len(rows) == 1:
        same = "still asked for the same tools" if reworded else "was still the same"
        return f"the answer to step {step_label(rows[0])} {same}"
    shown = f"steps {step_label(rows[0])}–{step_label(rows[-1])}"
    alike = all(row.indexes[0] == row.indexes[1] for row in (rows[0], rows[-1]))
    in_a_row = alike and (rows[-1].indexes[0] or 0) - (rows[0].indexes[0] or 0) == len(rows) - 1
    same = "still asked for the same tools" if reworded else "were still the same"
    return f"the answers to {shown if in_a_row else f'{len(rows)} steps'} {same}"


def _with(title: str, what: str) -> str:
    return f"{title}: {what}" if what else title


def _what_became(differences: Sequence[Difference]) -> str:
    fates = {one.fate for one in differences}
    return "added" if fates == {Fate.ADDED} else "removed" if fates == {Fate.DROPPED} else "changed"


def _tools(differences: Sequence[Difference]) -> str:
    changes: dict[str, str] = {}
    for one in differences:
        if isinstance(one.place, ToolPlace):
            whole = "added" if one.before is None else "removed"
            changes.setdefault(one.place.name, "changed" if one.place.path else whole)
    return ", ".join(f"{name} {change}" for name, change in changes.items())


def _counted(differences: Sequence[Difference]) -> Iterable[str]:
    """``run_tests ×6``"""
    counts = Counter(one.tool or "a tool" for one in differences)
    return (f"{tool} ×{number}" if number > 1 else tool for tool, number in counts.items())


def _calls(differences: Sequence[Difference]) -> Iterable[str]:
    """One call as it was made; of several that say much, only how often each tool was called."""
    calls = dict.fromkeys(one.about for one in differences if one.about)
    if len(calls) < 2 or sum(map(len, calls)) <= _LONGEST_CALLS:
        return calls
    tools = Counter(call.partition("(")[0] for call in calls)
    return [f"{tool} ×{count}" if count > 1 else tool for tool, count in tools.items()]


def _fates(differences: Sequence[Difference]) -> str:
    counts = Counter(one.fate for one in differences)
    return ", ".join(f"{number} {fate.value}" for fate, number in counts.items())


def _error(cause: Cause) -> str:
    row = cause.since
    if row.a is None or row.b is None:
        return cause.kind.value
    good, bad = status_of(row.a), status_of(row.b)
    if _is_miss(row.b):
        return "a miss: Rewind refused the call, since it was not recorded"
    if _is_miss(row.a):
        return "the good run had a miss: Rewind refused the call, since it was not recorded"
    if row.a.failed == row.b.failed:
        return f"provider error: {good} in the good run, {bad} in the bad one"
    return (
        f"provider error: {bad}, where the good run got an answer"
        if row.b.failed
        else f"the good run got a provider error: {good}, the bad one an answer"
    )


def _is_miss(move: Move) -> bool:
    """Whether a replay refused the call: no provider said so."""
    head = move.step.response.head if move.step.response is not None else None
    return head is not None and any(name.lower() == _MISS for name, _ in head.headers)


_MISS = "x-rewind-miss"


def _path(row: Row) -> str:
    made, other = ("good", "bad") if row.b is None else ("bad", "good")
    (index,) = (one for one in row.indexes if one is not None)
    return f"path changed: step {index} of the {made} run, which the {other} run did not make"


# ── what is ruled out ────────────────────────────────────────────────────────────────────────────────────────


def ruled_out_text(one: RuledOut) -> str:
    """What was the same, in a few words."""
    match one.kind:
        case CauseKind.MODEL:
            return f"model {one.fact}"
        case CauseKind.SNAPSHOT:
            return f"snapshot {one.fact}"
        case CauseKind.SYSTEM:
            return f"system prompt ({one.fact})"
        case CauseKind.TOOLS:
            return plural(int(one.fact), "tool")
        case CauseKind.PARAMETERS:
            return one.fact
        case CauseKind.INPUT:
            return "user input"
        case CauseKind.TOOL_OUTPUT:
            return plural(int(one.fact), "tool result")
        case CauseKind.HISTORY:
            return "history"
    return one.kind.value
