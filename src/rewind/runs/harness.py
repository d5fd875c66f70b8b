"""What all runs share: a run's way into the store, and an agent behind a gateway.

``SessionRecording`` writes a run down as a session. ``behind_gateway`` runs a command whose clients are brought to a
gateway. Its order is chosen for a quick start: the port is taken, the certificate made, the first line of the journal
written, the agent started, and only then the gateway loaded; connections wait in the port's backlog meanwhile.
"""

import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rewind.errors import CommandNotFound, EnvironmentProblem
from rewind.gateway.authority import Authority
from rewind.gateway.environment import prepare
from rewind.model.clock import Clock
from rewind.model.ids import SessionId
from rewind.model.session import SessionStart
from rewind.model.surroundings import Surroundings
from rewind.providers.hosts import LLM_HOSTS, HostRules, endpoints_from_environment
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import credential_variables
from rewind.redaction.stream_redactor import StreamRedactor
from rewind.runs.child import Child, Tee
from rewind.runs.tally import Tally
from rewind.runs.writer_thread import WriterThread
from rewind.store.journal.writer import SessionWriter, Stream
from rewind.version import __version__

if TYPE_CHECKING:  # loaded only once the agent runs
    from rewind.gateway.dial import Dialer
    from rewind.runs.gateway_thread import AgentGateway
    from rewind.runs.junction import Junction

PRINTED: tuple[Stream, ...] = ("stdout", "stderr")


# ── into the store ───────────────────────────────────────────────────────────────────────────────────────────


def session_start(
    command: tuple[str, ...],
    environ: Mapping[str, str],
    redactor: Redactor,
    *,
    clock: Clock,
    name: str | None,
    tags: dict[str, str],
    hosts: tuple[str, ...],
    all_hosts: bool,
    ignore: tuple[str, ...],
    stdin_kind: str,
) -> SessionStart:
    """The first line of the journal of a session that is recorded here."""
    return SessionStart(
        id=SessionId(os.urandom(4).hex()),
        name=name,
        command=redactor.argv(command),
        cwd=str(Path.cwd()),
        started=clock.now(),
        rewind_version=__version__,
        tags=tags,
        key_variables=credential_variables(environ),
        base_urls=base_urls(environ, redactor),
        hosts=hosts,
        all_hosts=all_hosts,
        ignore=ignore,
        stdin_kind=stdin_kind,
    )


def base_urls(environ: Mapping[str, str], redactor: Redactor) -> dict[str, str]:
    """The variables that name a model's address, as they may be kept."""
    return {
        name: redactor.text(value)
        for name, value in environ.items()
        if endpoints_from_environment({name: value})
    }


class Outputs:
    """The agent's standard streams on their way to the store, redacted like everything else.

    Called from the threads that pump them.
    """

    def __init__(
        self, writer_thread: WriterThread, redactor: Redactor, printed: tuple[Stream, ...] = PRINTED
    ) -> None:
        """``printed`` streams are there, even if nothing is printed."""
        self._writer_thread = writer_thread
        self._redactor = redactor
        self._streams: dict[Stream, StreamRedactor] = {}
        self._lock = threading.Lock()
        for name in printed:
            writer_thread.later(partial(writer_thread.writer.output, name, b""))

    def tee(self, name: Stream, data: bytes) -> None:
        with self._lock:
            stream = self._streams.get(name)
            if stream is None:
                stream = self._streams[name] = self._redactor.output()
            self._write(name, stream.feed(data))

    def finish(self) -> None:
        """Write what was held back in case a secret was beginning."""
        with self._lock:
            for name, stream in self._streams.items():
                self._write(name, stream.finish())
            self._streams.clear()

    def _write(self, name: Stream, data: bytes) -> None:
        if data:
            self._writer_thread.later(lambda: self._writer_thread.writer.output(name, data))


class SessionRecording:
    """A run that becomes a session: what the tape answered and what went live, and what was printed."""

    def __init__(
        self,
        home: Path,
        start: SessionStart,
        redactor: Redactor,
        clock: Clock,
        *,
        durable: bool = False,
        printed: tuple[Stream, ...] = PRINTED,
        stdin: bytes | None = None,
    ) -> None:
        """``stdin`` is what the agent is given to read, where that was recorded. Raises EnvironmentProblem."""
        self.start = start
        self._redactor = redactor
        self._clock = clock
        self.writer = SessionWriter.create(home, start, durable=durable)
        self.writer_thread = WriterThread(self.writer)
        self.outputs = Outputs(self.writer_thread, redactor, printed)
        if stdin is not None:
            self.outputs.tee("stdin", stdin)

    def surroundings(self, surroundings: Surroundings) -> None:
        """What the run stands on, once it is known."""
        self.writer_thread.later(lambda: self.writer.surroundings(surroundings))

    def flush(self) -> None:
        """Wait until all that was told so far is on disk."""
        done = threading.Event()
        self.writer_thread.ask(lambda: None, lambda _nothing: done.set())
        done.wait()

    def end(self, exit_code: int, tally: Tally) -> float:
        """Write what is left, and the last line; the moment at which it ended."""
        self.outputs.finish()
        ended = self._clock.now()
        # What is still to be written may be redacted, and remarked on: both are counted then, not now.
        self.writer_thread.later(
            lambda: self.writer.end(
                ended=ended, exit_code=exit_code, redactions=self._redactor.count, remarks=tally.remarks
            )
        )
        self.writer_thread.close()
        return ended

    def abandon(self) -> None:
        """The command could not be started: nothing of it stays."""
        self.writer_thread.close()
        self.writer.abandon()

    @property
    def broken(self) -> str | None:
        """Why the session is not complete."""
        failure = self.writer_thread.failure
        return self.writer.broken or (f"a bug in Rewind: {failure!r}" if failure is not None else None)


