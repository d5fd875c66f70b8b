"""Replay: run the recorded command again with the tape in place of the world, and compare what it does."""

import difflib
import os
import re
from contextlib import closing
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from rewind.dataclass import dataclass
from rewind.errors import DamagedStore
from rewind.gateway.dial import Dialer
from rewind.gateway.listener import listen
from rewind.gateway.options import UpstreamOptions
from rewind.model.clock import Clock, SystemClock
from rewind.model.session import Session
from rewind.model.step import Step, StepKind
from rewind.playback.policies import Replay
from rewind.pricing.spending import Pricing, Spending, cost_of, spending
from rewind.providers.hosts import HostRules
from rewind.redaction.redactor import Redactor
from rewind.redaction.removal import PatternedRedactor, compiled_patterns
from rewind.redaction.secrets import Secrets
from rewind.runs.child import AgentCommand
from rewind.runs.gateway_thread import serving
from rewind.runs.harness import SessionRecording, agent_again, behind_gateway, host_rules
from rewind.runs.junction import Junction
from rewind.runs.recorded_steps import RecordedSteps
from rewind.runs.rerun import (
    DUMMY_KEY,
    refuse_traces,
    remembered_endpoints,
    remembered_key_variables,
    rerun_start,
    trusted_start,
)
from rewind.runs.stepped_replay import SteppedReplay, Stepping, Stopped, Unattended, check_step
from rewind.runs.tally import MissNote, Tally
from rewind.store.journal.writer import Stream
from rewind.store.library import Library
from rewind.store.replays import note_replay

DIFF_LINES = 40
_DAMAGE_TOLD = 5

