"""What stands in the store in place of a secret, and must not be sent in its place."""

import re
from collections.abc import Iterable
from typing import Any

from rewind.edit.edits import Edit, SetResponse
from rewind.errors import CannotEdit
from rewind.redaction.forms import PLACEHOLDER

NOT_KEPT = "holds a secret that is not kept: REDACTED… stands in its place, and would be sent."


def holds_placeholder(value: Any) -> bool:
    """Whether one stands anywhere in a value: a text, JSON, or what was taken from a step."""
    match value:
        case str():
            return PLACEHOLDER.search(value) is not None
        case dict():
            return any(map(holds_placeholder, value.values()))
        case list():
            return any(map(holds_placeholder, value))
    return PLACEHOLDER.search(repr(value)) is not None


def matched(kept: str, text: str) -> bool:
    """Whether the text is what was kept, with something as long in the places of the secrets."""
    at, pattern = 0, ""
    for found in PLACEHOLDER.finditer(kept):
        pattern += re.escape(kept[at : found.start()]) + rf"\S{{{len(found[0])}}}"
        at = found.end()
    return re.fullmatch(pattern + re.escape(kept[at:]), text) is not None


def like(kept: str) -> str:
    """A text that was kept, as if the secrets were known."""
    return PLACEHOLDER.sub(lambda found: "s" * len(found[0]), kept)


def refuse_placeholders(edits: Iterable[Edit]) -> None:
    """Raises CannotEdit where the placeholder of a secret would be sent."""
    for edit in edits:
        if not isinstance(edit, SetResponse) and holds_placeholder(edit.value):
            place = edit.written.partition("=")[0]
            raise CannotEdit(
                f"{_shown(edit.written)} {NOT_KEPT} Nothing was run.",
                hint=f"give it again, with the secret in it: --set '{place}=…'",
            )


def _shown(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
