"""``rewind config``: each setting, its value and where it comes from."""

import os

import click

from rewind.cli.app import App, common_options, json_option, print_json
from rewind.cli.screens.store import print_settings
from rewind.cli.screens.terminal import Span, err, out
from rewind.errors import ExitCode
from rewind.reading.prices import fetch_prices as fetch
from rewind.settings import mistyped_variables, user_file
from rewind.views import store as views


@click.command("config")
@click.option(
    "--fetch-prices",
    is_flag=False,
    flag_value="",
    metavar="[URL]",
    help="First fetch today's prices from genai-prices into the store (needs the extra 'prices')",
)
@json_option
@common_options
@click.pass_obj
def command(app: App, fetch_prices: str | None, as_json: bool) -> int:
    """Show each setting, its value and where it comes from.

    The nearer source wins: a flag, a REWIND_* variable, [tool.rewind] in the nearest pyproject.toml, the user
    file, the default. Lists (hosts, ignore) add up, and prices do so model by model.

    \b
    Examples:
      rewind config
      REWIND_DURABLE=1 rewind config --json
      rewind config --fetch-prices
    """
    settings = app.settings()
    if fetch_prices is not None:
        err().line(fetch(settings.home, url=fetch_prices or None))
    file = user_file(os.environ)
    if as_json:
        print_json(views.config(settings, file))
    else:
        print_settings(out(), settings)
        prices = app.prices
        err().line(Span(f"user file: {file}", "dim"))
        err().line(Span(f"prices: {prices.source}, {prices.date}", "dim"))
    for wrong, right in mistyped_variables(os.environ).items():
        err().line(Span(f"{wrong} is set, but is not a setting. Did you mean {right}?", "yellow"))
    return ExitCode.OK
