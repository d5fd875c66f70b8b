"""``rewind.replay``: the message list of the first entries of a trace, ready for a fresh call."""

import os
from typing import Any

from rewind.errors import UsageError
from rewind.formats.trace.apis.base import Asking
from rewind.formats.trace.apis.catalogue import APIS
from rewind.formats.trace.conversation import Conversation
from rewind.formats.trace.lines import read_trace
from rewind.formats.trace.reconstruct import told_by

_OWN_PLACE = ("anthropic", "gemini")
"""APIs that take the system prompt beside the list."""


class Replayed(list[dict[str, Any]]):
    """The message list; what a fresh call takes besides is beside it."""

    api: str
    """``openai``, ``responses``, ``anthropic`` or ``gemini``."""
    model: str | None
    """The model that was asked last."""
    system: Any
    """For Anthropic and Gemini, which take the system prompt beside the list; else ``None``."""
    remarks: tuple[str, ...]
    """What could not be read, or told in this API, or is not in the trace."""
    entries: int
    """How many lines it is made of."""

    @classmethod
    def of(
        cls,
        messages: list[dict[str, Any]],
        *,
        api: str,
        model: str | None,
        system: Any,
        remarks: tuple[str, ...],
        entries: int,
    ) -> "Replayed":
        found = cls(messages)
        found.api, found.model, found.system = api, model, system
        found.remarks, found.entries = remarks, entries
        return found


def replay_trace(
    path: str | os.PathLike[str], n: int | None = None, run: str | None = None
) -> tuple[Replayed, Conversation]:
    """The messages of the first ``n`` lines of a run, and the conversation that they are.

    Raises SessionNotFound, UsageError or BadCassette.
    """
    if n is not None and (not isinstance(n, int) or isinstance(n, bool) or n < 0):
        raise UsageError(f"{n!r} is no number of entries.", hint="n counts the lines of the trace, from 1.")
    lines = read_trace(path, run)
    rows = lines.rows[:n]
    story = told_by(row for row in rows if row is not None)
    talk = story.last or Conversation(api=APIS["openai"], turns=story.words())
    remarks = [*lines.damage, *story.left_out, *story.remarks, *dict.fromkeys(talk.lost)]
    if n is not None and n > len(lines.rows):
        remarks.append(f"the trace has only {len(lines.rows)} entries")
    if lines.others:
        remarks.append(f"the trace has {len(lines.others) + 1} runs; this is {lines.run or 'the last one'}")
    if story.conversations > 1:
        remarks.append(f"{story.conversations} conversations; this is the one that was spoken in last")
    if talk.turns and talk.turns[0].get("role", "assistant") in ("assistant", "model"):
        remarks.append("the trace does not say what was asked first: give step() messages=… or prompt=…")
    told = Replayed.of(
        [*_system_turns(talk), *talk.turns],
        api=talk.api.name,
        model=talk.model or None,
        system=talk.system if talk.api.name in _OWN_PLACE else None,
        remarks=tuple(remarks),
        entries=len(rows),
    )
    return told, talk


def _system_turns(conversation: Conversation) -> list[dict[str, Any]]:
    if conversation.system is None or conversation.api.name in _OWN_PLACE:
        return []
    asking = Asking(model="", system=conversation.system, tools=[])
    first = list(conversation.api.form(asking).first)
    return first or [{"role": "system", "content": conversation.system}]
