"""Which variables hold secrets: by a table of whole words, and never what a usual desktop sets."""

import json
import os
from pathlib import Path

import pytest

from rewind.credentials import variable_kind
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets, credential_variables
from rewind.trace.secrets import OwnSecrets
from support.desktops import DESKTOPS

RANDOM = "q7Zp2vX9mK4tR8sW1nB6"


def removed(variables: dict[str, str], text: str) -> str:
    return Redactor(Secrets.from_environment(variables)).text(text)


@pytest.mark.parametrize("desktop", DESKTOPS)
def test_with_a_usual_desktop_nothing_of_a_prompt_is_redacted(desktop: str) -> None:
    variables = DESKTOPS[desktop]
    assert len(variables) > 80
    prompt = json.dumps({"messages": [f"{name}={value}" for name, value in variables.items()]})
    assert Secrets.from_environment(variables).scanner.find(prompt.encode()) == []
    assert len(Secrets.from_environment(variables)) == 0
    assert set(credential_variables(variables)) <= {"OPENAI_API_KEY", "POSTGRES_PASSWORD", "DB_PASS", "REDIS_PWD"}
    assert OwnSecrets.of(variables).removed(prompt.encode()) == prompt.encode()


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("GH_PAT", f"ghp_{RANDOM}", f"ghp_{RANDOM}"),
        ("AZURE_DEVOPS_EXT_PAT", RANDOM, RANDOM),
        ("DB_PASS", "hunter22-hunter", "hunter22-hunter"),
        ("SMTP_PASS", "blue sky over town", "blue sky over town"),
        ("MYSQL_PWD", "hunter22-hunter", "hunter22-hunter"),
        ("X_PWD", "hunter22-hunter", "hunter22-hunter"),
        ("PGPASSWORD", "hunter22-hunter", "hunter22-hunter"),
        ("SSHPASS", "hunter22-hunter", "hunter22-hunter"),
        ("WALLET_PASSPHRASE", "blue sky over town", "blue sky over town"),
        ("SERVICE_CREDS", "hunter22-hunter", "hunter22-hunter"),
        ("GITHUBTOKEN", RANDOM, RANDOM),
        ("NPM_AUTH", "YWRhOmh1bnRlcjIyLWh1bnRlcg==", "YWRhOmh1bnRlcjIyLWh1bnRlcg=="),
        ("SITE_COOKIE", f"theme=dark; session={RANDOM}", RANDOM),
        ("SESSION_COOKIE", RANDOM, RANDOM),
        ("SENTRY_DSN", f"https://{RANDOM}@o4501.ingest.sentry.io/4507", RANDOM),
        ("SLACK_WEBHOOK", f"https://hooks.slack.com/services/T01ABCDEF/B02GHIJKL/{RANDOM}", RANDOM),
        ("SLACK_WEBHOOK_URL", f"https://hooks.slack.com/services/T01ABCDEF/B02GHIJKL/{RANDOM}", RANDOM),
        (
            "DISCORD_WEBHOOK",
            f"https://discord.com/api/webhooks/11223344556677/{RANDOM}-_{RANDOM}",
            f"{RANDOM}-_{RANDOM}",
        ),
        ("APP_JWT", f"eyJhbGciOi.{RANDOM}.{RANDOM}", f"eyJhbGciOi.{RANDOM}.{RANDOM}"),
        ("appAccessToken", "team-blue-gateway", "team-blue-gateway"),
        # Addresses, whatever the variable is called.
        ("ANYTHING", f"https://ada:{RANDOM}@example.com/x", RANDOM),
        ("ANYTHING", "amqp://ada:p@ssw0rd-mq@mq.internal/vhost", "p@ssw0rd-mq"),
        ("ANYTHING", "redis://:s3cr%2Fet-pw-9@cache:6379/0", "s3cr/et-pw-9"),
        (
            "PIP_EXTRA_INDEX_URL",
            f"https://pypi.org/simple https://__token__:pypi-{RANDOM}@host/simple",
            f"pypi-{RANDOM}",
        ),
        ("ORIGIN", f"https://ghp_{RANDOM}@github.com/ada/agent.git", f"ghp_{RANDOM}"),
        ("BLOB", f"https://acct.blob.example.net/c?sv=2024&sig={RANDOM}%3D", f"{RANDOM}="),
        ("CONNECTION", f"Server=db;User Id=ada;Password={RANDOM};", RANDOM),
        ("STORAGE", f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={RANDOM}==;", f"{RANDOM}=="),
        ("PG", "host=db user=ada password=hunter22-hunter dbname=app", "hunter22-hunter"),
        ("MYSQL_DSN", "ada:hunter22-hunter@tcp(db:3306)/app", "hunter22-hunter"),
    ],
)
def test_what_a_variable_keeps_secret_is_removed(name: str, value: str, secret: str) -> None:
    assert secret not in removed({name: value}, f"The value is {secret}, is it?")
    assert removed({name: value}, "The value is")


