"""Rewind: record an agent's run at the HTTP layer, replay it offline, find the step that broke."""

from rewind.version import __version__

TYPE_CHECKING = False  # typing's own would have to be imported, and importing rewind stays cheap
if TYPE_CHECKING:
    from rewind.errors import ReplayMiss, ResultLost, RewindError, ToolFailed
    from rewind.reading.messages import messages
    from rewind.reading.trace_messages import replay
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
    "messages": "rewind.reading.messages",
    "note": "rewind.sdk.tool",
    "replay": "rewind.reading.trace_messages",
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
