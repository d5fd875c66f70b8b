"""A function whose every call is a session: plain, ``async``, generator or async generator, it stays what it is.

A generator's session is bound only while the generator's own body runs: what its consumer does between two items is
none of the session's business.
"""

from __future__ import annotations

import functools
import types

from rewind.sdk.modes import usage_error

TYPE_CHECKING = False  # typing's own would have to be imported, and a program that carries this pays for it
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from typing import Any, Protocol

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
    """The function, each call of it in a scope of its own."""
    refuse_class(function)
    if isinstance(function, classmethod | staticmethod):
        return type(function)(wrapped(function.__func__, opened))
    match kind_of(function):
        case "async generator":
            return _async_generator(function, opened)
        case "generator":
            return _generator(function, opened)
        case "async":
            return _coroutine(function, opened)
        case _:
            return _plain(function, opened)


def refuse_class(function: Any) -> None:
    """Raises UsageError: a class is made once and used for long, so it is no call."""
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
        token = scope.bind()
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            scope.unbind(token)
            scope.end(error)
            raise
        scope.unbind(token)
        if isinstance(result, types.CoroutineType):
            # Some other decorator hid that it is ``async``: the call is over when this has been awaited.
            return _awaited(result, scope)
        scope.end(None)
        return result

    return call


async def _awaited(rest: Any, scope: Scope) -> Any:
    token = scope.bind()
    try:
        result = await rest
    except BaseException as error:
        scope.unbind(token)
        await scope.end_async(error)
        raise
    scope.unbind(token)
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
            result = yield from _driven(body, scope)
        except BaseException as error:
            scope.end(error)
            raise
        scope.end(None)
        return result

    return call


def _driven(body: Generator[Any, Any, Any], scope: Scope) -> Generator[Any, Any, Any]:
    """``yield from body``, bound while the body runs."""

    def moved(move: Callable[..., Any], *given: Any) -> tuple[bool, Any]:
        token = scope.bind()
        try:
            return True, move(*given)
        except StopIteration as stop:
            return False, stop.value
        finally:
            scope.unbind(token)

    going, item = moved(body.send, None)
    while going:
        try:
            sent = yield item
        except GeneratorExit:
            moved(body.close)
            raise
        except BaseException as error:  # noqa: BLE001  the consumer throws it into the body
            going, item = moved(body.throw, error)
        else:
            going, item = moved(body.send, sent)
    return item


def _async_generator(function: Callable[..., Any], opened: Callable[[], Scope]) -> Any:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        body = function(*args, **kwargs)
        scope = opened()
        await scope.begin_async()

        async def moved(move: Callable[..., Any], *given: Any) -> tuple[bool, Any]:
            token = scope.bind()
            try:
                return True, await move(*given)
            except StopAsyncIteration:
                return False, None
            finally:
                scope.unbind(token)

        try:
            going, item = await moved(body.asend, None)
            while going:
                try:
                    sent = yield item
                except GeneratorExit:
                    await moved(body.aclose)
                    raise
                except BaseException as error:  # noqa: BLE001  the consumer throws it into the body
                    going, item = await moved(body.athrow, error)
                else:
                    going, item = await moved(body.asend, sent)
        except BaseException as error:
            await scope.end_async(error)
            raise
        await scope.end_async(None)

    return call
