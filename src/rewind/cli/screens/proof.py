"""What came of putting things back, for people: each probe as it ends, and the verdict."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rewind.cli.screens.difference import change_lines
from rewind.cli.screens.layout import Line, print_hanging
from rewind.cli.screens.terminal import Span, Terminal
from rewind.compare.proof import AnswerOutcome, Hunk
from rewind.text import dollars, plural

if TYPE_CHECKING:
    from rewind.runs.probe import ProbeResult, Proof, Smallest

_FACTS = 11
"""Columns of the labels, as on the screen above it."""


def print_trial(terminal: Terminal, trial: "ProbeResult") -> None:
    """One line for each probe, while the next one is on its way."""
    terminal.line(Span(f"  put back: {trial.what} → {_came_out(trial)}", "dim"))


def print_proof(terminal: Terminal, proof: "Proof") -> None:
    """The verdict, with the counts behind it."""
    terminal.line()
    sign, headline, style = _verdict(proof)
    print_hanging(terminal, [(Span(headline, f"bold {style}"),)], label=sign, indent=2, style=style)
    terminal.line()
    for label, line in _table(proof):
        print_hanging(terminal, [line], label=label, indent=_FACTS)
    if proof.smallest is not None and (proof.smallest.of > 1 or proof.smallest.words):
        print_hanging(terminal, _smallest(proof.smallest), label="Smallest", indent=_FACTS)
    print_hanging(terminal, [(Span(_price(proof)),)], label="Price", indent=_FACTS)
    if proof.stopped is not None:
        print_hanging(terminal, [(Span(f"stopped early: {proof.stopped}", "yellow"),)], label="", indent=_FACTS)


def _verdict(proof: "Proof") -> tuple[str, str, str]:
    if proof.control.like_good:
        again = f"{proof.control.like_good} of {len(proof.control.outcomes)}"
        return "?", f"Not proven: asked again unchanged, the bad run itself came out well ({again})", "yellow"
    if proof.proven:
        what = " and ".join(trial.what for trial in proof.proven)
        return "✓", f"Proven: {what}", "green"
    if all(trial.refused is not None for trial in proof.trials):
        return (
            "?",
            f"Nothing could be put back. Asked again, the bad run came out {_came_out(proof.control)}",
            "yellow",
        )
    return "✗", "Not proven: no suspect turned the outcome", "red"


def _table(proof: "Proof") -> Iterator[tuple[str, Line]]:
    yield "Control", (Span(f"asked again unchanged: {_came_out(proof.control)}"),)
    label = "Put back"
    for trial in proof.trials:
        style = "green" if trial in proof.proven else ""
        yield label, (Span(f"{trial.what}: {_came_out(trial)}", style), Span(_where(trial), "dim"))
        label = ""


def _came_out(trial: "ProbeResult") -> str:
    if trial.refused is not None:
        return f"could not be put back: {trial.refused}"
    if len(trial.outcomes) == 1:
        return _ALONE[trial.outcomes[0]]
    counts = [(outcome, trial.outcomes.count(outcome)) for outcome in AnswerOutcome]
    counted = ", ".join(f"{count} {_AMONG[outcome]}" for outcome, count in counts if count)
    return f"{counted}, of {len(trial.outcomes)}"


_ALONE = {
    AnswerOutcome.GOOD: "like the good run",
    AnswerOutcome.BAD: "like the bad run",
    AnswerOutcome.UNCLEAR: "like neither clearly",
}
_AMONG = {
    AnswerOutcome.GOOD: "like the good run",
    AnswerOutcome.BAD: "like the bad one",
    AnswerOutcome.UNCLEAR: "unclear",
}


def _where(trial: "ProbeResult") -> str:
    return f"  {' '.join(trial.sessions)}"


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


def _hunks(hunks: Sequence[Hunk]) -> Iterator[Line]:
    for hunk in hunks:
        for line in change_lines(hunk.good.strip() or None, hunk.bad.strip() or None):
            yield (Span("  "), *line)


def _price(proof: "Proof") -> str:
    return f"{plural(proof.live_calls, 'live call')}, {dollars(proof.spent.usd, proof.spent.unpriced)}"
