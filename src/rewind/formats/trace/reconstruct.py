"""What happened in a traced run: its lines put together to calls of models, runs of tools and other lines, in order.

An agent hands over what it has: whole requests and answers, or only what the model said. Where a call says what it was
given (``messages``, ``input``, ``contents``), that holds; else it was given what had been said so far: what the user
asked, the answers, and the results of tools, each in the shape of the API that the answers speak. Conversations are
kept apart by the fields ``agent`` and ``thread``, by process, and by API.
"""

from collections.abc import Iterable
from dataclasses import field, replace
from heapq import heappop, heappush
from typing import Any

from rewind.dataclass import dataclass
from rewind.formats.trace import fields
from rewind.formats.trace.api import (
    AskedTool,
    RequestSettings,
    SpokenAnswer,
    ToolOutput,
    TraceApi,
    Turn,
    objects,
    text_of,
)
from rewind.formats.trace.apis import APIS, likely_api, recognised, words_of
from rewind.formats.trace.conversation import ModelCall, OpenCalls, OtherLine, TraceConversation, TracedTool, TraceEvent
from rewind.formats.trace.lines import LIMITS, TraceLimits, TraceLine

_DEFAULT_API = "openai"


def reconstruct(lines: Iterable[TraceLine], limits: TraceLimits = LIMITS) -> "Reconstruction":
    """What these lines come to."""
    reconstruction = Reconstruction(limits)
    for line in lines:
        reconstruction.add(line)
    return reconstruction


