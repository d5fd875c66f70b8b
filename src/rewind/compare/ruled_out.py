"""What is ruled out as a reason: what was recorded in both runs, compared, and the same."""

from collections.abc import Iterator, Sequence

from rewind.compare.align import Row
from rewind.compare.cause import Cause, CauseKind
from rewind.compare.comparison import Comparison
from rewind.compare.run import Move, lacks_history
from rewind.conversation.message_digest import json_text
from rewind.conversation.sketch import NOTHING, Sketch, settings_of
from rewind.dataclass import dataclass
from rewind.model.message import Role, results_in


@dataclass(frozen=True, slots=True)
class RuledOut:
    """Something that was the same."""

    kind: CauseKind
    fact: str
    """How it was in both."""


def ruled_out(comparison: Comparison, row: Row, causes: Sequence[Cause]) -> tuple[RuledOut, ...]:
    """What was the same when the answers parted, as far as both recordings hold it."""
    if row.a is None or row.b is None or row.a.sketch is None or row.b.sketch is None:
        return ()
    suspected = {cause.kind for cause in causes}
    facts = _facts(comparison, row.a, row.b, row.b.sketch)
    return tuple(RuledOut(kind, fact) for kind, fact in facts if kind not in suspected)


def _facts(comparison: Comparison, other: Move, move: Move, sketch: Sketch) -> Iterator[tuple[CauseKind, str]]:
    asked = comparison.b.asked(move.index)
    if asked.model:
        yield CauseKind.MODEL, asked.model
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
    if any(message.role is Role.USER and message.parts for message in asked.messages):
        yield CauseKind.INPUT, ""
    results = sum(1 for _ in results_in(asked.messages))
    if results:
        yield CauseKind.TOOL_OUTPUT, f"{results}"
    sides = ((comparison.a, other), (comparison.b, move))
    if asked.messages and not any(lacks_history(run, one) for run, one in sides):
        yield CauseKind.HISTORY, f"{len(asked.messages)} messages"


def _letters(part: object) -> str:
    return str(getattr(part, "text", ""))
