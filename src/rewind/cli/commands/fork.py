"""``rewind fork``: run a recorded command again, and go live at one step, with that step changed."""

import signal
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import click

from rewind.cli.app import App, common_options, json_option, print_json, session_argument, warn
from rewind.cli.options import read_money, upstream_options
from rewind.cli.screens.terminal import Span, err, out
from rewind.errors import ExitCode, UsageError
from rewind.model.session import split_step, split_tool
from rewind.runs.upstream import upstream_of
from rewind.store.library import Library

if TYPE_CHECKING:
    from rewind.runs.fork.run import ForkOptions, ForkPlan, ForkResult


@click.command("fork")
@session_argument(metavar="SESSION:STEP")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND…]")
@click.option(
    "--set",
    "edits",
    multiple=True,
    metavar="EDIT",
    help="Change this at the step: system=…, model=… (repeatable)",
)
@click.option(
    "--edit", "by_hand", is_flag=True, help="Change the step's request in your editor ($VISUAL, $EDITOR)"
)
@click.option(
    "--samples", type=click.IntRange(1, 1000), metavar="K", help="Run it K times, and compare the answers"
)
@click.option(
    "--max-cost",
    callback=read_money,
    metavar="USD",
    help="Stop asking when this much is spent, over all samples",
)
@click.option(
    "--dry-run", is_flag=True, help="Say what is reused, what goes live and what that may cost; run nothing"
)
@click.option("--name", metavar="NAME", help="A name for the new session")
@click.option(
    "--on-miss",
    type=click.Choice(["refuse", "live"]),
    default="refuse",
    help="Before the step, a request that was not recorded: refuse it (default), or ask the real provider",
)
@click.option(
    "--allow-drift",
    is_flag=True,
    help="Take a changed request in the same place of the same conversation for the recorded one",
)
@upstream_options
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the gateway (0: any)")
@json_option
@common_options
@click.pass_obj
def command(
    app: App,
    session: str,
    command: tuple[str, ...],
    edits: tuple[str, ...],
    by_hand: bool,
    samples: int | None,
    max_cost: float | None,
    dry_run: bool,
    name: str | None,
    on_miss: Literal["refuse", "live"],
    allow_drift: bool,
    connect_to: tuple[str, ...],
    upstream_ca: str | None,
    upstream_proxy: str | None,
    insecure_upstream: bool,
    port: int,
    as_json: bool,
) -> int:
    """Run the command of SESSION again; from STEP on it goes live, with that step changed.

    The steps before are answered by the recording and cost nothing. The new run becomes a session of its own.
    docs/editing.md has every form of EDIT; =@OTHER:STEP takes the value from another session.

    \b
    Exit code: 0 the run went through · 4 the step was never asked, or a request before it was not recorded ·
               5 the agent failed, or was stopped.

    \b
    Examples:
      rewind fork 7f3a:4 --set 'system+=Never refund without a confirmation.'
      rewind fork bad:4 --set system=@good:4 --samples 5 --max-cost 0.50
      rewind fork 7f3a:4 --set tool.lookup.result='{"status": "blocked"}'
      rewind fork 7f3a:4 --edit
      rewind fork 7f3a:4 --set model=claude-opus-5 --dry-run
    """
    ref, step = _place(session)
    settings = app.settings(upstream_proxy=upstream_proxy, upstream_ca=upstream_ca)
    # Lazily: neither help nor a typo should wait for the engine.
    from rewind.edit.grammar import parse_edit
    from rewind.runs.fork.run import ForkOptions, plan_fork
    from rewind.runs.rerun import command_to_run

    options = ForkOptions(
        session=Library(settings.home).find(ref),
        step=step,
        home=settings.home,
        edits=tuple(map(parse_edit, edits)),
        command=command or None,
        name=name,
        on_miss=on_miss,
        allow_drift=allow_drift,
        port=port,
        upstream=upstream_of(
            settings, connect_to=connect_to, insecure=insecure_upstream, announce=None if as_json else warn
        ),
        ignore=settings.ignore,
        pricing=app.prices,
        announce=_announce,
    )
    if not dry_run:
        # Before an editor is opened, and before the plan: what may not be run is said at once.
        command_to_run(options.session, options.command, f"fork {options.session.ref}:{step}")
    if by_hand:
        options = _edited_by_hand(options)
    if max_cost is not None:
        from rewind.runs.fork.budget import Budget

        options = replace(options, budget=Budget(max_cost, app.prices))
    plan = plan_fork(options)
    # What `last` names is another session after the first sample.
    options = replace(options, edits=plan.own)
    if dry_run:
        _show_plan(options, plan, samples or 1, as_json=as_json)
        return ExitCode.OK
    # Where it cannot be told, the limit is still held while the run goes on.
    return _run(options, samples, plan.estimate(app.prices).usd or 0.0, as_json=as_json)


