"""Where a request is meant to go, from the door it came through."""

import pytest

from rewind.gateway.exchange import Origin
from rewind.gateway.http1 import BadMessage, IncomingRequest
from rewind.gateway.targets import UNKNOWN_PORT, NoOrigin, aim, origin_of

OWN_PORT = 8181


def aimed(
    target: str, *lines: str, method: str = "GET", host: str = "h.example", fixed: Origin | None = None
) -> tuple[str, str, bytes]:
    """The origin, the target, and the head that goes there."""
    fields = "".join(f"{line}\r\n" for line in (f"Host: {host}", *lines))
    raw = f"{method} {target} HTTP/1.1\r\n{fields}\r\n".encode("latin-1")
    head, wire = aim(IncomingRequest(raw), fixed, OWN_PORT)
    return f"{head.scheme}://{head.host}:{head.port}", head.target, wire


def first_line(wire: bytes) -> bytes:
    return wire.partition(b"\r\n")[0]


# Inside a tunnel and behind SNI


def test_inside_a_tunnel_nothing_of_the_head_is_changed() -> None:
    origin, target, wire = aimed(
        "/v1/chat", "Proxy-Connection: keep-alive", "X-A: 1", fixed=Origin("https", "api.openai.com", 443)
    )
    assert (origin, target) == ("https://api.openai.com:443", "/v1/chat")
    assert wire == b"GET /v1/chat HTTP/1.1\r\nHost: h.example\r\nProxy-Connection: keep-alive\r\nX-A: 1\r\n\r\n"


def test_behind_sni_the_port_comes_from_the_host_header() -> None:
    door = Origin("https", "api.openai.com", UNKNOWN_PORT)
    assert aimed("/", host="api.openai.com:8443", fixed=door)[0] == "https://api.openai.com:8443"
    assert aimed("/", host="api.openai.com", fixed=door)[0] == "https://api.openai.com:443"


# A proxied URL


def test_a_proxied_url_loses_its_origin_and_what_was_said_to_the_proxy() -> None:
    origin, target, wire = aimed(
        "http://Models.Example:8000/v1/chat?x=1",
        "Proxy-Authorization: Basic eA==",
        "Proxy-Connection: keep-alive",
        "X-Kept: 1",
        host="models.example:8000",
    )
    assert (origin, target) == ("http://models.example:8000", "/v1/chat?x=1")
    assert wire == b"GET /v1/chat?x=1 HTTP/1.1\r\nHost: models.example:8000\r\nX-Kept: 1\r\n\r\n"


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://h.example", "/"),
        ("http://h.example?x=1", "/?x=1"),
        ("http://h.example/x?", "/x?"),
        ("http://h.example/a//b/../c;p=1?q=%2F&&", "/a//b/../c;p=1?q=%2F&&"),
        ("http://user:pw@h.example/x", "/x"),
    ],
)
def test_the_rest_of_a_proxied_url_is_taken_as_it_stands(url: str, target: str) -> None:
    origin, aimed_at, wire = aimed(url)
    assert (origin, aimed_at) == ("http://h.example:80", target)
    assert first_line(wire) == f"GET {target} HTTP/1.1".encode()


def test_a_scheme_may_be_written_in_capitals() -> None:
    assert aimed("HTTP://H.example/x")[:2] == ("http://h.example:80", "/x")


def test_a_proxied_https_url_is_asked_with_tls() -> None:
    assert aimed("https://h.example/x")[0] == "https://h.example:443"


def test_ipv6_authorities() -> None:
    assert aimed("http://[::1]:11434/api/chat", host="[::1]:11434")[0] == "http://::1:11434"
    assert aimed("/api/chat", host="[::1]:11434")[0] == "http://::1:11434"
    assert origin_of("[2001:DB8::1]", "https") == Origin("https", "2001:db8::1", 443)


@pytest.mark.parametrize("target", ["http://[::1/x", "http://h:99999/x", "http://h:port/x", "http:///x"])
def test_an_authority_that_is_none_is_refused(target: str) -> None:
    with pytest.raises(BadMessage):
        aimed(target)


