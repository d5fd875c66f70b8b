"""The calls of one tool inside a session: run and recorded, or answered by the recording.

A request is ``{"arguments": {…}}``: equal calls are equal bytes, and others are not: a ``Decimal`` is not its text, nor
a tuple a list. An answer is ``{"result": …}`` or ``{"error": "…", "exception": {…}}``. Beside both stands in ``types``
what JSON cannot say. The result of a generator are its items, with ``"generator": true``, what it ``returned``, and
``"closed": true`` where its consumer stopped early.
"""

import inspect
import json
import time
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from rewind.dataclass import dataclass
from rewind.errors import ResultLost, RewindError, ToolFailed
from rewind.model.tool_call import PlayedTool
from rewind.sdk.decorators import driven, undriven
from rewind.sdk.values.failures import restored_failure, serialised_failure
from rewind.sdk.values.objects import KnownClasses, returned_classes
from rewind.sdk.values.serialise import SerialisedValue, ValueLost, as_json, restore, serialise, serialise_checked

if TYPE_CHECKING:
    from rewind.model.tool_call import RunningTool
    from rewind.sdk.decorators import AsyncDriver
    from rewind.sdk.outer_run import ToolListener

Args = Sequence[Any]
Kwargs = Mapping[str, Any]
_OWNERS = ("self", "cls")
"""Whoever the tool belongs to is not an argument of it."""
_CANCELLED = "asyncio.exceptions.CancelledError"
_PATIENCE = 5.0
"""Seconds for which a call that was cancelled when it was recorded waits longer than it did then."""


class ToolFunction:
    """One function under ``@rewind.tool``, and what becomes of its calls."""

    def __init__(self, function: Callable[..., Any], name: str, ignore: Collection[str]) -> None:
        self._function = function
        self._name = name
        self._ignore = ignore

    @cached_property
    def _arguments(self) -> "ArgumentBinder":
        return ArgumentBinder(self._function, self._ignore)

    @cached_property
    def _classes(self) -> KnownClasses:
        # At the first call every class that an annotation names is there.
        return returned_classes(self._function)

    def plain(self, run: "ToolListener", args: Args, kwargs: Kwargs) -> Any:
        call = self._begin(run, args, kwargs)
        if isinstance(call, ReplayedCall):
            call.wait()
            return call.result()
        try:
            result = self._function(*args, **kwargs)
        except BaseException as error:
            call.failed(error)
            raise
        call.returned(result)
        return result

    async def coroutine(self, run: "ToolListener", args: Args, kwargs: Kwargs) -> Any:
        call = self._begin(run, args, kwargs)
        if isinstance(call, ReplayedCall):
            await call.wait_async()
            return call.result()
        try:
            result = await self._function(*args, **kwargs)
        except BaseException as error:
            call.failed(error)
            raise
        call.returned(result)
        return result

    def generator(self, run: "ToolListener", args: Args, kwargs: Kwargs) -> Generator[Any, Any, Any]:
        call = self._begin(run, args, kwargs)
        if isinstance(call, ReplayedCall):
            call.wait()
            yield from call.items()
            return call.result()

        def resume(move: Callable[..., Any], *given: Any) -> Any:
            item = move(*given)
            if given:  # not where it is closed
                call.yielded(item)
            return item

        try:
            result = yield from driven(self._function(*args, **kwargs), resume)
        except BaseException as error:
            call.failed(error)
            raise
        call.returned(result, generator=True)
        return result

    def async_generator(self, run: "ToolListener", args: Args, kwargs: Kwargs) -> "AsyncDriver":
        call = self._begin(run, args, kwargs)
        if isinstance(call, ReplayedCall):
            return undriven(call.items_async())

        async def resume(move: Callable[..., Any], *given: Any) -> Any:
            item = await move(*given)
            if given:
                call.yielded(item)
            return item

        async def end(error: BaseException | None) -> None:
            if error is None:
                call.returned(None, generator=True)
            else:
                call.failed(error)

        return self._function(*args, **kwargs), resume, end

    def _begin(
        self, run: "ToolListener", args: Args, kwargs: Kwargs
    ) -> "ReplayedCall | RecordedToolCall | UnrecordedCall":
        """Raises RewindError where a replay has no answer. A recording that goes wrong leaves the tool alone."""
        try:
            return self._begun(run, args, kwargs)
        except RewindError:
            raise
        except Exception as error:
            if run.offline:
                raise  # in a replay, to run the tool instead would be the wrong answer
            self._remark(run, f"a call was not recorded: {type(error).__name__}")
            return UnrecordedCall()

    def _begun(
        self, run: "ToolListener", args: Args, kwargs: Kwargs
    ) -> "ReplayedCall | RecordedToolCall | UnrecordedCall":
        request, classes = self._arguments.request(args, kwargs), self._classes
        if request is None:
            return UnrecordedCall()  # the function itself will refuse these arguments
        call = run.tool(self._name, request.body)
        if isinstance(call, PlayedTool):
            return ReplayedCall(self._name, classes, call)
        for kind in request.vague:
            self._remark(
                run, f"arguments of the class {kind} cannot be told apart: give it a __repr__, or ignore the argument"
            )
        return RecordedToolCall(classes, call, partial(self._remark, run))

    def _remark(self, run: "ToolListener", why: str) -> None:
        run.unrecorded(f"tool {self._name}", why)


