"""``rewind bisect``: the first step where a bad run left a good one, and why."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import click

from rewind.cli.app import App, common_options, complete_session, json_option, print_json
from rewind.cli.comparing import Side, opened
from rewind.cli.options import upstream_from, upstream_options
from rewind.cli.prove_options import Probing, probing_options
from rewind.cli.screens.bisect import print_finding
from rewind.cli.screens.bisect_groups import print_parting
from rewind.cli.screens.next_commands import next_moves
from rewind.cli.screens.proof import print_proof, print_trial
from rewind.cli.screens.terminal import Span, err, out
from rewind.cli.since_when import code_text, since_text, since_when
from rewind.compare.divergence import Finding, bisect
from rewind.compare.many import part
from rewind.edit.edits import Edit
from rewind.errors import DamagedStore, ExitCode, SessionNotFound, UsageError
from rewind.model.session import split_step
from rewind.runs.imported_command import command_hint
from rewind.store.library import Library
from rewind.views import bisect as views
from rewind.views import prove as proving

_SIDES = ("--good", "--bad")
_COMMAND = "rewind.bisect.command"


class Sides(click.Command):
    """Understands ``--good A B C --bad D E F``: what follows such an option belongs to it, up to the next option.

    What follows ``--`` is the command that ``--prove`` runs in place of the recorded one.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for option, value in pairwise([*args, "--"]):
            if option in _SIDES and value.startswith("-") and not ctx.resilient_parsing:
                raise UsageError(f"{option} needs a session, or several.", hint="rewind bisect --help")
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
    help="Runs that did not (one or more)",
)
@probing_options
@upstream_options
@json_option
@common_options
@click.pass_obj
def command(
    app: App,
    runs: tuple[str, ...],
    goods: tuple[str, ...],
    bads: tuple[str, ...],
    proves: bool,
    samples: int,
    max_calls: int,
    max_cost: float | None,
    allow_drift: bool,
    connect_to: tuple[str, ...],
    upstream_ca: str | None,
    upstream_proxy: str | None,
    insecure_upstream: bool,
    as_json: bool,
) -> int:
    """Find the first step where the run BAD left the run GOOD, and say why.

    Runs part where one does something else: other words, other tools, an error, a step that the other does not
    make. The cause is what was different before that: the model, the prompt, the tools, parameters, input, the
    result of a tool, the history; or nothing was, and the model answered otherwise. Ids and times never count.

    With several runs on a side: the step where they part, what all bad runs share, and no good run has.

    --prove goes live, and needs your key. Each probe is a fork of BAD that asks this one step and is then ended; a
    control comes first, and a changed prompt is narrowed down to the smallest change that turns the outcome.
    What follows -- is run in place of the recorded command; for a BAD that came in a file it must be given.

    \b
    Exit code: 0 they do not part · 1 they do · 3 no such session, or one without steps.

    \b
    Examples:
      rewind bisect last~1 last
      rewind bisect refund-good refund-bad --json
      rewind bisect --good 7f3a 5c0d 81aa --bad 9b2c 33e1
      rewind bisect refund-good refund-bad --prove --samples 3 --max-cost 0.50
    """
    given = click.get_current_context().meta.get(_COMMAND) or None
    if given and not proves:
        raise UsageError(
            "A command is only run with --prove.", hint="rewind bisect GOOD BAD --prove -- COMMAND"
        )
    good_refs, bad_refs = _named(runs, goods, bads)
    library = Library(app.home)
    sessions = [library.find(ref) for ref in (*good_refs, *bad_refs)]
    with opened(library, sessions) as sides:
        for side in sides:
            if not side.run.moves:
                raise SessionNotFound(
                    f"Session {side.id} has no steps: there is nothing to compare.",
                    hint=f"rewind inspect {side.ref}",
                )
        if len(sides) == 2:
            settings = app.settings(upstream_proxy=upstream_proxy, upstream_ca=upstream_ca)
            upstream = upstream_from(
                settings, connect_to=connect_to, insecure=insecure_upstream, quiet=as_json or not proves
            )
            probing = Probing(
                samples=samples,
                most_calls=max_calls,
                max_cost=max_cost,
                allow_drift=allow_drift,
                upstream=upstream,
                ignore=settings.ignore,
                command=given,
            )
            return show_pair(app, sides[0], sides[1], probing if proves else None, as_json=as_json)
        if proves:
            raise UsageError(
                "--prove is about one good run and one bad one.",
                hint=f"rewind bisect {good_refs[0]} {bad_refs[0]} --prove",
            )
        return _several(sides[: len(good_refs)], sides[len(good_refs) :], as_json=as_json)


