"""Bodies that are put together when they are asked for: each call repeats what was said before, which is kept once."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rewind.formats.trace.apis.base import Form, Turn
from rewind.formats.trace.events import Turns
from rewind.model.ids import BlobId
from rewind.model.step import NO_BYTES

LONGEST_RUN = 1024 * 1024 * 1024
"""Bytes of all requests together, from which on a call is told without what was said before."""
_FORMS = 64
"""Requests whose frames are kept in mind."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body that can be had."""

    name: BlobId
    size: int
    data: Callable[[], bytes]


@dataclass(slots=True)
class _Running:
    """The hash of the latest request of a conversation, up to its turns so far: the next one goes on from it."""

    turns: list[Turn]
    """Held, so that nothing else can get its id."""
    opening: bytes
    digest: Any
    size: int
    count: int = 0
    empty: bool = True

    def add(self, piece: bytes) -> None:
        if not self.empty:
            self.digest.update(b",")
            self.size += 1
        self.empty = False
        self.digest.update(piece)
        self.size += len(piece)


class Bodies(Mapping[BlobId, bytes]):
    """The bodies of a session by their names."""

    def __init__(self) -> None:
        self._bodies: dict[BlobId, Body] = {}
        self._written: dict[int, tuple[Turn, bytes]] = {}
        self._running: dict[int, _Running] = {}
        self._around: dict[int, tuple[Form, bytes, bytes]] = {}
        self.size = 0
        """Of all of them together."""

    def whole(self, document: Any) -> Body:
        """A JSON document."""
        return self._of(written(document))

    def text(self, text: str) -> Body:
        return self._of(text.encode("utf-8", "replace"))

    def request(self, form: Form, turns: Turns) -> Body:
        """A request around its turns; each turn is written and hashed once, however often it is repeated."""
        opening, closing = self.around(form)
        running = self._running.get(id(turns.all))
        if running is None or running.opening != opening or running.count > turns.count:
            digest = hashlib.sha256(opening)
            running = _Running(turns.all, opening, digest, len(opening), empty=not form.first)
            self._running[id(turns.all)] = running
        for turn in turns.since(running.count):
            running.add(self.turn(turn))
        running.count = turns.count
        whole = running.digest.copy()
        whole.update(closing)

        def data() -> bytes:
            opening, closing = self.around(form)  # not held: of many calls they are much
            between = b"," if form.first and len(turns) else b""
            return opening + between + b",".join(map(self.turn, turns.since(0))) + closing

        return self._known(whole.hexdigest(), running.size + len(closing), data)

    def around(self, form: Form) -> tuple[bytes, bytes]:
        """What stands before and behind what was said."""
        known = self._around.get(id(form))
        if known is None:
            before = written(form.before)[:-1] + (b"," if form.before else b"")
            after = (b"," + written(form.after)[1:]) if form.after else b"}"
            first = b",".join(map(written, form.first))
            known = form, b"%s%s:[%s" % (before, written(form.turns_at), first), b"]" + after
            while len(self._around) >= _FORMS:
                del self._around[next(iter(self._around))]
            self._around[id(form)] = known
        return known[1:]

    def turn(self, turn: Turn) -> bytes:
        """One turn as JSON."""
        # Known by identity, and held, so that nothing else can get its id.
        known = self._written.get(id(turn))
        if known is None:
            known = self._written[id(turn)] = turn, written(turn)
        return known[1]

    def _of(self, data: bytes) -> Body:
        return self._known(hashlib.sha256(data).hexdigest(), len(data), lambda: data)

    def _known(self, digest: str, size: int, data: Callable[[], bytes]) -> Body:
        name = BlobId("sha256:" + digest)
        self.size += size
        body = Body(name, size, data)
        if name != NO_BYTES:
            self._bodies.setdefault(name, body)
        return body

    def __getitem__(self, name: BlobId) -> bytes:
        return self._bodies[name].data()

    def __iter__(self) -> Iterator[BlobId]:
        return iter(self._bodies)

    def __len__(self) -> int:
        return len(self._bodies)


def written(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
