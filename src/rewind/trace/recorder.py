"""``Trace``: a line for every step of an agent, on the disk when ``step`` returns.

A line is one ``write`` of whole bytes to a descriptor that only appends, so lines of threads and of forked processes do
not mix, and a process that is killed loses none that it had finished. Nothing here ever raises into the agent, and
nothing is asked of the model: what goes wrong is said once on stderr, and the run goes on.
"""
# Importing pathlib would take longer than all of this.
# ruff: noqa: PTH100, PTH103, PTH120

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from stat import S_ISREG
from types import TracebackType
from typing import Any

from rewind.trace.blobs import Blobs, cut_at, sync_folder
from rewind.trace.plain import plain
from rewind.trace.secrets import Secrets
from rewind.trace.writing import json_of, whole_field

RESERVED = frozenset({"kind", "ts", "run", "pid", "cut", "blob_ref"})
"""What the recorder itself says in a line; a field of that name is kept under the name and an underscore."""
WHOLE = frozenset({"llm_call"})
"""Kinds of which nothing is cut: their fields are the conversation itself."""
_APPEND = os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)
_WIDEST = 4
"""Bytes that a character may take."""


class Trace:
    """Records the steps of one run to a file, one JSON line each.

    >>> with Trace("traces/run.jsonl") as trace:
    ...     trace.step("llm_call", model="gpt-5-mini", messages=messages, response=response)
    ...     trace.step("tool_result", id=call.id, output=text)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        run: str | None = None,
        cap: int | None = 4096,
        durable: bool = False,
    ) -> None:
        """``run`` is the run's id (default: eight fresh hexadecimal digits), ``cap`` how many bytes of a tool's output
        a line holds (the whole is kept beside the trace; ``None``: never cut), ``durable`` whether every step waits
        until the disk has it, so that it survives the death of the machine, too."""
        self.run_id = os.urandom(4).hex() if run is None else str(run)
        """What all lines of this run have in common."""
        self.path = ""
        """Where it is written."""
        self._cap = cap if isinstance(cap, int) and cap >= 0 else None
        self._durable = durable
        self._fd = -1
        self._end = -1
        """Where the file ended when this process last wrote to it whole; -1: it is to be looked at."""
        self._regular = False
        self._closed = False
        self._told: set[str] = set()
        self._lock = threading.RLock()  # a signal's handler may record a step in the midst of another
        self._born = self._pid = os.getpid()
        self._variables = -1
        self._secrets = Secrets()
        self._guarded("cannot be opened", lambda: self._begin(path))

    def step(self, kind: str = "", /, **fields: Any) -> None:
        """Write one line: what happened (``llm_call``, ``tool_call``, ``tool_result``, ``error``, ``final``, or any
        other word), and all that is to be known of it. Values that are not JSON become text."""
        self._guarded("lost a step", lambda: self._write(kind, fields))

    def close(self) -> None:
        """Nothing is written after this. May be called again."""
        self._closed = True
        self._guarded("cannot be closed", self._release)

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
            self._guarded("cannot be closed", self._release)

    def __reduce__(self) -> tuple[Any, ...]:
        """A process that is handed this trace goes on with it: same file, same run."""
        return _again, (self.path, self.run_id, self._cap, self._durable, self._born)

    # ── one line ─────────────────────────────────────────────────────────────────────────────────────────────

    def _write(self, kind: str, fields: dict[str, Any]) -> None:
        if self._closed:
            self._say("closed", "was closed: later steps are not kept")
            return
        if not kind and "kind" in fields:  # said by name
            kind = fields.pop("kind")
        if len(os.environ) != self._variables:  # keys that were loaded after the trace was begun
            self._variables, self._secrets = len(os.environ), Secrets.of(os.environ)
        kind = kind if type(kind) is str else str(plain(kind))
        line: dict[str, Any] = {"kind": kind, "ts": time.time(), "run": self.run_id}
        if (pid := os.getpid()) != self._born:
            line["pid"] = pid
        for name in RESERVED.intersection(fields):
            fields = {_free(one, fields) if one == name else one: value for one, value in fields.items()}
        line.update(fields)
        text = json_of(line)
        longest = len(text) if text.isascii() else len(text) * _WIDEST
        if self._cap is not None and longest > self._cap and kind not in WHOLE:
            text = json_of({**line, **short}) if (short := self._shortened(fields, self._cap)) else text
        data = text.encode()
        self._append((self._secrets.removed(data) if self._secrets.in_text(text) else data) + b"\n")

    def _shortened(self, fields: dict[str, Any], cap: int) -> dict[str, Any]:
        """What is too long, cut; the whole of it goes to a file beside the trace."""
        short: dict[str, Any] = {}
        cut: dict[str, str | None] = {}
        for name, value in fields.items():
            whole = whole_field(value)
            if len(whole) > cap:
                whole = self._secrets.removed(whole)  # before it is cut, perhaps through one
                short[name] = cut_at(whole, cap)
                cut[name] = self._kept(whole)
        return {**short, "cut": cut, "blob_ref": next(iter(cut.values()))} if cut else {}

    def _kept(self, whole: bytes) -> str | None:
        try:
            return Blobs(self.path).put(whole, durable=self._durable)
        except OSError as error:
            self._say("blob", f"could not keep a long output whole: {_why(error)}")
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
        """Others write here, too, or did; one that died in the midst of a line must not spoil ours."""
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
        self._variables, self._secrets = len(os.environ), Secrets.of(os.environ)
        with self._alone():
            self._open()

    def _alone(self) -> threading.RLock:
        """The lock of this process: in a forked child, whoever held it is not there to let it go."""
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
            sync_folder(os.path.dirname(self.path))

    def _release(self) -> None:
        with self._alone():
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)

    # ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────

    def _guarded(self, what: str, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  a recorder that stops the agent is worse than none
            self._say(what, f"{what}: {_why(error)} (said once; the run goes on)")

    def _say(self, about: str, sentence: str) -> None:
        """Once for each kind of trouble: an agent's own words on stderr must still be found."""
        if about in self._told:
            return
        self._told.add(about)
        with contextlib.suppress(Exception):  # stderr may be closed: nobody is left who could be told
            sys.stderr.write(f"rewind: the trace {self.path or '?'} {sentence}\n")


def _again(path: str, run: str, cap: int | None, durable: bool, born: int) -> Trace:
    trace = Trace(path, run=run, cap=cap, durable=durable)
    trace._born = born
    return trace


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
    told = getattr(error, "strerror", None) or str(error)
    return told if isinstance(error, OSError) and told else f"{type(error).__name__}: {told}"
