"""Bodies that were changed in an editor: what of them goes out, and what stays as the agent sends it.

What stands in the store in place of a secret must not be sent in its place.
"""

import json
import re
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from typing import Any

from rewind.dataclass import dataclass
from rewind.edit.edits import Edit, SetResponse
from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest
from rewind.providers.shared.request_body import body_of
from rewind.redaction.values import PLACEHOLDER

NOT_KEPT = "contains a secret that Rewind does not store: REDACTED… would be sent in its place."


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


def matches_redacted(kept: str, text: str) -> bool:
    """Whether the text is what was kept, with something as long in the places of the secrets."""
    at, pattern = 0, ""
    for placeholder in PLACEHOLDER.finditer(kept):
        pattern += re.escape(kept[at : placeholder.start()]) + rf"\S{{{len(placeholder[0])}}}"
        at = placeholder.end()
    return re.fullmatch(pattern + re.escape(kept[at:]), text) is not None


def with_dummy_secrets(kept: str) -> str:
    """A text that was kept, as if the secrets were known."""
    return PLACEHOLDER.sub(lambda placeholder: "s" * len(placeholder[0]), kept)


def refuse_placeholders(edits: Iterable[Edit]) -> None:
    """Raises CannotEdit where the placeholder of a secret would be sent."""
    for edit in edits:
        if not isinstance(edit, SetResponse) and holds_placeholder(edit.value):
            raise CannotEdit(
                f"{_shown(edit.written)} {NOT_KEPT} Nothing was run.",
                hint=f"give it again, with the secret in it: --set '{edit.target}…'",
            )


def _shown(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


@dataclass(frozen=True, slots=True)
class ManualEdit:
    """A body that was changed in an editor."""

    shown: Any
    saved: Any

    def apply(self, request: HttpRequest) -> HttpRequest:
        """What was changed is as it was saved; what was left alone stays as the agent sends it. Raises CannotEdit."""
        body = body_of(request)
        return body.rewritten(merged(self.shown, self.saved, body.document))

    def check(self) -> None:
        """Raises CannotEdit where the placeholder of a secret would go out."""
        if holds_placeholder(merged(self.shown, self.saved, _with_secrets(self.shown))):
            raise CannotEdit(
                f"What you changed in the editor {NOT_KEPT} Nothing was run.",
                hint="write the secret itself there, or leave that text alone",
            )


@dataclass(frozen=True, slots=True)
class SentBody:
    """The body that went out when an earlier fork had changed it in an editor."""

    document: Any

    def apply(self, request: HttpRequest) -> HttpRequest:
        """That body again, with the secrets that the agent sends. Raises CannotEdit where one is not among them."""
        self.check(request)
        body = body_of(request)
        return body.rewritten(filled(self.document, body.document))

    def check(self, request: HttpRequest) -> None:
        """The same for what was recorded of the agent itself. Raises CannotEdit."""
        if holds_placeholder(filled(self.document, _with_secrets(body_of(request).document))):
            raise CannotEdit(
                f"What an earlier fork changed by hand {NOT_KEPT} Nothing was sent.",
                hint="fork the session that it comes from, and edit that by hand",
            )


def merged(shown: Any, saved: Any, live: Any) -> Any:
    """The change from ``shown`` to ``saved``, made to ``live``."""
    if saved == shown:
        return live
    if isinstance(shown, dict) and isinstance(saved, dict) and isinstance(live, dict):
        kept = {
            name: merged(shown[name], value, live[name]) if name in shown and name in live else value
            for name, value in saved.items()
        }
        return kept | {name: value for name, value in live.items() if name not in shown and name not in kept}
    lists = isinstance(shown, list) and isinstance(saved, list) and isinstance(live, list)
    if lists and len(shown) == len(live):
        return _merged_lists(shown, saved, live)
    return saved


def _merged_lists(shown: list[Any], saved: list[Any], live: list[Any]) -> list[Any]:
    """Item by item; where some were added or taken out, those that were left alone are known by being equal."""
    if len(shown) == len(saved):
        return [merged(*three) for three in zip(shown, saved, live, strict=True)]
    before, after = ([json.dumps(item, sort_keys=True) for item in items] for items in (shown, saved))
    items_now: list[Any] = []
    for kind, low, high, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            items_now += live[low:high]
        elif high - low == end - start:
            items_now += [
                merged(*three) for three in zip(shown[low:high], saved[start:end], live[low:high], strict=True)
            ]
        else:
            items_now += saved[start:end]
    return items_now


def filled(sent: Any, live: Any) -> Any:
    """``sent`` with the secrets that ``live`` has in the places of their placeholders."""
    if not holds_placeholder(sent):
        return sent
    match sent, live:
        case str(), str():
            return live if matches_redacted(sent, live) else sent
        case dict(), dict():
            return {name: filled(value, live.get(name)) for name, value in sent.items()}
        case list(), list() if len(sent) == len(live):
            return [filled(*pair) for pair in zip(sent, live, strict=True)]
        case list(), list():
            return [_filled_from_any(item, live) for item in sent]
    return sent


def _filled_from_any(item: Any, live: list[Any]) -> Any:
    """The history was made longer or shorter by hand: whichever message fits."""
    candidates = (filled(item, candidate) for candidate in live)
    return next((candidate for candidate in candidates if not holds_placeholder(candidate)), item)


def _with_secrets(document: Any) -> Any:
    """As if the secrets were known: nothing in it is a placeholder any more."""
    return _mapped(document, with_dummy_secrets)


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return {name: _mapped(item, change) for name, item in value.items()}
        case list():
            return [_mapped(item, change) for item in value]
    return value