@dataclass(slots=True)
class Reconstruction:
    """Takes one line after the other."""

    limits: TraceLimits
    events: list[TraceEvent] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """What is in the trace, and too much."""
    last: TraceConversation | None = None
    """The conversation that was spoken in last."""
    _known: dict[tuple[str, str], TraceConversation] = field(default_factory=dict)
    """By speaker, and by API."""
    _latest: dict[str, TraceConversation] = field(default_factory=dict)
    """By speaker."""
    _settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By speaker: what was told once, before the first call: the model, the tools, parameters."""
    _openings: dict[str, list[Any]] = field(default_factory=dict)
    """By speaker: what the user had asked by then, or the messages so far."""
    _opening_turns: dict[tuple[str, str], tuple[list[Any], list[Turn]]] = field(default_factory=dict)
    """The same as turns, by speaker and by API."""
    _running: OpenCalls[TracedTool] = field(default_factory=OpenCalls)
    _conversations: list[TraceConversation] = field(default_factory=list)
    """By their numbers."""
    _askers: dict[str, list[int]] = field(default_factory=dict)
    """By the id of a tool's call: heaps of the conversations that may wait for it, the newest first."""
    _inherited: int = 0

    @property
    def conversations(self) -> int:
        return len(self._known)

    def prompts(self) -> list[Turn]:
        """What was asked, while no model has answered yet."""
        return _as_turns(next(iter(self._openings.values()), []), APIS[_DEFAULT_API])

    def add(self, line: TraceLine) -> None:
        match line.kind:
            case "llm_call":
                self._add_call(line)
            case "tool_call":
                self._add_tool_call(line)
            case "tool_result":
                self._add_tool_result(line)
            case "error" | "final":
                self.events.append(OtherLine(line=line))
            case _:
                self._add_other(line)
                self.events.append(OtherLine(line=line))

    def _leave_out(self, what: str) -> None:
        """Said once, however often it is so."""
        if what not in self.left_out:
            self.left_out.append(what)

    # ── calls of models ──────────────────────────────────────────────────────────────────────────────────────

    def _add_call(self, line: TraceLine) -> None:
        speaker = _speaker(line)
        before = self._settings.get(speaker) or self._settings.get(_parent(speaker), {})
        request = {**before, **fields.request_in(line.fields)}
        answer = fields.answer_in(line.fields)
        api, said = recognised(answer) or self._in_any_words(speaker, line, request, answer)
        conversation = self._conversation(speaker, api)
        self._take_request(conversation, request, said)
        model = request.get("model") or (said.document.get("model") if said is not None else None)
        conversation.model = model if isinstance(model, str) else conversation.model
        tools = request.get("tools")
        asking = RequestSettings(
            model=conversation.model,
            system=conversation.system,
            tools=tools if isinstance(tools, list) else [],
            parameters=fields.parameters_in(request),
        )
        self.events.append(
            ModelCall(
                line=line,
                api=api,
                form=conversation.form(asking),
                turns=conversation.give(),
                model=conversation.model,
                said=said,
                error=fields.error_in(line.fields) if said is None else "",
                usage=fields.usage_in(line.fields),
            )
        )
        if said is not None:
            conversation.add(said.turns)
            conversation.lost.extend(said.lost)
            for use in (use for turn in said.turns for use in api.uses(turn)):
                conversation.open.add(use, use.id, use.name)
                if use.id:
                    heappush(self._askers.setdefault(use.id, []), -conversation.number)

    def _in_any_words(
        self, speaker: str, line: TraceLine, request: dict[str, Any], answer: Any
    ) -> tuple[TraceApi, SpokenAnswer | None]:
        """An answer that could be of any API is written as the conversation's."""
        latest = self._latest.get(speaker)
        api = likely_api(request) or (latest.api if latest is not None else APIS[_DEFAULT_API])
        uses = tuple(map(fields.tool_use_in, objects(line.fields.get("tool_calls"))))
        if answer is None and not uses:
            return api, None
        text = words_of(answer)
        return api, api.spoken(text_of(answer) if text is None and answer is not None else text or "", uses)

    def _take_request(
        self, conversation: TraceConversation, request: dict[str, Any], said: SpokenAnswer | None
    ) -> None:
        """What the call says that it was given."""
        system = fields.system_in(request)
        conversation.system = conversation.system if system is None else system
        given = fields.turns_in(request)
        if given is None:
            return
        if isinstance(given, str):
            conversation.add_prompt(given)
            return
        turns = _as_turns(given, conversation.api)
        if said is not None and said.turns and turns[-len(said.turns) :] == list(said.turns):
            turns = turns[: -len(said.turns)]  # written when the answer had been added already
        if isinstance(request.get("previous_response_id"), str) and conversation.turns:
            conversation.add(turns)
        else:
            conversation.replace(turns)
        if turns and turns[0].get("role") in ("system", "developer"):
            conversation.system = None

    def _conversation(self, speaker: str, api: TraceApi) -> TraceConversation:
        conversation = self._known.get((speaker, api.name))
        if conversation is None:
            conversation = TraceConversation(api=api, number=len(self._conversations))
            self._known[speaker, api.name] = conversation
            self._conversations.append(conversation)
            conversation.add(self._opening(speaker if self._openings.get(speaker) else _parent(speaker), api))
        self.last = self._latest[speaker] = conversation
        return conversation

    def _opening(self, speaker: str, api: TraceApi) -> list[Turn]:
        """What was asked before the first call. Processes that were forked after it share its turns."""
        opening = self._openings.get(speaker, [])
        known, turns = self._opening_turns.get((speaker, api.name), (None, []))
        if known is not opening:
            turns = []
        turns += _as_turns(opening[len(turns) :], api)
        self._opening_turns[speaker, api.name] = opening, turns
        self._inherited += len(turns)
        if self._inherited <= self.limits.inherited_turns:
            return turns
        self._leave_out("what was asked before is left out of some forked processes: it is too much")
        return []

    # ── tools ────────────────────────────────────────────────────────────────────────────────────────────────

    def _add_tool_call(self, line: TraceLine) -> None:
        use = fields.tool_use_in(line.fields)
        asked = self._asker(line, use)
        if asked is not None:
            conversation, place = asked
            wanted = conversation.open.at(place)
            arguments = wanted.arguments if use.arguments is None else use.arguments
            use = AskedTool(use.id or wanted.id, use.name or wanted.name, arguments)
        run = TracedTool(use=use, called=line)
        self._running.add(run, use.id, use.name)
        self.events.append(run)

    def _add_tool_result(self, line: TraceLine) -> None:
        result = fields.tool_result_in(line.fields)
        use = AskedTool(result.id, result.name, None)
        asked = self._asker(line, use)
        if asked is not None:
            conversation, place = asked
            use = conversation.open.take(place)
            result = replace(result, id=result.id or use.id, name=result.name or use.name)
        run = self._run_of(result)
        if run is None:
            run = TracedTool(use=use, called=None)
            self.events.append(run)
        run.returned, run.result = line, result
        giver = asked[0] if asked is not None else self._conversation_of(line)
        if giver is None:
            return
        if asked is None:
            self.remarks.append(f"line {line.number}: a result that no recorded answer asked for")
        giver.add_result(replace(result, name=result.name or run.use.name))

    def _run_of(self, result: ToolOutput) -> TracedTool | None:
        """The run that the result belongs to, which waits no longer: by id, or else the oldest of that tool."""
        place = self._running.of_id(result.id) if result.id else None
        if place is None and result.name:
            place = self._running.of_names((result.name, ""))
        elif place is None:
            place = self._running.oldest()
        return None if place is None else self._running.take(place)

    def _asker(self, line: TraceLine, use: AskedTool) -> tuple[TraceConversation, int] | None:
        """The conversation whose answer asked for the tool, and the place among its open calls: first the one that the
        line belongs to, then the newest."""
        first = self._conversation_of(line)
        if first is not None and (place := first.asked_for(use.id, use.name)) is not None:
            return first, place
        waiting = self._askers.get(use.id, []) if use.id else []
        while waiting:
            conversation = self._conversations[-waiting[0]]
            if (place := conversation.open.of_id(use.id)) is not None:
                return conversation, place
            heappop(waiting)
        return None

    def _conversation_of(self, line: TraceLine) -> TraceConversation | None:
        return self._latest.get(_speaker(line)) or self.last

    # ── other lines ──────────────────────────────────────────────────────────────────────────────────────────

    def _add_other(self, line: TraceLine) -> None:
        """What the user says, and what is told once for all calls before the first of them."""
        speaker = _speaker(line)
        if (conversation := self._latest.get(speaker)) is not None:
            conversation.add(conversation.api.user(text) for text in fields.user_words_in(line))
            return
        request = fields.request_in(line.fields)
        given = fields.turns_in(request)
        settings = self._settings.setdefault(speaker, {})
        settings.update(fields.settings_in(request))
        most = self.limits.settings
        if len(settings) > most:
            for name in list(settings)[most:]:
                del settings[name]
            self._leave_out(f"more than {most} settings are told before the first call; the last are left out")
        if isinstance(given, list):
            self._openings[speaker] = list(given)
        else:
            self._openings.setdefault(speaker, []).extend(fields.user_words_in(line) or ([given] if given else []))


def _as_turns(given: list[Any], api: TraceApi) -> list[Turn]:
    return [turn if isinstance(turn, dict) else api.user(turn) for turn in given]


def _speaker(line: TraceLine) -> str:
    """Whose line it is: process, agent and thread."""
    names = (line.fields.get(name) for name in ("agent", "thread"))
    named = "/".join(str(name) for name in names if isinstance(name, str | int))
    return f"{line.pid or ''}:{named}"


def _parent(speaker: str) -> str:
    """The same in the process that this one was forked from."""
    return ":" + speaker.partition(":")[2]
