"""Fork: run a recorded command again, answered by its recording up to one step, and live from there on.

What the run becomes is a session of its own, which says where it comes from; it replays like any other.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import field, replace
from pathlib import Path

from rewind.dataclass import dataclass
from rewind.gateway.dial import Dialer
from rewind.gateway.listener import listen
from rewind.model.http import HttpRequest
from rewind.model.ids import SessionId
from rewind.model.names import Renamed
from rewind.model.session import Lineage, SessionStart
from rewind.model.step import Step, StepKind
from rewind.playback.fork_policy import ForkAt
from rewind.playback.tools import ToolCallPolicy
from rewind.pricing.spending import Pricing, Spending, cost_of, spending
from rewind.providers.hosts import HostRules, hosts_from_environment
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets, credential_variables
from rewind.runs.child import AgentCommand, Child
from rewind.runs.fork.edits import ForkEdits
from rewind.runs.fork.plan import ForkOptions, ForkPlan, planned
from rewind.runs.gateway_thread import serving
from rewind.runs.harness import SessionRecording, agent_again, base_urls, behind_gateway, host_rules
from rewind.runs.junction import Junction
from rewind.runs.names import NewRun, lenient_renaming, renaming
from rewind.runs.recorded_steps import RecordedSteps
from rewind.runs.rerun import DUMMY_KEY, ignored_endpoints, remembered_endpoints, rerun_start, trusted_start
from rewind.runs.tally import MissNote, Tally
from rewind.store.library import Library
from rewind.store.replays import note_replay

GRACE_SECONDS = 3.0
"""Between asking an agent to end and making it."""
_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkResult:
    """How a fork went."""

    session_id: str
    """The new session."""
    lineage: Lineage
    reused: tuple[Step, ...]
    """The recorded steps that answered."""
    renamed: Mapping[int, tuple[Renamed, ...]] = field(default_factory=dict)
    """By recorded step, what the agent called otherwise."""
    drifted: tuple[int, ...]
    """The recorded steps for which a changed request was taken, the forked one included."""
    live: tuple[Step, ...]
    """The steps of the new session that asked the world, in the order in which they ended."""
    answer: Step | None
    """The step of the new session that asks what the forked step asked; of several the first with a good answer."""
    exit_code: int
    misses: tuple[MissNote, ...]
    unasked: str | None
    """Why the step was never asked, as far as that can be told."""
    stopped: str | None
    """Why the run was not let go on to its end."""
    spent: Spending
    tokens: int | None
    seconds: float
    remarks: tuple[str, ...]
    broken: str | None
    """Why the new session is not complete."""
    telemetry: int = 0
    """Uploads that were answered beside the steps: nothing comes of them."""


def fork(options: ForkOptions) -> ForkResult:
    """Run the command again, and go live at the step."""
    session = options.session
    environ = {**remembered_endpoints(session, live=True), **os.environ}
    agent = agent_again(session, options.command, f"fork {session.ref}:{options.step}", environ)
    options.upstream.check(os.environ)
    with Library(options.home).open(options.session) as reader:
        steps = RecordedSteps(reader, options.ignore)
        plan = planned(options, steps)
        if options.budget is not None:
            options.budget.check_models(plan.models())
        return _ForkRun(options, plan, steps, environ, agent).through(agent)


class _ForkRun:
    """One run, from the first line of its session to the last."""

    def __init__(
        self,
        options: ForkOptions,
        plan: ForkPlan,
        steps: RecordedSteps,
        environ: Mapping[str, str],
        agent: AgentCommand,
    ) -> None:
        self._options = options
        self._plan = plan
        self._steps = steps
        self._edits = ForkEdits(
            plan.own,
            by_hand=options.by_hand,
            first=plan.inherited.first,
            as_sent=plan.as_sent,
            earlier=plan.inherited.earlier,
            made_up=plan.made_up,
            names=plan.names,
            check=self._may_go_out,
        )
        self._environ = {**self._dummies(), **environ}
        self._redactor = Redactor(Secrets.from_environment(self._environ))
        self._tape = steps.tape(unanswered_from=plan.step.index)
        new, stdin = self._new_run(agent), steps.output("stdin")
        self._policy = ForkAt(
            self._tape,
            steps.call,
            self._edits,
            session=options.session.ref,
            at=plan.step.index,
            renaming=renaming(steps.recording, new, stdin=stdin),
            lenient=lenient_renaming(steps.recording, new, stdin=stdin),
            on_miss_live=options.on_miss == "live",
            allow_drift=options.allow_drift,
        )
        self._enough = threading.Event()
        self._asked: list[Step] = []
        """The steps of the new session that asked the world, and those that were put in."""

    def _new_run(self, agent: AgentCommand) -> NewRun:
        options = self._options
        return NewRun(
            folder=agent.cwd or str(Path.cwd()),
            environ=agent.environ,
            command=agent.command,
            clock=options.clock,
            began=options.clock.now(),
            match=options.match,
            ignore_text=options.ignore_text,
        )

    def through(self, agent: AgentCommand) -> ForkResult:
        options, stdin = self._options, self._steps.output("stdin")
        if stdin is None and options.quiet:
            stdin = b""
        for sentence in self._warnings():
            options.announce(sentence)
        start = self._start(agent.command)
        agent = replace(
            agent, environ=self._environ, stdin=stdin, shown=not options.quiet, own_group=options.stop_after
        )

        def begin() -> SessionRecording:
            return SessionRecording(options.home, start, self._redactor, options.clock, stdin=stdin)

        with (
            closing(listen(options.port)) as listener,
            behind_gateway(agent, start, options.home, listener, begin, again=True) as run,
        ):
            recording = run.recording
            assert recording is not None, "a fork is always recorded"
            threading.Thread(target=self._end_it, args=(run.child,), daemon=True).start()
            self._steps.warm_up(self._tape, listener)
            junction = self._junction(recording, host_rules(start))
            with serving(run, junction, Dialer(options.upstream, os.environ), provenance=recording):
                code = run.child.wait()
                ended_by_us = self._enough.is_set()
                self._enough.set()
            stopped = self._policy.over if ended_by_us else junction.tally.stopped
            if stopped is not None:
                junction.remark("this run", f"was stopped: {stopped}")
            recording.end(code, junction.tally)
        return self._result(recording, junction.tally, code, stopped)

    def _start(self, command: tuple[str, ...]) -> SessionStart:
        """The first line of the new session."""
        options, environ = self._options, self._environ
        before = trusted_start(options.session)
        again = rerun_start(
            before, command, clock=options.clock, here=options.command is not None, ignore=options.ignore
        )
        return replace(
            again,
            name=options.name,
            key_variables=tuple(sorted({*before.key_variables, *credential_variables(environ)})),
            base_urls={**before.base_urls, **base_urls(environ)},
            hosts=tuple(dict.fromkeys((*before.hosts, *hosts_from_environment(environ)))),
            forked_from=self._plan.lineage,
        )

    def _junction(self, recording: SessionRecording, rules: HostRules) -> Junction:
        policy = ToolCallPolicy(
            self._policy,
            self._tape,
            live_tools=self._options.tools == "live",
            before=self._plan.step.index,
            over=lambda: self._policy.over,
        )
        return Junction(
            policy=policy,
            rules=rules,
            redactor=self._redactor,
            clock=self._options.clock,
            online=True,
            writer_thread=recording.writer_thread,
            answer_of=self._steps.answer,
            recall=self._steps.call,
            watch=self._watch,
            watch_first=True,
            uploads=self._tape.uploads,
            ignore=self._options.ignore,
        )

    def _dummies(self) -> dict[str, str]:
        """Keys for an agent that would not start without; where calls go live, a wrong key is worse than none."""
        start = trusted_start(self._options.session)
        nobody_is_asked = self._options.stop_after and self._edits.substitutes
        return dict.fromkeys(start.key_variables, DUMMY_KEY) if nobody_is_asked else {}

    def _warnings(self) -> list[str]:
        start = trusted_start(self._options.session)
        missing = [name for name in start.key_variables if name not in self._environ]
        sentences = []
        if missing:
            are = "is" if len(missing) == 1 else "are"
            sentences.append(
                f"{', '.join(missing)} {are} not set here, but {'was' if are == 'is' else 'were'} when the session "
                "was recorded: live calls may be rejected."
            )
        if self._plan.dropped:
            sentences.append(
                f"Forked at step {self._plan.step.index}, what the fork {start.id} had changed is not carried over: "
                f"{', '.join(self._plan.dropped)}"
            )
        if (ignored := ignored_endpoints(self._options.session, self._environ)) is not None:
            sentences.append(ignored)
        return [*sentences, *self._plan.remarks]

    # ── while it runs: on the gateway's thread, or the writer thread ─────────────────────────────────────────────────

    def _may_go_out(self, request: HttpRequest) -> None:
        if self._options.budget is not None:
            self._options.budget.check(request)

    def _watch(self, step: Step) -> None:
        self._asked.append(step)
        good = not step.outcome.failed
        self._policy.ended(step.index, good=good)
        if self._options.budget is not None:
            self._options.budget.pay(step)
        if self._options.stop_after and step.index in self._policy.askings and good:
            self._policy.over = f"step {self._plan.step.index} is answered, and no more was asked for"
            self._enough.set()

    def _end_it(self, child: Child) -> None:
        self._enough.wait()
        child.end(GRACE_SECONDS)

    # ── when it is over ──────────────────────────────────────────────────────────────────────────────────────

    def _result(self, recording: SessionRecording, tally: Tally, code: int, stopped: str | None) -> ForkResult:
        now, start = self._options.clock.now(), recording.start
        note_replay(
            self._options.home,
            ts=now,
            session=SessionId(self._plan.session),
            steps=(step.index for step in tally.served),
        )
        assert start.forked_from is not None, "a fork knows where it comes from"
        live = tuple(step for step in self._asked if step.response is not None and step.response.tape is None)
        return ForkResult(
            session_id=start.id,
            lineage=start.forked_from,
            reused=tuple(tally.served),
            renamed=tally.renamed,
            drifted=tuple(self._policy.drifted),
            live=live,
            answer=best_answer([step for step in self._asked if step.index in self._policy.askings]),
            exit_code=code,
            misses=tuple(tally.misses),
            unasked=None if stopped is not None else why_unasked(self._policy, self._plan.step),
            stopped=stopped,
            spent=spent_on(live, self._options.pricing),
            tokens=tally.tokens if tally.tokens_known else None,
            seconds=now - start.started,
            remarks=tally.remarks,
            broken=recording.broken,
            telemetry=tally.telemetry,
        )


def best_answer(askings: Sequence[Step]) -> Step | None:
    """The first that is good, else the last."""
    good = (step for step in askings if not step.outcome.failed)
    return next(good, askings[-1] if askings else None)


def spent_on(live: Sequence[Step], pricing: Pricing | None) -> Spending:
    """What the LLM calls among these steps cost."""
    if pricing is None:
        return Spending()
    return spending(
        (step, step.response.reading, cost_of(pricing, step))
        for step in live
        if step.request.kind is StepKind.LLM_CALL and step.response is not None
    )


def why_unasked(policy: ForkAt, step: Step) -> str | None:
    """What can be told of a step that the run never came to; ``None`` where it did."""
    if policy.was_asked:
        return None
    sentences = [f"Step {step.index} was never asked: the run ended before it."]
    if left := policy.unasked():
        shown = ", ".join(map(str, left[:_SHOWN])) + (", …" if len(left) > _SHOWN else "")
        were = "was" if len(left) == 1 else "were"
        sentences.append(f"Of the steps before it, {shown} {were} not asked either.")
    if (nearest := policy.nearest_miss(step)) is not None:
        sentences.append(f"What came nearest: {nearest.sentence}")
        if not policy.allow_drift:
            sentences.append("With --allow-drift it would have been accepted, if it comes at the same place.")
    return " ".join(sentences)
