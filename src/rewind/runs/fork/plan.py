"""All that can be known of a fork before it runs: whether its edits fit, what is reused, what it may cost."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal

from rewind.dataclass import dataclass
from rewind.edit.apply import answer_for, edited, refuse_signed
from rewind.edit.doubts import EditDoubt, doubts_about
from rewind.edit.edits import Edit, ResolvedValue, SetModel, SetResponse, SetToolResult, StepReference, TextValue
from rewind.edit.references import resolve
from rewind.errors import CannotEdit, DamagedStore, SessionNotFound, UsageError
from rewind.gateway.options import UpstreamOptions
from rewind.model.clock import Clock, SystemClock
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.ids import SessionId
from rewind.model.names import MatchMode
from rewind.model.session import Lineage, Recording, Session, step_in
from rewind.model.step import Step, StepKind
from rewind.pricing.spending import Pricing, Spending, cost_of, spending
from rewind.providers.catalogue import identify
from rewind.providers.shared.request_body import body_of
from rewind.providers.telemetry import telemetry_of
from rewind.runs.fork.budget import Budget
from rewind.runs.fork.edits import InheritedEdits, inherited
from rewind.runs.fork.manual_edits import ManualEdit, SentBody, holds_placeholder, refuse_placeholders
from rewind.runs.recorded_steps import RecordedSteps
from rewind.runs.rerun import refuse_traces
from rewind.store.library import Library


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkOptions:
    """Where to fork, what to change, and how to run."""

    session: Session
    step: int
    home: Path
    edits: tuple[Edit, ...] = ()
    by_hand: ManualEdit | None = None
    force: bool = False
    """Edits that look like a mistake are made all the same."""
    command: tuple[str, ...] | None = None
    """In place of the recorded one."""
    name: str | None = None
    on_miss: Literal["refuse", "live"] = "refuse"
    tools: Literal["replay", "live"] = "replay"
    """``live``: the agent's own tools (``@rewind.tool``) run before the step, too."""
    allow_drift: bool = False
    """A changed request in the place of a recorded one is taken for it."""
    port: int = 0
    upstream: UpstreamOptions = UpstreamOptions()
    ignore: tuple[str, ...] = ()
    match: MatchMode = "renamed"
    ignore_text: tuple[str, ...] = ()
    pricing: Pricing | None = None
    """For telling what was spent."""
    budget: Budget | None = None
    """What may be spent; one may serve several forks."""
    sample: int | None = None
    stop_after: bool = False
    """Once the step is answered, nothing more is, and the agent is ended."""
    probe: bool = False
    """It is run for an answer that Rewind itself wants to know: the session says so, and lists leave it out."""
    quiet: bool = False
    """What the agent prints is kept, not shown; and it reads nothing of ours."""
    announce: Callable[[str], None] = lambda _sentence: None
    """Told what a person should know before the agent starts."""
    clock: Clock = field(default_factory=SystemClock)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkPlan:
    """A fork that was looked at, and whose edits fit the recorded request."""

    recording: Recording
    step: Step
    own: tuple[Edit, ...]
    """What this fork changes."""
    inherited: InheritedEdits
    """What earlier forks had changed."""
    as_sent: SentBody | None
    """What had gone out at this step, where an earlier fork had changed it by hand."""
    made_up: dict[int, HttpResponse]
    """Prefix answers that no provider gave."""
    names: dict[str, str]
    """The tools of recorded calls, by id, where an edit is about a tool."""
    lineage: Lineage
    remarks: tuple[str, ...]
    """What a person should know before it runs."""
    reused: tuple[Step, ...]
    live: tuple[Step, ...]
    """The recorded steps that will be asked anew, if the run goes the same way."""

    @property
    def session(self) -> SessionId:
        return self.recording.session.id

    @property
    def edits(self) -> tuple[Edit, ...]:
        """All that is changed at the step, in order."""
        return (*self.inherited.first, *self.own)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Edits of earlier forks that do not hold any more."""
        return self.inherited.dropped

    def models(self) -> Iterator[tuple[Step, str | None]]:
        """The LLM calls that will go live, each with the model that will be asked."""
        named: str | None = None
        for edit in self.edits:
            match edit:
                case SetModel(TextValue(text)):
                    named = text
                case SetModel(ResolvedValue(value=value)):
                    named = str(value)
        for step in self.live:
            if step.request.kind is StepKind.LLM_CALL:
                swapped = named is not None and step.request.model == self.step.request.model
                yield step, named if swapped else step.request.model

    def estimate(self, pricing: Pricing) -> Spending:
        """What the live steps cost when they were recorded, by today's prices and the models that will be asked."""
        priced = []
        for step, model in self.models():
            if step.response is None:
                continue
            # What came from a tape then is asked now.
            response = replace(step.response, tape=None)
            reading = response.reading
            if model != step.request.model:
                reading = replace(reading, model=model)
            asked = Step(request=replace(step.request, model=model), response=response)
            priced.append((asked, reading, cost_of(pricing, asked, reading)))
        return spending(priced)


