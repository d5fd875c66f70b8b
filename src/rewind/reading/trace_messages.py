"""``rewind.replay`` of a trace: the message list of its first lines, ready for a fresh call."""

import os
from typing import TYPE_CHECKING, Any

from rewind.errors import UsageError
from rewind.formats.trace.api import RequestSettings
from rewind.formats.trace.apis import APIS
from rewind.formats.trace.conversation import TraceConversation
from rewind.formats.trace.lines import LIMITS, TraceLimits, read_run
from rewind.formats.trace.reconstruct import reconstruct
from rewind.store.trace_files import open_trace

if TYPE_CHECKING:
    from rewind.reading.messages import Messages


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


def replay(
    path: str | os.PathLike[str], n: int | None = None, as_: str | None = None, *, run: str | None = None
) -> "Replayed | Messages":
    """The message list of the first ``n`` entries of a trace (default: all), ready for a fresh call.

    ``n`` counts lines, as ``head -n`` does. ``as_`` is ``openai``, ``responses``, ``anthropic`` or ``gemini`` (default:
    the API that the trace speaks). Of several runs in the file, ``run`` names one (default: the last). A session
    or a cassette is read as ``messages`` reads it, and ``n`` is then a step. Raises RewindError.
    """
    name = os.fsdecode(path)
    is_file = os.path.isfile(name)  # noqa: PTH113  pathlib is not needed for this
    is_session = not is_file and os.sep not in name and not name.endswith(".jsonl")
    if is_session or name.endswith((".rw", ".rw.zst")):
        from rewind.reading.messages import messages  # lazily: a trace needs no store

        return messages(name, upto=n, as_=as_)
    return replay_trace(name, n, run, as_)


def replay_trace(
    path: str | os.PathLike[str],
    n: int | None = None,
    run: str | None = None,
    api: str | None = None,
    limits: TraceLimits = LIMITS,
) -> Replayed:
    """The messages of the first ``n`` lines of a run, for that API (default: the one that the trace speaks).

    Raises SessionNotFound, UsageError or BadCassette.
    """
    if n is not None and (not isinstance(n, int) or isinstance(n, bool) or n < 0):
        raise UsageError(f"{n!r} is not a number of entries.", hint="n counts the lines of the trace, from 1.")
    lines = read_run(open_trace(path), run, limits)
    rows = lines.rows[:n]
    story = reconstruct((row for row in rows if row is not None), limits)
    conversation = story.last or TraceConversation(api=APIS["openai"], turns=story.prompts())
    remarks = [*lines.damage, *story.left_out, *story.remarks, *dict.fromkeys(conversation.lost)]
    if n is not None and n > len(lines.rows):
        remarks.append(f"the trace has only {len(lines.rows)} entries")
    if lines.other_runs:
        remarks.append(f"the trace has {len(lines.other_runs) + 1} runs; this is {lines.run or 'the last one'}")
    if story.conversations > 1:
        remarks.append(f"{story.conversations} conversations; this is the one that was spoken in last")
    turns = conversation.turns
    if turns and turns[0].get("role", "assistant") in ("assistant", "model"):
        remarks.append("the trace does not say what was asked first: give step() messages=… or prompt=…")
    if api is None or api == conversation.api.name:
        replayed = Replayed([*_system_turns(conversation), *turns])
        replayed.api = conversation.api.name
        replayed.system = conversation.system if conversation.api.system_apart else None
    else:
        from rewind.formats.trace.translate import translated  # lazily: it loads every provider

        system, messages, lost = translated(conversation, api)
        replayed = Replayed(messages)
        replayed.api, replayed.system = api, system
        remarks += lost
    replayed.model = conversation.model or None
    replayed.remarks = tuple(remarks)
    replayed.entries = len(rows)
    return replayed


def _system_turns(conversation: TraceConversation) -> list[dict[str, Any]]:
    if conversation.system is None or conversation.api.system_apart:
        return []
    asking = RequestSettings(model="", system=conversation.system, tools=[])
    first = list(conversation.api.form(asking).first)
    return first or [{"role": "system", "content": conversation.system}]
