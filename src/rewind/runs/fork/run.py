"""Fork: run a recorded command again, answered by its recording up to one step, and live from there on.

What the run becomes is a session of its own, which says where it comes from; it replays like any other.
"""

import os
import threading
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import replace

from rewind.errors import CommandNotFound, EnvironmentProblem
from rewind.gateway.authority import Authority
from rewind.gateway.dial import Dialer
from rewind.gateway.listener import listen
from rewind.model.clock import SystemClock
from rewind.model.http import HttpRequest
from rewind.model.ids import SessionId
from rewind.model.session import SessionStart
from rewind.model.step import Step
from rewind.playback.fork_policy import ForkAt
from rewind.playback.tape import Tape
from rewind.providers.hosts import LLM_HOSTS, HostRules, endpoints_from_environment, hosts_from_environment
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets, credential_variables
from rewind.runs.agent_environment import agent_environment
from rewind.runs.bypass_watch import BypassWatch
from rewind.runs.child import Child, check_command
from rewind.runs.fork.edits import ForkEdits
from rewind.runs.fork.plan import ForkOptions, ForkPlan, plan_fork, planned
from rewind.runs.fork.result import ForkResult, best_answer, spent_on, why_unasked
from rewind.runs.gateway_thread import BackgroundGateway
from rewind.runs.imported_command import begun_here, command_to_run, ignored_endpoints, remembered_endpoints
from rewind.runs.junction import Junction
from rewind.runs.provenance import Provenance
from rewind.runs.rerun import DUMMY_KEY, SessionRecording, answers, begun_again, folder_of, recall, warm_up
from rewind.store.journal.reader import SessionReader
from rewind.store.library import Library
from rewind.store.replays import note_replay

__all__ = ["ForkOptions", "ForkPlan", "ForkResult", "fork", "plan_fork"]

GRACE_SECONDS = 3.0
"""Between asking an agent to end and making it."""


def fork(options: ForkOptions) -> ForkResult:
    """Run the command again, and go live at the step."""
    session, start = options.session, options.session.start
    command = command_to_run(session, options.command, f"fork {session.ref}:{options.step}")
    environ = {**remembered_endpoints(session, live=True), **os.environ}
    cwd = None if options.command else folder_of(start, f"fork {start.id}:{options.step}")
    check_command(command, environ, cwd)
    options.upstream.check(os.environ)
    with Library(options.home).open(options.session) as reader:
        plan = planned(options, reader)
        if options.budget is not None:
            options.budget.check_models(plan.models())
        run = _Run(options, plan, reader, environ)
        return run.through(command, cwd)


