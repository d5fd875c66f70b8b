"""A run of this very process: recorded or replayed behind the process's own gateway, without a child.

    run = InProcessRun(InProcessOptions(home=…, mode="record"))
    run.start()                      # from here on the run exists; it concerns nobody yet
    token = run.activate()           # this context, and whatever it starts, belongs to the run
    …
    run.deactivate(token)
    result = run.finish(exit_code=0)

Whose a connection is, is decided in :mod:`rewind.inprocess.redirect.callers`; where it may go, in
:mod:`rewind.inprocess.redirect.rules`. In a replay a recorded host is answered by the gateway (a miss is a 424 in the
provider's own shape), and every other connection that would leave this machine raises :class:`Offline`. What the
agent's own code does (``tool``, ``note``) takes the same path.

All methods may be called from any thread. ``start`` and ``finish`` block for a few milliseconds, ``finish`` for up to
1.2 s where answers are still coming.
"""

import atexit
import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from contextvars import Token
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakSet

from rewind.dataclass import dataclass
from rewind.errors import ReplayMiss
from rewind.gateway.client import RunContext
from rewind.gateway.dial import Dialer
from rewind.gateway.upstream import Pool
from rewind.inprocess.guard import Guard
from rewind.inprocess.options import InProcessOptions, InProcessResult, Reach, reach_of
from rewind.inprocess.redirect import callers as redirect_callers
from rewind.inprocess.redirect import install as redirect
from rewind.inprocess.redirect.callers import Caller, Offline
from rewind.inprocess.redirect.open_connections import UnseenConnections
from rewind.inprocess.shared_gateway import SharedGateway, shared_gateway
from rewind.inprocess.tool_calls import ToolCalls, ToolUnderWay
from rewind.model.ids import SessionId
from rewind.model.step import Step
from rewind.model.tool_call import PlayedTool
from rewind.playback.decision import Policy
from rewind.playback.policies import RecordAll, Replay
from rewind.playback.tape import Tape
from rewind.playback.tools import ToolCallPolicy, askable_steps, is_note
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets
from rewind.runs.harness import SessionRecording, session_start
from rewind.runs.junction import Junction
from rewind.runs.names import NewRun, lenient_renaming, renaming
from rewind.runs.recorded_steps import RecordedSteps
from rewind.runs.rerun import DUMMY_KEY, rerun_start
from rewind.runs.surroundings import SurroundingsLookup
from rewind.runs.tally import Tally

__all__ = [
    "Guard",
    "InProcessOptions",
    "InProcessResult",
    "InProcessRun",
    "Offline",
    "PlayedTool",
    "ReplayMiss",
    "ToolUnderWay",
    "current_run",
]


def current_run() -> "InProcessRun | None":
    """The run that the code running now belongs to, by the rules of ``callers.py``; ``None`` where there is none
    (a guard is no run, and neither is one that is over)."""
    caller = redirect_callers.current_caller()
    return caller if isinstance(caller, InProcessRun) and not caller.over else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """What a run has once it has begun."""

    gateway: SharedGateway
    context: RunContext
    tool_calls: ToolCalls
    tape: Tape | None
    """Of a replay."""
    recording: SessionRecording | None
    lookup: SurroundingsLookup | None
    unseen: UnseenConnections | None
    """Of an offline run."""


