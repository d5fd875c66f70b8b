"""What is remembered from one request to the next saves time and changes nothing."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind.redaction.redactor import CleanBeginnings, Redactor
from rewind.redaction.scanner import Scanner, Span
from rewind.redaction.secrets import Secrets
from rewind.wire.chunks import BodyCutter, cut_body

SECRET = "sk-live-4f9a8b7c6d5e0123456789"
TEXTS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [SECRET, SECRET[:13], SECRET[13:], 'a "quoted" \\ text\n', "\\\\\\", "naïve ☃", "x" * 300, "y" * 5000]
    ),
)
MESSAGES = st.lists(st.tuples(TEXTS, st.integers(1, 3)), max_size=12)
FILLING = "word " * 4000
"""Short bodies are not remembered at all."""


@st.composite
def conversations(draw: st.DrawFn) -> list[bytes]:
    """Bodies of which each goes on from an earlier one, drops some of it, or changes a byte of it."""
    messages: list[Any] = [{"role": "user", "content": FILLING}]
    bodies: list[bytes] = []
    ascii_only = draw(st.booleans())
    for text, times in draw(MESSAGES):
        messages = messages[: draw(st.integers(max(1, len(messages) - 2), len(messages)))]
        messages.append({"role": "assistant", "content": text * times})
        whole = {"model": "m", "messages": messages, "tools": [text]}
        body = json.dumps(whole, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        if draw(st.integers(0, 9)) == 0:
            body = body[: draw(st.integers(0, len(body)))]
        bodies.append(body)
    return bodies


@given(conversations())
def test_bodies_are_cut_as_if_each_were_the_first(bodies: list[bytes]) -> None:
    cutter = BodyCutter()
    for body in bodies:
        assert cutter.cut(body).pieces() == cut_body(body)


@given(conversations())
def test_a_body_has_the_pieces_that_it_shares_with_the_one_it_goes_on_from(bodies: list[bytes]) -> None:
    cutter = BodyCutter()
    for body in bodies:
        cut = cutter.cut(body)
        if cut.known is not None:
            assert cut.pieces()[: cut.shared] == cut.known.pieces()[: cut.shared]


@given(conversations(), st.sampled_from([SECRET, "tiny-key", "\u00e9t\u00e9-" * 3]))
def test_secrets_are_found_as_if_nothing_had_been_searched_before(bodies: list[bytes], secret: str) -> None:
    scanner, known = Secrets([secret]).scanner, CleanBeginnings()
    for body in bodies:
        assert known.find(scanner, body) == scanner.find(body)


@given(st.integers(0, len(SECRET)), st.integers(0, 3), st.booleans())
def test_a_secret_that_ends_a_known_beginning_is_found(split: int, letters: int, escaped: bool) -> None:
    """It begins in what was clean, and only the next request completes it."""
    written = "".join(f"\\u{ord(sign):04x}" for sign in SECRET) if escaped else SECRET
    split = min(len(written), split * (6 if escaped else 1) + letters)
    redactor = Redactor(Secrets([SECRET]))
    first, second = f"{FILLING}{written[:split]}".encode(), f"{FILLING}{written} and more".encode()
    redactor.body(first, ())
    assert SECRET.encode() not in redactor.body(second, ()) and written.encode() not in redactor.body(second, ())


def test_a_value_that_is_learned_later_is_looked_for_from_the_beginning() -> None:
    secrets = Secrets(["another-secret-123456"])
    redactor = Redactor(secrets)
    body = f"{FILLING}{SECRET} {FILLING}".encode()
    assert redactor.body(body, ()) == body
    secrets.add(SECRET)
    assert SECRET.encode() not in redactor.body(body + b" more", ())


def test_what_is_remembered_is_bounded() -> None:
    known, scanner = CleanBeginnings(), Scanner([SECRET.encode()])
    for number in range(40):
        known.find(scanner, f"{number} {FILLING}".encode() * 40)
    assert sum(map(len, known._known[1])) <= 8 * 1024 * 1024 and len(known._known[1]) <= 8
    cutter = BodyCutter()
    for number in range(40):
        cutter.cut(json.dumps([str(number), FILLING * 40]).encode())
    assert len(cutter._known) <= 8 and sum(len(one.body) for one in cutter._known) <= 9 * 1024 * 1024


def test_a_text_that_was_clean_is_searched_again_once_another_value_is_known() -> None:
    secrets = Secrets(["another-secret-123456"])
    redactor = Redactor(secrets)
    assert redactor.text(f"key={SECRET}") == f"key={SECRET}" == redactor.text(f"key={SECRET}")
    secrets.add(SECRET)
    assert SECRET not in redactor.text(f"key={SECRET}")
    for number in range(3000):
        redactor.text(f"text {number}")
    assert len(redactor._clean_texts[1]) < 1000


def test_conversations_side_by_side_are_searched_where_they_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    search = Scanner.search

    def counted(self: Scanner, data: bytes, clean: int = 0) -> tuple[list[Span], bool]:
        searched.append(len(data) - clean)
        return search(self, data, clean)

    monkeypatch.setattr(Scanner, "search", counted)
    known, scanner = CleanBeginnings(), Scanner([SECRET.encode()])
    for turns in range(40, 60):
        for talk in "ABC":
            known.find(scanner, b"the same instructions " + f"{talk} {'word ' * 200}".encode() * turns)
    assert sum(searched) < 3 * 60 * 1100, "each turn once"
