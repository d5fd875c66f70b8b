"""What all runs share: a run's way into the store, and an agent behind a gateway.

``SessionRecording`` writes a run down as a session. ``behind_gateway`` runs a command whose clients are brought to a
gateway. Its order is chosen for a quick start: the port is taken, the certificate made, the first line of the journal
written, the agent started, and only then the gateway loaded; connections wait in the port's backlog meanwhile.
"""

import os
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rewind.dataclass import dataclass
from rewind.errors import CommandNotFound, EnvironmentProblem
from rewind.gateway.environment import prepare
from rewind.gateway.run_ca import RunCa, kept_ca
from rewind.model.clock import Clock, SystemClock
from rewind.model.ids import SessionId
from rewind.model.session import Session, SessionStart, Surroundings
from rewind.pricing.spending import Pricing
from rewind.providers.hosts import LLM_HOSTS, HostRules, endpoints_from_environment
from rewind.providers.telemetry import upload_hosts
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import credential_variables
from rewind.redaction.stream_redactor import StreamRedactor
from rewind.runs.child import AgentCommand, Child, Tee, check_command
from rewind.runs.rerun import command_to_run, recorded_folder
from rewind.runs.tally import Tally
from rewind.runs.writer_thread import WriterThread
from rewind.store.files import sweep
from rewind.store.journal.writer import SessionWriter, Stream
from rewind.version import __version__

SWITCH_SECONDS = 0.0005
GRACE_SECONDS = 3.0
"""Between asking an agent to end and making it."""
_TEMP = "/tmp"  # noqa: S108  # the usual one: nothing is written there
PRINTED: tuple[Stream, ...] = ("stdout", "stderr")


# ── into the store ───────────────────────────────────────────────────────────────────────────────────────────


def session_start(command: tuple[str, ...], environ: Mapping[str, str], clock: Clock) -> SessionStart:
    """The first line of the journal of a session that is recorded here, as far as the process knows it.

    As the run needs it; ``SessionRecording`` takes the secrets out of it before it is written.
    """
    return SessionStart(
        id=SessionId(os.urandom(4).hex()),
        name=None,
        command=command,
        cwd=str(Path.cwd()),
        started=clock.now(),
        rewind_version=__version__,
        key_variables=credential_variables(environ),
        base_urls=base_urls(environ),
        facts=facts_of_process(environ),
    )


def facts_of_process(environ: Mapping[str, str]) -> dict[str, str]:
    """What a run that begins here knows of itself besides its folder."""
    logical = environ.get("PWD", "")
    facts = {
        "home": environ.get("HOME", ""),
        "temp": environ.get("TMPDIR", "").rstrip("/") or _TEMP,
        "user": environ.get("USER") or environ.get("LOGNAME") or "",
        "host": os.uname().nodename,
        "logical": "" if logical == str(Path.cwd()) else logical,
        "utc_offset": str(time.localtime().tm_gmtoff),
    }
    return {name: value for name, value in facts.items() if value}


def base_urls(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that name a model's address."""
    return {name: value for name, value in environ.items() if endpoints_from_environment({name: value})}


class Outputs:
    """The agent's standard streams on their way to the store, redacted like everything else.

    Called from the threads that pump them.
    """

    def __init__(self, writer_thread: WriterThread, redactor: Redactor, printed: tuple[Stream, ...] = PRINTED) -> None:
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
        pricing: Pricing | None = None,
        printed: tuple[Stream, ...] = PRINTED,
        stdin: bytes | None = None,
    ) -> None:
        """``stdin`` is what the agent is given to read, where that was recorded. Raises EnvironmentProblem."""
        self.start = redactor.session_start(start)
        """As it is written."""
        self._redactor = redactor
        self._clock = clock
        self.writer = SessionWriter.create(home, self.start, durable=durable, pricing=pricing)
        self.writer_thread = WriterThread(self.writer)
        self.outputs = Outputs(self.writer_thread, redactor, printed)
        if stdin is not None:
            self.outputs.tee("stdin", stdin)

    def surroundings(self, surroundings: Surroundings) -> None:
        """What the run stands on, once it is known."""
        self.writer_thread.later(lambda: self.writer.surroundings(surroundings))

    def flush(self) -> None:
        """Wait until all that was told so far is on disk, with its meaning."""
        done = threading.Event()
        # First behind the steps that are still to be kept, then behind what they mean.
        self.writer_thread.ask(
            lambda: None, lambda _nothing: self.writer_thread.ask_when_quiet(lambda: None, lambda _nothing: done.set())
        )
        done.wait()

    def end(self, exit_code: int, tally: Tally) -> float:
        """Write what is left, and the last line; the moment at which it ended."""
        self.outputs.finish()
        ended = self._clock.now()
        # What is still to be written may be redacted, and remarked on: both are counted then, not now.
        self.writer_thread.close(
            lambda: self.writer.end(
                ended=ended, exit_code=exit_code, redactions=self._redactor.count, remarks=self._remarks(tally)
            )
        )
        return ended

    def _remarks(self, tally: Tally) -> tuple[str, ...]:
        """They may quote what a client or a provider said."""
        return tuple(map(self._redactor.text, tally.remarks))

    def abandon(self) -> None:
        """The command could not be started: nothing of it stays."""
        self.writer_thread.close()
        self.writer.abandon()

    @property
    def broken(self) -> str | None:
        """Why the session is not complete."""
        if not self.is_there:
            return f"the folder of the session was removed while the agent ran ({self.writer.folder})"
        failure = self.writer_thread.failure
        return self.writer.broken or (f"a bug in Rewind: {failure!r}" if failure is not None else None)

    @property
    def is_there(self) -> bool:
        """False where somebody, perhaps the agent itself, has removed it."""
        return (self.writer.folder / "journal.jsonl").exists()


