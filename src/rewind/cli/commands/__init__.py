"""The commands of ``rewind``, one module each. This table alone is read for ``rewind --help``."""

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("rewind.cli.commands.init", "Prepare the store, and see which clients can be recorded here"),
    "demo": ("rewind.cli.commands.demo", "Record and replay a small agent, without any key or network"),
    "record": ("rewind.cli.commands.record", "Run a command and record what it asks of the world"),
    "replay": ("rewind.cli.commands.replay", "Run a recorded command again, answered by its recording"),
    "fork": ("rewind.cli.commands.fork", "Run it again up to a step, change that step, and go on live"),
    "list": ("rewind.cli.commands.list", "Show the recorded sessions, newest first"),
    "stats": ("rewind.cli.commands.stats", "Show what the recorded calls cost, by model, day or name"),
    "inspect": ("rewind.cli.commands.inspect", "Show a session step by step, or one step in full"),
    "messages": ("rewind.cli.commands.messages", "Print a conversation as the message list of an API"),
    "bisect": ("rewind.cli.commands.bisect", "Find the step where a bad run left a good one, and why"),
    "diff": ("rewind.cli.commands.diff", "Show what differs between two sessions, step by step"),
    "search": ("rewind.cli.commands.search", "Find a text in everything recorded"),
    "export": ("rewind.cli.commands.export", "Write a session to a file that can be shared and replayed"),
    "import": ("rewind.cli.commands.import_", "Take in a cassette, or what another tool recorded"),
    "rm": ("rewind.cli.commands.rm", "Delete sessions, to the last byte"),
    "prune": ("rewind.cli.commands.prune", "Delete old sessions, by age or until the store is small enough"),
    "pin": ("rewind.cli.commands.pin", "Keep sessions: neither prune nor a limit deletes them"),
    "verify": ("rewind.cli.commands.verify", "Check every recorded byte and name what is damaged"),
    "config": ("rewind.cli.commands.config", "Show each setting, its value and where it comes from"),
    "completion": ("rewind.cli.commands.completion", "Print the completion script of bash, zsh or fish"),
}
"""Name → module and summary. The module's ``command`` is the click command."""

ALIASES = {"show": "inspect", "ls": "list"}
"""What people type for them."""

COMPLETE_VARIABLE = "_REWIND_COMPLETE"
"""A shell that is completing asks through this variable."""


HOME_GIVEN = "rewind.home"
"""Where a ``--home`` of the command line stands in click's own notes (``Context.meta``)."""


def for_this_store(text: str) -> str:
    """The same text; the commands that it names are about the store that the command line of this call named.

    A store that a variable, a file or the folder names is found again without a word.
    """
    import re  # lazily, like the others: ``--help`` needs none of them
    import shlex

    import click

    context = click.get_current_context(silent=True)
    home = None if context is None else context.meta.get(HOME_GIVEN)
    if home is None:
        return text
    return re.sub(rf"\brewind (?=(?:{'|'.join(COMMANDS)})\b)", lambda _: f"rewind --home {shlex.quote(home)} ", text)


def help_text() -> str:
    """What ``rewind --help`` prints."""
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items())
    return f"""\
Rewind records what an AI agent asks of the world, and replays it offline.

Usage: rewind COMMAND [OPTIONS] …

Commands:
{commands}

Examples:
  rewind record python agent.py     record a run; nothing in the agent changes
  rewind inspect last               what it asked, step by step
  rewind inspect last:4             one step in full
  rewind replay last                the same run again: offline, free, compared

Name a session by its id, a prefix of the id, its name, 'last' or 'last~1'.
A step is ID:4. A cassette (run.rw) or a trace (run.jsonl) is a session, too.
Every command takes --home DIR (another store), --debug (tracebacks), --help;
'rewind help COMMAND' is the same.
"""
