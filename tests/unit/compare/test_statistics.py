"""Rates of good and bad runs, and how often chance makes them as uneven."""

from itertools import combinations
from math import comb
from random import Random

import pytest

from rewind.compare.statistics import (
    SIGNIFICANT,
    Pattern,
    family_test,
    fisher_exact,
    hypergeometric,
    more_runs,
    smallest_p,
)


@pytest.mark.parametrize(
    ("table", "p"),
    [
        ((3, 4, 1, 4), 0.485714),  # Fisher's own: the lady tasting tea
        ((1, 10, 11, 14), 0.002759456),  # men and women who study, as in most textbooks
        ((6, 7, 2, 6), 0.102564),
        ((8, 9, 2, 7), 0.034965),
        ((0, 10, 8, 10), 0.000714),
        ((0, 10, 10, 10), 2 / comb(20, 10)),
        ((0, 4, 4, 4), 2 / 70),
        ((0, 10, 2, 2), 1 / comb(12, 2)),
        ((5, 10, 5, 10), 1.0),
        ((0, 3, 0, 3), 1.0),
    ],
)
def test_fishers_exact_test(table: tuple[int, int, int, int], p: float) -> None:
    assert fisher_exact(*table) == pytest.approx(p, rel=1e-3)


def test_the_chances_add_up_to_one() -> None:
    assert sum(hypergeometric(hits, 6, 5, 14) for hits in range(6)) == pytest.approx(1)


def bits(runs: str) -> int:
    return sum(1 << at for at, sign in enumerate(runs) if sign == "x")


def test_one_thing_alone_has_fishers_p() -> None:
    found = family_test([Pattern(bits("....xxxx"))], 4, 4)
    (evidence,) = found.evidence
    assert (evidence.good_with, evidence.bad_with) == (0, 4)
    assert evidence.p == evidence.adjusted == found.perfect == pytest.approx(2 / 70)
    assert evidence.is_significant and found.is_exact and found.deals == 70


def test_a_thing_and_its_opposite_are_one_test() -> None:
    both = family_test([Pattern(bits("....xxxx")), Pattern(bits("xxxx...."))], 4, 4)
    assert both.patterns == 1
    assert [one.adjusted for one in both.evidence] == [pytest.approx(2 / 70)] * 2


def test_of_many_things_one_always_looks_uneven() -> None:
    every = [Pattern(sum(1 << one for one in chosen)) for chosen in combinations(range(8), 4)]
    found = family_test(every, 4, 4)
    assert min(one.p for one in found.evidence) == pytest.approx(2 / 70)
    assert min(one.adjusted for one in found.evidence) == 1.0


def test_what_weighs_little_must_be_more_uneven() -> None:
    draw = Random(3)
    others = [Pattern(draw.getrandbits(12)) for _ in range(20)]
    light, heavy = (Pattern(bits("......xxxxxx"), weight) for weight in (0.1, 1.0))
    found = [family_test([one, *others], 6, 6).evidence[0] for one in (light, heavy)]
    assert found[0].p == found[1].p
    assert found[0].adjusted > 2 * found[1].adjusted


def test_eight_of_ten_among_hundreds_of_random_things() -> None:
    draw = Random(5)
    noise = [Pattern(draw.getrandbits(20)) for _ in range(300)]
    found = family_test([Pattern(bits("." * 10 + "xxxxxxxx..")), Pattern(bits("." * 10 + "x" * 10)), *noise], 10, 10)
    assert not found.is_exact and found.deals == 5000
    assert found.evidence[1].adjusted < 0.01
    assert found.evidence[0].p == pytest.approx(0.000714, rel=1e-3)
    assert found.evidence[0].adjusted > found.evidence[0].p * 20, "hundreds of looks have their price"


def test_chance_alone_is_named_in_one_of_twenty_at_most() -> None:
    draw = Random(1)
    alarms = 0
    for _ in range(200):
        patterns = [Pattern(draw.getrandbits(12), weight=draw.choice([1.0, 0.5])) for _ in range(40)]
        alarms += any(one.is_significant for one in family_test(patterns, 6, 6).evidence)
    assert alarms <= 200 * SIGNIFICANT * 1.6


def test_how_many_more_runs_it_takes() -> None:
    assert smallest_p(2, 2) > SIGNIFICANT
    assert more_runs(2, 2, 0.0, 1.0, tests=1) == (2, 1)
    assert more_runs(2, 2, 0.0, 1.0, tests=20) == (4, 3)
    assert more_runs(4, 4, 0.0, 1.0, tests=1) == (0, 0)
    assert more_runs(10, 1, 0.0, 1.0, tests=1) == (0, 1)
    assert more_runs(5, 5, 0.5, 0.5, tests=1) is None
