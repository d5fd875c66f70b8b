"""The texts of ``rewind fork --set``: what they change, and where the new value comes from.

    system=TEXT               system+=TEXT            model=NAME
    PARAM=VALUE               PARAM=                  messages[i]=VALUE
    tool.NAME.result=VALUE    response=VALUE

Instead of any value, ``@SESSION:STEP`` takes what that step has in this place; a value that begins with ``@`` is
written ``@@``. ``docs/editing.md`` has the whole table.
"""

import re

from rewind.edit.edits import (
    AppendSystem,
    Edit,
    SetMessage,
    SetModel,
    SetParameter,
    SetResponse,
    SetSystem,
    SetToolResult,
    Source,
    StepReference,
    TextValue,
)
from rewind.errors import UsageError

FORMS = (
    "system=TEXT, system+=TEXT, model=NAME, PARAM=VALUE, PARAM= (takes it out), messages[i]=VALUE, "
    "tool.NAME.result=VALUE or response=VALUE; any of them =@SESSION:STEP"
)

_MESSAGE = re.compile(r"messages\[(-?\d{1,9})\]", re.ASCII)
_RESULT = re.compile(r"tool\.(.+)\.result", re.DOTALL)
_REFERENCE = re.compile(r"@(.+):(\d{1,9})", re.ASCII | re.DOTALL)
_NAME = re.compile(r"[^\s.\[\]{}\"'@+]+")
_SHOWN = 60


def parse_edit(text: str) -> Edit:
    """The edit that the text says. Raises UsageError."""
    place, equals, written = text.partition("=")
    place = place.strip()
    if not equals or not place:
        raise UsageError(f"{_shown(text)} is no edit: it has the form PLACE=VALUE.", hint=FORMS)
    return _edit(place, _source(written, text), text)


def _edit(place: str, source: Source, text: str) -> Edit:
    match place:
        case "system":
            return SetSystem(source)
        case "system+":
            return AppendSystem(_given(source, text))
        case "model":
            return SetModel(_given(source, text))
        case "response":
            return SetResponse(source)
    if place.endswith("+"):
        raise UsageError(f"{_shown(text)}: only the system prompt can be appended to.", hint=FORMS)
    if found := _MESSAGE.fullmatch(place):
        return SetMessage(int(found[1]), _given(source, text))
    if place.startswith(("messages[", "contents[", "input[")):
        raise UsageError(
            f"{_shown(text)}: a message is named by its number, from 0, or -1 for the last one.",
            hint="messages[0]=VALUE, whatever the API calls them",
        )
    if found := _RESULT.fullmatch(place):
        return SetToolResult(found[1], source)
    if place.startswith("tool."):
        raise UsageError(
            f"{_shown(text)}: of a tool, only its result can be set.", hint="tool.NAME.result=VALUE"
        )
    return SetParameter(_path(place, text), source)


def _path(place: str, text: str) -> tuple[str, ...]:
    names = tuple(place.split("."))
    if not all(_NAME.fullmatch(name) for name in names):
        raise UsageError(f"{_shown(text)} names no parameter.", hint=FORMS)
    return names


def _given(source: Source, text: str) -> Source:
    if source == TextValue(""):
        raise UsageError(f"{_shown(text)} has no value.", hint=FORMS)
    return source


def _source(written: str, text: str) -> Source:
    if written.startswith("@@"):
        return TextValue(written[1:])
    if not written.startswith("@"):
        return TextValue(written)
    found = _REFERENCE.fullmatch(written)
    if found is None:
        raise UsageError(
            f"{_shown(text)}: a step of another session is written @SESSION:STEP.",
            hint="for a value that begins with @, write @@",
        )
    return StepReference(found[1], int(found[2]))


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
