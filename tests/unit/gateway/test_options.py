"""The way to the providers as a user writes it down: understood, or refused in one sentence."""

from pathlib import Path

import pytest

from rewind.errors import UsageError
from rewind.gateway.options import Detour, ParentProxy, UpstreamOptions


@pytest.mark.parametrize(
    ("rule", "detour"),
    [
        ("api.openai.com:443:127.0.0.1:8443", Detour("api.openai.com", "443", "127.0.0.1", 8443)),
        ("API.OpenAI.com:443:Local.Host:1", Detour("api.openai.com", "443", "Local.Host", 1)),
        ("::127.0.0.1:8443", Detour("", "", "127.0.0.1", 8443)),
        ("api.openai.com::127.0.0.1:8443", Detour("api.openai.com", "", "127.0.0.1", 8443)),
        (":443:127.0.0.1:8443", Detour("", "443", "127.0.0.1", 8443)),
        ("api.openai.com:443:[::1]:8443", Detour("api.openai.com", "443", "::1", 8443)),
        ("[2001:DB8::1]:443:[::1]:65535", Detour("2001:db8::1", "443", "::1", 65535)),
    ],
)
def test_a_detour_is_read_as_curl_reads_it(rule: str, detour: Detour) -> None:
    assert UpstreamOptions(connect_to=(rule,)).detours == (detour,)


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "api.openai.com",
        "api.openai.com:443",
        "api.openai.com:443:127.0.0.1",
        "api.openai.com:443::8443",
        "api.openai.com:443:127.0.0.1:",
        "api.openai.com:443:127.0.0.1:https",
        "api.openai.com:443:127.0.0.1:65536",
        "api.openai.com:443:127.0.0.1:0",
        "api.openai.com:443:127.0.0.1:²",
        "api.openai.com:https:127.0.0.1:8443",
        "api.openai.com:443:127.0.0.1:8443:1",
        "api.openai.com:443:[::1:8443",
        "api.openai.com:443:::1:8443",
    ],
)
def test_a_detour_that_cannot_be_meant_is_one_clear_error(rule: str) -> None:
    with pytest.raises(UsageError, match=r"is not HOST:PORT:ADDR:PORT\.") as caught:
        UpstreamOptions(connect_to=(rule,)).check({})
    assert repr(rule) in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://proxy.corp:3128", ParentProxy("proxy.corp", 3128, None)),
        ("proxy.corp:3128", ParentProxy("proxy.corp", 3128, None)),
        ("http://proxy.corp", ParentProxy("proxy.corp", 80, None)),
        ("http://proxy.corp/", ParentProxy("proxy.corp", 80, None)),
        ("http://[::1]:3128", ParentProxy("::1", 3128, None)),
        ("http://ann:secret@proxy.corp:3128", ParentProxy("proxy.corp", 3128, "Basic YW5uOnNlY3JldA==")),
        ("http://ann:p%40ss%3A@proxy.corp", ParentProxy("proxy.corp", 80, "Basic YW5uOnBAc3M6")),
        ("http://ann@proxy.corp", ParentProxy("proxy.corp", 80, "Basic YW5uOg==")),
    ],
)
def test_a_parent_proxy_and_its_credentials(url: str, proxy: ParentProxy) -> None:
    assert UpstreamOptions(proxy=url).parent == proxy


@pytest.mark.parametrize(
    "url",
    [
        "https://proxy.corp:3128",
        "socks5://ann:hunter2@proxy.corp:1080",
        "http://",
        "http://:3128",
        "http://ann:hunter2@proxy.corp:99999",
        "http://ann:hunter2@proxy.corp:port",
        "http://ann:hunter2@[::1",
    ],
)
def test_a_parent_proxy_that_cannot_be_used_is_one_clear_error_without_its_password(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        UpstreamOptions(proxy=url).check({})
    assert "parent proxy" in caught.value.message
    assert "hunter2" not in f"{caught.value.message} {caught.value.hint} {caught.value.__cause__}"


def test_a_file_of_certificates_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        UpstreamOptions(ca=tmp_path / "missing.pem").check({})


def test_a_file_of_certificates_must_hold_certificates(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    with pytest.raises(UsageError, match=r"wrong\.pem"):
        UpstreamOptions(ca=wrong).check({})


def test_nothing_asked_for_is_nothing_to_complain_about() -> None:
    UpstreamOptions().check({})
    assert UpstreamOptions().detours == ()
    assert UpstreamOptions().parent is None
