"""A body as people can read it: content encoding taken off, then JSON, text or bytes."""

import json
import math
from typing import Any, NoReturn

from rewind.dataclass import dataclass
from rewind.model.http import Headers, header
from rewind.wire.encoding import SHOWN_LIMIT, decode_as_far_as_possible

DEEPEST = 200
"""JSON nested deeper is shown as text: neither we nor who reads us should need a stack for it."""


@dataclass(frozen=True, slots=True)
class BodyText:
    """A body as far as it can be read by people: exactly one of the three is there."""

    json: Any = None
    text: str | None = None
    binary: bytes | None = None
    note: str | None = None
    """Why it could not be decoded."""

    @property
    def is_json(self) -> bool:
        return self.text is None and self.binary is None


def read_body(data: bytes, headers: Headers) -> BodyText:
    """What people can read of a body."""
    plain, note = decoded(data, headers)
    try:
        text = plain.decode("utf-8")
    except UnicodeDecodeError as problem:
        if problem.reason != "unexpected end of data":
            return BodyText(binary=plain, note=note)
        # An answer that was cut inside a character is text all the same.
        text = plain.decode("utf-8", "replace")
    if text[:64].lstrip()[:1] in ("{", "["):
        try:
            return BodyText(json=_strict_json(text), note=note)
        except (ValueError, RecursionError):
            # Not JSON after all, or nothing that JSON could carry on.
            return BodyText(text=text, note=note)
    return BodyText(text=text, note=note)


def decoded(data: bytes, headers: Headers) -> tuple[bytes, str | None]:
    """The body without its content encoding, as far as that goes, and what stopped it."""
    plain, problem = decode_as_far_as_possible(data, header(headers, "content-encoding"), limit=SHOWN_LIMIT)
    return (data, problem) if problem and not plain else (plain, problem)


def is_event_stream(headers: Headers) -> bool:
    return (header(headers, "content-type") or "").partition(";")[0].strip().lower() == "text/event-stream"


def _strict_json(text: str) -> Any:
    value = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return value
    raise ValueError(f"nested deeper than {DEEPEST}")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits} has no place in a JSON that we could print")
    return value