def _place(name: str) -> tuple[str, int]:
    """Session and step. Raises UsageError where the name has no step."""
    ref, step = split_step(name)
    if step is not None:
        return ref, step
    whole, tool = split_tool(name)
    if tool is not None:
        raise UsageError(
            f"{name!r} names a tool call, and a fork begins at a step.",
            hint=f"rewind fork {whole}:{tool[0]} …, and rewind inspect {whole} shows the steps; "
            "--set tool.NAME.result=… changes what the tool gave back, at the step that brings it",
        )
    ref, colon, rest = name.rpartition(":")
    if ref and colon:
        raise UsageError(
            f"{rest!r} is no step: they are counted from 1.",
            hint=f"rewind fork {ref}:1 …, and rewind inspect {ref} shows the steps",
        )
    raise UsageError(
        f"A fork needs the step to go live at: {name!r} names a whole session.",
        hint=f"rewind fork {name}:1 …, and rewind inspect {name} shows the steps",
    )


def _show_plan(options: "ForkOptions", plan: "ForkPlan", samples: int, *, as_json: bool) -> None:
    from rewind.cli.screens.fork import print_plan
    from rewind.views import fork as forks

    assert options.pricing is not None, "the command knows prices"
    estimate, budget = plan.estimate(options.pricing), options.budget
    if as_json:
        print_json(forks.plan(plan, estimate, samples, None if budget is None else budget.limit))
        return
    known = budget is None or budget.unknown_model(plan.models()) is None
    print_plan(out(), plan, estimate, samples, None if budget is None else budget.limit, known=known)


def _run(options: "ForkOptions", samples: int | None, estimate: float, *, as_json: bool) -> int:
    from rewind.cli.commands.replay import stdout_on_stderr
    from rewind.cli.screens.fork import print_forked, print_samples
    from rewind.runs.fork.run import fork
    from rewind.text import amount
    from rewind.views import fork as forks

    budget = options.budget
    results: list[ForkResult] = []
    unstarted: str | None = None
    for number in range(1, (samples or 1) + 1):
        if budget is not None and estimate > budget.left:
            left = f"{amount(max(0.0, budget.left))} of {amount(budget.limit)} is left"
            unstarted = f"a run may cost {amount(estimate)}, and {left}"
            break
        one = replace(options, sample=number if samples else None)
        with stdout_on_stderr() if as_json else nullcontext():
            results.append(fork(one))
        if not as_json:
            print_forked(err(), results[-1], options.session.ref)
        if results[-1].exit_code in _CALLED_OFF:
            break
    if not results:
        raise UsageError(
            f"--max-cost does not reach for one run: {unstarted}. Nothing was run.",
            hint="rewind fork … --dry-run shows what goes live",
        )
    if as_json:
        print_json(forks.forks(results, samples or 1, unstarted))
    elif samples:
        print_samples(err(), results, samples, unstarted)
    return max(map(exit_code, results), key=_WEIGHT.index)


_CALLED_OFF = tuple(128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
"""How an agent ends that we were told to end; there are no further samples then."""
_WEIGHT = (ExitCode.OK, ExitCode.AGENT_FAILED, ExitCode.ENVIRONMENT, ExitCode.MISS, ExitCode.INTERRUPTED)
"""Of several runs, the worst counts."""


def exit_code(result: "ForkResult") -> ExitCode:
    if result.exit_code == ExitCode.INTERRUPTED:
        return ExitCode.INTERRUPTED
    if result.unasked is not None or result.misses:
        return ExitCode.MISS
    if result.broken is not None:
        return ExitCode.ENVIRONMENT
    if result.exit_code != 0 or result.stopped is not None:
        return ExitCode.AGENT_FAILED
    return ExitCode.OK


def _edited_by_hand(options: "ForkOptions") -> "ForkOptions":
    from rewind.cli.editor import edit_json
    from rewind.runs.fork.edits import ManualEdit
    from rewind.runs.fork.plan import body_to_edit

    shown = body_to_edit(options)
    saved = edit_json(shown, name=f"step-{options.step}.json")
    return replace(options, by_hand=ManualEdit(shown, saved))


def _announce(sentence: str) -> None:
    err().line(Span(sentence, "yellow"))
