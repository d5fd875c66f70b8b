"""Text over several lines: it fits, loses nothing, and keeps its indentation and its colours."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind.cli.screens.layout import print_hanging, wrapped
from rewind.cli.screens.terminal import Span, Terminal
from rewind.safe import display_width


def lines(*spans: Span | str, width: int = 20) -> list[str]:
    given_spans = [Span(span) if isinstance(span, str) else span for span in spans]
    return ["".join(span.text for span in line) for line in wrapped(given_spans, width)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a few words", ["a few words"]),
        ("as many words as take two lines", ["as many words as", "take two lines"]),
        ("  an indented line of many words", ["  an indented line", "  of many words"]),
        ("x" * 45, ["x" * 20, "x" * 20, "x" * 5]),
        ("", [""]),
        ("over\nlines", ["over⏎lines"]),
        ("漢字" * 6, ["漢字" * 5, "漢字"]),
    ],
)
def test_lines_are_broken_between_words(text: str, expected: list[str]) -> None:
    assert lines(text) == expected


def test_a_word_in_two_styles_is_not_broken_between_them() -> None:
    assert lines("then refund ", Span("[-what is-]", "red"), ".") == ["then refund [-what", "is-]."]


def test_an_escape_counts_as_wide_as_it_is_shown() -> None:
    assert lines("\x1b" * 6) == ["\\x1b" * 5, "\\x1b"]


@given(st.text(alphabet="ab \x1b漢", max_size=80), st.integers(min_value=20, max_value=40))
def test_no_line_is_too_wide_and_no_letter_is_lost(text: str, width: int) -> None:
    shown = lines(text, width=width)
    assert all(display_width(line) <= width for line in shown)
    assert "".join("".join(shown).split()) == "".join(text.replace("\x1b", "\\x1b").split())


def test_what_hangs_from_a_label_stands_below_its_first_word() -> None:
    stream = io.StringIO()
    terminal = Terminal(stream, colour=True, width=32)
    text = (Span("changed from one thing to "), Span("another", "green"))
    print_hanging(terminal, [text, (Span("  evidence"),)], label="Cause", indent=8, style="bold")
    assert stream.getvalue().splitlines() == [
        "\x1b[1mCause   \x1b[0mchanged from one thing",
        "        to \x1b[32manother\x1b[0m",
        "          evidence",
    ]
