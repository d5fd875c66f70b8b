"""What the calls of a trace ask: read whole where that is little, and else only what is new since the call before.

A call repeats all that had been said. Were each read whole, a trace would take as long as the square of its length.
"""

import hashlib
from dataclasses import dataclass, field, replace

from rewind.conversation.sketch import Growing, Sketch, sketch_of
from rewind.conversation.threads import Threads
from rewind.formats.trace.apis.base import Form, Turn
from rewind.formats.trace.bodies import Bodies
from rewind.formats.trace.events import Call, Turns
from rewind.formats.trace.exchanges import Exchange
from rewind.match.call import understand
from rewind.model.http import HttpRequest, RequestHead
from rewind.model.ids import MatchKey
from rewind.model.message import Answered, Asked, Message, Part, Role
from rewind.providers.api import Provider
from rewind.providers.catalogue import identify

_AGAIN = 128 * 1024
"""Bytes of calls that are read whole though they go on from one that was."""
_WHOLE = 8 * 1024 * 1024
"""Bytes of calls that are read whole; those after that, when they are looked at."""
_SETTINGS = 32 * 1024 * 1024
"""Bytes of settings that are read for calls of which only the news are."""
_UNSETTLED = 500_000
"""Results that are gone through again and again, where no answer comes between them."""
_RULE = "rt1"
"""Of the keys of calls that are not read whole; see :mod:`rewind.match.call` for those of all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
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
class _Talk:
    """What is known of the turns of one conversation."""

    turns: list[Turn]
    """Held, so that nothing else can get its id."""
    thread: int | None = None
    read: int = 0
    """Turns that ``growing`` has heard."""
    growing: Growing | None = field(default_factory=Growing)
    """``None`` where it cannot be told piece by piece."""
    system: tuple[Part, ...] = ()
    """What stands before all else, where the API has it among the turns."""
    messages: tuple[Message, ...] = ()
    """The last two, or the only one."""
    settings: _Settings | None = None
    """Of its latest call."""


class Talks:
    """Hears every call and every answer of a trace, in order."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._threads = Threads()
        self._talks: dict[int, _Talk] = {}
        self._again = 0
        self._whole = 0
        self._set = 0
        self._unsettled = 0

    def call(self, index: int, call: Call, exchange: Exchange) -> Heard:
        talk = self._talks.get(id(call.turns.all))
        if talk is None:
            talk = self._talks[id(call.turns.all)] = _Talk(call.turns.all)
        elif talk.thread is not None and (self._again + exchange.request.size > _AGAIN or exchange.note):
            return self._news(talk, call, exchange)
        else:
            self._again += exchange.request.size
        self._whole += exchange.request.size
        if self._whole > _WHOLE:
            return self._unread(call, exchange)
        understood = understand(HttpRequest(head=exchange.head, body=exchange.request.data()))
        asked = understood.provider.asked(understood.request)
        talk.thread = self._threads.call(index, understood.key, asked).thread
        return Heard(
            provider=understood.provider,
            key=understood.key,
            asked=asked,
            sketch=sketch_of(asked, understood.provider),
            thread=talk.thread,
        )

    def answer(self, index: int, answered: Answered) -> None:
        self._threads.answer(index, answered)

    # ── calls of which only the news are read ────────────────────────────────────────────────────────────────

    def _news(self, talk: _Talk, call: Call, exchange: Exchange) -> Heard:
        provider = identify(exchange.head)
        self._hear(talk, call.turns, call.form, exchange.head, provider)
        settings = self._settings(talk, call.form, exchange.head, provider)
        if talk.growing is None or settings is None:
            return replace(self._unread(call, exchange), thread=talk.thread)
        self._unsettled += talk.growing.unsettled
        if self._unsettled > _UNSETTLED:
            talk.growing = None
            return replace(self._unread(call, exchange), thread=talk.thread)
        told = talk.growing.sketch()
        asked, fixed = settings.asked, settings.sketch
        sketch = Sketch(
            system=fixed.system,
            tools=fixed.tools,
            settings=fixed.settings,
            turn=told.turn,
            history=told.history,
            calls=told.calls,
        )
        return Heard(
            provider=provider,
            key=_key(exchange, asked.model, sketch),
            asked=Asked(model=asked.model, messages=talk.messages),
            sketch=sketch,
            thread=talk.thread,
        )

    def _hear(self, talk: _Talk, turns: Turns, form: Form, head: RequestHead, provider: Provider) -> None:
        if talk.growing is None or talk.read >= turns.count:
            return
        pieces = b",".join(map(self._bodies.turn, turns.since(talk.read)))
        body = b'{"%s":[%s]}' % (form.turns_at.encode(), pieces)
        asked = provider.asked(HttpRequest(head=head, body=body))
        new = asked.messages
        if asked.system and not talk.messages:
            talk.system += asked.system
            talk.settings = None
        elif asked.system:
            new = (Message(Role.SYSTEM, asked.system), *new)
        talk.read = turns.count
        if asked.tools or _goes_on(talk, new, provider):
            talk.growing = None
            return
        talk.growing.hear(new)
        talk.messages = (*talk.messages, *new)[-2:]

    def _settings(self, talk: _Talk, form: Form, head: RequestHead, provider: Provider) -> _Settings | None:
        """The settings of a request; ``None`` where they bring turns of their own, or are too many to be read."""
        known = talk.settings
        if known is None or known.form is not form:
            opening, closing = self._bodies.around(form)
            self._set += len(opening) + len(closing)
            if self._set > _SETTINGS:
                return None
            asked = provider.asked(HttpRequest(head=head, body=opening + closing))
            asked = replace(asked, system=asked.system + talk.system)
            known = talk.settings = _Settings(form, asked, sketch_of(asked, provider))
        return None if known.asked.messages else known

    def _unread(self, call: Call, exchange: Exchange) -> Heard:
        asked = Asked(model=call.model or None)
        return Heard(provider=identify(exchange.head), key=_key(exchange, call.model, None), asked=asked)


def _goes_on(talk: _Talk, new: tuple[Message, ...], provider: Provider) -> bool:
    """Whether the model goes on in the middle of its turn, and its reader joins the words of both pieces."""
    assert talk.growing is not None, "it is told piece by piece"
    return (
        provider.name == "gemini" and talk.growing.speaks and new[:1] != () and new[0].role is Role.ASSISTANT
    )


def _key(exchange: Exchange, model: str | None, sketch: Sketch | None) -> MatchKey:
    """Calls that ask the same have one key, as far as a trace can tell."""
    told = [exchange.head.target, model or "", exchange.request.name if sketch is None else str(sketch)]
    digest = hashlib.sha256("\0".join(told).encode("utf-8", "surrogatepass"))
    return MatchKey(f"{_RULE}:{digest.hexdigest()[:32]}")
