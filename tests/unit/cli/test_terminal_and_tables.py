import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind.cli.screens.layout import Column, print_table
from rewind.cli.screens.list import unique_prefixes
from rewind.cli.screens.terminal import PIPE_WIDTH, Span, Terminal, terminal
from rewind.safe import display_width


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("screen", "env", "colour"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (False, {}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (True, {"FORCE_COLOR": "0"}, False),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (False, {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
    ],
)
def test_colours_follow_the_conventions(screen, env, colour):
    assert terminal(Screen() if screen else io.StringIO(), env).colour is colour


@pytest.mark.parametrize(
    ("env", "width"),
    [({}, PIPE_WIDTH), ({"COLUMNS": "72"}, 72), ({"COLUMNS": "x"}, PIPE_WIDTH), ({"COLUMNS": "1"}, 20)],
)
def test_the_width_of_a_pipe_is_columns_or_generous(env, width):
    assert terminal(io.StringIO(), env).width == width


def test_styles_wrap_safe_text_and_vanish_without_colour():
    parts = ("a ", Span("b\x1b[31m", "bold red"))
    coloured, plain = io.StringIO(), io.StringIO()
    Terminal(coloured, colour=True).line(*parts)
    Terminal(plain).line(*parts)
    assert coloured.getvalue().startswith("a \x1b[1;31mb")
    assert coloured.getvalue().endswith("\x1b[0m\n")
    assert coloured.getvalue().count("\x1b") == 2
    assert "\x1b" not in plain.getvalue()


def test_an_encoding_without_our_signs_gets_plain_ones():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", errors="backslashreplace")
    terminal(stream, {}).line("✓ done · next → 漢 ▁▂▃▄▅▆▇█ —")
    assert raw.getvalue() == b"+ done - next > \\u6f22 _.:-=+*# -\n"


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("漢字", 4), ("e\u0301", 1), ("", 0)])
def test_the_width_of_a_text_is_what_the_screen_takes(text, width):
    assert display_width(text) == width


def table(columns: list[Column], rows: list[list[str]], width: int = 40) -> list[str]:
    stream = io.StringIO()
    print_table(Terminal(stream, width=width), columns, rows)
    return stream.getvalue().splitlines()


def test_columns_are_aligned_numbers_to_the_right():
    lines = table([Column("name"), Column("n", right=True)], [["漢", "1"], ["abcdef", "1,200"]])
    assert lines == ["name        n", "漢          1", "abcdef  1,200"]


def test_flexible_columns_give_way_and_others_do_not():
    columns = [Column("id"), Column("text", flexible=True, least=5), Column("more", flexible=True, least=5)]
    lines = table(columns, [["7f3a2b9c", "x" * 50, "y" * 12]], width=30)
    assert all(display_width(line) <= 30 for line in lines)
    assert lines[1].startswith("7f3a2b9c  ")
    assert "…" in lines[1]


def test_a_cell_stays_on_its_line_whatever_it_holds():
    hostile = "two\nlines\r\tand \x1b[2J a \x9b31m bell\x07 \u202eright to left"
    lines = table([Column("text")], [[hostile]], width=200)
    assert len(lines) == 2
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in lines[1])
    assert "\u202e" not in lines[1]


@given(st.lists(st.text(max_size=60), min_size=1, max_size=4), st.integers(20, 60))
def test_a_table_with_room_to_give_never_leaves_the_screen(texts, width):
    lines = table([Column("n"), Column("text", flexible=True, least=4)], [["1", text] for text in texts], width)
    assert len(lines) == len(texts) + 1
    assert all(display_width(line) <= width for line in lines)


def test_a_table_too_wide_for_the_screen_is_still_printed():
    assert len(table([Column("a"), Column("b", flexible=True)], [["x" * 60, "y" * 60]], width=20)) == 2


@given(st.sets(st.text("0123456789abcdef", min_size=8, max_size=8), min_size=1, max_size=30))
def test_a_unique_prefix_is_unique_and_the_shortest(ids):
    lengths = unique_prefixes(ids, ids)
    assert lengths.keys() == ids
    for one, length in lengths.items():
        assert [other for other in ids if other.startswith(one[:length])] == [one]
        assert length == 1 or sum(other.startswith(one[: length - 1]) for other in ids) > 1