def plan_fork(options: ForkOptions) -> ForkPlan:
    """Look at it, and run nothing. Raises RewindError where it cannot be done."""
    with Library(options.home).open(options.session) as reader:
        return planned(options, RecordedSteps(reader))


def doubtful_edits(options: ForkOptions) -> tuple[EditDoubt, ...]:
    """The edits that look like a mistake; without ``force`` the fork is refused for them. Raises RewindError."""
    with Library(options.home).open(options.session) as reader:
        steps = RecordedSteps(reader)
        plan = planned(replace(options, force=True), steps)
        return doubts_about(steps.request(plan.step), plan.own)


def body_to_edit(options: ForkOptions) -> Any:
    """The body of the step's request as JSON, with the other edits made, for an editor. Raises CannotEdit."""
    with Library(options.home).open(options.session) as reader:
        steps = RecordedSteps(reader)
        plan = planned(options, steps)
        _check(plan.step, plan.own, by_hand=True)
        request = steps.request(plan.step)
        refuse_signed(request)
        return body_of(edited(request, plan.own, names=plan.names)).document


def planned(options: ForkOptions, steps: RecordedSteps) -> ForkPlan:
    """The same, for a session that is open already."""
    recording = steps.recording
    refuse_traces(recording, "fork")
    step = step_in(recording, options.step)
    library = Library(options.home)
    own = tuple(_resolved(edit, library) for edit in options.edits)
    _check(step, own, by_hand=options.by_hand is not None)
    refuse_placeholders(own)
    if options.by_hand is not None:
        options.by_hand.check()
    by_index = {other.index: other for other in recording.steps}
    inheritance = inherited(
        recording,
        step,
        own,
        resolve=lambda edit: _resolved(edit, library),
        request_at=lambda index: steps.request(by_index[index]),
    )
    request = steps.request(step)
    of_tools = _any(SetToolResult, own, inheritance.first, *(other.edits for other in inheritance.earlier))
    names = _tools(steps) if of_tools else {}
    _try(request, own, names)
    if not (options.force or options.probe):
        _refuse_doubtful(doubts_about(request, own))
    as_sent = SentBody(body_of(request).document) if inheritance.by_hand else None
    if as_sent is not None:
        _check_as_sent(as_sent, recording, inheritance.first, library)
    substituted, tools = _any(SetResponse, own), steps.unrecorded_tools
    made_up = {index: steps.answer(by_index[index]) for index in inheritance.made_up}
    of_the_run = [other for other in recording.steps if telemetry_of(other.request) is None]
    return ForkPlan(
        recording=recording,
        step=step,
        own=own,
        inherited=inheritance,
        as_sent=as_sent,
        made_up={index: answer for index, answer in made_up.items() if answer is not None},
        names=names,
        lineage=Lineage(
            session=recording.session.id,
            step=step.index,
            key=step.request.agents_key,
            edits=tuple(edit.written for edit in own),
            by_hand=options.by_hand is not None,
            earlier=inheritance.kept,
            sample=options.sample,
            probe=options.probe,
        ),
        remarks=(*_remarks(request, own), *([tools] if tools is not None and options.sample in (None, 1) else ())),
        reused=tuple(other for other in of_the_run if other.index < step.index and other.response is not None),
        live=tuple(other for other in of_the_run if other.index >= step.index + substituted),
    )


