"""Where a connection of this process goes, and that children decide the same."""

import pytest

from rewind.gateway.environment import PYTHON_HOOK
from rewind.inprocess.redirect.rules import ConnectionRules, Names, Way, pairs, place, port_number, proxies, url_of
from rewind.providers.hosts import LLM_HOSTS, HostRules

RECORD = ConnectionRules(
    hosts=HostRules((*LLM_HOSTS, "*.lab.example.com")),
    endpoints=frozenset((("localhost", 11434), ("gpu-box", 8000), ("10.0.0.7", 9000))),
)
REPLAY = ConnectionRules(
    hosts=RECORD.hosts,
    endpoints=RECORD.endpoints,
    offline=True,
    allowed=HostRules(("db.internal", "*.allowed.example.com")),
)
EVERY_HOST = ConnectionRules(hosts=HostRules((), all_hosts=True))


@pytest.mark.parametrize(
    ("host", "port", "recorded", "replayed"),
    [
        ("api.openai.com", 443, Way.GATEWAY, Way.GATEWAY),
        ("API.OpenAI.com.", 443, Way.GATEWAY, Way.GATEWAY),
        ("api.openai.com", 80, Way.GATEWAY, Way.GATEWAY),
        ("x.lab.example.com", 8443, Way.GATEWAY, Way.GATEWAY),
        ("localhost", 11434, Way.GATEWAY, Way.GATEWAY),
        ("127.0.0.1", 11434, Way.GATEWAY, Way.GATEWAY),
        ("::1", 11434, Way.GATEWAY, Way.GATEWAY),
        ("::ffff:127.0.0.1", 11434, Way.GATEWAY, Way.GATEWAY),
        ("gpu-box", 8000, Way.GATEWAY, Way.GATEWAY),
        ("10.0.0.7", 9000, Way.GATEWAY, Way.GATEWAY),
        ("localhost", 5432, Way.DIRECT, Way.DIRECT),
        ("127.0.0.53", 53, Way.DIRECT, Way.DIRECT),
        ("0.0.0.0", 8080, Way.DIRECT, Way.DIRECT),
        ("anything.localhost", 80, Way.DIRECT, Way.DIRECT),
        ("db.internal", 5432, Way.DIRECT, Way.DIRECT),
        ("a.allowed.example.com", 443, Way.DIRECT, Way.DIRECT),
        ("gpu-box", 22, Way.DIRECT, Way.STOP),
        ("example.com", 443, Way.DIRECT, Way.STOP),
        ("10.0.0.7", 22, Way.DIRECT, Way.STOP),
        ("2001:db8::1", 443, Way.DIRECT, Way.STOP),
    ],
)
def test_the_way_of_a_connection(host: str, port: int, recorded: Way, replayed: Way) -> None:
    assert RECORD.way(host, port) is recorded
    assert REPLAY.way(host, port) is replayed


def test_with_all_hosts_only_the_ports_of_the_web_are_recorded() -> None:
    assert [EVERY_HOST.way("db.example.com", port) for port in (443, 80, 5432)] == [
        Way.GATEWAY,
        Way.GATEWAY,
        Way.DIRECT,
    ]


def test_a_host_that_is_allowed_is_allowed_even_where_it_is_recorded() -> None:
    both = ConnectionRules(hosts=HostRules(LLM_HOSTS), offline=True, allowed=HostRules(("api.openai.com",)))
    assert both.way("api.openai.com", 443) is Way.DIRECT
    assert not both.answers_for("api.openai.com")


@pytest.mark.parametrize(
    ("host", "recorded", "replayed"),
    [
        ("api.openai.com", True, True),
        ("gpu-box", True, True),
        ("example.com", False, True),
        ("localhost", False, False),
        ("127.0.0.1", False, False),
        ("10.0.0.7", False, False),
        ("db.internal", False, False),
    ],
)
def test_which_names_no_resolver_is_asked_for(host: str, recorded: bool, replayed: bool) -> None:
    assert RECORD.answers_for(host) is recorded
    assert REPLAY.answers_for(host) is replayed


