"""``rewind completion``: the script that teaches a shell our commands, options and session ids."""

import click
from click.shell_completion import get_completion_class, shell_complete

from rewind.cli.app import common_options
from rewind.cli.main import COMPLETE_VARIABLE
from rewind.errors import ExitCode


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@common_options
def command(shell: str) -> int:
    """Print the completion script of SHELL.

    \b
    Examples:
      eval "$(rewind completion bash)"           in ~/.bashrc
      eval "$(rewind completion zsh)"            in ~/.zshrc
      rewind completion fish | source            in ~/.config/fish/config.fish
    """
    click.echo(_machinery(shell))
    return ExitCode.OK


def _machinery(shell: str) -> str:
    # Lazily: the group knows this module through its table.
    from rewind.cli.group import root

    found = get_completion_class(shell)
    assert found is not None, f"click completes {shell}"
    return found(root, {}, "rewind", COMPLETE_VARIABLE).source()


def complete(instruction: str) -> int:
    """Answer the shell's question, asked through the environment."""
    from rewind.cli.group import root

    return shell_complete(root, {}, "rewind", COMPLETE_VARIABLE, instruction)
