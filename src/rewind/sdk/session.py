"""``rewind.session``: every call of a function, or a ``with`` block, is a session in this process."""

from __future__ import annotations

from rewind.sdk.decorators import wrapped
from rewind.sdk.modes import check_arguments, usage_error

TYPE_CHECKING = False  # typing's own would have to be imported, and a program that carries this pays for it
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal, TypeVar, overload

    from rewind.model.names import MatchMode
    from rewind.sdk.modes import Mode, OnMiss, PathLike
    from rewind.sdk.session_run import Run, SessionRun

    Function = TypeVar("Function", bound=Callable[..., Any])


class SessionMaker:
    """What ``rewind.session(…)`` gives: a decorator, and a context manager for one ``with`` at a time."""

    def __init__(self, asked: Mapping[str, Any]) -> None:
        check_arguments(asked)
        self._asked = asked
        self._entered: tuple[SessionRun, object] | None = None

    def __call__(self, function: Function) -> Function:
        """The function; each call of it is a session, which has the function's name unless it was given one."""
        named = getattr(function, "__qualname__", type(function).__name__).rpartition("<locals>.")[2]
        asked = self._asked if self._asked["name"] is not None else {**self._asked, "name": named}
        made: Function = wrapped(function, lambda: _session_run(asked))
        return made

    def __enter__(self) -> Run:
        session_run = self._new_run()
        session_run.begin()
        self._entered = session_run, session_run.bind()
        return session_run.run

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._leave().end(error)

    async def __aenter__(self) -> Run:
        session_run = self._new_run()
        await session_run.begin_async()
        self._entered = session_run, session_run.bind()
        return session_run.run

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self._leave().end_async(error)

    def _new_run(self) -> SessionRun:
        if self._entered is not None:
            raise usage_error(
                "This session is already open: one object, one `with` at a time.",
                hint="Write rewind.session(…) in the `with` itself.",
            )
        return _session_run(self._asked)

    def _leave(self) -> SessionRun:
        assert self._entered is not None, "left after it was entered"
        session_run, token = self._entered
        self._entered = None
        session_run.unbind(token)
        return session_run


def _session_run(asked: Mapping[str, Any]) -> SessionRun:
    from rewind.sdk.session_run import SessionRun  # lazily: at the first call, not when the program is loaded

    return SessionRun(asked)


if TYPE_CHECKING:

    @overload
    def session(function: Function, /) -> Function: ...

    @overload
    def session(
        name: str | None = None,
        *,
        mode: Mode | None = None,
        of: PathLike | None = None,
        cassette: PathLike | None = None,
        tools: Literal["replay", "live"] = "replay",
        on_miss: OnMiss = "raise",
        allow_drift: bool = False,
        home: PathLike | None = None,
        tags: Mapping[str, str] | None = None,
        hosts: Sequence[str] = (),
        all_hosts: bool | None = None,
        live_hosts: Sequence[str] = (),
        ignore: Sequence[str] = (),
        match: MatchMode | None = None,
        ignore_text: Sequence[str] = (),
        connect_to: Sequence[str] = (),
        upstream_ca: PathLike | None = None,
        upstream_proxy: str | None = None,
    ) -> SessionMaker: ...


def session(
    name: str | Callable[..., Any] | None = None,
    *,
    mode: Mode | None = None,
    of: PathLike | None = None,
    cassette: PathLike | None = None,
    tools: Literal["replay", "live"] = "replay",
    on_miss: OnMiss = "raise",
    allow_drift: bool = False,
    home: PathLike | None = None,
    tags: Mapping[str, str] | None = None,
    hosts: Sequence[str] = (),
    all_hosts: bool | None = None,
    live_hosts: Sequence[str] = (),
    ignore: Sequence[str] = (),
    match: MatchMode | None = None,
    ignore_text: Sequence[str] = (),
    connect_to: Sequence[str] = (),
    upstream_ca: PathLike | None = None,
    upstream_proxy: str | None = None,
) -> Any:
    """Record or replay what happens in a function, each call a session, or in a ``with`` block.

    ``mode``: ``record``, ``replay``, ``extend`` (the recording answers what it knows, the rest goes live and is
    kept) or ``off``; not given: the variable ``REWIND_MODE``, else ``record``.
    ``of``: what to replay, an id, a name or the path of a ``.rw``; not given: ``cassette``, else the newest session of
    this name. ``cassette``: a ``.rw`` file that is written when a recording ends.
    ``tools``: whether a replay gives the recorded results of ``@rewind.tool`` functions, or runs them (``live``).
    ``on_miss``: what becomes of requests that a replay could not answer, at its end: ``raise`` ReplayMiss, or only
    ``report`` them in ``misses``.
    The others are those of ``rewind record`` and ``rewind replay``, and add to the project's settings as there.
    """
    asked = dict(locals())  # every argument by its name
    if not (name is None or isinstance(name, str) or callable(name)):
        raise usage_error(f"The name of a session must be a string, not {name!r}.")
    asked["tags"] = tags or {}
    if name is None or isinstance(name, str):
        return SessionMaker(asked)
    return SessionMaker({**asked, "name": None})(name)
