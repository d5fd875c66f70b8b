"""Unknown secrets: known forms of keys are found in what a reader reads, and clean traffic is left in peace.

All keys here are made up by a generator, character by character.
"""

import base64
import json
import random
import string
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rewind.redaction.scan import KINDS, Scan, entropy, secret_matches
from support.aws_frames import frame
from support.traffic import exchanges_in

WORD = string.ascii_letters + string.digits
URL_SAFE = WORD + "-_"
HEX = "0123456789abcdef"
BASE64 = WORD + "+/"


class Maker:
    """Makes keys that look as their issuers make them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def some(self, count: int, letters: str = WORD) -> str:
        while True:
            made = "".join(self._random.choices(letters, k=count))
            if len(letters) < 20 or (any(map(str.isdigit, made)) and any(map(str.isalpha, made))):
                return made


MAKERS: dict[str, Callable[[Maker], str]] = {
    "OPENAI_API_KEY": lambda m: f"sk-proj-{m.some(74, URL_SAFE)}",
    "OPENAI_KEY": lambda m: f"sk-{m.some(20)}T3BlbkFJ{m.some(20)}",
    "ANTHROPIC_API_KEY": lambda m: f"sk-ant-api03-{m.some(93, URL_SAFE)}AA",
    "OPENROUTER_API_KEY": lambda m: f"sk-or-v1-{m.some(64, HEX)}",
    "GEMINI_API_KEY": lambda m: f"AIza{m.some(35, URL_SAFE)}",
    "GOOGLE_ACCESS_TOKEN": lambda m: f"ya29.{m.some(120, URL_SAFE)}",
    "AWS_ACCESS_KEY_ID": lambda m: f"AKIA{m.some(16, string.ascii_uppercase + '234567')}",
    "AWS_SECRET_ACCESS_KEY": lambda m: m.some(40, BASE64),
    "GITHUB_TOKEN": lambda m: f"ghp_{m.some(36)}",
    "GITHUB_PAT": lambda m: f"github_pat_{m.some(22)}_{m.some(59)}",
    "GITLAB_TOKEN": lambda m: f"glpat-{m.some(20, URL_SAFE)}",
    "SLACK_BOT_TOKEN": lambda m: f"xoxb-{m.some(12, string.digits)}-{m.some(24)}",
    "STRIPE_SECRET_KEY": lambda m: f"sk_live_{m.some(24)}",
    "SESSION_JWT": lambda m: f"eyJ{m.some(33, URL_SAFE)}.eyJ{m.some(60, URL_SAFE)}.{m.some(43, URL_SAFE)}",
    "HF_TOKEN": lambda m: f"hf_{m.some(34)}",
    "AZURE_OPENAI_API_KEY": lambda m: m.some(32, HEX),
    "NPM_TOKEN": lambda m: f"npm_{m.some(36)}",
    "PYPI_TOKEN": lambda m: f"pypi-AgEIcHlwaS5vcmc{m.some(70, URL_SAFE)}",
    "TWILIO_AUTH_TOKEN": lambda m: m.some(32, HEX),
    "SENDGRID_API_KEY": lambda m: f"SG.{m.some(22, URL_SAFE)}.{m.some(43, URL_SAFE)}",
    "TELEGRAM_BOT_TOKEN": lambda m: f"{m.some(9, '123456789')}:AA{m.some(33, URL_SAFE)}",
    "DATABASE_URL": lambda m: f"postgresql://app:{m.some(16)}@db.internal:5432/orders",
    "GROQ_API_KEY": lambda m: f"gsk_{m.some(52)}",
    "XAI_API_KEY": lambda m: f"xai-{m.some(80)}",
    "DB_PASSWORD": lambda m: m.some(18, WORD + "!#%*+.-"),
    "VAULT_TOKEN": lambda m: f"hvs.{m.some(90, URL_SAFE)}",
    "DATABRICKS_TOKEN": lambda m: f"dapi{m.some(32, HEX)}",
    "COHERE_API_KEY": lambda m: m.some(40),
}

PLACEMENTS = {
    "env": "DEBUG=1\n{name}={key}\nPORT=8080\n",
    "quoted env": 'export {name}="{key}"\n',
    "python": 'client = Client(\n    {lower}="{key}",\n    timeout=30,\n)\n',
    "yaml": "service:\n  {lower}: {key}\n  retries: 3\n",
    "json in text": '{{"debug": true, "{lower}": "{key}", "retries": 3}}',
    "json in json": '{{\\"debug\\": true, \\"{lower}\\": \\"{key}\\"}}',
    "javascript": "const config = {{ {lower}: '{key}', region: 'eu' }};",
}


def found(text: str, key: str) -> bool:
    """Whether a hit covers most of the key; for a URL its password is the secret."""
    secret = key.split(":")[2].split("@")[0] if "://" in key else key
    at = text.index(secret)
    return any(hit.start <= at + 2 and hit.end >= at + len(secret) - 2 for hit in secret_matches(text))


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_keys_of_all_kinds_are_found_in_files_and_code(placement: str) -> None:
    maker = Maker(7)
    missed = []
    for name, make in MAKERS.items():
        for _ in range(20):
            key = make(maker)
            text = PLACEMENTS[placement].format(name=name, lower=name.lower(), key=key)
            if not found(text, key):
                missed.append((name, key))
    planted = 20 * len(MAKERS)
    assert len(missed) <= 0.05 * planted, missed[:10]
    # No kind may be lost as a whole behind a good average.
    for name in MAKERS:
        assert sum(1 for one, _ in missed if one == name) <= 4, (name, missed)


def test_most_keys_are_found_in_prose_too() -> None:
    maker = Maker(11)
    told = [
        (f"Please use the key {key} for this, it is the one of the staging account.", key)
        for make in MAKERS.values()
        for key in [make(maker) for _ in range(20)]
    ]
    assert sum(found(text, key) for text, key in told) >= 0.8 * len(told)


def test_private_keys_bearer_headers_and_passwords_in_urls_are_found() -> None:
    maker = Maker(3)
    body = "\n".join(maker.some(64, BASE64) for _ in range(6))
    assert [
        hit.kind for hit in secret_matches(f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----")
    ] == ["private key"]
    assert secret_matches(f"curl -H 'Authorization: Bearer {maker.some(40)}' https://api.example")
    assert [hit.kind for hit in secret_matches(f"https://bot:{maker.some(12)}@git.example/x.git")] == [
        "password in a URL"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "OPENAI_API_KEY=sk-your-key-here",
        "api_key = os.environ['OPENAI_API_KEY']",
        "password: ${DB_PASSWORD}",
        "token=process.env.GITHUB_TOKEN",
        "Authorization: Bearer REDACTEDxxxxxxxxxxxxxxxxxxxx",
        'api_key="REDACTEDxxxxxxxxxxxxxxxxxxxxxxxx"',
        "https://example.com:8080/a@b",
        "The max_tokens parameter is 1024, and the token count was 3241.",
        "task-1234567890abcdef1234567890 risk-assessment-2024-final-version",
        "AKIAIOSFODNN7EXAMPLE",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "call_Ab12Cd34Ef56Gh78Ij90Kl12 msg_01AbCdEfGhIjKlMnOpQrStUv chatcmpl-AbC123dEf456",
        "secret_name: production-database",
        "the password is required",
        "next_page_token_url=https://api.example/v1/items?page=2",
    ],
)
def test_what_only_speaks_of_secrets_is_no_secret(text: str) -> None:
    assert secret_matches(text) == []


def test_a_hit_shows_nothing_of_the_secret() -> None:
    maker = Maker(5)
    for name, make in MAKERS.items():
        key = make(maker)
        for hit in secret_matches(f"{name}={key}"):
            secret = f"{name}={key}"[hit.start : hit.end]
            rest = secret.removeprefix(hit.shown)
            assert rest not in hit.shown
            assert len(rest) >= 8, (name, hit)


def test_every_kind_has_marks_that_its_own_keys_bear() -> None:
    maker = Maker(1)
    keys = [make(maker) for make in MAKERS.values()]
    met = {kind.name for kind in KINDS for key in keys if kind.expression.search(key)}
    assert len(met) >= 19
    for kind in KINDS:
        for key in keys:
            if kind.expression.fullmatch(key):
                assert any(mark in key for mark in kind.marks), kind.name


def test_entropy_tells_words_from_keys() -> None:
    assert entropy("password") < 3
    assert entropy("aaaaaaaa") == 0
    assert entropy("q8Zr2LmX0vTy6Kd1") == 4


@pytest.mark.traffic
def test_clean_traffic_gives_hardly_any_false_hit(traffic: Path) -> None:
    scan, size = Scan(), 0
    for number, exchange in enumerate(exchanges_in(traffic)):
        for half in (exchange.request, exchange.response):
            scan.body(half.body, half.head.headers, "body", step=number)
            size += len(half.body)
    assert sum(one.places for one in scan.findings) <= 5 * size / 1_000_000, scan.findings


@pytest.mark.parametrize(
    "unit",
    [
        "token:",
        "-eyJ",
        "-----BEGIN PRIVATE KEY-----\n",
        "AccountKey=",
        "token: str=",
        "pass=",
        'apikey="',
        "secret ",
        "bearer ",
        "ab://x:",
        "aaaaaaaaa.eyJ",
    ],
)
def test_a_hostile_text_costs_no_more_than_it_is_long(unit: str) -> None:
    # Where a repeat reads on from every start, or every value is looked at to its end, this takes far longer.
    began = time.process_time()
    secret_matches(unit * (300_000 // len(unit)))
    assert time.process_time() - began < 5


def test_a_long_body_full_of_keys_is_walked_once() -> None:
    maker = Maker(11)
    body = json.dumps([{"n": {"key": f"ghp_{maker.some(36)}"}} for _ in range(3000)]).encode()
    scan = Scan()
    began = time.process_time()
    scan.body(body, (("content-type", "application/json"),), "body")
    assert time.process_time() - began < 12
    paths = {one.path for one in scan.findings}
    assert len(paths) > 2900, "one or another looks like a placeholder by chance"
    assert {"[0].n.key", "[1234].n.key", "[2999].n.key"} <= paths


def test_an_assignment_inside_another_is_found() -> None:
    key = Maker(3).some(24)
    text = f"secret=config.api_key={key}"
    [hit] = secret_matches(text)
    assert text[hit.start : hit.end] == key


def test_a_private_key_is_found_between_its_marks() -> None:
    inner = "\n".join(Maker(4).some(64, BASE64) for _ in range(20))
    for kind in ("", "RSA ", "ENCRYPTED "):
        text = f"x -----BEGIN {kind}PRIVATE KEY-----\nProc-Type: 4\n{inner}\n-----END {kind}PRIVATE KEY-----"
        assert [hit.kind for hit in secret_matches(text)] == ["private key"]


def test_frames_that_are_damaged_are_looked_through_as_well() -> None:
    key = f"ghp_{Maker(9).some(36)}"
    inner = base64.b64encode(json.dumps({"text": key}).encode()).decode()
    good = frame([(":event-type", 7, "chunk")], json.dumps({"bytes": inner}).encode())
    for body in (good + good[:-9], good[:-1] + b"\x00"):
        scan = Scan()
        scan.body(body, (), "response body", step=1)
        assert [one.kind for one in scan.findings] == ["GitHub token"]
