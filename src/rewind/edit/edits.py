"""One change to a call, as ``rewind fork --set`` names it. The texts are read in :mod:`rewind.edit.grammar`."""

from dataclasses import dataclass
from typing import Any

from rewind.model.http import HttpResponse
from rewind.model.message import Answered, Message

# ── where a value comes from ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Literal:
    """The value as the user wrote it."""

    text: str

    @property
    def written(self) -> str:
        return f"@{self.text}" if self.text.startswith("@") else self.text


@dataclass(frozen=True, slots=True)
class From:
    """The value is what another session's step has in that place."""

    session: str
    step: int

    @property
    def written(self) -> str:
        return f"@{self.session}:{self.step}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What was found at the step that a reference names."""

    origin: From
    value: Any
    """A text for a model, a JSON value for a parameter, and one of the classes below for all else."""

    @property
    def written(self) -> str:
        return self.origin.written


Source = Literal | From | Taken


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenSystem:
    """A system prompt: for its own API as it was written there, for others as a text."""

    dialect: str
    raw: Any
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenParameter:
    """A parameter, and the API by whose rules it is written."""

    dialect: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenMessage:
    """A message: for its own API as it was written there, for others without accent."""

    dialect: str
    raw: Any
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenResult:
    """What a tool gave back: for its own API as it was written there, for others as a text."""

    dialect: str
    raw: Any
    text: str
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenAnswer:
    """A recorded answer, to the byte, and what it says: for a call that it does not fit as it is."""

    form: str
    """Which API in which form (whole, events, frames) it is written in."""
    response: HttpResponse
    answered: Answered


# ── the edits ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SetSystem:
    """``system=TEXT``"""

    value: Source

    @property
    def written(self) -> str:
        return f"system={self.value.written}"


@dataclass(frozen=True, slots=True)
class AppendSystem:
    """``system+=TEXT``"""

    value: Source

    @property
    def written(self) -> str:
        return f"system+={self.value.written}"


@dataclass(frozen=True, slots=True)
class SetModel:
    """``model=NAME``"""

    value: Source

    @property
    def written(self) -> str:
        return f"model={self.value.written}"


@dataclass(frozen=True, slots=True)
class SetParameter:
    """``PARAM=VALUE``; an empty literal takes the parameter out."""

    path: tuple[str, ...]
    value: Source

    @property
    def written(self) -> str:
        return f"{'.'.join(self.path)}={self.value.written}"

    @property
    def removes(self) -> bool:
        return self.value == Literal("")


@dataclass(frozen=True, slots=True)
class SetMessage:
    """``messages[i]=VALUE``"""

    index: int
    """As in the request, from 0; a negative one counts from the end."""
    value: Source

    @property
    def written(self) -> str:
        return f"messages[{self.index}]={self.value.written}"


@dataclass(frozen=True, slots=True)
class SetToolResult:
    """``tool.NAME.result=VALUE``"""

    name: str
    value: Source

    @property
    def written(self) -> str:
        return f"tool.{self.name}.result={self.value.written}"


@dataclass(frozen=True, slots=True)
class SetResponse:
    """``response=VALUE``: nothing is sent, and this is the answer."""

    value: Source

    @property
    def written(self) -> str:
        return f"response={self.value.written}"


Edit = SetSystem | AppendSystem | SetModel | SetParameter | SetMessage | SetToolResult | SetResponse
