"""``rewind config``: each setting, its value and where it comes from."""

import os
from pathlib import Path
from typing import Any

import click

from rewind.cli.app import App, common_options, json_option, print_json
from rewind.cli.table import Column, print_table
from rewind.cli.terminal import Span, err, out
from rewind.cli.wording import NONE
from rewind.errors import ExitCode
from rewind.settings import mistyped_variables, user_file, without_password

COLUMNS = (Column("setting"), Column("value", flexible=True), Column("origin", flexible=True))


@click.command("config")
@json_option
@common_options
@click.pass_obj
def command(app: App, as_json: bool) -> int:
    """Show each setting, its value and where it comes from.

    The nearer source wins: a flag, a REWIND_* variable, [tool.rewind] in the nearest pyproject.toml, the user
    file, the default. Lists (hosts, ignore) add up.

    \b
    Examples:
      rewind config
      REWIND_DURABLE=1 rewind config --json
    """
    settings = app.settings()
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
    return str(_plain(value))
