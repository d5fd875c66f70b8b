"""Counts and prices, invented; the units are the shipped ones."""

import pytest

from rewind.model.usage import Usage
from rewind.pricing.rates import Rates, Tariff, UnitTable, counts_of
from rewind.pricing.snapshot import Model, Snapshot
from rewind.reading.prices import SHIPPED

TABLE = UnitTable(Snapshot(SHIPPED.read_bytes()).units)
NOON = 1_790_000_000 // 86_400 * 86_400 + 12 * 3600
MILLION = 1_000_000


def cost(prices: dict, **counts: int) -> float | None:
    return Rates(prices, TABLE).cost(counts)


def tariff(prices, variants: tuple = (), context: dict | None = None) -> Tariff:
    return Tariff(Model("us", "m", None, prices, variants), context or {}, TABLE)


def test_each_kind_is_counted_once():
    prices = {"input_mtok": 10, "output_mtok": 20, "cache_read_mtok": 1, "cache_write_mtok": 12}
    counts = {"input_tokens": 5, "output_tokens": 2, "cache_read_tokens": 3, "cache_write_tokens": 1}
    assert cost(prices, **counts) == (1 * 10 + 2 * 20 + 3 * 1 + 1 * 12) / MILLION


def test_what_has_no_price_of_its_own_costs_what_contains_it():
    assert cost({"input_mtok": 10}, input_tokens=5, cache_read_tokens=3) == 50 / MILLION
    prices = {"input_mtok": 10, "output_mtok": 20}
    assert cost(prices, input_tokens=0, output_tokens=9, output_reasoning_tokens=4) == 180 / MILLION


def test_cache_writes_for_an_hour_are_taken_out_of_all_cache_writes():
    prices = {"input_mtok": 10, "cache_write_mtok": 12, "cache_write_1h_mtok": 20}
    counts = {"input_tokens": 10, "cache_write_tokens": 6, "cache_write_1h_tokens": 2}
    assert cost(prices, **counts) == (4 * 10 + 4 * 12 + 2 * 20) / MILLION


def test_sound_is_taken_out_of_the_rest_also_when_it_was_cached():
    prices = {"input_mtok": 1, "cache_read_mtok": 0.1, "input_audio_mtok": 3, "cache_audio_read_mtok": 0.3}
    counts = {"input_tokens": 100, "cache_read_tokens": 40, "input_audio_tokens": 30, "cache_audio_read_tokens": 10}
    assert cost(prices, **counts) == (40 * 1 + 30 * 0.1 + 20 * 3 + 10 * 0.3) / MILLION


def test_above_a_tier_every_token_costs_more():
    prices = {"input_mtok": [1, [200_000, 2], [500_000, 4]], "output_mtok": [10, [200_000, 15]]}
    assert cost(prices, input_tokens=200_000, output_tokens=1) == (200_000 + 10) / MILLION
    assert cost(prices, input_tokens=200_001, output_tokens=1) == (200_001 * 2 + 15) / MILLION
    assert cost(prices, input_tokens=600_000, output_tokens=1) == (600_000 * 4 + 15) / MILLION


def test_searches_and_requests_are_priced_by_the_thousand_and_a_call_is_one_request():
    prices = {"input_mtok": 1, "web_searches_kcount": 10, "requests_kcount": 5}
    assert cost(prices, input_tokens=MILLION, web_searches=2) == 1 + 0.02 + 0.005


def test_sums_are_exact():
    assert cost({"input_mtok": 0.1, "output_mtok": 0.2}, input_tokens=MILLION, output_tokens=MILLION) == 0.3


@pytest.mark.parametrize(
    "counts",
    [
        {"input_tokens": 5, "cache_read_tokens": 6},
        {"input_tokens": 5, "cache_read_tokens": 3, "cache_write_tokens": 3},
        {"cache_read_tokens": 6},
        {"input_tokens": -1},
        {"input_tokens": 10**400},
    ],
)
def test_counts_that_cannot_be_have_no_price(counts):
    assert cost({"input_mtok": 1, "cache_read_mtok": 1, "cache_write_mtok": 1}, **counts) is None


