"""Rewind: record an agent's run at the HTTP layer, replay it offline, find the step that broke."""

from rewind.version import __version__

TYPE_CHECKING = False  # typing's own would have to be imported, and importing rewind stays cheap
if TYPE_CHECKING:
    from os import PathLike

    from rewind.errors import ReplayMiss, ResultLost, RewindError, ToolFailed
    from rewind.reading.messages import Messages
    from rewind.reading.trace_messages import Replayed
    from rewind.sdk.session import session
    from rewind.sdk.session_run import Run
    from rewind.sdk.tool import note, tool
    from rewind.trace.recorder import Trace

__all__ = [
    "ReplayMiss",
    "ResultLost",
    "RewindError",
    "Run",
    "ToolFailed",
    "Trace",
    "__version__",
    "messages",
    "note",
    "replay",
    "session",
    "tool",
]

_LATER = {
    "ReplayMiss": "rewind.errors",
    "ResultLost": "rewind.errors",
    "RewindError": "rewind.errors",
    "Run": "rewind.sdk.session_run",
    "ToolFailed": "rewind.errors",
    "Trace": "rewind.trace.recorder",
    "note": "rewind.sdk.tool",
    "session": "rewind.sdk.session",
    "tool": "rewind.sdk.tool",
}
"""What is loaded when it is first asked for, and from where."""

if not TYPE_CHECKING:  # a type checker would believe that every name is there

    def __getattr__(name):
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        found = globals()[name] = getattr(import_module(_LATER[name]), name)
        return found

    def __dir__():
        return sorted({*globals(), *_LATER})


def messages(
    ref: str,
    upto: int | None = None,
    as_: str | None = None,
    home: "str | PathLike[str] | None" = None,
    *,
    thread: int | None = None,
) -> "Messages":
    """The conversation of a session up to a step, as the message list of an API: what was asked, and the answer.

    ``as_`` is ``openai``, ``responses``, ``anthropic`` or ``gemini`` (default: the API of the step). The system
    prompt is the first message for the first two, and the list's ``system`` for the others. Raises RewindError.
    """
    import os

    from rewind.reading.messages import Messages, conversation
    from rewind.settings import read_settings

    found = read_settings({"home": None if home is None else os.fspath(home)}).home
    return Messages(conversation(found, ref, upto=upto, thread=thread, api=as_))


def replay(
    path: "str | PathLike[str]", n: int | None = None, as_: str | None = None, *, run: str | None = None
) -> "Replayed | Messages":
    """The message list of the first ``n`` entries of a trace (default: all), ready for a fresh call.

    ``n`` counts lines, as ``head -n`` does. ``as_`` is ``openai``, ``responses``, ``anthropic`` or ``gemini`` (default:
    the API that the trace speaks). Of several runs in the file, ``run`` names one (default: the last). What is no trace
    but a session, or a cassette, is told as ``messages`` tells it, and ``n`` is then a step. Raises RewindError.
    """
    import os

    name = os.fsdecode(path)
    is_file = os.path.isfile(name)  # noqa: PTH113  pathlib is not needed for this
    if not is_file and os.sep not in name and not name.endswith(".jsonl"):
        return messages(name, upto=n, as_=as_)
    if name.endswith((".rw", ".rw.zst")):
        return messages(name, upto=n, as_=as_)
    from rewind.reading.trace_messages import replay_trace

    return replay_trace(name, n, run, as_)
