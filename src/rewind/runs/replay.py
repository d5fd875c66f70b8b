"""Replay: run the recorded command again with the tape in place of the world, and compare what it does."""

import difflib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from rewind.gateway.authority import Authority
from rewind.gateway.dial import Dialer
from rewind.gateway.listener import listen
from rewind.gateway.options import UpstreamOptions
from rewind.model.clock import SystemClock
from rewind.model.session import Session
from rewind.model.step import Step
from rewind.playback.policies import Replay
from rewind.playback.tape import Tape
from rewind.providers.hosts import LLM_HOSTS, HostRules
from rewind.redaction.redactor import Redactor
from rewind.redaction.removal import PatternedRedactor, compiled
from rewind.redaction.secrets import Secrets
from rewind.runs.agent_environment import agent_environment
from rewind.runs.bypass_watch import BypassWatch
from rewind.runs.child import Child, check_command
from rewind.runs.gateway_thread import BackgroundGateway
from rewind.runs.imported_command import (
    begun_here,
    command_to_run,
    refuse_traces,
    remembered_endpoints,
    remembered_key_variables,
)
from rewind.runs.junction import Junction
from rewind.runs.rerun import DUMMY_KEY, SessionRecording, answers, begun_again, folder_of, recall, warm_up
from rewind.runs.stepped_replay import SteppedReplay, Stepping, Stopped, check_step
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


def replay(options: ReplayOptions) -> ReplayResult:
    """Run the command again; only the tape answers, unless the user asked for more."""
    session = options.session
    start = session.start
    command = command_to_run(session, options.command, f"replay {session.ref}")
    environ = {**_remembered(session, live=options.on_miss == "live"), **os.environ}
    cwd = None if options.command else folder_of(start, f"replay {start.id}")
    check_command(command, environ, cwd)
    rules = HostRules((*LLM_HOSTS, *start.hosts), start.all_hosts)
    redactor: Redactor = PatternedRedactor(Secrets.from_environment(os.environ), compiled(options.redact))
    redactor.secrets.add(DUMMY_KEY)
    online = options.on_miss == "live"
    live_hosts = HostRules(options.live_hosts)
    dialer = _dialer(options) if online or options.live_hosts else None
    kept: SessionRecording | None = None
    stepped: SteppedReplay | None = None
    printed: list[bytes] = []

    def tee(name: Stream, data: bytes) -> None:
        if name == "stdout" and (stepped is None or stepped.stopped is None):
            printed.append(data)
        if kept is not None:
            kept.outputs.tee(name, data)

    with Library(options.home).open(session) as reader:
        recording = reader.recording()
        refuse_traces(recording, "replay")
        if options.stepping is not None:
            check_step(recording, options.stepping.step)
        call_of = recall(reader, options.ignore)
        other_rules = start.ignore != options.ignore
        tape = Tape(recording.steps, (lambda step: call_of(step).key) if other_rules else None)
        stdin = reader.output("stdin")
        if options.stepping is not None:
            stepped = SteppedReplay(options.stepping, tape, clock=SystemClock(), pace=options.latency)
            stdin = stepped.input(stdin)
        if online:
            again = begun_again(
                begun_here(session),
                command,
                redactor,
                here=options.command is not None,
                ignore=options.ignore,
            )
            kept = SessionRecording(options.home, replace(again, replay_of=start.id), redactor, stdin=stdin)
        junction = Junction(
            policy=Replay(
                tape,
                call_of,
                session=session.ref,
                allow_drift=options.allow_drift,
                on_miss_live=online,
            ),
            rules=rules,
            redactor=redactor,
            clock=SystemClock(),
            online=online,
            writer_thread=kept.writer_thread if kept is not None else None,
            answer_of=answers(reader),
            recall=call_of,
            held_requests=stepped.held_requests if stepped is not None else None,
            live_hosts=live_hosts,
            pace=options.latency,
            ignore=options.ignore,
        )
        authority = Authority.create(rules)
        listener = listen(options.port)
        with agent_environment(
            options.home,
            start.id,
            environ,
            port=listener.getsockname()[1],
            authority=authority,
            rules=rules,
            offline=not online,
            live_hosts=options.live_hosts,
        ) as variables:
            own_group = stepped is not None and stepped.sets_apart(stdin)
            child = Child(command, variables, tee, stdin=stdin, cwd=cwd, own_group=own_group)
            warm_up(reader, tape, listener)
            gateway = BackgroundGateway(listener, junction, authority, dialer)
            gateway.start()
            bypass_watch = BypassWatch(child.pid)
            code = child.wait() if stepped is None else stepped.through(child)
            gateway.stop()
        around = bypass_watch.stop()
        for program, address in around:
            junction.remark(program, f"connected to {address} by itself: this was not offline")
        recorded_output = reader.output("stdout")
    if stepped is not None:
        stepped.held_requests.close()
        for index in stepped.left_out:
            junction.remark(f"step {index}", "was not asked")
    tally = junction.tally
    stopped = None if stepped is None else stepped.stopped
    if kept is not None:
        kept.end(code, tally.remarks)
    note_replay(
        options.home,
        ts=SystemClock().now(),
        session=start.id,
        steps=(step.index for step in tally.served),
    )
    output, difference = _compare(recorded_output, b"".join(printed), redactor, whole=stopped is None)
    return ReplayResult(
        session_id=start.id,
        played=tape.count_played,
        total=len(tape),
        drifted=tally.drifted,
        live=tally.live,
        misses=tuple(tally.misses),
        network_calls=(dialer.connects if dialer is not None else 0) + len(around),
        output=output,
        output_difference=difference,
        exit_code=code,
        recorded_exit_code=session.end.exit_code if session.end is not None else None,
        remarks=tally.remarks,
        kept_as=kept.id if kept is not None else None,
        served=tuple(tally.served),
        stopped=stopped,
        unasked=None if stepped is None else stepped.unasked,
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
