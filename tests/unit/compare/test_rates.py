"""What counts of outcomes say, how often that is wrong, and how often an effect is seen."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product

import pytest

from rewind.compare.rates import (
    FIRST_LOOK,
    MOST_OUTCOMES,
    Effect,
    EffectVerdict,
    Rate,
    difference_interval,
    effect_of,
    factor,
    is_coin,
    more_outcomes,
    turns,
    wilson,
)
from support.effort import ALL, effort, sample

PAIRS = effort(2_000, 2_000)
BASE_RATES = [at / 100 for at in (range(101) if ALL else range(0, 101, 5))]
AS_FAR_AS = MOST_OUTCOMES if ALL else 20
"""Outcomes of either side: twenty are the calls of the default."""
STRENGTH = [EffectVerdict.CANNOT_TELL, EffectVerdict.NO_EFFECT, EffectVerdict.LOWERS, EffectVerdict.RAISES]


@cache
def said(bad: int, other: int, of: int, suspects: int = 1) -> Effect:
    return effect_of(Rate(bad, of), Rate(other, of), suspects)


def claimed(one: Effect) -> bool:
    return one.verdict in (EffectVerdict.CAUSES, EffectVerdict.RAISES)


def simulated(draw: random.Random, rate: float, put_back: float, most: int) -> Effect:
    """Pair by pair until it is settled, as a proof asks."""
    bad = other = 0
    for of in range(1, most + 1):
        bad += draw.random() < rate
        other += draw.random() < put_back
        if of >= FIRST_LOOK and said(bad, other, of).settled:
            break
    return said(bad, other, of)


def reached(rate: float, put_back: float, most: int, ends: Callable[[Effect], bool], suspects: int = 1) -> float:
    """Exactly how likely it is that one of all looks says so; nothing else ends it."""
    left, total = {(0, 0): 1.0}, 0.0
    turn = [(a, b, (rate if a else 1 - rate) * (put_back if b else 1 - put_back)) for a, b in product((0, 1), repeat=2)]
    for of in range(1, most + 1):
        grown: Counter[tuple[int, int]] = Counter()
        for (bad, other), weight in left.items():
            for a, b, likely in turn:
                grown[bad + a, other + b] += weight * likely  # type: ignore[assignment]
        left = {}
        for (bad, other), weight in grown.items():
            if of >= FIRST_LOOK and ends(said(bad, other, of, suspects)):
                total += weight
            elif weight > 1e-12:
                left[bad, other] = weight
    return total


# ── error rates ──────────────────────────────────────────────────────────────────────────────────────────────


def test_an_effect_that_is_not_there_is_hardly_ever_claimed(record_property: Callable[[str, object], None]) -> None:
    draw = random.Random(14)
    worst = 0.0
    for rate in BASE_RATES:
        false = sum(claimed(simulated(draw, rate, rate, AS_FAR_AS)) for _ in range(PAIRS)) / PAIRS
        assert false <= 0.05, f"at a base rate of {rate}"
        worst = max(worst, false)
    record_property("shown", f"--prove: false claims of an effect {worst:.1%} at worst, {PAIRS:,} pairs a base rate")


@pytest.mark.parametrize(("calls", "wanted"), [(20, 0.60), (30, 0.80)])
def test_an_effect_of_60_points_is_seen(
    calls: int, wanted: float, record_property: Callable[[str, object], None]
) -> None:
    draw = random.Random(60)
    rates = [rate for rate in BASE_RATES if rate <= 0.4]
    shares = {}
    for rate in rates:
        seen = sum(claimed(simulated(draw, rate + 0.6, rate, calls // 2)) for _ in range(PAIRS)) / PAIRS
        assert seen >= wanted, f"from {rate} to {rate + 0.6}"
        shares[rate] = seen
    record_property(
        "shown", f"--prove: an effect of 60 points is seen within {calls} calls: {min(shares.values()):.1%}"
    )


@pytest.mark.parametrize("rate", sample([0.5, 0.05, 0.2, 0.35, 0.45, 0.7, 0.9], every=4))
def test_the_error_rates_are_exact_and_count_every_look(rate: float) -> None:
    assert reached(rate, rate, AS_FAR_AS, claimed) <= (0.033 if ALL else 0.0172)


@pytest.mark.parametrize("suspects", sample([2, 10, 1, 3, 4, 5, 6, 7, 8, 9], every=5))
def test_several_suspects_share_the_error_rate(suspects: int) -> None:
    assert suspects * reached(0.5, 0.5, AS_FAR_AS, claimed, suspects) <= 0.05
    assert said(5, 0, 5, suspects).verdict is EffectVerdict.CAUSES, "what always is so is seen with the first look"


@pytest.mark.parametrize("rate", sample([0.2, 0.0, 0.1, 0.3, 0.4], every=5))
def test_an_effect_of_60_points_is_hardly_ever_denied(rate: float) -> None:
    def denied(one: Effect) -> bool:
        return one.verdict in (EffectVerdict.NO_EFFECT, EffectVerdict.LOWERS)

    assert reached(rate + 0.6, rate, AS_FAR_AS, denied) <= 0.05


# ── what is said ─────────────────────────────────────────────────────────────────────────────────────────────


def multiples() -> Iterator[tuple[int, int, int, int]]:
    for of, times in product(range(1, 21), (2, 3, 4, 5) if ALL else (2, 3)):
        if of * times <= MOST_OUTCOMES:
            for bad, other in product(range(of + 1), repeat=2):
                yield bad, other, of, times


def test_at_equal_proportions_more_outcomes_never_weaken_a_verdict() -> None:
    strength = {verdict: at for at, verdict in enumerate([*STRENGTH, EffectVerdict.CAUSES])}
    for bad, other, of, times in multiples():
        few, many = said(bad, other, of), said(times * bad, times * other, times * of)
        assert strength[many.verdict] >= strength[few.verdict], (bad, other, of, times)
        assert many.difference.low >= few.difference.low and many.difference.high <= few.difference.high
        if claimed(few):
            assert many.verdict is few.verdict


def test_the_side_that_is_better_is_never_taken_for_the_other() -> None:
    for of in range(FIRST_LOOK, 21):
        for bad, other in product(range(of + 1), repeat=2):
            one, turned = said(bad, other, of), said(other, bad, of)
            assert claimed(one) is (turned.verdict is EffectVerdict.LOWERS)
            assert one.difference.low == pytest.approx(-turned.difference.high)


@pytest.mark.parametrize(
    ("bad", "other", "of", "verdict"),
    [
        (1, 0, 1, EffectVerdict.CANNOT_TELL),
        (4, 0, 4, EffectVerdict.CANNOT_TELL),
        (5, 0, 5, EffectVerdict.CAUSES),
        (3, 0, 5, EffectVerdict.CANNOT_TELL),
        (6, 0, 10, EffectVerdict.CAUSES),
        (12, 2, 20, EffectVerdict.RAISES),
        (9, 1, 10, EffectVerdict.RAISES),
        (40, 0, 100, EffectVerdict.RAISES),
        (1, 9, 10, EffectVerdict.LOWERS),
        (5, 5, 5, EffectVerdict.CANNOT_TELL),
        (8, 8, 8, EffectVerdict.NO_EFFECT),
        (5, 5, 10, EffectVerdict.NO_EFFECT),
        (3, 6, 6, EffectVerdict.CANNOT_TELL),
    ],
)
def test_verdicts(bad: int, other: int, of: int, verdict: EffectVerdict) -> None:
    assert said(bad, other, of).verdict is verdict


def test_what_is_not_sure_yet_says_about_how_many_more() -> None:
    assert more_outcomes(said(3, 1, 5)) == 18
    assert more_outcomes(said(1, 0, 1)) == 4, "five are looked at in any case"
    assert more_outcomes(effect_of(Rate(0, 0), Rate(0, 0))) == FIRST_LOOK
    for bad, other in product(range(7), repeat=2):
        one = said(bad, other, 6)
        more = more_outcomes(one)
        if not one.settled and more is not None:
            of = 6 + more
            interval = difference_interval(bad * of / 6, of, other * of / 6, of, factor(1))
            assert interval.low > 0 or interval.high < 0 or max(-interval.low, interval.high) <= 0.5


def test_a_request_that_comes_out_either_way_is_a_coin() -> None:
    assert is_coin(Rate(3, 6)) and is_coin(Rate(0, 5)) and is_coin(Rate(4, 5)) and is_coin(Rate(9, 10))
    assert not is_coin(Rate(5, 5)) and not is_coin(Rate(19, 20)) and not is_coin(Rate(0, 0))


@pytest.mark.parametrize(("bad", "of"), [(0, 5), (3, 10), (10, 10)])
def test_an_interval_of_a_rate_is_wilsons(bad: int, of: int) -> None:
    interval = wilson(bad, of, 1.96)
    assert interval.low <= bad / of <= interval.high
    for edge in {interval.low, interval.high} - {0.0, 1.0}:
        assert (bad / of - edge) ** 2 == pytest.approx(1.96**2 * edge * (1 - edge) / of)


def test_newcombes_interval_is_the_published_one() -> None:
    """Newcombe (1998), method 10, 56/70 − 48/80."""
    interval = difference_interval(56, 70, 48, 80, 1.959964)
    assert (round(interval.low, 4), round(interval.high, 4)) == (0.0524, 0.3339)


# ── which of two rates a third one is ────────────────────────────────────────────────────────────────────────


def test_where_outcomes_never_vary_two_decide_whether_they_turned() -> None:
    was, back = Rate(5, 5), Rate(0, 5)
    assert turns(was, back, Rate(0, 1)) is None
    assert turns(was, back, Rate(0, 2)) is True and turns(was, back, Rate(2, 2)) is False
    assert turns(was, back, Rate(1, 2)) is None


@pytest.mark.parametrize(("was", "back"), [(Rate(16, 20), Rate(4, 20)), (Rate(20, 20), Rate(10, 20))])
def test_decisions_of_a_search_are_hardly_ever_wrong(was: Rate, back: Rate) -> None:
    draw = random.Random(7)
    for truth, expected in ((back, True), (was, False)):
        wrong = 0
        for _ in range(1_000):
            tried, turned = Rate(0, 0), None
            share = truth.bad / truth.of
            while turned is None and tried.of < 100:
                tried = Rate(tried.bad + (draw.random() < share), tried.of + 1)
                turned = turns(was, back, tried)
            wrong += turned is not expected
        assert wrong <= 60
