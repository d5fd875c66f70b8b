"""Forks, probes and replays step by step, once the options of their commands are read.

Imported by these commands when they run: neither help nor a plain replay should wait for the engine behind them.
"""

import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import click

from rewind.cli.app import App, print_json, warn
from rewind.cli.options import ProveFlags, RerunFlags
from rewind.cli.rerun import live_options, replay_exit_code, run_again, show_replayed, stdout_on_stderr
from rewind.cli.screens.proof import print_probe, print_proof_forecast
from rewind.cli.screens.rerun import print_forecast, print_forked, print_samples
from rewind.cli.screens.terminal import Span, err, out
from rewind.cli.step_prompt import edit_json, step_through
from rewind.compare.outcome_test import outcome_test
from rewind.errors import ExitCode, UsageError
from rewind.reading.bisect import PairBisection
from rewind.reading.next_request import next_request, recorded_outline
from rewind.runs.fork.budget import Budget
from rewind.runs.fork.plan import ForkOptions, doubtful_edits
from rewind.runs.fork.run import ForkResult, fork
from rewind.runs.fork.samples import edited_by_hand, forecast_fork, fork_samples, read_edits
from rewind.runs.probe import prove
from rewind.runs.proof import Proof, ProofForecast, ProveOptions
from rewind.runs.replay import replay
from rewind.runs.replay_options import ReplayOptions, StepCommand, StepThrough, Stop
from rewind.runs.rerun import command_to_run
from rewind.views import call as call_views
from rewind.views import runs as views

_WORST_LAST = (ExitCode.OK, ExitCode.AGENT_FAILED, ExitCode.ENVIRONMENT, ExitCode.MISS, ExitCode.INTERRUPTED)
"""Of several forks, the worst counts."""


# ── replay --step ────────────────────────────────────────────────────────────────────────────────────────────


def run_stepped_replay(
    app: App, session: str, flags: RerunFlags, *, step: int, as_json: bool, **chosen: Any
) -> ExitCode:
    """Stop before the step and ask a person; with JSON nobody is asked: the agent is ended there."""
    again = run_again(app, session, flags, quiet=as_json)
    options = ReplayOptions(announce=warn, **chosen, **again)
    if as_json:
        return _about_to_send(app, options, step)
    result, edited = step_through(options, ForkOptions(step=step, pricing=app.prices, announce=warn, **again))
    return show_replayed(app, result) if edited is None else _go_on_as_fork(app, edited)


def _about_to_send(app: App, options: ReplayOptions, step: int) -> ExitCode:
    stops: list[Stop] = []

    def look(stop: Stop) -> StepCommand:
        stops.append(stop)
        return StepCommand.QUIT

    with stdout_on_stderr():
        result = replay(replace(options, stepping=StepThrough(step, look)))
    view = views.replay(result, result.saved(app.prices))
    view["about_to_send"] = None
    for stop in stops[:1]:
        request = next_request(stop.call, stop.step.index, recorded_outline(options.home, options.session))
        view["about_to_send"] = call_views.next_request(options.session.id, request)
    print_json(view)
    return replay_exit_code(result)


def _go_on_as_fork(app: App, options: ForkOptions) -> ExitCode:
    where = f"{options.session.ref}:{options.step}"
    before = f", up to step {options.step} from the recording" if options.step > 1 else ""
    err().line(Span(f"→ rewind fork {where}, edited by hand: the agent starts again{before}", "bold"))
    result = fork(options)
    print_forked(err(), result, options.session.ref)
    app.retain()
    return fork_exit_code(result)


# ── fork ─────────────────────────────────────────────────────────────────────────────────────────────────────


