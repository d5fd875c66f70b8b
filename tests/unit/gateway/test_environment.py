"""The variables of a child, joined with what the user had in them."""

import os
import shlex
import shutil
import ssl
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from rewind.gateway.certificates import make_ca
from rewind.gateway.clients import CLIENTS, check_clients
from rewind.gateway.environment import (
    ADDING_CA_VARIABLES,
    HOOKS,
    NODE_HOOK,
    PROXY_VARIABLES,
    PYTHON_HOOK,
    REPLACING_CA_VARIABLES,
    ChildEnvironment,
    hides,
    prepare,
)
from rewind.gateway.trust_store import JAVA_PASSWORD, bundle, certificates_in, java_trust_store, system_roots
from rewind.providers.hosts import LLM_HOSTS, HostRules

RULES = HostRules(("api.openai.com", "bedrock-runtime.*.amazonaws.com", "10.0.0.5", "localhost"))
OURS = make_ca(RULES).certificate_pem
THEIRS = make_ca(HostRules(("corp.example",))).certificate_pem
NOWHERE = {"PATH": "/nonexistent"}


def prepared(folder: Path, env: Mapping[str, str], rules: HostRules = RULES) -> ChildEnvironment:
    return prepare(folder, NOWHERE | dict(env), port=4711, authority_pem=OURS, rules=rules)


def pem_in(path: str) -> set[bytes]:
    return set(certificates_in(Path(path)))


def test_both_spellings_of_the_proxy_variables_lead_to_the_gateway(tmp_path: Path) -> None:
    variables = prepared(tmp_path, {"HTTPS_PROXY": "http://corp:3128"}).variables
    assert {variables[name] for name in PROXY_VARIABLES} == {"http://127.0.0.1:4711"}


def test_each_ca_variable_trusts_the_system_and_us(tmp_path: Path) -> None:
    child = prepared(tmp_path, {})
    for name in REPLACING_CA_VARIABLES:
        assert pem_in(child.variables[name]) == {*system_roots(), OURS.strip()}
    for name in ADDING_CA_VARIABLES:
        assert pem_in(child.variables[name]) == {OURS.strip()}


def test_a_bundle_loads_into_openssl(tmp_path: Path) -> None:
    context = ssl.create_default_context(cafile=prepared(tmp_path, {}).variables["SSL_CERT_FILE"])
    assert context.cert_store_stats()["x509_ca"] > len(system_roots()) // 2


def test_files_are_few_private_and_hold_no_key(tmp_path: Path) -> None:
    mixed = tmp_path / "mine.pem"
    mixed.write_bytes(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n" + THEIRS)
    folder = tmp_path / "run"
    folder.mkdir()
    previous = os.umask(0)
    try:
        child = prepared(folder, {"SSL_CERT_FILE": str(mixed), "NODE_EXTRA_CA_CERTS": str(mixed)})
    finally:
        os.umask(previous)
    assert sorted(folder.iterdir()) == sorted(child.files)
    assert len(child.files) <= 4, "the same content is written once"
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in child.files)
    assert not any(b"PRIVATE" in path.read_bytes() for path in child.files)


def test_the_users_own_bundle_replaces_the_systems_as_it_did_before(tmp_path: Path) -> None:
    own = tmp_path / "corp.pem"
    own.write_bytes(THEIRS)
    variables = prepared(tmp_path, {"SSL_CERT_FILE": str(own)}).variables
    expected = {THEIRS.strip(), OURS.strip()}
    assert pem_in(variables["SSL_CERT_FILE"]) == expected
    assert pem_in(variables["CURL_CA_BUNDLE"]) == expected, "curl fell back to SSL_CERT_FILE"
    assert pem_in(variables["REQUESTS_CA_BUNDLE"]) == {*system_roots(), OURS.strip()}, "requests never looked at it"


def test_additive_variables_keep_the_users_certificates(tmp_path: Path) -> None:
    own = tmp_path / "corp.pem"
    own.write_bytes(THEIRS)
    variables = prepared(tmp_path, {"NODE_EXTRA_CA_CERTS": str(own)}).variables
    assert pem_in(variables["NODE_EXTRA_CA_CERTS"]) == {THEIRS.strip(), OURS.strip()}
    assert pem_in(variables["DENO_CERT"]) == {OURS.strip()}


