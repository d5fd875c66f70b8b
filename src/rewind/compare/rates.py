"""How sure counts make us: the rate of bad outcomes as it was and with one thing put back, and what follows from both.

The same request is asked again and again, as it was and with the suspect put back, in turns. After every pair from the
fifth on the two rates are looked at, so whatever is said has to hold although it was looked for many times. The
interval of the difference (Newcombe's, from two of Wilson's) is therefore wider than one that is looked at once: its
factor is so chosen that, over all looks up to 100 + 100, a difference that is not there is claimed in 3.3 of 100 cases
at worst, whatever the rate (docs/adr/0018-proving.md has the figures, and tests/unit/compare/test_rates.py makes them).
With several suspects the factor grows, and the 5 of 100 hold for all of them together.

At equal proportions more samples never make a verdict weaker: the interval only shrinks, and how strong an effect is
called depends on the proportions alone.
"""

import math
from enum import StrEnum

from rewind.dataclass import dataclass

FIRST_LOOK = 5
"""Outcomes on either side before anything is said: fewer leave an interval that says nothing."""
MOST_OUTCOMES = 100
"""On either side: up to here the error rates are known."""
RULED_OUT = 0.5
"""Larger effects must be ruled out before it is said that there is none."""
_FACTOR = 2.75
_MORE_FOR_EACH = 0.31
_HARDLY_EVER = 0.1
_MOSTLY = 0.5
_SURE = math.log(19)
"""Wald's bound for 5 wrong decisions of 100 on either side."""


class EffectVerdict(StrEnum):
    """What putting one thing back does to the rate of bad outcomes."""

    CAUSES = "causes"
    """Bad with it, and hardly ever without."""
    RAISES = "raises"
    """Bad more often with it."""
    LOWERS = "lowers"
    """Bad less often with it: putting it back makes it worse."""
    NO_EFFECT = "no_effect"
    CANNOT_TELL = "cannot_tell"


@dataclass(frozen=True, slots=True)
class Interval:
    """Between these two the true value lies."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Rate:
    """How many of so many outcomes were bad. What is not clear is not among them."""

    bad: int
    of: int

    @property
    def share(self) -> float | None:
        return self.bad / self.of if self.of else None

    def interval(self, suspects: int = 1) -> Interval:
        return wilson(self.bad, self.of, factor(suspects))


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Two rates, how far they are apart, and what that says."""

    as_it_was: Rate
    put_back: Rate
    difference: Interval
    """Of the rate as it was over the one with the thing put back."""
    verdict: EffectVerdict
    within: float
    """No effect is larger than this, in either direction."""

    @property
    def established(self) -> bool:
        return self.verdict in (EffectVerdict.CAUSES, EffectVerdict.RAISES)

    @property
    def settled(self) -> bool:
        """Whether it need not be asked on."""
        return self.verdict is not EffectVerdict.CANNOT_TELL or self.put_back.of >= MOST_OUTCOMES


def factor(suspects: int) -> float:
    """How many standard errors an interval reaches to either side, where so many suspects are judged together."""
    return _FACTOR + _MORE_FOR_EACH * math.log(suspects)


def effect_of(as_it_was: Rate, put_back: Rate, suspects: int = 1) -> Effect:
    """What these counts say."""
    difference = difference_interval(as_it_was.bad, as_it_was.of, put_back.bad, put_back.of, factor(suspects))
    return Effect(
        as_it_was=as_it_was,
        put_back=put_back,
        difference=difference,
        verdict=_verdict(as_it_was, put_back, difference),
        within=max(abs(difference.low), abs(difference.high)),
    )


def _verdict(as_it_was: Rate, put_back: Rate, difference: Interval) -> EffectVerdict:
    before, after = as_it_was.share, put_back.share
    if before is None or after is None or min(as_it_was.of, put_back.of) < FIRST_LOOK:
        return EffectVerdict.CANNOT_TELL
    if difference.low > 0:
        return EffectVerdict.CAUSES if after < _HARDLY_EVER and before >= _MOSTLY else EffectVerdict.RAISES
    if difference.high < 0:
        return EffectVerdict.LOWERS
    ruled_out = max(-difference.low, difference.high) <= RULED_OUT
    return EffectVerdict.NO_EFFECT if ruled_out else EffectVerdict.CANNOT_TELL


def more_outcomes(effect: Effect, suspects: int = 1) -> int | None:
    """About how many more outcomes of either side would settle it, if the rates stay as they are.

    ``None``: more than can be judged.
    """
    have = min(effect.as_it_was.of, effect.put_back.of)
    before, after = effect.as_it_was.share, effect.put_back.share
    if before is None or after is None:
        return FIRST_LOOK
    for of in range(max(have + 1, FIRST_LOOK), MOST_OUTCOMES + 1):
        found = difference_interval(before * of, of, after * of, of, factor(suspects))
        if found.low > 0 or found.high < 0 or max(-found.low, found.high) <= RULED_OUT:
            return of - have
    return None


def is_coin(as_it_was: Rate) -> bool:
    """Whether the same request comes out well, too, where it had come out badly."""
    return as_it_was.share is not None and as_it_was.share <= 1 - _HARDLY_EVER


def turns(as_it_was: Rate, put_back: Rate, tried: Rate) -> bool | None:
    """Whether what was tried comes out as with all put back, rather than as it was; ``None``: not sure enough yet.

    Wald's sequential test between the two rates that were measured: if they are as measured, 5 of 100 decisions are
    wrong. One outcome alone never decides.
    """
    if tried.of < 2:
        return None
    with_it, without = ((rate.bad + 1) / (rate.of + 2) for rate in (as_it_was, put_back))
    evidence = tried.bad * math.log(without / with_it) + (tried.of - tried.bad) * math.log(
        (1 - without) / (1 - with_it)
    )
    return None if abs(evidence) < _SURE else evidence > 0


def wilson(bad: float, of: int, z: float) -> Interval:
    """Wilson's interval of a rate."""
    if not of:
        return Interval(0.0, 1.0)
    share, square = bad / of, z * z / of
    middle = (share + square / 2) / (1 + square)
    half = z * math.sqrt(share * (1 - share) / of + square / (4 * of)) / (1 + square)
    return Interval(max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))


def difference_interval(bad: float, of: int, other_bad: float, other_of: int, z: float) -> Interval:
    """Newcombe's interval of one rate minus another."""
    one, other = wilson(bad, of, z), wilson(other_bad, other_of, z)
    share, other_share = (bad / of if of else 0.5), (other_bad / other_of if other_of else 0.5)
    apart = share - other_share
    return Interval(
        max(-1.0, apart - math.hypot(share - one.low, other.high - other_share)),
        min(1.0, apart + math.hypot(one.high - share, other_share - other.low)),
    )
