"""Decorated functions stay what they are: plain, ``async``, generator or async generator.

A generator's session is bound only while the generator's own body runs: what its consumer does between two items is
none of the session's business.
"""

from __future__ import annotations

import functools
import types

from rewind.sdk.modes import usage_error

TYPE_CHECKING = False  # typing's own would have to be imported, and a program that carries this pays for it
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
    from typing import Any, Protocol

    AsyncDriver = tuple[
        AsyncGenerator[Any, Any], Callable[..., Awaitable[Any]], Callable[[BaseException | None], Awaitable[None]]
    ]
    """The body of an async generator, what runs each step of it, and what is called when it is over."""

    class Scope(Protocol):
        """One session around one call."""

        def begin(self) -> None: ...

        async def begin_async(self) -> None: ...

        def bind(self) -> object:
            """What happens in this context now belongs to the session, until ``unbind``."""
            ...

        def unbind(self, token: Any) -> None: ...

        def end(self, error: BaseException | None) -> None:
            """Ends the session. Raises what a replay has to say, unless the call failed by itself."""
            ...

        async def end_async(self, error: BaseException | None) -> None: ...


_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200
"""Flags of a function's code (``inspect.CO_…``): ``inspect`` itself costs more than all that is loaded here."""
_ROUTINES = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodDescriptorType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
)


def wrapped(function: Any, opened: Callable[[], Scope]) -> Any:
    """The function; each call of it runs in a new scope."""
    refuse_class(function)
    if isinstance(function, classmethod | staticmethod):
        return type(function)(wrapped(function.__func__, opened))
    match kind_of(function):
        case "async generator":

            async def begin(args: Any, kwargs: Any) -> AsyncDriver:
                body, scope = function(*args, **kwargs), opened()
                await scope.begin_async()
                return body, functools.partial(_bound_async, scope), scope.end_async

            return async_generator_wrapper(function, begin)
        case "generator":
            return _generator(function, opened)
        case "async":
            return _coroutine(function, opened)
        case _:
            return _plain(function, opened)


def refuse_class(function: Any) -> None:
    """Raises UsageError: a class is created once and used for long, so it is not one call."""
    if isinstance(function, type):
        raise usage_error(f"{function.__qualname__} is a class: decorate its methods instead.")


def kind_of(function: Any) -> str:
    """``plain``, ``async``, ``generator`` or ``async generator``."""
    called = function
    if not isinstance(function, (*_ROUTINES, functools.partial)) and not hasattr(function, "__code__"):
        called = getattr(type(function), "__call__", function)  # noqa: B004  an object that can be called
    while isinstance(called, functools.partial | types.MethodType):
        called = called.func if isinstance(called, functools.partial) else called.__func__
    flags = getattr(getattr(called, "__code__", None), "co_flags", 0)
    if flags & _ASYNC_GENERATOR:
        return "async generator"
    if flags & _GENERATOR:
        return "generator"
    # The second is what ``inspect.markcoroutinefunction`` leaves.
    return "async" if flags & _COROUTINE or hasattr(called, "_is_coroutine_marker") else "plain"


def _plain(function: Callable[..., Any], opened: Callable[[], Scope]) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        scope = opened()
        scope.begin()
        try:
            result = _bound(scope, functools.partial(function, *args, **kwargs))
        except BaseException as error:
            scope.end(error)
            raise
        if isinstance(result, types.CoroutineType):
            # Some other decorator hid that it is ``async``: the call is over when this has been awaited.
            return _awaited(result, scope)
        scope.end(None)
        return result

    return call


async def _awaited(rest: Any, scope: Scope) -> Any:
    try:
        result = await _bound_async(scope, lambda: rest)
    except BaseException as error:
        await scope.end_async(error)
        raise
    await scope.end_async(None)
    return result


def _coroutine(function: Callable[..., Any], opened: Callable[[], Scope]) -> Any:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        rest = function(*args, **kwargs)  # wrong arguments are refused here, before any session
        scope = opened()
        try:
            await scope.begin_async()
        except BaseException:
            rest.close()
            raise
        return await _awaited(rest, scope)

    return call


def _generator(function: Callable[..., Any], opened: Callable[[], Scope]) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        body = function(*args, **kwargs)
        scope = opened()
        scope.begin()
        try:
            result = yield from driven(body, functools.partial(_bound, scope))
        except BaseException as error:
            scope.end(error)
            raise
        scope.end(None)
        return result

    return call


def _bound(scope: Scope, move: Callable[..., Any], *given: Any) -> Any:
    token = scope.bind()
    try:
        return move(*given)
    finally:
        scope.unbind(token)


async def _bound_async(scope: Scope, move: Callable[..., Any], *given: Any) -> Any:
    token = scope.bind()
    try:
        return await move(*given)
    finally:
        scope.unbind(token)


# ── generators ───────────────────────────────────────────────────────────────────────────────────────────────


def driven(body: Generator[Any, Any, Any], resume: Callable[..., Any]) -> Generator[Any, Any, Any]:
    """``yield from body``, each step of it run by ``resume(move, *given)``."""
    move: Callable[..., Any] = body.send
    given: Any = None
    while True:
        try:
            item = resume(move, given)
        except StopIteration as stop:
            return stop.value
        try:
            given = yield item
            move = body.send
        except GeneratorExit:
            resume(body.close)
            raise
        except BaseException as error:  # noqa: BLE001  the consumer throws it into the body
            move, given = body.throw, error


def async_generator_wrapper(function: Callable[..., Any], begin: Callable[[Any, Any], Awaitable[AsyncDriver]]) -> Any:
    """The same for async generators, which have no ``yield from``: so it is the decorated function itself."""

    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        body, resume, end = await begin(args, kwargs)
        move: Callable[..., Any] = body.asend
        given: Any = None
        try:
            while True:
                try:
                    item = await resume(move, given)
                except StopAsyncIteration:
                    break
                try:
                    given = yield item
                    move = body.asend
                except GeneratorExit:
                    await resume(body.aclose)
                    raise
                except BaseException as error:  # noqa: BLE001  the consumer throws it into the body
                    move, given = body.athrow, error
        except BaseException as error:
            await end(error)
            raise
        await end(None)

    return call


def undriven(body: AsyncGenerator[Any, Any]) -> AsyncDriver:
    """An async generator whose steps need nothing around them."""
    return body, _step, _nothing


async def _step(move: Callable[..., Any], *given: Any) -> Any:
    return await move(*given)


async def _nothing(_error: BaseException | None) -> None:
    return None
