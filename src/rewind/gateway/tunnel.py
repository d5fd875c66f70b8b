"""An untouched tunnel for hosts that are not recorded: bytes in, bytes out."""

import asyncio
from collections.abc import Callable
from typing import cast


class TunnelEnd(asyncio.Protocol):
    """One end of a tunnel; what comes in here goes out at the other."""

    def __init__(self, over: Callable[[], None] | None = None) -> None:
        """``over`` is called when its connection is no more."""
        self._when_over = over
        self._transport: asyncio.Transport | None = None
        self._other: TunnelEnd | None = None
        self._early: list[bytes] = []
        self._finished = False
        self._over = False

    def join(self, other: "TunnelEnd") -> None:
        """Make these two the ends of one tunnel."""
        self._other, other._other = other, self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports are not subclasses
        for data in self._early:
            self._transport.write(data)
        if self._over:
            self._transport.close()
        elif self._finished:
            self._transport.write_eof()

    def data_received(self, data: bytes) -> None:
        assert self._other is not None, "joined before it is read"
        self._other.send(data)

    def send(self, data: bytes) -> None:
        if self._transport is None:
            self._early.append(data)
        else:
            self._transport.write(data)

    def eof_received(self) -> bool:
        """This side has said all; it may still be listening."""
        assert self._other is not None, "joined before it is read"
        self._other.finish()
        return True

    def finish(self) -> None:
        """Nothing more will be sent from here."""
        self._finished = True
        if self._transport is None:
            return
        if self._other is not None and self._other._finished:
            self.close()
            self._other.close()
        else:
            self._transport.write_eof()

    def close(self) -> None:
        self._over = True
        if self._transport is not None:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._when_over is not None:
            self._when_over()
        if self._other is not None:
            self._other.close()

    def pause_writing(self) -> None:
        if self._other is not None and self._other._transport is not None:
            self._other._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._other is not None and self._other._transport is not None:
            self._other._transport.resume_reading()
