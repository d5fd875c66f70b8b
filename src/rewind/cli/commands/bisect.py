"""``rewind bisect``: the first step where a bad run left a good one, and why."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from rewind.cli.app import App, common_options, complete_session, json_option, print_json
from rewind.cli.options import ProveFlags, prove_options
from rewind.cli.progress import progress_line
from rewind.cli.screens.bisect import print_next, print_pair
from rewind.cli.screens.bisect_groups import print_groups
from rewind.cli.screens.diff import print_warnings
from rewind.cli.screens.proof import print_proof
from rewind.cli.screens.terminal import err, hint, out
from rewind.errors import ExitCode, UsageError
from rewind.reading.bisect import bisect_groups, bisect_pair, next_commands
from rewind.views import compare as views

if TYPE_CHECKING:
    from rewind.runs.probe import Proof

_SIDES = ("--good", "--bad")
_COMMAND = "rewind.bisect.command"


class Sides(click.Command):
    """Understands ``--good A B C --bad D E F``: what follows such an option belongs to it, up to the next option.

    What follows ``--`` is the command that ``--prove`` runs in place of the recorded one.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for option, value in pairwise([*args, "--"]):
            if option in _SIDES and value.startswith("-") and not ctx.resilient_parsing:
                raise UsageError(f"{option} needs at least one session.", hint="rewind bisect --help")
        if "--" in args:
            at = args.index("--")
            ctx.meta[_COMMAND] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, list(_spelled_out(args)))


def _spelled_out(args: Sequence[str]) -> Iterator[str]:
    """``--good A B`` as click knows it: ``--good A --good B``."""
    side: str | None = None
    for word in args:
        if word in _SIDES:
            side = word
        elif word.startswith("-"):
            side = None
            yield word
        elif side is not None:
            yield from (side, word)
        else:
            yield word


@click.command("bisect", cls=Sides)
@click.argument("runs", nargs=-1, metavar="[GOOD BAD]", shell_complete=complete_session)
@click.option(
    "--good",
    "goods",
    multiple=True,
    metavar="SESSION…",
    shell_complete=complete_session,
    help="Runs that went well (one or more)",
)
@click.option(
    "--bad",
    "bads",
    multiple=True,
    metavar="SESSION…",
    shell_complete=complete_session,
    help="Runs that went wrong (one or more)",
)
@click.option("--no-history", is_flag=True, help="Do not ask earlier good runs what varies anyway")
@prove_options
@json_option
@common_options
@click.pass_obj
def command(
    app: App,
    runs: tuple[str, ...],
    goods: tuple[str, ...],
    bads: tuple[str, ...],
    no_history: bool,
    flags: ProveFlags,
    as_json: bool,
) -> int:
    """Find the first step where the run BAD left the run GOOD, and say why.

    Runs part where one of them does something else: it says other words, calls other tools, fails, or makes a step
    that the other does not make. The cause is what differed before that: the model, the prompt, the tools,
    parameters, input, a tool's result or the history. If nothing differed, the model answered differently. Ids and
    times never count.

    With several runs on a side, it finds the step where they part, and what all bad runs share and no good run has.

    --prove makes live calls and needs your key. Each probe is a fork of BAD that asks this one step and then ends. A
    control comes first; a changed prompt is narrowed down to the smallest change that turns the outcome. A command
    after -- is run instead of the recorded one; if BAD came from a file, you must give one.

    Exit code: 0 they do not part · 1 they do · 3 no such session, or one without steps.

    \b
    Examples:
      rewind bisect last~1 last
      rewind bisect refund-good refund-bad --json
      rewind bisect --good 7f3a 5c0d 81aa --bad 9b2c 33e1
      rewind bisect refund-good refund-bad --prove --samples 3 --max-cost 0.50
    """
    given = click.get_current_context().meta.get(_COMMAND) or None
    if given and not flags.proves:
        raise UsageError("A command is only run with --prove.", hint="rewind bisect GOOD BAD --prove -- COMMAND")
    good_refs, bad_refs = _named(runs, goods, bads)
    if len(good_refs) + len(bad_refs) > 2:
        if flags.proves:
            raise UsageError(
                "--prove takes one good run and one bad run.",
                hint=f"rewind bisect {good_refs[0]} {bad_refs[0]} --prove",
            )
        return _bisect_groups(app, good_refs, bad_refs, as_json=as_json)
    with ExitStack() as stack:
        with progress_line() as on_progress:
            found = stack.enter_context(
                bisect_pair(
                    app.home,
                    good_refs[0],
                    bad_refs[0],
                    date_all=as_json,
                    ask_history=not no_history,
                    on_progress=on_progress,
                )
            )
        if not as_json:
            print_pair(out(), found)
        proof: Proof | None = None
        if flags.proves and found.finding.diverges:
            from rewind.cli.fork_runs import run_proof

            proof = run_proof(app, found, flags, given, quiet=as_json)
        if as_json:
            print_json(views.bisection(found) | ({} if proof is None else {"proof": views.proof(proof)}))
        else:
            if proof is not None:
                print_proof(out(), proof)
            print_next(err(), next_commands(found, None if proof is None else proof.remedy))
    print_warnings(err(), (found.good, found.bad))
    if flags.proves:
        app.retain()
    return ExitCode.DIFFERENT if found.finding.diverges else ExitCode.OK


def _bisect_groups(app: App, goods: Sequence[str], bads: Sequence[str], *, as_json: bool) -> ExitCode:
    with ExitStack() as stack:
        with progress_line() as on_progress:
            found = stack.enter_context(bisect_groups(app.home, goods, bads, on_progress=on_progress))
        if as_json:
            print_json(views.group_bisection(found))
        else:
            print_groups(out(), found)
            pair = f"{found.goods[0].ref} {found.bads[0].ref}"
            err().line(hint(f"→ two of them in full: rewind bisect {pair}"))
    print_warnings(err(), (*found.goods, *found.bads))
    return ExitCode.DIFFERENT if found.diverges else ExitCode.OK


def _named(runs: Sequence[str], goods: Sequence[str], bads: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The good runs and the bad ones, however they were given. Raises UsageError."""
    if runs and (goods or bads):
        raise UsageError(
            f"{runs[0]!r} follows neither --good nor --bad.",
            hint="rewind bisect --good A B --bad C D, or rewind bisect GOOD BAD",
        )
    if not (goods or bads):
        if len(runs) != 2:
            raise UsageError(
                f"bisect compares two sessions, a good one and a bad one, but got {len(runs)}.",
                hint="rewind bisect GOOD BAD, or rewind bisect --good A B --bad C D",
            )
        goods, bads = runs[:1], runs[1:]
    if not (goods and bads):
        missing = "--good" if not goods else "--bad"
        raise UsageError(f"There is nothing to compare with: {missing} is missing.", hint="rewind bisect --help")
    return goods, bads
