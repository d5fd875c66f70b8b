"""The sketch of a conversation that grows: told message by message, it never reads what it knows already.

It comes to the very digests of :func:`rewind.conversation.sketch.sketch_of`, and changes with them: both name one rule.
"""

from collections.abc import Iterable

from rewind.conversation.message_digest import Digest, part_digest
from rewind.conversation.sketch import NOTHING, Joined, Sketch, calls_digest, history_after
from rewind.model.message import Message, Part, Role, ToolResult, ToolUse


class Growing:
    """What is said so far: ``turn``, ``history`` and ``calls`` of a call that is given just that."""

    def __init__(self) -> None:
        self._history = NOTHING
        self._heard = _Items()
        self._said = _Items()
        self._speaks = False
        """Whether the model spoke last."""
        self._uses: list[Digest] = []
        """What the model's last word asks for."""
        self._brings = False
        """Whether results follow it."""

    @property
    def speaks(self) -> bool:
        return self._speaks

    @property
    def unsettled(self) -> int:
        """Results that others may still come before: they are gone through at every look."""
        return len(self._heard.results)

    def hear(self, messages: Iterable[Message]) -> None:
        """These follow."""
        for message in messages:
            speaks = message.role is Role.ASSISTANT
            if self._speaks and not speaks:
                self._history = self._folded()
                self._heard, self._said = _Items(), _Items()
                self._brings = False
            elif speaks and not self._speaks:
                self._uses = []
            self._speaks = speaks
            for part in message.parts:
                self._take(message.role, part)

    def sketch(self) -> Sketch:
        if self._speaks:
            return Sketch(history=self._folded())
        calls = calls_digest(self._uses) if self._brings else NOTHING
        return Sketch(turn=self._heard.digest(), history=self._history, calls=calls)

    def _folded(self) -> str:
        before = Sketch(history=self._history, turn=self._heard.digest())
        return history_after(before, self._said.digest())

    def _take(self, role: Role, part: Part) -> None:
        digest = part_digest(part)
        (self._said if self._speaks else self._heard).add(role, part, digest)
        if self._speaks:
            if isinstance(part, ToolUse) and digest is not None:
                self._uses.append(digest)
        elif isinstance(part, ToolResult):
            self._brings = True


class _Items:
    """The parts of one side of a turn."""

    def __init__(self) -> None:
        self._before = Joined()
        self.results: list[Digest] = []
        """Of the run of results that may go on: tools that ran side by side may answer in any order."""

    def add(self, role: Role, part: Part, digest: Digest | None) -> None:
        if isinstance(part, ToolResult):
            if digest is not None:
                self.results.append(digest)
            return
        self._flush(self._before)
        self.results = []
        if digest is not None:
            self._before.add(role.value.encode() + digest)

    def digest(self) -> str:
        if not self.results:
            return str(self._before)
        whole = self._before.copy()
        self._flush(whole)
        return str(whole)

    def _flush(self, into: Joined) -> None:
        for digest in sorted(self.results):
            into.add(b"tool" + digest)
