"""Dialling an origin: directly, by a detour, or through a parent proxy; and every failure is told as one."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from rewind.gateway import dial
from rewind.gateway.dial import Dialer, UpstreamFailed, excepted
from rewind.gateway.exchange import Origin
from rewind.gateway.options import ParentProxy, UpstreamOptions

OPENAI = Origin("https", "api.openai.com", 443)


def dialer(environ: dict[str, str] | None = None, **options: Any) -> Dialer:
    return Dialer(UpstreamOptions(**options), environ or {})


# Which way


def test_the_first_detour_that_fits_is_taken() -> None:
    found = dialer(connect_to=("api.openai.com:8443:[::1]:1", "api.openai.com:443:127.0.0.1:2", "::127.0.0.1:3"))
    assert found.address(OPENAI) == ("127.0.0.1", 2)
    assert found.address(Origin("https", "api.openai.com", 8443)) == ("::1", 1)
    assert found.address(Origin("http", "anything.else", 80)) == ("127.0.0.1", 3)


def test_without_a_detour_the_origin_itself_is_dialled() -> None:
    assert dialer(connect_to=("other.example:443:127.0.0.1:2",)).address(OPENAI) == ("api.openai.com", 443)


def test_a_detour_for_an_ipv6_origin() -> None:
    found = dialer(connect_to=("[::1]:11434:127.0.0.1:9",))
    assert found.address(Origin("http", "::1", 11434)) == ("127.0.0.1", 9)


@pytest.mark.parametrize(
    ("no_proxy", "host", "around"),
    [
        ("api.openai.com", "api.openai.com", True),
        ("openai.com", "api.openai.com", True),
        (".openai.com", "api.openai.com", True),
        ("*.openai.com", "api.openai.com", True),
        ("openai.com", "notopenai.com", False),
        ("OpenAI.com", "api.openai.com", True),
        ("api.openai.com:443", "api.openai.com", True),
        ("*", "api.openai.com", True),
        ("a, b ,openai.com", "api.openai.com", True),
        ("", "api.openai.com", False),
        (",", "api.openai.com", False),
        ("::1", "::1", True),
        ("[::1]", "::1", True),
        ("[::1]:11434", "::1", True),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
    ],
)
def test_no_proxy(no_proxy: str, host: str, around: bool) -> None:
    assert excepted(host, no_proxy) is around


def test_the_users_own_proxy_variables_are_obeyed_in_any_spelling() -> None:
    found = dialer({"HTTPS_PROXY": "http://one:1", "http_proxy": "http://two:2", "NO_PROXY": "local.example"})
    assert found.parent(OPENAI) == ParentProxy("one", 1, None)
    assert found.parent(Origin("http", "h.example", 80)) == ParentProxy("two", 2, None)
    assert found.parent(Origin("https", "local.example", 443)) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost", "models.localhost"])
def test_a_server_on_this_machine_is_not_asked_through_the_users_proxy_unless_the_flag_says_so(host: str) -> None:
    origin = Origin("http", host, 11434)
    assert dialer({"HTTP_PROXY": "http://corp:3128", "ALL_PROXY": "http://corp:3128"}).parent(origin) is None
    assert dialer(proxy="http://corp:3128").parent(origin) == ParentProxy("corp", 3128, None)


def test_all_proxy_stands_in_for_the_others() -> None:
    assert dialer({"ALL_PROXY": "http://all:3"}).parent(OPENAI) == ParentProxy("all", 3, None)


def test_the_flag_outweighs_the_variables_and_their_exceptions() -> None:
    found = dialer({"HTTPS_PROXY": "http://one:1", "NO_PROXY": "*"}, proxy="http://flag:9")
    assert found.parent(OPENAI) == ParentProxy("flag", 9, None)


def test_a_detour_outweighs_any_proxy() -> None:
    found = dialer({}, proxy="http://flag:9", connect_to=("api.openai.com:443:127.0.0.1:2",))
    assert found.parent(OPENAI) is None


# Failures: a relay waits for UpstreamFailed and nothing else, so anything else would leave the agent waiting


async def opening(found: Dialer, origin: Origin) -> None:
    transport = await found.open(origin, asyncio.Protocol())
    transport.abort()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def test_a_refused_connection_is_told() -> None:
    with pytest.raises(UpstreamFailed, match=r"127\.0\.0\.1:"):
        asyncio.run(opening(dialer(), Origin("http", "127.0.0.1", free_port())))


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "a..b", "bad\x00name"])
def test_a_name_that_cannot_be_resolved_at_all_is_told(host: str) -> None:
    with pytest.raises(UpstreamFailed):
        asyncio.run(opening(dialer(), Origin("http", host, 80)))


def test_a_proxy_variable_that_cannot_be_used_is_told() -> None:
    with pytest.raises(UpstreamFailed, match="socks5"):
        asyncio.run(opening(dialer({"ALL_PROXY": "socks5://127.0.0.1:1080"}), OPENAI))


def test_an_origin_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dial, "DIAL_TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        detour = f"api.openai.com:443:127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(UpstreamFailed, match="did not answer within"):
            asyncio.run(opening(dialer(connect_to=(detour,)), OPENAI))


# A parent proxy


class Proxy:
    """Answers one CONNECT with the bytes it was given, and keeps what it was asked."""

    def __init__(self, answer: bytes, *, stays: bool = True) -> None:
        self.head = b""
        self._answer = answer
        self._stays = stays
        self.done: asyncio.Future[None] | None = None

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self.done is not None, "somebody waits for the end"
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            self.head = await reader.readuntil(b"\r\n\r\n")
            writer.write(self._answer)
            await writer.drain()
            if self._stays:
                await reader.read()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        self.done.set_result(None)


class Listening(asyncio.Protocol):
    """Keeps the first bytes that come."""

    def __init__(self) -> None:
        self.came: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        if not self.came.done():
            self.came.set_result(data)


async def through(proxy: Proxy, url: str, origin: Origin = OPENAI, names: Callable[..., Any] | None = None) -> bytes:
    proxy.done = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    if names is not None:
        asyncio.get_running_loop().getaddrinfo = names(port)  # type: ignore[method-assign]
    try:
        listening = Listening()
        transport = await dialer(proxy=url.format(port=port)).open(origin, listening, tunnel=True)
        try:
            return await asyncio.wait_for(listening.came, 5)
        finally:
            transport.abort()
    finally:
        await asyncio.wait_for(proxy.done, 5)
        server.close()
        await server.wait_closed()


def test_a_tunnel_is_asked_of_the_parent_with_its_credentials_and_no_byte_of_it_is_lost() -> None:
    proxy = Proxy(b"HTTP/1.1 200 OK\r\nX-Proxy: 1\r\n\r\nfirst bytes of the tunnel")
    assert asyncio.run(through(proxy, "http://ann:secret@127.0.0.1:{port}")) == b"first bytes of the tunnel"
    assert proxy.head == (
        b"CONNECT api.openai.com:443 HTTP/1.1\r\nHost: api.openai.com:443\r\n"
        b"Proxy-Authorization: Basic YW5uOnNlY3JldA==\r\n\r\n"
    )


def test_an_ipv6_origin_is_named_in_brackets() -> None:
    proxy = Proxy(b"HTTP/1.1 200 OK\r\n\r\n!")
    asyncio.run(through(proxy, "http://127.0.0.1:{port}", Origin("https", "2001:db8::1", 443)))
    assert proxy.head.startswith(b"CONNECT [2001:db8::1]:443 HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("answer", "told"),
    [(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "407"), (b"", "closed"), (b"garbage\r\n\r\n", "garbage")],
)
def test_a_parent_that_refuses_is_named(answer: bytes, told: str) -> None:
    with pytest.raises(UpstreamFailed, match=told):
        asyncio.run(through(Proxy(answer, stays=False), "http://127.0.0.1:{port}"))


def test_every_address_of_the_parent_is_tried() -> None:
    """``localhost`` is ::1 first on many machines, and the proxy listens on 127.0.0.1 alone."""
    refused = free_port()

    def names(port: int) -> Callable[..., Any]:
        async def resolved(*_: object, **__: object) -> list[tuple[Any, ...]]:
            place = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
            return [(*place, ("127.0.0.1", refused)), (*place, ("127.0.0.1", port))]

        return resolved

    proxy = Proxy(b"HTTP/1.1 200 OK\r\n\r\n!")
    assert asyncio.run(through(proxy, "http://localhost:{port}", names=names)) == b"!"
