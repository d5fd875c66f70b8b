"""The recorded steps still to be played.

The n-th request with a match key gets the n-th recorded answer of that key. Nothing depends on the order between
keys, so parallel calls may come in any order; a key asked once more than it was recorded is a miss. Twin
conversations that differ only in their ids share a key; there the step that was asked with the very same bytes is
played first, so that twins do not swap answers.

A step that a fork changed on its way out is found by what the agent had sent; and, where no other step has that key,
by what went out, so that an agent that has learned the change is answered, too.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from rewind.match.call import host_class
from rewind.model.http import HttpRequest, HttpResponse, RequestHead, ResponseHead
from rewind.model.ids import BlobId, MatchKey
from rewind.model.step import Ending, Step
from rewind.providers.telemetry import UploadRow, telemetry_of, upload_row

_Bytes = tuple[str, str, int, str, BlobId]
"""Where a request went, and its body."""


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
        self.uploads = RecordedUploads()
        """Telemetry: any number of times, whatever it says, and no step that is waited for."""
        self._steps: dict[int, Step] = {}
        for step in steps:
            if telemetry_of(step.request) is not None:
                self.uploads.add(step)
            # A request that died unanswered (the recorder was killed) has nothing to play.
            elif step.response is not None or (unanswered_from is not None and step.index >= unanswered_from):
                self._steps[step.index] = step
        self._key_of = key_of or _recorded_key
        self._played: set[int] = set()
        self._changed = any(step.request.asked_key for step in self._steps.values())
        """Whether a fork changed a step on its way out: then what the agent sends is not what is recorded."""

    @cached_property
    def _same_bytes(self) -> dict[_Bytes, list[int]]:
        """The next one last: mostly there is one of each, for which a queue takes much memory."""
        found: dict[_Bytes, list[int]] = defaultdict(list)
        for step in reversed(self._steps.values()):
            found[_bytes_of(step.request.head, step.request.body)].append(step.index)
        return found

    @cached_property
    def _lanes(self) -> "_Lanes":
        """Made when a request comes that was not recorded to the byte: keys may have to be made anew for it."""
        lanes = _Lanes()
        for step in self._steps.values():
            lanes.add(step, self._key_of(step), played=step.index in self._played)
        return lanes

    def __len__(self) -> int:
        return len(self._steps)

    def take_same_bytes(self, head: RequestHead, body: BlobId) -> Step | None:
        """The next step that was asked in these very bytes, now played: what is the same to the byte means the same.

        ``None`` where that does not tell which step it is.
        """
        if self._changed:
            return None
        recorded = self._same_bytes.get(_bytes_of(head, body))
        while recorded and recorded[-1] in self._played:
            recorded.pop()
        return self.take_step(recorded[-1]) if recorded else None

    def take(self, key: MatchKey, body: BlobId) -> Step | None:
        """The next step of that lane, now played; ``None`` when there is none left."""
        lane = self._lanes.asked.get(key) or self._lanes.sent.get(key)
        if not lane:
            return None
        if lane[0].request.body == body or len(lane) == 1:
            step = lane[0]
        else:
            step = next((step for step in lane if step.request.body == body), lane[0])
        return self.take_step(step.index)

    def take_step(self, index: int) -> Step:
        """That very step, out of its lane."""
        step = self._steps[index]
        if "_lanes" in self.__dict__:
            self._lanes.remove(step)
        self._played.add(index)
        return step

    def put_back(self, step: Step) -> None:
        """A step that was taken and then not played after all."""
        if step.index in self._played:
            self._played.discard(step.index)
            self.__dict__.pop("_same_bytes", None)
            if "_lanes" in self.__dict__:
                self._lanes.insert(step)

    def played(self, index: int) -> bool:
        return index in self._played

    @property
    def count_played(self) -> int:
        return len(self._played)

    def steps(self) -> tuple[Step, ...]:
        """Everything that can be played, played or not."""
        return tuple(self._steps.values())

    def unplayed(self) -> tuple[Step, ...]:
        return tuple(step for index, step in self._steps.items() if index not in self._played)


def _bytes_of(head: RequestHead, body: BlobId) -> _Bytes:
    return head.method, head.host, head.port, head.target, body


def _recorded_key(step: Step) -> MatchKey:
    return step.request.match_key


class _Lanes:
    """The steps that are still to be played, by what was asked and by what went out."""

    def __init__(self) -> None:
        self.asked: dict[MatchKey, deque[Step]] = defaultdict(deque)
        self.sent: dict[MatchKey, deque[Step]] = defaultdict(deque)
        """Only of steps that a fork changed on their way out."""
        self._keys: dict[int, tuple[MatchKey, MatchKey | None]] = {}

    def add(self, step: Step, sent: MatchKey, *, played: bool) -> None:
        """The next step."""
        # What the agent had asked before an edit is not recorded, only its key: other rules cannot make it anew.
        asked = step.request.asked_key or sent
        self._keys[step.index] = asked, sent if asked != sent else None
        if not played:
            for lane in self._of(step):
                lane.append(step)

    def remove(self, step: Step) -> None:
        for lane in self._of(step):
            if lane[0] is step:
                lane.popleft()
            else:
                lane.remove(step)

    def insert(self, step: Step) -> None:
        for lane in self._of(step):
            lane.insert(sum(other.index < step.index for other in lane), step)

    def _of(self, step: Step) -> Iterator[deque[Step]]:
        asked, sent = self._keys[step.index]
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


def empty_answer(row: UploadRow, request: HttpRequest) -> HttpResponse:
    """What an upload gets where none was recorded: thanks, in the form in which it came."""
    form = request.head.header("content-type") or ""
    is_json = "protobuf" not in form and (bool(row.answer) or "json" in form)
    body = (row.answer or "{}").encode() if is_json else b""
    kind = "application/json" if is_json else form.partition(";")[0] or "text/plain"
    headers = (("Content-Type", kind), ("Content-Length", str(len(body))))
    return HttpResponse(head=ResponseHead(status=200, reason="OK", headers=headers), body=body, chunks=())
