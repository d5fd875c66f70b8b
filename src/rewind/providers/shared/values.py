"""Values in a JSON document by their path, and the model of a request, wherever it stands."""

import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from rewind.errors import CannotEdit
from rewind.model.http import RequestHead
from rewind.providers.shared.patch import Document, Path

ABSENT = object()
"""What is not there, which is not the same as ``null``."""

_IN_PATH = (
    re.compile(r"(?<=/deployments/)[^/?]+(?=/)"),
    re.compile(r"(?<=/models/)(?:(?!%3a)[^/?:])+(?=:|%3a)", re.IGNORECASE),
)
"""Azure names a deployment in the path; Google a model, also one of Anthropic's."""


def value_at(document: Any, path: Path) -> Any:
    """The value there, or ``ABSENT``."""
    for name in path:
        if not isinstance(document, dict) or name not in document:
            return ABSENT
        document = document[name]
    return document


def with_value(document: Document, path: Path, value: Any) -> Document:
    """The document with that value; objects on the way are made where there are none. ``ABSENT`` takes it out."""
    name, *rest = path
    if not rest:
        if value is ABSENT:
            return {key: kept for key, kept in document.items() if key != name}
        return {**document, name: value}
    inner = document.get(name)
    if inner is None and value is ABSENT:
        return document
    if not isinstance(inner, dict | None):
        raise CannotEdit(f"{name} of the request is no object, so it has no {'.'.join(rest)}.")
    return {**document, name: with_value(inner or {}, tuple(rest), value)}


def json_or_text(written: str) -> Any:
    """The JSON value that the text is, or the text itself."""

    def no_json(word: str) -> Any:
        raise ValueError(word)  # NaN and Infinity are Python's own, not JSON's

    try:
        return json.loads(written, parse_constant=no_json)
    except (ValueError, RecursionError):
        return written


def with_model(
    head: RequestHead, document: Document, name: str, *, anywhere: bool
) -> tuple[RequestHead, Document]:
    """The request with another model, in its path or body, or both.

    Where neither names one, it is put into the body if the API takes it there (``anywhere``).
    """
    path, mark, query = head.target.partition("?")
    found = next((place for place in _IN_PATH if place.search(path)), None)
    if found is None and "model" not in document and not anywhere:
        raise CannotEdit("The request names no model.")
    if found is not None:
        bare = name.removeprefix("models/")
        if re.search("[/:]", bare):
            raise CannotEdit(f"The model stands in the path of the request, where {name!r} cannot stand.")
        path = found.sub(lambda _: quote(bare, safe=""), path, count=1)
        head = replace(head, target=f"{path}{mark}{query}")
    old = document.get("model")
    if "model" in document or found is None:
        spelled = isinstance(old, str) and old.startswith("models/") and not name.startswith("models/")
        document = {**document, "model": f"models/{name}" if spelled else name}
    return head, document
