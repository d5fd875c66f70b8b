"""``rewind fork``: run a recorded command again, and go live at one step, with that step changed."""

from typing import Any

import click

from rewind.cli.app import App, common_options, json_option, session_argument
from rewind.cli.options import read_money, rerun_options
from rewind.errors import UsageError
from rewind.model.session import split_step, split_tool


@click.command("fork")
@session_argument(metavar="SESSION:STEP")
@click.option(
    "--set", "edits", multiple=True, metavar="EDIT", help="Change this at the step: system=…, model=… (repeatable)"
)
@click.option("--edit", "by_hand", is_flag=True, help="Change the step's request in your editor ($VISUAL, $EDITOR)")
@click.option("--force", is_flag=True, help="Send edits that look like a mistake, such as an unknown parameter")
@click.option("--samples", type=click.IntRange(1, 1000), metavar="K", help="Run it K times, and compare the answers")
@click.option(
    "--max-cost", callback=read_money, metavar="USD", help="Stop making calls once this much is spent, over all samples"
)
@click.option("--dry-run", is_flag=True, help="Say what is reused, what goes live and what that may cost; run nothing")
@click.option("--name", metavar="NAME", help="A name for the new session")
@rerun_options(unrecorded="Before the step, a request that was not recorded")
@json_option
@common_options
@click.pass_obj
def command(app: App, /, session: str, **given: Any) -> int:
    """Run the command of SESSION again; from STEP on it goes live, with that step changed.

    The steps before are answered by the recording and cost nothing. The new run becomes a session of its own.
    docs/editing.md lists every form of EDIT; =@OTHER:STEP takes the value from another session.

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
    from rewind.cli.fork_runs import run_fork

    return run_fork(app, ref, step, **given)


def _place(name: str) -> tuple[str, int]:
    """Session and step. Raises UsageError where the name has no step."""
    ref, step = split_step(name)
    if step is not None:
        return ref, step
    whole, tool = split_tool(name)
    if tool is not None:
        raise UsageError(
            f"{name!r} is a tool call, and a fork starts at a step.",
            hint=f"rewind fork {whole}:{tool[0]} …, and rewind inspect {whole} shows the steps; "
            "--set tool.NAME.result=… changes what the tool gave back, at the step that brings it",
        )
    ref, colon, rest = name.rpartition(":")
    if ref and colon:
        raise UsageError(
            f"{rest!r} is not a valid step: steps count from 1.",
            hint=f"rewind fork {ref}:1 …, and rewind inspect {ref} shows the steps",
        )
    raise UsageError(
        f"A fork needs the step to go live at: {name!r} names a whole session.",
        hint=f"rewind fork {name}:1 …, and rewind inspect {name} shows the steps",
    )
