"""What speaks for an API: its answer document for what is said, and how that goes on the wire."""

from typing import Any, Protocol

from rewind.model.http import HttpResponse
from rewind.providers.shared.speak import Said

Fields = dict[str, Any]


class Speaker(Protocol):
    """Answers one request in the way it was asked."""

    @property
    def form(self) -> str:
        """Recorded answers of the same form can be given as they are."""
        ...

    @property
    def is_model(self) -> bool:
        """Whether a model answers here, which says something or calls tools."""
        ...

    def document(self, said: Said) -> Fields:
        """The answer as one document. Raises CannotEdit where the API cannot say that."""
        ...

    def response(self, document: Fields) -> HttpResponse:
        """The document on the wire: whole, or streamed where a stream was asked for."""
        ...
