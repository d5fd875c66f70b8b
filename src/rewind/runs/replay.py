"""Replay: run the recorded command again with the tape in place of the world, and compare what it does."""

import contextlib
import difflib
import os
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from rewind.capture.redact import Redactor
from rewind.capture.secrets import Secrets
from rewind.errors import DamagedStore, EnvironmentProblem
from rewind.gateway.authority import Authority
from rewind.gateway.dial import Dialer
from rewind.gateway.listener import listen, somebody_waits
from rewind.gateway.options import UpstreamOptions
from rewind.match.call import Call, understand
from rewind.model.clock import SystemClock
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.ids import SessionId
from rewind.model.session import Session, SessionStart
from rewind.model.step import Step
from rewind.playback.policies import Replay
from rewind.playback.tape import Tape
from rewind.providers.hosts import LLM_HOSTS, HostRules
from rewind.runs.background import BackgroundGateway
from rewind.runs.bystander import Bystander
from rewind.runs.child import Child, check_command
from rewind.runs.junction import Junction
from rewind.runs.outputs import Outputs
from rewind.runs.pen import Pen
from rewind.runs.surroundings import agent_environment
from rewind.runs.tally import MissNote
from rewind.store.library import Library
from rewind.store.reader import SessionReader
from rewind.store.replays import note_replay
from rewind.store.writer import SessionWriter, Stream
from rewind.version import __version__

DUMMY_KEY = "rewind-replay-needs-no-key"
DIFF_LINES = 40
WARM_BYTES = 16 * 1024 * 1024
"""How many bytes of answers are read before anybody asks for them."""


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
    output: Literal["identical", "different", "not compared"]
    output_difference: str
    exit_code: int
    recorded_exit_code: int | None
    remarks: tuple[str, ...]
    kept_as: str | None = None
    """With ``--on-miss live``: the session that holds this run, the live answers included."""
    served: tuple[Step, ...] = ()
    """The recorded steps that answered, once for each time."""


def replay(options: ReplayOptions) -> ReplayResult:
    """Run the command again; only the tape answers, unless the user asked for more."""
    session = options.session
    start = session.start
    command = options.command or start.command
    environ = {**_remembered(start), **os.environ}
    cwd = None if options.command else _folder_of(start)
    check_command(command, environ, cwd)
    rules = HostRules((*LLM_HOSTS, *start.hosts), start.all_hosts)
    redactor = Redactor(Secrets.from_environment(os.environ))
    redactor.secrets.add(DUMMY_KEY)
    online = options.on_miss == "live"
    live_hosts = HostRules(options.live_hosts)
    dialer = _dialer(options) if online or options.live_hosts else None
    kept = _Kept(options, command, redactor) if online else None
    printed: list[bytes] = []

    def tee(name: Stream, data: bytes) -> None:
        if name == "stdout":
            printed.append(data)
        if kept is not None:
            kept.outputs.tee(name, data)

    with Library(options.home).open(session) as reader:
        recording = reader.recording()
        recall = _recall(reader, options.ignore)
        other_rules = start.ignore != options.ignore
        tape = Tape(recording.steps, (lambda step: recall(step).key) if other_rules else None)
        junction = Junction(
            policy=Replay(
                tape,
                recall,
                session=start.id,
                allow_drift=options.allow_drift,
                on_miss_live=online,
            ),
            rules=rules,
            redactor=redactor,
            clock=SystemClock(),
            online=online,
            pen=kept.pen if kept is not None else None,
            answer_of=_answers(reader),
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
            child = Child(command, variables, tee, stdin=reader.output("stdin"), cwd=cwd)
            _warm_up(reader, tape, listener)
            gateway = BackgroundGateway(listener, junction, authority, dialer)
            gateway.start()
            bystander = Bystander(child.pid)
            code = child.wait()
            gateway.stop()
        around = bystander.stop()
        for program, address in around:
            junction.remark(program, f"connected to {address} by itself: this was not offline")
        recorded_output = reader.output("stdout")
    tally = junction.tally
    if kept is not None:
        kept.end(code, tally.remarks)
    note_replay(
        options.home,
        ts=SystemClock().now(),
        session=start.id,
        steps=(step.index for step in tally.served),
    )
    output, difference = _compare(recorded_output, b"".join(printed), redactor)
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
    )


