"""``rewind completion``: the script that teaches a shell our commands, options and session ids."""

import click
from click.shell_completion import get_completion_class

from rewind.cli.app import common_options
from rewind.cli.commands import COMPLETE_VARIABLE
from rewind.errors import ExitCode


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@common_options
@click.pass_context
def command(context: click.Context, shell: str) -> int:
    """Print the completion script of SHELL.

    \b
    Examples:
      eval "$(rewind completion bash)"           in ~/.bashrc
      eval "$(rewind completion zsh)"            in ~/.zshrc
      rewind completion fish | source            in ~/.config/fish/config.fish
    """
    completer = get_completion_class(shell)
    assert completer is not None, f"click completes {shell}"
    root = context.find_root().command
    click.echo(completer(root, {}, "rewind", COMPLETE_VARIABLE).source())
    return ExitCode.OK
