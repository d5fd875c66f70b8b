"""Where two texts part."""

import random

from rewind.match.token_search import common_beginning, legible


def test_texts_share_what_they_begin_with() -> None:
    dice = random.Random(3)
    for _ in range(300):
        shared, ahead = "ab" * dice.randrange(1500), "x" * dice.randrange(5)
        assert common_beginning(ahead + shared + "1", shared + "2", len(ahead), 0) == len(shared)
        assert common_beginning(shared, shared + "2", 0, 0) == len(shared)


def test_line_breaks_and_colours_within_a_text_are_seen_as_such_and_it_is_as_long_as_before() -> None:
    text = "a\\nb \\\\tc \x1b[32md\x1b[0m\\u001b[1me C:\\word"
    assert legible(text) == "a\n\nb \n\n\nc      d             e C:\\word"
    assert len(legible(text)) == len(text)
