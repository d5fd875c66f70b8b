"""What earlier good runs say about a difference."""

import json

import pytest

from rewind.compare.variation import VariationReach, fields_of, variation_of


def delivered(days: int, **more: object) -> str:
    return json.dumps({"order": "A-1", "days_since_delivery": days, **more})


def test_a_number_within_what_was_seen_varies_and_one_beyond_does_not() -> None:
    seen = [delivered(days) for days in (3, 5, 9, 4, 6)]
    inside = variation_of(delivered(7), delivered(8), seen)
    assert (inside.reach, inside.runs, inside.seen) == (VariationReach.INSIDE, 5, ("days_since_delivery 3 to 9",))
    assert variation_of(delivered(7), delivered(46), seen).reach is VariationReach.OUTSIDE


def test_what_always_was_the_same_is_fixed() -> None:
    assert variation_of(delivered(7), delivered(8), [delivered(7)] * 6).reach is VariationReach.FIXED


def test_one_field_outside_is_enough() -> None:
    seen = [delivered(days, load=load) for days, load in ((3, 10), (5, 80), (9, 20), (4, 30), (6, 50))]
    assert variation_of(delivered(7, load=15), delivered(46, load=15), seen).reach is VariationReach.OUTSIDE
    assert variation_of(delivered(7, load=15), delivered(8, load=60), seen).reach is VariationReach.INSIDE


@pytest.mark.parametrize(
    ("bad", "reach"), [({"trace": "9c1e77ab"}, VariationReach.INSIDE), ({"trace": "none"}, VariationReach.OUTSIDE)]
)
def test_a_value_that_never_came_twice_is_drawn(bad: object, reach: VariationReach) -> None:
    seen = [json.dumps({"trace": value}) for value in ("a81f03c2", "77be10dd", "01cd55e1", "f00a1b2c", "5e6d7c8b")]
    assert variation_of(json.dumps({"trace": "1a2b3c4d"}), json.dumps(bad), seen).reach is reach


def test_a_word_that_was_seen_is_inside_and_another_is_not() -> None:
    seen = [json.dumps({"region": value}) for value in ("eu", "us", "eu", "us", "eu")]
    assert variation_of('{"region": "eu"}', '{"region": "us"}', seen).reach is VariationReach.INSIDE
    assert variation_of('{"region": "eu"}', '{"region": "mars"}', seen).reach is VariationReach.OUTSIDE


def test_values_in_plain_text_are_known_by_the_words_before_them() -> None:
    seen = [f"{count} passed in {time}s" for count, time in ((41, 0.31), (41, 0.52), (41, 0.44), (41, 0.4), (41, 0.6))]
    assert variation_of("41 passed in 0.50s", "41 passed in 0.33s", seen).reach is VariationReach.INSIDE
    assert variation_of("41 passed in 0.50s", "40 passed in 0.33s", seen).reach is VariationReach.FIXED
    assert variation_of("41 passed in 0.50s", "41 passed in 90.1s", seen).reach is VariationReach.OUTSIDE


def test_texts_of_no_common_form_are_compared_as_wholes() -> None:
    seen = [
        f"Rain in the {place}, wind from the {wind}."
        for place in ("north", "hills")
        for wind in ("west", "sea", "east")
    ]
    usual = variation_of("Rain in the south, wind from the west.", "Rain in the city, wind from the east.", seen)
    assert usual.reach is VariationReach.INSIDE
    assert variation_of(seen[0], "Error: upstream timed out", seen).reach is VariationReach.OUTSIDE


def test_a_field_that_comes_or_goes_makes_it_another_form() -> None:
    seen = [delivered(days) for days in (3, 5, 9, 4, 6)]
    assert variation_of(delivered(7), delivered(7, error="gone"), seen).reach is VariationReach.OUTSIDE


def test_too_many_fields_are_none() -> None:
    assert fields_of(json.dumps(list(range(5000)))) is None
    assert fields_of("[" * 100_000) is not None, "broken JSON is plain text"
