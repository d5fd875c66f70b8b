"""Rewind: record an agent's run at the HTTP layer, replay it offline, find the step that broke."""

from rewind.errors import RewindError
from rewind.version import __version__

TYPE_CHECKING = False  # typing's own would have to be imported, and importing rewind stays cheap
if TYPE_CHECKING:
    from os import PathLike

    from rewind.runs.messages import Messages

__all__ = ["RewindError", "__version__", "messages"]


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

    from rewind.runs.messages import Messages, conversation
    from rewind.settings import read_settings

    found = read_settings({"home": None if home is None else os.fspath(home)}).home
    return Messages(conversation(found, ref, upto=upto, thread=thread, api=as_))
