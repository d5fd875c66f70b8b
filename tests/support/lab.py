"""A store, a provider and the moves every end-to-end test makes: record, let the provider vanish, replay, compare."""

import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from support.cli import AGENTS, KEYS, PATIENCE, REWIND, Result, agent_command, plain_environment, run_rewind
from support.provider import FakeProvider
from support.trust import PROVIDER_NAMES, Trust


@dataclass(slots=True)
class Gate:
    """A running gateway, seen from inside the recorded child: its address and the certificates it hands out."""

    variables: dict[str, str]
    process: "subprocess.Popen[bytes]"
    result: Result | None = None
    """How the run ended; there once the gate is closed."""

    @property
    def address(self) -> tuple[str, int]:
        url = urlsplit(self.variables["REWIND_GATEWAY_URL"])
        assert url.hostname is not None
        assert url.port is not None
        return url.hostname, url.port

    def plain(self) -> socket.socket:
        """A connection to the gateway as to a proxy."""
        sock = socket.create_connection(self.address, timeout=PATIENCE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def tunnel(self, host: str, port: int = 443) -> socket.socket:
        """Through ``CONNECT``, before any TLS."""
        sock = self.plain()
        name = f"[{host}]" if ":" in host else host
        sock.sendall(f"CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n".encode())
        reply = b""
        while not reply.endswith(b"\r\n\r\n"):
            byte = sock.recv(1)
            assert byte, f"the gateway hung up on CONNECT {name}:{port}: {reply!r}"
            reply += byte
        assert reply.split(b" ", 2)[1] == b"200", reply
        return sock

    def tls(self, host: str, port: int = 443) -> ssl.SSLSocket:
        """Through ``CONNECT``, TLS with the certificates that the child was given."""
        return self.trusting().wrap_socket(self.tunnel(host, port), server_hostname=host)

    def trusting(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.variables["SSL_CERT_FILE"])
        context.set_alpn_protocols(["http/1.1"])
        return context

    def ended(self) -> Result:
        assert self.result is not None, "the gate is still open"
        return self.result


@dataclass(slots=True)
class Lab:
    """One store and one provider that answers under the providers' own names."""

    folder: Path
    trust: Trust
    provider: FakeProvider
    env: dict[str, str] = field(default_factory=dict)
    """More variables for every command."""
    hosts: tuple[str, ...] = PROVIDER_NAMES

    @property
    def home(self) -> Path:
        return self.folder / "store"

    @property
    def upstream(self) -> list[str]:
        """Options that bring every known host to the provider."""
        to = "[::1]" if ":" in self.provider.address else self.provider.address
        words = [f"--connect-to={host}:443:{to}:{self.provider.port}" for host in self.hosts]
        return [*words, f"--upstream-ca={self.trust.ca_file}"]

    def rewind(
        self, *args: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None, **more: Any
    ) -> Result:
        return run_rewind(args, self.home, self.env | dict(env or {}), cwd=cwd or self.folder, **more)

    def record(
        self,
        agent: str | Sequence[str],
        *args: str,
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Result:
        """Record an agent (its file name, or a whole command) with dummy keys in its environment."""
        command = agent_command(agent) if isinstance(agent, str) else list(agent)
        words = ["record", *self.upstream, *options, "--", *command, *args]
        return self.rewind(*words, env=KEYS | dict(env or {}), **more)

    def replay(self, session: str, *args: str, env: Mapping[str, str] | None = None, **more: Any) -> Result:
        """Replay with the provider gone and no key in the environment; a connection to the provider fails the test."""
        self.provider.go_away()
        before = self.provider.connections
        # The way to the provider is still known: a call that went live would be counted there.
        result = self.rewind("replay", session, *self.upstream, *args, env=env, **more)
        assert self.provider.connections == before, "the replay went to the network"
        return result

    def record_and_replay(
        self,
        agent: str | Sequence[str],
        *args: str,
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        timeout: float = PATIENCE,
    ) -> tuple[Result, Result]:
        """The agent's two runs; the second had no provider, and printed the same bytes."""
        recorded = self.record(agent, *args, options=options, env=env, timeout=timeout).ok()
        calls = self.provider.calls
        replayed = self.replay(recorded.session, env=env, timeout=timeout).ok()
        assert self.provider.calls == calls
        assert replayed.stdout == recorded.stdout
        return recorded, replayed

    def steps(self, session: str) -> list[dict[str, Any]]:
        """The step rows of ``inspect --json``."""
        shown = json.loads(self.rewind("inspect", session, "--json").ok().stdout)
        rows: list[dict[str, Any]] = shown["steps"]
        return rows

    def body(self, session: str, step: int, half: str = "--response") -> bytes:
        """The exact bytes of one body, as ``inspect --raw`` gives them."""
        return self.rewind("inspect", f"{session}:{step}", "--raw", half).ok().stdout

    @contextmanager
    def recording(self, *options: str, env: Mapping[str, str] | None = None) -> Iterator[Gate]:
        """A gateway that records whatever this test sends it."""
        words = ["record", *self.upstream, *options, "--", sys.executable, str(AGENTS / "hold_the_door.py")]
        with self._gate(words, KEYS | dict(env or {})) as gate:
            yield gate

    @contextmanager
    def replaying(self, session: str, *options: str) -> Iterator[Gate]:
        """A gateway that answers from the recording; afterwards nobody came to the provider."""
        self.provider.go_away()
        before = self.provider.connections
        with self._gate(["replay", session, *self.upstream, *options], {}) as gate:
            yield gate
        assert self.provider.connections == before, "the replay went to the network"

    @contextmanager
    def _gate(self, words: list[str], env: dict[str, str]) -> Iterator[Gate]:
        out_file, err_file = self.folder / "gate.out", self.folder / "gate.err"
        with out_file.open("w+b") as out, err_file.open("w+b") as err:
            fifo = self.folder / "door.fifo"
            if not fifo.exists():
                os.mkfifo(fifo)
            held = os.open(fifo, os.O_RDWR)
            process = subprocess.Popen(
                [*REWIND, *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=plain_environment(self.home, **self.env, **env),
                cwd=self.folder,
                start_new_session=True,
            )
            gate = Gate({}, process)
            try:
                # The child leaves its environment in a file, so that its stdout stays empty.
                gate.variables = _read_door(self.folder / "door.json", process, err)
                yield gate
                os.close(held)
                held = -1
                process.wait(PATIENCE)
            finally:
                if held >= 0:
                    os.close(held)
                if process.poll() is None:
                    os.killpg(process.pid, 9)
                    process.wait(PATIENCE)
            out.seek(0)
            err.seek(0)
            gate.result = Result(tuple(words), out.read(), err.read(), process.returncode).sound()


def _read_door(door: Path, process: "subprocess.Popen[bytes]", err: IO[bytes]) -> dict[str, str]:
    """The variables of the child, from a file that appears whole, by rename."""
    waited = 0.0
    while not door.exists():
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            waited += 0.02
            assert waited < PATIENCE, "the recorded child never started"
            continue
        err.seek(0)
        raise AssertionError(f"rewind ended with {process.returncode}: {err.read().decode(errors='replace')}")
    variables: dict[str, str] = json.loads(door.read_text())
    door.unlink()
    return variables
