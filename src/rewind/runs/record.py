"""Record: run a command behind the gateway and keep every exchange."""

import os
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import field, replace
from pathlib import Path

from rewind.dataclass import dataclass
from rewind.errors import DamagedStore, EnvironmentProblem, NewerStore, RewindError
from rewind.gateway.listener import has_waiting_client, listen
from rewind.gateway.options import UpstreamOptions
from rewind.model.clock import Clock, SystemClock
from rewind.pricing.spending import PricesOnDemand, Pricing, Spending
from rewind.providers.entry_points import any_declared
from rewind.providers.hosts import hosts_from_environment
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets
from rewind.runs.child import AgentCommand, Child, check_command, stdin_kind
from rewind.runs.harness import SessionRecording, behind_gateway, session_start
from rewind.runs.tally import Tally
from rewind.store.files import prepare_home

BRIEF_SECONDS = 0.015
"""Shorter than any agent takes to make its first call, long enough for a command that only prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """What to run, and how."""

    command: tuple[str, ...]
    home: Path
    name: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    """Recorded besides the known ones."""
    all_hosts: bool = False
    port: int = 0
    durable: bool = False
    upstream: UpstreamOptions = UpstreamOptions()
    ignore: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    """For the agent's environment, besides our own."""
    prices: Callable[[], Pricing] | None = None
    """Asked for when the first call is priced; without it, the result tells no cost."""
    announce: Callable[[str], None] | None = None
    """Told what a person should know before the agent starts."""
    clock: Clock = field(default_factory=SystemClock)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordResult:
    """How a recording went."""

    session_id: str
    """Empty when nothing could be recorded, or nothing of it is there any more."""
    exit_code: int
    llm_calls: int = 0
    """That were written down, as all these counts."""
    other_calls: int = 0
    telemetry: int = 0
    """Uploads that are no part of the run."""
    lost_calls: int = 0
    """That were seen, and could not be written."""
    tokens: int | None = None
    spent: Spending | None = None
    """``None`` where nobody asked for it, or not all of the calls were written."""
    seconds: float = 0.0
    redactions: int = 0
    remarks: tuple[str, ...] = ()
    broken: str | None = None


def record(options: RecordOptions) -> RecordResult:
    """Run the command and record it. The agent runs even when nothing can be kept."""
    environ = {**os.environ, **options.variables}
    check_command(options.command, environ)
    options.upstream.check(environ)
    redactor = Redactor(Secrets.from_environment(environ))
    start = replace(
        session_start(options.command, environ, options.clock),
        name=options.name,
        tags=options.tags,
        hosts=(*options.hosts, *hosts_from_environment(environ), *_outside_hosts()),
        all_hosts=options.all_hosts,
        ignore=options.ignore,
        stdin_kind=stdin_kind(),
    )
    agent = AgentCommand(command=options.command, environ=environ)
    tally = Tally()

    def begin() -> SessionRecording:
        pricing = None if options.prices is None else PricesOnDemand(options.prices)
        return SessionRecording(options.home, start, redactor, options.clock, durable=options.durable, pricing=pricing)

    with closing(listen(options.port)) as listener, ExitStack() as stack:
        try:
            prepare_home(options.home)
            run = stack.enter_context(behind_gateway(agent, start, options.home, listener, begin))
        except (EnvironmentProblem, DamagedStore, NewerStore) as problem:
            return _run_unrecorded(options, agent, problem)
        recording = run.recording
        assert recording is not None, "it has begun"
        if not run.child.ended_within(BRIEF_SECONDS) or has_waiting_client(listener):
            # Loaded only now, while the agent is starting up itself.
            from rewind.runs.gateway_thread import serving_recorded

            with serving_recorded(
                run,
                recording,
                redactor=redactor,
                clock=options.clock,
                ignore=options.ignore,
                tally=tally,
                way=options.upstream,
            ):
                code = run.child.wait()
        else:
            code = run.child.wait()
        ended = recording.end(code, tally)
    lost = len(recording.writer.lost)
    written, told = recording.writer.totals, (recording.writer.totals.tokens_in, recording.writer.totals.tokens_out)
    return RecordResult(
        session_id=start.id if recording.is_there else "",
        exit_code=code,
        # Where the disk was full, the last calls stand in short lines alone, which the totals do not count.
        llm_calls=max(written.llm_calls, tally.llm_calls - lost),
        other_calls=written.steps - written.llm_calls,
        telemetry=written.telemetry,
        lost_calls=lost,
        tokens=None if told == (None, None) else sum(filter(None, told)),
        spent=(
            Spending(usd=written.cost, unpriced=written.unpriced)
            if options.prices is not None and not lost and recording.broken is None
            else None
        ),
        seconds=ended - start.started,
        redactions=redactor.count,
        remarks=tally.remarks,
        broken=recording.broken,
    )


def _outside_hosts() -> tuple[str, ...]:
    """Hosts that APIs of other distributions name."""
    if not any_declared():
        return ()
    # Loaded only here: hardly anybody has such a distribution, and everybody wants a quick start.
    from rewind.providers.outside import outside_hosts

    return outside_hosts()


def _run_unrecorded(options: RecordOptions, agent: AgentCommand, problem: RewindError) -> RecordResult:
    """The store cannot be used; the agent must not suffer for it."""
    if options.announce is not None:
        options.announce(f"Not recording: {problem.message}")
    child = Child(agent, lambda _name, _data: None)
    code = child.wait()
    child.release()
    return RecordResult(session_id="", exit_code=code, broken=problem.message)
