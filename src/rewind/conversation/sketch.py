"""What a call says and what was answered, in a few digests that stand in the journal.

Two runs of a thousand steps are compared by these alone; bodies are read only where a digest differs. Like a match
key, a sketch names its rule, so one made by another rule is not compared but made anew from the bodies.

A conversation is taken apart into turns: what users and tools say, then what the model says, and so on. ``turn`` is
what stands behind the model's last word, ``history`` is folded from the turns before it, one after the other. So
whether a call goes on from an earlier one can be told without either body: see :func:`history_after`.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from itertools import islice
from typing import NamedTuple

from rewind.conversation.message_digest import Digest, json_text, part_digest
from rewind.dataclass import dataclass
from rewind.match.canonical import without_volatile
from rewind.model.message import Answered, Asked, Message, Part, Role, ToolDefinition, ToolResult, ToolUse
from rewind.providers.api import Api
from rewind.wire.chunks import common_run

_ASKED_RULE = "rs1"
_SAID_RULE = "ra1"
_SIZE = 6
"""Bytes of a part's digest: among a million values the chance that two share one is one in five hundred."""
NOTHING = "-"
TRANSPORT = frozenset({"stream", "stream_options"})
"""Parameters that say how an answer is brought, not what is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A call in six digests; ``-`` stands for what is not there."""

    system: str = NOTHING
    tools: str = NOTHING
    settings: str = NOTHING
    """All parameters but those of transport and those that change from run to run."""
    turn: str = NOTHING
    """What is said to the model since it last spoke."""
    history: str = NOTHING
    """Everything said before that."""
    calls: str = NOTHING  # last: see brings_results
    """What the results of the turn are results of: that two tools said "ok" does not make them one."""

    def __str__(self) -> str:
        return ":".join((_ASKED_RULE, *(getattr(self, name) for name in _FIELDS)))


def read_sketch(text: str | None) -> Sketch | None:
    """``None`` where there is none, or one by another rule."""
    rule, *parts = (text or "").split(":")
    ours = rule == _ASKED_RULE and len(parts) == len(_FIELDS)
    return Sketch(**dict(zip(_FIELDS, parts, strict=True))) if ours else None


def brings_results(text: str | None) -> bool:
    """Whether the call of that sketch brings results of tools. Told without taking it apart: replays ask it of all."""
    return text is not None and text.startswith(_ASKED_RULE) and not text.endswith(f":{NOTHING}")


_FIELDS = tuple(field.name for field in fields(Sketch))


def sketch_of(asked: Asked, provider: Api, ignore: Sequence[str] = ()) -> Sketch:
    """The sketch of a call."""
    return replace(
        _RECENT.sketch(asked.messages),
        system=_parts_digest(Role.SYSTEM, asked.system),
        tools=_RECENT.tools(asked.tools) if asked.tools else NOTHING,
        settings=settings_digest(settings_of(asked, provider, ignore)),
    )


def settings_of(asked: Asked, provider: Api, ignore: Sequence[str] = ()) -> dict[str, object]:
    """The parameters that can make a difference."""
    left = without_volatile(dict(asked.parameters), provider.volatile, ignore)
    return {name: value for name, value in left.items() if name not in TRANSPORT}


def settings_digest(settings: dict[str, object]) -> str:
    return _joined([json_text(settings).encode("utf-8", "surrogatepass")]) if settings else NOTHING


def said_of(answered: Answered) -> str:
    """The mark of what was answered, as it stands in a step line."""
    return f"{_SAID_RULE}:{answer_digest(answered.parts)}"


def read_said(text: str | None) -> str | None:
    """The digest of an answer; ``None`` where there is none, or one by another rule."""
    rule, _, digest = (text or "").partition(":")
    return digest if rule == _SAID_RULE and digest else None


def answer_digest(parts: Iterable[Part]) -> str:
    """What an answer comes to: neither thinking nor ids count."""
    return _parts_digest(Role.ASSISTANT, parts)


def history_after(sketch: Sketch, said: str) -> str:
    """The history of a call that simply goes on from this one and its answer."""
    return _joined([sketch.history.encode(), sketch.turn.encode(), said.encode()])


def _parts_digest(role: Role, parts: Iterable[Part]) -> str:
    side = _TurnSide()
    for part in parts:
        side.add(role, part, part_digest(part))
    return side.digest()


