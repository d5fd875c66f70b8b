"""``rewind config``: each setting, its value and where it comes from."""

import os
from pathlib import Path
from typing import Any

import click

from rewind.cli.app import App, common_options, json_option, print_json
from rewind.cli.screens.table import Column, print_table
from rewind.cli.screens.terminal import Span, err, out
from rewind.errors import ExitCode
from rewind.settings import mistyped_variables, user_file, without_password
from rewind.store.files import prepare_home
from rewind.text import NONE

COLUMNS = (Column("setting"), Column("value", flexible=True), Column("origin", flexible=True))


@click.command("config")
@click.option(
    "--fetch-prices",
    is_flag=False,
    flag_value="",
    metavar="[URL]",
    help="Fetch today's prices of genai-prices into the store (needs the extra 'prices'), then show the settings",
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
        # Lazily: an extra, and the only thing here that ever goes out to the network.
        from rewind.runs.price_refresh import refresh

        prepare_home(settings.home)
        err().line(refresh(settings.home / "prices.jsonl", url=fetch_prices or None))
    rows = {name: (value, settings.origin(name)) for name, value in settings.values().items()}
    if as_json:
        view = [
            {
                "name": name,
                "value": _plain(value),
                "origins": [{"kind": o.kind, "where": o.where} for o in origins],
            }
            for name, (value, origins) in rows.items()
        ]
        print_json({"schema": "rewind/config@1", "user_file": str(user_file(os.environ)), "settings": view})
    else:
        print_table(
            out(),
            COLUMNS,
            [
                (name, _shown(value), Span(", ".join(map(str, origins)), "dim"))
                for name, (value, origins) in rows.items()
            ],
        )
        err().line(Span(f"user file: {user_file(os.environ)}", "dim"))
        prices = app.prices
        err().line(Span(f"prices: {prices.source}, {prices.date}", "dim"))
    for wrong, right in mistyped_variables(os.environ).items():
        err().line(Span(f"{wrong} is set, but is no setting; {right} is.", "yellow"))
    return ExitCode.OK


def _plain(value: Any) -> Any:
    match value:
        case Path():
            return str(value)
        case tuple():
            return list(value)
        case str():
            return without_password(value)
    return value


def _shown(value: Any) -> str:
    match value:
        case None | ():
            return NONE
        case bool():
            return "true" if value else "false"
        case tuple():
            return ", ".join(value)
        case dict():
            return "; ".join(f"{model}: {_price(entry)}" for model, entry in value.items()) or NONE
    return str(_plain(value))


def _price(entry: dict[str, float]) -> str:
    return ", ".join(f"{kind} {number}" for kind, number in entry.items())
