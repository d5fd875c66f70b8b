import pytest

from rewind.text import age, amount, dollars, duration, moment, number, plural, size, spans


@pytest.mark.parametrize(
    ("span", "shown"),
    [(-5, "0 s"), (12.4, "12 s"), (60, "1 min"), (7200, "2 h"), (86_400 * 3, "3 d"), (86_400 * 400, "400 d")],
)
def test_an_age_has_one_unit(span, shown):
    assert age(span) == shown


@pytest.mark.parametrize(("span", "shown"), [(8.44, "8.4 s"), (59.9, "59.9 s"), (61, "1 min 1 s"), (7260, "2 h 1 min")])
def test_a_span_is_as_exact_as_it_is_interesting(span, shown):
    assert duration(span) == shown


def test_one_is_not_many():
    assert (plural(1, "step"), plural(1204, "step"), plural(2, "miss", "misses")) == (
        "1 step",
        "1,204 steps",
        "2 misses",
    )


@pytest.mark.parametrize(
    ("usd", "shown"),
    [(0, "$0"), (0.00001, "<$0.0001"), (0.00123, "$0.0012"), (0.0344, "$0.034"), (1234.5, "$1,234.50")],
)
def test_money_has_the_digits_that_matter(usd, shown):
    assert amount(usd) == shown == dollars(usd)


def test_an_unknown_amount_is_not_zero():
    assert (dollars(None), dollars(0, unpriced=2), dollars(0.5, unpriced=2)) == ("—", "—", "$0.500+")
    assert (number(None), number(1204)) == ("-", "1,204")


def test_numbers_are_written_as_spans() -> None:
    assert spans([3, 1, 2, 5, 7, 8]) == "1–3, 5, 7–8"
    assert spans([]) == ""


def test_a_moment_that_no_calendar_has_is_shown_as_it_is():
    assert moment(1e300) == "1e+300 s"


def test_a_size_is_shown_in_powers_of_a_thousand() -> None:
    assert [size(count) for count in (0, 1, 999, 1_000, 1_250_000, 20_000_000_000)] == [
        "0 bytes",
        "1 byte",
        "999 bytes",
        "1.0 KB",
        "1.2 MB",
        "20.0 GB",
    ]
