"""What came of a move, in a line: the words of the answer, the tools that it asks for, or how it failed."""

from dataclasses import dataclass

from rewind.compare.comparison import status_of
from rewind.compare.delta import call_text
from rewind.compare.run import Move, Run
from rewind.conversation.context import parts_text
from rewind.model.message import Part, Thinking, ToolUse
from rewind.model.step import StepKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """An answer for people."""

    words: str = ""
    """What was said."""
    calls: tuple[str, ...] = ()
    """``refund({"order":"8821"})``"""
    failure: str = ""
    """``529 Overloaded``"""
    exchange: str = ""
    """Of what is no call to a model: what was asked of whom, and what came back."""

    def __str__(self) -> str:
        said = f'"{self.words}"' if self.words else ""
        asks = "→ " + ", ".join(self.calls) if self.calls else ""
        told = " ".join(word for word in (self.failure, self.exchange, said, asks) if word)
        return told or "(an empty answer)"


def saying_of(run: Run, move: Move) -> Saying:
    """Reads the bodies of the step."""
    if move.kind is not StepKind.LLM_CALL:
        return Saying(exchange=_exchange(run, move))
    answered = run.answered(move.index)
    parts = () if answered is None else answered.parts
    told = [part for part in parts if not isinstance(part, Thinking) and not _asks(part)]
    error = (answered is not None and answered.error) or _reason(move)
    return Saying(
        words=parts_text(told).strip(),
        calls=tuple(call_text(part) for part in parts if isinstance(part, ToolUse) and _asks(part)),
        failure=f"{status_of(move)} {error}".rstrip() if move.failed else "",
    )


def _asks(part: Part) -> bool:
    return isinstance(part, ToolUse) and not part.hosted


def _reason(move: Move) -> str:
    response = move.step.response
    return (response.reason or "") if response is not None else ""


def _exchange(run: Run, move: Move) -> str:
    """``look({"city":"Oslo"}) ← snow`` for a tool; else the address and the status."""
    messages, answered = run.asked(move.index).messages, run.answered(move.index)
    asked = [part for message in messages for part in message.parts if isinstance(part, ToolUse)]
    if asked:
        given = parts_text(answered.parts) if answered is not None else ""
        return " ".join([*map(call_text, asked), given or f"→ {status_of(move)}"])
    head = move.step.request.head
    return f"{head.method} {head.host}{head.path} → {status_of(move)}"
