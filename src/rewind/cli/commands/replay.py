"""``rewind replay``: run a recorded command again, answered by its recording, and compare."""

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import click

from rewind.cli.app import App, common_options, json_option, print_json, session_argument, warn
from rewind.cli.options import upstream_options
from rewind.cli.screens.terminal import Span, Terminal, err
from rewind.errors import ExitCode, UsageError
from rewind.model.session import split_step
from rewind.model.step import StepKind
from rewind.pricing.spending import Pricing, Spending, cost_of, spending
from rewind.runs.upstream import upstream_of
from rewind.store.library import Library
from rewind.text import dollars, plural
from rewind.views import fork as views

if TYPE_CHECKING:
    from rewind.runs.replay import ReplayOptions, ReplayResult
    from rewind.runs.stepped_replay import Stop, Stopped

NOTHING = Spending()


def read_latency(context: click.Context, parameter: click.Parameter, value: str) -> float:
    """``none`` is 0, ``recorded`` is 1, else a factor."""
    named = {"none": 0.0, "recorded": 1.0}.get(value)
    if named is not None:
        return named
    try:
        factor = float(value)
    except ValueError:
        factor = math.nan
    if not (math.isfinite(factor) and factor >= 0):
        sentence = f"{value!r} is neither 'recorded' nor 'none' nor a factor such as 0.5."
        raise click.BadParameter(sentence, context, parameter)
    return factor


@click.command("replay")
@session_argument()
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND…]")
@click.option(
    "--latency",
    callback=read_latency,
    default="none",
    metavar="recorded|none|FACTOR",
    help="How long answers take: as recorded, at once (default), or a multiple of what was recorded",
)
@click.option(
    "--allow-drift", is_flag=True, help="Accept a changed request at the same place of a conversation"
)
@click.option(
    "--on-miss",
    type=click.Choice(["refuse", "live"]),
    default="refuse",
    help="A request that was not recorded: refuse it (default), or ask the real provider",
)
@click.option(
    "--live-host",
    "live_hosts",
    multiple=True,
    metavar="PATTERN",
    help="Always ask this host itself (repeatable)",
)
@click.option(
    "--redact",
    multiple=True,
    metavar="PATTERN",
    help="Take what this matches out of requests before they are matched, as export --redact did (repeatable)",
)
@click.option(
    "--step",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop before step N, show what is about to be sent, and ask how to go on",
)
@click.option(
    "--until", type=click.IntRange(min=1), metavar="N", help="Replay up to step N, and end the agent there"
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
    latency: float,
    allow_drift: bool,
    on_miss: Literal["refuse", "live"],
    live_hosts: tuple[str, ...],
    redact: tuple[str, ...],
    step: int | None,
    until: int | None,
    connect_to: tuple[str, ...],
    upstream_ca: str | None,
    upstream_proxy: str | None,
    insecure_upstream: bool,
    port: int,
    as_json: bool,
) -> int:
    """Run the command of SESSION again, answered by its recording, and compare what it prints.

    Of a SESSION that came in a file the recorded command is shown and not run: give one behind --.

    No network is used unless --on-miss live or --live-host asks for it. The agent's stdout stays on stdout;
    with --json the result is on stdout and the agent's stdout goes to stderr.

    --step N stops before step N and before each that follows: Enter goes on, c runs on to the end, e opens the
    request in your editor and goes on as a fork, q ends the agent. With --json nobody is asked: it ends there.

    \b
    Exit code: 0 the same output and exit code (of a run that was stopped: the same output so far) ·
               1 another output or exit code ·
               4 a request that the recording cannot answer, or the step to stop at was never asked.

    \b
    Examples:
      rewind replay last
      rewind replay 7f3a --latency recorded
      rewind replay refund -- python agent_v2.py
      rewind replay incident.rw -- python agent.py
      rewind replay 7f3a --step 4
      rewind replay 7f3a --until 4
    """
    ref, named = split_step(session)
    if named is not None:
        raise UsageError(
            f"A replay runs a whole session, not a step ({session!r}).",
            hint=f"rewind replay {ref}, or with --step {named} to stop before that step",
        )
    if step is not None and until is not None:
        raise UsageError("--step asks at each step, --until asks nobody: one of them.")
    settings = app.settings(upstream_proxy=upstream_proxy, upstream_ca=upstream_ca)
    found = Library(settings.home).find(ref)
    # Lazily: neither help nor a typo should wait for the engine.
    from rewind.runs.replay import ReplayOptions, replay
    from rewind.runs.stepped_replay import Until

    options = ReplayOptions(
        session=found,
        home=settings.home,
        command=command or None,
        latency=latency,
        allow_drift=allow_drift,
        on_miss=on_miss,
        live_hosts=live_hosts,
        redact=redact,
        port=port,
        upstream=upstream_of(
            settings, connect_to=connect_to, insecure=insecure_upstream, announce=None if as_json else warn
        ),
        ignore=settings.ignore,
    )
    if as_json:
        return _replay_for_json(app, options, step, until)
    if step is not None:
        from rewind.cli.step_prompt import run_fork, step_through

        result, edited = step_through(options, step, app.prices)
        if edited is not None:
            return run_fork(edited)
    else:
        result = replay(options if until is None else replace(options, stepping=Until(until)))
    print_replayed(err(), result, _saved(result, app.prices))
    return exit_code(result)


