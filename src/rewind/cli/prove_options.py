"""The options of ``rewind bisect --prove``, and what they come to."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import click

from rewind.cli.app import App
from rewind.cli.commands.fork import read_money
from rewind.cli.screens.terminal import Span, err
from rewind.compare.divergence import Finding
from rewind.gateway.options import UpstreamOptions
from rewind.model.session import Session

if TYPE_CHECKING:
    from rewind.runs.probe import Proof, Trial

Command = TypeVar("Command", bound=Callable[..., object])
MOST_CALLS = 40


def probing_options(function: Command) -> Command:
    """How often is asked, and what it may cost."""
    options = (
        click.option(
            "--prove",
            "proves",
            is_flag=True,
            help="Run BAD again to that step with GOOD's value put back, live, and see how it comes out",
        ),
        click.option(
            "--samples",
            type=click.IntRange(1, 100),
            default=1,
            metavar="K",
            help="With --prove: ask each question K times (default 1)",
        ),
        click.option(
            "--max-calls",
            type=click.IntRange(min=1),
            default=MOST_CALLS,
            metavar="N",
            help=f"With --prove: make at most N live calls (default {MOST_CALLS})",
        ),
        click.option(
            "--max-cost", callback=read_money, metavar="USD", help="With --prove: spend no more than this"
        ),
        click.option(
            "--allow-drift",
            is_flag=True,
            help="With --prove: accept a changed request at the same place before the step",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True, kw_only=True)
class Probing:
    """How a cause is to be proven."""

    samples: int
    most_calls: int
    max_cost: float | None
    allow_drift: bool
    upstream: UpstreamOptions
    ignore: tuple[str, ...]
    command: tuple[str, ...] | None = None
    """In place of the recorded one."""

    def prove(self, app: App, found: Finding, bad: Session, told: "Callable[[Trial], None]") -> "Proof":
        """Goes live."""
        # Lazily: only this option needs the engine.
        from rewind.runs.fork.budget import Budget
        from rewind.runs.fork.run import ForkOptions
        from rewind.runs.probe import ProveOptions, prove

        prices = app.prices
        fork = ForkOptions(
            session=bad,
            step=found.step[1] or 0,
            home=app.home,
            command=self.command,
            allow_drift=self.allow_drift,
            upstream=self.upstream,
            ignore=self.ignore,
            pricing=prices,
            budget=None if self.max_cost is None else Budget(self.max_cost, prices),
            announce=_once(lambda sentence: err().line(Span(sentence, "yellow"))),
        )
        return prove(
            ProveOptions(
                finding=found, fork=fork, samples=self.samples, most_calls=self.most_calls, told=told
            )
        )


def _once(say: Callable[[str], None]) -> Callable[[str], None]:
    """Every probe would say the same."""
    said: set[str] = set()

    def tell(sentence: str) -> None:
        if sentence not in said:
            said.add(sentence)
            say(sentence)

    return tell
