"""``@rewind.tool``: a function of the agent's own whose calls are steps of the session they happen in.

Outside a session it simply runs, and next to nothing is loaded.
"""

from __future__ import annotations

import functools

from rewind.sdk.current import current_run
from rewind.sdk.wrapping import kind_of, refuse_class

TYPE_CHECKING = False  # typing's own would have to be imported, and a program that carries this pays for it
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Generator
    from typing import Any, TypeVar, overload

    from rewind.sdk.tool_calls import ToolCalls

    Function = TypeVar("Function", bound=Callable[..., Any])

if TYPE_CHECKING:

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


def _wrapped(function: Any, name: str | None, ignore: Collection[str]) -> Any:
    refuse_class(function)
    if isinstance(function, classmethod | staticmethod):
        return type(function)(_wrapped(function.__func__, name, ignore))
    named = name or str(getattr(function, "__name__", type(function).__name__))

    @functools.cache
    def calls() -> ToolCalls:
        from rewind.sdk.tool_calls import ToolCalls  # lazily: at the first call in a session

        return ToolCalls(function, named, ignore)

    match kind_of(function):
        case "async generator":
            return _async_generator(function, calls)
        case "generator":
            return _generator(function, calls)
        case "async":
            return _coroutine(function, calls)
        case _:
            return _plain(function, calls)


def _plain(function: Callable[..., Any], calls: Callable[[], ToolCalls]) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        run = current_run()
        return function(*args, **kwargs) if run is None else calls().plain(run, args, kwargs)

    return call


def _coroutine(function: Callable[..., Any], calls: Callable[[], ToolCalls]) -> Any:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        run = current_run()
        return await (function(*args, **kwargs) if run is None else calls().coroutine(run, args, kwargs))

    return call


def _generator(function: Callable[..., Any], calls: Callable[[], ToolCalls]) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        run = current_run()
        body = function(*args, **kwargs) if run is None else calls().generator(run, args, kwargs)
        return (yield from body)

    return call


def _async_generator(function: Callable[..., Any], calls: Callable[[], ToolCalls]) -> Any:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        run = current_run()
        body = function(*args, **kwargs) if run is None else calls().async_generator(run, args, kwargs)
        # What ``yield from`` does; async generators have no such thing.
        move: Callable[..., Any] = body.asend
        given: Any = None
        while True:
            try:
                item = await move(given)
            except StopAsyncIteration:
                return
            try:
                given = yield item
                move = body.asend
            except GeneratorExit:
                await body.aclose()
                raise
            except BaseException as error:  # noqa: BLE001  the consumer throws it into the body
                move, given = body.athrow, error

    return call