def test_a_folder_of_certificates_is_joined_and_the_variable_left_alone(tmp_path: Path) -> None:
    own = tmp_path / "certs"
    own.mkdir()
    (own / "corp.pem").write_bytes(THEIRS)
    variables = prepared(tmp_path, {"SSL_CERT_DIR": str(own), "REQUESTS_CA_BUNDLE": str(own)}).variables
    assert "SSL_CERT_DIR" not in variables
    assert pem_in(variables["SSL_CERT_FILE"]) == {*system_roots(), THEIRS.strip(), OURS.strip()}
    assert pem_in(variables["REQUESTS_CA_BUNDLE"]) == {THEIRS.strip(), OURS.strip()}


def test_a_bundle_that_cannot_be_read_is_no_error_of_ours(tmp_path: Path) -> None:
    variables = prepared(tmp_path, {"SSL_CERT_FILE": "/nonexistent/ca.pem"}).variables
    assert pem_in(variables["SSL_CERT_FILE"]) == {OURS.strip()}


@pytest.mark.parametrize(
    "entry",
    [
        "*", "api.openai.com", "API.openai.com", "openai.com", ".openai.com", "*.openai.com", "api.openai.com:443",
        "com", "amazonaws.com", ".us-east-1.amazonaws.com", "bedrock-runtime.us-east-1.amazonaws.com", "10.0.0.5",
        "10.0.0.0/8", "10.*", "localhost",
    ],
)  # fmt: skip
def test_exceptions_that_hide_a_recorded_host_are_taken_out(entry: str) -> None:
    assert hides(entry, RULES)


@pytest.mark.parametrize(
    "entry", ["127.0.0.1", "::1", "internal.test", ".example.com", "10.0.0.6", "192.168.0.0/16", "notopenai.com"]
)
def test_other_exceptions_stay(entry: str) -> None:
    assert not hides(entry, RULES)


def test_no_proxy_keeps_its_other_entries_and_is_not_invented(tmp_path: Path) -> None:
    variables = prepared(tmp_path, {"NO_PROXY": "internal.test, .openai.com ,127.0.0.1", "no_proxy": "*"}).variables
    assert variables["NO_PROXY"] == "internal.test,127.0.0.1"
    assert variables["no_proxy"] == ""
    assert "NO_PROXY" not in prepared(tmp_path, {}).variables


def test_our_python_hook_comes_first_and_the_users_path_stays(tmp_path: Path) -> None:
    variables = prepared(tmp_path, {"PYTHONPATH": "/a:/b"}).variables
    assert variables["PYTHONPATH"] == f"{PYTHON_HOOK}:/a:/b"
    assert prepared(tmp_path, {}).variables["PYTHONPATH"] == str(PYTHON_HOOK), "no empty entry: it means '.'"


def test_node_options_are_added_to(tmp_path: Path) -> None:
    options = prepared(tmp_path, {"NODE_OPTIONS": "--max-old-space-size=512"}).variables["NODE_OPTIONS"]
    assert shlex.split(options) == ["--max-old-space-size=512", "--require", str(NODE_HOOK)]


def test_a_run_inside_a_run_loads_each_hook_once(tmp_path: Path) -> None:
    outer = prepared(tmp_path, {"PYTHONPATH": "/a"}).variables
    inner = prepared(tmp_path, outer).variables
    assert inner["PYTHONPATH"] == outer["PYTHONPATH"]
    assert inner["NODE_OPTIONS"] == outer["NODE_OPTIONS"]


def test_the_hooks_are_told_what_to_redirect(tmp_path: Path) -> None:
    variables = prepared(
        tmp_path, {"OPENAI_BASE_URL": "http://gpu.lan:8000/v1", "ANTHROPIC_BASE_URL": "https://llm.corp.example"}
    ).variables
    assert variables["REWIND_GATEWAY_PORT"] == "4711"
    assert variables["REWIND_GATEWAY_HOSTS"] == ",".join(RULES.patterns)
    assert variables["REWIND_GATEWAY_PLAIN"] == "gpu.lan:8000,localhost:11434,127.0.0.1:11434"
    assert pem_in(variables["REWIND_GATEWAY_CA"]) == {OURS.strip()}
    everything = prepared(tmp_path, {}, HostRules((), all_hosts=True)).variables
    assert everything["REWIND_GATEWAY_HOSTS"] == "*"