@pytest.mark.parametrize(
    "name", ["PWD", "OLDPWD", "pwd", "PATH", "SSH_AUTH_SOCK", "GIT_AUTHOR_NAME", "COMPASS", "AUTHOR"]
)
def test_names_that_only_sound_like_it(name: str) -> None:
    assert variable_kind(name) is None


def test_what_names_this_machine_is_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deploy-2024a").mkdir()
    there = str(tmp_path / "deploy-2024a")
    known = {"USER": "deploy-bot-7", "HOSTNAME": "build-host-12ab"}
    for value in ("deploy-bot-7", "build-host-12ab", os.uname().nodename, there, "deploy-2024a", f"/nowhere:{there}"):
        assert removed(known | {"DB_PASS": value, "APP_TOKEN": value}, f"<{value}>") == f"<{value}>"


def test_a_system_that_does_not_tell_its_name_is_none_the_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "uname")
    assert (
        removed({"COMPUTERNAME": "build-host-12ab", "DB_PASS": "build-host-12ab"}, "build-host-12ab")
        != "REDACTEDxxxxxxx"
    )
    assert OwnSecrets.of({"GH_PAT": RANDOM}).forms


def test_a_short_value_is_never_a_secret() -> None:
    for value in ("a1", "hunt3r2", "1234567", "letmein"):
        assert removed({"DB_PASS": value, "URL": f"https://ada:{value}@host/"}, f"<{value}>") == f"<{value}>"


def test_an_address_is_not_replaced_by_a_dummy_in_a_replay() -> None:
    """A dummy in the place of an address would stop the agent at its start."""
    variables = {"SENTRY_DSN": f"https://{RANDOM}@o4501.ingest.sentry.io/4507", "URL": f"https://a:{RANDOM}@host/"}
    assert credential_variables(variables) == ()
    assert credential_variables({"GH_PAT": RANDOM}) == ("GH_PAT",)


@pytest.mark.parametrize("value", ["EMPTY", "dummy", "sk-test-1", "x", "0", "not-needed", "REDACTEDxxxx"])
@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN", "HF_TOKEN", "AZURE_OPENAI_KEY", "DB_PASS"])
def test_a_key_that_is_no_secret_is_remembered_by_its_name_and_stays_in_prompts(name: str, value: str) -> None:
    assert credential_variables({name: value, "HOME": "/home/x"}) == (name,)
    assert removed({name: value}, f"<{value}>") == f"<{value}>"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENAI_API_KEY", ""),
        ("OPENAI_API_KEY", "  "),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/srv/account.json"),
        ("MAX_TOKENS", "4096"),
        ("SORT_KEYS", "true"),
        ("HOTKEY", "ctrl+p"),
        ("KEY", "left"),
        ("OPENAI_API_KEY_FILE", "key.txt"),
    ],
)
def test_what_is_no_key_gets_no_dummy(name: str, value: str) -> None:
    assert credential_variables({name: value}) == ()


def test_the_trace_recorder_has_the_same_table() -> None:
    for name, value in (("GH_PAT", RANDOM), ("DB_PASS", "hunter22-hunter"), ("ANY", f"https://a:{RANDOM}@host/")):
        secret = RANDOM if RANDOM in value else value
        assert secret.encode() not in OwnSecrets.of({name: value}).removed(f"<{secret}>".encode())


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", ["word " * 24_000 + "; x=1", "ab12" * 30_000, "a" + " " * 120_000 + "; x=1"])
def test_a_long_text_in_a_variable_holds_nobody_up(text: str) -> None:
    """The longest that Linux lets pass; it took minutes."""
    secrets = Secrets.from_environment(
        {"NOTES": f"{text}; Password=hunter2-Xy7q", "DB": f"{text}://me:Tr0ub4dor-3@db/x"}
    )
    assert Redactor(secrets).text("hunter2-Xy7q Tr0ub4dor-3").split() == ["REDACTEDxxxx", "REDACTEDxxx"]
