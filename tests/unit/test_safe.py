"""Nothing that comes from outside can give orders to the terminal, or hide from its reader."""

import sys
import unicodedata

import pytest

from rewind.safe import safe, safe_line


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x1b]52;c;ZXZpbA==\x1b\\", r"\x1b]52;c;ZXZpbA==\x1b" + "\\"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b31m", r"\x9b31m"),
        ("\x90q\x9c", r"\x90q\x9c"),
        ("harmless\revil", r"harmless\x0devil"),
        ("a\bb\x7f", r"a\x08b\x7f"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("a\u2066b\u2069", r"a\u2066b\u2069"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("\u2028", r"\u2028"),
        ("tag\U000e0041\U000e007f", r"tag\U000e0041\U000e007f"),
        ("\U000e0100", r"\U000e0100"),
        ("\ud800", r"\ud800"),
        ("\u3164", r"\u3164"),
        ("\x00", r"\x00"),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_shown(hostile: str, shown: str) -> None:
    assert safe(hostile) == shown


@pytest.mark.parametrize(
    "text", ["plain", "two\nlines\tand a tab", "äöü ß 日本語 한국어 עברית العربية", "🔑 ⚠️ e\u0301 ½ …", r"C:\x1b"]
)
def test_honest_text_stays(text: str) -> None:
    assert safe(text) == text


def test_no_character_that_controls_or_is_invisible_passes() -> None:
    kept = {"\n", "\t"}
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        category = unicodedata.category(character)
        if category in ("Cc", "Cs", "Zl", "Zp") and character not in kept:
            assert safe(character) != character, hex(code)
        if unicodedata.bidirectional(character) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"):
            assert safe(character) != character, hex(code)


def test_what_is_made_safe_can_be_written() -> None:
    safe("".join(map(chr, range(0x20000)))).encode()


@pytest.mark.parametrize(
    ("text", "width", "line"),
    [
        ("short", 10, "short"),
        ("exactly ten", 11, "exactly ten"),
        ("one too many", 11, "one too ma…"),
        ("  first\n\n  second\n", 40, "first⏎second"),
        ("a\tb", 10, "a b"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("e\u0301" * 5, 5, "e\u0301" * 5),
        ("\x1b[31mred", 20, r"\x1b[31mred"),
        ("\x1b[31mred", 6, r"\x1b[…"),
        ("\x1b[31mred", 3, "…"),
        ("anything", 1, "…"),
        ("anything", 0, ""),
        ("", 5, ""),
    ],
)
def test_a_preview_fits_its_line(text: str, width: int, line: str) -> None:
    assert safe_line(text, width) == line


def test_a_preview_of_a_long_text_looks_at_its_beginning_only() -> None:
    assert safe_line("x" * 10_000_000, 5) == "xxxx…"
    assert safe_line(" \n" * 1_000_000 + "end", 5).endswith("…")
