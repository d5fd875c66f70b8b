"""Bodies that were changed in an editor: what of them goes out, and what stays as the agent sends it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest
from rewind.providers.shared.request_body import opened
from rewind.runs.fork.placeholders import NOT_KEPT, holds_placeholder, like, matched


@dataclass(frozen=True, slots=True)
class ManualEdit:
    """A body that was changed in an editor."""

    shown: Any
    saved: Any

    def apply(self, request: HttpRequest) -> HttpRequest:
        """What was changed is as it was saved; what was left alone stays as the agent sends it. Raises CannotEdit."""
        body = opened(request)
        return body.closed(merged(self.shown, self.saved, body.document))

    def check(self) -> None:
        """Raises CannotEdit where the placeholder of a secret would go out."""
        if holds_placeholder(merged(self.shown, self.saved, _with_secrets(self.shown))):
            raise CannotEdit(
                f"What was changed in the editor {NOT_KEPT} Nothing was run.",
                hint="write the secret itself there, or leave that text alone",
            )


@dataclass(frozen=True, slots=True)
class SentBody:
    """The body that went out when an earlier fork had changed it in an editor."""

    document: Any

    def apply(self, request: HttpRequest) -> HttpRequest:
        """That body again, with the secrets that the agent sends. Raises CannotEdit where one is not among them."""
        self.check(request)
        body = opened(request)
        return body.closed(filled(self.document, body.document))

    def check(self, request: HttpRequest) -> None:
        """The same for what was recorded of the agent itself. Raises CannotEdit."""
        if holds_placeholder(filled(self.document, _with_secrets(opened(request).document))):
            raise CannotEdit(
                f"What an earlier fork had changed by hand {NOT_KEPT} Nothing was sent.",
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
    found: list[Any] = []
    for kind, low, high, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            found += live[low:high]
        elif high - low == end - start:
            found += [
                merged(*three)
                for three in zip(shown[low:high], saved[start:end], live[low:high], strict=True)
            ]
        else:
            found += saved[start:end]
    return found


def filled(sent: Any, live: Any) -> Any:
    """``sent`` with the secrets that ``live`` has in the places of their placeholders."""
    if not holds_placeholder(sent):
        return sent
    match sent, live:
        case str(), str():
            return live if matched(sent, live) else sent
        case dict(), dict():
            return {name: filled(value, live.get(name)) for name, value in sent.items()}
        case list(), list() if len(sent) == len(live):
            return [filled(*pair) for pair in zip(sent, live, strict=True)]
        case list(), list():
            return [_filled_from_any(item, live) for item in sent]
    return sent


def _filled_from_any(item: Any, live: list[Any]) -> Any:
    """The history was made longer or shorter by hand: whichever message fits."""
    found = (filled(item, one) for one in live)
    return next((one for one in found if not holds_placeholder(one)), item)


def _with_secrets(document: Any) -> Any:
    """As if the secrets were known: nothing in it is a placeholder any more."""
    return _mapped(document, like)


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return {name: _mapped(one, change) for name, one in value.items()}
        case list():
            return [_mapped(one, change) for one in value]
    return value
