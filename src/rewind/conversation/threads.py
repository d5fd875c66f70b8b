"""Which conversation does a call belong to? Recognised from what is asked, without a word from the agent.

A run may hold several conversations at once: an agent and its sub-agents, or parallel tasks. A call continues an
earlier one if, by the first of these that holds,

1. it names the earlier answer's id, or the history that the provider keeps (``previous_response_id``,
   ``conversation``);
2. its messages are the earlier call's messages and the answer to it, and then only what users and tools say;
3. it is the latest call of which one of these holds:
   - its messages are a beginning of the new call's. The longest beginning under the same system prompt wins; under
     another prompt, the answer must follow it;
   - its answer asked for a tool whose result is brought, and the history has no other call under that id;
   - its answer is quoted, as by an agent that shortened or edited its history. A short answer could be anybody's, and
     counts only within a conversation that is recognised by other means;
4. the new call goes on after its last message under the same system prompt, or after its last two messages: a history
   that was compacted, or slides. (Examples that many calls share do not count: they stand before the last message.)

Otherwise it begins a conversation. A call that repeats an earlier one stands beside it. The first call of a
conversation was started by a call of another one if most of its first message was an argument of a tool call that
was open at the time: so a sub-agent is found under the step that started it.

Calls and answers are given in the order in which they came, so the same class serves a recording that is going on
and one that is read back.
"""

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import field
from itertools import islice, pairwise, takewhile
from typing import Any, NamedTuple

from rewind.conversation.message_digest import Digest, digests, json_text, message_digest, part_digest
from rewind.dataclass import dataclass
from rewind.model.ids import MatchKey
from rewind.model.message import Answered, Asked, Message, Role, ToolUse, results_in
from rewind.wire.chunks import common_run

_TELLING_ANSWER = 40
"""A quoted answer of at least so many characters is hardly somebody else's."""
_TELLING_ARGUMENT = 24
"""A tool's argument of at least so many characters that is found again is not a coincidence."""
_MOST_OF_IT = 0.3
"""How much of a first message an argument must be to have started the conversation."""
_OPEN_CALLS = 50
"""How many calls with open tools are looked at; further back, somebody would have answered them."""
_LONGEST_ARGUMENT = 20_000
_FEW = 8
"""Messages that are read in less time than it takes to look them up."""
_REMEMBERED = 16
"""Calls whose messages are kept: the last one of so many conversations side by side."""


@dataclass(frozen=True, slots=True)
class ThreadPlace:
    """Where a call stands in its run."""

    thread: int
    """Counts conversations from 1, in order of their first call."""
    parent: int | None = None
    """The step of the same conversation that it goes on from."""
    started_by: int | None = None
    """For the first call of a sub-agent: the step of another conversation whose tool call started it."""


_Beginning = tuple[Digest, tuple[Digest, ...] | None, tuple[Digest, ...] | None]
"""A list of messages, with the system prompt it stood under and the answer it got; ``None`` for any."""


@dataclass(slots=True)
class _Known:
    """What is remembered of an earlier call."""

    index: int
    place: ThreadPlace
    system: tuple[Digest, ...]
    beginning: Digest = b""
    """Of all its messages, as a later call may begin with them."""
    answer: tuple[Digest, ...] = ()
    arguments: tuple[str, ...] = ()
    """Texts given to the tools it asked for."""
    went_on: bool = False
    """Whether a later call of its conversation is known: then its tools have answered."""


