"""The answer of one tool call: written as the tool gives it, or read back from a recording.

``{"result": …}`` or ``{"error": "…", "exception": {…}}``, and beside it in ``types`` what JSON cannot say. The result
of a generator are its items, with ``"generator": true``, what it ``returned``, and ``"closed": true`` where its
consumer wanted no more.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rewind.errors import ResultLost, ToolFailed
from rewind.sdk.values.checking import write_checked
from rewind.sdk.values.failures import failure_again, written_failure
from rewind.sdk.values.objects import Classes
from rewind.sdk.values.serialise import Lost, Written, as_json, read

if TYPE_CHECKING:
    from rewind.inprocess.tool_calls import PlayedTool, ToolUnderWay

_CANCELLED = "asyncio.exceptions.CancelledError"
_PATIENCE = 5.0
"""Seconds for which a call that was cancelled when it was recorded waits longer than it did then."""


class Recorded:
    """A call that the recording answers."""

    def __init__(self, name: str, classes: Classes, played: "PlayedTool") -> None:
        self._name = name
        self._classes = classes
        self._played = played
        self._answer = _object(played.body)

    def result(self) -> Any:
        """What it returned; raises what it raised."""
        answer = self._answer
        if "error" in answer:
            raise failure_again(self._name, answer)
        if answer.get("closed"):
            raise ToolFailed(self._name, "GeneratorExit", "its consumer had wanted no more than these items")
        if answer.get("generator"):
            return self._read(answer.get("returned"), answer.get("returned_types"))
        return self._read(answer.get("result"), answer.get("types"))

    def items(self) -> Iterator[Any]:
        """What it yielded, each read when it is asked for."""
        given = self._answer.get("yielded" if "error" in self._answer else "result")
        types = self._answer.get("types")
        by_item: dict[str, dict[str, str]] = {}
        for at, form in types.items() if isinstance(types, dict) else ():
            number, _, rest = at.removeprefix("/").partition("/")
            by_item.setdefault(number, {})["/" + rest if rest else ""] = form
        for number, plain in enumerate(given if isinstance(given, list) else ()):
            yield self._read(plain, by_item.get(str(number)))

    async def wait_for_the_cancelling(self) -> None:
        """A call that its caller had cancelled waits for that again: the same time limit ends it as it did then."""
        kept = self._answer.get("exception")
        if isinstance(kept, dict) and kept.get("type") == _CANCELLED:
            import asyncio

            await asyncio.sleep(self._played.ms / 1000 * 2 + _PATIENCE)

    def _read(self, plain: Any, types: Any) -> Any:
        try:
            return read(Written(plain=plain, types=types if isinstance(types, dict) else {}), self._classes)
        except Lost as why:
            raise ResultLost(
                f"The tool {self._name!r} cannot be replayed from step {self._played.step}: {why}.",
                hint="Name its class in the tool's return annotation and record again, or replay with tools='live'.",
            ) from None


class Kept:
    """A call that runs now, and is kept."""

    def __init__(self, classes: Classes, call: "ToolUnderWay", remark: Callable[[str], None]) -> None:
        """``remark`` is told where a replay will not be able to give the result back."""
        self._classes = classes
        self._call = call
        self._remark = remark
        self._items: list[Written] = []

    def yielded(self, item: Any) -> None:
        """Written at once: whoever gets it may change it."""
        self._items.append(self._written(item))

    def returned(self, result: Any, *, generator: bool = False) -> None:
        written = self._written(result)
        answer: dict[str, Any] = {"result": written.plain}
        if generator:
            answer = {"result": self._plain_items(), "generator": True, **self._types()}
            if result is not None:
                answer["returned"] = written.plain
        if written.types:
            answer["returned_types" if generator else "types"] = dict(written.types)
        self._tell(200, answer)

    def failed(self, error: BaseException) -> None:
        if isinstance(error, GeneratorExit):
            self._tell(
                200, {"result": self._plain_items(), "generator": True, "closed": True, **self._types()}
            )
            return
        answer = written_failure(error)
        if isinstance(error, Exception) and (lost := answer["exception"].get("lost")) is not None:
            self._remark(f"a replay raises ToolFailed instead of what it raised: {lost}")
        if self._items:
            answer |= {"yielded": self._plain_items(), **self._types()}
        self._tell(500, answer)

    def _tell(self, status: int, answer: Mapping[str, Any]) -> None:
        """Whatever goes wrong here, the tool has done its work, and its caller hears of that alone."""
        try:
            self._call.ended(status, as_json(answer))
        except Exception as error:  # noqa: BLE001  ours or a stranger's: kept as a call without an answer
            self._remark(f"its answer was not recorded: {type(error).__name__}")
            self._call.abandoned(f"the answer could not be written: {type(error).__name__}")

    def _written(self, value: Any) -> Written:
        written = write_checked(value, self._classes)
        if written.lost is not None:
            self._remark(f"a replay cannot give back what it returned: {written.lost}")
        for plainer in written.plainer:
            self._remark(f"a replay gives back {plainer}, which is what its annotation promises")
        return written

    def _plain_items(self) -> list[Any]:
        return [item.plain for item in self._items]

    def _types(self) -> dict[str, Any]:
        found = {
            f"/{number}{at}": form
            for number, item in enumerate(self._items)
            for at, form in item.types.items()
        }
        return {"types": found} if found else {}


class Untold:
    """A call that leaves no trace."""

    def yielded(self, item: Any) -> None: ...

    def returned(self, result: Any, *, generator: bool = False) -> None: ...

    def failed(self, error: BaseException) -> None: ...


def _object(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    return answer if isinstance(answer, dict) else {"types": {"": "lost: damaged record"}}
