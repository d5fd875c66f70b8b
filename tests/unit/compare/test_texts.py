"""Two texts word by word: nothing is lost, what stayed is kept together, ids and times do not count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind.compare.texts import WordFate, word_pieces

MARKS = {WordFate.KEPT: "{}", WordFate.GONE: "[-{}-]", WordFate.COME: "{{+{}+}}"}
TEXTS = st.text(alphabet="ab .,\n1é", max_size=40)


def shown(before: str, after: str, *, volatile: bool = False) -> str:
    pieces = word_pieces(before, after, volatile=volatile)
    return "".join(MARKS[piece.fate].format(piece.text) for piece in pieces)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("refund what is due.", "refund only after a word.", "refund [-what is due-]{+only after a word+}."),
        ("one two three", "one 2 three", "one [-two-]{+2+} three"),
        ("It is. Use it.", "It is.", "It is. [-Use it.-]"),
        ("first\nsecond\nthird", "first\nthird", "first\n[-second-]\nthird"),
        ("a\nb\nc", "a\nb\nc\nd", "a\nb\nc\n{+d+}"),
        ("same  words", "same words", "same words"),
        ("", "new", "{+new+}"),
        ("old", "", "[-old-]"),
        ("", "", ""),
    ],
)
def test_what_went_and_what_came_stand_where_they_were(before: str, after: str, expected: str) -> None:
    assert shown(before, after) == expected


def test_a_few_letters_between_two_changes_are_told_as_changed() -> None:
    assert shown("pay it at once", "keep it for now") == "[-pay it at once-]{+keep it for now+}"
    assert shown("pay the customer at once", "keep the customer for now") == (
        "[-pay-]{+keep+} the customer [-at once-]{+for now+}"
    )


def test_ids_and_times_do_not_count_beside_other_changes() -> None:
    before = "It is 2026-11-15T09:02:00Z. Be kind. Request 0b7c3f6e-8d0e-4f6a-9a53-0b1f5a6c7d8e."
    after = "It is 2026-11-15T09:14:31Z. Be strict. Request 5d1f0a9c-1b2e-4c3d-8e4f-a0b1c2d3e4f5."
    assert shown(before, after) == (
        "It is 2026-11-15T09:14:31Z. Be [-kind-]{+strict+}. Request 5d1f0a9c-1b2e-4c3d-8e4f-a0b1c2d3e4f5."
    )


def test_ids_and_times_are_shown_where_they_are_all_that_differs() -> None:
    shown_times = shown("It is 2026-11-15T09:02:00Z.", "It is 2026-11-15T09:14:31Z.")
    assert "[-" in shown_times and "{+" in shown_times


@given(TEXTS, TEXTS)
def test_both_texts_can_be_read_back(before: str, after: str) -> None:
    pieces = word_pieces(before, after)
    old = "".join(piece.text for piece in pieces if piece.fate is not WordFate.COME)
    new = "".join(piece.text for piece in pieces if piece.fate is not WordFate.GONE)
    assert "".join(old.split()) == "".join(before.split())
    assert "".join(new.split()) == "".join(after.split())


@given(TEXTS)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert all(piece.fate is WordFate.KEPT for piece in word_pieces(text, text))


def test_a_long_text_is_compared_by_lines_and_then_by_words() -> None:
    lines = [f"Rule {number} says that orders are handled with care." for number in range(3_000)]
    changed = [*lines]
    changed[10], changed[2_900] = ("Rule 10 says nothing.", "Rule 2900 says that orders are handled with haste.")
    pieces = word_pieces("\n".join(lines), "\n".join(changed))
    gone = [piece.text for piece in pieces if piece.fate is WordFate.GONE]
    assert gone == ["that orders are handled with care", "care"]
