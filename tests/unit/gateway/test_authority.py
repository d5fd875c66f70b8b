"""What the run's CA can vouch for, and how the persistent one is kept."""

import datetime as dt
import os
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509

from rewind.errors import EnvironmentProblem, UsageError
from rewind.gateway import authority as authority_module
from rewind.gateway import certificates
from rewind.gateway.authority import MAX_CONTEXTS, Authority
from rewind.gateway.certificates import (
    create_persistent,
    load_persistent,
    make_ca,
    new_ca,
    persistent_certificate,
    subtrees,
)
from rewind.gateway.run_ca import KEPT_SECONDS, RUN_SECONDS, RunCa, keep_leaf, kept_ca, kept_leaf
from rewind.providers.hosts import LLM_HOSTS, HostRules

RULES = HostRules(("api.openai.com", "*.openai.azure.com", "bedrock-runtime.*.amazonaws.com", "10.0.0.5"))


def authority_of(rules: HostRules) -> Authority:
    return Authority(make_ca(rules), rules)


class Refused(Exception):
    """The client, or the server, would not have it."""


def handshake(
    server: ssl.SSLContext, trusted: bytes, name: str, *, alpn: list[str] | None = None
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Client and server after a handshake in memory."""
    client = ssl.create_default_context(cadata=trusted.decode())
    client.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
    if alpn:
        client.set_alpn_protocols(alpn)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname=name)
    far = server.wrap_bio(to_server, to_client, server_side=True)
    done = [False, False]
    for _ in range(10):
        for index, side in enumerate((near, far)):
            try:
                side.do_handshake()
                done[index] = True
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError as error:
                raise Refused(str(error)) from error
    assert done == [True, True]
    return near, far


@pytest.mark.parametrize(
    "host", ["api.openai.com", "mine.openai.azure.com", "bedrock-runtime.us-east-1.amazonaws.com", "10.0.0.5"]
)
def test_a_client_that_trusts_the_ca_accepts_recorded_hosts(host: str) -> None:
    authority = authority_of(RULES)
    near, _ = handshake(authority.server_context(host), authority.ca.certificate_pem, host)
    assert near.version() == "TLSv1.3"


def test_every_known_host_pattern_can_be_served() -> None:
    authority = authority_of(HostRules(LLM_HOSTS))
    for host in (pattern.replace("*", "x") for pattern in LLM_HOSTS):
        handshake(authority.server_context(host), authority.ca.certificate_pem, host)


@pytest.mark.parametrize("host", ["bank.example.com", "openai.com", "api.openai.com.evil.test", "10.0.0.6", "::1"])
def test_a_client_refuses_a_leaf_for_another_host_under_the_same_ca(host: str) -> None:
    authority = authority_of(RULES)
    careless = Authority(authority.ca, HostRules((), all_hosts=True))
    with pytest.raises(Refused, match=r"(?i)subtree"):
        handshake(careless.server_context(host), authority.ca.certificate_pem, host)


@pytest.mark.parametrize("patterns", [(), ("10.0.0.5",), ("api.openai.com",)])
def test_kinds_of_names_that_no_rule_uses_are_shut(patterns: tuple[str, ...]) -> None:
    authority = authority_of(HostRules(patterns))
    careless = Authority(authority.ca, HostRules((), all_hosts=True))
    for host in ("bank.example.com", "192.0.2.1", "2001:db8::1"):
        with pytest.raises(Refused, match=r"(?i)subtree"):
            handshake(careless.server_context(host), authority.ca.certificate_pem, host)


def test_no_leaf_is_made_for_a_host_that_is_not_recorded() -> None:
    with pytest.raises(ValueError, match="not recorded"):
        authority_of(RULES).server_context("bank.example.com")


def test_with_all_hosts_there_are_no_constraints() -> None:
    authority = authority_of(HostRules((), all_hosts=True))
    handshake(authority.server_context("bank.example.com"), authority.ca.certificate_pem, "bank.example.com")


def test_only_http_1_1_is_offered() -> None:
    authority = authority_of(RULES)
    context = authority.server_context("api.openai.com")
    near, _ = handshake(context, authority.ca.certificate_pem, "api.openai.com", alpn=["h2", "http/1.1"])
    assert near.selected_alpn_protocol() == "http/1.1"
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_the_sni_door_shows_the_leaf_of_the_host_that_is_named() -> None:
    authority = authority_of(RULES)
    near, far = handshake(
        authority.sni_context(), authority.ca.certificate_pem, "API.openai.com", alpn=["h2", "http/1.1"]
    )
    assert getattr(far, "rewind_server_name") == "api.openai.com"  # noqa: B009  as the gateway reads it
    assert near.selected_alpn_protocol() == "http/1.1"


@pytest.mark.parametrize("name", ["bank.example.com", "10.0.0.5"])
def test_the_sni_door_refuses_other_names_and_clients_that_name_none(name: str) -> None:
    authority = authority_of(RULES)
    with pytest.raises(Refused):
        handshake(authority.sni_context(), authority.ca.certificate_pem, name)


def test_contexts_are_kept_and_their_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_CONTEXTS > 100
    monkeypatch.setattr(authority_module, "MAX_CONTEXTS", 2)
    authority = authority_of(HostRules((), all_hosts=True))
    first = authority.server_context("a.test")
    assert authority.server_context("A.TEST.") is first
    authority.server_context("b.test")
    authority.server_context("c.test")
    assert len(authority._contexts) == 2
    assert authority.server_context("a.test") is not first


def test_a_ca_lives_for_hours_and_is_backdated() -> None:
    certificate = x509.load_pem_x509_certificate(authority_of(RULES).ca.certificate_pem)
    now = dt.datetime.now(dt.UTC)
    assert dt.timedelta(minutes=59) < now - certificate.not_valid_before_utc < dt.timedelta(minutes=62)
    assert certificate.not_valid_after_utc - now <= dt.timedelta(hours=48)


def test_two_runs_have_cas_of_different_names() -> None:
    one, two = (x509.load_pem_x509_certificate(authority_of(RULES).ca.certificate_pem) for _ in range(2))
    assert one.subject != two.subject


def test_subtrees_are_the_labels_after_the_last_star() -> None:
    patterns = ("api.openai.com", "*.api.openai.com", "bedrock-runtime.*.amazonaws.com", "*-ai.google.test", "10.0.0.1")
    assert subtrees(patterns) == ("amazonaws.com", "api.openai.com", "google.test")


def test_a_pattern_that_ends_in_a_star_is_refused() -> None:
    with pytest.raises(UsageError, match="any host"):
        authority_of(HostRules(("api.*",)))


def test_no_key_reaches_the_disk_without_memory_files_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    authority = authority_of(RULES)
    handshake(authority.server_context("api.openai.com"), authority.ca.certificate_pem, "api.openai.com")
    assert list(tmp_path.iterdir()) == []


def test_the_persistent_ca_is_private_and_loads_again(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        made = create_persistent(tmp_path, RULES)
    finally:
        os.umask(previous)
    loaded = load_persistent(tmp_path)
    assert loaded.certificate_pem == made.certificate_pem == persistent_certificate(tmp_path).read_bytes()
    assert stat.S_IMODE((tmp_path / "ca").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "ca" / "ca.pem").stat().st_mode) == 0o600
    assert b"PRIVATE" not in persistent_certificate(tmp_path).read_bytes()
    handshake(Authority(loaded, RULES).server_context("api.openai.com"), made.certificate_pem, "api.openai.com")


@pytest.mark.process
def test_processes_that_make_the_persistent_ca_at_once_agree(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from rewind.gateway.certificates import create_persistent;"
        "from rewind.providers.hosts import HostRules; sys.stdin.read();"
        "sys.stdout.buffer.write(create_persistent(pathlib.Path(sys.argv[1]), HostRules(('a.test',))).certificate_pem)"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "home")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(4)
    ]
    for process in processes:  # all are loaded by now or soon; closing stdin lets them go
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    answers = {process.communicate(timeout=60)[0] for process in processes}
    assert len(answers) == 1
    assert answers == {persistent_certificate(tmp_path / "home").read_bytes()}


def test_a_persistent_ca_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    create_persistent(tmp_path, RULES)
    (tmp_path / "ca" / "ca.pem").chmod(0o644)
    with pytest.raises(EnvironmentProblem, match="read by others"):
        load_persistent(tmp_path)


def test_a_persistent_ca_behind_a_link_is_not_used(tmp_path: Path) -> None:
    create_persistent(tmp_path, RULES)
    path = tmp_path / "ca" / "ca.pem"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentProblem, match="cannot be read"):
        load_persistent(tmp_path)


def test_a_damaged_missing_or_mixed_up_persistent_ca_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="There is no CA"):
        load_persistent(tmp_path)
    create_persistent(tmp_path, RULES)
    path = tmp_path / "ca" / "ca.pem"
    whole = path.read_bytes()
    path.write_bytes(whole[:200])
    with pytest.raises(EnvironmentProblem, match="is damaged"):
        load_persistent(tmp_path)
    create_persistent(tmp_path / "other", RULES)
    key, _, _ = whole.partition(b"-----BEGIN CERTIFICATE")
    path.write_bytes(key + persistent_certificate(tmp_path / "other").read_bytes())
    with pytest.raises(EnvironmentProblem, match="does not match"):
        load_persistent(tmp_path)


def test_a_persistent_ca_close_to_its_end_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "PERSISTENT_LIFETIME", dt.timedelta(hours=47))
    with pytest.raises(EnvironmentProblem, match="expires on"):
        create_persistent(tmp_path, RULES)


# ── a run's CA, kept for the next runs ───────────────────────────────────────────────────────────────────────


def now() -> float:
    return dt.datetime.now(dt.UTC).timestamp()


def ca_file(home: Path) -> Path:
    (path,) = home.glob("run/ca/*/ca")
    return path


def test_a_kept_ca_and_its_leaves_are_used_again_without_making_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = new_ca(tmp_path, RULES)
    Authority(made, RULES).server_context("api.openai.com")
    kept = kept_ca(tmp_path, RULES, now())
    assert kept == made
    monkeypatch.setattr(certificates, "make_leaf", lambda *_: pytest.fail("a leaf was kept"))
    handshake(Authority(kept, RULES).server_context("api.openai.com"), made.certificate_pem, "api.openai.com")


def test_what_is_kept_is_for_its_owner_only(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        ca = new_ca(tmp_path, RULES)
        Authority(ca, RULES).server_context("api.openai.com")
    finally:
        os.umask(previous)
    modes = sorted(stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*"))
    assert modes == [0o600, 0o600, 0o700, 0o700, 0o700, 0o700], "two files, in run/ca/RULES/NAME"
    assert "PRIVATE" not in repr(ca)


def test_a_ca_that_could_vouch_for_any_host_is_not_kept(tmp_path: Path) -> None:
    everything = HostRules((), all_hosts=True)
    assert new_ca(tmp_path, everything).leaves is None
    assert kept_ca(tmp_path, everything, now()) is None
    assert list(tmp_path.iterdir()) == []


def test_a_kept_ca_serves_its_own_rules_and_its_own_days(tmp_path: Path) -> None:
    made = new_ca(tmp_path, RULES)
    assert kept_ca(tmp_path, HostRules(("api.openai.com",)), now()) is None
    assert kept_ca(tmp_path, RULES, now() + KEPT_SECONDS - 60) == made
    assert kept_ca(tmp_path, RULES, now() + KEPT_SECONDS + 60) is None
    assert kept_ca(tmp_path, RULES, made.since - 60) is None
    assert made.until - now() > RUN_SECONDS
    again = new_ca(tmp_path, RULES)
    assert (made.leaves != again.leaves, kept_ca(tmp_path, RULES, now())) == (True, again)


def test_a_kept_ca_that_others_can_read_or_that_is_a_link_is_not_used(tmp_path: Path) -> None:
    new_ca(tmp_path, RULES)
    ca_file(tmp_path).chmod(0o640)
    assert kept_ca(tmp_path, RULES, now()) is None
    ca_file(tmp_path).chmod(0o600)
    assert kept_ca(tmp_path, RULES, now()) is not None
    ca_file(tmp_path).rename(tmp_path / "elsewhere")
    next((tmp_path / "run" / "ca").iterdir()).joinpath("ca").symlink_to(tmp_path / "elsewhere")
    assert kept_ca(tmp_path, RULES, now()) is None


@pytest.mark.timeout(20)
def test_a_pipe_in_the_place_of_a_kept_ca_holds_nobody_up(tmp_path: Path) -> None:
    new_ca(tmp_path, RULES)
    place = ca_file(tmp_path)
    place.unlink()
    os.mkfifo(place, 0o600)
    assert kept_ca(tmp_path, RULES, now()) is None


def test_no_damage_to_what_is_kept_reaches_a_run(tmp_path: Path) -> None:
    ca = new_ca(tmp_path, RULES)
    keep_leaf(ca, "api.openai.com", b"a certificate")
    whole = ca_file(tmp_path).read_bytes()
    for place in range(0, len(whole), 7):
        ca_file(tmp_path).write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert kept_ca(tmp_path, RULES, now()) is None
        ca_file(tmp_path).write_bytes(whole[:place])
        assert kept_ca(tmp_path, RULES, now()) is None
    assert kept_leaf(ca, "api.openai.com") == b"a certificate"
    assert ca.leaves is not None
    (leaf,) = ca.leaves.iterdir()
    leaf.write_bytes(leaf.read_bytes()[:-1])
    assert kept_leaf(ca, "api.openai.com") is None


def test_the_number_of_kept_leaves_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewind.gateway.run_ca.MOST_LEAVES", 3)
    ca = new_ca(tmp_path, RULES)
    for number in range(5):
        keep_leaf(ca, f"x{number}.openai.azure.com", b"pem")
    assert [kept_leaf(ca, f"x{number}.openai.azure.com") for number in range(5)] == [b"pem"] * 3 + [None] * 2


def test_a_store_that_cannot_be_written_costs_no_run(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("in the way")
    made: RunCa = new_ca(tmp_path, RULES)
    handshake(Authority(made, RULES).server_context("api.openai.com"), made.certificate_pem, "api.openai.com")
