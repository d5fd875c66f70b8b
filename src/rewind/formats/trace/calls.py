"""What the calls of a trace ask: read whole where that is little, else only what is new since the call before.

A call repeats all that had been said. If each were read whole, a trace would take as long as the square of its length.
"""

import hashlib
from dataclasses import dataclass, field, replace

from rewind.conversation.sketch import GrowingSketch, Sketch, sketch_of
from rewind.conversation.threads import Threads
from rewind.formats.trace.apis.base import Form, Turn
from rewind.formats.trace.conversation import FirstTurns, ModelCall
from rewind.formats.trace.exchanges import TraceBodies, TraceExchange
from rewind.formats.trace.lines import TraceLimits
from rewind.match.call import understand
from rewind.model.http import HttpRequest, RequestHead
from rewind.model.ids import MatchKey
from rewind.model.message import Answered, Asked, Message, Part, Role
from rewind.providers.api import Provider
from rewind.providers.catalogue import identify

_KEY_RULE = "rt1"
"""Of the keys of calls that are not read whole; see :mod:`rewind.match.call` for those of all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSummary:
    """A call, understood as far as lists and comparisons need it."""

    provider: Provider
    key: MatchKey
    asked: Asked
    """Of a long call only the last messages."""
    sketch: Sketch | None = None
    thread: int | None = None


@dataclass(frozen=True, slots=True)
class _Settings:
    """A request but for its turns, understood."""

    form: Form
    asked: Asked
    sketch: Sketch


@dataclass(slots=True)
class _Progress:
    """How far the turns of one conversation are read."""

    turns: list[Turn]
    """Held, so that nothing else can get its id."""
    thread: int | None = None
    read: int = 0
    """Turns that ``growing`` has taken in."""
    growing: GrowingSketch | None = field(default_factory=GrowingSketch)
    """``None`` where the sketch cannot be made piece by piece."""
    system: tuple[Part, ...] = ()
    """The system prompt, where the API has it among the turns."""
    messages: tuple[Message, ...] = ()
    """The last two, or the only one."""
    settings: _Settings | None = None
    """Of its latest call."""


class CallReader:
    """Reads every call and every answer of a trace, in order."""

    def __init__(self, bodies: TraceBodies, limits: TraceLimits) -> None:
        self._bodies = bodies
        self._limits = limits
        self._threads = Threads()
        self._conversations: dict[int, _Progress] = {}
        self._reread_bytes = 0
        self._read_bytes = 0
        self._settings_bytes = 0
        self._unsettled = 0

    def call(self, index: int, call: ModelCall, exchange: TraceExchange) -> CallSummary:
        progress, size = self._conversations.get(id(call.turns.all)), exchange.request.size
        if progress is None:
            progress = self._conversations[id(call.turns.all)] = _Progress(call.turns.all)
        elif progress.thread is not None and (
            self._reread_bytes + size > self._limits.reread_bytes or exchange.note
        ):
            return self._new_turns_only(progress, call, exchange)
        else:
            self._reread_bytes += size
        self._read_bytes += size
        if self._read_bytes > self._limits.read_bytes:
            return _unread(call, exchange)
        understood = understand(HttpRequest(head=exchange.head, body=exchange.request.data()))
        asked = understood.provider.asked(understood.request)
        progress.thread = self._threads.call(index, understood.key, asked).thread
        return CallSummary(
            provider=understood.provider,
            key=understood.key,
            asked=asked,
            sketch=sketch_of(asked, understood.provider),
            thread=progress.thread,
        )

    def answer(self, index: int, answered: Answered) -> None:
        self._threads.answer(index, answered)

    def _new_turns_only(self, progress: _Progress, call: ModelCall, exchange: TraceExchange) -> CallSummary:
        provider = identify(exchange.head)
        self._read_new(progress, call.turns, call.form, exchange.head, provider)
        settings = self._settings(progress, call.form, exchange.head, provider)
        if progress.growing is not None and settings is not None:
            self._unsettled += progress.growing.unsettled
            if self._unsettled > self._limits.unsettled_results:
                progress.growing = None
        if progress.growing is None or settings is None:
            return replace(_unread(call, exchange), thread=progress.thread)
        turns = progress.growing.sketch()
        sketch = replace(settings.sketch, turn=turns.turn, history=turns.history, calls=turns.calls)
        model = settings.asked.model
        return CallSummary(
            provider=provider,
            key=_key(exchange, model, sketch),
            asked=Asked(model=model, messages=progress.messages),
            sketch=sketch,
            thread=progress.thread,
        )

    def _read_new(
        self, progress: _Progress, turns: FirstTurns, form: Form, head: RequestHead, provider: Provider
    ) -> None:
        if progress.growing is None or progress.read >= turns.count:
            return
        pieces = b",".join(map(self._bodies.turn, turns.since(progress.read)))
        body = b'{"%s":[%s]}' % (form.turns_at.encode(), pieces)
        asked = provider.asked(HttpRequest(head=head, body=body))
        messages = asked.messages
        if asked.system and not progress.messages:
            progress.system += asked.system
            progress.settings = None
        elif asked.system:
            messages = (Message(Role.SYSTEM, asked.system), *messages)
        progress.read = turns.count
        # Gemini's reader joins an answer to the answer right before it, which is read already.
        starts_with_answer = messages[:1] != () and messages[0].role is Role.ASSISTANT
        joins = provider.name == "gemini" and progress.growing.speaks and starts_with_answer
        if asked.tools or joins:
            progress.growing = None
            return
        progress.growing.hear(messages)
        progress.messages = (*progress.messages, *messages)[-2:]

    def _settings(
        self, progress: _Progress, form: Form, head: RequestHead, provider: Provider
    ) -> _Settings | None:
        """The settings of a request; ``None`` where they bring turns of their own, or are too many to be read."""
        settings = progress.settings
        if settings is None or settings.form is not form:
            opening, closing = self._bodies.frame(form)
            self._settings_bytes += len(opening) + len(closing)
            if self._settings_bytes > self._limits.settings_bytes:
                return None
            asked = provider.asked(HttpRequest(head=head, body=opening + closing))
            asked = replace(asked, system=asked.system + progress.system)
            settings = progress.settings = _Settings(form, asked, sketch_of(asked, provider))
        return None if settings.asked.messages else settings


def _unread(call: ModelCall, exchange: TraceExchange) -> CallSummary:
    asked = Asked(model=call.model or None)
    return CallSummary(provider=identify(exchange.head), key=_key(exchange, call.model, None), asked=asked)


def _key(exchange: TraceExchange, model: str | None, sketch: Sketch | None) -> MatchKey:
    """Calls that ask the same have one key, as far as a trace can tell."""
    parts = [exchange.head.target, model or "", exchange.request.name if sketch is None else str(sketch)]
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass"))
    return MatchKey(f"{_KEY_RULE}:{digest.hexdigest()[:32]}")
