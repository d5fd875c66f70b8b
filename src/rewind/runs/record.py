"""Record: run a command behind the gateway and keep every exchange.

The order is chosen for a quick start: take the port, make the certificate, start the agent, and only then load the
gateway; connections wait in the port's backlog meanwhile.
"""

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from rewind.errors import CommandNotFound, DamagedStore, EnvironmentProblem, NewerStore, RewindError
from rewind.gateway.authority import Authority
from rewind.gateway.listener import listen, somebody_waits
from rewind.gateway.options import UpstreamOptions
from rewind.model.clock import SystemClock
from rewind.model.ids import SessionId
from rewind.model.session import SessionStart
from rewind.providers.hosts import LLM_HOSTS, HostRules, endpoints_from_environment, hosts_from_environment
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets, credential_variables
from rewind.runs.agent_environment import agent_environment
from rewind.runs.child import Child, check_command, stdin_kind
from rewind.runs.outputs import Outputs
from rewind.runs.tally import Tally
from rewind.runs.writer_thread import WriterThread
from rewind.store.files import prepare_home
from rewind.store.journal.writer import SessionWriter
from rewind.version import __version__

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
    announce: Callable[[str], None] | None = None
    """Told what a person should know before the agent starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordResult:
    """How a recording went."""

    session_id: str
    """Empty when nothing could be recorded."""
    exit_code: int
    llm_calls: int = 0
    other_calls: int = 0
    tokens: int | None = None
    seconds: float = 0.0
    redactions: int = 0
    remarks: tuple[str, ...] = ()
    broken: str | None = None


def record(options: RecordOptions) -> RecordResult:
    """Run the command and record it. The agent runs even when nothing can be kept."""
    environ = {**os.environ, **options.variables}
    check_command(options.command, environ)
    options.upstream.check(environ)
    hosts = (*options.hosts, *hosts_from_environment(environ))
    rules = HostRules((*LLM_HOSTS, *hosts), options.all_hosts)
    authority = Authority.create(rules)
    redactor = Redactor(Secrets.from_environment(environ))
    start = session_start(options, environ, hosts, redactor)
    with closing(listen(options.port)) as listener, ExitStack() as files:
        try:
            prepare_home(options.home)
            port = listener.getsockname()[1]
            variables = files.enter_context(
                agent_environment(
                    options.home, start.id, environ, port=port, authority=authority, rules=rules
                )
            )
            writer = SessionWriter.create(options.home, start, durable=options.durable)
        except (EnvironmentProblem, DamagedStore, NewerStore) as problem:
            return _run_unrecorded(options, environ, problem)
        writer_thread = WriterThread(writer)
        outputs = Outputs(writer_thread, redactor)
        tally = Tally()
        try:
            child = Child(options.command, variables, outputs.tee)
        except CommandNotFound:
            writer_thread.close()
            writer.abandon()
            raise
        if not child.ended_within(BRIEF_SECONDS) or somebody_waits(listener):
            _serve_until_it_ends(
                child, options, environ, listener, authority, rules, redactor, writer_thread, tally
            )
        code = child.wait()
    outputs.finish()
    ended = SystemClock().now()
    writer_thread.later(
        lambda: writer.end(ended=ended, exit_code=code, redactions=redactor.count, remarks=tally.remarks)
    )
    writer_thread.close()
    return RecordResult(
        session_id=start.id,
        exit_code=code,
        llm_calls=tally.llm_calls,
        other_calls=tally.other_calls,
        tokens=tally.tokens if tally.tokens_known else None,
        seconds=ended - start.started,
        redactions=redactor.count,
        remarks=tally.remarks,
        broken=writer.broken
        or (f"a bug in Rewind: {writer_thread.failure!r}" if writer_thread.failure is not None else None),
    )


def _serve_until_it_ends(
    child: Child,
    options: RecordOptions,
    environ: Mapping[str, str],
    listener: socket.socket,
    authority: Authority,
    rules: HostRules,
    redactor: Redactor,
    writer_thread: WriterThread,
    tally: Tally,
) -> None:
    # Loaded only now, while the agent is starting up itself; a command that ends at once never needs them.
    from rewind.gateway.dial import Dialer
    from rewind.playback.policies import RecordAll
    from rewind.runs.bypass_watch import BypassWatch
    from rewind.runs.gateway_thread import BackgroundGateway
    from rewind.runs.junction import Junction
    from rewind.runs.provenance import Provenance

    junction = Junction(
        policy=RecordAll(),
        rules=rules,
        redactor=redactor,
        clock=SystemClock(),
        online=True,
        writer_thread=writer_thread,
        ignore=options.ignore,
        tally=tally,
    )
    gateway = BackgroundGateway(listener, junction, authority, Dialer(options.upstream, environ))
    gateway.start()
    bypass_watch = BypassWatch(child.pid)
    provenance = Provenance(
        str(Path.cwd()),
        environ,
        redactor,
        lambda found: writer_thread.later(lambda: writer_thread.writer.surroundings(found)),
    )
    provenance.start()
    child.wait()
    gateway.stop()
    provenance.stop()
    for program, address in bypass_watch.stop():
        tally.remark(program, f"connected to {address} without passing through Rewind: not recorded")


def session_start(
    options: RecordOptions, environ: Mapping[str, str], hosts: tuple[str, ...], redactor: Redactor
) -> SessionStart:
    """The first line of the journal."""
    return SessionStart(
        id=SessionId(os.urandom(4).hex()),
        name=options.name,
        command=redactor.argv(options.command),
        cwd=str(Path.cwd()),
        started=SystemClock().now(),
        rewind_version=__version__,
        tags=options.tags,
        key_variables=credential_variables(environ),
        base_urls={
            name: redactor.text(value)
            for name, value in environ.items()
            if endpoints_from_environment({name: value})
        },
        hosts=hosts,
        all_hosts=options.all_hosts,
        ignore=options.ignore,
        stdin_kind=stdin_kind(),
    )


def _run_unrecorded(options: RecordOptions, environ: dict[str, str], problem: RewindError) -> RecordResult:
    """The store cannot be used; the agent must not suffer for it."""
    if options.announce is not None:
        options.announce(f"Not recording: {problem.message}")
    code = Child(options.command, environ, lambda _name, _data: None).wait()
    return RecordResult(session_id="", exit_code=code, broken=problem.message)