def run_fork(
    app: App,
    session: str,
    step: int,
    flags: RerunFlags,
    *,
    edits: tuple[str, ...],
    by_hand: bool,
    force: bool,
    samples: int | None,
    max_cost: float | None,
    name: str | None,
    dry_run: bool,
    as_json: bool,
) -> ExitCode:
    """Fork the session at the step, or say what that would come to."""
    prices = app.prices
    options = ForkOptions(
        step=step,
        edits=read_edits(edits),
        force=force,
        name=name,
        pricing=prices,
        budget=None if max_cost is None else Budget(max_cost, prices),
        announce=warn,
        **run_again(app, session, flags, quiet=as_json),
    )
    if not dry_run:
        # Before an editor is opened, and before the plan: what may not be run is said at once.
        command_to_run(options.session, options.command, f"fork {options.session.ref}:{step}")
    if edits and not as_json:
        options = _confirmed(options)
    if by_hand:
        options = edited_by_hand(options, partial(edit_json, name=f"step-{step}.json"))
    if dry_run:
        forecast = forecast_fork(options, samples)
        if as_json:
            print_json(views.forecast(forecast))
        else:
            print_forecast(out(), forecast)
        return ExitCode.OK

    def show(result: ForkResult) -> None:
        if not as_json:
            print_forked(err(), result, options.session.ref)

    with stdout_on_stderr() if as_json else nullcontext():
        forked = fork_samples(options, samples, on_result=show)
    if as_json:
        print_json(views.forks(forked))
    elif samples:
        print_samples(err(), forked)
    app.retain()
    return max(map(fork_exit_code, forked.results), key=_WORST_LAST.index)


def _confirmed(options: ForkOptions) -> ForkOptions:
    """At a terminal, a person decides about edits that look like a mistake; elsewhere the plan refuses them."""
    if options.force or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return options
    doubts = doubtful_edits(options)
    if not doubts:
        return options
    for doubt in doubts:
        meant = f" Did you mean {doubt.suggestion}?" if doubt.suggestion else ""
        err().line(Span(f"{doubt.edit.target}: {doubt.reason}{meant}", "yellow"))
    if not click.confirm("Send it as it is?", err=True):
        raise UsageError("The fork is called off. Nothing was run.")
    return replace(options, force=True)


def fork_exit_code(result: ForkResult) -> ExitCode:
    if result.exit_code == ExitCode.INTERRUPTED:
        return ExitCode.INTERRUPTED
    if result.unasked is not None or result.misses:
        return ExitCode.MISS
    if result.broken is not None:
        return ExitCode.ENVIRONMENT
    if result.exit_code != 0 or result.stopped is not None:
        return ExitCode.AGENT_FAILED
    return ExitCode.OK


# ── bisect --prove ──────────────────────────────────────────────────────────────────────────────────────────────────


def run_proof(
    app: App,
    found: PairBisection,
    flags: ProveFlags,
    command: tuple[str, ...] | None,
    *,
    bad_if: tuple[str, ...],
    quiet: bool,
) -> Proof:
    """Put things back in the bad run, live, and see how it comes out; each probe is shown unless ``quiet``."""
    if flags.exact and flags.allow_drift:
        raise UsageError("--exact and --allow-drift contradict each other.", hint="rewind bisect --help")
    live = live_options(app, flags, quiet=quiet)
    options = ProveOptions(
        samples=flags.samples,
        most_calls=flags.max_calls,
        max_cost=flags.max_cost,
        bad_if=tuple(map(outcome_test, bad_if)),
        tools=flags.tools,
        allow_drift=not flags.exact,
        command=command,
        prices=app.prices,
        announce=warn,
        approve=partial(_approve, found=found, sure=flags.yes or flags.max_cost is not None),
        on_probe=(lambda _progress: None) if quiet else partial(print_probe, err()),
        **(live | {"match": "exact"} if flags.exact else live),
    )
    return prove(found.finding, found.bad.session, options)


def _approve(forecast: ProofForecast, *, found: PairBisection, sure: bool) -> None:
    """Say what it may take, and ask on a terminal. Raises UsageError where nobody says yes."""
    print_proof_forecast(err(), forecast)
    if sure:
        return
    again = f"rewind bisect {found.good.ref} {found.bad.ref} --prove"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "--prove makes live calls, and there is no terminal to ask on: --yes or --max-cost is needed. "
            "Nothing was asked.",
            hint=f"{again} --yes",
        )
    if not click.confirm("Go on?", err=True):
        raise UsageError("Called off: nothing was asked.", hint=f"{again} --max-calls {forecast.least_calls}")
