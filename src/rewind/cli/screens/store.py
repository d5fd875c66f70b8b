"""The store and its settings, for people: ``verify``, ``init`` and ``config``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewind.cli.screens.layout import Column, print_hanging, print_table, room, wrapped
from rewind.cli.screens.terminal import Span, Terminal, hint
from rewind.settings import PROJECT_FOLDER, Settings
from rewind.text import NONE, plural
from rewind.views.store import setting_value

if TYPE_CHECKING:  # each command brings its own engine
    from rewind.reading.setup import Setup
    from rewind.reading.verify import Verification

_UNSET = {"match": "renamed; in pytest fields"}
"""What holds if the setting is not set and commands differ in their default."""
_SETTINGS = (Column("setting"), Column("value", flexible=True), Column("origin", flexible=True))


_CLIENT = 19
"""Columns that the name and the version of a client take."""


def print_verification(terminal: Terminal, verification: "Verification") -> None:
    """What is damaged, or that nothing is."""
    for damage in verification.damage:
        terminal.line(Span("✗ damaged", "red"), f"  {damage.session}  {damage.what}  ", Span(damage.where, "dim"))
    if verification.damage:
        hurt = len({damage.session for damage in verification.damage})
        terminal.line(f"{hurt} of {plural(verification.sessions, 'session')} damaged; the others are intact")
    else:
        terminal.line(Span("✓ ", "green"), f"{plural(verification.sessions, 'session')} intact")
    for remark in verification.remarks or ():
        terminal.line(Span("· ", "yellow"), remark)
    if (catalog := verification.catalog) is not None:
        state = "rebuilt" if catalog.rebuilt else "up to date"
        terminal.line(f"catalog {state}: {plural(catalog.sessions, 'session')}, {plural(catalog.steps, 'step')}")
    if verification.catalog_problem is not None:
        terminal.line(Span("✗ catalog: ", "red"), verification.catalog_problem)


def print_clients(terminal: Terminal, setup: "Setup") -> None:
    """Sentences rather than a table: none of them should be cut."""
    for client in setup.clients:
        if client.found:
            sign = Span("✓ ", "green") if client.works else Span("✗ ", "red")
            works, *more = wrapped([Span(client.works or "nothing")], room(terminal, _CLIENT))
            terminal.line(sign, Span(f"{client.name:<7}", "bold"), f"{client.version:<9} ", *works)
            note = wrapped([Span(client.note, "dim")], room(terminal, _CLIENT)) if client.note else ()
            for line in (*more, *note):
                terminal.line(" " * _CLIENT, *line)


def explain_setup(terminal: Terminal, setup: "Setup", project_store: Path | None) -> None:
    """Where the store is, what can never be recorded, and who may trust the lasting certificate."""
    settings, certificate = setup.settings, setup.certificate
    for sentence in setup.never_recorded:
        print_hanging(terminal, [(Span(sentence, "dim"),)], indent=0)
    origin = ", ".join(map(str, settings.origin("home")))
    terminal.line("The store is ", Span(str(settings.home), "bold"), f" ({origin}).")
    if project_store is not None and settings.home != project_store:
        terminal.line(Span(f"./{PROJECT_FOLDER} is ready, but {origin} takes precedence here.", "yellow"))
    if certificate is not None:
        terminal.line("The lasting CA's certificate is ", Span(str(certificate), "bold"), "; its key is next to it.")
        terminal.line("  It vouches for recorded hosts only. Whoever trusts it trusts this machine to speak for them:")
        terminal.line(f"    one program:  SSL_CERT_FILE={certificate} (curl: --cacert, Node: NODE_EXTRA_CA_CERTS)")
        terminal.line("    a browser:    import it under Settings, Certificates, Authorities")
    terminal.line(hint("→ rewind demo · rewind record python agent.py"))


def print_settings(terminal: Terminal, settings: Settings) -> None:
    """The table of ``rewind config``."""
    print_table(
        terminal,
        _SETTINGS,
        [
            (
                name,
                _shown(_UNSET.get(name) if value is None else value),
                Span(", ".join(map(str, settings.origin(name))), "dim"),
            )
            for name, value in settings.values().items()
        ],
    )


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
    return str(setting_value(value))


def _price(entry: dict[str, float]) -> str:
    return ", ".join(f"{kind} {number}" for kind, number in entry.items())
