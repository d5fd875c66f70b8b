"""``@rewind.tool`` and ``rewind.note``: steps that the agent's own code makes in the session it runs in.

Outside a session, and outside of ``rewind record`` and the like, a tool simply runs, a note does nothing, and next to
nothing is loaded.
"""

from __future__ import annotations

import functools
import os
import sys

from rewind.sdk.decorators import async_generator_wrapper, kind_of, refuse_class, undriven

TYPE_CHECKING = False  # typing's own would have to be imported, and a program that carries this pays for it
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator
    from typing import Any, TypeVar, overload

    from rewind.inprocess.run import InProcessRun
    from rewind.sdk.decorators import AsyncDriver
    from rewind.sdk.outer_run import ToolListener
    from rewind.sdk.tool_calls import ToolFunction

    Function = TypeVar("Function", bound=Callable[..., Any])

if TYPE_CHECKING:  # apart: what is imported, and what is defined

    @overload
    def tool(function: Function, /) -> Function: ...

    @overload
    def tool(*, name: str | None = None, ignore: Collection[str] = ()) -> Callable[[Function], Function]: ...


def tool(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None, ignore: Collection[str] = ()
) -> Any:
    """Record the calls of this function as steps, and in a replay give back what it gave then.

    ``name`` is what the tool is called in the session, where that is not the function's own name; give it the name
    that the model knows, and the two are shown as one call. ``ignore`` names arguments that do not count when a
    replay looks for the call (a database handle, a clock).
    """
    if function is not None:
        return _wrapped(function, name, ignore)
    return lambda function: _wrapped(function, name, ignore)


def note(text: str, /, **fields: Any) -> bool:
    """Keep a note in the current session, with whatever belongs to it; False where no session is being recorded, or
    it cannot be kept."""
    run = _current_run()
    if run is None:
        return False
    from rewind.sdk.values.serialise import serialise  # lazily: outside a session nothing is loaded

    try:
        run.note(text if isinstance(text, str) else str(text), serialise(fields).plain)
    except Exception as error:  # noqa: BLE001  what is told to a recording never stops the program
        run.unrecorded("note", f"it was not recorded: {type(error).__name__}")
        return False
    return True


def _current_run() -> ToolListener | None:
    """The session of this process, the run of the command line around it, or both.

    ``None`` where nobody listens. As long as nobody began a session, the engine is not even loaded.
    """
    engine = sys.modules.get("rewind.inprocess.run")
    run: InProcessRun | None = None if engine is None else engine.current_run()
    if not os.environ.get("REWIND_TOOLS_URL"):
        return run
    from rewind.sdk.outer_run import with_outer_run  # lazily: hardly any program runs under the command line

    return with_outer_run(run)


def _wrapped(function: Any, name: str | None, ignore: Collection[str]) -> Any:
    refuse_class(function)
    if isinstance(function, classmethod | staticmethod):
        return type(function)(_wrapped(function.__func__, name, ignore))
    tool_name = name or str(getattr(function, "__name__", type(function).__name__))

    @functools.cache
    def calls() -> ToolFunction:
        from rewind.sdk.tool_calls import ToolFunction  # lazily: at the first call in a session

        return ToolFunction(function, tool_name, ignore)

    match kind_of(function):
        case "async generator":

            async def begin(args: Any, kwargs: Any) -> AsyncDriver:
                run = _current_run()
                if run is None:
                    return undriven(function(*args, **kwargs))
                return calls().async_generator(run, args, kwargs)

            return async_generator_wrapper(function, begin)
        case "generator":
            return _generator(function, calls)
        case "async":
            return _coroutine(function, calls)
        case _:
            return _plain(function, calls)


def _plain(function: Callable[..., Any], calls: Callable[[], ToolFunction]) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        run = _current_run()
        return function(*args, **kwargs) if run is None else calls().plain(run, args, kwargs)

    return call


def _coroutine(function: Callable[..., Any], calls: Callable[[], ToolFunction]) -> Any:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        run = _current_run()
        return await (function(*args, **kwargs) if run is None else calls().coroutine(run, args, kwargs))

    return call


def _generator(function: Callable[..., Any], calls: Callable[[], ToolFunction]) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        run = _current_run()
        body = function(*args, **kwargs) if run is None else calls().generator(run, args, kwargs)
        return (yield from body)

    return call
