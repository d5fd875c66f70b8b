"""What a provider is: a table of volatile fields and a few pure functions over one API's bodies."""

from dataclasses import dataclass
from typing import Any, Protocol

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked
from rewind.model.step import StepKind


@dataclass(frozen=True, slots=True)
class Volatile:
    """A field whose value changes from run to run while the request means the same.

    ``path`` follows the grammar of :mod:`rewind.match.paths`. A plain row is removed. A ``linked`` row holds an
    id that other fields refer to: it is renamed by order of first appearance, so that what belongs together still
    does.
    """

    path: str
    reason: str
    linked: bool = False


class Provider(Protocol):
    """A codec for one API. Nothing here raises on any bytes: recorded traffic may be damaged or cut."""

    @property
    def name(self) -> str:
        """As written in journals: ``anthropic``, ``openai``, ``http`` …"""
        ...

    @property
    def kind(self) -> StepKind:
        """What a step of this provider is."""
        ...

    @property
    def volatile(self) -> tuple[Volatile, ...]:
        """Fields that do not count when two requests are compared."""
        ...

    def claims(self, head: RequestHead) -> bool:
        """Whether this request speaks this API. Looks at method, host, path and headers only."""
        ...

    def asked(self, request: HttpRequest) -> Asked:
        """What the model is given."""
        ...

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        """What came back, as far as it came."""
        ...

    def refusal(self, message: str) -> dict[str, Any]:
        """An error in this API's own shape, so that its SDK shows the message."""
        ...
