"""One change to a call, and the texts of ``rewind fork --set`` that name it.

    system=TEXT               system+=TEXT            model=NAME
    PARAM=VALUE               PARAM=                  messages[i]=VALUE
    tool.NAME.result=VALUE    response=VALUE

Instead of any value, ``@SESSION:STEP`` takes what that step has in this place; a value that begins with ``@`` is
written ``@@``. ``docs/editing.md`` has the whole table.
"""

import re
from typing import Any, ClassVar

from rewind.dataclass import dataclass
from rewind.errors import UsageError
from rewind.model.http import HttpResponse
from rewind.model.message import Answered, Message

# ── where a value comes from ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class TextValue:
    """The value as the user wrote it."""

    text: str

    @property
    def written(self) -> str:
        return f"@{self.text}" if self.text.startswith("@") else self.text


@dataclass(frozen=True, slots=True)
class StepReference:
    """The value is what another session's step has in that place."""

    session: str
    step: int

    @property
    def written(self) -> str:
        return f"@{self.session}:{self.step}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedValue:
    """What was found at the step that a reference names."""

    origin: StepReference
    value: Any
    """A text for a model, a JSON value for a parameter, and one of the classes below for all else."""

    @property
    def written(self) -> str:
        return self.origin.written


Source = TextValue | StepReference | ResolvedValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencedSystem:
    """A system prompt: for its own API as it was written there, for others as a text."""

    patcher: str
    raw: Any
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencedParameter:
    """A parameter, and the API by whose rules it is written."""

    patcher: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencedMessage:
    """A message: for its own API as it was written there, for others in the neutral shape."""

    patcher: str
    raw: Any
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencedResult:
    """What a tool gave back: for its own API as it was written there, for others as a text."""

    patcher: str
    raw: Any
    text: str
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencedAnswer:
    """A recorded answer, to the byte, and what it says: for a call that it does not fit as it is."""

    form: str
    """Which API in which form (whole, events, frames) it is written in."""
    response: HttpResponse
    answered: Answered


# ── the places that edits change ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SystemPlace:
    def __str__(self) -> str:
        return "system"


@dataclass(frozen=True, slots=True)
class ModelPlace:
    def __str__(self) -> str:
        return "model"


@dataclass(frozen=True, slots=True)
class ParameterPlace:
    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class MessagePlace:
    index: int

    def __str__(self) -> str:
        return f"messages[{self.index}]"


@dataclass(frozen=True, slots=True)
class ToolResultPlace:
    name: str

    def __str__(self) -> str:
        return f"tool.{self.name}.result"


@dataclass(frozen=True, slots=True)
class ResponsePlace:
    def __str__(self) -> str:
        return "response"


EditPlace = SystemPlace | ModelPlace | ParameterPlace | MessagePlace | ToolResultPlace | ResponsePlace
"""What an edit is about; ``str()`` gives it as ``--set`` names it."""


# ── the edits ────────────────────────────────────────────────────────────────────────────────────────────────


class _Assignment:
    """What all edits have: a place, and the value that it gets."""

    __slots__ = ()
    sign: ClassVar[str] = "="
    value: Source

    @property
    def place(self) -> EditPlace:
        raise NotImplementedError

    @property
    def target(self) -> str:
        """The edit up to its value: ``system+=``."""
        return f"{self.place}{self.sign}"

    @property
    def written(self) -> str:
        return f"{self.target}{self.value.written}"


@dataclass(frozen=True, slots=True)
class SetSystem(_Assignment):
    """``system=TEXT``"""

    value: Source

    @property
    def place(self) -> EditPlace:
        return SystemPlace()


@dataclass(frozen=True, slots=True)
class AppendSystem(_Assignment):
    """``system+=TEXT``"""

    sign = "+="
    value: Source

    @property
    def place(self) -> EditPlace:
        return SystemPlace()


@dataclass(frozen=True, slots=True)
class SetModel(_Assignment):
    """``model=NAME``"""

    value: Source

    @property
    def place(self) -> EditPlace:
        return ModelPlace()


@dataclass(frozen=True, slots=True)
class SetParameter(_Assignment):
    """``PARAM=VALUE``; an empty literal takes the parameter out."""

    path: tuple[str, ...]
    value: Source

    @property
    def place(self) -> EditPlace:
        return ParameterPlace(self.path)

    @property
    def removes(self) -> bool:
        return self.value == TextValue("")


@dataclass(frozen=True, slots=True)
class SetMessage(_Assignment):
    """``messages[i]=VALUE``"""

    index: int
    """As in the request, from 0; a negative one counts from the end."""
    value: Source

    @property
    def place(self) -> EditPlace:
        return MessagePlace(self.index)


@dataclass(frozen=True, slots=True)
class SetToolResult(_Assignment):
    """``tool.NAME.result=VALUE``"""

    name: str
    value: Source

    @property
    def place(self) -> EditPlace:
        return ToolResultPlace(self.name)


@dataclass(frozen=True, slots=True)
class SetResponse(_Assignment):
    """``response=VALUE``: nothing is sent, and this is the answer."""

    value: Source

    @property
    def place(self) -> EditPlace:
        return ResponsePlace()


Edit = SetSystem | AppendSystem | SetModel | SetParameter | SetMessage | SetToolResult | SetResponse


# ── reading the texts of ``--set`` ────────────────────────────────────────────────────────────────────────────

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
        raise UsageError(f"{_shown(text)} is not a valid edit: it must have the form PLACE=VALUE.", hint=FORMS)
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
        raise UsageError(f"{_shown(text)}: of a tool, only its result can be set.", hint="tool.NAME.result=VALUE")
    return SetParameter(_path(place, text), source)


def _path(place: str, text: str) -> tuple[str, ...]:
    names = tuple(place.split("."))
    if not all(_NAME.fullmatch(name) for name in names):
        raise UsageError(f"{_shown(text)} is not a valid name of a parameter.", hint=FORMS)
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
