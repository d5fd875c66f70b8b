"""Ids and times are noise; numbers and names are not."""

import pytest

from rewind.compare.texts import noise_values, only_noise, without_noise


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ("run 123e4567-e89b-12d3-a456-426614174000", "run 00000000-0000-4000-8000-000000000001", "a UUID"),
        ("toolu_01A09q90qw90lq917835lq9", "toolu_01T1x1fJ34qAmk2tNTrN7Up6", "an id"),
        ("chatcmpl-9fKjb2Qk1Lq8aXy7Zw3", "chatcmpl-AbCdEf123456789xyz0", "an id"),
        ("trace 4bf92f3577b34da6a3ce929d0e0e4736", "trace 00f067aa0ba902b7a3ce929d0e0e4736", "an id"),
        ("at 2026-11-15T09:14:02.123Z now", "at 2026-11-16T10:00:00Z now", "a time"),
        ("at 2026-11-15 09:14:02 now", "at 2026-11-16 10:00:00 now", "a time"),
        ("Sun, 15 Nov 2026 09:14:02 GMT", "Mon, 16 Nov 2026 10:00:00 GMT", "a time"),
    ],
)
def test_ids_and_times_are_noise(before: str, after: str, name: str) -> None:
    noise = only_noise(before, after)
    assert noise is not None and str(noise) == name and not noise.may_be_fact
    assert without_noise(before) == without_noise(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Today is 2026-11-15.", "Today is 2026-11-16."),
        ("Today is Sunday, 15 November 2026.", "Today is Monday, 16 November 2026."),
        ("Nov 3rd", "Nov 4th"),
    ],
)
def test_a_date_is_noise_that_may_be_a_fact(before: str, after: str) -> None:
    noise = only_noise(before, after)
    assert noise is not None and noise.may_be_fact and str(noise) == "a date"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("1763197200", "1763283600"),
        ("1763197200123", "1763283600456"),
        ("1763197200" + "1" * 9, "1763283600" + "2" * 9),
    ],
)
def test_a_number_of_seconds_is_noise_that_may_be_a_fact(before: str, after: str) -> None:
    noise = only_noise(f"at {before}", f"at {after}")
    assert noise is not None and noise.may_be_fact and str(noise) == "a time"


def test_every_id_and_time_of_a_text_is_found() -> None:
    text = "run 123e4567-e89b-12d3-a456-426614174000 at 2026-11-15T09:14:02Z for order 8821"
    assert noise_values(text) == {"123e4567-e89b-12d3-a456-426614174000", "2026-11-15T09:14:02Z"}


def test_a_time_of_day_is_noise_that_may_be_a_fact() -> None:
    noise = only_noise("The train leaves at 9:14 AM.", "The train leaves at 10:02 AM.")
    assert noise is not None and noise.may_be_fact and str(noise) == "a time of day"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("balance 1240", "balance 0"),
        ("order-8821", "order-8822"),
        ("ORD-20261115", "ORD-20261116"),
        ("temperature 0.2", "temperature 0.7"),
        ("gpt-4o-2024-08-06-preview", "gpt-4o-mini-preview"),
        ("user_service_account", "user_service_billing"),
        ("refund", "return"),
        ("version 1.2.3", "version 1.2.4"),
        ("ratio 3:1", "ratio 4:1"),
        ("at 09:14 it failed", "at 09:15 it worked"),
    ],
)
def test_what_a_run_may_turn_on_is_no_noise(before: str, after: str) -> None:
    assert only_noise(before, after) is None


def test_several_kinds_of_noise_are_all_named() -> None:
    noise = only_noise("2026-11-15T09:14:02Z toolu_01A09q90qw90lq917", "2026-11-16T09:14:03Z toolu_01B09q90qw90lq917")
    assert str(noise) == "an id and a time"


def test_equal_texts_differ_in_nothing() -> None:
    noise = only_noise("the same", "the same")
    assert noise is not None and noise.names == ()


def test_a_text_of_megabytes_is_compared_as_it_is() -> None:
    long = "it is 09:14 " * 30_000
    assert only_noise(long, long.replace("09:14", "09:15")) is None
    assert without_noise(long) == long


def test_a_small_difference_in_a_long_text_is_still_recognised() -> None:
    long = "word " * 100_000
    assert str(only_noise(f"{long}at 09:14 {long}", f"{long}at 10:02 {long}")) == "a time of day"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("41 passed in 0.31s", "41 passed in 0.52s"),
        ('{"trace_id":"a81f03c2","v":1}', '{"trace_id":"77be10dd","v":1}'),
        ('{"rows": 3, "took": 12}', '{"rows": 3, "took": 31}'),
        ('{"requestId": "abc", "rows": 3}', '{"requestId": "xyz", "rows": 3}'),
        ('{"elapsed_ms": 123}', '{"elapsed_ms": 98}'),
        ("done, took 120 ms", "done, took 95 ms"),
        ('{"hits": [{"id": 4, "score": 0.8123}]}', '{"hits": [{"id": 4, "score": 0.8119}]}'),
        ('{"next_cursor": "eyJvIjo0fQ==", "n": 1}', '{"next_cursor": "eyJvIjo5fQ==", "n": 1}'),
        ('{"etag": "W/1", "n": 1}', '{"etag": "W/2", "n": 1}'),
        ('{"fetched_at": "2026-03-02", "n": 1}', '{"fetched_at": "2026-03-03", "n": 1}'),
    ],
)
def test_what_a_tool_measures_or_says_of_the_call_itself_is_noise_in_its_result_alone(before: str, after: str) -> None:
    noise = only_noise(before, after, results=True)
    assert noise is not None and not noise.may_be_fact


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"days": 3}', '{"days": 46}'),
        ('{"risk_score": 0.91}', '{"risk_score": 0.12}'),
        ('{"score": 640}', '{"score": 480}'),
        ('{"duration": 120}', '{"duration": 90}'),
        ("3 failed, 38 passed in 0.31s", "41 passed in 0.52s"),
        ('{"etag": "W/1", "n": 1}', '{"etag": "W/2", "n": 2}'),
    ],
)
def test_a_fact_in_a_result_is_no_noise(before: str, after: str) -> None:
    assert only_noise(before, after, results=True) is None


def test_a_duration_counts_where_somebody_wrote_it() -> None:
    assert only_noise("Wait 0.5 s between calls.", "Wait 2.5 s between calls.") is None


def test_the_forms_are_found_in_time_that_grows_with_the_text() -> None:
    for text in ("a_" * 50_000, '"took": ' * 12_000, "0.31s " * 16_000, '"score": 0.8' * 8_000):
        assert without_noise(text) is not None
        assert only_noise(text, text[::-1], results=True) is None
