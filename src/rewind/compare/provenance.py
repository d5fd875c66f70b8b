"""Where something that differs comes from: another conversation, what the provider holds, or the path of one run."""

from collections.abc import Iterator

from rewind.compare.align import Row
from rewind.compare.comparison import Comparison, heard
from rewind.compare.delta import Aspect, Difference
from rewind.compare.run import ComparedRun, Move, is_held_elsewhere
from rewind.compare.texts import without_noise
from rewind.compare.wording import Weight, text_changes
from rewind.conversation.context import ContextPlace, Fate, parts_text

SAID_ONCE = (Aspect.INPUT, Aspect.TOOL_OUTPUT, Aspect.HISTORY)
"""What is said once and stays in the conversation."""
_LAST_STEPS = 5
"""Of a run, in which a text is looked for where its conversation begins anew."""
_TELLING_WORDS = 12
"""An answer of at least so many letters that is found again is not a coincidence."""


def model_calls(comparison: Comparison, row: Row) -> list[tuple[ComparedRun, Move]]:
    """The calls to models of a row, each with its run."""
    sides = ((comparison.a, row.a), (comparison.b, row.b))
    return [(run, move) for run, move in sides if move is not None and move.sketch is not None]


def lost_history(comparison: Comparison, row: Row) -> Iterator[Difference]:
    """What the provider holds of the conversation, where only one of the two calls goes on from it."""
    sides = model_calls(comparison, row)
    goes_on = [is_held_elsewhere(run.asked(move.index)) for run, move in sides]
    if len(sides) < 2 or goes_on[0] == goes_on[1]:
        return
    run, move = sides[goes_on.index(True)]
    held = "\n".join(parts_text(message.parts) for message in run.held(move)) or "(not recorded)"
    before, after = (held, None) if goes_on[0] else (None, held)
    fate = Fate.DROPPED if goes_on[0] else Fate.ADDED
    yield Difference(
        aspect=Aspect.HISTORY, place=ContextPlace(None), fate=fate, before=before, after=after, about="conversation"
    )


def path_reason(comparison: Comparison, row: Row, difference: Difference) -> str:
    """Why what only one run has follows from what it did, and is no reason for it; empty where it may be one."""
    if (difference.before is None) == (difference.after is None) or difference.aspect not in SAID_ONCE:
        return ""
    if difference.aspect is Aspect.TOOL_OUTPUT:
        return "only one run asked for it"
    held = isinstance(difference.place, ContextPlace) and difference.place.index is None
    if difference.aspect is Aspect.INPUT or difference.fate is Fate.REORDERED or held:
        return ""
    text = without_noise(difference.before or difference.after or "")
    sides = (comparison.a, row.a), (comparison.b, row.b)
    has, lacks = sides if difference.after is None else sides[::-1]
    # What the agent dropped, the run that lacks it had read before; what it slipped in, its run had not.
    own = _had(*has, text) and not _had(*lacks, text)
    return "it comes from a step that only one run made" if own else ""


def _had(run: ComparedRun, move: Move | None, text: str) -> bool:
    """Whether it was read, or said, at the step of the conversation before this one; at one of the last steps, where
    the conversation begins anew."""
    if move is None:
        return False
    thread = [one for one in run.thread(move.thread) if one.index < move.index][-1:]
    earlier = thread or [one for one in run.moves if one.index < move.index and one.sketch is not None][-_LAST_STEPS:]
    for one in earlier:
        answered = run.answered(one.index)
        said = "" if answered is None else parts_text(answered.parts)
        if text in without_noise(f"{heard(run, one)}\n{said}"):
            return True
    return False


def origin_of(comparison: Comparison, row: Row, difference: Difference) -> Row | None:
    """The step of another conversation whose two answers are what differs here."""
    for other in reversed(comparison.rows[: comparison.rows.index(row)]):
        if other.a is None or other.b is None or other.a.sketch is None or other.thread == row.thread:
            continue
        said = comparison.a.answered(other.a.index), comparison.b.answered(other.b.index)
        words = [answer.text.strip() if answer is not None else "" for answer in said]
        texts = difference.before or "", difference.after or ""
        if words[0] != words[1] and all(
            len(one) >= _TELLING_WORDS and one in text for one, text in zip(words, texts, strict=True)
        ):
            return other
    return None


def is_reworded(difference: Difference) -> bool:
    changes = text_changes(difference.before or "", difference.after or "", is_answer=True)
    return all(change.weight is Weight.PROSE for change in changes)
