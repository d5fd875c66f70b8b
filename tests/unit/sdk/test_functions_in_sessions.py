"""A decorated function stays what it was: plain, async, generator or async generator; and it is bound as it runs."""

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pytest

import rewind
from rewind.sdk.decorators import kind_of, wrapped


@dataclass
class Diary:
    """A scope that notes what it is told; ``bound`` counts whose turn it is."""

    entries: list[str] = field(default_factory=list)
    bound: int = 0

    def begin(self) -> None:
        self.entries.append("begin")

    async def begin_async(self) -> None:
        await asyncio.sleep(0)
        self.begin()

    def bind(self) -> object:
        self.bound += 1
        return self.bound

    def unbind(self, token: Any) -> None:
        assert token == self.bound
        self.bound -= 1

    def end(self, error: BaseException | None) -> None:
        assert self.bound == 0
        self.entries.append(f"end {type(error).__name__ if error is not None else 'well'}")

    async def end_async(self, error: BaseException | None) -> None:
        await asyncio.sleep(0)
        self.end(error)


@pytest.fixture
def diary() -> Diary:
    return Diary()


@pytest.fixture
def decorated(diary: Diary) -> Callable[[Any], Any]:
    return lambda function: wrapped(function, lambda: diary)


def plain(a: int, /, b: str = "x", *, c: float) -> str:
    """What it does."""
    return f"{a}{b}{c}"


async def later(a: int) -> int:
    return a


def items(a: int) -> Iterator[int]:
    yield a


async def later_items(a: int) -> AsyncIterator[int]:
    yield a


@pytest.mark.parametrize("function", [plain, later, items, later_items])
def test_what_a_function_is_can_still_be_told(decorated: Callable[[Any], Any], function: Any) -> None:
    made = decorated(function)
    for question in (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction):
        assert question(made) == question(function)
    assert inspect.signature(made) == inspect.signature(function)
    assert (made.__name__, made.__doc__, made.__wrapped__) == (function.__name__, function.__doc__, function)
    assert made.__annotations__ == function.__annotations__


def test_a_plain_call(decorated: Callable[[Any], Any], diary: Diary) -> None:
    assert decorated(plain)(1, "y", c=2.0) == "1y2.0"
    assert diary.entries == ["begin", "end well"]


def test_an_exception_passes_untouched(decorated: Callable[[Any], Any], diary: Diary) -> None:
    failure = ValueError("mine")

    @decorated
    def fails() -> None:
        assert diary.bound == 1
        raise failure

    with pytest.raises(ValueError) as caught:
        fails()
    assert caught.value is failure
    assert caught.value.__context__ is None
    assert diary.entries == ["begin", "end ValueError"]


def test_an_async_call_and_its_cancelling(decorated: Callable[[Any], Any], diary: Diary) -> None:
    @decorated
    async def waits() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        assert await decorated(later)(3) == 3
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await waits()

    asyncio.run(main())
    assert diary.entries == ["begin", "end well", "begin", "end CancelledError"]


def test_wrong_arguments_begin_no_session(decorated: Callable[[Any], Any], diary: Diary) -> None:
    async def main() -> None:
        with pytest.raises(TypeError):
            await decorated(later)()
        with pytest.raises(TypeError):
            await anext(decorated(later_items)())

    asyncio.run(main())
    with pytest.raises(TypeError):
        next(decorated(items)())
    assert diary.entries == []


def test_a_plain_function_that_gives_a_coroutine_is_in_session_until_that_is_done(
    decorated: Callable[[Any], Any], diary: Diary
) -> None:
    made = decorated(lambda: later(5))

    async def main() -> None:
        waiting = made()
        assert diary.entries == ["begin"]
        assert await waiting == 5

    asyncio.run(main())
    assert diary.entries == ["begin", "end well"]


