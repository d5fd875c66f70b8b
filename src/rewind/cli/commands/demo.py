"""``rewind demo``: an agent recorded, replayed and compared, without any key or network."""

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
    demo = run_demo(app.home, talk.line)
    if demo.code is ExitCode.AGENT_FAILED:
        return demo.code
    talk.line()
    talk.line("Where did the bad run leave the good one, and why? That is: rewind bisect refund-good refund-bad")
    talk.line()
    with bisect_pair(app.home, demo.good, demo.bad) as found:
        # Without its next commands: they would go live, and the provider is gone.
        print_pair(out(), found)
    talk.line()
    talk.line("Try next:")
    for command in (
        f"rewind inspect {demo.bad}:3 --context",
        f"rewind diff {demo.good} {demo.bad}",
        f"rewind replay {demo.bad} --latency recorded",
        "rewind list",
    ):
        talk.line(f"  {command}")
    return demo.code