def test_an_untold_overlap_of_two_kinds_has_no_price():
    prices = {"input_mtok": 1, "cache_read_mtok": 1, "input_audio_mtok": 1, "cache_audio_read_mtok": 1}
    counts = {"input_tokens": 9, "cache_read_tokens": 2, "input_audio_tokens": 2}
    assert cost(prices, **counts) is None
    assert cost(prices, **counts, cache_audio_read_tokens=0) == 9 / MILLION


def test_free_is_nought_and_no_price_for_what_was_counted_is_unknown():
    assert cost({}, input_tokens=5) == 0.0
    assert cost({"input_mtok": 0}, input_tokens=5) == 0.0
    assert cost({"input_mtok": 1}, input_tokens=0) == 0.0
    assert cost({"audio_hours": 0.36}, input_tokens=5) is None
    assert cost({"input_mtok": 1}, something_new=5) is None


def test_a_price_for_a_unit_that_nobody_knows_is_left_out():
    assert cost({"input_mtok": 1, "output_smell_mtok": 5}, input_tokens=MILLION) == 1


def test_usage_is_counted_by_the_names_of_the_units():
    usage = Usage(input=1, output=2, cache_read=3, cache_write=4, reasoning=5, more={"web_searches": 6})
    assert counts_of(usage) == {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_read_tokens": 3,
        "cache_write_tokens": 4,
        "output_reasoning_tokens": 5,
        "web_searches": 6,
    }
    assert counts_of(Usage(output=0)) == {"output_tokens": 0}


def test_a_new_price_holds_from_its_day_on_and_the_first_one_before_all():
    dated = tariff(
        [
            {"prices": {"input_mtok": 1}},
            {"from": "2026-03-01", "prices": {"input_mtok": 2}},
            {"from": "2026-06-01", "prices": {"input_mtok": 3}},
        ]
    )
    march = 1_772_323_200  # 2026-03-01T00:00:00Z
    counts = {"input_tokens": MILLION}
    assert [dated.at(ts).cost(counts) for ts in (0, march - 0.5, march, march + 100 * 86_400)] == [1, 1, 2, 3]


def test_before_its_only_day_a_price_holds_too():
    assert tariff([{"from": "2026-03-01", "prices": {"input_mtok": 2}}]).at(0).cost({"input_tokens": MILLION}) == 2


def test_a_price_may_hold_for_some_hours_of_each_day_also_over_midnight():
    daily = tariff([{"prices": {"input_mtok": 4}}, {"daily": ["22:00:00", "06:30:00"], "prices": {"input_mtok": 1}}])
    midnight = NOON - 12 * 3600
    hours = {0: 1, 6.49: 1, 6.5: 4, 12: 4, 21.99: 4, 22: 1, 23.99: 1}
    assert {h: daily.at(midnight + h * 3600).cost({"input_tokens": MILLION}) for h in hours} == hours


def test_a_tier_changes_the_prices_it_names_and_no_others():
    variants = (
        {"when": {"service_tier": "flex"}, "prices": {"input_mtok": 5}},
        {"when": {"service_tier": "flex"}, "prices": {"input_mtok": 7, "output_mtok": 8}},
        {"when": {"processing": "batch"}, "from": "2026-03-01", "prices": {"input_mtok": 4}},
    )
    prices = {"input_mtok": 10, "output_mtok": 20, "cache_read_mtok": 1}
    counts = {"input_tokens": 2 * MILLION, "output_tokens": MILLION, "cache_read_tokens": MILLION}

    def at(context: dict, ts: float = NOON) -> float | None:
        return tariff(prices, variants, context).at(ts).cost(counts)

    assert at({}) == 10 + 20 + 1
    assert at({"service_tier": "flex"}) == 5 + 8 + 1
    assert at({"service_tier": "priority"}) == 10 + 20 + 1
    assert at({"processing": "batch"}) == 4 + 20 + 1
    assert at({"processing": "batch"}, ts=0) == 10 + 20 + 1