# ── an agent behind a gateway ────────────────────────────────────────────────────────────────────────────────


def agent_again(
    session: Session, given: tuple[str, ...] | None, invocation: str, environ: Mapping[str, str]
) -> AgentCommand:
    """The recorded command where it was recorded, or the one that is given, here; see ``command_to_run``."""
    command = command_to_run(session, given, invocation)
    cwd = None if given else recorded_folder(session.start, invocation)
    check_command(command, environ, cwd)
    return AgentCommand(command=command, environ=environ, cwd=cwd)


@dataclass(frozen=True, slots=True)
class AgentRun:
    """An agent that has been started. Its requests wait at the listener until ``gateway_thread.serving`` them."""

    agent: AgentCommand
    child: Child
    recording: SessionRecording | None
    listener: socket.socket
    ca: RunCa
    rules: HostRules
    """The hosts that the gateway speaks as."""
    offline: bool
    tools_token: str
    """Without which nobody tells the gateway of a tool call."""


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
    again: bool = False,
) -> Iterator[AgentRun]:
    """Start the command; what it asks of the hosts of ``start`` comes to the listener, and waits there.

    ``begin`` writes the first line of the journal, where the run becomes a session, whose last line is to be written
    within; if the agent then cannot be started, nothing of it stays. ``tee`` is told of the agent's standard streams,
    too. ``again``: what it did is done once more, and the child is told so. Raises EnvironmentProblem, CommandNotFound.
    """
    rules = host_rules(start)
    # One for recordings and replays alike: to make it takes long, and a replay speaks as more hosts.
    spoken_for = HostRules((*rules.patterns, *upload_hosts()), rules.all_hosts)
    ca = kept_ca(home, spoken_for, SystemClock().now()) or _new_ca(home, spoken_for)
    rules = spoken_for if offline else rules
    with (
        _prompt_threads(),
        _variables(agent.environ, start, home, listener, ca, rules, offline, live_hosts) as variables,
    ):
        token = os.urandom(16).hex()
        variables["REWIND_TOOLS_URL"] = f"{variables['REWIND_GATEWAY_URL']}/{token}"
        if again:
            variables["REWIND_REPLAY"] = "1"
        recording = begin()
        tees = [*([] if tee is None else [tee]), *([] if recording is None else [recording.outputs.tee])]

        def tell(name: Stream, data: bytes) -> None:
            for tee_stream in tees:
                tee_stream(name, data)

        try:
            child = Child(agent, tell, variables)
        except CommandNotFound:
            if recording is not None:
                recording.abandon()
            raise
        try:
            yield AgentRun(agent, child, recording, listener, ca, rules, offline, token)
        except BaseException:
            child.end(GRACE_SECONDS)  # whatever went wrong: nobody will answer the agent
            raise
        finally:
            child.release()


def _new_ca(home: Path, rules: HostRules) -> RunCa:
    from rewind.gateway.certificates import new_ca  # lazily: it takes long to load, and mostly a CA was kept

    return new_ca(home, rules)


@contextmanager
def _prompt_threads() -> Iterator[None]:
    """While it runs, the gateway's thread need not wait 5 ms, Python's default, for one that works out meaning."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def host_rules(start: SessionStart) -> HostRules:
    """The hosts that are recorded, or were."""
    return HostRules((*LLM_HOSTS, *start.hosts), start.all_hosts)


@contextmanager
def _variables(
    env: Mapping[str, str],
    start: SessionStart,
    home: Path,
    listener: socket.socket,
    ca: RunCa,
    rules: HostRules,
    offline: bool,
    live_hosts: tuple[str, ...],
) -> Iterator[dict[str, str]]:
    """The variables for the child; the files they name, certificates in a private folder, live as long as the run.

    ``offline`` tells the hooks to bring here whatever would leave this machine, so that it is refused by name.
    """
    port, session, pem = listener.getsockname()[1], start.id, ca.certificate_pem
    folder = home / "run" / f"{os.getpid()}-{session}"
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        sweep(folder.parent)  # certificates, no secrets
        folder.mkdir(mode=0o700)
        stays = offline and not live_hosts
        prepared = prepare(folder, env, port=port, authority_pem=pem, rules=rules, offline=stays)
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
