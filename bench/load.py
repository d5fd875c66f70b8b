"""Make calls over one connection or many and time each; prebuilt requests, answers read by their length."""

import select
import ssl
import time
from collections.abc import Sequence

from bench.dial import PATIENCE, Route
from bench.traffic import MARK


class WrongAnswer(Exception):
    """What came back is not the answer to what was asked."""


class Answer:
    """One response in the making."""

    __slots__ = ("_read", "_wanted")

    def __init__(self) -> None:
        self._read = b""
        self._wanted = 0

    def feed(self, data: bytes) -> bytes | None:
        """The whole response once it is there."""
        if not data:
            raise ConnectionError(f"the connection closed after {self._read[:200]!r}")
        read = self._read = self._read + data if self._read else data
        if not self._wanted:
            end = read.find(b"\r\n\r\n")
            if end < 0:
                return None
            head = read[:end].lower()
            at = head.find(b"content-length:")
            if at < 0 or head[9:12] != b"200":
                raise WrongAnswer(repr(read[:500]))
            self._wanted = end + 4 + int(head[at + 15 :].split(b"\r\n", 1)[0])
        if len(read) < self._wanted:
            return None
        self._read, self._wanted = b"", 0
        return read


def check(request: bytes, response: bytes) -> None:
    asked, told = request.rfind(MARK), response.rfind(MARK)
    if told < 0 or request[asked : asked + 13] != response[told : told + 13]:
        raise WrongAnswer(f"asked {request[asked : asked + 13]!r}, told {response[-200:]!r}")


def one_by_one(route: Route, requests: Sequence[bytes], *, fresh: bool = False) -> list[int]:
    """Nanoseconds of each call, made one after the other; ``fresh``: each on a connection of its own."""
    took = []
    connection = None if fresh else route.open()
    for request in requests:
        began = time.perf_counter_ns()
        line = connection or route.open()
        line.sendall(request)
        answer = Answer()
        while (response := answer.feed(line.recv(65536))) is None:
            pass
        took.append(time.perf_counter_ns() - began)
        check(request, response)
        if connection is None:
            line.close()
    return took


def all_at_once(opened: Sequence[ssl.SSLSocket], requests: Sequence[bytes]) -> tuple[list[int], int]:
    """Nanoseconds of each call and of the whole, with every connection busy all the time."""
    poll = select.poll()
    lines: dict[int, tuple[ssl.SSLSocket, Answer]] = {}
    for line in opened:
        line.setblocking(False)
        lines[line.fileno()] = (line, Answer())
        poll.register(line, select.POLLIN)
    waiting = iter(requests)
    asked: dict[int, tuple[bytes, int]] = {}
    took: list[int] = []
    clock = time.perf_counter_ns
    began = clock()
    for number, (line, _) in lines.items():
        request = next(waiting)
        asked[number] = (request, clock())
        line.sendall(request)  # one small request per connection always fits the socket's buffer
    while asked:
        ready = poll.poll(PATIENCE * 1000)
        if not ready:
            raise TimeoutError(f"{len(asked)} calls are unanswered after {PATIENCE:.0f} s")
        for number, _ in ready:
            line, answer = lines[number]
            try:
                response = answer.feed(line.recv(65536))
            except ssl.SSLWantReadError:
                continue  # a session ticket, or half a record
            while response is None and line.pending():
                response = answer.feed(line.recv(65536))
            if response is None:
                continue
            request, sent = asked.pop(number)
            now = clock()
            took.append(now - sent)
            check(request, response)
            if (following := next(waiting, None)) is not None:
                asked[number] = (following, clock())
                line.sendall(following)
    return took, clock() - began


def streams(route: Route, requests: Sequence[bytes]) -> tuple[list[int], list[int], list[int]]:
    """Nanoseconds to the first event of each stream, of each event on its way, and from first to last event."""
    firsts, transits, spreads = [], [], []
    connection = route.open()
    for request in requests:
        sent = time.monotonic_ns()
        connection.sendall(request)
        read = b""
        arrivals: list[int] = []
        while not read.endswith(b"0\r\n\r\n"):
            data = connection.recv(65536)
            now = time.monotonic_ns()
            if not data:
                raise ConnectionError(f"the stream broke after {read[-200:]!r}")
            # An event cut in two counts when its second half is here.
            seen = len(arrivals)
            read += data
            stamps = read.split(b'"sent":')[1:]
            for stamp in stamps[seen:]:
                if b"}" in stamp:
                    arrivals.append(now)
                    transits.append(now - int(stamp.partition(b"}")[0]))
        if not arrivals:
            raise WrongAnswer(repr(read[:500]))
        firsts.append(arrivals[0] - sent)
        spreads.append(arrivals[-1] - arrivals[0])
    return firsts, transits, spreads
