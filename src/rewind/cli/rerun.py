"""How ``replay``, ``fork`` and ``bisect --prove`` run an agent again, once their options are read.

Imported by these commands when they run: neither help nor a typo should wait for the engine.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from rewind.cli.app import App, print_json, warn
from rewind.cli.editor import edit_json
from rewind.cli.options import ProveFlags, RerunFlags, UpstreamFlags
from rewind.cli.screens.proof import print_trial
from rewind.cli.screens.rerun import print_forecast, print_forked, print_replayed, print_samples
from rewind.cli.screens.terminal import Span, err, out
from rewind.cli.step_prompt import step_through
from rewind.errors import ExitCode
from rewind.reading.bisect import PairBisection
from rewind.reading.next_request import next_request, recorded_outline
from rewind.reading.session import find_session
from rewind.runs.fork.budget import Budget
from rewind.runs.fork.plan import ForkOptions
from rewind.runs.fork.run import ForkResult, fork
from rewind.runs.fork.samples import edited_by_hand, forecast_fork, fork_samples, read_edits
from rewind.runs.probe import Proof, ProveOptions, prove
from rewind.runs.replay import ReplayOptions, ReplayResult, replay
from rewind.runs.rerun import command_to_run
from rewind.runs.stepped_replay import StepCommand, StepThrough, Stop, Until
from rewind.runs.upstream import upstream_of
from rewind.views import runs as views

_WORST_LAST = (ExitCode.OK, ExitCode.AGENT_FAILED, ExitCode.ENVIRONMENT, ExitCode.MISS, ExitCode.INTERRUPTED)
"""Of several forks, the worst counts."""


# ── replay ───────────────────────────────────────────────────────────────────────────────────────────────────


def run_replay(
    app: App,
    session: str,
    flags: RerunFlags,
    *,
    latency: float,
    live_hosts: tuple[str, ...],
    redact: tuple[str, ...],
    step: int | None,
    until: int | None,
    as_json: bool,
) -> ExitCode:
    """Replay the session; stop before ``step`` and ask a person, or end the agent after ``until``."""
    again = _run_again(app, session, flags, quiet=as_json)
    options = ReplayOptions(
        latency=latency, live_hosts=live_hosts, redact=redact, stepping=None if until is None else Until(until), **again
    )
    if as_json:
        return _replay_for_json(app, options, step)
    if step is None:
        result = replay(options)
    else:
        fork_there = ForkOptions(step=step, pricing=app.prices, announce=warn, **again)
        result, edited = step_through(options, fork_there)
        if edited is not None:
            return _go_on_as_fork(edited)
    print_replayed(err(), result, result.saved(app.prices))
    return replay_exit_code(result)


def _replay_for_json(app: App, options: ReplayOptions, step: int | None) -> ExitCode:
    """Nobody is asked: at ``step`` the agent is ended, and what it was about to send is told."""
    stops: list[Stop] = []

    def look(stop: Stop) -> StepCommand:
        stops.append(stop)
        return StepCommand.QUIT

    if step is not None:
        options = replace(options, stepping=StepThrough(step, look))
    with stdout_on_stderr():
        result = replay(options)
    view = views.replay(result, result.saved(app.prices))
    if step is not None:
        view["about_to_send"] = None
        for stop in stops[:1]:
            outline = recorded_outline(options.home, options.session)
            request = next_request(stop.call, stop.step.index, outline)
            view["about_to_send"] = views.next_request(options.session.id, request)
    print_json(view)
    return replay_exit_code(result)


def _go_on_as_fork(options: ForkOptions) -> ExitCode:
    where = f"{options.session.ref}:{options.step}"
    before = f", up to step {options.step} from the recording" if options.step > 1 else ""
    err().line(Span(f"→ rewind fork {where}, edited by hand: the agent starts again{before}", "bold"))
    result = fork(options)
    print_forked(err(), result, options.session.ref)
    return fork_exit_code(result)


def replay_exit_code(result: ReplayResult) -> ExitCode:
    """A miss outweighs a difference: with it the output could not be the same."""
    if result.stopped is not None and result.stopped.interrupted:
        return ExitCode.INTERRUPTED
    if result.misses or result.unasked is not None:
        return ExitCode.MISS
    if result.output == "different" or result.other_exit_code:
        return ExitCode.DIFFERENT
    return ExitCode.OK


# ── fork ─────────────────────────────────────────────────────────────────────────────────────────────────────


def run_fork(
    app: App,
    session: str,
    step: int,
    flags: RerunFlags,
    *,
    edits: tuple[str, ...],
    by_hand: bool,
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
        name=name,
        pricing=prices,
        budget=None if max_cost is None else Budget(max_cost, prices),
        announce=warn,
        **_run_again(app, session, flags, quiet=as_json),
    )
    if not dry_run:
        # Before an editor is opened, and before the plan: what may not be run is said at once.
        command_to_run(options.session, options.command, f"fork {options.session.ref}:{step}")
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
    return max(map(fork_exit_code, forked.results), key=_WORST_LAST.index)


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
    app: App, found: PairBisection, flags: ProveFlags, command: tuple[str, ...] | None, *, quiet: bool
) -> Proof:
    """Put things back in the bad run, live, and see how it comes out; each probe is shown unless ``quiet``."""
    if not quiet:
        err().line()
    options = ProveOptions(
        samples=flags.samples,
        most_calls=flags.max_calls,
        max_cost=flags.max_cost,
        allow_drift=flags.allow_drift,
        command=command,
        prices=app.prices,
        announce=warn,
        on_trial=(lambda _trial: None) if quiet else partial(print_trial, err()),
        **_live(app, flags, quiet=quiet),
    )
    return prove(found.finding, found.bad.session, options)


# ── all of them ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _run_again(app: App, session: str, flags: RerunFlags, *, quiet: bool) -> dict[str, Any]:
    """What the options of a replay and of a fork have in common."""
    live = _live(app, flags, quiet=quiet)
    return live | {
        "session": find_session(live["home"], session),
        "command": flags.command or None,
        "on_miss": flags.on_miss,
        "allow_drift": flags.allow_drift,
        "port": flags.port,
    }


def _live(app: App, flags: UpstreamFlags, *, quiet: bool) -> dict[str, Any]:
    """The store, and how live calls go out."""
    settings = app.settings(upstream_proxy=flags.upstream_proxy, upstream_ca=flags.upstream_ca)
    upstream = upstream_of(
        settings, connect_to=flags.connect_to, insecure=flags.insecure_upstream, announce=None if quiet else warn
    )
    return {"home": settings.home, "upstream": upstream, "ignore": settings.ignore}


@contextmanager
def stdout_on_stderr() -> Iterator[None]:
    """While the agent runs, its stdout is our stderr, so that our stdout holds one JSON value."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
