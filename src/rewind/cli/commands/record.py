"""``rewind record``: run a command behind the gateway and keep what it asked."""

import click

from rewind.cli.app import App, common_options, say, warn
from rewind.cli.options import upstream_options
from rewind.errors import UsageError
from rewind.runs.upstream import upstream_of


@click.command(
    "record",
    # Options after the command belong to the command.
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@click.option("--name", metavar="NAME", help="A name for the session (where names repeat, the newest is meant)")
@click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="A tag of your own (repeatable)")
@click.option("--host", "hosts", multiple=True, metavar="PATTERN", help="Also record this host (repeatable)")
@click.option("--all-hosts/--no-all-hosts", default=None, help="Record every host, not only known LLM APIs")
@upstream_options
@click.option("--durable/--no-durable", default=None, help="Sync each step to disk, to survive a power cut")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port of the gateway (0: any)")
@click.option("-q", "--quiet", is_flag=True, help="Print only what went wrong")
@common_options
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[--] COMMAND…")
@click.pass_obj
def command(
    app: App,
    command: tuple[str, ...],
    name: str | None,
    tags: tuple[str, ...],
    hosts: tuple[str, ...],
    all_hosts: bool | None,
    connect_to: tuple[str, ...],
    upstream_ca: str | None,
    upstream_proxy: str | None,
    insecure_upstream: bool,
    durable: bool | None,
    port: int,
    quiet: bool,
) -> int:
    """Run COMMAND and record what it asks of the world.

    The command keeps its stdin, stdout, stderr, signals and exit code. Calls to LLM APIs are recorded,
    with keys and other secrets removed; other hosts pass untouched unless --host or --all-hosts names them.

    \b
    Examples:
      rewind record python agent.py
      rewind record --name refund --tag ticket=4711 -- node agent.mjs --verbose
      rewind record --host '*.corp.example' -- ./run.sh
    """
    if not command:
        raise UsageError("There is no command to record.", hint="rewind record -- python agent.py")
    settings = app.settings(
        hosts=hosts, all_hosts=all_hosts, durable=durable, upstream_proxy=upstream_proxy, upstream_ca=upstream_ca
    )
    # Lazily, here and below: neither help nor a typo should wait for the engine.
    from rewind.runs.record import RecordOptions, record

    result = record(
        RecordOptions(
            command=command,
            home=settings.home,
            name=name,
            tags=_tags(tags),
            hosts=settings.hosts,
            all_hosts=settings.all_hosts,
            port=port,
            durable=settings.durable,
            upstream=upstream_of(
                settings, connect_to=connect_to, insecure=insecure_upstream, announce=None if quiet else warn
            ),
            ignore=settings.ignore,
            prices=None if quiet else lambda: app.prices,
            announce=None if quiet else say,
        )
    )
    # The agent has ended: its start was not delayed by how we will speak about it.
    from rewind.cli.screens.record import show_recorded

    spent = result.spent if result.llm_calls else None
    if result.session_id and result.llm_calls and spent is None and not quiet:
        from rewind.reading.sessions import cost_of_session

        spent = cost_of_session(settings.home, result.session_id, app.prices)
    show_recorded(result, spent, quiet=quiet)
    app.retain(quiet=quiet)
    return result.exit_code


def _tags(pairs: tuple[str, ...]) -> dict[str, str]:
    tags = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise UsageError(f"The tag {pair!r} is not of the form KEY=VALUE.", hint="--tag ticket=4711")
        tags[key] = value
    return tags
