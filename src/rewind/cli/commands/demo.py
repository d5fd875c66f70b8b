"""``rewind demo``: an agent recorded, replayed and compared, without any key or network."""

import os
import shlex
import shutil
import sys
from pathlib import Path

import click

from rewind.cli.app import App, common_options
from rewind.cli.screens.bisect import print_pair
from rewind.cli.screens.terminal import err, out
from rewind.demo.run import run_demo
from rewind.errors import ExitCode
from rewind.reading.bisect import bisect_pair


@click.command("demo")
@common_options
@click.pass_obj
def command(app: App) -> int:
    """Record a small agent against a provider on this machine, replay it, and find out why it went wrong.

    It needs no key and no network. The sessions stay in your store, so that you can look at them.

    \b
    Examples:
      rewind demo
      rewind demo --home /tmp/try-rewind
    """
    talk = err()
    demo = run_demo(app.home, talk.line, app.prices)
    if demo.code is ExitCode.AGENT_FAILED:
        return demo.code
    talk.line()
    program, home = _this_program(), "" if app.home_flag is None else f" --home {shlex.quote(app.home_flag)}"
    talk.line("Where did the bad run leave the good one, and why? That is:")
    talk.line(f"  {program} bisect refund-good refund-bad{home}")
    talk.line()
    with bisect_pair(app.home, demo.good, demo.bad) as found:
        # Without its next commands: they would go live, and the provider is gone.
        print_pair(out(), found)
    talk.line()
    talk.line("Try next:")
    for command in (
        f"inspect {demo.bad}:3 --context",
        f"diff {demo.good} {demo.bad}",
        f"replay {demo.bad} --latency recorded",
        "list",
    ):
        talk.line(f"  {program} {command}{home}")
    if program != "rewind" and (activate := Path(sys.executable).with_name("activate")).is_file():
        talk.line(f"  . {_from_here(activate)}    # from then on it is called rewind in this shell")
    return demo.code


def _this_program() -> str:
    """The words by which this very program is run again from this folder: just its name where a shell finds it."""
    script = Path(sys.executable).with_name("rewind")
    found = shutil.which("rewind")
    if found is not None and Path(found).absolute() in (script.absolute(), Path(sys.argv[0]).absolute()):
        return "rewind"
    if os.access(script, os.X_OK):
        return _from_here(script)
    return f"{shlex.quote(sys.executable)} -m rewind"


def _from_here(path: Path) -> str:
    """The shorter of its two names, and one that a shell takes for a path."""
    return shlex.quote(min(f"./{os.path.relpath(path)}", str(path), key=len))
