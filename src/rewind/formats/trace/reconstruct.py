"""What a trace tells: its lines put together to calls of models, runs of tools and notes, in order.

An agent hands over what it has: whole requests and answers, or only what the model said. Where a call says what it was
given (``messages``, ``input``, ``contents``), that holds; else it was given what had been said so far: what the user
asked, the answers, and the results of tools, each in the shape of the API that the answers speak. Conversations are
kept apart by the fields ``agent`` and ``thread``, by process, and by API.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from rewind.formats.trace.apis.base import Api, Asking, Result, Said, Turn, Use, objects, text_of
from rewind.formats.trace.apis.catalogue import APIS, likely_api, recognised, words_of
from rewind.formats.trace.conversation import Conversation
from rewind.formats.trace.events import Call, Event, Note, ToolRun
from rewind.formats.trace.fields import (
    answer_in,
    asked_in,
    call_in,
    error_in,
    parameters_in,
    result_in,
    said_by_user,
    system_in,
    turns_in,
    usage_in,
    without_turns,
)
from rewind.formats.trace.lines import Entry
from rewind.formats.trace.waiting import Waiting

_DEFAULT = "openai"
_SETTINGS = 256
"""Settings that may be told once for all calls: each of them is repeated in every call."""
_INHERITED = 200_000
"""Turns that forked processes may take over from what was asked before them, all together."""


@dataclass(slots=True)
class Story:
    """Hears one line after the other."""

    events: list[Event] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """What is in the trace, and too much."""
    last: Conversation | None = None
    """The conversation that was spoken in last."""
    _known: dict[tuple[str, str], Conversation] = field(default_factory=dict)
    """By who speaks, and by API."""
    _latest: dict[str, Conversation] = field(default_factory=dict)
    _before: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What was told once, before the first call of whom: the model, the tools, settings."""
    _begins: dict[str, list[Any]] = field(default_factory=dict)
    """What the user had asked by then, or the messages so far."""
    _openings: dict[tuple[str, str], tuple[list[Any], list[Turn]]] = field(default_factory=dict)
    """The same as turns, by API."""
    _running: Waiting[ToolRun] = field(default_factory=Waiting)
    _talks: list[Conversation] = field(default_factory=list)
    """By their numbers."""
    _asked_in: dict[str, list[int]] = field(default_factory=dict)
    """By the id of a tool's call: heaps of the conversations that may wait for it, the newest first."""
    _inherited: int = 0

    @property
    def conversations(self) -> int:
        return len(self._known)

    def words(self) -> list[Turn]:
        """What was asked, while no model has answered yet."""
        usual = APIS[_DEFAULT]
        begins = next(iter(self._begins.values()), [])
        return [one if isinstance(one, dict) else usual.user(one) for one in begins]

    def _leave_out(self, what: str) -> None:
        """Told once, however often it holds."""
        if what not in self.left_out:
            self.left_out.append(what)

    def hear(self, entry: Entry) -> None:
        match entry.kind:
            case "llm_call":
                self._call(entry)
            case "tool_call":
                self._tool_called(entry)
            case "tool_result":
                self._tool_answered(entry)
            case "error" | "final":
                self.events.append(Note(entry=entry))
            case _:
                self._take_note(entry)
                self.events.append(Note(entry=entry))

    # ── calls of models ──────────────────────────────────────────────────────────────────────────────────────

    def _call(self, entry: Entry) -> None:
        who = _who(entry)
        fields = {**(self._before.get(who) or self._before.get(_parent(who), {})), **asked_in(entry.fields)}
        given = answer_in(entry.fields)
        api, said = recognised(given) or self._in_any_words(who, entry, fields, given)
        talk = self._conversation(who, api)
        self._listen(talk, fields, said)
        model = fields.get("model") or (said.document.get("model") if said is not None else None)
        talk.model = model if isinstance(model, str) else talk.model
        tools = fields.get("tools")
        form = talk.form(
            Asking(
                model=talk.model,
                system=talk.system,
                tools=tools if isinstance(tools, list) else [],
                parameters=parameters_in(fields),
            )
        )
        self.events.append(
            Call(
                entry=entry,
                api=api,
                form=form,
                turns=talk.give(),
                model=talk.model,
                said=said,
                error=error_in(entry.fields) if said is None else "",
                usage=usage_in(entry.fields),
            )
        )
        if said is not None:
            talk.say(said.turns)
            talk.lost.extend(said.lost)
            for use in (use for turn in said.turns for use in api.uses(turn)):
                talk.open.add(use, use.id, use.name)
                if use.id:
                    heappush(self._asked_in.setdefault(use.id, []), -talk.number)

    def _in_any_words(
        self, who: str, entry: Entry, fields: dict[str, Any], given: Any
    ) -> tuple[Api, Said | None]:
        """An answer that could be of any API: it is put as the conversation's."""
        latest = self._latest.get(who)
        api = likely_api(fields) or (latest.api if latest is not None else APIS[_DEFAULT])
        uses = tuple(map(call_in, objects(entry.fields.get("tool_calls"))))
        if given is None and not uses:
            return api, None
        text = words_of(given)
        return api, api.spoken(text_of(given) if text is None and given is not None else text or "", uses)

    def _listen(self, talk: Conversation, fields: dict[str, Any], said: Said | None) -> None:
        """What the call says that it was given."""
        system = system_in(fields)
        talk.system = talk.system if system is None else system
        given = turns_in(fields)
        if given is None:
            return
        if isinstance(given, str):
            talk.ask(given)
            return
        turns = [one if isinstance(one, dict) else talk.api.user(one) for one in given]
        if said is not None and said.turns and turns[-len(said.turns) :] == list(said.turns):
            turns = turns[: -len(said.turns)]  # told when the answer had been added already
        if isinstance(fields.get("previous_response_id"), str) and talk.turns:
            talk.say(turns)
        else:
            talk.retell(turns)
        if turns and turns[0].get("role") in ("system", "developer"):
            talk.system = None

    def _conversation(self, who: str, api: Api) -> Conversation:
        talk = self._known.get((who, api.name))
        if talk is None:
            talk = self._known[who, api.name] = Conversation(api=api, number=len(self._talks))
            self._talks.append(talk)
            talk.say(self._opening(who if self._begins.get(who) else _parent(who), api))
        self.last = self._latest[who] = talk
        return talk

    def _opening(self, who: str, api: Api) -> list[Turn]:
        """What was asked before the first call. Processes that were forked after it share its turns."""
        begins = self._begins.get(who, [])
        known, turns = self._openings.get((who, api.name), (None, []))
        if known is not begins:
            turns = []
        turns += [one if isinstance(one, dict) else api.user(one) for one in begins[len(turns) :]]
        self._openings[who, api.name] = begins, turns
        self._inherited += len(turns)
        if self._inherited <= _INHERITED:
            return turns
        self._leave_out("what was asked before is left out of some forked processes: it is too much")
        return []

    # ── tools ────────────────────────────────────────────────────────────────────────────────────────────────

    def _tool_called(self, entry: Entry) -> None:
        told = call_in(entry.fields)
        asked = self._asker(entry, told)
        if asked is not None:
            use = asked[0].open.at(asked[1])
            arguments = use.arguments if told.arguments is None else told.arguments
            told = Use(told.id or use.id, told.name or use.name, arguments)
        run = ToolRun(use=told, called=entry)
        self._running.add(run, run.use.id, run.use.name)
        self.events.append(run)

    def _tool_answered(self, entry: Entry) -> None:
        result = result_in(entry.fields)
        asked = self._asker(entry, Use(result.id, result.name, None))
        if asked is not None:
            use = asked[0].open.take(asked[1])
            result = Result(
                id=result.id or use.id,
                name=result.name or use.name,
                output=result.output,
                failed=result.failed,
            )
        else:
            use = Use(result.id, result.name, None)
        run = self._run_of(result, use)
        if run is None:
            run = ToolRun(use=use, called=None)
            self.events.append(run)
        run.came, run.result = entry, result
        talk = asked[0] if asked is not None else self._talk_of(entry)
        if talk is None:
            return
        if asked is None:
            self.remarks.append(f"line {entry.number}: a result that no recorded answer asked for")
        name = result.name or run.use.name
        talk.bring(Result(id=result.id, name=name, output=result.output, failed=result.failed))

    def _run_of(self, result: Result, use: Use) -> ToolRun | None:
        """The run that the result belongs to, which waits no longer: by id, or else the oldest of that tool."""
        place = self._running.of_id(result.id) if result.id else None
        if place is None:
            name = result.name or use.name
            place = self._running.of_names((name, "")) if name else self._running.oldest()
        return None if place is None else self._running.take(place)

    def _asker(self, entry: Entry, told: Use) -> tuple[Conversation, int] | None:
        """The conversation whose answer asked for the tool, and the place among its open calls: first the one that the
        line belongs to, then the newest."""
        first = self._talk_of(entry)
        if first is not None and (place := first.asked_for(told.id, told.name)) is not None:
            return first, place
        waiting = self._asked_in.get(told.id, []) if told.id else []
        while waiting:
            talk = self._talks[-waiting[0]]
            if (place := talk.open.of_id(told.id)) is not None:
                return talk, place
            heappop(waiting)
        return None

    def _talk_of(self, entry: Entry) -> Conversation | None:
        return self._latest.get(_who(entry)) or self.last

    # ── what else is told ────────────────────────────────────────────────────────────────────────────────────

    def _take_note(self, entry: Entry) -> None:
        """What the user says, and what is told once for all calls before the first of them."""
        who = _who(entry)
        if (talk := self._latest.get(who)) is not None:
            talk.say(talk.api.user(text) for text in said_by_user(entry))
            return
        told = asked_in(entry.fields)
        given = turns_in(told)
        before = self._before.setdefault(who, {})
        before.update(without_turns(told))
        if len(before) > _SETTINGS:
            for name in list(before)[_SETTINGS:]:
                del before[name]
            self._leave_out(
                f"more than {_SETTINGS} settings are told before the first call; the last are left out"
            )
        if isinstance(given, list):
            self._begins[who] = list(given)
        else:
            self._begins.setdefault(who, []).extend(said_by_user(entry) or ([given] if given else []))


def _who(entry: Entry) -> str:
    """Whose line it is."""
    told = (entry.fields.get(name) for name in ("agent", "thread"))
    named = "/".join(str(one) for one in told if isinstance(one, str | int))
    return f"{entry.pid or ''}:{named}"


def _parent(who: str) -> str:
    """The same in the process that this one was forked from."""
    return ":" + who.partition(":")[2]


def told_by(entries: Iterable[Entry]) -> Story:
    """The story of these lines."""
    story = Story()
    for entry in entries:
        story.hear(entry)
    return story