@dataclass(slots=True)
class Threads:
    """Tell it every call and every answer; it says where each call stands."""

    with_starters: bool = True
    """Whether to look for what started a conversation; recording does not need it."""
    most: int | None = None
    """How many of the last calls are remembered at least, and twice as many at most; ``None``: all."""
    _calls: dict[int, _Known] = field(default_factory=dict)
    _open: dict[int, _Known] = field(default_factory=dict)
    _by_key: dict[MatchKey, _Known] = field(default_factory=dict)
    _by_beginning: dict[_Beginning, _Known] = field(default_factory=dict)
    _by_answer_id: dict[str, _Known] = field(default_factory=dict)
    _by_history: dict[str, _Known] = field(default_factory=dict)
    _by_tool_id: dict[str, tuple[_Known, Digest | None]] = field(default_factory=dict)
    _by_answer: dict[tuple[Digest, ...], _Known] = field(default_factory=dict)
    _in_thread: dict[tuple[int, tuple[Digest, ...]], _Known] = field(default_factory=dict)
    _by_last: dict[tuple[tuple[Digest, ...], Digest], _Known] = field(default_factory=dict)
    _by_last_two: dict[tuple[Digest, Digest], _Known] = field(default_factory=dict)
    _lately: "_ChainedDigests" = field(default_factory=lambda: _ChainedDigests())
    _threads: int = 0

    def call(self, index: int, key: MatchKey, asked: Asked) -> ThreadPlace:
        """A call arrived."""
        system = digests(asked.system)
        messages, chain = self._lately.digests(asked.messages)
        place = self._place(key, asked, system, messages, chain)
        known = _Known(index=index, place=place, system=system, beginning=chain[-1] if chain else b"")
        self._calls[index] = self._by_key[key] = known
        if asked.history:
            self._by_history[asked.history] = known
        if chain:
            self._by_beginning[chain[-1], None, None] = self._by_beginning[chain[-1], system, None] = known
            self._by_last[system, messages[-1]] = known
        if len(messages) > 1:
            self._by_last_two[messages[-2], messages[-1]] = known
        if self.most is not None and len(self._calls) > 2 * self.most:
            self._forget(sorted(self._calls)[-self.most])
        return place

    def _forget(self, oldest: int) -> None:
        """Calls before that one."""
        tables: tuple[dict[Any, _Known], ...] = (
            *(self._calls, self._open, self._by_key, self._by_beginning, self._by_answer_id, self._by_history),
            *(self._by_answer, self._in_thread, self._by_last, self._by_last_two),
        )
        for table in tables:
            for key in [key for key, known in table.items() if known.index < oldest]:
                del table[key]
        for name in [name for name, (known, _) in self._by_tool_id.items() if known.index < oldest]:
            del self._by_tool_id[name]

    def answer(self, index: int, answered: Answered) -> None:
        """The answer to a call came."""
        known = self._calls.get(index)
        if known is None:
            return
        known.answer = digests(answered.parts)
        if known.answer and known.beginning:
            for system in (known.system, None):
                answering = known.beginning, system, known.answer
                if (other := self._by_beginning.get(answering)) is None or other.index < index:
                    self._by_beginning[answering] = known
        if answered.id:
            self._by_answer_id[answered.id] = known
        self._by_tool_id.update({use.id: (known, part_digest(use)) for use in answered.tool_uses if use.id})
        self._in_thread[known.place.thread, known.answer] = known
        if _length(answered) >= _TELLING_ANSWER:
            self._by_answer[known.answer] = known
        if self.with_starters and answered.tool_uses and not known.went_on:
            known.arguments = tuple(_telling(answered.tool_uses))
            self._open[index] = known

    def _place(
        self,
        key: MatchKey,
        asked: Asked,
        system: tuple[Digest, ...],
        messages: tuple[Digest, ...],
        chain: tuple[Digest, ...],
    ) -> ThreadPlace:
        named = self._by_answer_id.get(asked.continues or "")
        twin = self._by_key.get(key)
        # Keys know no ids: equal words that go on from another answer are another call.
        if twin is not None and (named is None or twin.place.parent == named.index):
            return twin.place
        before = (
            named
            or self._by_history.get(asked.history or "")
            or self._by_content(asked.messages, system, chain)
            or self._by_tail(system, messages)
        )
        if before is not None:
            before.went_on = True
            self._open.pop(before.index, None)
            return ThreadPlace(before.place.thread, before.index)
        self._threads += 1
        return ThreadPlace(self._threads, started_by=self._starter(asked, system) if self.with_starters else None)

    def _by_content(
        self, messages: tuple[Message, ...], system: tuple[Digest, ...], chain: tuple[Digest, ...]
    ) -> _Known | None:
        size, begun = self._longest_beginning(messages, system, chain)
        later = islice(messages, size + 1, None)
        if begun is not None and not any(message.role is Role.ASSISTANT for message in later):
            return begun
        quotes = list(_assistant_runs(messages))
        found = _latest([begun, *self._by_results(messages), *map(self._by_answer.get, quotes)])
        if found is None:
            return None
        thread = found.place.thread
        return _latest([found, *(self._in_thread.get((thread, quote)) for quote in quotes)])

    def _longest_beginning(
        self, messages: tuple[Message, ...], system: tuple[Digest, ...], chain: tuple[Digest, ...]
    ) -> tuple[int, _Known | None]:
        """How many messages are shared with it, and the call."""
        elsewhere: tuple[int, _Known | None] = (0, None)
        known = self._by_beginning
        for size in range(len(chain) - 1, 0, -1):
            beginning = chain[size - 1]
            if (beginning, None, None) not in known:
                continue
            follows = _assistant_run(messages, size)
            best = known.get((beginning, system, follows)) or known.get((beginning, system, None))
            if best is not None:
                return size, best
            answering = known.get((beginning, None, follows))
            if answering is not None and elsewhere[1] is None:
                elsewhere = size, answering
        return elsewhere

    def _by_results(self, messages: tuple[Message, ...]) -> Iterator[_Known | None]:
        """By the ids of results; where the history has the call itself, it must be that call."""
        results = [result.id for result in results_in(messages) if result.id in self._by_tool_id]
        if not results:
            return
        uses = {part.id: part for message in messages for part in message.parts if isinstance(part, ToolUse)}
        for tool_id in results:
            known, digest = self._by_tool_id[tool_id]
            use = uses.get(tool_id)
            if use is None or part_digest(use) == digest:
                yield known

    def _by_tail(self, system: tuple[Digest, ...], messages: tuple[Digest, ...]) -> _Known | None:
        before_last = messages[:-1]
        if system:
            for message in reversed(before_last):
                if (known := self._by_last.get((system, message))) is not None:
                    return known
        return _latest(self._by_last_two.get(pair) for pair in pairwise(before_last))

    def _starter(self, asked: Asked, system: tuple[Digest, ...]) -> int | None:
        """The call whose open tool call was given what this conversation begins with."""
        first = next((message.text for message in asked.messages if message.role is Role.USER), "")
        found, longest = None, 0
        for known in islice(reversed(self._open.values()), _OPEN_CALLS):
            if known.system == system:
                continue  # the next one of a batch, not its work
            for text in known.arguments:
                if len(text) > longest and len(text) >= _MOST_OF_IT * len(first) and text in first:
                    found, longest = known.index, len(text)
        return found


