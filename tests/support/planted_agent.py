"""The simulated agent: it runs a scenario against the scripted model and leaves a recording behind.

Time is counted, not spent: conversations that go side by side are played one after the other and their calls put into
the order in which they began.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from rewind.model.http import HttpRequest, HttpResponse, ResponseHead
from rewind.model.message import Answered, Asked, Message, Part, Role, Text, ToolResult, ToolUse
from rewind.model.step import Ending
from rewind.model.usage import Usage
from support.planted_openai import Chat, Responses
from support.planted_recording import Call, Exchange, Played, played
from support.planted_script import Failure, Scenario, Talk, Turn
from support.planted_style import Noise, Style
from support.planted_wire import Anthropic, Dialect, Gemini, document

DIALECTS: Mapping[str, Dialect] = {
    "anthropic": Anthropic(),
    "chat": Chat(),
    "responses": Responses(),
    "gemini": Gemini(),
}
NO_ANSWER = "(no answer)"
_PATIENCE = 60.0


class _Over(Exception):
    """The agent gives up."""


@dataclass(slots=True)
class _Agent:
    style: Style
    exchanges: list[Exchange] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    """Conversation → the last words in it."""

    # ── the program ──────────────────────────────────────────────────────────────────────────────────────────

    def play(self, scenario: Scenario) -> None:
        clock = 0.5
        for stage in scenario.stages:
            talks = list(stage)
            self.style.drawing(Noise.ORDER).shuffle(talks)
            ends = []
            for number, talk in enumerate(talks):
                ends.append(self._lead(talk, clock + number * 0.013, alone=len(stage) == 1))
            clock = max(ends) + self.style.seconds(0.01, 0.2)

    def aside(self, talk: Talk, part: float) -> None:
        """A conversation that nothing depends on, begun while a call in that part of the run was under way."""
        beside = self.exchanges[int(part * len(self.exchanges))]
        self._converse(talk, beside.began + 0.3 * beside.took)

    def _lead(self, talk: Talk, clock: float, *, alone: bool) -> float:
        """A conversation from its first question to its last answer; when it ended."""
        try:
            return self._converse(talk, clock)
        except _Over:
            if alone:
                raise
            self.answers[talk.name] = NO_ANSWER
            return clock + _PATIENCE

    def _converse(self, talk: Talk, clock: float) -> float:
        messages = [_user(self._filled(talk.asks, clock))]
        continues: str | None = None
        for number, turn in enumerate(talk.turns):
            new = messages[-1:] if talk.held and continues else messages
            asked = self._asked(talk, number, tuple(new), clock)
            asked = replace(asked, continues=continues)
            answered, clock = self._ask(talk, number, turn, asked, clock)
            messages.append(Message(Role.ASSISTANT, answered.parts))
            self.answers[talk.name] = answered.text
            continues = answered.id if talk.held else None
            if number == talk.stops_after:
                raise _Over
            if turn.uses:
                results, clock = self._results(turn, answered.tool_uses, clock)
                messages.append(Message(Role.TOOL, tuple(results)))
            elif (follow_up := talk.follow_ups.get(number)) is not None:
                clock += self.style.seconds(4, 20)
                messages.append(_user(self._filled(follow_up, clock)))
            if (review := talk.reviews.get(number)) is not None:
                quoted = replace(review, asks=review.asks.replace("<<answer>>", answered.text))
                clock = self._converse(quoted, clock) + self.style.seconds(0.01, 0.1)
                messages.append(_user(f"A colleague looked at this: {self.answers[review.name]}"))
        return clock

    def _filled(self, text: str, clock: float) -> str:
        for name, answer in self.answers.items():
            text = text.replace(f"<<answer of {name}>>", answer)
        return self.style.filled(text, clock)

    def _asked(self, talk: Talk, number: int, messages: tuple[Message, ...], clock: float) -> Asked:
        setting = talk.at(number)
        return Asked(
            model=setting.model,
            system=(Text(self._filled(setting.system, clock)),),
            messages=talk.sent(number, messages),
            tools=setting.tools,
            parameters=setting.parameters,
            streamed=self.style.streamed(talk.streamed),
        )

    def _results(self, turn: Turn, asked_for: Iterable[ToolUse], clock: float) -> tuple[list[ToolResult], float]:
        results = []
        for use, part in zip(turn.uses, asked_for, strict=True):
            clock += self.style.seconds(0.02, 0.9)
            text = self._filled(use.result, clock)
            if use.helper is not None:
                clock = self._lead(use.helper, clock, alone=True) + self.style.seconds(0.01, 0.1)
                text = self.answers[use.helper.name]
            results.append(ToolResult(part.id, (Text(text),), name=part.name))
        if all(one.id for one in results):
            # Tools that ran side by side are answered as they come to an end.
            self.style.drawing(Noise.ORDER).shuffle(results)
        return results, clock

    # ── the calls ────────────────────────────────────────────────────────────────────────────────────────────

    def _ask(self, talk: Talk, number: int, turn: Turn, asked: Asked, clock: float) -> tuple[Answered, float]:
        """What the model says, after as many attempts as it takes; and when."""
        dialect = DIALECTS[talk.api]
        call = Call(talk.name, number)
        failure = talk.failures.get(number)
        request = dialect.request(asked, self.style)
        for attempt in range(failure.attempts if failure else 0):
            assert failure is not None, "there is something to try again"
            answered = self._answered(talk, number, turn, asked, clock)
            clock = self._fail(call, dialect, request, failure, asked, answered, clock)
            if attempt + 1 < failure.attempts or failure.recovers:
                clock += self.style.seconds(0.5, 2) * (attempt + 1)
        if failure is not None and not failure.recovers:
            raise _Over
        answered = self._answered(talk, number, turn, asked, clock)
        took = self.style.seconds(0.4, 3.5)
        if asked.streamed:
            media, body = _STREAM, b"".join(dialect.events(answered, self.style))
        else:
            media, body = _JSON, document(dialect.whole(answered, self.style))
        self._keep(call, clock, took, request, 200, media, body)
        return answered, clock + took + 0.001

    def _answered(self, talk: Talk, number: int, turn: Turn, asked: Asked, clock: float) -> Answered:
        prefix = DIALECTS[talk.api].call_prefix
        parts: list[Part] = [Text(self._filled(turn.text, clock))] if turn.text else []
        for use in turn.uses:
            arguments = {
                name: self._filled(value, clock) if isinstance(value, str) else value
                for name, value in use.arguments.items()
            }
            parts.append(ToolUse(self.style.name(prefix) if prefix else "", use.tool, arguments))
        return Answered(
            id=self.style.name(f"{talk.api[:4]}_"),
            model=talk.at(number).snapshot,
            parts=tuple(parts),
            usage=Usage(
                input=200 + 40 * len(asked.messages) + self.style.drawing(Noise.IDS).randint(0, 40),
                output=20 + len(turn.text) // 4,
            ),
        )

    def _fail(
        self,
        call: Call,
        dialect: Dialect,
        request: HttpRequest,
        failure: Failure,
        asked: Asked,
        answered: Answered,
        clock: float,
    ) -> float:
        took = self.style.seconds(0.1, 1.0)
        message = _MESSAGES.get(failure.status, "Internal error.")
        if failure.status != 200:
            body = document(dialect.error(failure.status, message))
            self._keep(call, clock, took, request, failure.status, _JSON, body)
            return clock + took + 0.001
        ending = Ending.COMPLETE if failure.inside else Ending.UPSTREAM_CUT
        if asked.streamed:
            events = dialect.events(answered, self.style)
            kept = events[: max(1, len(events) // 2)]
            body = b"".join([*kept, *([dialect.error_event("Overloaded.")] if failure.inside else [])])
            self._keep(call, clock, took, request, 200, _STREAM, body, ending)
        else:
            body = document(dialect.whole(answered, self.style))
            self._keep(call, clock, took, request, 200, _JSON, body[: len(body) // 2], Ending.UPSTREAM_CUT)
        return clock + took + 0.001

    def _keep(
        self,
        call: Call,
        began: float,
        took: float,
        request: HttpRequest,
        status: int,
        media: str,
        body: bytes,
        ending: Ending = Ending.COMPLETE,
    ) -> None:
        head = ResponseHead(status=status, reason="", headers=self.style.server_headers(media, began + took))
        response = HttpResponse(head=head, body=body, chunks=())
        self.exchanges.append(
            Exchange(call=call, began=began, took=took, request=request, response=response, ending=ending)
        )


_STREAM = "text/event-stream; charset=utf-8"
_JSON = "application/json"
_MESSAGES = {
    400: "The request is not valid.",
    429: "Too many requests, slow down.",
    529: "Overloaded, come back later.",
}


def _user(text: str) -> Message:
    return Message(Role.USER, (Text(text),))


def play(scenario: Scenario, style: Style, *, extra: tuple[Talk, float] | None = None) -> Played:
    """Run the program; ``extra`` is one more conversation, which nothing depends on, and in what part of the run."""
    agent = _Agent(style)
    exit_code = 0
    try:
        agent.play(scenario)
    except _Over:
        exit_code = 1
    if extra is not None:
        agent.aside(*extra)
    return played(sorted(agent.exchanges, key=lambda one: one.began), style, exit_code)
