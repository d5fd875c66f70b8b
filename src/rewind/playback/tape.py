"""The recorded steps still to be played.

The n-th request with a match key gets the n-th recorded answer of that key. Nothing depends on the order between
keys, so parallel calls may come in any order; a key asked once more than it was recorded is a miss. Twin
conversations that differ only in their ids share a key; there the step that was asked with the very same bytes is
played first, so that twins do not swap answers.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable

from rewind.model.http import RequestHead
from rewind.model.ids import BlobId, MatchKey
from rewind.model.step import Step


class Tape:
    """Lanes of steps, one for each match key, in order of arrival."""

    def __init__(self, steps: Iterable[Step], key_of: Callable[[Step], MatchKey] | None = None) -> None:
        """``key_of`` where the recorded keys were made by other rules than those in force now."""
        self._lanes: dict[MatchKey, deque[Step]] = defaultdict(deque)
        self._steps: dict[int, Step] = {}
        self._keys: dict[int, MatchKey] = {}
        self._same_bytes: dict[tuple[str, str, int, str, BlobId], MatchKey] = {}
        self._played: set[int] = set()
        for step in steps:
            # A request that died unanswered (the recorder was killed) has nothing to play.
            if step.response is not None:
                key = step.request.match_key if key_of is None else key_of(step)
                head = step.request.head
                self._steps[step.index] = step
                self._keys[step.index] = key
                self._lanes[key].append(step)
                self._same_bytes[head.method, head.host, head.port, head.target, step.request.body] = key

    def __len__(self) -> int:
        return len(self._steps)

    def key_of_same_bytes(self, head: RequestHead, body: BlobId) -> MatchKey | None:
        """The key of a recorded request with this very body: what is the same to the byte means the same."""
        return self._same_bytes.get((head.method, head.host, head.port, head.target, body))

    def take(self, key: MatchKey, body: BlobId) -> Step | None:
        """The next step of that lane, now played; ``None`` when there is none left."""
        lane = self._lanes.get(key)
        if not lane:
            return None
        if lane[0].request.body == body or len(lane) == 1:
            step = lane.popleft()
        else:
            step = next((step for step in lane if step.request.body == body), lane[0])
            lane.remove(step)
        self._played.add(step.index)
        return step

    def take_step(self, index: int) -> Step:
        """That very step, out of its lane."""
        step = self._steps[index]
        self._lanes[self._keys[index]].remove(step)
        self._played.add(index)
        return step

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
