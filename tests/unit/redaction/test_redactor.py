"""Heads, bodies, texts and command lines at the one door to the store."""

import gzip
import json

import pytest

from rewind.model.http import Headers, RequestHead, ResponseHead
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets
from rewind.wire.encoding import decode, encode

KEY = "sk-proj-a1B2c3D4e5F6g7H8i9J0"
HIDDEN = "REDACTED" + "x" * (len(KEY) - 8)


def redactor(*values: str) -> Redactor:
    return Redactor(Secrets(values or (KEY,)))


def request(headers: Headers = (), target: str = "/v1/messages") -> RequestHead:
    return RequestHead(method="POST", scheme="https", host="api.example.com", port=443, target=target, headers=headers)


def response(*headers: tuple[str, str]) -> ResponseHead:
    return ResponseHead(status=200, reason="OK", headers=headers)


def test_request_headers_are_kept_by_name_and_all_others_go() -> None:
    kept: Headers = (
        ("Host", "api.example.com"),
        ("Accept-Encoding", "gzip"),
        ("Content-Type", "application/json"),
        ("anthropic-version", "2023-06-01"),
        ("X-Stainless-Retry-Count", "1"),
        ("Idempotency-Key", "stainless-1b2c3d4e"),
    )
    gone: Headers = (
        ("Authorization", "Bearer something"),
        ("x-api-key", "k"),
        ("Cookie", "a=b"),
        ("OpenAI-Organization", "org-1"),
        ("OpenAI-Project", "proj-1"),
        ("x-some-gateway-token", "t"),
        ("x-custom", "who knows"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    )
    door = redactor()
    assert door.request_head(request(kept + gone)).headers == kept
    assert door.count == 6, "credentials and account ids; the others are no secrets"


def test_a_known_value_in_a_kept_header_is_replaced() -> None:
    door = redactor()
    head = door.request_head(
        request((("User-Agent", f"agent ({KEY})"), ("Sec-WebSocket-Protocol", f"realtime, {KEY}")))
    )
    assert head.headers == (("User-Agent", f"agent ({HIDDEN})"), ("Sec-WebSocket-Protocol", f"realtime, {HIDDEN}"))
    assert door.count == 2


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/m:gen?alt=sse&key=AIza0123456789ab", "/m:gen?alt=sse&key=REDACTEDxxxxxxxx"),
        ("/m:gen?key=dummy", "/m:gen?key=REDACTED"),
        ("/rows?key=title&sort=up", "/rows?key=title&sort=up"),
        ("/rows?pageToken=1b2c3d4e5f6a7b8c9d", "/rows?pageToken=1b2c3d4e5f6a7b8c9d"),
        ("/x?API_KEY=a%2Fb", "/x?API_KEY=REDACTED"),
        ("/x?access_token=", "/x?access_token="),
        ("/o?X-Amz-Signature=00ff00ff00ff&X-Amz-Date=1", "/o?X-Amz-Signature=REDACTEDxxxx&X-Amz-Date=1"),
        (f"/bot{KEY}/send", f"/bot{HIDDEN}/send"),
        ("http://me:pass@host/x", "http://REDACTED@host/x"),
        ("/v1/messages", "/v1/messages"),
        ("*", "*"),
    ],
)
def test_credentials_in_a_target_are_replaced_and_the_rest_is_not(target: str, expected: str) -> None:
    assert redactor().request_head(request(target=target)).target == expected


def test_a_redacted_head_stays_as_it_is() -> None:
    door = redactor()
    once = door.request_head(request((("Host", "x"),), f"/bot{KEY}/x?key={KEY}"))
    assert door.request_head(once) == once


def test_response_headers_are_kept_less_cookies_and_account_ids() -> None:
    kept = (("Content-Type", "application/json"), ("x-request-id", "req_1"), ("openai-version", "2020-10-01"))
    gone = (
        ("Set-Cookie", "__cf_bm=abc"),
        ("set-cookie", "b=c"),
        ("openai-organization", "user-1"),
        ("openai-project", "proj_1"),
        ("anthropic-organization-id", "0-0"),
    )
    door = redactor()
    assert door.response_head(response(*kept, *gone)).headers == kept
    assert door.count == 5


def test_known_values_and_credentials_in_response_headers_are_replaced() -> None:
    head = redactor().response_head(
        response(("Location", "https://x/y?token=0a1b2c3d4e5f6a7b#access_token=q"), ("x-echo", KEY))
    )
    assert head.headers == (
        ("Location", "https://x/y?token=REDACTEDxxxxxxxx#access_token=REDACTED"),
        ("x-echo", HIDDEN),
    )


