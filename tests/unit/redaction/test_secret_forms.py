"""The ways of writing a secret, and the search for them."""

import base64
import json
import random
import string
from html import escape
from urllib.parse import quote, quote_plus

import pytest

from rewind.redaction.scanner import Scanner
from rewind.redaction.values import forms, placeholder

AWKWARD = "pä\"ss\\w/ö+rd <1&2>'3"


def test_the_placeholder_has_the_length_it_is_asked_for_and_only_letters() -> None:
    assert placeholder(8) == "REDACTED"
    assert placeholder(12) == "REDACTEDxxxx"
    assert placeholder(3) == "REDACTED"
    assert placeholder(200).isalpha()


@pytest.mark.parametrize(
    "written",
    [
        AWKWARD,
        json.dumps(AWKWARD)[1:-1],
        json.dumps(AWKWARD, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(AWKWARD)[1:-1])[1:-1],
        json.dumps(AWKWARD)[1:-1].replace("/", "\\/"),
        json.dumps(AWKWARD)[1:-1]
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
        .replace("'", "\\u0027"),
        json.dumps(AWKWARD)[1:-1].replace("\\u00e4", "\\u00E4").replace("\\u00f6", "\\u00F6"),
        quote(AWKWARD),
        quote(AWKWARD, safe=""),
        quote_plus(AWKWARD),
        quote(AWKWARD, safe="").lower(),
        AWKWARD.encode().hex(),
        AWKWARD.encode().hex().upper(),
        escape(AWKWARD),
        escape(AWKWARD, quote=False),
    ],
)
def test_each_way_of_writing_is_found_whole(written: str) -> None:
    data = f"before {written} after".encode()
    (span,) = Scanner(forms(AWKWARD)).find(data)
    assert data[slice(*span)].decode() == written


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("before", range(6))
@pytest.mark.parametrize("after", range(4))
def test_base64_is_found_wherever_the_secret_begins(encode: object, before: int, after: int) -> None:
    secret = "sk-ÿ?>~ÿ?>~-0123456789abcdef"
    data = encode(b"u" * before + secret.encode() + b"v" * after)  # type: ignore[operator]
    ((start, end),) = Scanner(forms(secret)).find(data)
    kept = data[:start] + b"A" * (end - start) + data[end:]
    whole = base64.urlsafe_b64decode(kept.translate(bytes.maketrans(b"+/", b"-_")))
    # All that depends on the secret alone is gone: at most the two bytes at its ends share a character with others.
    assert not any(secret.encode()[at : at + 3] in whole for at in range(len(secret.encode()) - 2))


def test_plain_keys_have_few_forms() -> None:
    assert len(forms("sk-proj-abcdefghijklmnop0123456789")) <= 9


def test_a_form_below_eight_bytes_is_not_searched_for() -> None:
    assert all(len(form) >= 8 for form in forms("abcd1234"))


def test_forms_that_overlap_are_removed_as_one() -> None:
    scanner = Scanner([b"abcdEFGH", b"EFGHijkl"])
    assert scanner.find(b"..abcdEFGHijkl..") == [(2, 14)]


def test_the_search_agrees_with_a_plain_one_at_every_length_and_alignment() -> None:
    chance = random.Random(7)
    for size in [*range(8, 60), 100, 400]:
        form = "".join(chance.choices(string.ascii_letters, k=size)).encode()
        scanner = Scanner([form, b"another-value-that-is-not-there"])
        for before in range(40):
            data = b"." * before + form + b"." * (before % 9)
            assert scanner.find(data) == [(before, before + size)]
            assert scanner.find(data[:-1] if before % 9 == 0 else data.replace(form, form[:-1])) == []


def test_pending_is_the_longest_beginning_at_the_end() -> None:
    scanner = Scanner([b"sk-proj-0123456789", b"proj-abcdefgh"])
    assert scanner.pending(b"nothing here!") == 0
    assert scanner.pending(b"it ends in s") == 1
    assert scanner.pending(b"sk") == 2
    assert scanner.pending(b"the key is sk-proj-0123") == 12
    assert scanner.pending(b"the key is sk-proj-abcd") == 9
    assert scanner.pending(b"sk-proj-0123456789") == 0
    assert scanner.pending(b"") == 0


def test_a_complete_value_that_may_become_a_longer_one_is_not_settled() -> None:
    scanner = Scanner([b"secret-12", b"secret-12345"])
    assert scanner.cut(b"a secret-12") == ([], 2)
    assert scanner.cut(b"a secret-12!") == ([(2, 11)], 12)
    assert scanner.cut(b"a secret-12345!") == ([(2, 14)], 15)


def test_a_chain_of_overlapping_values_is_not_held_for_ever() -> None:
    spans, settled = Scanner([b"abababab"]).cut(b"ab" * 100_000)
    assert (spans, settled) == ([(0, 200_000)], 200_000)


def test_a_short_beginning_at_the_end_is_left_and_a_long_one_is_not() -> None:
    scanner = Scanner([b"sk-ant-api03-" + b"0123456789" * 4])
    assert scanner.end(b"keys begin with sk-ant-") == []
    assert scanner.end(b"your key: sk-ant-api03-01234567") == [(10, 31)]


def test_escapes_before_a_value_go_with_it_so_that_json_in_json_stays_json() -> None:
    scanner = Scanner(forms("<0a1b2c3d"))
    nested = json.dumps(json.dumps(json.dumps({"a": "<0a1b2c3d"}).replace("<", "\\u003c")))
    data = nested.encode()
    ((start, end),) = scanner.find(data)
    kept = data[:start] + placeholder(end - start).encode() + data[end:]
    assert json.loads(json.loads(json.loads(kept)))["a"].rstrip("x") == "REDACTED"
    for cut in range(start + 1, end):
        assert scanner.cut(data[:cut]) == ([], start)
