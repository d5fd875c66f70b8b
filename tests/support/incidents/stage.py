"""Where a scripted agent is run: its calls go to a scripted model, and what a recorder would have seen is kept.

The noise comes from here. Level 0 repeats word for word. Level 1: every answer is worded anew. Level 2: so are prose
arguments, parallel calls come in another order, and results of tools carry durations, ids, times and scores. Level 3:
now and then the model reads something once more, and now and then a call is tried again. Ids, headers, timing and the
pieces of streams differ at every level.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, ResponseHead
from rewind.model.message import Answered, Asked, Message, Part, Role, Text, ToolDefinition, ToolResult, ToolUse
from rewind.model.usage import Usage
from support.incidents.intent import CallIntent, Do, Entry, FromModel, FromTool, FromUser, Intent, Mind, Say, View
from support.incidents.wording import Voice
from support.planted_agent import DIALECTS
from support.planted_recording import Call, Exchange, Played, played
from support.planted_style import Noise, Style
from support.planted_wire import document

LEVELS = (0, 1, 2, 3)
_ALWAYS = frozenset({Noise.IDS, Noise.TIMING, Noise.HEADERS, Noise.PIECES})
_STOPS = {"anthropic": "max_tokens", "chat": "length", "gemini": "MAX_TOKENS"}
_ERRORS = {
    429: "Number of requests has exceeded your rate limit.",
    500: "The server had an error while processing your request.",
    503: "The model is overloaded. Please try again later.",
    529: "Overloaded",
}
WIRE = "~"
"""Begins the names of requests that no model answers."""
_EXTRA_READS = 0.1
_RETRIES = 0.05
_WORDS_PER_TOKEN = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRole:
    """All of a conversation's calls but their messages."""

    api: str
    model: str
    snapshot: str
    """The model that says it answered."""
    system: str
    tools: tuple[ToolDefinition, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    streamed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A call that fails as often as it is tried; the agent then asks another model, if it has one."""

    status: int
    tries: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A program and the world it runs in. An incident is a change of it."""

    roles: Mapping[str, AgentRole]
    question: str
    facts: Mapping[str, Any]
    follow_ups: tuple[str, ...] = ()
    outages: Mapping[tuple[str, int], Outage] = field(default_factory=dict)
    """By conversation and turn, counted from 0."""
    fallback: str | None = None
    """The model that is asked where another is down."""
    window: int | None = None
    """How many entries of its history the agent sends, besides the first; ``None``: all."""
    forgets: frozenset[str] = frozenset()
    """What users said with these words is dropped from the history as soon as it is not the last exchange."""
    skips: frozenset[str] = frozenset()
    """Calls that the agent's code does not make."""
    coins: frozenset[str] = frozenset()
    """Decisions that the model takes otherwise, asked the same."""

    def with_role(self, name: str, **changes: Any) -> "Setup":
        return replace(self, roles={**self.roles, name: replace(self.roles[name], **changes)})

    def with_facts(self, **changes: Any) -> "Setup":
        return replace(self, facts={**self.facts, **changes})


@dataclass(frozen=True, slots=True)
class Meant:
    """A line of the log of intents."""

    call: Call
    key: str


class Over(Exception):
    """The agent gives up."""


class Run:
    """One run of an agent."""

    def __init__(self, setup: Setup, *, seed: str, tag: str, level: int) -> None:
        """Runs of one seed say the same as far as the level lets them; the tag tells them apart."""
        self.setup = setup
        self.level = level
        self.seed = seed
        self.tag = tag
        self.style = Style.of(f"{seed}:{tag}", _ALWAYS)
        self.exchanges: list[Exchange] = []
        self.log: list[Meant] = []

    def drawing(self, what: str, *, from_level: int) -> Random:
        """The same in every run of the seed below that level, and this run's own from there on."""
        return Random(f"{self.seed}:{what}" + (f":{self.tag}" if self.level >= from_level else ""))

    def voice(self, what: str, *, from_level: int) -> Voice:
        own = self.level >= from_level
        return Voice(f"{self.seed}:{what}" + (f":{self.tag}" if own else ""), free=own)

    def talk(self, name: str, mind: Mind, *, role: str = "", at: float = 0.0) -> "Conversation":
        return Conversation(self, name, self.setup.roles[role or name], mind, at)

    def played(self, *, exit_code: int) -> Played:
        return played(sorted(self.exchanges, key=lambda one: one.began), self.style, exit_code)

    def fetch(self, name: str, request: HttpRequest, body: bytes, *, at: float, key: str) -> float:
        """A request of the agent that no model answers; ``key`` is what it came to. When it ended is returned."""
        call = Call(WIRE + name, 0)
        took = round(self.drawing(f"timing:{call.talk}", from_level=2).uniform(0.02, 0.4), 3)
        self.keep(call, at, took, request, 200, "application/json", body)
        self.log.append(Meant(call, key))
        return at + took + 0.001

    def keep(
        self, call: Call, began: float, took: float, request: HttpRequest, status: int, media: str, body: bytes
    ) -> None:
        head = ResponseHead(status=status, reason="", headers=self.style.server_headers(media, began + took))
        response = HttpResponse(head=head, body=body, chunks=())
        self.exchanges.append(Exchange(call=call, began=began, took=took, request=request, response=response))


class Conversation:
    """One conversation of the agent with a model."""

    def __init__(self, run: Run, name: str, role: AgentRole, mind: Mind, at: float) -> None:
        self.run = run
        self.name = name
        self.role = role
        self.clock = at
        self.entries: list[Entry] = []
        self.read_only: frozenset[str] = frozenset()
        """Tools that a model may well call once more."""
        self._mind = mind
        self._asks = 0
        self._meant = 0
        self._timing = run.drawing(f"timing:{name}", from_level=2)
        self._accidents = run.drawing(f"accidents:{name}", from_level=0)

    def user(self, text: str) -> None:
        self.entries.append(FromUser(text))

    def volatile(self, meant: CallIntent) -> Random:
        """What a tool's result carries and nobody means: durations, ids, scores."""
        return self.run.drawing(f"volatile:{self.name}:{self._meant}:{meant.key}", from_level=2)

    def converse(self, tool: Callable[[CallIntent, Random], str], *, most: int = 100) -> str:
        """Ask and call tools until the model has the last word, which is returned."""
        for _ in range(most):
            said = self.ask()
            if not said.calls:
                return said.text
            self.answer_calls(said, tool)
        raise Over

    def answer_calls(self, said: FromModel, tool: Callable[[CallIntent, Random], str]) -> None:
        for name, meant, _ in said.calls:
            self.clock += self._seconds(0.02, 0.9)
            text = tool(meant, self.volatile(meant))
            self.entries.append(FromTool(name, meant, text, innocent=said.innocent))

    def ask(self) -> FromModel:
        """The next answer. Raises Over where there is none."""
        call = Call(self.name, self._asks)
        self._asks += 1
        extra = self._extra_read()
        outage = None if extra else self.run.setup.outages.get((self.name, self._meant))
        sent = self._sent()
        if outage is not None:
            self._fail(call, sent, outage)
        elif self.run.level >= 3 and self._accidents.random() < _RETRIES:
            status = 529 if self.role.api == "anthropic" else 503 if self.role.api == "gemini" else 429
            self._try_in_vain(call, sent, status)
        intent: Intent = extra or self._mind(self._view(sent))
        if extra is None:
            said, answered = self._worded(intent)
            self.run.log.append(Meant(call, intent.key + (" (cut)" if answered.stop else "")))
            self._meant += 1
        else:
            said, answered = self._worded(extra, innocent=True)
        self._exchange(call, sent, answered)
        self.entries.append(said)
        if answered.stop:
            raise Over
        return said

    def reply(self, entries: Sequence[Entry]) -> Answered:
        """What the model answers to a conversation that somebody else keeps."""
        self.entries = list(entries)
        self._meant = sum(isinstance(one, FromModel) for one in entries)
        return self._worded(self._mind(self._view(self._sent())))[1]

    # ── what is sent ─────────────────────────────────────────────────────────────────────────────────────────

    def _sent(self) -> tuple[Entry, ...]:
        setup, entries = self.run.setup, list(self.entries)
        if setup.window is not None and len(entries) > setup.window + 1:
            kept = entries[-setup.window :]
            while kept and not isinstance(kept[0], FromUser | FromModel):
                kept = kept[1:]  # a result without its call would be refused
            entries = [entries[0], *kept]
        last = max((at for at, one in enumerate(entries) if isinstance(one, FromModel)), default=-1)
        for words in setup.forgets:
            told = [at for at, one in enumerate(entries) if isinstance(one, FromUser) and words in one.text]
            if told and told[0] + 1 < last:
                del entries[told[0] : told[0] + 2]  # with what was answered to it
        return tuple(entries)

    def _view(self, sent: tuple[Entry, ...]) -> View:
        role = self.role
        return View(
            model=role.model,
            snapshot=role.snapshot,
            system=role.system,
            tools={tool.name: tool for tool in role.tools},
            parameters=role.parameters,
            entries=sent,
            coins=self.run.setup.coins,
        )

    def _asked(self, sent: Sequence[Entry]) -> Asked:
        messages: list[Message] = []
        for entry in sent:
            match entry:
                case FromUser(text):
                    messages.append(Message(Role.USER, (Text(text),)))
                case FromModel():
                    messages.append(Message(Role.ASSISTANT, _parts(entry)))
                case FromTool(name, meant, text):
                    result = ToolResult(name, (Text(text),), name=meant.tool)
                    if messages[-1].role is Role.TOOL:
                        messages[-1] = Message(Role.TOOL, (*messages[-1].parts, result))
                    else:
                        messages.append(Message(Role.TOOL, (result,)))
        return Asked(
            model=self.role.model,
            system=(Text(self.role.system),) if self.role.system else (),
            messages=tuple(messages),
            tools=self.role.tools,
            parameters=self.role.parameters,
            streamed=self.role.streamed,
        )

    # ── what is answered ─────────────────────────────────────────────────────────────────────────────────────

    def _extra_read(self) -> Do | None:
        """Something that was read before, read again."""
        if self.run.level < 3 or not self.entries or isinstance(self.entries[-1], FromModel):
            return None
        accidents = self.run.drawing(f"extra:{self.name}:{self._asks}", from_level=0)
        known = [
            one.meant
            for one in self.entries
            if isinstance(one, FromTool) and one.meant.tool in self.read_only and not one.innocent
        ]
        if not known or accidents.random() >= _EXTRA_READS:
            return None
        ways = (
            "[Let me|I want to|I'd like to] [double-check|verify|look again at] [that|this] [first|before going on].",
        )
        return Do(calls=(accidents.choice(known),), beside=ways)

    def _worded(self, intent: Intent, *, innocent: bool = False) -> tuple[FromModel, Answered]:
        place = f"{self.name}:{self._meant}:{intent.key}"
        voice = self.run.voice(f"words:{place}", from_level=1)
        stop = ""
        match intent:
            case Do():
                text = voice.aside(intent.beside) if intent.beside else ""
                calls = [self._written(one, f"{place}:{at}") for at, one in enumerate(intent.calls)]
                self.run.drawing(f"order:{place}", from_level=2).shuffle(calls)
            case Say():
                text = intent.exact or voice.answer(intent.statements, opens=intent.opens, closes=intent.closes)
                calls = []
                text, stop = self._cut(text)
        said = FromModel(text, tuple(calls), innocent)
        answered = Answered(
            id=self.run.style.name(f"{self.role.api[:4]}_"),
            model=self.role.snapshot,
            parts=_parts(said),
            stop=stop,
            usage=Usage(input=200 + 60 * len(self.entries), output=10 + len(text) // 4 + 20 * len(calls)),
        )
        return said, answered

    def _cut(self, text: str) -> tuple[str, str]:
        """The text as far as ``max_tokens`` lets it go."""
        most = int(self.role.parameters.get("limit", 4096) * _WORDS_PER_TOKEN)
        words = text.split(" ")
        if len(words) <= most:
            return text, ""
        return " ".join(words[:most]), _STOPS[self.role.api]

    def _written(self, meant: CallIntent, place: str) -> tuple[str, CallIntent, Mapping[str, Any]]:
        prefix = DIALECTS[self.role.api].call_prefix
        voice = self.run.voice(f"prose:{place}", from_level=2)
        arguments = {**meant.decisive, **{name: voice.line(ways) for name, ways in meant.prose.items()}}
        return self.run.style.name(prefix) if prefix else "", meant, arguments

    # ── the calls ────────────────────────────────────────────────────────────────────────────────────────────

    def _seconds(self, least: float, most: float) -> float:
        return round(self._timing.uniform(least, most), 3)

    def _exchange(self, call: Call, sent: Sequence[Entry], answered: Answered) -> None:
        dialect, asked, style = DIALECTS[self.role.api], self._asked(sent), self.run.style
        request = dialect.request(asked, style)
        took = self._seconds(0.4, 3.5)
        if asked.streamed:
            media, body = "text/event-stream; charset=utf-8", b"".join(dialect.events(answered, style))
        else:
            media, body = "application/json", document(dialect.whole(answered, style))
        self.run.keep(call, self.clock, took, request, 200, media, body)
        self.clock += took + 0.001

    def _try_in_vain(self, call: Call, sent: Sequence[Entry], status: int) -> None:
        dialect = DIALECTS[self.role.api]
        request = dialect.request(self._asked(sent), self.run.style)
        took = self._seconds(0.1, 0.6)
        body = document(dialect.error(status, _ERRORS[status]))
        self.run.keep(call, self.clock, took, request, status, "application/json", body)
        self.clock += took + self._seconds(0.5, 2)

    def _fail(self, call: Call, sent: Sequence[Entry], outage: Outage) -> None:
        for _ in range(outage.tries):
            self._try_in_vain(call, sent, outage.status)
        fallback = self.run.setup.fallback
        if fallback is None:
            self.run.log.append(Meant(call, f"failed {outage.status}"))
            raise Over
        self.role = replace(self.role, model=fallback, snapshot=fallback)


def _parts(said: FromModel) -> tuple[Part, ...]:
    words: list[Part] = [Text(said.text)] if said.text else []
    return (*words, *(ToolUse(name, meant.tool, dict(arguments)) for name, meant, arguments in said.calls))