def test_children_decide_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hook leads to the gateway what would leave the machine, and there it is refused: the same, told later."""
    monkeypatch.setenv("REWIND_GATEWAY_HOSTS", ",".join(RECORD.hosts.patterns))
    monkeypatch.setenv("REWIND_GATEWAY_PLAIN", "localhost:11434,127.0.0.1:11434,gpu-box:8000,10.0.0.7:9000")
    monkeypatch.setenv("REWIND_LIVE_HOSTS", ",".join(REPLAY.allowed.patterns))
    source = (PYTHON_HOOK / "sitecustomize.py").read_text()
    for offline, rules in (("0", RECORD), ("1", REPLAY)):
        monkeypatch.setenv("REWIND_OFFLINE", offline)
        hook: dict[str, object] = {}
        # Everything but its last lines, which act on this process.
        exec(compile(source[: source.index("\nclass Finder")], "sitecustomize.py", "exec"), hook)
        wanted = hook["wanted"]
        assert callable(wanted)
        for host, port in (
            ("api.openai.com", 443),
            ("api.anthropic.com.", 443),
            ("x.lab.example.com", 443),
            ("localhost", 11434),
            ("127.0.0.1", 11434),
            ("gpu-box", 8000),
            ("10.0.0.7", 9000),
            ("localhost", 5432),
            ("127.0.0.53", 53),
            ("example.com", 443),
            ("example.com", 5432),
            ("db.internal", 5432),
            ("a.allowed.example.com", 443),
            ("10.0.0.7", 22),
        ):
            assert wanted(host, port) is (rules.way(host, port) is not Way.DIRECT), (offline, host, port)


def test_hosts_with_a_port_are_recorded_only_there() -> None:
    patterns, endpoints = pairs(("*.example.com", "localhost:8000", "127.0.0.1:9000", "[::1]:7000", "fe80::1"))
    assert patterns == ("*.example.com", "fe80::1")
    assert endpoints == {("localhost", 8000), ("localhost", 9000), ("localhost", 7000)}


def test_the_gateway_stands_in_the_place_of_http_proxies_only() -> None:
    assert proxies({"HTTPS_PROXY": "http://user:pw@proxy.corp:3128", "http_proxy": "127.0.0.1:8080"}) == {
        ("proxy.corp", 3128),
        ("localhost", 8080),
    }
    assert proxies({"ALL_PROXY": "socks5://proxy.corp:1080"}) == frozenset()
    assert proxies({"HTTPS_PROXY": "https://proxy.corp"}) == frozenset()
    assert proxies({"HTTPS_PROXY": "http://[broken"}) == frozenset()


def test_names_are_kept_behind_addresses_of_our_own() -> None:
    names = Names()
    address = names.address_of("API.example.com.")
    assert place(address) == "localhost"  # dialled by mistake, it would lead nowhere
    assert names.host_at(address) == names.host_at("::ffff:" + address) == "api.example.com"
    assert names.address_of("api.example.com") == address != names.address_of("b.example.com")
    assert names.host_at("127.0.0.1") is None
    assert names.host_at("127.82.87.68") == "127.82.87.68"


def test_after_many_names_the_oldest_makes_room() -> None:
    names = Names()
    first = names.address_of("first.example.com")
    for number in range(65000):
        names.address_of(f"{number}.example.com")
    assert names.host_at(first) == "64999.example.com"
    assert names.address_of("first.example.com") != first


@pytest.mark.parametrize(
    ("given", "number"), [(443, 443), ("443", 443), (b"80", 80), ("https", 443), ("http", 80), (None, 0), ("gopher", 0)]
)
def test_ports_as_callers_give_them(given: object, number: int) -> None:
    assert port_number(given) == number


def test_how_a_connection_is_named() -> None:
    assert url_of("example.com", 443) == "https://example.com"
    assert url_of("example.com", 80) == "http://example.com"
    assert url_of("2001:db8::1", 5432) == "[2001:db8::1]:5432"
