"""What a person's patterns match is taken out of every form of body, and nothing else moves."""

import base64
import gzip
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind.errors import UsageError
from rewind.model.http import RequestHead, ResponseHead
from rewind.redaction.body_texts import paths_of, texts_of
from rewind.redaction.removal import PatternedRedactor, Removal, compiled_patterns
from rewind.redaction.secrets import Secrets
from rewind.wire.encoding import decode, decode_as_far_as_possible, encode
from rewind.wire.eventstream import read_frames
from support.aws_frames import frame

JSON = (("content-type", "application/json"),)
EVENTS = (("content-type", "text/event-stream"),)


def a_removal(*patterns: str, heard: bytes = b"", headers: tuple[tuple[str, str], ...] = JSON) -> Removal:
    removal = Removal(compiled_patterns(patterns))
    removal.learn_body(heard, headers)
    removal.learned()
    return removal


def test_a_match_in_a_json_string_is_covered_as_long_as_it_was() -> None:
    body = b'{"to": "alice@example.com", "n": 3}'
    changed = a_removal("alice@[a-z.]+", heard=body).body(body, JSON)
    assert changed == b'{"to": "REDACTEDxxxxxxxxx", "n": 3}'


def test_escapes_are_read_and_replaced_whole() -> None:
    body = json.dumps({"text": 'say "Jörg\n99" twice'}).encode()
    changed = a_removal('"Jörg\n99"', heard=body).body(body, JSON)
    assert len(changed) == len(body)
    assert json.loads(changed)["text"].startswith("say REDACTED")
    assert json.loads(changed)["text"].endswith("x twice")


def test_a_short_match_is_covered_without_a_change_of_length() -> None:
    body = b'{"who": "Bob"}'
    assert a_removal(r"\bBob\b", heard=body).body(body, JSON) == b'{"who": "xxx"}'


def test_names_of_members_and_numbers_are_matched_too() -> None:
    body = b'{"4111111111111111": 4111111111111111, "a": [14, -4111111111111111]}'
    changed = a_removal("4111111111111111", heard=body).body(body, JSON)
    assert b"4111" not in changed
    assert json.loads(changed) == {"REDACTEDxxxxxxxx": 0, "a": [14, 0]}


def test_a_value_that_a_model_says_in_pieces_is_found_in_its_stream() -> None:
    said = "Your account is ACME-778-2210, thank you."
    events = b"".join(
        b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": said[at : at + 4]}}]}).encode() + b"\n\n"
        for at in range(0, len(said), 4)
    )
    changed = a_removal(r"ACME-[0-9-]+", heard=events, headers=EVENTS).answer(
        events, ResponseHead(status=200, reason="OK", headers=EVENTS)
    )
    assert len(changed) == len(events)
    spoken = "".join(
        json.loads(line[6:])["choices"][0]["delta"]["content"]
        for line in changed.decode().splitlines()
        if line.startswith("data: ")
    )
    assert spoken == "Your account is REDACTEDxxxxx, thank you."


def test_a_matched_value_is_found_in_base64_and_in_urls_as_well() -> None:
    told = b'{"id": "acct/77:8821-west"}'
    hidden = base64.b64encode(b"the account is acct/77:8821-west.").decode()
    other = json.dumps({"blob": hidden, "link": "https://x.example/?a=acct%2F77%3A8821-west"}).encode()
    removal = a_removal(r"acct/77:8821-west", heard=told)
    changed = json.loads(removal.body(other, JSON))
    assert b"8821" not in base64.b64decode(changed["blob"])
    assert "8821" not in changed["link"]


def test_a_compressed_body_is_packed_again_only_where_something_was_removed() -> None:
    body = gzip.compress(b'{"to": "alice@example.com"}')
    headers = (*JSON, ("content-encoding", "gzip"))
    removal = a_removal("alice@example", heard=body, headers=headers)
    assert decode(removal.body(body, headers), "gzip") == b'{"to": "REDACTEDxxxxx.com"}'
    calm = gzip.compress(b'{"to": "bob"}')
    assert removal.body(calm, headers) is calm


def test_frames_of_aws_keep_their_checksums() -> None:
    inner = [base64.b64encode(json.dumps({"text": text}).encode()).decode() for text in ("ACME-7", "78-2210 ok")]
    body = b"".join(frame([(":event-type", 7, "chunk")], json.dumps({"bytes": one}).encode()) for one in inner)
    changed = a_removal("ACME-[0-9-]+", heard=body, headers=()).body(body, ())
    frames = read_frames(changed)
    assert [one.intact for one in frames.frames] == [True, True]
    said = [json.loads(base64.b64decode(json.loads(one.payload)["bytes"]))["text"] for one in frames.frames]
    assert "".join(said) == "REDACTEDxxxxx ok"


def test_plain_text_and_bytes_that_are_no_text_pass_but_for_the_match() -> None:
    body = b"\xff\xfe name=\xc3\xbcmlaut-1 \x00 end"
    assert a_removal("ümlaut-1", heard=body, headers=()).body(body, ()) == b"\xff\xfe name=REDACTEDx \x00 end"


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", "*"])
def test_what_is_no_expression_is_said(pattern: str) -> None:
    with pytest.raises(UsageError, match="not a valid regular expression"):
        compiled_patterns([pattern])


def test_a_pattern_that_matches_nothing_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match="everywhere"):
        compiled_patterns(["x*"])


def test_the_path_of_a_text_is_told() -> None:
    body = b'{"model": "m", "messages": [{"role": "user"}, {"content": [{"text": "here"}]}]}'
    texts = list(texts_of(body, "application/json"))
    found = paths_of(body, texts)
    paths = {written.text: found[written.offset] for written in texts}
    assert paths["here"] == "messages[1].content[0].text"
    assert paths["m"] == "model"


leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.sampled_from(["key-42", "a key-42 b"]))
documents = st.recursive(
    leaves, lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)), max_leaves=12
)


@given(documents, st.booleans())
def test_whatever_the_document_the_match_is_gone_and_all_else_stays(document: object, ascii_only: bool) -> None:
    body = json.dumps({"all": document}, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    changed = a_removal(r"key-42", heard=body).body(body, JSON)
    assert len(changed) == len(body)
    want = re.sub("key-42", "xxxxxx", json.dumps(json.loads(body)))
    assert json.loads(changed) == json.loads(want)


SAID = b"".join(
    b"data: " + json.dumps({"text": f"Write to bob@acme.example, {number}."}).encode() + b"\n\n"
    for number in range(400)
)


def coded(coding: str) -> tuple[tuple[str, str], ...]:
    return (*EVENTS, ("content-encoding", coding))


@pytest.mark.parametrize(
    ("coding", "damage"),
    # Brotli has no checksum, so damage in it may go unnoticed: then it is read as what it says.
    [*((coding, "cut") for coding in ("gzip", "deflate", "br", "zstd")), ("gzip", "damaged"), ("zstd", "damaged")],
)
def test_an_answer_that_is_not_whole_leaves_nothing_unread(coding: str, damage: str) -> None:
    whole = encode(SAID, coding)
    half = len(whole) * 3 // 4
    body = whole[:half] if damage == "cut" else whole[:half] + bytes(64) + whole[half + 64 :]
    head = ResponseHead(status=200, reason="OK", headers=coded(coding))
    removal = a_removal(r"bob@[a-z.]+", heard=body, headers=head.headers)
    changed = removal.answer(body, head)
    assert removal.unread() != ()
    assert removal.unread() == (), "it is told once"
    left = decode(changed, coding)
    assert b"bob@" not in left and b"bob@" not in changed
    readable, _ = decode_as_far_as_possible(body, coding)
    assert len(left) == len(readable)


def test_a_body_in_a_coding_that_nobody_knows_is_left_out() -> None:
    headers = (*JSON, ("content-encoding", "dcb"))
    removal = a_removal("bob", heard=b"{}")
    assert removal.body(b"\xff\x44DCB\x9f bob", headers) == b""
    assert removal.unread() == ("unknown content coding 'dcb'",)
    assert removal.body(b'{"to": "bob"}', headers) == b'{"to": "xxx"}', "the coding was a wrong claim"


def test_frames_that_are_cut_or_damaged_are_left_out() -> None:
    def one(text: str) -> bytes:
        inner = base64.b64encode(json.dumps({"text": text}).encode()).decode()
        return frame([(":event-type", 7, "chunk")], json.dumps({"bytes": inner}).encode())

    good, other = one("ask bob-1234"), one("or bob-9999")
    for body in (good + other[:-7], good + other[:-1] + b"\x00", good + b"\xff" * 40 + other):
        removal = a_removal(r"bob-\d+", heard=body, headers=())
        changed = removal.body(body, ())
        found = read_frames(changed)
        said = [base64.b64decode(json.loads(frame.payload)["bytes"]) for frame in found.frames]
        assert said == [b'{"text": "ask REDACTED"}']
        assert (found.cut, found.lost) == (False, 0)
        assert removal.unread() == ("frames that are cut or damaged",)


def test_headers_of_frames_are_read_as_well() -> None:
    body = frame([(":error-message", 7, "no bob-1234 here"), (":n", 4, 7)], b'{"a": 1}')
    changed = a_removal(r"bob-\d+", heard=body, headers=()).body(body, ())
    [found] = read_frames(changed).frames
    assert (found.intact, found.header(":error-message")) == (True, "no REDACTED here")


def test_a_url_is_read_as_one_text_and_a_host_whatever_its_case() -> None:
    head = RequestHead(method="POST", scheme="https", host="s.acme.example", port=443, target="/v1/bob?x=1", headers=())
    for pattern, url in (
        ("ACME", "https://s.xxxx.example/v1/bob?x=1"),
        (r"acme\.example/v1", "https://s.redactedxxxxxxx/bob?x=1"),
        (r"^/v1/bob", "https://s.acme.examplexxxxxxx?x=1"),
    ):
        removal = Removal(compiled_patterns([pattern]))
        removal.learn(head.url)
        removal.learned()
        changed = removal.address(head)
        assert changed.url == url
        assert not re.search(pattern, changed.url, re.IGNORECASE)
        assert changed.host == changed.host.lower()
        replayed = PatternedRedactor(Secrets(()), compiled_patterns([pattern])).request_head(head)
        assert (replayed.host, replayed.target) == (changed.host, changed.target), "so that a replay finds it"


def test_patterns_that_match_nothing_are_told_one_by_one() -> None:
    removal = a_removal("bob", "alice", "carol", heard=b'{"to": "alice"}')
    assert removal.idle == ("bob", "carol")


def test_a_command_line_is_read_as_one_text() -> None:
    removal = Removal(compiled_patterns([r"--user \w+"]))
    removal.learn("agent --user bob x")
    removal.learned()
    assert removal.arguments(("agent", "--user", "bob", "x")) == ("agent", "xxxxxx", "xxx", "x")


@pytest.mark.parametrize("body", [b'data: {"a": 1}\n\ndata: {"text": "ask bob-1234 or', b'{"text": "ask bob-1234 or'])
def test_a_string_that_is_cut_is_read_as_far_as_it_came(body: bytes) -> None:
    changed = Removal(compiled_patterns([r"bob-\d+"]))
    changed.learn_body(b"{}", EVENTS)
    changed.learned()
    assert changed.body(body, EVENTS) == body.replace(b"bob-1234", b"REDACTED")
