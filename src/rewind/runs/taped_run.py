"""What answers a replayed agent: its recording on a tape, behind a gateway. Loaded while the agent is starting."""

import difflib
import gc
import os
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from rewind.errors import DamagedStore
from rewind.gateway.dial import Dialer
from rewind.match.renaming import Renaming
from rewind.model.names import Renamed
from rewind.model.step import Step, StepKind
from rewind.playback.policies import Replay
from rewind.playback.tools import ToolCallPolicy, askable_steps, is_note
from rewind.providers.hosts import HostRules
from rewind.providers.telemetry import upload_hosts
from rewind.redaction.redactor import Redactor
from rewind.runs.child import AgentCommand
from rewind.runs.gateway_thread import serving
from rewind.runs.harness import AgentRun, host_rules
from rewind.runs.junction import Junction
from rewind.runs.names import NewRun, lenient_renaming, renaming
from rewind.runs.recorded_steps import RecordedSteps
from rewind.runs.replay_options import ReplayOptions, ReplayResult, Sameness
from rewind.runs.rerun import refuse_traces
from rewind.runs.stepped_replay import SteppedReplay, Unattended, check_step
from rewind.runs.tally import Tally
from rewind.store.journal.contents import without_collector
from rewind.store.journal.reader import SessionReader
from rewind.store.replays import note_replay

DIFF_LINES = 40
_DAMAGE_TOLD = 5


class TapedRun:
    """The answers of one replay, and what came of it."""

    def __init__(self, options: ReplayOptions, reader: SessionReader, redactor: Redactor, agent: AgentCommand) -> None:
        """Raises UsageError, SessionNotFound for a step to stop at that is not there or was never answered."""
        self._options = options
        self._redactor = redactor
        self._online = options.on_miss == "live"
        with without_collector():
            played = options.stepping is None
            self._steps = RecordedSteps(reader, options.ignore, only_played=played, skims=played)
            self._tape = self._steps.tape()
            gc.freeze()  # it stays until the end: no look through it while the agent waits
        refuse_traces(self._steps.recording, "replay")
        if options.stepping is not None:
            check_step(self._steps.recording, options.stepping.step)
        if (sentence := self._steps.unrecorded_tools) is not None:
            options.announce(sentence)
        self._agent = agent
        self._began = options.clock.now()
        self._renaming: Callable[[], Renaming] | None = None
        self._dialer = Dialer(options.upstream, os.environ) if options.goes_online else None
        self._course = Unattended()
        if options.stepping is not None:
            self._course = SteppedReplay(options.stepping, self._tape, clock=options.clock, pace=options.latency)

    @property
    def is_stopped(self) -> bool:
        """Whether the agent was told to end: what it prints from then on does not count."""
        return self._course.stopped is not None

    def attended(self, agent: AgentCommand) -> AgentCommand:
        """The agent as it is started where somebody stops it on its way."""
        stdin = self._course.input(agent.stdin)
        return replace(agent, stdin=stdin, own_group=self._course.own_group(stdin))

    def through(self, run: AgentRun, printed: list[bytes]) -> ReplayResult:
        """Answer the agent until it ends; ``printed`` is what it has put on stdout by then."""
        course = self._course
        ahead = self._steps.warm_up(self._tape, run.listener)
        new = self._new_run(run)
        self._renaming = renaming(self._steps.recording, new, stdin=new.stdin)
        junction = self._junction(run, lenient_renaming(self._steps.recording, new, stdin=new.stdin))
        for damage in self._steps.recording.damage[:_DAMAGE_TOLD]:
            junction.remark("the recording is damaged", damage)
        with serving(run, junction, self._dialer, idle_work=ahead) as bypasses:
            code = course.through(run.child)
        course.close()
        for index in course.left_out:
            junction.remark(f"step {index}", "was not asked")
        if run.recording is not None:
            run.recording.end(code, junction.tally)
        return self._result(run, junction.tally, code, len(bypasses), b"".join(printed))

    def _new_run(self, run: AgentRun) -> NewRun:
        options, agent = self._options, self._agent
        return NewRun(
            folder=agent.cwd or str(Path.cwd()),
            environ=agent.environ,
            command=agent.command,
            clock=options.clock,
            began=self._began,
            stdin=agent.stdin,
            pid=run.child.pid,
            match=options.match,
            ignore_text=options.ignore_text,
        )

    def _junction(self, run: AgentRun, lenient: Callable[[], Renaming] | None) -> Junction:
        options = self._options
        replay = Replay(
            self._tape,
            self._steps.call,
            session=options.session.ref,
            command=options.command or (),
            renaming=self._renaming,
            lenient=lenient,
            allow_drift=options.allow_drift,
            on_miss_live=self._online,
        )
        return Junction(
            policy=ToolCallPolicy(replay, self._tape, live_tools=options.tools == "live"),
            rules=host_rules(options.session.start),
            redactor=self._redactor,
            clock=options.clock,
            online=self._online,
            writer_thread=None if run.recording is None else run.recording.writer_thread,
            answer_of=self._steps.answer,
            recall=self._steps.call,
            held_requests=self._course.held_requests,
            live_hosts=HostRules(options.live_hosts),
            uploads=self._tape.uploads,
            upload_hosts=HostRules(upload_hosts()),
            pace=options.latency,
            ignore=options.ignore,
        )

    def _result(self, run: AgentRun, tally: Tally, code: int, bypasses: int, printed: bytes) -> ReplayResult:
        options, course, session = self._options, self._course, self._options.session
        note_replay(
            options.home,
            ts=options.clock.now(),
            session=session.start.id,
            steps=(step.index for step in tally.served),
            renamed=tally.renamed,
        )
        output, names, difference = _compare(
            self._recorded_output(tally),
            printed,
            self._redactor,
            whole=course.stopped is None,
            renaming=self._renaming,
            ignored=options.ignore_output,
        )
        connects = self._dialer.connects if self._dialer is not None else 0
        played = {step.index for step in tally.served if not is_note(step)}
        askable = len(self._tape)
        if not self._steps.is_skimmed:
            askable = sum(not self._runs_anew(step) for step in askable_steps(self._tape, tally.served))
        return ReplayResult(
            session_id=session.start.id,
            played=len(played),
            total=askable,
            drifted=tally.drifted,
            renamed=tally.renamed,
            live=tally.live,
            misses=tuple(tally.misses),
            network_calls=connects + bypasses,
            output=output,
            output_renamed=names,
            output_difference=difference,
            exit_code=code,
            recorded_exit_code=session.end.exit_code if session.end is not None else None,
            remarks=tally.remarks,
            telemetry=tally.telemetry,
            kept_as=run.recording.start.id if run.recording is not None else None,
            served=self._steps.with_readings(tally.served),
            stopped=course.stopped,
            unasked=course.unasked,
            tools_run=tally.tools_run,
        )

    def _runs_anew(self, step: Step) -> bool:
        return self._options.tools == "live" and step.request.kind is StepKind.TOOL_CALL

    def _recorded_output(self, tally: Tally) -> bytes | None:
        """What was printed then; what cannot be read is not compared, and the result says so."""
        try:
            return self._steps.output("stdout")
        except DamagedStore as problem:
            tally.remark("what the agent printed then", f"cannot be compared. {problem.message}")
            return None