def _tools(tools: Sequence[ToolDefinition]) -> bytes:
    """In any order; written all at once, which takes half the time."""
    inner = sorted(tools, key=lambda tool: (tool.name, tool.description))
    text = json_text([[tool.name, tool.description, tool.schema, tool.hosted] for tool in inner])
    return text.encode("utf-8", "surrogatepass")


class ListDigest:
    """The digest of a list that may go on."""

    __slots__ = ("_digest", "_empty")

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=_SIZE)
        self._empty = True

    def add(self, item: bytes) -> None:
        self._empty = False
        self._digest.update(b"%d:" % len(item))
        self._digest.update(item)

    def copy(self) -> "ListDigest":
        other = ListDigest()
        other._digest, other._empty = self._digest.copy(), self._empty
        return other

    def __str__(self) -> str:
        return NOTHING if self._empty else self._digest.hexdigest()


def _joined(items: Iterable[bytes]) -> str:
    joined = ListDigest()
    for item in items:
        joined.add(item)
    return str(joined)


# ── the sketch of a conversation that grows ──────────────────────────────────────────────────────────────────────


class _Fold(NamedTuple):
    """Where the model had spoken and another begins: all that counts of what was said before."""

    at: int = 0
    """How many messages that was."""
    history: str = NOTHING
    uses: tuple[Digest, ...] = ()
    """What the model's last word asks for."""


class GrowingSketch:
    """What is said so far: ``turn``, ``history`` and ``calls`` of a call that is given just that.

    It is given message by message and never reads again what it knows already.
    """

    def __init__(self, folds: Sequence[_Fold] = ()) -> None:
        """Goes on from the last of the folds of another."""
        self.folds = list(folds)
        begun = self.folds[-1] if self.folds else _Fold()
        self._count = begun.at
        self._history = begun.history
        self._heard = _TurnSide()
        self._said = _TurnSide()
        self._speaks = False
        """Whether the model spoke last."""
        self._uses = list(begun.uses)
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
                self._heard, self._said = _TurnSide(), _TurnSide()
                self._brings = False
                self.folds.append(_Fold(self._count, self._history, tuple(self._uses)))
            elif speaks and not self._speaks:
                self._uses = []
            self._speaks = speaks
            self._count += 1
            for part in message.parts:
                self._take(message.role, part)

    def sketch(self) -> Sketch:
        if self._speaks:
            return Sketch(history=self._folded())
        calls = _joined(sorted(self._uses)) if self._brings else NOTHING
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


class _TurnSide:
    """The parts of one side of a turn: what the model heard, or what it said. By part and not by message: APIs cut a
    turn into messages as they like."""

    def __init__(self) -> None:
        self._before = ListDigest()
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

    def _flush(self, into: ListDigest) -> None:
        for digest in sorted(self.results):
            into.add(b"tool" + digest)


_FEW = 8
"""Messages that are read in less time than it takes to look them up."""
_REMEMBERED = 16
"""Calls that are gone on from: the last one of so many conversations side by side."""


class _RecentSketches:
    """Sketches that go on from those of the last calls, which the next ones repeat.

    What is remembered is replaced as a whole, so that two threads lose a memory at most.
    """

    def __init__(self) -> None:
        self._known: tuple[tuple[tuple[Message, ...], list[_Fold]], ...] = ()
        self._tools: tuple[tuple[ToolDefinition, ...], str] = (), NOTHING

    def sketch(self, messages: tuple[Message, ...]) -> Sketch:
        """``turn``, ``history`` and ``calls`` of a call that is given these messages."""
        shared, base, folds = 0, None, list[_Fold]()
        for known in self._known if len(messages) > _FEW else ():
            if (run := common_run(messages, 0, known[0], 0)) > shared:
                shared, base, folds = run, known[0], known[1]
            if base is not None and shared == len(base):
                break
        # The fold at the end of what is shared was made because of the message behind it.
        growing = GrowingSketch(folds[: bisect_left(folds, shared, key=lambda fold: fold.at)])
        growing.hear(islice(messages, growing.folds[-1].at if growing.folds else 0, None))
        if len(messages) > _FEW:
            others = (one for one in self._known if not (one[0] is base and shared == len(one[0])))
            self._known = ((messages, growing.folds), *islice(others, _REMEMBERED - 1))
        return growing.sketch()

    def tools(self, tools: tuple[ToolDefinition, ...]) -> str:
        known, digest = self._tools
        if known != tools:
            digest = _joined([_tools(tools)])
            self._tools = tools, digest
        return digest


_RECENT = _RecentSketches()