def test_a_path_that_looks_like_an_authority_is_only_a_path() -> None:
    origin, target, _ = aimed("//[x/y")
    assert (origin, target) == ("http://h.example:80", "//[x/y")


@pytest.mark.parametrize("authority", ["", ":443", "[::1", "a:b:c"])
def test_what_is_no_host_and_port_is_refused(authority: str) -> None:
    with pytest.raises(BadMessage):
        origin_of(authority, "https")


# A redirected request


def test_a_redirected_request_goes_to_the_host_it_names_untouched() -> None:
    origin, target, wire = aimed("/api/chat", "X-A:  odd ", host="127.0.0.1:11434")
    assert (origin, target) == ("http://127.0.0.1:11434", "/api/chat")
    assert wire == b"GET /api/chat HTTP/1.1\r\nHost: 127.0.0.1:11434\r\nX-A:  odd \r\n\r\n"


# HTTP/2 on plain connections

OFFER = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAQAA")


@pytest.mark.parametrize("target", ["/api/chat", "http://h.example/api/chat", "/http/h.example/api/chat"])
def test_an_offer_of_http2_is_not_passed_on(target: str) -> None:
    own = target.startswith("/http/")
    _, _, wire = aimed(target, *OFFER, "X-A: 1", host=f"127.0.0.1:{OWN_PORT}" if own else "h.example")
    assert wire == b"GET /api/chat HTTP/1.1\r\nHost: h.example\r\nX-A: 1\r\n\r\n"


def test_a_websocket_whose_key_happens_to_spell_h2c_is_still_a_websocket() -> None:
    lines = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: AAh2cAAAAAAAAAAAAAAAAA==")
    _, _, wire = aimed("/h2c", *lines)
    assert b"Connection: Upgrade\r\nUpgrade: websocket\r\n" in wire


# The base-URL door


@pytest.mark.parametrize("own", [f"127.0.0.1:{OWN_PORT}", f"localhost:{OWN_PORT}", f"[::1]:{OWN_PORT}"])
@pytest.mark.parametrize("through_proxy", [False, True])
def test_base_urls_lead_to_their_provider_also_through_the_proxy(own: str, through_proxy: bool) -> None:
    start = f"http://{own}" if through_proxy else ""
    origin, target, wire = aimed(f"{start}/openai/v1/models?limit=1", host=own)
    assert (origin, target) == ("https://api.openai.com:443", "/v1/models?limit=1")
    assert wire == b"GET /v1/models?limit=1 HTTP/1.1\r\nHost: api.openai.com\r\n\r\n"


@pytest.mark.parametrize(
    ("path", "origin", "host"),
    [
        ("/https/my.example/v1/x", "https://my.example:443", b"my.example"),
        ("/https/my.example:8443/v1/x", "https://my.example:8443", b"my.example:8443"),
        ("/http/my.example:8000/v1/x", "http://my.example:8000", b"my.example:8000"),
        ("/http/[::1]:8000/v1/x", "http://::1:8000", b"[::1]:8000"),
    ],
)
def test_a_base_url_may_name_any_origin(path: str, origin: str, host: bytes) -> None:
    found, target, wire = aimed(path, host=f"127.0.0.1:{OWN_PORT}")
    assert (found, target) == (origin, "/v1/x")
    assert wire == b"GET /v1/x HTTP/1.1\r\nHost: " + host + b"\r\n\r\n"


@pytest.mark.parametrize("path", ["/", "/favicon.ico", "/unknown/v1/x"])
def test_a_door_nobody_knows_is_named_with_those_that_exist(path: str) -> None:
    with pytest.raises(NoOrigin, match=r"/openai/.*/https/HOST/"):
        aimed(path, host=f"127.0.0.1:{OWN_PORT}")


def test_a_base_url_without_a_host_is_refused() -> None:
    with pytest.raises(BadMessage):
        aimed("/https//v1/x", host=f"127.0.0.1:{OWN_PORT}")
