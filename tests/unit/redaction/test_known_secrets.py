"""What is taken for a secret, and what is not."""

import base64
import json
from collections.abc import Iterable

import pytest

from rewind.credentials import is_dummy
from rewind.model.http import RequestHead
from rewind.redaction.redactor import Redactor
from rewind.redaction.scanner import Scanner
from rewind.redaction.secrets import Secrets, credential_variables
from rewind.redaction.values import is_searchable, looks_random

KEY = "sk-proj-a1B2c3D4e5F6g7H8i9J0"


def head(*headers: tuple[str, str], target: str = "/v1/messages") -> RequestHead:
    return RequestHead(method="POST", scheme="https", host="api.example.com", port=443, target=target, headers=headers)


def knows(secrets: Secrets, value: str) -> bool:
    return bool(secrets.scanner.find(b"<" + value.encode() + b">"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENAI_API_KEY", KEY),
        ("GITHUB_TOKEN", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
        ("AWS_SECRET_ACCESS_KEY", "/JalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY0"),
        ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"),
        ("DATABASE_PASSWORD", "correct horse battery"),
        ("GATEWAY_API_KEY", "team-blue-gateway"),
        ("SOME_KEY", "XkPqWmZtRvBnLsDfGhJc"),
        ("LICENCE_KEY", "A1B2C-D3E4F-G5H6I-J7K8L"),
        ("openai_api_key", KEY),
    ],
)
def test_a_variable_that_holds_a_credential_is_known(name: str, value: str) -> None:
    assert knows(Secrets.from_environment({name: value}), value)
    assert credential_variables({name: value, "HOME": "/home/x"}) == (name,)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOME", "/home/a1b2c3d4e5f6"),
        ("PATH", KEY),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("TOKENIZER_MODEL", "cl100k_base"),
        ("MAX_TOKENS", "1234567890"),
        ("KEYBOARD_LAYOUT", "deutschland-qwertz"),
        ("SSH_KEY", "/home/someone/.ssh/id_ed25519"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/srv/keys/service-account.json"),
        ("SECRET_NAME", "production/database"),
        ("PASSWORD_FILE", "run-secrets-db1234567890"),
        ("DB_PASSWORD", "postgres"),
        ("TOKEN_URL", "https://login.example.com/oauth2/v2.0/token"),
        ("OPENAI_API_KEY", "not-needed"),
        ("OPENAI_API_KEY", "sk-no-key-required"),
        ("OPENAI_API_KEY", "short1"),
        ("APP_SECRET", "xxxxxxxxxxxx"),
        ("API_KEY", "REDACTEDxxxxxxx"),
    ],
)
def test_a_variable_that_holds_none_is_left_alone(name: str, value: str) -> None:
    assert len(Secrets.from_environment({name: value})) == 0


def test_the_password_in_a_url_is_known_whatever_the_name() -> None:
    secrets = Secrets.from_environment({"DATABASE_URL": "postgresql://app:s3cr%2Fet-pw-9@db:5432/app"})
    assert knows(secrets, "s3cr/et-pw-9")
    assert not knows(secrets, "postgresql")


def test_what_is_secret_in_a_service_account_is_known_by_itself() -> None:
    account = '{"type":"service_account","private_key":"-----BEGIN KEY-----\\nMIIabc123+/\\n","client_email":"a@b.iam"}'
    secrets = Secrets.from_environment({"GOOGLE_CREDENTIALS": account})
    assert knows(secrets, "-----BEGIN KEY-----\nMIIabc123+/\n")
    assert knows(secrets, json.dumps(account))
    assert not knows(secrets, "service_account")


def test_quotes_around_a_value_are_not_part_of_it() -> None:
    secrets = Secrets.from_environment({"OPENAI_API_KEY": f'"{KEY}"\n'})
    body = json.dumps({"key": KEY}).encode()
    assert json.loads(Redactor(secrets).body(body, ()))["key"].rstrip("x") == "REDACTED"


def test_each_of_several_keys_in_one_variable_is_known() -> None:
    secrets = Secrets.from_environment({"POOL_API_KEYS": f"{KEY}, sk-other-1234567890abcdef"})
    assert knows(secrets, KEY)
    assert knows(secrets, "sk-other-1234567890abcdef")


