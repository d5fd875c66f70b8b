"""Laws of escaped secrets: whichever letters are written as escapes, and however, all of the value is found."""

import json
import random
from html import unescape
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewind.model.http import ResponseHead
from rewind.redaction.redactor import Redactor
from rewind.redaction.scanner import Scanner
from rewind.redaction.secrets import Secrets
from rewind.redaction.stream_redactor import Contiguous
from rewind.redaction.values import forms, is_searchable
from support.effort import examples

VALUE = st.text("abcxyzABCXYZ0189-_.+/=~!é", min_size=8, max_size=40).filter(is_searchable)
AROUND = st.text("ωψχ .,\n%\\&#u", max_size=12)
SPELLINGS = {
    "as it is": lambda letter: letter,
    "small": lambda letter: f"\\u{ord(letter):04x}",
    "capitals": lambda letter: f"\\u{ord(letter):04X}",
    "nested": lambda letter: f"\\\\u{ord(letter):04x}",
    "nested twice": lambda letter: f"\\\\\\\\u{ord(letter):04X}",
    "braces": lambda letter: f"\\u{{{ord(letter):x}}}",
    "in a URL": lambda letter: f"%{ord(letter):02x}" if letter.isascii() else letter,
    "in a URL, capitals": lambda letter: f"%{ord(letter):02X}" if letter.isascii() else letter,
    "as a byte": lambda letter: f"\\x{ord(letter):02x}" if letter.isascii() else letter,
    "in HTML": lambda letter: f"&#{ord(letter)};",
    "in HTML, hexadecimal": lambda letter: f"&#x{ord(letter):X};",
}


@st.composite
def spelled(draw: st.DrawFn) -> tuple[str, str]:
    """A value, and one of its spellings."""
    value = draw(VALUE)
    ways = draw(st.lists(st.sampled_from(sorted(SPELLINGS)), min_size=1, max_size=3))
    return value, "".join(SPELLINGS[draw(st.sampled_from(ways))](letter) for letter in value)


def scanner(value: str) -> Scanner:
    return Scanner(forms(value), letters=value)


@settings(max_examples=examples(200))
@given(spelled(), AROUND, AROUND)
def test_any_spelling_is_found_whole(case: tuple[str, str], before: str, after: str) -> None:
    value, written = case
    # What stands before must not be read as the beginning of the first escape.
    data, start = f"{before}.{written}.{after}".encode(), len(f"{before}.".encode())
    spans = scanner(value).find(data)
    assert any(first <= start and last >= start + len(written.encode()) for first, last in spans), data


@settings(max_examples=examples(200))
@given(spelled(), AROUND, AROUND, st.data())
def test_cutting_the_reads_changes_nothing(case: tuple[str, str], before: str, after: str, data: st.DataObject) -> None:
    value, written = case
    body = f"{before}.{written}.{after}".encode()
    whole = Contiguous(scanner(value))
    expected = whole.feed(body) + whole.finish()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=12)))
    parts = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    stage = Contiguous(scanner(value))
    given_out = b"".join(map(stage.feed, parts)) + stage.finish()
    assert given_out == expected
    assert written.encode() not in given_out


@settings(max_examples=examples(100))
@given(VALUE, st.integers(0, 2**32), st.data())
def test_a_model_that_says_it_escaped_and_in_pieces(value: str, seed: int, data: st.DataObject) -> None:
    """A tool call's arguments are JSON in a string; each event brings a few characters of it."""
    chance = random.Random(seed)
    inner = "".join(f"\\u{ord(letter):04x}" if chance.random() < 0.6 else letter for letter in value)
    spoken = '{"key": "' + inner.replace('"', "") + '"}'
    cuts = sorted(data.draw(st.lists(st.integers(0, len(spoken)), max_size=12)))
    texts = [spoken[start:end] for start, end in zip([0, *cuts], [*cuts, len(spoken)], strict=True)]
    events = [{"choices": [{"index": 0, "delta": {"arguments": text}}]} for text in texts]
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    head = ResponseHead(status=200, reason="OK", headers=(("content-type", "text/event-stream"),))
    stream = Redactor(Secrets([value])).stream(head)
    kept = stream.feed(body) + stream.finish()
    kept = kept if stream.replacement is None else stream.replacement
    lines = [json.loads(line[6:]) for line in kept.splitlines() if line]
    said = "".join(line["choices"][0]["delta"]["arguments"] for line in lines)
    assert value not in json.loads(said)["key"]
    assert len(kept) == len(body)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_what_is_left_is_what_it_was_around_the_value(spelling: str) -> None:
    value = "sk-proj-a1B2c3D4e5F6"
    written = "".join(map(SPELLINGS[spelling], value))
    text = json.dumps({"a": "before", "b": "after"}).replace("after", f"<{written}>after")
    kept = Redactor(Secrets([value])).text(text)
    assert len(kept) == len(text)
    inside = json.loads(kept.replace("\\x", "\\\\x"))["b"]
    assert inside.startswith("<REDACTED") and inside.endswith(">after")
    assert value not in unescape(unquote(inside))


def test_escapes_of_other_characters_are_left_alone() -> None:
    redactor = Redactor(Secrets(["sk-proj-a1B2c3D4e5F6"]))
    text = '{"a": "\\u003cb\\u003e \\u0026 \\u4e2d\\u6587 %20%2F &#39; \\u0073 %73 sk-proj-a1B2"}'
    assert redactor.text(text) == text
