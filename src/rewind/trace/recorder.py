"""``Trace``: a line for every step of an agent, on the disk when ``step`` returns.

A line is one ``write`` of whole bytes to a descriptor that only appends, so lines of threads and of forked processes do
not mix, and a process that is killed loses none that it had finished. An output that is too long for its line is kept
whole beside the trace, in ``<trace>.blobs/<sha256>``, before the line that names it. Nothing here ever raises into the
agent: what goes wrong is said once on stderr, and the run goes on.

Standard library only, and little of it: an agent imports this.
"""
# Importing pathlib would take longer than all of this.
# ruff: noqa: PTH100, PTH103, PTH105, PTH108, PTH110, PTH116, PTH118, PTH120

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from stat import S_ISREG
from types import TracebackType
from typing import Any

from rewind.trace.plain import field_bytes, json_bytes, plain
from rewind.trace.secrets import OwnSecrets

RESERVED = frozenset({"kind", "ts", "run", "pid", "cut", "blob_ref"})
"""Names that the recorder itself uses; a field of such a name gets an underscore behind it."""
WHOLE = frozenset({"llm_call"})
"""Kinds whose fields are never cut: they are the conversation itself."""
_APPEND = os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)


class Trace:
    """Records the steps of one run to a file, one JSON line each.

    >>> with Trace("traces/run.jsonl") as trace:
    ...     trace.step("llm_call", model="gpt-5-mini", messages=messages, response=response)
    ...     trace.step("tool_result", id=call.id, output=text)
    """

    def __init__(
        self, path: str | os.PathLike[str], *, run: str | None = None, cap: int | None = 4096, durable: bool = False
    ) -> None:
        """``run`` is the run's id (default: eight fresh hexadecimal digits), ``cap`` how many bytes of a tool's output
        a line holds (the whole is kept beside the trace; ``None``: never cut), ``durable`` whether every step waits
        until the disk has it, so that it survives the death of the machine, too."""
        self.run_id = os.urandom(4).hex() if run is None else str(run)
        """In every line of this run."""
        self.path = ""
        """Where it is written."""
        self._cap = cap if isinstance(cap, int) and cap >= 0 else None
        self._durable = durable
        self._fd = -1
        self._end = -1
        """Where the file ended after the last write of this process; -1: unknown, so look."""
        self._regular = False
        self._closed = False
        self._warned: set[str] = set()
        self._lock = threading.RLock()  # a signal's handler may record a step in the midst of another
        self._born = self._pid = os.getpid()
        self._variables = -1
        self._secrets = OwnSecrets()
        self._without_raising("cannot be opened", lambda: self._begin(path))

    def step(self, kind: str = "", /, **fields: Any) -> None:
        """Write one line: what happened (``llm_call``, ``tool_call``, ``tool_result``, ``error``, ``final``, or any
        other word), and all that is to be known of it. Values that are not JSON become text."""
        self._without_raising("lost a step", lambda: self._write(kind, fields))

    def close(self) -> None:
        """Nothing is written after this. May be called again."""
        self._closed = True
        self._without_raising("cannot be closed", self._release)

    def __enter__(self) -> "Trace":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None and not _is_an_exit(error):
                self.step("error", error=error, where=_where(trace))
        finally:
            self.close()

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self._without_raising("cannot be closed", self._release)

    def __reduce__(self) -> tuple[Any, ...]:
        """A process that gets this trace goes on with it: same file, same run."""
        return _reopened, (self.path, self.run_id, self._cap, self._durable, self._born)

    # ── one line ─────────────────────────────────────────────────────────────────────────────────────────────

    def _write(self, kind: str, fields: dict[str, Any]) -> None:
        if self._closed:
            self._warn("closed", "was closed: later steps are not kept")
            return
        if not kind and "kind" in fields:  # said by name
            kind = fields.pop("kind")
        if len(os.environ) != self._variables:  # keys that were loaded after the trace was begun
            self._variables, self._secrets = len(os.environ), OwnSecrets.of(os.environ)
        kind = kind if type(kind) is str else str(plain(kind))
        line: dict[str, Any] = {"kind": kind, "ts": time.time(), "run": self.run_id}
        if (pid := os.getpid()) != self._born:
            line["pid"] = pid
        for name in RESERVED.intersection(fields):
            fields = {_free(key, fields) if key == name else key: value for key, value in fields.items()}
        line.update(fields)
        data = json_bytes(line)
        if self._cap is not None and len(data) > self._cap and kind not in WHOLE:
            data = json_bytes({**line, **short}) if (short := self._shortened(fields, self._cap)) else data
        self._append(self._secrets.removed(data) + b"\n")

    def _shortened(self, fields: dict[str, Any], cap: int) -> dict[str, Any]:
        """The fields that are too long, cut; each whole value goes to a file beside the trace."""
        short: dict[str, Any] = {}
        cut: dict[str, str | None] = {}
        for name, value in fields.items():
            whole = field_bytes(value)
            if len(whole) > cap:
                whole = self._secrets.removed(whole)  # before it is cut, perhaps through one
                short[name] = _cut_at(whole, cap)
                cut[name] = self._kept(whole)
        return {**short, "cut": cut, "blob_ref": next(iter(cut.values()))} if cut else {}

    def _kept(self, whole: bytes) -> str | None:
        try:
            return _keep_blob(f"{self.path}.blobs", whole, durable=self._durable)
        except OSError as error:
            self._warn("blob", f"could not keep a long output whole: {_why(error)}")
            return None

    def _append(self, data: bytes) -> None:
        with self._alone():
            if self._fd < 0:
                self._open()
            status = os.fstat(self._fd)
            if not status.st_nlink:  # somebody removed the file, or moved it away
                self._open()
            if self._regular and status.st_size != self._end:
                data = self._after_a_torn_line(data)
            self._end, known = -1, self._end
            rest = memoryview(data)
            while rest:  # a second turn only after a short write: it finds out why, or finishes it
                rest = rest[os.write(self._fd, rest) :]
            if self._durable and self._regular:
                (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(self._fd)
            self._end = known + len(data) if known >= 0 else -1

    def _after_a_torn_line(self, data: bytes) -> bytes:
        """Another process writes here, too; if it died in the middle of a line, ours starts a new one."""
        for patience in (0.0005, 0.001, 0.002, 0):
            self._end = size = os.fstat(self._fd).st_size
            try:
                if not size or os.pread(self._fd, 1, size - 1) == b"\n":
                    return data
            except OSError:  # a file that may be written but not read
                return data
            time.sleep(patience)  # perhaps another process is in the midst of its write
        return b"\n" + data

    # ── the file ─────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(os.fsdecode(path))  # the agent may change its folder
        self._variables, self._secrets = len(os.environ), OwnSecrets.of(os.environ)
        with self._alone():
            self._open()

    def _alone(self) -> threading.RLock:
        """The lock of this process: in a forked child, the thread that held it does not exist."""
        if (pid := os.getpid()) != self._pid:
            self._pid, self._lock = pid, threading.RLock()
        return self._lock

    def _open(self) -> None:
        old, self._fd = self._fd, -1
        if old >= 0:
            os.close(old)
        try:
            self._fd = os.open(self.path, os.O_RDWR | _APPEND, 0o600)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | _APPEND, 0o600)
        except PermissionError:
            self._fd = os.open(self.path, os.O_WRONLY | _APPEND, 0o600)
        self._end = -1
        self._regular = S_ISREG(os.fstat(self._fd).st_mode)
        if self._durable:
            _sync_folder(os.path.dirname(self.path))

    def _release(self) -> None:
        with self._alone():
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)

    # ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────

    def _without_raising(self, what: str, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  a recorder that stops the agent is worse than none
            self._warn(what, f"{what}: {_why(error)} (said once; the run goes on)")

    def _warn(self, about: str, sentence: str) -> None:
        """Once for each kind of trouble: what the agent itself prints must stay readable."""
        if about in self._warned:
            return
        self._warned.add(about)
        with contextlib.suppress(Exception):  # stderr may be closed: then nobody is there to read it
            sys.stderr.write(f"rewind: the trace {self.path or '?'} {sentence}\n")


def _reopened(path: str, run: str, cap: int | None, durable: bool, born: int) -> Trace:
    trace = Trace(path, run=run, cap=cap, durable=durable)
    trace._born = born
    return trace


def _keep_blob(folder: str, data: bytes, *, durable: bool) -> str:
    """Write these bytes whole under the name of their hash, for their owner only. Raises OSError."""
    import hashlib  # takes as long to load as all the rest, and most traces have no long output

    digest = hashlib.sha256(data).hexdigest()
    path = os.path.join(folder, digest)
    # The same output is kept once. A file of another size is not ours, and is written anew.
    if os.path.exists(path) and os.stat(path).st_size == len(data):
        return f"sha256:{digest}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    draft = f"{path}.{os.urandom(6).hex()}.new"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(draft, path)
        if durable:
            _sync_folder(folder)
    except BaseException:
        if os.path.exists(draft):
            os.unlink(draft)
        raise
    return f"sha256:{digest}"


def _sync_folder(path: str) -> None:
    """Wait until the disk has the names in a folder. Raises OSError."""
    fd = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _cut_at(data: bytes, cap: int) -> str:
    """The start of a UTF-8 text, at most that many bytes, up to a whole character."""
    while cap > 0 and data[cap : cap + 1] and data[cap] & 0xC0 == 0x80:
        cap -= 1
    return data[: max(cap, 0)].decode("utf-8", "replace")


def _free(name: str, fields: dict[str, Any]) -> str:
    while name in fields or name in RESERVED:
        name += "_"
    return name


def _is_an_exit(error: BaseException) -> bool:
    return isinstance(error, GeneratorExit) or (isinstance(error, SystemExit) and not error.code)


def _where(trace: TracebackType | None) -> str:
    """The line of code that the error came from."""
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def _why(error: Exception) -> str:
    reason = getattr(error, "strerror", None) or str(error)
    return reason if isinstance(error, OSError) and reason else f"{type(error).__name__}: {reason}"
