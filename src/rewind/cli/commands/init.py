"""``rewind init``: the store is prepared, and the user sees what can be recorded here."""

import os
from pathlib import Path

import click

from rewind.cli.app import App, common_options, json_option, print_json
from rewind.cli.screens.terminal import Span, Terminal, err, out
from rewind.errors import ExitCode, UsageError
from rewind.gateway.clients import NEVER_RECORDED, ClientCheck, check_clients
from rewind.providers.hosts import LLM_HOSTS, HostRules
from rewind.settings import PROJECT_FOLDER, Settings
from rewind.store.files import prepare_home
from rewind.views import store as views


@click.command("init")
@click.option("--project", is_flag=True, help=f"Keep the sessions of this folder in ./{PROJECT_FOLDER}")
@click.option(
    "--ca", "with_ca", is_flag=True, help="Make a lasting certificate authority (a run has its own)"
)
@json_option
@common_options
@click.pass_obj
def command(app: App, project: bool, with_ca: bool, as_json: bool) -> int:
    """Prepare the store, and show which clients can be recorded on this machine.

    Nothing needs to be installed or trusted: each run has its own certificate authority, in memory. --ca is for
    those who point a browser or another machine at a gateway. Calling it again does no harm.

    \b
    Examples:
      rewind init
      rewind init --project
      rewind init --ca
    """
    if project:
        if app.home_flag is not None:
            raise UsageError("--project and --home both say where the store is: one of them.")
        _make_project_store(Path.cwd() / PROJECT_FOLDER)
    settings = app.settings()
    prepare_home(settings.home)
    certificate = _make_authority(settings) if with_ca else None
    clients = check_clients(os.environ)
    if as_json:
        print_json(views.setup(settings.home, clients, certificate))
    else:
        _show_clients(out(), clients)
    _explain(err(), settings, certificate, project=project)
    return ExitCode.OK


def _make_project_store(folder: Path) -> None:
    prepare_home(folder)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        # Sessions hold prompts and answers; they are shared on purpose or not at all.
        ignore.write_text("*\n")


def _make_authority(settings: Settings) -> Path:
    # Lazily: certificates need a library that takes long to load, and only --ca makes one.
    from rewind.gateway.authority import create_persistent, persistent_certificate

    create_persistent(settings.home, HostRules((*LLM_HOSTS, *settings.hosts), settings.all_hosts))
    return persistent_certificate(settings.home)


def _show_clients(terminal: Terminal, clients: tuple[ClientCheck, ...]) -> None:
    """Sentences rather than a table: none of them should be cut."""
    for client in clients:
        if client.found:
            sign = Span("✓ ", "green") if client.works else Span("✗ ", "red")
            terminal.line(
                sign, Span(f"{client.name:<7}", "bold"), f"{client.version:<9} {client.works or 'nothing'}"
            )
            if client.note:
                terminal.line(Span(f"{'':<19}{client.note}", "dim"))


def _explain(terminal: Terminal, settings: Settings, certificate: Path | None, *, project: bool) -> None:
    for sentence in NEVER_RECORDED:
        terminal.line(Span(sentence, "dim"))
    origin = ", ".join(map(str, settings.origin("home")))
    terminal.line("The store is ", Span(str(settings.home), "bold"), f" ({origin}).")
    if project and settings.home != Path.cwd() / PROJECT_FOLDER:
        terminal.line(Span(f"./{PROJECT_FOLDER} is ready, but {origin} outweighs it here.", "yellow"))
    if certificate is not None:
        terminal.line(
            "The lasting CA's certificate is ", Span(str(certificate), "bold"), "; its key stays beside it."
        )
        terminal.line(
            "  It vouches for recorded hosts only. Whoever trusts it trusts this machine to speak for them:"
        )
        terminal.line(
            f"    one program:  SSL_CERT_FILE={certificate} (curl: --cacert, Node: NODE_EXTRA_CA_CERTS)"
        )
        terminal.line("    a browser:    import it under Settings, Certificates, Authorities")
    terminal.line(Span("→ rewind demo · rewind record python agent.py", "dim"))
