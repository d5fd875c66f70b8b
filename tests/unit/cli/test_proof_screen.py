"""Every verdict of a proof as it stands on the screen."""

import io

import pytest

from rewind.cli.screens.proof import print_probe, print_proof, print_proof_forecast
from rewind.cli.screens.terminal import Terminal
from rewind.compare.cause import CauseKind
from rewind.compare.proof import AnswerOutcome
from rewind.compare.rates import Rate, effect_of
from rewind.pricing.spending import Spending
from rewind.runs.proof import ProbeProgress, ProbeResult, Proof, ProofForecast

GOOD, BAD, UNCLEAR, FAILED = AnswerOutcome


def result(bad: int, of: int, what: str = "as it was", *more: AnswerOutcome) -> ProbeResult:
    return ProbeResult(what=what, outcomes=(BAD,) * bad + (GOOD,) * (of - bad) + more)


def put_back(control: ProbeResult, bad: int, of: int, what: str = "the model", *more: AnswerOutcome) -> ProbeResult:
    trial = result(bad, of, what, *more)
    effect = effect_of(Rate(*_first(control.rate, of)), trial.rate)
    return ProbeResult(what=what, outcomes=trial.outcomes, kind=CauseKind.MODEL, effect=effect)


def _first(rate: Rate, of: int) -> tuple[int, int]:
    return min(rate.bad, of), of


def screen(proof: Proof) -> str:
    stream = io.StringIO()
    print_proof(Terminal(stream, width=100), proof)
    return stream.getvalue()


ALWAYS = result(8, 8)


@pytest.mark.parametrize(
    ("proof", "headline"),
    [
        (
            Proof(control=result(5, 5), trials=(put_back(result(5, 5), 0, 5),)),
            "✓ The model causes it: bad in 5 of 5 as it was, in 0 of 5 with it put back",
        ),
        (
            Proof(control=result(12, 20), trials=(put_back(result(12, 20), 2, 20),)),
            "✓ The model raises the rate of bad outcomes from 10% to 60%",
        ),
        (Proof(control=result(3, 6)), "? This step is a coin: bad in 3 of 6 as it was"),
        (
            Proof(control=ALWAYS, trials=(put_back(ALWAYS, 8, 8),)),
            "✗ No effect within ±49%: no suspect turned the outcome",
        ),
        (
            Proof(control=result(5, 5), trials=(put_back(result(5, 5), 5, 5),), stopped="enough", live_calls=10),
            "? Cannot tell yet: about 6 more calls",
        ),
        (Proof(control=result(5, 5)), "? Nothing could be put back. As it was, it came out badly in 5 of 5"),
    ],
)
def test_headlines(proof: Proof, headline: str) -> None:
    assert screen(proof).splitlines()[1] == headline


def test_what_was_not_judged_is_shown() -> None:
    control = result(5, 5, "as it was", UNCLEAR, FAILED)
    shown = screen(
        Proof(
            control=control,
            trials=(put_back(control, 5, 5), ProbeResult(what="the tools", refused="the request is signed")),
            stopped="the limit of 12 live calls is reached",
            live_calls=12,
            drifted=2,
            judged=3,
        )
    )
    assert "As it was  bad in 5 of 5, 100% (34% to 100%) · 1 like neither run · 1 without an" in shown
    assert "the tools: could not be put back: the request is signed" in shown
    assert "in 2 probes the agent asked something else than recorded: its tools ran" in shown
    assert "95%, every look counted, 3 suspects together" in shown
    assert "stopped early: the limit of 12 live calls is reached; --max-calls 22 may tell" in shown


def test_what_it_may_take_is_said_before() -> None:
    stream = io.StringIO()
    print_proof_forecast(
        Terminal(stream, width=80),
        ProofForecast(
            suspects=("the model", "the system prompt"),
            left_out=("the tools",),
            least_calls=15,
            most_calls=40,
            cost=Spending(usd=0.002),
            max_cost=0.05,
            tools={"lookup": 2, "check": 1},
            drift=True,
        ),
    )
    assert stream.getvalue() == (
        "\n"
        "Proof      15 to 40 live calls: as it was, and with the model, the system prompt\n"
        "           put back, in turns\n"
        "Cost       about $0.030 to $0.080 ($0.002 a call when it was recorded), never\n"
        "           beyond $0.050 (--max-cost)\n"
        "Tools      run for real, in each of 15 to 40 probes: lookup ×2, check\n"
        "           what these tools return may differ from what they returned (--exact\n"
        "           refuses that)\n"
        "           the calls do not suffice for the tools (--max-calls)\n"
    )


def test_each_probe_is_told_with_what_is_spent() -> None:
    stream = io.StringIO()
    progress = ProbeProgress(
        what="the model", outcome=UNCLEAR, calls=3, most_calls=40, spent=Spending(usd=0.0042, unpriced=1)
    )
    print_probe(Terminal(stream, width=80), progress)
    assert stream.getvalue() == "   3/40 · $0.0042+ · put back: the model → like neither run\n"
