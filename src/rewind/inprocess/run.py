"""A run of this very process: recorded or replayed behind the process's own gateway, without a child.

    run = InProcessRun(InProcessOptions(home=…, mode="record"))
    run.start()                      # from here on the run exists; it concerns nobody yet
    token = run.activate()           # this context, and whatever it starts, belongs to the run
    …
    run.deactivate(token)
    result = run.finish(exit_code=0)

Whose a connection is, is told in :mod:`rewind.inprocess.redirect.callers`; where it may go, in
:mod:`rewind.inprocess.redirect.rules`. In a replay a recorded host is answered by the gateway (a miss is a 424 in the
provider's own shape), and every other connection that would leave this machine raises :class:`Offline`. What the
agent's own code does (``tool``, ``note``) travels the same road.

All methods may be called from any thread. ``start`` and ``finish`` block for a few milliseconds, ``finish`` for up to
1.2 s where answers are still coming.
"""

import atexit
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import Token
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakSet

from rewind.errors import ReplayMiss
from rewind.gateway.client import RunContext
from rewind.gateway.dial import Dialer
from rewind.gateway.upstream import Pool
from rewind.inprocess.child_environment import ChildEnvironment, hook_variables
from rewind.inprocess.options import InProcessOptions, InProcessResult
from rewind.inprocess.presence import Guard, Offline, Presence
from rewind.inprocess.reach import Reach, reach_of
from rewind.inprocess.redirect import callers as redirect_callers
from rewind.inprocess.redirect import install as redirect
from rewind.inprocess.shared_gateway import SharedGateway, shared_gateway
from rewind.inprocess.tool_calls import PlayedTool, ToolCallPolicy, ToolCalls, ToolUnderWay, within_tools
from rewind.inprocess.unseen_clients import UnseenConnections
from rewind.model.clock import SystemClock
from rewind.model.session import Recording, SessionStart
from rewind.model.step import Step, StepKind
from rewind.playback.decision import Policy
from rewind.playback.policies import RecordAll, Replay
from rewind.playback.tape import Tape
from rewind.providers.hosts import HostRules
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets
from rewind.runs.junction import Junction
from rewind.runs.provenance import Provenance
from rewind.runs.record import RecordOptions, session_start
from rewind.runs.rerun import DUMMY_KEY, answers, begun_again, recall
from rewind.runs.tally import Tally
from rewind.runs.writer_thread import WriterThread
from rewind.store.journal.reader import SessionReader
from rewind.store.journal.writer import SessionWriter

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
    """The run that the code running now belongs to, by the rules of ``redirect_callers``; ``None`` where there is none
    (a guard is no run, and neither is one that is over)."""
    found = redirect_callers.whose()
    return found if isinstance(found, InProcessRun) and not found.over else None