def test_without_a_java_nothing_is_made_for_it(tmp_path: Path) -> None:
    child = prepared(tmp_path, {})
    assert "JAVA_TOOL_OPTIONS" not in child.variables
    assert not any(path.suffix == ".jks" for path in child.files)


def test_java_options_are_added_to_and_a_path_with_a_blank_is_quoted(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    options = prepared(folder, {"JAVA_HOME": "/opt/java", "JAVA_TOOL_OPTIONS": "-Xmx1g"}).variables["JAVA_TOOL_OPTIONS"]
    words = shlex.split(options)
    assert words[0] == "-Xmx1g"
    assert "-Dhttps.proxyPort=4711" in words
    assert f"-Djavax.net.ssl.trustStore={folder / 'java-trust.jks'}" in words


@pytest.mark.process
def test_javas_own_tool_reads_the_trust_store(tmp_path: Path) -> None:
    if shutil.which("keytool") is None:
        pytest.skip("there is no Java here")
    store = tmp_path / "trust.jks"
    store.write_bytes(java_trust_store((*system_roots(), OURS.strip())))
    listed = subprocess.run(
        ["keytool", "-list", "-keystore", str(store), "-storepass", JAVA_PASSWORD],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert "Keystore type: JKS" in listed
    assert f"contains {len(system_roots()) + 1} entries" in listed


def test_a_bundle_holds_each_certificate_once() -> None:
    assert bundle((OURS.strip(), THEIRS.strip()), (OURS.strip(),)) == OURS + THEIRS


@pytest.mark.process
def test_the_hooks_cost_a_child_little_and_import_nothing_heavy(tmp_path: Path) -> None:
    child = prepared(tmp_path, {}, HostRules(LLM_HOSTS))
    code = "import sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], env=child.variables, capture_output=True, text=True, check=True, timeout=30
    )
    bare = subprocess.run([sys.executable, "-c", code], env={}, capture_output=True, text=True, check=True, timeout=30)
    assert set(loaded.stdout.split()) - set(bare.stdout.split()) <= {"sitecustomize"}


def test_the_hooks_are_files_of_the_package() -> None:
    assert {path.name for path in HOOKS.rglob("*.*") if path.is_file() and path.suffix != ".pyc"} == {
        "sitecustomize.py",
        "preload.cjs",
    }


@pytest.mark.process
def test_every_client_is_checked_and_those_here_show_their_version() -> None:
    checks = check_clients(os.environ)
    assert [check.name for check in checks] == [client.name for client in CLIENTS]
    by_name = {check.name: check for check in checks}
    assert by_name["curl"].found == (shutil.which("curl") is not None)
    assert all(check.version[:1].isdigit() for check in checks if check.found)
    assert all(check.works for check in checks)


@pytest.mark.process
def test_a_client_that_does_not_start_is_told_apart(tmp_path: Path) -> None:
    fake = tmp_path / "curl"
    fake.write_text("#!/nonexistent/interpreter\n")
    fake.chmod(0o755)
    curl = next(check for check in check_clients({"PATH": str(tmp_path)}) if check.name == "curl")
    assert curl.found
    assert curl.version == ""
    assert "could not be asked" in curl.note


def test_a_child_that_stays_offline_loads_no_public_roots_but_what_the_user_named(tmp_path: Path) -> None:
    own = tmp_path / "corporate.pem"
    own.write_bytes(THEIRS)
    env = NOWHERE | {"REQUESTS_CA_BUNDLE": str(own)}
    child = prepare(tmp_path, env, port=4711, authority_pem=OURS, rules=RULES, offline=True)
    trusted = {name: certificates_in(Path(child.variables[name])) for name in REPLACING_CA_VARIABLES}
    with_theirs = {"REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE"}
    assert trusted == {
        name: ((THEIRS.strip(),) if name in with_theirs else ()) + (OURS.strip(),) for name in REPLACING_CA_VARIABLES
    }