def test_a_generator_is_bound_only_while_its_body_runs(decorated: Callable[[Any], Any], diary: Diary) -> None:
    @decorated
    def talk() -> Generator[Any, Any, Any]:
        assert diary.bound == 1
        heard = yield "first"
        assert diary.bound == 1
        try:
            yield f"heard {heard}"
        except KeyError as error:
            yield f"caught {error}"
        return "done"

    running = talk()
    assert diary.entries == [], "nothing happens before the first item is asked for"
    assert next(running) == "first"
    assert diary.bound == 0
    assert running.send("you") == "heard you"
    assert running.throw(KeyError("k")) == "caught 'k'"
    assert diary.bound == 0
    with pytest.raises(StopIteration) as stop:
        next(running)
    assert stop.value.value == "done"
    assert diary.entries == ["begin", "end well"]


def test_closing_a_generator_lets_its_body_clean_up(decorated: Callable[[Any], Any], diary: Diary) -> None:
    @decorated
    def talk() -> Iterator[int]:
        try:
            yield 1
        finally:
            diary.entries.append(f"cleaned up, bound {diary.bound}")

    running = talk()
    next(running)
    running.close()
    assert diary.entries == ["begin", "cleaned up, bound 1", "end GeneratorExit"]


def test_an_exception_thrown_into_a_generator_that_does_not_catch_it(
    decorated: Callable[[Any], Any], diary: Diary
) -> None:
    running = decorated(items)(1)
    next(running)
    with pytest.raises(KeyError):
        running.throw(KeyError("k"))
    assert diary.entries == ["begin", "end KeyError"]


def test_an_async_generator_is_bound_only_while_its_body_runs(decorated: Callable[[Any], Any], diary: Diary) -> None:
    @decorated
    async def talk() -> AsyncIterator[Any]:
        assert diary.bound == 1
        heard = yield "first"
        await asyncio.sleep(0)
        assert diary.bound == 1
        try:
            yield f"heard {heard}"
        except KeyError as error:
            yield f"caught {error}"
        finally:
            diary.entries.append(f"cleaned up, bound {diary.bound}")

    async def main() -> None:
        async with aclosing(talk()) as running:
            assert await anext(running) == "first"
            assert diary.bound == 0
            assert await running.asend("you") == "heard you"
            assert await running.athrow(KeyError("k")) == "caught 'k'"
            assert diary.bound == 0
        assert diary.entries == ["begin", "cleaned up, bound 1", "end GeneratorExit"]
        assert [item async for item in decorated(later_items)(7)] == [7]

    asyncio.run(main())
    assert diary.entries[3:] == ["begin", "end well"]


def test_methods_class_methods_and_static_methods(decorated: Callable[[Any], Any], diary: Diary) -> None:
    class Desk:
        @decorated
        def who(self) -> Any:
            return self

        @decorated
        @classmethod
        def kind(cls) -> Any:
            return cls

        @classmethod
        @decorated
        def other_kind(cls) -> Any:
            return cls

        @decorated
        @staticmethod
        def nobody(text: str) -> str:
            return text

    desk = Desk()
    assert desk.who() is desk
    assert (Desk.kind(), desk.other_kind(), desk.nobody("x")) == (Desk, Desk, "x")
    assert diary.entries == ["begin", "end well"] * 4


class Caller:
    async def __call__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (plain, "plain"),
        (functools.partial(later, 1), "async"),
        (Caller(), "async"),
        (items, "generator"),
        (later_items, "async generator"),
        (len, "plain"),
    ],
    ids=["function", "partial", "callable", "generator", "async generator", "builtin"],
)
def test_kinds_of_functions(function: Any, kind: str) -> None:
    assert kind_of(function) == kind


@pytest.mark.parametrize("decorator", [rewind.session, rewind.tool, rewind.session("x"), rewind.tool(name="x")])
def test_a_class_is_neither_session_nor_tool(decorator: Any) -> None:
    with pytest.raises(rewind.RewindError, match="Caller is a class"):
        decorator(Caller)
