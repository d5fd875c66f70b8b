"""What is said of a run that is repeated: the last lines of a replay and of a fork, a forecast, samples."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rewind.cli.screens.facts import changes, print_facts
from rewind.cli.screens.layout import Cell, Column, print_table
from rewind.cli.screens.terminal import Span, Terminal, hint
from rewind.model.names import Renamed
from rewind.model.step import Step
from rewind.pricing.spending import Spending
from rewind.safe import safe_line
from rewind.text import NONE, amount, dollars, number, plural, spans

if TYPE_CHECKING:
    from rewind.runs.fork.run import ForkResult
    from rewind.runs.fork.samples import AnswerGroup, ForkForecast, ForkSamples
    from rewind.runs.replay_options import ReplayResult, Stopped
    from rewind.runs.tally import MissNote

_SAMPLES = (
    Column("#", right=True),
    Column("session"),
    Column("outcome"),
    Column("answer", flexible=True, least=24),
    Column("tokens", right=True),
    Column("cost", right=True),
)
_ANSWER_SHOWN = 200
_WORDINGS_SHOWN = 3


def print_forecast(terminal: Terminal, forecast: "ForkForecast") -> None:
    """``rewind fork --dry-run``."""
    plan, limit = forecast.plan, forecast.max_cost
    lineage = plan.lineage
    models = Counter(model or "no model named" for _, model in plan.models())
    others = len(plan.live) - models.total()
    alone = len(plan.live) == 1
    live = [model if alone else f"{count} × {model}" for model, count in models.items()]
    live += [plural(others, "other call")] if others else []
    steps = f"{'step' if alone else 'steps'} {spans(step.index for step in plan.live)}"
    facts: list[tuple[str, str | Span]] = [
        ("fork of", f"{lineage.session}:{lineage.step}"),
        ("changed", changes(lineage, 200)),
        ("reused", _reused(plan.reused) + " · $0"),
        ("live", f"{steps} ({', '.join(live)})" if plan.live else "none"),
        ("estimate", _estimate(forecast)),
    ]
    if limit is not None:
        held = "" if forecast.limit_holds else ", which cannot be enforced: a price is not known"
        facts.append(("max cost", Span(f"{amount(limit)}{held}", "" if forecast.limit_holds else "yellow")))
    facts += [("note", Span(remark, "yellow")) for remark in plan.remarks]
    facts += [("not kept", Span(f"{edit} (of an earlier fork)", "yellow")) for edit in plan.dropped]
    print_facts(terminal, facts)


def _estimate(forecast: "ForkForecast") -> str:
    estimate, samples = forecast.estimate, forecast.samples
    if not any(True for _ in forecast.plan.models()):
        return "$0: no model is asked, if the run goes as it did"
    cost = dollars(estimate.usd, estimate.unpriced)
    sentence = (
        f"{cost}, from what these steps took when recorded" if estimate.usd is not None else f"{cost} (not known)"
    )
    if samples > 1:
        whole = dollars(None if estimate.usd is None else estimate.usd * samples, estimate.unpriced)
        sentence = f"{whole} for {samples} samples; {sentence}"
    return sentence


def print_forked(terminal: Terminal, result: "ForkResult", base: str | None = None) -> None:
    """The last lines of a run of ``rewind fork``; ``base`` is how a command line names what was forked."""
    _print_misses(terminal, result.misses)
    for remark in result.remarks:
        terminal.line(Span(remark, "yellow"))
    if result.unasked is not None:
        terminal.line(Span(result.unasked, "bold red"))
    if result.broken is not None:
        terminal.line(Span("rewind: the new session is not complete: ", "bold red"), result.broken)
    if result.exit_code != 0:
        terminal.line(Span(f"The agent ended with exit code {result.exit_code}.", "red"))
    live = f"{len(result.live)} live"
    if result.live:
        live += f" ({dollars(result.spent.usd, result.spent.unpriced)})"
    drifted: list[str | Span] = []
    if result.renamed:
        drifted = [" · ", renamed_text(result.renamed)]
    if result.drifted:
        drifted += [" · ", Span(f"{len(result.drifted)} drifted", "yellow")]
    if result.telemetry:
        drifted += [" · ", plural(result.telemetry, "telemetry upload")]
    terminal.line(
        Span(f"{_reused(result.reused)} ($0)", "green"), *drifted, " · ", live, " · → ", Span(result.session_id, "bold")
    )
    new = result.session_id
    terminal.line(hint(f"→ rewind diff {base or result.lineage.session} {new} · rewind inspect {new}"))


def _reused(steps: Sequence[Step]) -> str:
    if not steps:
        return "nothing from the recording"
    return f"{'step' if len(steps) == 1 else 'steps'} {spans(step.index for step in steps)} from the recording"


def print_samples(terminal: Terminal, samples: "ForkSamples") -> None:
    """The samples side by side, and which of them answer alike."""
    results, asked_for, unstarted = samples.results, samples.asked_for, samples.unstarted
    terminal.line()
    print_table(terminal, _SAMPLES, [_row(at, result) for at, result in enumerate(results, 1)])
    if unstarted is not None:
        left = asked_for - len(results)
        terminal.line(Span(f"{plural(left, 'sample')} not started: {unstarted}", "yellow"))
    terminal.line(_summary(results, asked_for, samples.groups))
    for group in samples.groups:
        counted = f"  {len(group.samples)} × "
        terminal.line(counted, safe_line(group.wordings[0], _ANSWER_SHOWN))
        under = " " * (len(counted) - 2)
        for words in group.wordings[1:_WORDINGS_SHOWN]:
            terminal.line(Span(f"{under}≈ {safe_line(words, _ANSWER_SHOWN)}", "dim"))
        if (more := len(group.wordings) - _WORDINGS_SHOWN) > 0:
            terminal.line(Span(f"{under}≈ {plural(more, 'more wording')}", "dim"))
        if group.differs_in:
            terminal.line(f"{under}  differs in: {safe_line(', '.join(group.differs_in), _ANSWER_SHOWN)}")


def _summary(results: Sequence["ForkResult"], asked_for: int, groups: Sequence["AnswerGroup"]) -> str:
    """Only what was answered can be alike."""
    step = f"step {results[0].lineage.step}"
    answered = sum(len(group.samples) for group in groups)
    wordings = sum(len(group.wordings) for group in groups)
    how = "alike" if len(groups) == 1 else f"in {len(groups)} ways"
    if wordings > len(groups):
        how += f", {wordings} wordings"
    if answered == len(results) == asked_for:
        return f"{plural(asked_for, 'sample')}, {step} answered {how}:"
    ran = f"{len(results)} of {plural(asked_for, 'sample')} {'was' if len(results) == 1 else 'were'} run"
    if answered < 2:
        return f"{ran}; {step} was {'answered once:' if answered else 'not answered.'}"
    return f"{ran}; {step} was answered {answered} times, {how}:"


def _row(at: int, result: "ForkResult") -> list[Cell]:
    return [
        str(at),
        result.session_id,
        _outcome(result),
        _text(result),
        number(result.tokens),
        dollars(result.spent.usd, result.spent.unpriced) if result.live else amount(0),
    ]


def _outcome(result: "ForkResult") -> Span:
    if result.unasked is not None:
        return Span("✗ not asked", "red")
    if result.stopped is not None:
        return Span("◐ stopped", "yellow")
    return Span("✓ ok", "green") if result.exit_code == 0 else Span(f"✗ exit {result.exit_code}", "red")


def _text(result: "ForkResult") -> str:
    if result.answer is None or result.answer.response is None:
        return NONE
    reading = result.answer.response.reading
    return reading.text or (f"error: {reading.error}" if reading.error else NONE)


# ── replays ──────────────────────────────────────────────────────────────────────────────────────────────────────


def print_replayed(terminal: Terminal, result: "ReplayResult", saved: Spending) -> None:
    """The last lines of ``rewind replay``."""
    if result.output_difference:
        _print_difference(terminal, result.output_difference)
    _print_misses(terminal, result.misses)
    for remark in result.remarks:
        terminal.line(Span(remark, "yellow"))
    if result.unasked is not None:
        terminal.line(Span(f"Step {result.unasked} was never asked: the run ended without coming to it.", "yellow"))
    if result.nothing_played:
        terminal.line(Span(_nothing_played_text(result), "bold red"))
    whole = (result.played == result.total and not result.nothing_played) or result.stopped is not None
    parts = [Span(f"{result.played}/{result.total} steps replayed{_how(result)}", "green" if whole else "yellow")]
    if result.drifted:
        parts.append(Span(f"{result.drifted} drifted", "yellow"))
    if result.live:
        parts.append(Span(f"{result.live} live", "yellow"))
    if result.tools_run:
        parts.append(Span(f"{plural(result.tools_run, 'tool call')} run", "yellow"))
    if result.misses:
        parts.append(Span(plural(len(result.misses), "miss", "misses"), "red"))
    if result.stopped is not None:
        parts.append(Span(_stopped_text(result.stopped)))
    if result.telemetry:
        parts.append(Span(plural(result.telemetry, "telemetry upload")))
    parts.append(Span(plural(result.network_calls, "network call"), "yellow" if result.network_calls else ""))
    if saved.usd:
        parts.append(Span(f"saved {dollars(saved.usd, saved.unpriced)}"))
    colour = {"identical": "green", "renamed": "green", "beginning": "green", "different": "red"}.get(result.output, "")
    same: str = "identical so far" if result.output == "beginning" else result.output
    if result.output == "renamed":
        same = f"identical but for {names_text(result.output_renamed)}"
    parts.append(Span(f"output {same}", colour))
    if result.other_exit_code:
        parts.append(Span(f"exit code {result.exit_code}, recorded {result.recorded_exit_code}", "red"))
    line: list[str | Span] = []
    for part in parts:
        line += [" · ", part] if line else [part]
    terminal.line(*line)
    if result.kept_as is not None:
        terminal.line(hint(f"→ this run, live answers included: rewind inspect {result.kept_as}"))


def _print_misses(terminal: Terminal, misses: Sequence["MissNote"]) -> None:
    """What was asked that the recording cannot answer, and what to do about it; the same miss once."""
    often = Counter(note.reason for note in misses)
    first: dict[str, MissNote] = {}
    for note in misses:
        first.setdefault(note.reason, note)
    for note in first.values():
        start = Span("miss: " if often[note.reason] == 1 else f"miss, {often[note.reason]} times: ", "bold red")
        if note.miss is None:
            terminal.line(start, (note.detail or note.reason).rstrip())
        else:
            terminal.line(start, note.miss.facts, "\n\n", hint(note.miss.advice, ""))


def _how(result: "ReplayResult") -> str:
    """``(9 exact, 3 but for 2 dates and 1 id)``; nothing where all were exact."""
    if not result.renamed:
        return ""
    return f" ({result.exact} exact, {renamed_text(result.renamed)})"


def renamed_text(renamed: Mapping[int, tuple[Renamed, ...]]) -> str:
    """``3 but for 2 dates and 1 id``: the steps, and all that they call otherwise, each once."""
    names = dict.fromkeys(pair for pairs in renamed.values() for pair in pairs)
    return f"{len(renamed)} but for {names_text(names)}"


def names_text(pairs: Iterable[Renamed]) -> str:
    """``2 dates and 1 id``."""
    counts = Counter(pair.kind for pair in pairs)
    parts = [plural(count, noun, "addresses" if noun == "address" else None) for noun, count in sorted(counts.items())]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _print_difference(terminal: Terminal, difference: str) -> None:
    """A unified diff, the lines coloured by what they are."""
    for line in difference.splitlines():
        style = {"-": "red", "+": "green", "@": "cyan"}.get(line[:1], "")
        terminal.line(Span(line, style))


def _nothing_played_text(result: "ReplayResult") -> str:
    if result.total == 0:
        return "The recording holds no answer that could be replayed: this replay tested nothing."
    steps = "The recorded step was not" if result.total == 1 else f"None of the {result.total} recorded steps was"
    return f"{steps} asked for: this replay tested nothing."


def _stopped_text(where: "Stopped") -> str:
    if where.interrupted:
        return f"interrupted before step {where.step}"
    return f"stopped before step {where.step}" if where.before else f"stopped after step {where.step} as asked"
