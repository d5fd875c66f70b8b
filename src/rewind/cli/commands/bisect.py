"""``rewind bisect``: the first step where a bad run left a good one, and why."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from rewind.cli.app import App, common_options, complete_session, json_option, print_json, warn
from rewind.cli.options import ProveFlags, prove_options
from rewind.cli.progress import progress_line
from rewind.cli.screens.bisect import print_next, print_pair
from rewind.cli.screens.bisect_groups import print_groups, print_next_of_groups
from rewind.cli.screens.diff import print_warnings
from rewind.cli.screens.proof import print_proof
from rewind.cli.screens.terminal import err, out
from rewind.errors import ExitCode, UsageError
from rewind.reading.bisect import bisect_pair, next_commands
from rewind.reading.groups import RunChoice, bisect_groups, names_one_run
from rewind.views import compare as views

if TYPE_CHECKING:
    from rewind.runs.proof import Proof

_SIDES = ("--good", "--bad", "--runs")
_COMMAND = "rewind.bisect.command"


class Sides(click.Command):
    """Understands ``--good A B C --bad D E F``, and ``--runs`` so, too: what follows belongs to it, up to an option.

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
    metavar="RUNS…",
    shell_complete=complete_session,
    help="Runs that went well: ids, names, patterns ('refund-*'), files or queries ('name=refund* status=ok')",
)
@click.option(
    "--bad",
    "bads",
    multiple=True,
    metavar="RUNS…",
    shell_complete=complete_session,
    help="Runs that went wrong, named in the same ways",
)
@click.option(
    "--runs",
    "unlabelled",
    multiple=True,
    metavar="RUNS…",
    shell_complete=complete_session,
    help="Good and bad runs together, named in the same ways; --bad-if tells which are bad",
)
@click.option(
    "--bad-if",
    "bad_if",
    multiple=True,
    metavar="TEST",
    help="What makes a run bad (--runs), or an answer (--prove): exit!=0, status=failed, tag=KEY[=VALUE], 'tool:NAME "
    "absent' (or present, or >N), text~WORDS (or !~, or ~/pattern/, in what was said last), cost>USD, steps>N or "
    "time>30s (repeatable: any)",
)
@click.option("--exact-words", is_flag=True, help="Count other words as a divergence, too, not only other decisions")
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
    unlabelled: tuple[str, ...],
    bad_if: tuple[str, ...],
    exact_words: bool,
    no_history: bool,
    flags: ProveFlags,
    as_json: bool,
) -> int:
    """Find the first step where the run BAD left the run GOOD, and say why.

    Runs part where one of them decides something else: it calls other tools, or with other arguments that matter, its
    answer says something else, it fails, or makes a step that the other does not make. The same in other words, a read
    more and a failure that was tried again are told and do not count (--exact-words: words do). The cause is what
    differed before that: the model, the prompt, the tools, parameters, input, a tool's result or the history. If
    nothing differed, the model answered differently. Ids and times never count.

    With several runs on a side, it finds the step whose decisions tell good from bad by more than chance, and what was
    asked or given before it that does so, too: with both rates and a p that counts everything that was looked at. A
    query has the words of 'rewind list': name= model= since= status= tag= text= limit=.

    --prove makes live calls and needs your key; it says how many and asks first. Each probe is a fork of BAD that asks
    this one step and then ends: as it was, and with GOOD's value put back, in turns, until the two rates tell. A
    changed prompt is narrowed down to the smallest change that turns the outcome. A command after -- is run instead of
    the recorded one; if BAD came from a file, you must give one.

    Exit code: 0 they do not part, or there are too few runs to tell · 1 they do · 3 no such session, or one without
    steps.

    \b
    Examples:
      rewind bisect last~1 last
      rewind bisect refund-good refund-bad --json
      rewind bisect --good 'refund-ok-*' --bad 'name=refund-* status=failed'
      rewind bisect --runs 'name=refund* since=7d' --bad-if 'tool:refund absent'
      rewind bisect refund-good refund-bad --prove --max-cost 0.50
    """
    given = click.get_current_context().meta.get(_COMMAND) or None
    if given and not flags.proves:
        raise UsageError("A command is only run with --prove.", hint="rewind bisect GOOD BAD --prove -- COMMAND")
    if unlabelled or (bad_if and not flags.proves):
        _check_of_two(proves=flags.proves, exact_words=exact_words)
        return _bisect_groups(app, _labelled((*runs, *goods, *bads), unlabelled, bad_if), as_json=as_json)
    good_refs, bad_refs = _named(runs, goods, bads)
    if len(good_refs) + len(bad_refs) > 2 or not all(map(names_one_run, (*good_refs, *bad_refs))):
        _check_of_two(proves=flags.proves, exact_words=exact_words)
        choice = RunChoice(goods=tuple(good_refs), bads=tuple(bad_refs))
        return _bisect_groups(app, choice, as_json=as_json)
    with ExitStack() as stack:
        with progress_line() as on_progress:
            found = stack.enter_context(
                bisect_pair(
                    app.home,
                    good_refs[0],
                    bad_refs[0],
                    date_all=as_json,
                    ask_history=not no_history,
                    exact_words=exact_words,
                    on_progress=on_progress,
                )
            )
        if not as_json:
            print_pair(out(), found)
        proof: Proof | None = None
        if flags.proves and found.finding.diverges:
            from rewind.cli.fork_runs import run_proof

            proof = run_proof(app, found, flags, given, bad_if=bad_if, quiet=as_json)
        elif flags.proves:
            warn("There is nothing to prove: the runs do not part. Nothing was asked.")
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


def _bisect_groups(app: App, choice: RunChoice, *, as_json: bool) -> ExitCode:
    with ExitStack() as stack:
        with progress_line() as on_progress:
            found = stack.enter_context(bisect_groups(app.home, app.prices, choice, on_progress=on_progress))
        if as_json:
            print_json(views.group_bisection(found))
        else:
            print_groups(out(), found)
            print_next_of_groups(err(), found)
    print_warnings(err(), (*found.goods, *found.bads))
    return ExitCode.DIFFERENT if found.diverges else ExitCode.OK


def _check_of_two(*, proves: bool, exact_words: bool) -> None:
    """What is said of two runs and not of many. Raises UsageError."""
    if proves:
        raise UsageError("--prove takes one good run and one bad run.", hint="rewind bisect GOOD BAD --prove")
    if exact_words:
        raise UsageError(
            "--exact-words takes one good run and one bad run: words of many runs never repeat.",
            hint="rewind bisect GOOD BAD --exact-words",
        )


def _labelled(others: Sequence[str], unlabelled: tuple[str, ...], tests: tuple[str, ...]) -> RunChoice:
    """One set of runs, and what makes them bad. Raises UsageError."""
    if others:
        raise UsageError(
            "--runs and --bad-if sort one set of runs; --good and --bad name two.",
            hint="rewind bisect --runs 'name=refund* since=7d' --bad-if 'exit!=0'",
        )
    if not unlabelled or not tests:
        missing = "--runs" if not unlabelled else "--bad-if"
        raise UsageError(
            f"{missing} is missing: --runs says which runs, and --bad-if which of them are bad.",
            hint="rewind bisect --runs 'name=refund* since=7d' --bad-if 'exit!=0'",
        )
    return RunChoice(runs=unlabelled, bad_if=tests)


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