# ── an agent behind a gateway ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCommand:
    """What is run, and how; see ``Child``."""

    command: tuple[str, ...]
    environ: Mapping[str, str]
    cwd: str | None = None
    stdin: bytes | None = None
    shown: bool = True
    own_group: bool = False


class AgentRun:
    """An agent that has been started, and the gateway that its clients come to."""

    def __init__(
        self,
        agent: AgentCommand,
        child: Child,
        recording: SessionRecording | None,
        listener: socket.socket,
        authority: Authority,
        *,
        offline: bool,
    ) -> None:
        self._agent = agent
        self._authority = authority
        self._offline = offline
        self._gateway: AgentGateway | None = None
        self.child = child
        self.recording = recording
        self.listener = listener
        self.bypasses: list[tuple[str, str]] = []
        """Program and address of each connection that went around the gateway, once the run is over."""

    def serve(
        self, junction: "Junction", dialer: "Dialer | None", *, provenance: SessionRecording | None = None
    ) -> None:
        """Answer its requests from now on. ``provenance`` is told what the run stands on: git, lock files.

        Connections that go around the gateway are remarked on at the junction.
        """
        # Loaded while the agent is starting up itself; a command that ends at once never needs it.
        from rewind.runs.gateway_thread import AgentGateway

        self._remark = junction.remark
        self._gateway = AgentGateway(self.listener, junction, self._authority, dialer, self.child.pid)
        if provenance is not None:
            self._gateway.look_around(
                provenance.start.cwd, self._agent.environ, junction.redactor, provenance.surroundings
            )

    def stop(self) -> None:
        """Let what is under way settle, then end."""
        if self._gateway is None:
            return
        self.bypasses = self._gateway.stop()
        how = "directly: this run was not offline"
        if not self._offline:
            how = "without passing through Rewind: not recorded"
        for program, address in self.bypasses:
            self._remark(program, f"connected to {address} {how}")


@contextmanager
def behind_gateway(
    agent: AgentCommand,
    start: SessionStart,
    home: Path,
    listener: socket.socket,
    begin: Callable[[], SessionRecording | None],
    *,
    tee: Tee | None = None,
    offline: bool = False,
    live_hosts: tuple[str, ...] = (),
) -> Iterator[AgentRun]:
    """Start the command; what it asks of the hosts of ``start`` comes to the listener, and waits there for ``serve``.

    ``begin`` writes the first line of the journal, where the run becomes a session; if the agent then cannot be
    started, nothing of it stays. ``tee`` is told of the agent's standard streams, too. Raises EnvironmentProblem,
    CommandNotFound.
    """
    rules = host_rules(start)
    authority = Authority.create(rules)
    port = listener.getsockname()[1]
    with agent_environment(
        home,
        start.id,
        agent.environ,
        port=port,
        authority=authority,
        rules=rules,
        offline=offline,
        live_hosts=live_hosts,
    ) as variables:
        recording = begin()
        tees = [*([] if tee is None else [tee]), *([] if recording is None else [recording.outputs.tee])]

        def tell(name: Stream, data: bytes) -> None:
            for tee_stream in tees:
                tee_stream(name, data)

        try:
            child = Child(
                agent.command,
                variables,
                tell,
                stdin=agent.stdin,
                cwd=agent.cwd,
                shown=agent.shown,
                own_group=agent.own_group,
            )
        except CommandNotFound:
            if recording is not None:
                recording.abandon()
            raise
        run = AgentRun(agent, child, recording, listener, authority, offline=offline)
        try:
            yield run
        finally:
            run.stop()


def host_rules(start: SessionStart) -> HostRules:
    """The hosts that are recorded, or were."""
    return HostRules((*LLM_HOSTS, *start.hosts), start.all_hosts)


@contextmanager
def agent_environment(
    home: Path,
    session: SessionId,
    env: Mapping[str, str],
    *,
    port: int,
    authority: Authority,
    rules: HostRules,
    offline: bool = False,
    live_hosts: tuple[str, ...] = (),
) -> Iterator[dict[str, str]]:
    """The variables for the child; the files they name live as long as the run.

    ``offline`` tells the hooks to bring here whatever would leave this machine, so that it is refused by name.
    """
    folder = home / "run" / f"{os.getpid()}-{session}"
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        sweep(folder.parent)
        folder.mkdir(mode=0o700)
        prepared = prepare(folder, env, port=port, authority_pem=authority.certificate_pem, rules=rules)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise EnvironmentProblem(f"{folder} cannot be written: {error.strerror}.") from error
    try:
        yield {
            **env,
            **prepared.variables,
            **(dict.fromkeys(("NO_PROXY", "no_proxy"), "") if offline else {}),
            "REWIND_GATEWAY_URL": f"http://127.0.0.1:{port}",
            "REWIND_SESSION": session,
            "REWIND_OFFLINE": "1" if offline else "0",
            "REWIND_LIVE_HOSTS": ",".join(live_hosts),
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(runs: Path) -> None:
    """Remove what killed runs left behind; it holds no secrets, only certificates."""
    for left in runs.iterdir():
        pid = left.name.partition("-")[0]
        if pid.isdigit() and not _alive(int(pid)):
            shutil.rmtree(left, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
