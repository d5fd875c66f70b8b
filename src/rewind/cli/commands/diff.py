"""``rewind diff``: what differs between two sessions, step by step."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

from rewind.cli.app import App, common_options, json_option, print_json, session_argument
from rewind.cli.comparing import Side, move_at, opened, print_sides
from rewind.cli.progress import progress
from rewind.cli.screens.diff_rows import Screen
from rewind.cli.screens.diff_summary import print_summary
from rewind.cli.screens.terminal import Span, err, out
from rewind.compare.align import Row
from rewind.compare.comparison import Comparison
from rewind.compare.delta import Aspect
from rewind.compare.phrases import slug
from rewind.compare.summary import RowChange, Summary, pair_changes, row_changes, summarise
from rewind.errors import ExitCode, UsageError
from rewind.model.session import split_step
from rewind.store.catalog.totals import Totals
from rewind.store.library import Library
from rewind.views import compare as views

ONLY = {slug(aspect): frozenset({aspect}) for aspect in Aspect if aspect is not Aspect.SNAPSHOT} | {
    "model": frozenset({Aspect.MODEL, Aspect.SNAPSHOT})
}
"""What ``--only`` may name."""


@click.command("diff")
@session_argument("a", metavar="A[:STEP]")
@session_argument("b", metavar="B[:STEP]")
@click.option(
    "--step", type=click.IntRange(min=1), metavar="N", help="Only step N of A and what belongs to it in B"
)
@click.option(
    "--only",
    type=click.Choice(list(ONLY)),
    multiple=True,
    help="Look at nothing else (repeatable); the exit code, too, is about these",
)
@click.option("--stat", is_flag=True, help="Only the summary, a ribbon and a line for each row")
@click.option("--full", is_flag=True, help="Fold nothing: long texts and unchanged words in full")
@json_option
@common_options
@click.pass_obj
def command(
    app: App, a: str, b: str, step: int | None, only: tuple[str, ...], stat: bool, full: bool, as_json: bool
) -> int:
    """Show what differs between the sessions A and B, step by step.

    Steps are brought together by what is said in them, not by their numbers. Ids and times do not count, nor does the
    order of parallel calls or how often one was tried; they are told. What is changed in every step is shown once.
    In texts, [-this-] is only in A and {+this+} only in B.

    A:4 B:5 compares these two steps, whatever belongs together; A:4 B is the row of step 4 of A, as --step 4 is.

    \b
    Exit code: 0 the same, but for ids and times · 1 different · 3 no such session or step.

    \b
    Examples:
      rewind diff last~1 last
      rewind diff good bad --stat
      rewind diff good bad --only system --only tools
      rewind diff 7f3a:4 9b2c:4 --full
    """
    (ref_a, at_a), (ref_b, at_b) = split_step(a), split_step(b)
    if step is not None:
        if at_a is not None or at_b is not None:
            raise UsageError(
                "--step N is for whole sessions; A:N B:M names the steps themselves.",
                hint=f"rewind diff {ref_a} {ref_b} --step {step}",
            )
        at_a = step
    library = Library(app.home)
    sessions = [library.find(ref) for ref in (ref_a, ref_b)]
    with opened(library, sessions) as sides:
        look = Look(
            comparison=Comparison(*(side.run for side in sides)),
            sides=sides,
            totals=[library.totals(session, app.prices) for session in sessions],
            steps=(at_a, at_b),
            only=tuple(dict.fromkeys(only)),
        )
        if as_json:
            print_json(look.view())
        else:
            look.show(stat=stat, full=full)
        same = look.is_same
    if look.whole and not (same or as_json):
        ids = " ".join(session.ref for session in sessions)
        err().line(Span(f"→ where they part, and why: rewind bisect {ids}", "dim"))
    return ExitCode.OK if same else ExitCode.DIFFERENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Two sessions, and what of them is looked at."""

    comparison: Comparison
    sides: Sequence[Side]
    totals: Sequence[Totals]
    steps: tuple[int | None, int | None]
    """Named by the user."""
    only: tuple[str, ...]
    """What is looked at, if not all; steps that only one run made do not count then."""

    @property
    def aspects(self) -> frozenset[Aspect]:
        return frozenset(aspect for name in self.only or ONLY for aspect in ONLY[name])

    @property
    def whole(self) -> bool:
        return self.steps == (None, None)

    def rows(self) -> Sequence[Row]:
        """All; or the two steps that were named, or the row of the one that was."""
        if self.whole:
            return self.comparison.rows
        a, b = (
            None if index is None else move_at(side, index)
            for index, side in zip(self.steps, self.sides, strict=True)
        )
        if a is not None and b is not None:
            return (Row(a, b),)
        return [row for row in self.comparison.rows if (row.a is a if a is not None else row.b is b)]

    def changes(self, rows: Sequence[Row]) -> Iterator[RowChange]:
        if None not in self.steps:
            return pair_changes(self.comparison, rows[0], self.aspects)
        return row_changes(self.comparison, rows, self.aspects)

    @property
    def is_same(self) -> bool:
        rows = self.rows()
        alone = not self.only and any(row.a is None or row.b is None for row in rows)
        return not alone and next(self.changes(rows), None) is None

    def view(self) -> dict[str, Any]:
        rows = self.rows()
        known = [(side.session, totals) for side, totals in zip(self.sides, self.totals, strict=True)]
        summary = self._summary() if self.whole else None
        same = self.is_same
        damaged = [side.damaged for side in self.sides]
        return views.diff(
            known, self.comparison, rows, self.changes(rows), summary, same=same, damaged=damaged
        )

    def show(self, *, stat: bool, full: bool) -> None:
        rows = self.rows()
        print_sides(out(), [(label, side.session) for label, side in zip("ab", self.sides, strict=True)])
        out().line()
        if self.whole:
            print_summary(out(), self.sides, self._summary(), self.totals)
            out().line()
        screen = Screen(terminal=out(), comparison=self.comparison, sides=self.sides, full=full)
        if stat:
            screen.print_stat(rows, self.aspects, alone=not self.only)
        elif self.is_same:
            screen.print_same(rows, self.only)
        else:
            screen.print_changes(rows, self.changes(rows), alone=not self.only)

    def _summary(self) -> Summary:
        with progress("steps compared") as show:
            return summarise(self.comparison, lambda done: show(done, len(self.comparison.rows)))
