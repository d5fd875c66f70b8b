"""A guard on real sockets: nothing leaves this machine, and everything on it works as ever."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop

from rewind.inprocess.run import Guard, Offline

FAR = ("192.0.2.1", 443)  # RFC 5737: nobody's


@pytest.fixture
def guard() -> Iterator[Guard]:
    found = Guard(offline_error=lambda url: f"no way to {url}")
    found.start()
    token = found.activate()
    yield found
    found.deactivate(token)
    found.finish()


@pytest.fixture
def echo() -> Iterator[tuple[str, int]]:
    """A server on loopback that says everything once again."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                with sock:
                    sock.sendall(sock.recv(100))

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_connection_by_name_is_stopped_and_no_resolver_is_asked(guard: Guard) -> None:
    with pytest.raises(Offline, match=r"no way to https://host\.invalid") as caught:
        socket.create_connection(("host.invalid", 443), timeout=1)  # a resolver would say that it does not know it
    assert caught.value.url == "https://host.invalid"
    assert guard.blocked == ["https://host.invalid"]


def test_a_connection_by_address_is_stopped(guard: Guard) -> None:
    with socket.socket() as sock:
        with pytest.raises(ConnectionError, match="no way to"):
            sock.connect(FAR)
        assert sock.connect_ex(FAR) != 0
    with socket.socket(socket.AF_INET6) as sock, pytest.raises(Offline):
        sock.connect(("2001:db8::1", 80))
    assert guard.finish() == ("https://192.0.2.1", "https://192.0.2.1", "http://[2001:db8::1]")


def test_datagrams_are_stopped(guard: Guard) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        with pytest.raises(Offline):
            sock.connect(("192.0.2.1", 53))
        with pytest.raises(Offline):
            sock.sendto(b"x", ("192.0.2.1", 53))
        with pytest.raises(Offline):
            sock.sendmsg([b"x"], [], 0, ("192.0.2.1", 53))
    assert guard.blocked == ["192.0.2.1:53"] * 3


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_event_loops_are_stopped_too(
    guard: Guard, echo: tuple[str, int], loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def work() -> bytes:
        here = asyncio.get_running_loop()
        with pytest.raises(Offline, match=r"https://host\.invalid"):
            await asyncio.open_connection("host.invalid", 443, ssl=ssl.create_default_context())
        with pytest.raises(Offline):
            await asyncio.open_connection(*FAR)
        with pytest.raises(Offline):
            await here.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=("192.0.2.1", 53))
        reader, writer = await asyncio.open_connection("localhost", echo[1], family=socket.AF_INET)
        writer.write(b"hello")
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(work()) == b"hello"
    assert guard.blocked == ["https://host.invalid", "https://192.0.2.1", "192.0.2.1:53"]


MODEL = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:9\r\nX: " + b"a" * 20_000 + b"\r\n\r\n{}"
PROXIED = b"CONNECT host.invalid:443 HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize("head", [MODEL, PROXIED], ids=["a model server", "a proxy"])
def test_a_request_in_the_clear_is_read_whole_however_it_is_written(guard: Guard, head: bytes) -> None:
    writings: list[Callable[[socket.socket], object]] = [
        lambda sock: sock.sendall(head),
        lambda sock: [sock.sendall(piece) for piece in (head[:3], head[3:50], head[50:])],  # type: ignore[func-returns-value]
        lambda sock: sock.sendmsg(iter((head[:10], memoryview(head)[10:]))),
    ]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for write in writings:
            with socket.create_connection(listener.getsockname()) as sock, pytest.raises(Offline):
                write(sock)
            far, _ = listener.accept()
            with far:
                assert len(far.recv(100_000)) < len(head) and far.recv(1) == b""


