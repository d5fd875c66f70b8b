"""Exchanges that leave no trace, what the agent is told where nobody answers, and a guard against bugs of ours."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from rewind.gateway.exchange import Exchange, Pass, Play, Reply, Verdict
from rewind.model.http import Headers, RequestHead, ResponseHead
from rewind.model.step import Ending
from rewind.playback.tape import empty_answer
from rewind.providers.telemetry import UploadRow

T = TypeVar("T")

MISS_STATUS = 424
"""SDKs retry 408, 409, 429 and 5xx; this one they do not, and no provider uses it."""


class PassThrough:
    """An exchange that is not recorded: it passes untouched."""

    def early(self) -> bool:
        return True

    def arrived(self, body: bytes | None) -> Verdict:
        return Pass()

    def answer_began(self, head: ResponseHead) -> None: ...

    def answer_piece(self, data: bytes, *, ends_chunk: bool) -> None: ...

    def about_to_show(self) -> None: ...

    async def answer_ended(self, ending: Ending, *, trailers: Headers = (), reason: str | None = None) -> None: ...

    def frame_agrees(self, recorded: str, sent: str) -> bool:
        return recorded == sent

    def missed(self, reason: str) -> None: ...


class RefusedExchange(PassThrough):
    """An exchange that replay will not let out."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def early(self) -> bool:
        return False

    def arrived(self, body: bytes | None) -> Verdict:
        return refusal({"error": {"message": f"rewind: {self._reason}"}}, self._reason)


class ThankedUpload(PassThrough):
    """Telemetry for a host that is not recorded: nobody is told, and the agent need not know."""

    def __init__(self, head: RequestHead, row: UploadRow) -> None:
        self._head = head
        self._row = row

    def early(self) -> bool:
        return False

    def arrived(self, body: bytes | None) -> Verdict:
        return Play(response=empty_answer(self._row, self._head), ending=Ending.COMPLETE)


class UnreachableHost(PassThrough):
    """A host that replay speaks as for its uploads alone: for the rest it is as far away as any other."""

    def early(self) -> bool:
        return False

    def arrived(self, body: bytes | None) -> Verdict:
        return Play(response=None, ending=Ending.NO_ANSWER)


def refusal(payload: dict[str, Any], reason: str, *, word: str = "Miss") -> Reply:
    """A refusal that SDKs do not retry, and that a person can recognise."""
    line = reason.encode("ascii", "replace").decode().replace("\r", " ").replace("\n", " ")
    return Reply(
        status=MISS_STATUS,
        reason=f"Rewind {word}",
        headers=(
            ("Content-Type", "application/json"),
            (f"x-rewind-{word.lower()}", line[:500]),
            ("x-should-retry", "false"),
        ),
        body=json.dumps(payload).encode(),
        message=reason,
    )


class FaultGuard:
    """An exchange that goes on unrecorded when recording it fails; the run's end says so.

    A bug while recording must never reach the agent.
    """

    def __init__(
        self, exchange: Exchange, remark: Callable[[str, str], None], *, otherwise: Verdict | None = None
    ) -> None:
        """``otherwise`` is the verdict for a request that could not be decided on; by default it passes."""
        self._exchange = exchange
        self._remark = remark
        self._otherwise = otherwise or Pass()
        self._failed = False

    def early(self) -> bool:
        return self._exchange.early()

    def arrived(self, body: bytes | None) -> Verdict:
        return self._attempt(lambda: self._exchange.arrived(body)) or self._otherwise

    def answer_began(self, head: ResponseHead) -> None:
        self._attempt(lambda: self._exchange.answer_began(head))

    def answer_piece(self, data: bytes, *, ends_chunk: bool) -> None:
        self._attempt(lambda: self._exchange.answer_piece(data, ends_chunk=ends_chunk))

    def about_to_show(self) -> None:
        self._attempt(self._exchange.about_to_show)

    async def answer_ended(self, ending: Ending, *, trailers: Headers = (), reason: str | None = None) -> None:
        if self._failed:
            return
        try:
            await self._exchange.answer_ended(ending, trailers=trailers, reason=reason)
        except Exception as error:  # noqa: BLE001  see the class's second sentence
            self._note(error)

    def frame_agrees(self, recorded: str, sent: str) -> bool:
        return self._exchange.frame_agrees(recorded, sent)

    def missed(self, reason: str) -> None:
        self._exchange.missed(reason)

    def _attempt(self, work: Callable[[], T]) -> T | None:
        if self._failed:
            return None
        try:
            return work()
        except Exception as error:  # noqa: BLE001  see the class's second sentence
            self._note(error)
            return None

    def _note(self, error: Exception) -> None:
        self._failed = True
        self._remark("a bug in Rewind", f"a step was not recorded: {error!r}")
