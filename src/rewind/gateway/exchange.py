"""What the gateway tells of each request and what it is told to do: the border between sockets and decisions.

The gateway knows bytes and connections; it does not know sessions, tapes or providers. Whoever stands behind
:class:`RequestHandler` decides. All calls come on the gateway's own thread, in the order things happen on the wire.
"""

import asyncio
from enum import Enum
from typing import Protocol

from rewind.dataclass import dataclass
from rewind.model.http import Headers, HttpRequest, HttpResponse, RequestHead, ResponseHead
from rewind.model.step import Ending


class Route(Enum):
    """What happens to a connection for a host."""

    INTERCEPT = "intercept"
    TUNNEL = "tunnel"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a request is meant to go."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """Answer with a recorded response."""

    response: HttpResponse | None
    """``None``: the connection is closed without an answer, as it was in the recording."""
    ending: Ending
    pace: float = 0.0
    """0 sends at once, 1 waits as long as the recorded chunks did, other factors stretch or shrink that."""


@dataclass(frozen=True, slots=True)
class Pass:
    """Forward to the origin."""

    changed: HttpRequest | None = None
    """What is forwarded in place of the request that came: its target and body, and without ``Content-Encoding`` where
    it has none. All other lines of the head stay as the client wrote them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Answer with this instead; nobody is asked."""

    status: int
    reason: str
    headers: Headers
    body: bytes
    message: str = ""
    """Why, in one sentence, as the body says it."""


Decided = Play | Pass | Reply


@dataclass(frozen=True, slots=True)
class Hold:
    """It is decided later; the request waits, and so does whatever follows it on its connection."""

    decided: "asyncio.Future[Decided]"
    """Of the gateway's loop. The gateway cancels it when the client gives up first."""


Verdict = Decided | Hold


class Exchange(Protocol):
    """One request and its answer while they happen."""

    def early(self) -> bool:
        """True when the request may be forwarded before its body is complete."""
        ...

    def arrived(self, body: bytes | None) -> Verdict:
        """The request is complete. ``None``: the body was too large to keep."""
        ...

    def answer_began(self, head: ResponseHead) -> None:
        """The final status line and headers came (1xx are passed on, not told)."""
        ...

    def answer_piece(self, data: bytes, *, ends_chunk: bool) -> None:
        """Bytes of the body; for a WebSocket, lines of its frame log."""
        ...

    def about_to_show(self) -> None:
        """The agent is about to see all that came so far; keep it safe first."""
        ...

    async def answer_ended(self, ending: Ending, *, trailers: Headers = (), reason: str | None = None) -> None:
        """No more will come. The gateway waits for this before it releases the end of the answer."""
        ...

    def frame_agrees(self, recorded: str, sent: str) -> bool:
        """Replaying a WebSocket: whether the agent's frame means what the recorded one meant."""
        ...

    def missed(self, reason: str) -> None:
        """Replaying: the agent left the recorded conversation of a WebSocket, or an answer cannot be played on."""
        ...


class RequestHandler(Protocol):
    """Decides for hosts and requests."""

    def route(self, host: str, port: int) -> Route:
        """For a CONNECT, before anything is dialled."""
        ...

    @property
    def forwards_everything(self) -> bool:
        """True when a connection to an origin will be wanted for sure, so that it may be warmed."""
        ...

    def begin(self, head: RequestHead) -> Exchange:
        """A request's head has come."""
        ...

    def remark(self, subject: str, text: str) -> None:
        """Something a person should know at the end of the run; told once per subject and text, counted."""
        ...