def test_text_loses_known_values_and_nothing_else() -> None:
    door = redactor()
    assert door.text(f"Incorrect key: {KEY}. ä \ud800") == f"Incorrect key: {HIDDEN}. ä \ud800"
    assert door.text("nothing here") == "nothing here"
    assert door.count == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["agent", KEY], ["agent", HIDDEN]),
        (["agent", f"--x={KEY}"], ["agent", f"--x={HIDDEN}"]),
        (["agent", "--api-key", "hunter-number-2"], ["agent", "--api-key", "REDACTEDxxxxxxx"]),
        (["agent", "--token=abcdefghij"], ["agent", "--token=REDACTEDxx"]),
        (["agent", "--password", "hunter2"], ["agent", "--password", "REDACTED"]),
        (["env", "OPENAI_API_KEY=abcdefghij", "x"], ["env", "OPENAI_API_KEY=REDACTEDxx", "x"]),
        (["curl", "-H", "Authorization: Bearer abcdefghij"], ["curl", "-H", "Authorization: Bearer REDACTEDxx"]),
        (["curl", "-Hx-api-key: abcdefghij"], ["curl", "-Hx-api-key: REDACTEDxx"]),
        (["curl", "https://me:abcdefghij@host/"], ["curl", "https://me:REDACTEDxx@host/"]),
        (["sh", "-c", "API_KEY=a1b2c3d4e5f6 run"], ["sh", "-c", "API_KEY=REDACTEDxxxx run"]),
        (["sh", "-c", "x 'Bearer a1b2c3d4e5f6'"], ["sh", "-c", "x 'Bearer REDACTEDxxxx'"]),
    ],
)
def test_secrets_on_a_command_line_are_replaced(given: list[str], expected: list[str]) -> None:
    door = redactor()
    assert door.argv(given) == tuple(expected)
    assert door.count == 1


@pytest.mark.parametrize(
    "given",
    [
        ["agent", "--max-tokens", "4096"],
        ["agent", "--tokenizer", "cl100k_base"],
        ["agent", "--token-limit=100"],
        ["agent", "--password-file", "/run/secrets/pw"],
        ["agent", "--api-key", "/run/secrets/key"],
        ["agent", "--token", "--verbose"],
        ["agent", "--key", "title"],
        ["agent", "--api-key", "dummy"],
        ["sh", "-c", 'curl -H "Authorization: Bearer $TOKEN" --token=$TOKEN'],
        ["python", "-c", "client(api_key=key, token=read_token())"],
        ["agent", "Tell me: what is a token?"],
        ["agent", "https://example.com/?q=1"],
    ],
)
def test_what_is_no_secret_on_a_command_line_stays_as_replay_will_run_it(given: list[str]) -> None:
    door = redactor()
    assert door.argv(given) == tuple(given)
    assert door.count == 0


def test_a_body_keeps_its_length_and_stays_json() -> None:
    secret = 'pä"ss\\w/ö+rd'
    body = json.dumps({"a": f"x {secret} y", "b": [secret, "other"], "n": 1}).encode()
    door = redactor(secret)
    scrubbed = door.body(body, ())
    assert len(scrubbed) == len(body)
    assert [text.rstrip("x") for text in json.loads(scrubbed)["b"]] == ["REDACTED", "other"]
    assert door.count == 2


def test_a_body_without_secrets_is_the_same_object() -> None:
    body = b'{"a": "nothing"}'
    assert redactor().body(body, ()) is body
    assert Redactor(Secrets()).body(body, ()) is body
    packed = gzip.compress(body)
    assert redactor().body(packed, (("content-encoding", "gzip"),)) is packed


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, br"])
def test_a_compressed_body_is_packed_again_when_something_was_found(coding: str) -> None:
    body = json.dumps({"a": KEY}).encode()
    scrubbed = redactor().body(encode(body, coding), (("Content-Encoding", coding),))
    assert decode(scrubbed, coding) == body.replace(KEY.encode(), HIDDEN.encode())


def test_a_body_that_cannot_be_decoded_stays_unless_it_is_readable_after_all() -> None:
    headers = (("content-encoding", "gzip"),)
    assert redactor().body(b"\x1f\x8b damaged", headers) == b"\x1f\x8b damaged"
    assert redactor().body(KEY.encode(), headers) == HIDDEN.encode()
    assert redactor().body(KEY.encode(), (("content-encoding", "rot13"),)) == HIDDEN.encode()


def test_what_a_process_prints_is_redacted_as_it_comes() -> None:
    door = redactor()
    out = door.output()
    printed = out.feed(b"key: sk-proj-a1B2c3") + out.feed(b"D4e5F6g7H8i9J0\nbye\n") + out.finish()
    assert printed == f"key: {HIDDEN}\nbye\n".encode()
    assert door.count == 1


def test_a_value_learned_while_a_process_prints_is_replaced_from_then_on() -> None:
    door = Redactor(Secrets())
    out = door.output()
    assert out.feed(b"hello\n") == b"hello\n"
    door.secrets.learn(request((("Authorization", f"Bearer {KEY}"),)))
    assert out.feed(b"using sk-proj-") == b"using "
    assert out.feed(KEY[8:].encode() + b"\n") == HIDDEN.encode() + b"\n"
    assert out.finish() == b""
    assert door.count == 1
