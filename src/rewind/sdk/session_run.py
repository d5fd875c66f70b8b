"""One session from its beginning to its end, around whatever runs in it."""

import contextlib
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from rewind.errors import ReplayMiss, RewindError, UsageError
from rewind.sdk.modes import mode_from
from rewind.text import plural

if TYPE_CHECKING:
    from concurrent.futures import Future

    from rewind.inprocess.run import InProcessResult, InProcessRun
    from rewind.model.step import Step
    from rewind.runs.tally import MissNote
    from rewind.sdk.modes import Mode
    from rewind.store.journal.reader import SessionReader

T = TypeVar("T")


class Run:
    """One session, from its beginning to its end."""

    def __init__(self, name: str | None, mode: "Mode") -> None:
        self.name = name
        self.mode = mode
        self.result: InProcessResult | None = None
        """How it went; there once the session has ended, and ``None`` where nothing was recorded or replayed."""
        self.unrecorded: str | None = None
        """Why nothing is kept of this run, where something should be: the program runs all the same."""
        self._engine: InProcessRun | None = None
        self._answering: str | None = None

    @property
    def id(self) -> str | None:
        """Of the session that this run writes, or in a replay of the one that answers."""
        written = None if self._engine is None else self._engine.session_id
        return written or self._answering

    @property
    def steps(self) -> "tuple[Step, ...]":
        """What was asked and answered so far, in the order in which it was asked."""
        return () if self._engine is None else self._engine.steps_so_far()

    @property
    def misses(self) -> "tuple[MissNote, ...]":
        """What the recording could not answer; there once the session has ended."""
        return () if self.result is None else self.result.misses

    def __repr__(self) -> str:
        return f"<rewind session {self.name or ''} {self.id or '-'} ({self.mode})>"


class SessionRun:
    """Begins, binds and ends one session. ``asked`` are the arguments of ``rewind.session``."""

    def __init__(self, asked: Mapping[str, Any]) -> None:
        self._asked = asked
        self.run = Run(asked["name"], mode_from(asked["mode"]))
        self._engine: InProcessRun | None = None
        self._tape: SessionReader | None = None
        self._write: Callable[[str], None] = lambda _session_id: None
        self._make_room: Callable[[], str | None] | None = None
        self._forget: Callable[[], None] = lambda: None
        self._records = self.run.mode == "record"
        """Nobody depends on it yet: where it goes wrong, the program goes on without."""

    # ── beginning ────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Raises RewindError where a replay is impossible. A recording that is impossible leaves the program alone."""
        if self.run.mode == "off":
            return
        try:
            self._begin()
        except BaseException as problem:
            self._close_tape()
            # A usage error: the program, or its settings, ask for what cannot be meant.
            if not self._records or isinstance(problem, UsageError) or not isinstance(problem, Exception):
                raise
            self.run.unrecorded = _reason(problem)
            _warn_once(f"Not recording: {self.run.unrecorded}")

    def _begin(self) -> None:
        # Lazily: a program that carries the decorator switched off never loads the engine.
        from rewind.sdk.session_plan import planned_session

        engine, self._tape, self._write, self._make_room, self._forget = planned_session(self._asked, self.run.mode)
        self._records = self._tape is None
        engine.start()
        self._engine = engine
        self.run._engine = engine
        if self._tape is not None:
            self.run._answering = self._tape.recording().session.id

    async def begin_async(self) -> None:
        try:
            await _off_the_loop(self.begin)
        except BaseException as error:
            if self._engine is not None:  # it had begun when its caller was cancelled
                await _off_the_loop(partial(self._finish, error))
            raise

    def bind(self) -> object:
        return None if self._engine is None else self._engine.activate()

    def unbind(self, token: Any) -> None:
        if self._engine is not None:
            # A fixture may be left in another context than it was entered in; its own is gone with it.
            with contextlib.suppress(ValueError):
                self._engine.deactivate(token)

    # ── ending ───────────────────────────────────────────────────────────────────────────────────────────────

    def end(self, error: BaseException | None) -> None:
        self._raise_misses(self._finish(error), error)

    async def end_async(self, error: BaseException | None) -> None:
        self._raise_misses(await _off_the_loop(lambda: self._finish(error)), error)

    def _finish(self, error: BaseException | None) -> "InProcessResult | None":
        engine = self._engine
        if engine is None:
            return None
        try:
            result = self._finished(engine, error)
        except Exception as problem:
            if not self._records and error is None:
                raise
            # The program has done its work, or has its own to say: that is not for us to replace.
            self.run.unrecorded = _reason(problem)
            _warn(f"The recording {engine.session_id} is not complete: {self.run.unrecorded}")
            return None
        finally:
            self._close_tape()
        self.run.result = result
        if result.broken is not None:
            _warn(f"The recording {result.session_id} is not complete: {result.broken}")
        if self._asked["cassette"] is not None and result.session_id is not None:
            self._write_cassette(result.session_id, error)
        if self._make_room is not None and result.session_id is not None:
            _in_a_thread(partial(_hold_limits, self._make_room))  # the program need not wait for it
        return result

    def _finished(self, engine: "InProcessRun", error: BaseException | None) -> "InProcessResult":
        if error is not None and not isinstance(error, GeneratorExit | SystemExit | KeyboardInterrupt):
            from rewind.sdk.values.failures import serialised_failure

            kept = serialised_failure(error)
            engine.note(kept["error"], {"exception": kept["exception"]}, error=True)
        return engine.finish(exit_code_of(error))

    def _write_cassette(self, session_id: str, error: BaseException | None) -> None:
        try:
            self._write(session_id)
        except RewindError as problem:
            if error is None:
                raise
            _note(error, problem.message)

    def _raise_misses(self, result: "InProcessResult | None", error: BaseException | None) -> None:
        """What a replay could not answer is said in any case; where the body failed by itself, as a note to that."""
        if result is None or self._asked["on_miss"] != "raise":
            return
        if not (result.misses or result.blocked):
            if self.run.mode == "replay" and error is None and result.total and not result.played:
                raise ReplayMiss(
                    f"No step of the recording {self.run.id} ({plural(result.total, 'step')}) was asked for: this "
                    "replay tested nothing.",
                    hint="Record it again with mode='record', or accept this with on_miss='report'.",
                )
            return
        miss = miss_of(result, self.run)
        if error is None or isinstance(error, GeneratorExit):
            raise miss
        _note(error, f"{miss.message}\n{miss.hint}")

    def _close_tape(self) -> None:
        tape, self._tape = self._tape, None
        if tape is not None:
            tape.__exit__(None, None, None)
        self._forget()