def _warm_up(reader: SessionReader, tape: Tape, listener: socket.socket) -> None:
    """Until the agent makes its first call, read answers from the disk, so that its calls need not wait for that."""
    reader.pack().index()
    size = 0
    for step in tape.steps():
        if size > WARM_BYTES or somebody_waits(listener):
            return
        if step.response is not None:
            size += step.response.body_size
            with contextlib.suppress(DamagedStore):  # told when that step is wanted
                reader.blob(step.response.body)


def _dialer(options: ReplayOptions) -> Dialer:
    options.upstream.check(os.environ)
    return Dialer(options.upstream, os.environ)


class _Kept:
    """What went live is not lost: the run becomes a session of its own, tape and live answers together."""

    def __init__(self, options: ReplayOptions, command: tuple[str, ...], redactor: Redactor) -> None:
        before = options.session.start
        self.id = SessionId(os.urandom(4).hex())
        start = replace(
            before,
            id=self.id,
            command=redactor.argv(command),
            started=SystemClock().now(),
            rewind_version=__version__,
            ignore=options.ignore,
            replay_of=before.id,
        )
        self._redactor = redactor
        self._writer = SessionWriter.create(options.home, start)
        self.pen = Pen(self._writer)
        self.outputs = Outputs(self.pen, redactor)

    def end(self, exit_code: int, remarks: tuple[str, ...]) -> None:
        self.outputs.finish()
        ended = SystemClock().now()
        count = self._redactor.count
        self.pen.later(
            lambda: self._writer.end(ended=ended, exit_code=exit_code, redactions=count, remarks=remarks)
        )
        self.pen.close()


def _folder_of(start: SessionStart) -> str:
    if not Path(start.cwd).is_dir():
        raise EnvironmentProblem(
            f"The folder {start.cwd} that the session was recorded in is not there.",
            hint=f"Go where the agent is and give its command: rewind replay {start.id} -- COMMAND",
        )
    return start.cwd


def _folded(output: bytes) -> bytes:
    """Output less what may differ: how long a redacted key was, and a terminal's line ends."""
    return re.sub(rb"REDACTEDx*", b"REDACTED", output).replace(b"\r\n", b"\n")


def _remembered(start: SessionStart) -> dict[str, str]:
    """What the agent had in its environment: the same base URLs, and a dummy where it had a key."""
    return {**dict.fromkeys(start.key_variables, DUMMY_KEY), **start.base_urls}


def _recall(reader: SessionReader, ignore: tuple[str, ...]) -> Callable[[Step], Call]:
    def call_of(step: Step) -> Call:
        request = HttpRequest(head=step.request.head, body=reader.blob(step.request.body))
        return understand(request, ignore=ignore, index=step.index)

    return call_of


def _answers(reader: SessionReader) -> Callable[[Step], HttpResponse | None]:
    def answer_of(step: Step) -> HttpResponse | None:
        response = step.response
        if response is None or response.head is None:
            return None
        return HttpResponse(
            head=response.head,
            body=reader.blob(response.body),
            chunks=response.chunks,
            trailers=response.trailers,
        )

    return answer_of


def _compare(
    recorded: bytes | None, printed: bytes, redactor: Redactor
) -> tuple[Literal["identical", "different", "not compared"], str]:
    """What the agent printed against what it printed then; both as they would be stored."""
    if recorded is None:
        return "not compared", ""
    before, after = _folded(recorded), _folded(redactor.body(printed, ()))
    if before == after:
        return "identical", ""
    lines = difflib.unified_diff(
        before.decode("utf-8", "replace").splitlines(),
        after.decode("utf-8", "replace").splitlines(),
        "recorded",
        "replayed",
        lineterm="",
        n=1,
    )
    return "different", "\n".join(line for line, _ in zip(lines, range(DIFF_LINES), strict=False))