class InProcessRun(Presence):
    """One run of this process, from ``start`` to ``finish``."""

    def __init__(self, options: InProcessOptions) -> None:
        super().__init__(options.offline_error or _offline_text)
        self._before: WeakSet[threading.Thread] = WeakSet()
        """Threads that were there when it began, and do not work for it by themselves."""
        self._ending = threading.RLock()
        self._options = options
        self._replays = options.mode == "replay"
        self._tally = Tally()
        self._steps: list[Step] = []
        self._writer: SessionWriter | None = None
        self._writer_thread: WriterThread | None = None
        self._provenance: Provenance | None = None
        self._tape: Tape | None = None
        self._pool: Pool | None = None
        self._redactor: Redactor | None = None
        self._gateway: SharedGateway | None = None
        self._context: RunContext | None = None
        self._tool_calls: ToolCalls | None = None
        self._result: InProcessResult | None = None
        self._for_children: ChildEnvironment | None = None
        self._unseen: UnseenConnections | None = None
        self.session_id: str | None = None
        """Of the session that is being written; ``None`` when none is."""

    # ── beginning ────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Begin. Raises RewindError (a store that cannot be written, a tape that cannot be read) and then has changed
        nothing; a recorder should go on without it."""
        options = self._options
        assert not self._replays or options.tape is not None, "a replay has a tape"
        environ = dict(os.environ)
        online = not self._replays or options.on_miss == "live"
        if online or options.allowed_hosts:
            options.upstream.check(environ)
            self._pool = Pool(Dialer(options.upstream, environ))
        self._redactor = redactor = Redactor(Secrets.from_environment(environ))
        recording = options.tape.recording() if self._replays and options.tape is not None else None
        reach = reach_of(options, environ, recording)
        self.rules = reach.rules
        gateway = shared_gateway()
        if recording is not None and options.tape is not None:
            junction = self._replaying(redactor, reach.recorded, options.tape, recording, online=online)
        else:
            junction = self._recording(redactor, reach, environ)
        self._gateway = gateway
        self._context = gateway.run_context(junction, self._pool)
        self._tool_calls = ToolCalls(gateway, junction)
        redirect.close_what_rests(self.rules, gateway.port)
        if self.rules.offline:
            self._unseen = UnseenConnections()
            self._before = WeakSet(threading.enumerate())
            self._before.discard(threading.current_thread())
        _end_with_the_process()
        redirect_callers.join(self)

    def _recording(self, redactor: Redactor, reach: Reach, environ: Mapping[str, str]) -> Junction:
        options = self._options
        asked = RecordOptions(
            command=tuple(sys.orig_argv),
            home=options.home,
            name=options.name,
            tags=options.tags,
            all_hosts=options.all_hosts,
            ignore=options.ignore,
        )
        start = session_start(asked, environ, reach.hosts, redactor)
        writer_thread = self._write(replace(start, stdin_kind="none"))
        self._provenance = Provenance(
            str(Path.cwd()),
            environ,
            redactor,
            lambda found: writer_thread.later(lambda: writer_thread.writer.surroundings(found)),
        )
        with redirect_callers.ourselves():
            self._provenance.start()
        return self._junction(RecordAll(), redactor, reach.recorded, online=True)

    def _replaying(
        self,
        redactor: Redactor,
        rules: HostRules,
        reader: SessionReader,
        recording: Recording,
        *,
        online: bool,
    ) -> Junction:
        options = self._options
        redactor.secrets.add(DUMMY_KEY)
        start = recording.session.start
        call_of = recall(reader, options.ignore)
        other_rules = start.ignore != options.ignore
        self._tape = tape = Tape(recording.steps, (lambda step: call_of(step).key) if other_rules else None)
        policy = Replay(tape, call_of, session=start.id, allow_drift=options.allow_drift, on_miss_live=online)
        if options.keep:
            again = begun_again(start, tuple(sys.orig_argv), redactor, here=True, ignore=options.ignore)
            self._write(
                replace(
                    again,
                    replay_of=start.id,
                    name=options.name or start.name,
                    tags={**start.tags, **options.tags},
                    imported=False,
                    stdin_kind="none",
                )
            )
        return self._junction(
            ToolCallPolicy(policy, tape, live_tools=options.tools == "live"),
            redactor,
            rules,
            online=online,
            reader=reader,
        )

    def _junction(
        self,
        policy: Policy,
        redactor: Redactor,
        rules: HostRules,
        *,
        online: bool,
        reader: SessionReader | None = None,
    ) -> Junction:
        return Junction(
            policy=policy,
            rules=rules,
            redactor=redactor,
            clock=SystemClock(),
            online=online,
            writer_thread=self._writer_thread,
            answer_of=None if reader is None else answers(reader),
            recall=None if reader is None else recall(reader, self._options.ignore),
            watch=self._steps.append,
            live_hosts=self.rules.allowed,
            ignore=self._options.ignore,
            tally=self._tally,
        )

    def _write(self, start: SessionStart) -> WriterThread:
        self._writer = SessionWriter.create(self._options.home, start)
        with redirect_callers.ourselves():
            self._writer_thread = WriterThread(self._writer)
        self.session_id = start.id
        return self._writer_thread

    # ── what the agent's own code does ───────────────────────────────────────────────────────────────────

    def tool(self, name: str, body: bytes) -> PlayedTool | ToolUnderWay:
        """A tool is called; ``body`` is the JSON ``{"arguments": …}``.

        Either the recording answers, or the tool is to be run and its answer told by ``ToolUnderWay.ended(status,
        body)``: 200 with ``{"result": …}``, or 500 with ``{"error": "…"}``. Raises ReplayMiss, which says what was
        nearest. The miss is in the run's result, too.
        """
        assert self._tool_calls is not None, "the run has begun"
        return self._tool_calls.tool(name, body)

    def note(self, text: str, fields: Mapping[str, Any] | None = None, *, error: bool = False) -> None:
        """A step of kind ``note``, or ``error``. In a replay it need not be on tape."""
        assert self._tool_calls is not None, "the run has begun"
        self._tool_calls.note(text, fields or {}, error=error)

    def steps_so_far(self) -> tuple[Step, ...]:
        """What was asked and answered so far: from the tape as recorded, live as it was kept."""
        return tuple(sorted((*self._tally.served, *self._steps), key=lambda step: step.request.ts))

    def child_environment(self, *, hooks_only: bool = True) -> dict[str, str]:
        """Variables for a child process, to be laid over this one's: they bring Python and Node to this run, which is
        the default or the only one there. They do nothing in this process, so they may stand in ``os.environ``.

        All of them, not ``hooks_only``, bring other programs, too: proxies and certificates. The files that they name
        are there until ``finish``.
        """
        assert self._gateway is not None, "the run has begun"
        if self._for_children is None:
            self._for_children = ChildEnvironment(self._gateway, self.rules)
        variables = self._for_children.variables(dict(os.environ))
        return hook_variables(variables) if hooks_only else dict(variables)

    # ── ending ───────────────────────────────────────────────────────────────────────────────────────────

    def finish(self, exit_code: int = 0) -> InProcessResult:
        """Let what is under way settle, and end. Afterwards the run concerns nobody.

        Where the last reference to a run is dropped on the gateway's own thread, which cannot wait for itself, the run
        ends a moment later, in a thread of its own; the result is as things stand.
        """
        gateway, context = self._gateway, self._context
        assert gateway is not None and context is not None, "the run has begun"
        self.over = True  # first: what is asked from now on is no part of it
        redirect_callers.leave(self)
        if self._result is None and gateway.is_this_thread:
            with redirect_callers.ourselves():
                threading.Thread(target=self.finish, args=(exit_code,), name="rewind-ending").start()
            return self.progress()
        with self._ending:
            if self._result is None:
                gateway.settle(context)
                for address in () if self._unseen is None else self._unseen.since():
                    self.unrecorded(address, "was connected to past Python's sockets: this was not offline")
                # In a forked child it ends only for that child: files, and what else there is, are its parent's.
                self._result = self._how_it_went(self._close(exit_code) if gateway.is_here else None)
            return self._result

    def progress(self) -> InProcessResult:
        """How the run stands now: what was played, missed and asked live, what is left on the tape, whether recording
        broke. Steps that the tape answered may not be on disk yet; see ``flush``."""
        return self._result or self._how_it_went(self._broken)

    def flush(self) -> None:
        """Wait until all that was asked and answered so far is on disk."""
        writer_thread = self._writer_thread
        if writer_thread is not None and not self.over:
            done = threading.Event()
            writer_thread.ask(lambda: None, lambda _nothing: done.set())
            done.wait()

    def _how_it_went(self, broken: str | None) -> InProcessResult:
        own, tally = self._tool_calls, self._tally
        assert own is not None, "the run has begun"
        tape = () if self._tape is None else _askable(self._tape, tally.served)
        unused = tuple(step for step in tape if self._tape is not None and not self._tape.played(step.index))
        asked = tally.llm_calls + tally.other_calls - own.tools - own.notes
        return InProcessResult(
            session_id=self.session_id,
            folder=None if self._writer is None else self._writer.folder,
            played=len(tape) - len(unused),
            tape=tuple(tape),
            unused=unused,
            drifted=tally.drifted,
            live=tally.live - own.ran if self._replays else asked,
            misses=tuple(tally.misses),
            blocked=tuple(self.blocked),
            remarks=tally.remarks,
            broken=broken,
            served=tuple(step for step in tally.served if not _is_note(step)),
            llm_calls=tally.llm_calls,
            other_calls=asked - tally.llm_calls,
            tool_calls=own.tools,
            tokens=tally.tokens if tally.tokens_known else None,
        )

    def _close(self, exit_code: int) -> str | None:
        """Let go of what it has; why the session is not complete."""
        if self._provenance is not None:
            self._provenance.stop()
        if self._for_children is not None:
            self._for_children.close()
        writer, writer_thread, redactor = self._writer, self._writer_thread, self._redactor
        if writer is None or writer_thread is None or redactor is None:
            return None
        ended = SystemClock().now()
        writer_thread.later(
            lambda: writer.end(
                ended=ended, exit_code=exit_code, redactions=redactor.count, remarks=self._tally.remarks
            )
        )
        writer_thread.close()
        return self._broken

    @property
    def _broken(self) -> str | None:
        """Why the session is not complete."""
        if self._writer is None or self._writer_thread is None:
            return None
        failure = self._writer_thread.failure
        return self._writer.broken or (f"a bug in Rewind: {failure!r}" if failure is not None else None)

    # ── what the seams ask ───────────────────────────────────────────────────────────────────────────────

    def adopts(self, thread: threading.Thread) -> bool:
        return self._options.adopt_threads or thread in self._before

    def activate(self) -> "Token[Any]":
        self._before.discard(threading.current_thread())  # what it does besides is not for the run
        return super().activate()

    @property
    def context(self) -> RunContext | None:
        return self._context

    def gateway_port(self) -> int | None:
        return self._gateway.port if self._gateway is not None and self._gateway.alive else None

    def bypassed(self, host: str, port: int) -> OSError:
        self._tally.remark(host, "a connection from before the replay was closed when it was used")
        return ConnectionResetError(
            f"Rewind: this connection to {host} was opened before the replay, and does not lead to it: closed"
        )

    def unrecorded(self, host: str, why: str) -> None:
        self._tally.remark(host, why)


@cache
def _end_with_the_process() -> None:
    """Runs that nobody has ended by then are ended while there still are threads to end them with."""
    atexit.register(_end_all)


def _end_all() -> None:
    for caller in redirect_callers.present():
        if isinstance(caller, InProcessRun):
            with suppress(Exception):  # the process ends, whatever becomes of a recording
                caller.finish()


def _offline_text(url: str) -> str:
    return f"Rewind: {url} is not in the recording, and a replay stays offline"


def _is_note(step: Step) -> bool:
    return step.request.kind in (StepKind.NOTE, StepKind.ERROR)


def _askable(tape: Tape, served: Sequence[Step]) -> list[Step]:
    """The steps that this run could have asked for: not what a tool had asked for that was played and did not run."""
    hidden = within_tools(tape.steps(), served)
    return [
        step
        for step in tape.steps()
        if not _is_note(step) and (tape.played(step.index) or step.index not in hidden)
    ]