def _named(
    runs: Sequence[str], goods: Sequence[str], bads: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """The good runs and the bad ones, however they were given. Raises UsageError."""
    if runs and (goods or bads):
        raise UsageError(
            f"{runs[0]!r} is neither behind --good nor behind --bad.",
            hint="rewind bisect --good A B --bad C D, or rewind bisect GOOD BAD",
        )
    if not (goods or bads):
        if len(runs) != 2:
            raise UsageError(
                f"Two sessions are compared, a good one and a bad one; {len(runs)} given.",
                hint="rewind bisect GOOD BAD, or rewind bisect --good A B --bad C D",
            )
        goods, bads = runs[:1], runs[1:]
    if not (goods and bads):
        missing = "--good" if not goods else "--bad"
        raise UsageError(
            f"There is nothing to compare with: {missing} is missing.", hint="rewind bisect --help"
        )
    for ref in (*goods, *bads):
        session, step = split_step(ref)
        if step is not None:
            raise UsageError(
                f"Whole sessions are compared, not steps ({ref!r}).",
                hint=f"rewind diff {ref} …, or {session}",
            )
    return goods, bads


def show_pair(
    app: App,
    good: Side,
    bad: Side,
    probing: Probing | None = None,
    *,
    as_json: bool = False,
    hints: bool = True,
) -> ExitCode:
    """Where these two part, and why; proven where that is asked for, and with what to do next."""
    found = bisect(good.run, bad.run)
    _check_readable(found, good, bad)
    if as_json:
        seen = {at: since_when(app.home, cause, good, bad) for at, cause in enumerate(found.causes)}
        view = views.finding(found, {at: one for at, one in seen.items() if one is not None})
        if probing is not None and found.diverges:
            view["proof"] = proving.proof(probing.prove(app, found, bad.session, lambda _trial: None))
        print_json(view)
    else:
        first = since_when(app.home, found.causes[0], good, bad) if found.causes else None
        since = "" if first is None else since_text(first, good, bad)
        print_finding(out(), found, good, bad, since=since, code=code_text(good, bad))
        proven: tuple[Edit, ...] | None = None
        if probing is not None and found.diverges:
            err().line()
            proof = probing.prove(app, found, bad.session, lambda trial: print_trial(err(), trial))
            print_proof(out(), proof)
            proven = proof.proven[0].edits if proof.proven else ()
        again = command_hint(bad.run.recording)
        for line in next_moves(found, good.ref, bad.ref, proven, command=again) if hints else ():
            err().line(Span(line, "dim"))
    return ExitCode.DIFFERENT if found.diverges else ExitCode.OK


def _check_readable(found: Finding, good: Side, bad: Side) -> None:
    """What was read as empty because it is damaged must not be named as the reason. Raises DamagedStore."""
    for side, step in zip((good, bad), found.step, strict=True):
        if step in side.damaged:
            raise DamagedStore(
                f"A body of step {step} of session {side.id} is damaged: whether the runs part there cannot be told.",
                hint=f"rewind verify {side.ref}, and rewind diff {good.ref} {bad.ref} shows the other steps",
            )


def _several(goods: Sequence[Side], bads: Sequence[Side], *, as_json: bool) -> int:
    both = {side.id for side in goods} & {side.id for side in bads}
    if both:
        raise UsageError(f"Session {min(both)} is named as good and as bad.")
    parting = part([side.run for side in goods], [side.run for side in bads])
    if as_json:
        print_json(views.parting(parting))
    else:
        print_parting(out(), parting, goods, bads)
        good, bad = goods[0].ref, bads[0].ref
        err().line(Span(f"→ two of them in full: rewind bisect {good} {bad}", "dim"))
    parted = parting.at is not None or bool(parting.shared)
    return ExitCode.DIFFERENT if parted else ExitCode.OK