@pytest.mark.parametrize(
    ("name", "value", "learned"),
    [
        ("Authorization", f"Bearer {KEY}", KEY),
        ("authorization", f"bearer  {KEY}", KEY),
        ("Authorization", KEY, KEY),
        ("Authorization", f"Token {KEY}", KEY),
        ("Proxy-Authorization", f"Bearer {KEY}", KEY),
        ("x-api-key", KEY, KEY),
        ("api-key", KEY, KEY),
        ("X-Goog-Api-Key", KEY, KEY),
        ("x-amz-security-token", KEY, KEY),
        ("x-some-gateway-token", KEY, KEY),
        ("Cookie", f"theme=dark; session={KEY}", KEY),
        ("Authorization", "Basic " + base64.b64encode(b"me:pass-w0rd-1").decode(), "pass-w0rd-1"),
        ("Authorization", "Basic " + base64.b64encode(KEY.encode() + b":").decode(), KEY),
        (
            "Authorization",
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20250101/eu/bedrock/aws4_request, Signature=00",
            "AKIAIOSFODNN7EXAMPLE",
        ),
        ("Sec-WebSocket-Protocol", f"realtime, openai-insecure-api-key.{KEY}", KEY),
        ("x-api-key", "gehe\u00c3\u00a4mnis-42", "geheämnis-42"),
    ],
)
def test_the_credential_of_a_request_is_learned(name: str, value: str, learned: str) -> None:
    secrets = Secrets()
    secrets.learn(head((name, value)))
    assert knows(secrets, learned)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "Bearer ollama"),
        ("Authorization", "Bearer not-needed"),
        ("Authorization", "Bearer EMPTY"),
        ("Authorization", "Bearer lm-studio"),
        ("x-api-key", "dummy-key"),
        ("x-api-key", "12345678"),
        ("Authorization", "Bearer internal"),
        ("Cookie", "consent=accepted_all; lang=en-GB"),
        ("Idempotency-Key", "stainless-python-retry-1b2c3d4e5f"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Sec-WebSocket-Protocol", "realtime"),
        ("Content-Type", "application/json"),
        ("x-token-limit", "1b2c3d4e5f6a7b8c"),
    ],
)
def test_what_is_no_secret_is_not_learned(name: str, value: str) -> None:
    secrets = Secrets()
    secrets.learn(head((name, value)))
    assert len(secrets) == 0


def test_credentials_in_a_query_are_learned_as_they_mean() -> None:
    secrets = Secrets()
    secrets.learn(head(target="/v1beta/models?alt=sse&key=AIza1b2c3d4e5f6g7&client_secret=a%2Fb%2Bc1234"))
    assert knows(secrets, "AIza1b2c3d4e5f6g7")
    assert knows(secrets, "a/b+c1234")
    secrets = Secrets()
    secrets.learn(head(target="/rows?key=last_modified&pageToken=1b2c3d4e5f6a7b8c9d"))
    assert len(secrets) == 0


def test_nothing_is_rebuilt_while_nothing_is_new() -> None:
    secrets = Secrets()
    request = head(("Authorization", f"Bearer {KEY}"), target=f"/x?key={KEY}")
    secrets.learn(request)
    before = secrets.scanner
    secrets.learn(request)
    assert secrets.scanner is before


def test_signatures_that_change_with_every_request_do_not_pile_up() -> None:
    secrets = Secrets([KEY])
    for number in range(200):
        secrets.learn(head(target=f"/o?X-Amz-Signature={number:04}a1b2c3d4e5f6a7b8"))
    assert len(secrets) == 33
    assert knows(secrets, KEY)
    assert knows(secrets, "0199a1b2c3d4e5f6a7b8")


def test_secrets_do_not_show_themselves() -> None:
    secrets = Secrets([KEY])
    assert KEY not in repr(secrets) + str(secrets) + repr(Redactor(secrets))


@pytest.mark.parametrize(
    "value", ["gpt-4o-2024-08-06", "claude-3-5-sonnet-20241022", "Mixtral-8x7B-v0.1", "en_US.UTF-8"]
)
def test_names_that_people_give_do_not_look_random(value: str) -> None:
    assert is_searchable(value)
    assert not looks_random(value)


@pytest.mark.parametrize("value", ["sk-test-1234", "your-api-key-here", "fake_key_123", "REDACTED", "xxxx-xxxx"])
def test_dummies_are_told_from_keys(value: str) -> None:
    assert is_dummy(value)


def test_a_number_is_never_searched_for_as_its_place_could_be_a_json_number() -> None:
    assert not is_searchable("1234567890123456")
    assert not is_searchable("-12345.678e+9")


def test_learning_makes_no_scanner_before_something_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes milliseconds, for which the first request of a replay would wait."""
    made: list[Scanner] = []

    def counted(forms: Iterable[bytes], letters: Iterable[str] = ()) -> Scanner:
        made.append(Scanner(forms, letters))
        return made[-1]

    monkeypatch.setattr("rewind.redaction.secrets.Scanner", counted)
    secrets = Secrets()
    secrets.learn(head(("Authorization", f"Bearer {KEY}")))
    assert made == []
    assert secrets.scanner.find(f"it is {KEY}".encode()) == [(6, 6 + len(KEY))]
    assert secrets.scanner is secrets.scanner
    assert len(made) == 1