def _resolved(edit: Edit, library: Library) -> Edit:
    """The edit with its value at hand; a session that it names by prefix or name is named by its id from now on."""
    if isinstance(edit.value, StepReference):
        edit = replace(edit, value=StepReference(library.find(edit.value.session).address, edit.value.step))

    def look_up(ref: str, index: int) -> tuple[HttpRequest, HttpResponse | None]:
        with library.open(library.find(ref)) as other:
            steps = RecordedSteps(other)
            step = step_in(steps.recording, index)
            return steps.request(step), steps.answer(step)

    return resolve(edit, look_up)


def _check(step: Step, edits: Sequence[Edit], *, by_hand: bool) -> None:
    """Raises UsageError for what cannot be asked of such a step."""
    if telemetry_of(step.request) is not None:
        raise CannotEdit(f"Step {step.index} is telemetry: nothing of the run depends on it, so it cannot be forked.")
    responses = [edit for edit in edits if isinstance(edit, SetResponse)]
    others = [edit for edit in edits if not isinstance(edit, SetResponse)]
    if len(responses) > 1:
        raise UsageError("response= is given more than once: a step has one answer.")
    if responses and by_hand:
        raise UsageError("--set response= and --edit cannot be combined: with response= no request is sent.")
    if step.request.kind is not StepKind.LLM_CALL and (others or by_hand):
        raise CannotEdit(
            f"Step {step.index} is not an LLM call ({step.request.head.method} {step.request.head.host}): "
            "its request cannot be edited, only its answer.",
            hint="--set response=TEXT",
        )


def _try(request: HttpRequest, edits: Sequence[Edit], names: Mapping[str, str]) -> None:
    """Raises CannotEdit where the recorded request cannot be changed so: before anything runs."""
    edited(request, edits, names=names)
    for edit in edits:
        if isinstance(edit, SetResponse):
            answer_for(request, edit)


def _refuse_doubtful(doubts: Sequence[EditDoubt]) -> None:
    """Raises CannotEdit, before money is spent on what changes nothing."""
    for doubt in doubts:
        meant = f"did you mean {doubt.suggestion}? " if doubt.suggestion else ""
        raise CannotEdit(
            f"{doubt.edit.target}: {doubt.reason} Nothing was run.", hint=f"{meant}--force sends it as it is"
        )


def _check_as_sent(as_sent: SentBody, recording: Recording, first: Sequence[Edit], library: Library) -> None:
    """Raises CannotEdit where a secret that was written by hand is lost, as far as that shows before the run.

    What the agent itself had sent is not recorded with the fork, but where that comes from, if it is still there.
    """
    origin = recording.session.start.forked_from
    assert origin is not None, "only forks inherit"
    if not origin.by_hand or not holds_placeholder(as_sent.document):
        return
    with suppress(SessionNotFound, DamagedStore), library.open(library.find(origin.session)) as before:
        steps = RecordedSteps(before)
        request = steps.request(step_in(steps.recording, origin.step))
        as_sent.check(edited(request, first))


def _remarks(request: HttpRequest, own: Sequence[Edit]) -> Iterator[str]:
    for edit in own:
        if not isinstance(edit, SetResponse):
            continue
        if holds_placeholder(edit.value):
            yield "The made-up answer holds REDACTED… in place of a secret, and the agent will be given that."
        if history := identify(request.head).reader.asked(request).history:
            yield (
                f"The provider keeps this conversation itself ({history}) and does not know the made-up answer: "
                "later calls go on without it."
            )


def _any(kind: type, *groups: Sequence[Edit]) -> bool:
    return any(isinstance(edit, kind) for edits in groups for edit in edits)


def _tools(steps: RecordedSteps) -> dict[str, str]:
    """The tools that were asked for, by the ids of the calls."""
    tools: dict[str, str] = {}
    for step in steps.recording.steps:
        response = steps.answer(step) if step.request.kind is StepKind.LLM_CALL else None
        if response is not None:
            request = steps.request(step)
            uses = identify(request.head).reader.answered(request, response).tool_uses
            tools |= {use.id: use.name for use in uses if use.id}
    return tools