Sameness = Literal["identical", "beginning", "different", "not compared"]
"""Of what was printed, with what was printed then; a run that was stopped can only print its beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """What to replay, and how."""

    session: Session
    home: Path
    command: tuple[str, ...] | None = None
    """In place of the recorded one."""
    latency: float = 0.0
    """0 answers at once, 1 as slowly as recorded."""
    allow_drift: bool = False
    on_miss: Literal["refuse", "live"] = "refuse"
    live_hosts: tuple[str, ...] = ()
    port: int = 0
    upstream: UpstreamOptions = UpstreamOptions()
    ignore: tuple[str, ...] = ()
    redact: tuple[str, ...] = ()
    """Patterns that the session was exported with: what they match is taken out of requests, too."""
    stepping: Stepping | None = None
    """Where to stop on the way."""
    clock: Clock = field(default_factory=SystemClock)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """How a replay went."""

    session_id: str
    played: int
    total: int
    drifted: int
    live: int
    misses: tuple[MissNote, ...]
    network_calls: int
    output: Sameness
    output_difference: str
    exit_code: int
    recorded_exit_code: int | None
    remarks: tuple[str, ...]
    kept_as: str | None = None
    """With ``--on-miss live``: the session that holds this run, the live answers included."""
    served: tuple[Step, ...] = ()
    """The recorded steps that answered, once for each time."""
    stopped: Stopped | None = None
    """Where we ended the agent; its exit code says nothing then."""
    unasked: int | None = None
    """The step to stop at, where the run never came to it."""

    @property
    def other_exit_code(self) -> bool:
        """Whether the agent ended with another exit code than when it was recorded."""
        return self.stopped is None and self.recorded_exit_code not in (None, self.exit_code)

    def saved(self, pricing: Pricing) -> Spending:
        """What the recorded answers cost when they were recorded."""
        calls = (step for step in self.served if step.request.kind is StepKind.LLM_CALL)
        return spending(
            (step, step.response.reading, cost_of(pricing, step)) for step in calls if step.response is not None
        )


def replay(options: ReplayOptions) -> ReplayResult:
    """Run the command again; only the tape answers, unless the user asked for more."""
    session = options.session
    environ = {**_remembered(session, live=options.on_miss == "live"), **os.environ}
    agent = agent_again(session, options.command, f"replay {session.ref}", environ)
    dialer = _dialer(options)
    with Library(options.home).open(session) as reader:
        steps = RecordedSteps(reader, options.ignore, only_played=options.stepping is None)
        refuse_traces(steps.recording, "replay")
        if options.stepping is not None:
            check_step(steps.recording, options.stepping.step)
        return _ReplayRun(options, steps, dialer).through(agent)


class _ReplayRun:
    """One run of the agent, answered by its recording."""

    def __init__(self, options: ReplayOptions, steps: RecordedSteps, dialer: Dialer | None) -> None:
        self._options = options
        self._steps = steps
        self._dialer = dialer
        self._online = options.on_miss == "live"
        self._redactor: Redactor = PatternedRedactor(
            Secrets.from_environment(os.environ), compiled_patterns(options.redact)
        )
        self._redactor.secrets.add(DUMMY_KEY)
        self._tape = steps.tape()
        self._course = Unattended()
        if options.stepping is not None:
            self._course = SteppedReplay(options.stepping, self._tape, clock=options.clock, pace=options.latency)
        self._printed: list[bytes] = []

    def through(self, agent: AgentCommand) -> ReplayResult:
        options, course = self._options, self._course
        stdin = course.input(self._steps.output("stdin"))
        agent = replace(agent, stdin=stdin, own_group=course.own_group(stdin))
        with (
            closing(listen(options.port)) as listener,
            behind_gateway(
                agent,
                options.session.start,
                options.home,
                listener,
                lambda: self._begin(agent) if self._online else None,
                tee=self._tee,
                offline=not self._online,
                live_hosts=options.live_hosts,
            ) as run,
        ):
            self._steps.warm_up(self._tape, listener)
            junction = self._junction(run.recording)
            for damage in self._steps.recording.damage[:_DAMAGE_TOLD]:
                junction.remark("the recording is damaged", damage)
            with serving(run, junction, self._dialer) as bypasses:
                code = course.through(run.child)
            course.close()
            for index in course.left_out:
                junction.remark(f"step {index}", "was not asked")
            if run.recording is not None:
                run.recording.end(code, junction.tally)
        return self._result(run.recording, junction.tally, code, len(bypasses))

    def _begin(self, agent: AgentCommand) -> SessionRecording:
        """With ``--on-miss live`` the run becomes a session of its own."""
        options = self._options
        start = rerun_start(
            trusted_start(options.session),
            agent.command,
            clock=options.clock,
            here=options.command is not None,
            ignore=options.ignore,
        )
        start = replace(start, replay_of=options.session.start.id)
        return SessionRecording(options.home, start, self._redactor, options.clock, stdin=agent.stdin)

    def _tee(self, name: Stream, data: bytes) -> None:
        if name == "stdout" and self._course.stopped is None:
            self._printed.append(data)

    def _junction(self, recording: SessionRecording | None) -> Junction:
        options = self._options
        return Junction(
            policy=Replay(
                self._tape,
                self._steps.call,
                session=options.session.ref,
                allow_drift=options.allow_drift,
                on_miss_live=self._online,
            ),
            rules=host_rules(options.session.start),
            redactor=self._redactor,
            clock=options.clock,
            online=self._online,
            writer_thread=None if recording is None else recording.writer_thread,
            answer_of=self._steps.answer,
            recall=self._steps.call,
            held_requests=self._course.held_requests,
            live_hosts=HostRules(options.live_hosts),
            pace=options.latency,
            ignore=options.ignore,
        )

    def _result(self, recording: SessionRecording | None, tally: Tally, code: int, bypasses: int) -> ReplayResult:
        options, course, session = self._options, self._course, self._options.session
        note_replay(
            options.home, ts=options.clock.now(), session=session.start.id, steps=(step.index for step in tally.served)
        )
        output, difference = _compare(
            self._recorded_output(tally), b"".join(self._printed), self._redactor, whole=course.stopped is None
        )
        connects = self._dialer.connects if self._dialer is not None else 0
        return ReplayResult(
            session_id=session.start.id,
            played=len({step.index for step in tally.served}),
            total=len(self._tape),
            drifted=tally.drifted,
            live=tally.live,
            misses=tuple(tally.misses),
            network_calls=connects + bypasses,
            output=output,
            output_difference=difference,
            exit_code=code,
            recorded_exit_code=session.end.exit_code if session.end is not None else None,
            remarks=tally.remarks,
            kept_as=recording.start.id if recording is not None else None,
            served=self._steps.with_readings(tally.served),
            stopped=course.stopped,
            unasked=course.unasked,
        )

    def _recorded_output(self, tally: Tally) -> bytes | None:
        """What was printed then; what cannot be read is not compared, and the result says so."""
        try:
            return self._steps.output("stdout")
        except DamagedStore as problem:
            tally.remark("what the agent printed then", f"cannot be compared. {problem.message}")
            return None


def _dialer(options: ReplayOptions) -> Dialer | None:
    """``None``: the run stays offline."""
    if options.on_miss != "live" and not options.live_hosts:
        return None
    options.upstream.check(os.environ)
    return Dialer(options.upstream, os.environ)


def _folded(output: bytes) -> bytes:
    """Output less what may differ: how long a redacted key was, and a terminal's line ends."""
    return re.sub(rb"REDACTEDx*", b"REDACTED", output).replace(b"\r\n", b"\n")


def _remembered(session: Session, *, live: bool) -> dict[str, str]:
    """What the agent had in its environment: the same base URLs, and a dummy where it had a key."""
    dummies = dict.fromkeys(remembered_key_variables(session), DUMMY_KEY)
    return {**dummies, **remembered_endpoints(session, live=live)}


def _compare(recorded: bytes | None, printed: bytes, redactor: Redactor, *, whole: bool) -> tuple[Sameness, str]:
    """What the agent printed against what it printed then; both as they would be stored."""
    if recorded is None:
        return "not compared", ""
    before, after = _folded(recorded), _folded(redactor.body(printed, ()))
    if whole and before == after:
        return "identical", ""
    if not whole and before.startswith(after.removesuffix(b"\r")):
        return "beginning", ""
    now = after.decode("utf-8", "replace").splitlines()
    then = before.decode("utf-8", "replace").splitlines()
    lines = difflib.unified_diff(then if whole else then[: len(now)], now, "recorded", "replayed", lineterm="", n=1)
    return "different", "\n".join(line for line, _ in zip(lines, range(DIFF_LINES), strict=False))
