"""``rewind replay``: run a recorded command again, answered by its recording, and compare."""

import math
from typing import Any

import click

from rewind.cli.app import App, common_options, json_option, session_argument
from rewind.cli.options import rerun_options
from rewind.errors import UsageError
from rewind.model.session import split_step
from rewind.settings import is_pattern


def _read_latency(context: click.Context, parameter: click.Parameter, value: str) -> float:
    """``none`` is 0, ``recorded`` is 1, else a factor."""
    named = {"none": 0.0, "recorded": 1.0}.get(value)
    if named is not None:
        return named
    try:
        factor = float(value)
    except ValueError:
        factor = math.nan
    if not (math.isfinite(factor) and factor >= 0):
        sentence = f"{value!r} is not a valid latency: 'recorded', 'none' or a factor such as 0.5."
        raise click.BadParameter(sentence, context, parameter)
    return factor


def _read_patterns(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in value:
        if not is_pattern(pattern):
            sentence = f"{pattern!r} is not a valid regular expression, or it matches the empty text."
            raise click.BadParameter(sentence, context, parameter)
    return value


@click.command("replay")
@session_argument()
@click.option(
    "--latency",
    callback=_read_latency,
    default="none",
    metavar="recorded|none|FACTOR",
    help="How long answers take: as recorded, at once (default), or a multiple of what was recorded",
)
@click.option(
    "--live-host",
    "live_hosts",
    multiple=True,
    metavar="PATTERN",
    help="Always ask the real host, for hosts that match (repeatable)",
)
@click.option(
    "--redact",
    multiple=True,
    metavar="PATTERN",
    help="Remove what this matches from requests before matching them, as export --redact did (repeatable)",
)
@click.option(
    "--ignore-output",
    callback=_read_patterns,
    multiple=True,
    metavar="REGEX",
    help="What this matches in the agent's output does not count (repeatable)",
)
@click.option(
    "--step",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop before step N, show what is about to be sent, and ask how to go on",
)
@click.option("--until", type=click.IntRange(min=1), metavar="N", help="Replay up to step N, and end the agent there")
@rerun_options(unrecorded="A request that was not recorded")
@json_option
@common_options
@click.pass_obj
def command(app: App, /, session: str, step: int | None, until: int | None, **given: Any) -> int:
    """Run the command of SESSION again, answered by its recording, and compare what it prints.

    If SESSION came from a file, its recorded command is shown but not run: give a command after --.

    No network is used unless --on-miss live or --live-host asks for it. The agent's stdout stays on stdout;
    with --json the result is on stdout and the agent's stdout goes to stderr.

    --step N stops before step N and before each that follows: Enter goes on, c runs on to the end, e opens the
    request in your editor and goes on as a fork, q ends the agent. With --json it ends there without asking.

    Exit code: 0 the same output and exit code (of a run that was stopped: the same output so far) ·
    1 another output or exit code ·
    4 the recording could not answer a request, no recorded step was asked for, or the step to stop at was not.

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
        raise UsageError("--step and --until exclude each other: give only one of them.")
    if step is not None:
        from rewind.cli.fork_runs import run_stepped_replay

        return run_stepped_replay(app, ref, step=step, **given)
    from rewind.cli.rerun import run_replay

    return run_replay(app, ref, until=until, **given)
