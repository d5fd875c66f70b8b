"""``rewind demo``: a recorded and replayed agent, without any key or network."""

import click

from rewind.cli.app import App, common_options
from rewind.cli.terminal import err


@click.command("demo")
@common_options
@click.pass_obj
def command(app: App) -> int:
    """Record a small agent against a provider on this machine, and replay it.

    It needs no key and no network. The sessions stay in your store, so that you can look at them.

    \b
    Examples:
      rewind demo
      rewind demo --home /tmp/try-rewind
    """
    # Lazily: help should not wait for the engine.
    from rewind.demo.run import run_demo

    return run_demo(app.home, err().line)