def _replay_for_json(app: App, options: "ReplayOptions", step: int | None, until: int | None) -> int:
    from rewind.runs.replay import replay
    from rewind.runs.stepped_replay import StepCommand, StepThrough, Until

    stops: list[Stop] = []

    def look(stop: "Stop") -> StepCommand:
        stops.append(stop)
        return StepCommand.QUIT

    if step is not None:
        options = replace(options, stepping=StepThrough(step, look))
    elif until is not None:
        options = replace(options, stepping=Until(until))
    with stdout_on_stderr():
        result = replay(options)
    saved = _saved(result, app.prices)
    view = views.replay(result) | {"saved_usd": saved.usd, "unpriced": saved.unpriced}
    view |= {"stopped": _stopped_view(result), "unasked": result.unasked}
    if step is not None:
        from rewind.cli.step_prompt import about_to_send

        view["about_to_send"] = about_to_send(options, stops[0]) if stops else None
    print_json(view)
    return exit_code(result)


def _stopped_view(result: "ReplayResult") -> dict[str, Any] | None:
    where = result.stopped
    return None if where is None else {"step": where.step, "when": "before" if where.before else "after"}


def exit_code(result: "ReplayResult") -> ExitCode:
    """A miss outweighs a difference: with it the output could not be the same."""
    if result.stopped is not None and result.stopped.interrupted:
        return ExitCode.INTERRUPTED
    if result.misses or result.unasked is not None:
        return ExitCode.MISS
    if result.output == "different" or _other_exit(result):
        return ExitCode.DIFFERENT
    return ExitCode.OK


def _saved(result: "ReplayResult", prices: Pricing) -> Spending:
    """What the answers cost when they were recorded."""
    calls = (step for step in result.served if step.request.kind is StepKind.LLM_CALL)
    return spending(
        (step, step.response.reading, cost_of(prices, step)) for step in calls if step.response is not None
    )


def print_replayed(terminal: Terminal, result: "ReplayResult", saved: Spending = NOTHING) -> None:
    """The last lines of ``rewind replay``."""
    if result.output_difference:
        print_difference(terminal, result.output_difference)
    for miss in result.misses:
        terminal.line(Span("miss: ", "bold red"), (miss.report or miss.reason).rstrip())
    for remark in result.remarks:
        terminal.line(Span(remark, "yellow"))
    if result.unasked is not None:
        terminal.line(
            Span(f"Step {result.unasked} was never asked: the run ended without coming to it.", "yellow")
        )
    whole = result.played == result.total or result.stopped is not None
    parts = [Span(f"{result.played}/{result.total} steps replayed", "green" if whole else "yellow")]
    if result.drifted:
        parts.append(Span(f"{result.drifted} drifted", "yellow"))
    if result.live:
        parts.append(Span(f"{result.live} live", "yellow"))
    if result.misses:
        parts.append(Span(plural(len(result.misses), "miss", "misses"), "red"))
    if result.stopped is not None:
        parts.append(Span(_stopped(result.stopped)))
    parts.append(Span(plural(result.network_calls, "network call"), "yellow" if result.network_calls else ""))
    if saved.usd:
        parts.append(Span(f"saved {dollars(saved.usd, saved.unpriced)}"))
    colour = {"identical": "green", "beginning": "green", "different": "red"}.get(result.output, "")
    same = "identical so far" if result.output == "beginning" else result.output
    parts.append(Span(f"output {same}", colour))
    if _other_exit(result):
        parts.append(Span(f"exit code {result.exit_code}, recorded {result.recorded_exit_code}", "red"))
    line: list[str | Span] = []
    for part in parts:
        line += [" · ", part] if line else [part]
    terminal.line(*line)
    if result.kept_as is not None:
        terminal.line(Span(f"→ this run, live answers included: rewind inspect {result.kept_as}", "dim"))


def print_difference(terminal: Terminal, difference: str) -> None:
    """A unified diff, the lines coloured by what they are."""
    for line in difference.splitlines():
        style = {"-": "red", "+": "green", "@": "cyan"}.get(line[:1], "")
        terminal.line(Span(line, style))


def _stopped(where: "Stopped") -> str:
    if where.interrupted:
        return f"interrupted before step {where.step}"
    return (
        f"stopped before step {where.step}" if where.before else f"stopped after step {where.step} as asked"
    )


def _other_exit(result: "ReplayResult") -> bool:
    """Where we ended the agent, its exit code is ours."""
    if result.stopped is not None:
        return False
    return result.recorded_exit_code is not None and result.exit_code != result.recorded_exit_code


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