class _Run:
    """One run, from the first line of its session to the last."""

    def __init__(
        self, options: ForkOptions, plan: ForkPlan, reader: SessionReader, environ: Mapping[str, str]
    ) -> None:
        self._options = options
        self._plan = plan
        self._reader = reader
        self._editing = ForkEdits(
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
        call_of = recall(reader, options.ignore)
        other_rules = plan.recording.session.start.ignore != options.ignore
        self._tape = Tape(
            plan.recording.steps,
            (lambda step: call_of(step).key) if other_rules else None,
            unanswered_from=plan.step.index,
        )
        self._policy = ForkAt(
            self._tape,
            call_of,
            self._editing,
            session=options.session.ref,
            at=plan.step.index,
            on_miss_live=options.on_miss == "live",
            allow_drift=options.allow_drift,
        )
        self._call_of = call_of
        self._enough = threading.Event()
        self._told: list[Step] = []

    def through(self, command: tuple[str, ...], cwd: str | None) -> ForkResult:
        options, redactor = self._options, self._redactor
        stdin = self._reader.output("stdin")
        if stdin is None and options.quiet:
            stdin = b""
        for sentence in self._warnings():
            options.announce(sentence)
        start = self._start(command)
        rules = HostRules((*LLM_HOSTS, *start.hosts), start.all_hosts)
        authority = Authority.create(rules)
        with closing(listen(options.port)) as listener, ExitStack() as files:
            kept = SessionRecording(options.home, start, redactor, stdin=stdin)
            try:
                variables = files.enter_context(
                    agent_environment(
                        options.home,
                        start.id,
                        self._environ,
                        port=listener.getsockname()[1],
                        authority=authority,
                        rules=rules,
                    )
                )
                child = Child(
                    command,
                    variables,
                    kept.outputs.tee,
                    stdin=stdin,
                    cwd=cwd,
                    shown=not options.quiet,
                    own_group=options.stop_after,
                )
            except (CommandNotFound, EnvironmentProblem):
                kept.abandon()
                raise
            threading.Thread(target=self._end_it, args=(child,), daemon=True).start()
            warm_up(self._reader, self._tape, listener)
            junction = self._junction(kept, rules)
            gateway = BackgroundGateway(listener, junction, authority, Dialer(options.upstream, os.environ))
            gateway.start()
            bypass_watch = BypassWatch(child.pid)
            provenance = Provenance(
                start.cwd,
                self._environ,
                redactor,
                lambda found: kept.writer_thread.later(lambda: kept.writer.surroundings(found)),
            )
            provenance.start()
            code = child.wait()
            ended_by_us = self._enough.is_set()
            self._enough.set()
            gateway.stop()
            provenance.stop()
        for program, address in bypass_watch.stop():
            junction.remark(program, f"connected to {address} without passing through Rewind: not recorded")
        stopped = self._policy.over if ended_by_us else junction.tally.halted
        if stopped is not None:
            junction.remark("this run", f"was stopped: {stopped}")
        kept.end(code, junction.tally.remarks)
        return self._result(kept, junction, start, code, stopped)

    def _start(self, command: tuple[str, ...]) -> SessionStart:
        """The first line of the new session."""
        options, environ, redactor = self._options, self._environ, self._redactor
        before = begun_here(options.session)
        again = begun_again(
            before, command, redactor, here=options.command is not None, ignore=options.ignore
        )
        named = {name: redactor.text(value) for name, value in environ.items() if _is_base_url(name, value)}
        lineage = self._plan.lineage
        return replace(
            again,
            name=options.name,
            key_variables=tuple(sorted({*before.key_variables, *credential_variables(environ)})),
            base_urls={**before.base_urls, **named},
            hosts=tuple(dict.fromkeys((*before.hosts, *hosts_from_environment(environ)))),
            forked_from=replace(lineage, edits=tuple(map(redactor.text, lineage.edits))),
        )

    def _junction(self, kept: SessionRecording, rules: HostRules) -> Junction:
        return Junction(
            policy=self._policy,
            rules=rules,
            redactor=self._redactor,
            clock=SystemClock(),
            online=True,
            writer_thread=kept.writer_thread,
            answer_of=answers(self._reader),
            recall=self._call_of,
            watch=self._watch,
            ignore=self._options.ignore,
        )

    def _dummies(self) -> dict[str, str]:
        """Keys for an agent that would not start without; where calls go live, a wrong key is worse than none."""
        start = begun_here(self._options.session)
        nobody_is_asked = self._options.stop_after and self._editing.substitutes
        return dict.fromkeys(start.key_variables, DUMMY_KEY) if nobody_is_asked else {}

    def _warnings(self) -> list[str]:
        start = begun_here(self._options.session)
        missing = [name for name in start.key_variables if name not in self._environ]
        sentences = []
        if missing:
            are = "is" if len(missing) == 1 else "are"
            sentences.append(
                f"{', '.join(missing)} {are} not set here, but {'was' if are == 'is' else 'were'} when the session "
                "was recorded: live calls may be turned away."
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
        self._told.append(step)
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

    def _result(
        self, kept: SessionRecording, junction: Junction, start: SessionStart, code: int, stopped: str | None
    ) -> ForkResult:
        tally = junction.tally
        note_replay(
            self._options.home,
            ts=SystemClock().now(),
            session=SessionId(self._plan.session),
            steps=(step.index for step in tally.served),
        )
        assert start.forked_from is not None, "a fork knows where it comes from"
        live = tuple(step for step in self._told if step.response is not None and step.response.tape is None)
        return ForkResult(
            session_id=kept.id,
            lineage=start.forked_from,
            reused=tuple(tally.served),
            drifted=tuple(self._policy.drifted),
            live=live,
            answer=best_answer([step for step in self._told if step.index in self._policy.askings]),
            exit_code=code,
            misses=tuple(tally.misses),
            unasked=None if stopped is not None else why_unasked(self._policy, self._plan.step),
            stopped=stopped,
            spent=spent_on(live, self._options.pricing),
            tokens=tally.tokens if tally.tokens_known else None,
            seconds=SystemClock().now() - start.started,
            remarks=tally.remarks,
            broken=kept.broken,
        )


def _is_base_url(name: str, value: str) -> bool:
    return bool(endpoints_from_environment({name: value}))