# ── what was asked ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """One call, as it is looked up and kept."""

    body: bytes
    vague: tuple[str, ...] = ()
    """The classes of arguments of which only a text is kept that does not tell two of them apart."""


class ArgumentBinder:
    """Names the arguments of one function's calls."""

    def __init__(self, function: Callable[..., Any], ignore: Collection[str]) -> None:
        try:
            self._signature: inspect.Signature | None = inspect.signature(function)
        except Exception:  # noqa: BLE001  some functions written in C have none, and a class may give anything
            self._signature = None
        parameters = () if self._signature is None else self._signature.parameters
        first = next(iter(parameters), None)
        self._left_out = {*ignore, *((first,) if first in _OWNERS else ())}

    def request(self, args: Args, kwargs: Kwargs) -> ToolRequest | None:
        """``None`` for a call that the function itself will refuse."""
        named = self._named(args, kwargs)
        if named is None:
            return None
        written = serialise({name: value for name, value in named.items() if name not in self._left_out})
        types = {"types": dict(written.types)} if written.types else {}
        return ToolRequest(body=as_json({"arguments": written.plain, **types}), vague=written.vague)

    def _named(self, args: Args, kwargs: Kwargs) -> dict[str, Any] | None:
        signature = self._signature
        if signature is None:
            return ({"args": list(args)} if args else {}) | dict(kwargs)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return None
        bound.apply_defaults()
        named: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            match signature.parameters[name].kind:
                case inspect.Parameter.VAR_KEYWORD if not value.keys() & named.keys():
                    named |= value
                case inspect.Parameter.VAR_POSITIONAL:
                    if value:
                        named[name] = list(value)
                case _:
                    named[name] = value
        return named


# ── what was answered ────────────────────────────────────────────────────────────────────────────────────────


