"""Edits that look like a mistake: a place that nobody knows, a value of the wrong kind.

An edit of a name that the API does not have is sent like any other, costs money and changes nothing. APIs get new
parameters all the time, so an unknown one is doubtful, not wrong.
"""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from rewind.dataclass import dataclass
from rewind.edit.edits import Edit, SetParameter, TextValue
from rewind.model.http import HttpRequest
from rewind.providers.api import Document
from rewind.providers.catalogue import identify
from rewind.providers.shared.parameters import ParameterTable
from rewind.providers.shared.patch import ABSENT, camel, json_or_text, value_at
from rewind.providers.shared.request_body import body_of

PLACES = ("system", "model", "response", "messages", "tool")


@dataclass(frozen=True, slots=True, kw_only=True)
class EditDoubt:
    """One edit that is hardly meant as it is written."""

    edit: Edit
    reason: str
    """A sentence."""
    suggestion: str = ""
    """What may have been meant, as ``--set`` takes it."""


def doubts_about(request: HttpRequest, edits: Sequence[Edit]) -> tuple[EditDoubt, ...]:
    """The edits of parameters that a person should look at again; values taken from a step are not doubted."""
    written = [edit for edit in edits if isinstance(edit, SetParameter) and isinstance(edit.value, TextValue)]
    return tuple(doubt for edit in written for doubt in _doubts(request, edit))


def _doubts(request: HttpRequest, edit: SetParameter) -> Iterator[EditDoubt]:
    document = body_of(request).document
    api = identify(request.head)
    table = api.parameters.load() if api.parameters else None
    place = api.patcher_for(request.head, document).parameter(document, edit.path)
    if value_at(document, place) is ABSENT and not _is_known(place, table, document):
        names = sorted({*_bare(table or ()), *_bare(document), *PLACES} - {edit.path[-1]})
        nearest = get_close_matches(edit.path[-1], names, n=1, cutoff=0.75)
        if table is not None or nearest:
            whose = f"{api.name} has no parameter" if table is not None else "The request has no field"
            meant = _rewritten(edit, nearest[0]) if nearest else ""
            yield EditDoubt(edit=edit, reason=f"{whose} {edit.place} that Rewind knows of.", suggestion=meant)
            return
    allowed = None if table is None else table.get(_key(place)) or table.get(camel(_key(place)))
    assert isinstance(edit.value, TextValue), "only what was written is doubted"
    if allowed is not None and not edit.removes and (wrong := allowed.objection(json_or_text(edit.value.text))):
        as_text = wrong.endswith("a text") and not edit.value.text.startswith(('"', "{", "["))
        meant = f'{edit.place}="{edit.value.text}"' if as_text else ""
        yield EditDoubt(edit=edit, reason=f"{edit.place} {wrong}, not {_shown(edit.value.text)}.", suggestion=meant)


def _key(place: Sequence[str]) -> str:
    """The place as tables name it: without the object that Code Assist puts around a request."""
    bare = place[1:] if place[0] == "request" else place
    return ".".join(bare)


def _is_known(place: Sequence[str], table: ParameterTable | None, document: Document) -> bool:
    """In the table, or in an object of which nobody says what it holds."""
    if table is None:
        return len(place) > 1 and value_at(document, tuple(place[:-1])) is not ABSENT
    key = _key(place)
    if key in table or camel(key) in table:
        return True
    parent = key.rpartition(".")[0]
    listed = any(name.startswith(f"{parent}.") for name in table)
    return bool(parent) and not listed and (parent.partition(".")[0] in table)


def _bare(names: Iterable[Any]) -> list[str]:
    return [str(name).rpartition(".")[2] for name in names]


def _rewritten(edit: SetParameter, name: str) -> str:
    match name:
        case "messages":
            return "messages[i]="
        case "tool":
            return "tool.NAME.result="
        case _:
            return ".".join((*edit.path[:-1], name)) + "="


def _shown(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