def test_what_is_no_request_is_free_and_a_head_without_end_is_not(guard: Guard) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for free in (b"GET", b"GET key\r\n", b"POSTSCRIPT\n" + b"x" * 999, b"GET /health HTTP/1.1\r\n\r\n"):
            with socket.create_connection(listener.getsockname()) as sock:
                sock.sendall(free[:2])
                sock.sendall(free[2:])
        assert guard.blocked == []
        with socket.create_connection(listener.getsockname()) as sock, pytest.raises(Offline):
            sock.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 300_000)


@pytest.mark.parametrize("write", ["write", "writelines"])
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_request_in_the_clear_is_seen_on_every_event_loop(
    guard: Guard, echo: tuple[str, int], loop: Callable[[], asyncio.AbstractEventLoop], write: str
) -> None:
    async def work() -> bytes:
        reader, writer = await asyncio.open_connection(*echo)
        with suppress(OSError):
            writer.write(PROXIED) if write == "write" else writer.writelines([PROXIED[:9], PROXIED[9:]])
        try:
            return await reader.read()
        except OSError:
            return b""
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    with asyncio.Runner(loop_factory=loop) as runner:
        assert b"\r\n\r\n" not in runner.run(work())
    assert guard.blocked == ["https://host.invalid"]


def test_tls_under_a_name_that_may_not_be_reached_is_not_begun(guard: Guard, echo: tuple[str, int]) -> None:
    """On this machine: a proxy that speaks SOCKS would lead there."""
    context = ssl.create_default_context()
    with socket.create_connection(echo) as sock, pytest.raises(Offline, match=r"https://host\.invalid"):
        context.wrap_socket(sock, server_hostname="host.invalid")
    with pytest.raises(Offline):
        context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="host.invalid")
    assert context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="localhost")
    assert context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=socket.gethostname())


def test_this_machine_is_always_free(guard: Guard, echo: tuple[str, int], tmp_path: Path) -> None:
    for host in ("127.0.0.1", "localhost"):
        with socket.create_connection((host, echo[1])) as sock:
            sock.sendall(b"hello")
            assert sock.recv(100) == b"hello"
    left, right = socket.socketpair()
    with left, right:
        left.sendall(b"pair")
        assert right.recv(10) == b"pair"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        client.connect(str(tmp_path / "s"))
        client.sendall(b"unix")
    assert socket.getaddrinfo(socket.gethostname(), None) is not None
    assert guard.blocked == []


def test_a_socket_that_was_connected_before_is_stopped_when_it_is_written_to(echo: tuple[str, int]) -> None:
    """The address of this machine that is not loopback stands for the world here."""
    outside = _own_address()
    with socket.create_server((outside, 0)) as listener, socket.create_connection(listener.getsockname()) as sock:
        far, _ = listener.accept()
        with far:
            guard = Guard()
            guard.start()
            token = guard.activate()
            with pytest.raises(Offline):
                sock.sendall(b"secret")
            guard.deactivate(token)
            guard.finish()
            assert far.recv(10) == b""


def test_allowed_hosts_are_free_by_name_and_by_the_address_that_the_name_has() -> None:
    outside = _own_address()
    with socket.create_server((outside, 0)) as listener:
        guard = Guard(allowed_hosts=(outside,))
        guard.start()
        token = guard.activate()
        with socket.create_connection(listener.getsockname()) as sock:
            sock.sendall(b"hello")
        guard.deactivate(token)
        assert guard.finish() == ()


def test_a_guard_that_is_the_default_stops_every_thread_and_then_lets_go() -> None:
    guard = Guard()
    guard.start()
    guard.make_default()
    found: list[BaseException] = []

    def attempt() -> None:
        try:
            socket.create_connection(("host.invalid", 443))
        except OSError as error:
            found.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    guard.finish()
    attempt()
    assert isinstance(found[0], Offline)
    assert isinstance(found[1], socket.gaierror)


def _own_address() -> str:
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(FAR)  # no packet is sent
        except OSError:
            pytest.skip("this machine has no network at all")
        return str(probe.getsockname()[0])
