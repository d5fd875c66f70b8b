"""The recorded steps still to be played.

The n-th request with a match key gets the n-th recorded answer of that key. Nothing depends on the order between
keys, so parallel calls may come in any order; a key asked once more than it was recorded is a miss. Twin
conversations that differ only in their ids share a key; there the step that was asked with the very same bytes is
played first, so that twins do not swap answers.

A step that a fork changed on its way out is found by what the agent had sent; and, where no other step has that key,
by what went out, so that an agent that has learned the change is answered, too.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable

from rewind.model.http import RequestHead
from rewind.model.ids import BlobId, MatchKey
from rewind.model.step import Step

Lanes = dict[MatchKey, deque[Step]]


class Tape:
    """Lanes of steps, one for each match key, in order of arrival."""

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
        self._asked: Lanes = defaultdict(deque)
        self._sent: Lanes = defaultdict(deque)
        """Only of steps that a fork changed on their way out."""
        self._steps: dict[int, Step] = {}
        self._keys: dict[int, tuple[MatchKey, MatchKey | None]] = {}
        self._same_bytes: dict[tuple[str, str, int, str, BlobId], MatchKey] = {}
        self._played: set[int] = set()
        for step in steps:
            # A request that died unanswered (the recorder was killed) has nothing to play.
            if step.response is not None or (unanswered_from is not None and step.index >= unanswered_from):
                self._add(step, step.request.match_key if key_of is None else key_of(step))

    def _add(self, step: Step, sent: MatchKey) -> None:
        # What the agent had asked before an edit is not recorded, only its key: other rules cannot make it anew.
        asked = step.request.asked_key or sent
        head = step.request.head
        self._steps[step.index] = step
        self._keys[step.index] = asked, sent if asked != sent else None
        self._asked[asked].append(step)
        if asked != sent:
            self._sent[sent].append(step)
        self._same_bytes[head.method, head.host, head.port, head.target, step.request.body] = sent

    def __len__(self) -> int:
        return len(self._steps)

    def key_of_same_bytes(self, head: RequestHead, body: BlobId) -> MatchKey | None:
        """The key of a recorded request with this very body: what is the same to the byte means the same."""
        return self._same_bytes.get((head.method, head.host, head.port, head.target, body))

    def take(self, key: MatchKey, body: BlobId) -> Step | None:
        """The next step of that lane, now played; ``None`` when there is none left."""
        lane = self._asked.get(key) or self._sent.get(key)
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
        asked, sent = self._keys[index]
        _remove(self._asked[asked], step)
        if sent is not None:
            _remove(self._sent[sent], step)
        self._played.add(index)
        return step

    def put_back(self, step: Step) -> None:
        """A step that was taken and then not played after all."""
        if step.index in self._played:
            self._played.discard(step.index)
            asked, sent = self._keys[step.index]
            _insert(self._asked[asked], step)
            if sent is not None:
                _insert(self._sent[sent], step)

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


def _remove(lane: deque[Step], step: Step) -> None:
    if lane[0] is step:
        lane.popleft()
    else:
        lane.remove(step)


def _insert(lane: deque[Step], step: Step) -> None:
    lane.insert(sum(other.index < step.index for other in lane), step)
