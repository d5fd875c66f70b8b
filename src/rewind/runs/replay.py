"""Replay: run the recorded command again with the tape in place of the world, and compare what it does."""

import difflib
import os
import re
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from rewind.gateway.dial import Dialer
from rewind.gateway.listener import listen
from rewind.gateway.options import UpstreamOptions
from rewind.model.clock import Clock, SystemClock
from rewind.model.session import Session, SessionStart
from rewind.model.step import Step, StepKind
from rewind.playback.policies import Replay
from rewind.playback.tape import Tape
from rewind.pricing.spending import Pricing, Spending, cost_of, spending
from rewind.providers.hosts import HostRules
from rewind.redaction.redactor import Redactor
from rewind.redaction.removal import PatternedRedactor, compiled
from rewind.redaction.secrets import Secrets
from rewind.runs.child import check_command
from rewind.runs.harness import AgentCommand, SessionRecording, behind_gateway, host_rules
from rewind.runs.junction import Junction
from rewind.runs.recorded_steps import RecordedSteps
from rewind.runs.rerun import (
    DUMMY_KEY,
    command_to_run,
    recorded_folder,
    refuse_traces,
    remembered_endpoints,
    remembered_key_variables,
    rerun_start,
    trusted_start,
)
from rewind.runs.stepped_replay import SteppedReplay, Stepping, Stopped, Unattended, check_step
from rewind.runs.tally import MissNote
from rewind.store.journal.writer import Stream
from rewind.store.library import Library
from rewind.store.replays import note_replay

DIFF_LINES = 40

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
            (step, step.response.reading, cost_of(pricing, step))
            for step in calls
            if step.response is not None
        )


def replay(options: ReplayOptions) -> ReplayResult:
    """Run the command again; only the tape answers, unless the user asked for more."""
    session, start, online = options.session, options.session.start, options.on_miss == "live"
    command = command_to_run(session, options.command, f"replay {session.ref}")
    environ = {**_remembered(session, live=online), **os.environ}
    cwd = None if options.command else recorded_folder(start, f"replay {start.id}")
    check_command(command, environ, cwd)
    redactor: Redactor = PatternedRedactor(Secrets.from_environment(os.environ), compiled(options.redact))
    redactor.secrets.add(DUMMY_KEY)
    dialer = _dialer(options) if online or options.live_hosts else None
    printed: list[bytes] = []
    with Library(options.home).open(session) as reader:
        steps = RecordedSteps(reader, options.ignore)
        refuse_traces(steps.recording, "replay")
        if options.stepping is not None:
            check_step(steps.recording, options.stepping.step)
        tape = steps.tape()
        course = _course(options, tape)
        stdin = course.input(reader.output("stdin"))
        agent = AgentCommand(
            command=command, environ=environ, cwd=cwd, stdin=stdin, own_group=course.own_group(stdin)
        )

        def begin() -> SessionRecording | None:
            if not online:
                return None
            again = replace(_start_again(options, command, redactor), replay_of=start.id)
            return SessionRecording(options.home, again, redactor, options.clock, stdin=stdin)

        def tee(name: Stream, data: bytes) -> None:
            if name == "stdout" and course.stopped is None:
                printed.append(data)

        with (
            closing(listen(options.port)) as listener,
            behind_gateway(
                agent,
                start,
                options.home,
                listener,
                begin,
                tee=tee,
                offline=not online,
                live_hosts=options.live_hosts,
            ) as run,
        ):
            steps.warm_up(tape, listener)
            junction = _junction(options, steps, tape, redactor, run.recording, course)
            run.serve(junction, dialer)
            code = course.through(run.child)
        recorded_output = reader.output("stdout")
    tally = junction.tally
    course.close()
    for index in course.left_out:
        tally.remark(f"step {index}", "was not asked")
    if run.recording is not None:
        run.recording.end(code, tally)
    note_replay(
        options.home,
        ts=options.clock.now(),
        session=start.id,
        steps=(step.index for step in tally.served),
    )
    output, difference = _compare(recorded_output, b"".join(printed), redactor, whole=course.stopped is None)
    return ReplayResult(
        session_id=start.id,
        played=tape.count_played,
        total=len(tape),
        drifted=tally.drifted,
        live=tally.live,
        misses=tuple(tally.misses),
        network_calls=(dialer.connects if dialer is not None else 0) + len(run.bypasses),
        output=output,
        output_difference=difference,
        exit_code=code,
        recorded_exit_code=session.end.exit_code if session.end is not None else None,
        remarks=tally.remarks,
        kept_as=run.recording.start.id if run.recording is not None else None,
        served=tuple(tally.served),
        stopped=course.stopped,
        unasked=course.unasked,
    )


def _course(options: ReplayOptions, tape: Tape) -> Unattended:
    if options.stepping is None:
        return Unattended()
    return SteppedReplay(options.stepping, tape, clock=options.clock, pace=options.latency)


def _start_again(options: ReplayOptions, command: tuple[str, ...], redactor: Redactor) -> SessionStart:
    return rerun_start(
        trusted_start(options.session),
        command,
        redactor,
        clock=options.clock,
        here=options.command is not None,
        ignore=options.ignore,
    )


def _junction(
    options: ReplayOptions,
    steps: RecordedSteps,
    tape: Tape,
    redactor: Redactor,
    recording: SessionRecording | None,
    course: Unattended,
) -> Junction:
    online = options.on_miss == "live"
    return Junction(
        policy=Replay(
            tape,
            steps.call,
            session=options.session.ref,
            allow_drift=options.allow_drift,
            on_miss_live=online,
        ),
        rules=host_rules(options.session.start),
        redactor=redactor,
        clock=options.clock,
        online=online,
        writer_thread=None if recording is None else recording.writer_thread,
        answer_of=steps.answer,
        recall=steps.call,
        held_requests=course.held_requests,
        live_hosts=HostRules(options.live_hosts),
        pace=options.latency,
        ignore=options.ignore,
    )


def _dialer(options: ReplayOptions) -> Dialer:
    options.upstream.check(os.environ)
    return Dialer(options.upstream, os.environ)


def _folded(output: bytes) -> bytes:
    """Output less what may differ: how long a redacted key was, and a terminal's line ends."""
    return re.sub(rb"REDACTEDx*", b"REDACTED", output).replace(b"\r\n", b"\n")


def _remembered(session: Session, *, live: bool) -> dict[str, str]:
    """What the agent had in its environment: the same base URLs, and a dummy where it had a key."""
    dummies = dict.fromkeys(remembered_key_variables(session), DUMMY_KEY)
    return {**dummies, **remembered_endpoints(session, live=live)}


def _compare(
    recorded: bytes | None, printed: bytes, redactor: Redactor, *, whole: bool
) -> tuple[Sameness, str]:
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
    lines = difflib.unified_diff(
        then if whole else then[: len(now)], now, "recorded", "replayed", lineterm="", n=1
    )
    return "different", "\n".join(line for line, _ in zip(lines, range(DIFF_LINES), strict=False))