def _folded(output: bytes) -> bytes:
    """Output less what may differ: how long a redacted key was, and a terminal's line ends."""
    return re.sub(rb"REDACTEDx*", b"REDACTED", output).replace(b"\r\n", b"\n")


def _only_names(
    before: str, after: str, renaming: Callable[[], Renaming] | None, ignored: tuple[str, ...]
) -> tuple[Renamed, ...] | None:
    """In what two outputs differ, if only in names and in what is to be ignored."""
    found: list[Renamed] = []
    moved: list[Renamed] = []
    for pattern in ignored:
        then, now = ([match[0] for match in re.finditer(pattern, text)] for text in (before, after))
        for pair in zip_longest(then, now, fillvalue=""):
            (found if len(set(pair)) > 1 else moved).append(Renamed("ignored text", *pair))
        before, after = re.sub(pattern, "", before), re.sub(pattern, "", after)
    if before == after:
        return tuple(map(_legible, found or moved))  # the same texts, in other places
    names = None if renaming is None else renaming().outputs(before, after)
    return None if names is None else tuple(map(_legible, (*found, *names)))


def _legible(name: Renamed) -> Renamed:
    """The name without what stands in for bytes that are no text."""
    return replace(name, then=_shown(name.then), now=_shown(name.now))


def _shown(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _compare(
    recorded: bytes | None,
    printed: bytes,
    redactor: Redactor,
    *,
    whole: bool,
    renaming: Callable[[], Renaming] | None,
    ignored: tuple[str, ...],
) -> tuple[Sameness, tuple[Renamed, ...], str]:
    """What the agent printed against what it printed then; both as they would be stored."""
    if recorded is None:
        return "not compared", (), ""
    before, after = _folded(recorded), _folded(redactor.body(printed, ()))
    if whole and before == after:
        return "identical", (), ""
    if not whole and before.startswith(after.removesuffix(b"\r")):
        return "beginning", (), ""
    if whole:
        # Bytes that are no text stay apart: two pictures are not the same because neither can be read.
        texts = before.decode("utf-8", "surrogateescape"), after.decode("utf-8", "surrogateescape")
        names = _only_names(*texts, renaming, ignored)
        if names is not None:
            return "renamed", names, ""
    now = after.decode("utf-8", "replace").splitlines()
    then = before.decode("utf-8", "replace").splitlines()
    lines = difflib.unified_diff(then if whole else then[: len(now)], now, "recorded", "replayed", lineterm="", n=1)
    return "different", (), "\n".join(line for line, _ in zip(lines, range(DIFF_LINES), strict=False))
