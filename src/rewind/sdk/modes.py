"""What a session is asked to be: its arguments, checked when the program is loaded, and its mode.

Programs carry the decorators, so this is loaded whenever they are: nothing here may cost anything.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing's own would have to be imported, and that costs more than all of this
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    Mode = Literal["record", "replay", "extend", "off"]
    OnMiss = Literal["raise", "report"]
    PathLike = str | os.PathLike[str]

MODES: tuple[Mode, ...] = ("record", "replay", "extend", "off")
"""``record`` keeps what happens. ``replay`` lets only the recording answer. ``extend`` lets the recording
answer what it knows; the rest goes live, and the whole is kept as a new session. ``off`` does nothing at all."""

VARIABLE = "REWIND_MODE"
USUAL: Mode = "record"

_CHOICES = (("on_miss", ("raise", "report")), ("tools", ("replay", "live")))
_LISTS = ("hosts", "live_hosts", "ignore", "ignore_text", "connect_to")


def mode_from(given: str | None, environ: Mapping[str, str] | None = None) -> Mode:
    """The mode that was given; else what ``REWIND_MODE`` says; else ``record``. Raises UsageError."""
    environ = os.environ if environ is None else environ
    where, mode = ("mode", given) if given is not None else (VARIABLE, environ.get(VARIABLE) or USUAL)
    for known in MODES:
        if mode == known:
            return known
    from difflib import get_close_matches  # lazily: only a typo needs it

    near = get_close_matches(str(mode), MODES, n=1)
    raise usage_error(
        f"{where} is {mode!r}, and must be one of: {', '.join(MODES)}.", hint=f"{where}={near[0]!r}" if near else None
    )


def check_arguments(asked: Mapping[str, Any]) -> None:
    """Raises UsageError for arguments that cannot be meant: when the program is loaded, not when it runs."""
    if asked["mode"] is not None:
        mode_from(asked["mode"])
    for argument, allowed in _CHOICES:
        if asked[argument] not in allowed:
            raise usage_error(f"{argument} is {asked[argument]!r}, and must be one of: {', '.join(allowed)}.")
    for argument in _LISTS:
        if isinstance(asked[argument], str):
            raise usage_error(f"{argument} must be a list of strings, not the string {asked[argument]!r}.")


def usage_error(message: str, hint: str | None = None) -> Exception:
    from rewind.errors import UsageError  # lazily: nearly every program is right

    return UsageError(message, hint=hint)
