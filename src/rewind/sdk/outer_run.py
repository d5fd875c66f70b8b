"""The run of ``rewind record``, ``replay`` or ``fork`` that this process is a child of, as its environment tells.

Its gateway is asked about every tool call (``runs/child_tools.py``), so that the calls of a program which begins no
session itself are in the recording, too, and are answered by it.
"""

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, urlsplit

from rewind.dataclass import dataclass
from rewind.errors import EnvironmentProblem, ReplayMiss
from rewind.model.tool_call import DELAY_HEADER, MS_HEADER, STEP_HEADER, TOOLS_HOST, PlayedTool, RunningTool

if TYPE_CHECKING:
    from rewind.inprocess.run import InProcessRun

TOOLS_VARIABLE = "REWIND_TOOLS_URL"


class ToolListener(Protocol):
    """What a tool call belongs to."""

    @property
    def offline(self) -> bool:
        """Whether a tool must not be run where it cannot be told what was recorded."""
        ...

    def tool(self, name: str, body: bytes) -> PlayedTool | RunningTool:
        """A tool is called; ``body`` is the JSON ``{"arguments": …}``. Raises ReplayMiss."""
        ...

    def note(self, text: str, fields: Mapping[str, Any] | None = None) -> None: ...

    def unrecorded(self, host: str, why: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterRun:
    """What the command line does with the program around us."""

    session: str
    """That is written, or replayed."""
    again: bool
    """What was recorded is done once more: nothing of it is another recording."""
    folder: str | None
    """Goes when the run is over."""
    tools_url: str
    """Of the run's gateway, with its token; empty where it takes no tool calls."""

    def passing_store(self) -> Path:
        """A store for what nobody wants to keep. Raises OSError."""
        folder = self.folder if self.folder is not None and os.access(self.folder, os.W_OK) else None
        return Path(tempfile.mkdtemp(prefix="rewind-again-", dir=folder))

    @property
    def offline(self) -> bool:
        return self.again

    def tool(self, name: str, body: bytes) -> PlayedTool | RunningTool:
        """Raises ReplayMiss, and EnvironmentProblem where a replay's gateway is gone; in a recording only OSError."""
        try:
            status, headers, answer = self._ask(f"call/{quote(name, safe='')}", body)
        except OSError as problem:
            if not self.again:
                raise
            raise EnvironmentProblem(
                f"The gateway of this run cannot be asked about the tool {name!r}: {problem}."
            ) from problem
        match status:
            case 202:
                return _ToolOutside(self, answer.decode())
            case 200 | 500:
                step = int(headers.get(STEP_HEADER, "0"))
                ms, delay = (float(headers.get(name, "0")) for name in (MS_HEADER, DELAY_HEADER))
                return PlayedTool(status=status, body=answer, step=step, ms=ms, delay=delay)
        reason = _error_in(answer) or f"Rewind: the gateway answered {status}."
        raise ReplayMiss(reason) if self.again else ConnectionError(reason)

    def note(self, text: str, fields: Mapping[str, Any] | None = None) -> None:
        """Raises OSError where it is not kept."""
        document = {"text": text, **({"fields": dict(fields)} if fields else {})}
        status, _, _ = self._ask("note/NOTE", json.dumps(document, default=repr).encode())
        if status != 204:
            raise ConnectionError(f"the gateway answered {status}")

    def unrecorded(self, host: str, why: str) -> None:
        with suppress(Exception):  # what is told to a recording never stops the program
            self._ask(f"remark/{quote(host, safe='')}", why.encode(errors="replace"))

    def answered(self, number: str, status: int, body: bytes) -> None:
        """The tool of that number has ended."""
        with suppress(Exception):  # the run, or this very process, is over; a call without an answer says so
            self._ask(f"end/{number}/{status}", body)

    def _ask(self, what: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """A connection for each: threads, forks and event loops of the agent do not get into each other's way."""
        from http.client import HTTPConnection, HTTPException  # lazily: nearly every agent has it loaded by now

        at = urlsplit(self.tools_url)
        with _unwatched():
            connection = HTTPConnection(at.hostname or "127.0.0.1", at.port or 0)
            try:
                connection.request("POST", f"http://{TOOLS_HOST}{at.path}/{what}", body)
                answer = connection.getresponse()
                headers = {name.lower(): value for name, value in answer.getheaders()}
                return answer.status, headers, answer.read()
            except HTTPException as problem:
                raise ConnectionError(repr(problem)) from problem
            finally:
                connection.close()


class _ToolOutside:
    """A tool that runs here and is recorded there."""

    def __init__(self, run: OuterRun, number: str) -> None:
        self._run = run
        self._number = number
        self._told = False

    def ended(self, status: int, body: bytes) -> None:
        if not self._told:
            self._told = True
            self._run.answered(self._number, status, body)

    def abandoned(self, reason: str) -> None:
        self.ended(0, reason.encode(errors="replace"))


class _NestedRun:
    """A session of this process inside a run of the command line: what it does not know itself, that one is asked."""

    def __init__(self, inner: "InProcessRun", outer: OuterRun) -> None:
        self._inner = inner
        self._outer = outer
        self.offline = inner.offline or outer.offline

    def tool(self, name: str, body: bytes) -> PlayedTool | RunningTool:
        inner = self._inner.tool(name, body)
        if isinstance(inner, PlayedTool):
            return inner
        try:
            outer = self._outer.tool(name, body)
        except BaseException as problem:
            inner.abandoned(f"{type(problem).__name__}: it was not run")
            raise
        if isinstance(outer, PlayedTool):
            inner.ended(outer.status, outer.body)
            return outer
        return _BothTools(inner, outer)

    def note(self, text: str, fields: Mapping[str, Any] | None = None) -> None:
        self._inner.note(text, fields)
        with suppress(OSError):
            self._outer.note(text, fields)

    def unrecorded(self, host: str, why: str) -> None:
        self._inner.unrecorded(host, why)
        self._outer.unrecorded(host, why)


class _BothTools:
    """A tool that runs here and is recorded twice."""

    def __init__(self, *calls: RunningTool) -> None:
        self._calls = calls

    def ended(self, status: int, body: bytes) -> None:
        for call in self._calls:
            call.ended(status, body)

    def abandoned(self, reason: str) -> None:
        for call in self._calls:
            call.abandoned(reason)


def outer_run(environ: Mapping[str, str] | None = None) -> OuterRun | None:
    """``None`` in a process that nobody watches."""
    environ = os.environ if environ is None else environ
    session = environ.get("REWIND_SESSION")
    if not session or not environ.get("REWIND_GATEWAY_URL"):
        return None
    certificate = environ.get("REWIND_GATEWAY_CA")
    return OuterRun(
        session=session,
        again=environ.get("REWIND_REPLAY") == "1",
        folder=None if not certificate else str(Path(certificate).parent),
        tools_url=environ.get(TOOLS_VARIABLE, ""),
    )


def with_outer_run(inner: "InProcessRun | None") -> ToolListener | None:
    """What a tool call belongs to: the session of this process, the run around it, or both."""
    outer = outer_run()
    if outer is None or not outer.tools_url:
        return inner
    return outer if inner is None else _NestedRun(inner, outer)


def _unwatched() -> AbstractContextManager[object]:
    """A session of this process has nothing to do with what we ask."""
    callers = sys.modules.get("rewind.inprocess.redirect.callers")
    return nullcontext() if callers is None else callers.ourselves()


def _error_in(answer: bytes) -> str | None:
    try:
        error = json.loads(answer)["error"]
    except (ValueError, TypeError, KeyError):
        return None
    return error if isinstance(error, str) else None
