"""Laws of the scan for secrets: what a body shares with an earlier one is looked at once, and nothing else changes."""

import json
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from rewind.redaction import scan
from rewind.redaction.scan import Scan, SecretFinding
from support.effort import examples

KEY = "sk-ant-" + "a1B2c3D4e5" * 3
SECRETS = (KEY, "ghp_" + "Zx9Yw8Vu7T" * 3 + "q", "hunter2Tiger!9xQ")
# A key alone, inside a text, cut in two, behind quotes and escapes, assigned to a name; and texts that hold none.
TEXTS = st.sampled_from(
    [
        *SECRETS,
        f"use {KEY} now",
        f'say "{KEY}"\n',
        f"é\u2028{KEY}",
        *(KEY[:-1] + last for last in ("", "z", "0y", '"')),
        KEY[:20],
        KEY[20:],
        f"password={SECRETS[2]}",
        f'{{"api_key": "{SECRETS[2]}"}}',
        "plain words, nothing else",
        "x" * 40,
        "",
        '"',
        "\\",
    ]
)
NAMES = st.sampled_from(["content", "password", "api_key", "text", "", KEY, 'a"b', "role"])
VALUES = st.recursive(
    TEXTS | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
MESSAGES = st.dictionaries(NAMES, VALUES, min_size=1, max_size=3) | VALUES
MEDIA = st.sampled_from(["application/json", "", "text/event-stream", "application/x-ndjson"])


@st.composite
def conversations(draw: st.DrawFn) -> list[tuple[bytes, str]]:
    """Bodies that repeat each other: each goes on, goes back, says a message anew, or is cut or changed anywhere."""
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,", " : ")]))
    ascii_only, media = draw(st.booleans()), draw(MEDIA)
    messages: list[Any] = draw(st.lists(MESSAGES, max_size=4))
    bodies: list[tuple[bytes, str]] = []
    for _ in range(draw(st.integers(2, 6))):
        match draw(st.sampled_from(["more", "more", "fewer", "other", "last", "last", "twice"])):
            case "more":
                messages = messages + draw(st.lists(MESSAGES, min_size=1, max_size=2))
            case "fewer":
                messages = messages[: draw(st.integers(0, len(messages)))]
            case "other" if messages:
                at = draw(st.integers(0, len(messages) - 1))
                messages = [*messages[:at], draw(MESSAGES), *messages[at + 1 :]]
            case "last":
                messages = [*messages[:-1], {draw(NAMES): draw(TEXTS)}]
            case _:
                messages = messages * 2 if len(messages) < 12 else messages
        whole = {"model": "m", "messages": messages, draw(NAMES): draw(VALUES)}
        body = json.dumps(whole, separators=separators, ensure_ascii=ascii_only).encode()
        match draw(st.sampled_from(["whole", "whole", "whole", "cut", "changed", "other media"])):
            case "cut":
                body = body[: draw(st.integers(0, len(body)))]
            case "changed":
                at = draw(st.integers(0, len(body) - 1))
                body = body[:at] + draw(st.sampled_from([b'"', b"\\", b":", b" ", b"7", b"}", b"z"])) + body[at + 1 :]
            case "other media":
                media = draw(MEDIA)
        bodies.append((body, media))
    return bodies


def scanned(bodies: list[tuple[bytes, str]], long: int, kept: int = 8) -> list[tuple[SecretFinding, ...]]:
    found, one = [], Scan()
    with patch.multiple(scan, _LONG_BODY=long, _BETWEEN_MARKS=1, _KEPT=kept):
        for step, (body, media) in enumerate(bodies, 1):
            one.body(body, (("content-type", media),), "request body", step=step)
            found.append(one.findings)
    return found


@given(conversations(), st.sampled_from([1, 2, 8]))
@settings(max_examples=examples(150))
def test_what_is_found_in_bodies_that_repeat_each_other_is_what_is_found_in_each(
    bodies: list[tuple[bytes, str]], kept: int
) -> None:
    assert scanned(bodies, 0, kept) == scanned(bodies, 10**9)


@given(conversations(), conversations())
@settings(max_examples=examples(50))
def test_conversations_side_by_side_do_not_hide_what_the_other_says(
    one: list[tuple[bytes, str]], other: list[tuple[bytes, str]]
) -> None:
    mixed = [body for pair in zip(one, other, strict=False) for body in pair]

    assert scanned(mixed, 0) == scanned(mixed, 10**9)
    assert scanned(other, 0) == scanned(other, 10**9), "a scan knows nothing of another one"


def test_a_secret_that_every_request_repeats_counts_each_time_and_is_named_where_it_was_first() -> None:
    messages = [{"role": "user", "content": f"message {number} " + "of many words " * 20} for number in range(40)]
    messages[3] = {"role": "user", "content": f"my key is {KEY}"}
    bodies = [
        (json.dumps({"messages": messages[:count]}).encode(), "application/json") for count in range(1, len(messages))
    ]

    (finding,) = scanned(bodies, 2048)[-1]

    assert finding.places == len(bodies) - 3
    assert (finding.step, finding.path) == (4, "messages[3].content")


def test_a_secret_is_known_by_its_name_where_only_its_value_is_new() -> None:
    bodies = [(json.dumps({"password": value}).encode(), "application/json") for value in ("x" * 20, SECRETS[2])]

    (finding,) = scanned(bodies, 0)[-1]

    assert (finding.step, finding.path) == (2, "password")
