"""The calls of one tool inside a session: run and kept, or answered by the recording."""

from collections.abc import AsyncGenerator, Callable, Collection, Generator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rewind.errors import RewindError
from rewind.sdk.answers import Kept, Recorded, Untold
from rewind.sdk.arguments import Arguments
from rewind.sdk.values.objects import Classes, classes_in

if TYPE_CHECKING:
    from rewind.inprocess.run import InProcessRun

Args = Sequence[Any]
Kwargs = Mapping[str, Any]


class ToolCalls:
    """One function, and what becomes of its calls."""

    def __init__(self, function: Callable[..., Any], name: str, ignore: Collection[str]) -> None:
        self._function = function
        self._name = name
        self._ignore = ignore
        self._arguments: Arguments | None = None
        self._classes: Classes | None = None

    def plain(self, run: "InProcessRun", args: Args, kwargs: Kwargs) -> Any:
        call = self._begin(run, args, kwargs)
        if isinstance(call, Recorded):
            return call.result()
        try:
            result = self._function(*args, **kwargs)
        except BaseException as error:
            call.failed(error)
            raise
        call.returned(result)
        return result

    async def coroutine(self, run: "InProcessRun", args: Args, kwargs: Kwargs) -> Any:
        call = self._begin(run, args, kwargs)
        if isinstance(call, Recorded):
            await call.wait_for_the_cancelling()
            return call.result()
        try:
            result = await self._function(*args, **kwargs)
        except BaseException as error:
            call.failed(error)
            raise
        call.returned(result)
        return result

    def generator(self, run: "InProcessRun", args: Args, kwargs: Kwargs) -> Generator[Any, Any, Any]:
        call = self._begin(run, args, kwargs)
        if isinstance(call, Recorded):
            yield from call.items()
            return call.result()
        try:
            result = yield from _told_of(self._function(*args, **kwargs), call.yielded)
        except BaseException as error:
            call.failed(error)
            raise
        call.returned(result, generator=True)
        return result

    async def async_generator(
        self, run: "InProcessRun", args: Args, kwargs: Kwargs
    ) -> AsyncGenerator[Any, Any]:
        call = self._begin(run, args, kwargs)
        if isinstance(call, Recorded):
            for item in call.items():
                yield item
            call.result()
            return
        body = self._function(*args, **kwargs)
        move: Callable[..., Any] = body.asend
        given: Any = None
        try:
            while True:
                try:
                    item = await move(given)
                except StopAsyncIteration:
                    break
                call.yielded(item)
                try:
                    given = yield item
                    move = body.asend
                except GeneratorExit:
                    await body.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001  the consumer throws it into the body
                    move, given = body.athrow, error
        except BaseException as error:
            call.failed(error)
            raise
        call.returned(None, generator=True)

    def _begin(self, run: "InProcessRun", args: Args, kwargs: Kwargs) -> "Recorded | Kept | Untold":
        """Raises RewindError where a replay has no answer. A recording that goes wrong leaves the tool alone."""
        try:
            return self._begun(run, args, kwargs)
        except RewindError:
            raise
        except Exception as error:
            if run.rules.offline:
                raise  # in a replay, to run the tool instead would be the wrong answer
            self._remark(run, f"a call was not recorded: {type(error).__name__}")
            return Untold()

    def _begun(self, run: "InProcessRun", args: Args, kwargs: Kwargs) -> "Recorded | Kept | Untold":
        from rewind.inprocess.tool_calls import PlayedTool

        if self._arguments is None:
            self._arguments = Arguments(self._function, self._ignore)
        if self._classes is None:
            # At the first call every class that an annotation names is there.
            self._classes = classes_in(self._function)
        request = self._arguments.request(args, kwargs)
        if request is None:
            return Untold()  # the function itself will refuse these arguments
        found = run.tool(self._name, request.body)
        if isinstance(found, PlayedTool):
            return Recorded(self._name, self._classes, found)
        for kind in request.vague:
            self._remark(
                run,
                f"nothing tells one argument of the class {kind} from another: give it a __repr__, or ignore it",
            )
        return Kept(self._classes, found, partial(self._remark, run))

    def _remark(self, run: "InProcessRun", why: str) -> None:
        run.unrecorded(f"tool {self._name}", why)


def _told_of(body: Generator[Any, Any, Any], told: Callable[[Any], None]) -> Generator[Any, Any, Any]:
    """``yield from body``, with somebody told of each item."""
    move: Callable[..., Any] = body.send
    given: Any = None
    while True:
        try:
            item = move(given)
        except StopIteration as stop:
            return stop.value
        told(item)
        try:
            given = yield item
            move = body.send
        except GeneratorExit:
            body.close()
            raise
        except BaseException as error:  # noqa: BLE001  the consumer throws it into the body
            move, given = body.throw, error