class ReplayedCall:
    """A call that the recording answers."""

    def __init__(self, name: str, classes: KnownClasses, played: PlayedTool) -> None:
        self._name = name
        self._classes = classes
        self._played = played
        self._answer = _object(played.body)

    def result(self) -> Any:
        """What it returned; raises what it raised."""
        answer = self._answer
        if "error" in answer:
            raise restored_failure(self._name, answer)
        if answer.get("closed"):
            raise ToolFailed(self._name, "GeneratorExit", "its consumer stopped after these items")
        if answer.get("generator"):
            return self._restored(answer.get("returned"), answer.get("returned_types"))
        return self._restored(answer.get("result"), answer.get("types"))

    def items(self) -> Iterator[Any]:
        """What it yielded, each read when it is asked for."""
        given = self._answer.get("yielded" if "error" in self._answer else "result")
        types = self._answer.get("types")
        by_item: dict[str, dict[str, str]] = {}
        for at, form in types.items() if isinstance(types, dict) else ():
            number, _, rest = at.removeprefix("/").partition("/")
            by_item.setdefault(number, {})["/" + rest if rest else ""] = form
        for number, plain in enumerate(given if isinstance(given, list) else ()):
            yield self._restored(plain, by_item.get(str(number)))

    async def items_async(self) -> AsyncGenerator[Any, Any]:
        await self._take_time()
        for item in self.items():
            yield item
        self.result()

    def wait(self) -> None:
        """Take as long as the replay wants it."""
        if self._played.delay > 0:
            time.sleep(self._played.delay)

    async def wait_async(self) -> None:
        """The same, while others go on. A call that its caller had cancelled waits for that again: the same time limit
        ends it as it did then."""
        kept = self._answer.get("exception")
        if isinstance(kept, dict) and kept.get("type") == _CANCELLED:
            import asyncio

            await asyncio.sleep(self._played.ms / 1000 * 2 + _PATIENCE)
        await self._take_time()

    async def _take_time(self) -> None:
        if self._played.delay > 0:
            import asyncio

            try:
                asyncio.get_running_loop()
            except RuntimeError:  # trio, or a coroutine driven by hand
                self.wait()
            else:
                await asyncio.sleep(self._played.delay)

    def _restored(self, plain: Any, types: Any) -> Any:
        value = SerialisedValue(plain=plain, types=types if isinstance(types, dict) else {})
        try:
            return restore(value, self._classes)
        except ValueLost as why:
            raise ResultLost(
                f"The tool {self._name!r} cannot be replayed from step {self._played.step}: {why}.",
                hint="Name its class in the tool's return annotation and record again, or replay with tools='live'.",
            ) from None


class RecordedToolCall:
    """A call that runs now, and is recorded."""

    def __init__(self, classes: KnownClasses, call: "RunningTool", remark: Callable[[str], None]) -> None:
        """``remark`` is told where a replay will not be able to give the result back."""
        self._classes = classes
        self._call = call
        self._remark = remark
        self._items: list[SerialisedValue] = []

    def yielded(self, item: Any) -> None:
        """Written at once: whoever gets it may change it."""
        self._items.append(self._serialised(item))

    def returned(self, result: Any, *, generator: bool = False) -> None:
        written = self._serialised(result)
        answer: dict[str, Any] = {"result": written.plain}
        if generator:
            answer = self._items_as("result", generator=True)
            if result is not None:
                answer["returned"] = written.plain
        if written.types:
            answer["returned_types" if generator else "types"] = dict(written.types)
        self._end(200, answer)

    def failed(self, error: BaseException) -> None:
        if isinstance(error, GeneratorExit):
            self._end(200, self._items_as("result", generator=True, closed=True))
            return
        answer = serialised_failure(error)
        if isinstance(error, Exception) and (lost := answer["exception"].get("lost")) is not None:
            self._remark(f"a replay raises ToolFailed instead of what it raised: {lost}")
        if self._items:
            answer |= self._items_as("yielded")
        self._end(500, answer)

    def _end(self, status: int, answer: Mapping[str, Any]) -> None:
        """Whatever goes wrong here, the tool has done its work, and its caller hears of that alone."""
        try:
            self._call.ended(status, as_json(answer))
        except Exception as error:  # noqa: BLE001  ours or a stranger's: kept as a call without an answer
            self._remark(f"its answer was not recorded: {type(error).__name__}")
            self._call.abandoned(f"the answer could not be written: {type(error).__name__}")

    def _serialised(self, value: Any) -> SerialisedValue:
        written = serialise_checked(value, self._classes)
        if written.lost is not None:
            self._remark(f"a replay cannot give back what it returned: {written.lost}")
        for plainer in written.plainer:
            self._remark(f"a replay gives back {plainer}, which is what its annotation promises")
        return written

    def _items_as(self, key: str, **more: Any) -> dict[str, Any]:
        types = {f"/{number}{at}": form for number, item in enumerate(self._items) for at, form in item.types.items()}
        return {key: [item.plain for item in self._items], **more, **({"types": types} if types else {})}


class UnrecordedCall:
    """A call that is not recorded."""

    def yielded(self, item: Any) -> None: ...

    def returned(self, result: Any, *, generator: bool = False) -> None: ...

    def failed(self, error: BaseException) -> None: ...


def _object(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    return answer if isinstance(answer, dict) else {"types": {"": "lost: damaged record"}}