def _latest(calls: Iterable[_Known | None]) -> _Known | None:
    return max(filter(None, calls), key=lambda known: known.index, default=None)


class _Chained(NamedTuple):
    """The messages of a call, a digest of each, and one of every beginning of the list."""

    messages: tuple[Message, ...] = ()
    digests: tuple[Digest, ...] = ()
    chain: tuple[Digest, ...] = ()


class _ChainedDigests:
    """Goes on from the last calls, which the next ones repeat."""

    def __init__(self) -> None:
        self._known: deque[_Chained] = deque(maxlen=_REMEMBERED)

    def digests(self, messages: tuple[Message, ...]) -> tuple[tuple[Digest, ...], tuple[Digest, ...]]:
        """A digest of every message, and of every beginning of the list."""
        shared, base = 0, _Chained()
        for known in self._known if len(messages) > _FEW else ():
            if (run := common_run(messages, 0, known.messages, 0)) > shared:
                shared, base = run, known
            if shared and shared == len(base.messages):
                break
        each, chain = list(base.digests[:shared]), list(base.chain[:shared])
        for message in messages[shared:]:
            each.append(message_digest(message))
            chain.append(hashlib.blake2b((chain[-1] if chain else b"") + each[-1], digest_size=16).digest())
        found = _Chained(messages, tuple(each), tuple(chain))
        if shared and shared == len(base.messages):
            self._known.remove(base)
        if len(messages) > _FEW:
            self._known.appendleft(found)
        return found.digests, found.chain


def _assistant_run(messages: tuple[Message, ...], start: int) -> tuple[Digest, ...]:
    """What the assistant says from there on, until another speaks: some APIs give one turn in several messages."""
    run = takewhile(lambda one: one.role is Role.ASSISTANT, map(messages.__getitem__, range(start, len(messages))))
    return tuple(digest for message in run for digest in digests(message.parts))


def _assistant_runs(messages: tuple[Message, ...]) -> Iterator[tuple[Digest, ...]]:
    """Every turn of the assistant."""
    before = Role.USER
    for at, message in enumerate(messages):
        if message.role is Role.ASSISTANT and before is not Role.ASSISTANT:
            yield _assistant_run(messages, at)
        before = message.role


def _length(answered: Answered) -> int:
    return len(answered.text) + sum(len(json_text(use.arguments)) for use in answered.tool_uses)


def _telling(uses: tuple[ToolUse, ...]) -> Iterator[str]:
    for use in uses:
        for text in _strings(use.arguments):
            if _TELLING_ARGUMENT <= len(text) <= _LONGEST_ARGUMENT:
                yield text


def _strings(value: Any) -> Iterator[str]:
    pending: list[Any] = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            pending.extend(one.values())
        elif isinstance(one, list):
            pending.extend(one)