class InProcessRun(Caller):
    """One run of this process, from ``start`` to ``finish``."""

    def __init__(self, options: InProcessOptions) -> None:
        super().__init__(options.offline_error or _offline_text)
        self._options = options
        self._threads_before: WeakSet[threading.Thread] = WeakSet()
        """Threads that were there when it began, and do not work for it by themselves."""
        self._ending = threading.RLock()
        self._tally = Tally()
        self._live_steps: list[Step] = []
        self._state: _Begun | None = None
        self._result: InProcessResult | None = None

    @property
    def _begun(self) -> _Begun:
        assert self._state is not None, "the run has begun"
        return self._state

    @property
    def session_id(self) -> str | None:
        """Of the session that is being written; ``None`` when none is."""
        recording = None if self._state is None else self._state.recording
        return None if recording is None else recording.start.id

    @property
    def offline(self) -> bool:
        """Whether only the tape answers."""
        return self.rules.offline

    # ── beginning ────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Begin. Raises RewindError (a store that cannot be written, a tape that cannot be read) and then has changed
        nothing; a recorder should go on without it."""
        options, environ = self._options, dict(os.environ)
        assert options.mode == "record" or options.tape is not None, "a replay has a tape"
        online = options.mode == "record" or options.on_miss == "live"
        pool: Pool | None = None
        if online or options.allowed_hosts:
            options.upstream.check(environ)
            pool = Pool(Dialer(options.upstream, environ))
        redactor = Redactor(Secrets.from_environment(environ))
        steps: RecordedSteps | None = None
        if options.mode == "replay" and options.tape is not None:
            steps = RecordedSteps(options.tape, options.ignore, only_played=True)
            redactor.secrets.add(DUMMY_KEY)
        reach = reach_of(options, environ, None if steps is None else steps.recording)
        self.rules = reach.rules
        gateway = shared_gateway()
        tape = None if steps is None else steps.tape()
        with redirect_callers.ourselves():
            recording = self._record(environ, redactor, reach, steps)
            lookup = None
            if recording is not None and steps is None:
                lookup = SurroundingsLookup(str(Path.cwd()), environ, redactor, recording.surroundings)
                lookup.start()
        junction = Junction(
            policy=RecordAll() if steps is None or tape is None else self._policy(steps, tape),
            rules=reach.recorded,
            redactor=redactor,
            clock=options.clock,
            online=online,
            writer_thread=None if recording is None else recording.writer_thread,
            answer_of=None if steps is None else steps.answer,
            recall=None if steps is None else steps.call,
            watch=self._take_step,
            live_hosts=self.rules.allowed,
            uploads=None if tape is None else tape.uploads,
            upload_hosts=reach.thanked,
            refused=self.blocked.append if self.rules.offline else None,
            ignore=options.ignore,
            tally=self._tally,
        )
        redirect.close_idle_connections(self.rules, gateway.port)
        self._state = _Begun(
            gateway=gateway,
            context=gateway.run_context(junction, pool),
            tool_calls=ToolCalls(gateway, junction),
            tape=tape,
            recording=recording,
            lookup=lookup,
            unseen=UnseenConnections() if self.rules.offline else None,
        )
        if self.rules.offline:
            self._threads_before = WeakSet(threading.enumerate())
            self._threads_before.discard(threading.current_thread())
        _end_with_the_process()
        redirect_callers.join(self)

    def _policy(self, steps: RecordedSteps, tape: Tape) -> Policy:
        options = self._options
        new = NewRun(
            folder=str(Path.cwd()),
            environ=os.environ,
            command=tuple(sys.orig_argv),
            clock=options.clock,
            began=options.clock.now(),
            given=options.given,
            match=options.match,
            ignore_text=options.ignore_text,
        )
        replay = Replay(
            tape,
            steps.call,
            session=steps.recording.session.id,
            renaming=renaming(steps.recording, new),
            lenient=lenient_renaming(steps.recording, new),
            allow_drift=options.allow_drift,
            on_miss_live=options.on_miss == "live",
        )
        return ToolCallPolicy(replay, tape, live_tools=options.tools == "live")

    def _record(
        self, environ: Mapping[str, str], redactor: Redactor, reach: Reach, steps: RecordedSteps | None
    ) -> SessionRecording | None:
        """The run as a session; ``None`` for a replay that leaves nothing behind."""
        options, command = self._options, tuple(sys.orig_argv)
        if steps is None:
            start = replace(
                session_start(command, environ, options.clock),
                name=options.name,
                tags=options.tags,
                hosts=reach.hosts,
                all_hosts=options.all_hosts,
                ignore=options.ignore,
            )
        elif options.keep:
            before = steps.recording.session.start
            start = replace(
                rerun_start(before, command, clock=options.clock, here=True, ignore=options.ignore),
                replay_of=before.id,
                name=options.name or before.name,
                tags={**before.tags, **options.tags},
                imported=False,
                stdin_kind="none",
            )
        else:
            return None
        if options.part_of is not None:
            start = replace(start, part_of=SessionId(options.part_of))
        return SessionRecording(options.home, start, redactor, options.clock, printed=())

    # ── what the agent's own code does ───────────────────────────────────────────────────────────────────

    def tool(self, name: str, body: bytes) -> PlayedTool | ToolUnderWay:
        """A tool is called; ``body`` is the JSON ``{"arguments": …}``.

        Either the recording answers, or the tool is to be run and its answer told by ``ToolUnderWay.ended(status,
        body)``: 200 with ``{"result": …}``, or 500 with ``{"error": "…"}``. Raises ReplayMiss, which says what was
        nearest. The miss is in the run's result, too.
        """
        return self._begun.tool_calls.tool(name, body)

    def note(self, text: str, fields: Mapping[str, Any] | None = None, *, error: bool = False) -> None:
        """A step of kind ``note``, or ``error``. In a replay it need not be on tape."""
        self._begun.tool_calls.note(text, fields or {}, error=error)

    def _take_step(self, step: Step) -> None:
        """Called when the step is on disk; one that could not be written is no step of the session."""
        recording = self._begun.recording
        if recording is None or step.index not in recording.writer.lost:
            self._live_steps.append(step)

    def steps_so_far(self) -> tuple[Step, ...]:
        """What was asked and answered so far: from the tape as recorded, live as it was kept."""
        if self._begun.gateway.is_here and not self._begun.gateway.is_this_thread:
            self.flush()
        return tuple(sorted((*self._tally.served, *self._live_steps), key=lambda step: step.request.ts))

    # ── ending ───────────────────────────────────────────────────────────────────────────────────────────

    def finish(self, exit_code: int = 0) -> InProcessResult:
        """Let what is under way settle, and end. Afterwards the run concerns nobody.

        Where the last reference to a run is dropped on the gateway's own thread, which cannot wait for itself, the run
        ends a moment later, in a thread of its own; the result is as things stand.
        """
        begun = self._begun
        self.over = True  # first: what is asked from now on is no part of it
        redirect_callers.leave(self)
        if self._result is None and begun.gateway.is_this_thread:
            with redirect_callers.ourselves():
                threading.Thread(target=self.finish, args=(exit_code,), name="rewind-ending").start()
            return self.progress()
        with self._ending:
            if self._result is None:
                begun.gateway.settle(begun.context)
                for address in () if begun.unseen is None else begun.unseen.since():
                    self.unrecorded(address, "was reached without Python's sockets: this run was not offline")
                if begun.gateway.is_here:
                    self._close(begun, exit_code)
                # In a forked child it ends only for that child: files, and what else there is, are its parent's.
                self._result = self._how_it_went(begun, written=begun.gateway.is_here)
            return self._result

    def _close(self, begun: _Begun, exit_code: int) -> None:
        """Let go of what it has."""
        if begun.lookup is not None:
            begun.lookup.stop()
        if begun.recording is not None:
            begun.recording.end(exit_code, self._tally)

    def progress(self) -> InProcessResult:
        """How the run stands now: what was played, missed and asked live, what is left on the tape, whether recording
        broke. Steps that the tape answered may not be on disk yet; see ``flush``."""
        return self._result or self._how_it_went(self._begun)

    def flush(self) -> None:
        """Wait until all that was asked and answered so far is on disk."""
        recording = self._begun.recording
        if recording is not None and not self.over:
            recording.flush()

    def _how_it_went(self, begun: _Begun, *, written: bool = True) -> InProcessResult:
        own, tally, tape, recording = begun.tool_calls, self._tally, begun.tape, begun.recording
        askable = [] if tape is None else askable_steps(tape, tally.served)
        unused = tuple(step for step in askable if tape is not None and not tape.played(step.index))
        asked = tally.llm_calls + tally.other_calls - own.tools - own.notes
        return InProcessResult(
            session_id=self.session_id,
            folder=None if recording is None else recording.writer.folder,
            played=len(askable) - len(unused),
            tape=tuple(askable),
            unused=unused,
            renamed=dict(tally.renamed),
            drifted=tally.drifted,
            live=tally.live if tape is not None else asked,
            misses=tuple(tally.misses),
            blocked=tuple(self.blocked),
            remarks=tally.remarks,
            broken=recording.broken if recording is not None and written else None,
            served=tuple(step for step in tally.served if not is_note(step)),
            llm_calls=tally.llm_calls,
            other_calls=asked - tally.llm_calls,
            tool_calls=own.tools,
            telemetry=tally.telemetry,
            tokens=tally.tokens if tally.tokens_known else None,
        )

    # ── what the redirect asks ───────────────────────────────────────────────────────────────────────────

    def adopts(self, thread: threading.Thread) -> bool:
        return self._options.adopt_threads or thread in self._threads_before

    def activate(self) -> "Token[Any]":
        self._threads_before.discard(threading.current_thread())  # what it does besides is not for the run
        return super().activate()

    @property
    def context(self) -> RunContext | None:
        return None if self._state is None else self._state.context

    def gateway_port(self) -> int | None:
        begun = self._state
        return begun.gateway.port if begun is not None and begun.gateway.alive else None

    def bypassed(self, host: str, port: int) -> OSError:
        self._tally.remark(host, "a connection from before the replay was closed when it was used")
        return ConnectionResetError(
            f"Rewind: this connection to {host} was opened before the replay and would bypass it: closed"
        )

    def unrecorded(self, host: str, why: str) -> None:
        self._tally.remark(host, why)


@cache
def _end_with_the_process() -> None:
    """Runs that are still open are ended while threads can still be joined."""
    atexit.register(_end_all)


def _end_all() -> None:
    for caller in redirect_callers.active_callers():
        if isinstance(caller, InProcessRun):
            with suppress(Exception):  # the process ends, whatever becomes of a recording
                caller.finish()


def _offline_text(url: str) -> str:
    return f"Rewind: {url} is not in the recording, and a replay stays offline"
