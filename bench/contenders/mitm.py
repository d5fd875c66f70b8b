"""mitmproxy as the base of a recorder: mitmdump with its own flow file and its own server replay.

It lives in a virtual environment of its own, made on first use: it cannot be installed beside current SDKs. It gets
the settings that make it fastest: no HTTP/2, no upstream connection before a request, no certificate look-ups, silence.
"""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench import machine
from bench.setup import Failed, Run, Setup

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent / ".contenders" / "mitmproxy"
ADDON = HERE / "mitm_addon.py"
QUICKEST = ("http2=false", "connection_strategy=lazy", "upstream_cert=false")
REPLAYING = (
    "server_replay_extra=kill",
    "server_replay_refresh=false",
    # Flows were recorded under the fake provider's address.
    "server_replay_ignore_host=true",
    "server_replay_ignore_port=true",
)
START_SECONDS = 20.0


class Mitmproxy:
    name = "mitmproxy"

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._home = setup.folder / "mitmproxy"
        self._command = str(CACHE / "bin" / "mitmdump")

    def prepare(self) -> None:
        install()
        self._home.mkdir()
        self.record("warm-up", "calls")  # also makes its CA
        self.replay("warm-up", "calls")

    def help_command(self) -> list[str]:
        return [self._command, "--help"]

    def record_true(self) -> float:
        """As a recorder would: start it, wait until it listens, run the command, stop it."""
        began = time.perf_counter()
        with self._mitmdump(self._recording("true"), on_core=None):
            subprocess.run(["true"], check=True)
        return time.perf_counter() - began

    def record(self, name: str, *client: str, pinned: bool = True) -> Run:
        setup = self._setup.seated(pinned)
        setup.seat_upstream(beside_client=True)
        return self._drive(setup, self._recording(name), client)

    def replay(self, name: str, *client: str, pinned: bool = True) -> Run:
        options = ("--server-replay", str(self._flows(name)), *_set(*REPLAYING))
        return self._drive(self._setup.seated(pinned), options, client)

    def stored(self, name: str) -> int:
        return self._flows(name).stat().st_size

    def _flows(self, name: str) -> Path:
        return self._home / f"{name}.flows"

    def _recording(self, name: str) -> tuple[str, ...]:
        flows = self._flows(name)
        flows.unlink(missing_ok=True)
        settings = _set(
            f"bench_upstream=127.0.0.1:{self._setup.upstream_port}",
            f"ssl_verify_upstream_trusted_ca={self._setup.upstream_ca}",
            "store_streamed_bodies=true",
        )
        return ("-w", str(flows), "-s", str(ADDON), *settings)

    def _drive(self, setup: Setup, options: tuple[str, ...], client: tuple[str, ...]) -> Run:
        began = time.perf_counter()
        with self._mitmdump(options, on_core=setup.proxy_core) as (process, port):
            env = setup.environment(
                HTTPS_PROXY=f"http://127.0.0.1:{port}", SSL_CERT_FILE=str(self._home / "mitmproxy-ca-cert.pem")
            )
            run = setup.run(setup.client(*client, "--watch", str(process.pid)), env)
        return Run(figures=run.figures, wall=time.perf_counter() - began)

    @contextlib.contextmanager
    def _mitmdump(
        self, options: tuple[str, ...], *, on_core: int | None
    ) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
        port = _free_port()
        settings = _set(*QUICKEST, f"confdir={self._home}")
        with (self._home / "log").open("wb") as log:
            process = subprocess.Popen(
                [self._command, "-q", "--listen-host", "127.0.0.1", "-p", str(port), *settings, *options],
                env=self._setup.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=lambda: machine.pin(0, on_core),  # this process has one thread
            )
            try:
                self._await_listening(process, port)
                yield process, port
            finally:
                process.terminate()
                process.wait()

    def _await_listening(self, process: "subprocess.Popen[bytes]", port: int) -> None:
        deadline = time.perf_counter() + START_SECONDS
        while time.perf_counter() < deadline:
            if process.poll() is not None:
                raise Failed(f"mitmdump ended: {(self._home / 'log').read_text()[-2000:]}")
            with contextlib.suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port)).close()
                return
            time.sleep(0.002)
        raise Failed("mitmdump did not listen in time")


def install() -> None:
    """The newest mitmproxy that this Python can have."""
    if (CACHE / "bin" / "mitmdump").exists():
        return
    print("Installing mitmproxy into an environment of its own …", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(CACHE)], check=True)
    pip = [str(CACHE / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", "mitmproxy"]
    subprocess.run(pip, check=True, stdout=sys.stderr)


def _set(*settings: str) -> tuple[str, ...]:
    return tuple(part for setting in settings for part in ("--set", setting))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
