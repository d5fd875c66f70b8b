"""Exchanges that leave no trace, and what the agent is told where nobody answers."""

import json
from typing import Any

from rewind.gateway.exchange import Pass, Refusal, Verdict
from rewind.model.http import Headers, ResponseHead
from rewind.model.step import Ending

MISS_STATUS = 424
"""SDKs retry 408, 409, 429 and 5xx; this one they do not, and no provider uses it."""


class PassThrough:
    """An exchange that is none of our business: it passes untouched and leaves no trace."""

    def early(self) -> bool:
        return True

    def arrived(self, body: bytes | None) -> Verdict:
        return Pass()

    def answer_began(self, head: ResponseHead) -> None: ...

    def answer_piece(self, data: bytes, *, ends_chunk: bool) -> None: ...

    def about_to_show(self) -> None: ...

    async def answer_ended(
        self, ending: Ending, *, trailers: Headers = (), reason: str | None = None
    ) -> None: ...

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


def refusal(payload: dict[str, Any], reason: str, *, word: str = "Miss") -> Refusal:
    """A refusal that SDKs do not retry, and that a person can recognise."""
    line = reason.encode("ascii", "replace").decode().replace("\r", " ").replace("\n", " ")
    return Refusal(
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
