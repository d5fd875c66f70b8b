"""What came of putting things back, for people: what it will take, each probe as it ends, and the verdict."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rewind.cli.screens.difference import change_lines
from rewind.cli.screens.layout import Line, print_hanging
from rewind.cli.screens.terminal import Span, Terminal
from rewind.compare.proof import AnswerOutcome, Hunk
from rewind.compare.rates import Effect, EffectVerdict, Interval, Rate
from rewind.text import UNKNOWN, amount, dollars, plural

if TYPE_CHECKING:
    from rewind.runs.proof import ProbeProgress, ProbeResult, Proof, ProofForecast, Smallest

_FACTS = 11
"""Columns of the labels, as on the screen above it."""


# ── before and while it runs ─────────────────────────────────────────────────────────────────────────────────


def print_proof_forecast(terminal: Terminal, forecast: "ProofForecast") -> None:
    """How many calls, what they may cost, which tools run for real."""
    terminal.line()
    calls = _between(forecast.least_calls, forecast.most_calls)
    asked = ", ".join(forecast.suspects)
    what = f"as it was, and with {asked} put back, in turns" if asked else "as it was: there is nothing to put back"
    print_hanging(terminal, [(Span(f"{calls} live calls: {what}"),)], label="Proof", indent=_FACTS)
    print_hanging(terminal, [(Span(_cost(forecast)),)], label="Cost", indent=_FACTS)
    if forecast.tools:
        probes = f"{calls} times" if max(forecast.tools.values()) == 1 else f"in each of {calls} probes"
        named = ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in forecast.tools.items())
        print_hanging(terminal, [(Span(f"run for real, {probes}: {named}"),)], label="Tools", indent=_FACTS)
    if forecast.tools and forecast.drift:
        told = "what these tools return may differ from what they returned (--exact refuses that)"
        print_hanging(terminal, [(Span(told, "dim"),)], indent=_FACTS)
    if forecast.left_out:
        told = f"the calls do not suffice for {', '.join(forecast.left_out)} (--max-calls)"
        print_hanging(terminal, [(Span(told, "yellow"),)], indent=_FACTS)


def _cost(forecast: "ProofForecast") -> str:
    limit = "" if forecast.max_cost is None else f", never beyond {amount(forecast.max_cost)} (--max-cost)"
    each = forecast.cost.usd
    if each is None:
        return f"{UNKNOWN} the price of a call is not known{limit}"
    all_of_it = " to ".join(
        dict.fromkeys(amount(each * calls) for calls in (forecast.least_calls, forecast.most_calls))
    )
    return f"about {all_of_it} ({amount(each)} a call when it was recorded){limit}"


def _between(least: int, most: int) -> str:
    return f"{least} to {most}" if least < most else f"{most}"


def print_probe(terminal: Terminal, progress: "ProbeProgress") -> None:
    """One line for each probe, while the next one is on its way."""
    done = f"{progress.calls:>{len(str(progress.most_calls))}}/{progress.most_calls}"
    spent = dollars(progress.spent.usd, progress.spent.unpriced)
    what = progress.what if progress.what == "as it was" else f"put back: {progress.what}"
    terminal.line(Span(f"  {done} · {spent} · {what} → {_CAME_OUT[progress.outcome]}", "dim"))


_CAME_OUT = {
    AnswerOutcome.GOOD: "good",
    AnswerOutcome.BAD: "bad",
    AnswerOutcome.UNCLEAR: "like neither run",
    AnswerOutcome.FAILED: "no answer",
}


# ── the verdict ──────────────────────────────────────────────────────────────────────────────────────────────


def print_proof(terminal: Terminal, proof: "Proof") -> None:
    """The verdict, with the counts behind it."""
    terminal.line()
    sign, headline, style = _headline(proof)
    print_hanging(terminal, [(Span(headline, f"bold {style}"),)], label=sign, indent=2, style=style)
    terminal.line()
    for label, lines in _table(proof):
        print_hanging(terminal, lines, label=label, indent=_FACTS)
    if proof.smallest is not None and (proof.smallest.of > 1 or proof.smallest.words):
        print_hanging(terminal, _smallest(proof.smallest), label="Smallest", indent=_FACTS)
    sure = "95%, every look counted" + (f", {proof.judged} suspects together" if proof.judged > 1 else "")
    print_hanging(terminal, [(Span(sure),)], label="Sure", indent=_FACTS)
    print_hanging(terminal, [(Span(_price(proof)),)], label="Price", indent=_FACTS)
    if proof.stopped is not None:
        more = f"; --max-calls {proof.live_calls + proof.more_calls} may tell" if proof.more_calls is not None else ""
        print_hanging(terminal, [(Span(f"stopped early: {proof.stopped}{more}", "yellow"),)], indent=_FACTS)


def _headline(proof: "Proof") -> tuple[str, str, str]:
    control = proof.control.rate
    match proof.verdict.value:
        case "causes":
            trial = proof.proven[0]
            what = _capital(" and ".join(one.what for one in proof.proven))
            cause, it = ("causes", "it") if len(proof.proven) == 1 else ("each cause", "one of them")
            before, after = _compared(trial)
            return "✓", f"{what} {cause} it: bad in {before} as it was, in {after} with {it} put back", "green"
        case "raises":
            trial = proof.proven[0]
            before, after = _compared(trial, shares=True)
            return "✓", f"{_capital(trial.what)} raises the rate of bad outcomes from {after} to {before}", "green"
        case "coin":
            more = f"; {_more(proof)} would tell whether {_open(proof)} changes that" if _open(proof) else ""
            return "?", f"This step is a coin: bad in {control.bad} of {control.of} as it was{more}", "yellow"
        case "cannot_tell":
            return "?", f"Cannot tell yet: {_more(proof)}", "yellow"
        case "nothing_put_back":
            return (
                "?",
                f"Nothing could be put back. As it was, it came out badly in {control.bad} of {control.of}",
                "yellow",
            )
    effects = [trial.effect for trial in proof.trials if trial.effect is not None]
    within = max(effect.within for effect in effects)
    return "✗", f"No effect within ±{within:.0%}: no suspect turned the outcome", "red"


def _compared(trial: "ProbeResult", *, shares: bool = False) -> tuple[str, str]:
    assert trial.effect is not None, "what is proven was compared"
    rates = (trial.effect.as_it_was, trial.effect.put_back)
    before, after = (f"{rate.share:.0%}" if shares else f"{rate.bad} of {rate.of}" for rate in rates)
    return before, after


def _open(proof: "Proof") -> str:
    open_ones = [trial for trial in proof.trials if _verdict(trial) is EffectVerdict.CANNOT_TELL]
    return ", ".join(trial.what for trial in open_ones)


def _more(proof: "Proof") -> str:
    return (
        "more calls than can be judged"
        if proof.more_calls is None
        else f"about {plural(proof.more_calls, 'more call')}"
    )


def _verdict(trial: "ProbeResult") -> EffectVerdict | None:
    return None if trial.effect is None else trial.effect.verdict


def _table(proof: "Proof") -> Iterator[tuple[str, list[Line]]]:
    yield "As it was", [(Span(_counted(proof.control, proof.judged)),)]
    label = "Put back"
    for trial in proof.trials:
        style = "green" if trial in proof.proven else ""
        lines: list[Line] = [(Span(f"{trial.what}: {_counted(trial, proof.judged)}", style),)]
        if trial.effect is not None and trial.outcomes:
            lines.append((Span(f"  {_effect(trial.effect)}", style),))
        yield label, lines
        label = ""
    if proof.drifted:
        told = f"in {plural(proof.drifted, 'probe')} the agent asked something else than recorded: its tools ran again"
        yield "", [(Span(told, "dim"),)]


def _counted(trial: "ProbeResult", judged: int) -> str:
    if trial.refused is not None:
        return f"could not be put back: {trial.refused}"
    if not trial.outcomes:
        return "not asked"
    beside = [f"{trial.unclear} like neither run"] if trial.unclear else []
    beside += [f"{trial.failed} without an answer"] if trial.failed else []
    return " · ".join([_rate(trial.rate, judged), *beside])


def _rate(rate: Rate, judged: int) -> str:
    if rate.share is None:
        return "no clear answer"
    return f"bad in {rate.bad} of {rate.of}, {rate.share:.0%} ({_span(rate.interval(judged))})"


def _span(interval: Interval) -> str:
    return f"{interval.low:.0%} to {interval.high:.0%}"


def _effect(effect: Effect) -> str:
    difference = f"difference {_span(effect.difference)}"
    match effect.verdict:
        case EffectVerdict.CAUSES:
            return f"causes it: {difference}"
        case EffectVerdict.RAISES:
            return f"raises the rate: {difference}"
        case EffectVerdict.LOWERS:
            return f"makes it worse when it is put back: {difference}"
        case EffectVerdict.NO_EFFECT:
            return f"no effect within ±{effect.within:.0%}"
        case EffectVerdict.CANNOT_TELL:
            return f"cannot tell yet: {difference}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _smallest(least: "Smallest") -> Iterator[Line]:
    changed = plural(least.of, "changed sentence")
    if least.complete:
        turn = "turns" if len(least.sentences) == 1 else "together turn"
        yield (Span(f"{len(least.sentences)} of {changed} {turn} it:"),)
    else:
        yield (Span(f"among these {len(least.sentences)} of {changed}:"),)
    yield from _hunks(least.sentences)
    if least.words:
        yield (Span("and of that alone:"),)
        yield from _hunks(least.words)
    if least.check is not None and least.check.effect is not None:
        rate = least.check.rate
        yield (Span(f"put back alone: bad in {rate.bad} of {rate.of}, {_effect(least.check.effect)}"),)


def _hunks(hunks: Sequence[Hunk]) -> Iterator[Line]:
    for hunk in hunks:
        for line in change_lines(hunk.good.strip() or None, hunk.bad.strip() or None):
            yield (Span("  "), *line)


def _price(proof: "Proof") -> str:
    return f"{plural(proof.live_calls, 'live call')}, {dollars(proof.spent.usd, proof.spent.unpriced)}"
