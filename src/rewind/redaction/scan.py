"""Looks through a recording for secrets that nobody named, and tells where they stand without telling what they are."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from rewind.model.http import Headers, header
from rewind.redaction.aws_frames import lines_read
from rewind.redaction.body_texts import Written, paths_of, writings
from rewind.redaction.patterns import Hit, hits
from rewind.redaction.recording_texts import Place
from rewind.wire.encoding import decode_as_far_as_possible
from rewind.wire.eventstream import begins_with_a_frame

SHORTEST_TEXT = 8
_MOST_KNOWN = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that looks like a secret, told by where it was first met."""

    kind: str
    step: int | None
    """``None`` where it is no step's: the command line, what was printed."""
    where: str
    """``request body``, ``response headers``, ``command line``, ``stdout`` …"""
    path: str
    """Inside a body: ``messages[2].content``."""
    excerpt: str
    """How it begins, where that is the same for every key of its kind, and how long it is."""
    expression: str = ""
    """A regular expression that finds every key of this kind; empty where only its surroundings tell."""
    places: int = 1
    """How often it stands in the recording, history repeated by later requests included."""


@dataclass(slots=True)
class _Met:
    finding: Finding
    places: int = 1


@dataclass(slots=True)
class Scan:
    """Collects findings; texts that agents repeat in every request are looked at once."""

    _met: dict[str, _Met] = field(default_factory=dict)
    """By the secret; it stays in here."""
    _known: dict[int, list[Hit]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Scan: {len(self._met)} findings>"

    def text(self, text: str, where: str, *, step: int | None = None, name: str = "", path: str = "") -> None:
        """A text that stands for itself."""
        self._text(text, where, step, name, path)

    def placed(self, text: str, place: Place, where: str, *, step: int | None = None) -> None:
        """A text of the model; a header is read as it is written, with its name."""
        if place.is_header:
            self.text(f"{place.name}: {text}", f"{where} headers", step=step, path=place.path)
        else:
            self._text(text, where, step, place.name, place.path, only_new=place.is_told_again)

    def body(self, data: bytes, headers: Headers, where: str, *, step: int | None = None) -> None:
        """A body as it is stored."""
        plain, _ = decode_as_far_as_possible(data, header(headers, "content-encoding"))
        media = (header(headers, "content-type") or "").lower()
        if begins_with_a_frame(plain):
            plain, media = lines_read(plain), "application/x-ndjson"
        found: list[tuple[Written, Hit]] = []
        for written in writings(plain, media):
            if len(written.text) >= SHORTEST_TEXT and not written.number:
                found += [(written, hit) for hit in self._hits(written.text, written.name)]
        new = [written for written, hit in found if written.text[hit.start : hit.end] not in self._met]
        paths = paths_of(plain, new)
        for written, hit in found:
            secret = written.text[hit.start : hit.end]
            self._meet(secret, hit, step, where, paths.get(written.offset, ""))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """In the order in which they were met."""
        return tuple(replace(met.finding, places=met.places) for met in self._met.values())

    def _text(
        self, text: str, where: str, step: int | None, name: str, path: str, *, only_new: bool = False
    ) -> None:
        for hit in self._hits(text, name):
            secret = text[hit.start : hit.end]
            if not (only_new and secret in self._met):
                self._meet(secret, hit, step, where, path)

    def _hits(self, text: str, name: str) -> Iterable[Hit]:
        if len(text) < SHORTEST_TEXT:
            return ()
        key = hash((text, name))
        found = self._known.get(key)
        if found is None:
            found = hits(text, name)
            if len(self._known) < _MOST_KNOWN:
                self._known[key] = found
        return found

    def _meet(self, secret: str, hit: Hit, step: int | None, where: str, path: str) -> None:
        met = self._met.get(secret)
        if met is not None:
            met.places += 1
            return
        size = f"{len(secret)} characters"
        shown = f"{hit.shown}… ({size})" if hit.shown else f"({size})"
        self._met[secret] = _Met(
            Finding(
                kind=hit.kind, step=step, where=where, path=path, excerpt=shown, expression=hit.expression
            )
        )