def _hold_limits(make_room: Callable[[], str | None]) -> None:
    import logging

    logger = logging.getLogger("rewind")
    try:
        if sentence := make_room():
            logger.info(sentence)
    except RewindError as problem:
        logger.warning(problem.message)


@cache
def _warn_once(text: str) -> None:
    """A program with a session for every request would say nothing else."""
    _warn(text)


def _warn(text: str) -> None:
    import logging

    logging.getLogger("rewind").warning(text)


def _reason(problem: Exception) -> str:
    if isinstance(problem, RewindError):
        return problem.message
    return f"a bug in Rewind: {type(problem).__name__}: {problem}"


def _note(error: BaseException, text: str) -> None:
    with contextlib.suppress(Exception):  # one that lets nothing be written to it goes without
        error.add_note(text)


def miss_of(result: "InProcessResult", run: Run) -> ReplayMiss:
    """All that the recording could not answer, in one error."""
    stopped = [f"{url} was not recorded, and a replay stays offline" for url in dict.fromkeys(result.blocked)]
    reports = [(miss.report or miss.reason).rstrip() for miss in result.misses] + stopped
    what = "a request" if len(reports) == 1 else f"{len(reports)} requests"
    miss = ReplayMiss(
        f"The recording {run.id} cannot answer {what}:\n" + "\n".join(reports),
        hint="Record it again with mode='record', or let what is missing go live with mode='extend'.",
    )
    miss.add_note(miss.hint or "")
    return miss


def exit_code_of(error: BaseException | None) -> int:
    """As the shell would see it, had the body been a program."""
    match error:
        case None | GeneratorExit() | SystemExit(code=None):
            return 0
        case SystemExit(code=int(code)):
            return code
        case KeyboardInterrupt():
            return 130
        case _:
            return 1


async def _off_the_loop(work: Callable[[], T]) -> T:
    """Not on the event loop, where there is one: others run on it, and their calls must not wait for ours.

    A caller who is cancelled meanwhile hears of it when the work is done: half a session helps nobody.
    """
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:  # trio, or a coroutine driven by hand
        return work()
    working = asyncio.wrap_future(_in_a_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        if working.done() and not working.cancelled():
            working.exception()  # the caller is cancelled, and nobody else would look at it
        raise


def _in_a_thread(work: Callable[[], T]) -> "Future[T]":
    """In a new thread: those of the loop's executor may all be waiting for sessions."""
    import threading
    from concurrent.futures import Future
    from contextvars import copy_context

    done: Future[T] = Future()
    context = copy_context()

    def run() -> None:
        try:
            done.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001  it is raised where the work is awaited
            done.set_exception(error)

    try:
        threading.Thread(target=run, name="rewind-session").start()
    except RuntimeError:  # the interpreter is ending, and starts no more threads
        run()
    return done
