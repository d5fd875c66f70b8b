"""The recorded steps still to be played.

The n-th request with a match key gets the n-th recorded answer of that key. Nothing depends on the order between
keys, so parallel calls may come in any order; a key asked once more than it was recorded is a miss. Twin
conversations that differ only in their ids share a key; there the step that was asked with the very same bytes is
played first, so that twins do not swap answers.

A step that a fork changed on its way out is found by what the agent had sent; and, where no other step has that key,
by what went out, so that an agent that has learned the change is answered, too.

A long recording is not held: the tape knows what finds its steps, and each is read when it is played.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple, Self

from rewind.match.call import host_class
from rewind.model.http import HttpResponse, RequestHead, ResponseHead
from rewind.model.ids import BlobId, MatchKey
from rewind.model.step import Ending, Step
from rewind.providers.telemetry import UploadRow, telemetry_of, upload_row


class TapeEntry(NamedTuple):
    """What finds a step again. Hashes in place of texts, because there may be very many."""

    step: int
    place: int
    """Of where the request went and of its body; see :func:`place_of`."""
    body: int
    """Of the name of its body."""
    key: MatchKey
    asked_key: MatchKey | None = None
    """Where a fork changed the request on its way out: that of what the agent had sent."""


def place_of(where: tuple[str, str, int, str], body: BlobId) -> int:
    """``where`` is the method, host, port and target of a request."""
    return hash((where, body))


class Tape:
    """The steps of a recording, each of which is played once."""

    def __init__(
        self,
        steps: Iterable[Step],
        key_of: Callable[[Step], MatchKey] | None = None,
        *,
        unanswered_from: int | None = None,
    ) -> None:
        """``key_of`` where the recorded keys were made by other rules than those in force now.

        From ``unanswered_from`` on, steps without an answer are on the tape, too: a fork only has to know them.
        """
        uploads, held = RecordedUploads(), {}
        for step in steps:
            if telemetry_of(step.request) is not None:
                uploads.add(step)
            # A request that died unanswered (the recorder was killed) has nothing to play.
            elif step.response is not None or (unanswered_from is not None and step.index >= unanswered_from):
                held[step.index] = step
        self._wind(map(_entry_of, held.values()), held.__getitem__, key_of, uploads)

    @classmethod
    def of_entries(
        cls, entries: Iterable[TapeEntry], read: Callable[[int], Step], key_of: Callable[[Step], MatchKey] | None = None
    ) -> Self:
        """A tape of steps that are read when they are played; none is telemetry. ``read`` may raise DamagedStore."""
        tape = cls.__new__(cls)
        tape._wind(entries, read, key_of, RecordedUploads())
        return tape

    def _wind(
        self,
        entries: Iterable[TapeEntry],
        read: Callable[[int], Step],
        key_of: Callable[[Step], MatchKey] | None,
        uploads: "RecordedUploads",
    ) -> None:
        self.uploads = uploads
        """Telemetry: any number of times, whatever it says, and no step that is waited for."""
        self._entries = {entry.step: entry for entry in entries}
        self._key_of = key_of
        self._played: set[int] = set()
        self._changed = any(entry.asked_key for entry in self._entries.values())
        """Whether a fork changed a step on its way out: then what the agent sends is not what is recorded."""
        self.step = read
        """The step of that index, played or not."""

    @cached_property
    def _same_bytes(self) -> dict[int, list[int]]:
        """The next one last: mostly there is one of each, for which a queue takes much memory."""
        found: dict[int, list[int]] = {}
        for entry in reversed(self._entries.values()):
            found.setdefault(entry.place, []).append(entry.step)
        return found

    @cached_property
    def _lanes(self) -> "_Lanes":
        """Made when a request comes that was not recorded to the byte: keys may have to be made anew for it."""
        lanes = _Lanes()
        for entry in self._entries.values():
            key = entry.key if self._key_of is None else self._key_of(self.step(entry.step))
            lanes.add(entry, key, played=entry.step in self._played)
        return lanes

    def make_ready(self) -> None:
        """Do now what would otherwise delay the first request."""
        _ = self._same_bytes

    def __len__(self) -> int:
        return len(self._entries)

    def take_same_bytes(self, head: RequestHead, body: BlobId) -> Step | None:
        """The next step that was asked in these very bytes, now played: what is the same to the byte means the same.

        ``None`` where that does not tell which step it is.
        """
        if self._changed:
            return None
        where = head.method, head.host, head.port, head.target
        recorded = self._same_bytes.get(place_of(where, body))
        while recorded and recorded[-1] in self._played:
            recorded.pop()
        if not recorded:
            return None
        step = self.step(recorded[-1])
        asked = step.request.head
        if step.request.body != body or (asked.method, asked.host, asked.port, asked.target) != where:
            return None  # two hashes that are the same by chance
        self._mark(step.index)
        return step

    def take(self, key: MatchKey, body: BlobId) -> Step | None:
        """The next step of that lane, now played; ``None`` when there is none left."""
        lane = self._lanes.asked.get(key) or self._lanes.sent.get(key)
        if not lane:
            return None
        name, entry = hash(body), lane[0]
        if entry.body != name and len(lane) > 1:
            entry = next((entry for entry in lane if entry.body == name), entry)
        return self.take_step(entry.step)

    def take_step(self, index: int) -> Step:
        """That very step, out of its lane."""
        step = self.step(index)
        self._mark(index)
        return step

    def _mark(self, index: int) -> None:
        if "_lanes" in self.__dict__:
            self._lanes.remove(self._entries[index])
        self._played.add(index)

    def put_back(self, step: Step) -> None:
        """A step that was taken and then not played after all."""
        if step.index in self._played:
            self._played.discard(step.index)
            self.__dict__.pop("_same_bytes", None)
            if "_lanes" in self.__dict__:
                self._lanes.insert(self._entries[step.index])

    def played(self, index: int) -> bool:
        return index in self._played

    @property
    def count_played(self) -> int:
        return len(self._played)

    def indexes(self) -> tuple[int, ...]:
        """Of everything that can be played, played or not."""
        return tuple(self._entries)

    def steps(self) -> tuple[Step, ...]:
        """Everything that can be played, played or not."""
        return tuple(map(self.step, self._entries))

    def unplayed(self) -> tuple[Step, ...]:
        return tuple(self.step(index) for index in self._entries if index not in self._played)


def _entry_of(step: Step) -> TapeEntry:
    request, head = step.request, step.request.head
    place = place_of((head.method, head.host, head.port, head.target), request.body)
    return TapeEntry(step.index, place, hash(request.body), request.match_key, request.asked_key)


class _Lanes:
    """The steps that are still to be played, by what was asked and by what went out."""

    def __init__(self) -> None:
        self.asked: dict[MatchKey, deque[TapeEntry]] = defaultdict(deque)
        self.sent: dict[MatchKey, deque[TapeEntry]] = defaultdict(deque)
        """Only of steps that a fork changed on their way out."""
        self._keys: dict[int, tuple[MatchKey, MatchKey | None]] = {}

    def add(self, entry: TapeEntry, sent: MatchKey, *, played: bool) -> None:
        """The next step."""
        # What the agent had asked before an edit is not recorded, only its key: other rules cannot make it anew.
        asked = entry.asked_key or sent
        self._keys[entry.step] = asked, sent if asked != sent else None
        if not played:
            for lane in self._of(entry):
                lane.append(entry)

    def remove(self, entry: TapeEntry) -> None:
        for lane in self._of(entry):
            if lane[0].step == entry.step:
                lane.popleft()
            else:
                lane.remove(entry)

    def insert(self, entry: TapeEntry) -> None:
        for lane in self._of(entry):
            lane.insert(sum(other.step < entry.step for other in lane), entry)

    def _of(self, entry: TapeEntry) -> Iterator[deque[TapeEntry]]:
        asked, sent = self._keys[entry.step]
        yield self.asked[asked]
        if sent is not None:
            yield self.sent[sent]


# ── telemetry ────────────────────────────────────────────────────────────────────────────────────────────────


class RecordedUploads:
    """The telemetry of a recording. Its batches are others in every run, so no upload waits for one of its own."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, ...], list[Step]] = {}
        """By address, the path included, and by address and name: some paths hold an id."""
        self._next: dict[tuple[str, ...], int] = {}

    def add(self, step: Step) -> None:
        """One that got no whole answer has nothing that another could be given."""
        response = step.response
        if response is not None and response.head is not None and response.ending is Ending.COMPLETE:
            for address in _addresses(step.request.head, telemetry_of(step.request) or ""):
                self._at.setdefault(address, []).append(step)

    def answer_to(self, head: RequestHead, body: BlobId) -> Step | None:
        """The step whose answer an upload gets: the one of these very bytes, else the next there; the last for ever."""
        row = upload_row(head.method, head.host, head.path)
        for address in _addresses(head, row.name if row is not None else ""):
            if steps := self._at.get(address):
                same = next((step for step in steps if step.request.body == body), None)
                at = self._next.get(address, 0)
                self._next[address] = at + 1
                return same or steps[min(at, len(steps) - 1)]
        return None


def _addresses(head: RequestHead, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    host = host_class(head.host)
    return (head.method, host, head.path), (head.method, host, "", name)


def empty_answer(row: UploadRow, head: RequestHead) -> HttpResponse:
    """What an upload gets where none was recorded: thanks, in the form in which it came."""
    form = head.header("content-type") or ""
    is_json = "protobuf" not in form and (bool(row.answer) or "json" in form)
    body = (row.answer or "{}").encode() if is_json else b""
    kind = "application/json" if is_json else form.partition(";")[0] or "text/plain"
    headers = (("Content-Type", kind), ("Content-Length", str(len(body))))
    return HttpResponse(head=ResponseHead(status=200, reason="OK", headers=headers), body=body, chunks=())
