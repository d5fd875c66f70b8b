"""What proving comes to: what it will take, what came of each thing that was put back, and the verdict."""

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Literal

from rewind.compare.cause import CauseKind
from rewind.compare.outcome_test import OutcomeTest
from rewind.compare.proof import AnswerOutcome, Hunk
from rewind.compare.rates import FIRST_LOOK, Effect, EffectVerdict, Rate, is_coin, more_outcomes
from rewind.dataclass import dataclass
from rewind.edit.edits import Edit
from rewind.gateway.options import UpstreamOptions
from rewind.model.names import MatchMode
from rewind.pricing.spending import Pricing, Spending


class ProofVerdict(StrEnum):
    """What a proof says in a word."""

    CAUSES = "causes"
    RAISES = "raises"
    COIN = "coin"
    """The bad run's own request comes out badly only sometimes, and no suspect is known to change that."""
    NO_EFFECT = "no_effect"
    CANNOT_TELL = "cannot_tell"
    NOTHING_PUT_BACK = "nothing_put_back"
    """The bad outcome comes again each time, and there is nothing that could be put back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofForecast:
    """What a proof may take, before anything is asked."""

    suspects: tuple[str, ...]
    left_out: tuple[str, ...]
    """Suspects for which the calls do not suffice."""
    least_calls: int
    most_calls: int
    cost: Spending
    """Of one call, as it was recorded, by today's prices."""
    max_cost: float | None
    tools: Mapping[str, int]
    """Tools of the agent that no recording answers → how often each runs in one probe."""
    drift: bool
    """Whether tool results may be others than recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """Something that was put back, and how the runs came out."""

    what: str
    edits: tuple[Edit, ...] = ()
    outcomes: tuple[AnswerOutcome, ...] = ()
    """One for each probe."""
    sessions: tuple[str, ...] = ()
    kind: CauseKind | None = None
    """``None`` for the control, and for steps of the search for the smallest change."""
    refused: str | None = None
    """Why it could not be put back: a signed request, a secret that is not in the recording."""
    effect: Effect | None = None
    """Against the control; ``None`` for the control."""

    @property
    def rate(self) -> Rate:
        """How many were bad, of those that were clear."""
        return rate_of(self.outcomes)

    @property
    def unclear(self) -> int:
        return self.outcomes.count(AnswerOutcome.UNCLEAR)

    @property
    def failed(self) -> int:
        return self.outcomes.count(AnswerOutcome.FAILED)


def rate_of(outcomes: tuple[AnswerOutcome, ...], first: int | None = None) -> Rate:
    """How many were bad, of those that were clear, or of the first of them."""
    clear = [outcome for outcome in outcomes if outcome in (AnswerOutcome.GOOD, AnswerOutcome.BAD)][:first]
    return Rate(clear.count(AnswerOutcome.BAD), len(clear))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeProgress:
    """One probe that is over, and how far all of it has come."""

    what: str
    outcome: AnswerOutcome
    calls: int
    most_calls: int
    spent: Spending


@dataclass(frozen=True, slots=True, kw_only=True)
class ProveOptions:
    """How the bad run is run again, and at what price."""

    home: Path
    samples: int = FIRST_LOOK
    """How often each question is asked before its answers are looked at; never fewer than five."""
    most_calls: int = 40
    """How many live calls may be made."""
    max_cost: float | None = None
    """In US dollars; needs ``prices``."""
    bad_if: tuple[OutcomeTest, ...] = ()
    """Which answers are bad; without any, those that decide what the bad run's answer decides."""
    allow_drift: bool = True
    """Tools that run for real may return something else than they did, and are not at fault for it."""
    tools: Literal["replay", "live"] = "replay"
    """``live``: the agent's own tools run before the step, too."""
    command: tuple[str, ...] | None = None
    """In place of the recorded one."""
    upstream: UpstreamOptions = UpstreamOptions()
    ignore: tuple[str, ...] = ()
    match: MatchMode = "renamed"
    ignore_text: tuple[str, ...] = ()
    prices: Pricing | None = None
    announce: Callable[[str], None] = lambda _sentence: None
    """Told, once, what a person should know before an agent starts."""
    approve: Callable[[ProofForecast], None] = lambda _forecast: None
    """Told what it may take before the first probe; raises to call it off."""
    on_probe: Callable[[ProbeProgress], None] = lambda _progress: None
    """Called when a probe is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Smallest:
    """The smallest change of a text that turns the outcome."""

    sentences: tuple[Hunk, ...]
    of: int
    """Among how many sentences that differ."""
    words: tuple[Hunk, ...] = ()
    """Within those sentences, where fewer words than all that differ turn it."""
    complete: bool
    """False: the search ended before it was found; this is what is known."""
    check: ProbeResult | None = None
    """That change alone, put back in fresh probes and judged like a suspect; ``None`` where all was put back anyway,
    or no call was left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What the probes came to."""

    control: ProbeResult
    trials: tuple[ProbeResult, ...] = ()
    judged: int = 1
    """How many suspects share the error rate."""
    smallest: Smallest | None = None
    live_calls: int = 0
    spent: Spending = field(default_factory=Spending)
    drifted: int = 0
    """In how many probes the agent asked, before the step or at it, something else than recorded."""
    stopped: str | None = None
    """Why not all was tried."""

    @property
    def verdict(self) -> ProofVerdict:
        said = [trial.effect.verdict for trial in self.trials if trial.effect is not None]
        if EffectVerdict.CAUSES in said:
            return ProofVerdict.CAUSES
        if EffectVerdict.RAISES in said:
            return ProofVerdict.RAISES
        if is_coin(self.control.rate):
            return ProofVerdict.COIN
        if not said and self.stopped is None:
            return ProofVerdict.NOTHING_PUT_BACK
        if not said or EffectVerdict.CANNOT_TELL in said:
            return ProofVerdict.CANNOT_TELL
        return ProofVerdict.NO_EFFECT

    @property
    def proven(self) -> tuple[ProbeResult, ...]:
        """What causes it, or else what raises its rate."""
        established = [trial for trial in self.trials if trial.effect is not None and trial.effect.established]
        causes = [trial for trial in established if _verdict(trial) is EffectVerdict.CAUSES]
        return tuple(causes or established)

    @property
    def remedy(self) -> tuple[Edit, ...]:
        """The edits that turn the outcome; none where nothing is proven."""
        return self.proven[0].edits if self.proven else ()

    @property
    def more_calls(self) -> int | None:
        """About how many more calls would tell; ``None`` where nothing is open, or more than can be judged."""
        open_ones = [trial.effect for trial in self.trials if _verdict(trial) is EffectVerdict.CANNOT_TELL]
        more = [more_outcomes(effect, self.judged) for effect in open_ones if effect is not None]
        known = [number for number in more if number is not None]
        return max(known) + sum(known) if known and None not in more else None


def _verdict(trial: ProbeResult) -> EffectVerdict | None:
    return None if trial.effect is None else trial.effect.verdict
