"""The click group behind ``rewind``: finds commands in the table, and speaks our errors."""

import importlib
import sys
from collections.abc import Callable

import click
from click.shell_completion import CompletionItem, shell_complete

from rewind.cli.app import App, common_options
from rewind.cli.commands import ALIASES, COMMANDS, COMPLETE_VARIABLE, for_this_store, help_text
from rewind.errors import EnvironmentProblem, RewindError, UsageError


class Commands(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command), f"{COMMANDS[cmd_name][0]} has no click command"
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        args = [ALIASES.get(args[0], args[0]), *args[1:]]
        if args[0] not in COMMANDS:
            raise UsageError(f"There is no command {args[0]!r}.", hint=_nearest_command(args[0]))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # click would import every command for its summary; the table has them.
        names = [
            CompletionItem(name, help=summary) for name, (_, summary) in COMMANDS.items() if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def get_help(self, ctx: click.Context) -> str:
        return help_text().rstrip("\n")


@click.group(
    cls=Commands,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@common_options
def root() -> None:
    pass


def dispatch(arguments: list[str], show_traceback: Callable[[], None]) -> int:
    """Run one command; its exit code. With ``--debug`` an error shows its traceback as well."""
    app = App()
    try:
        with root.make_context("rewind", list(arguments), obj=app) as context:
            code = _invoke(context)
    except (RewindError, KeyboardInterrupt):
        if app.debug:
            show_traceback()
        raise
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.Abort as interrupt:
        raise KeyboardInterrupt from interrupt
    except click.UsageError as problem:
        path = problem.ctx.command_path if problem.ctx else "rewind"
        raise UsageError(problem.format_message(), hint=f"{path} --help") from problem
    except click.ClickException as problem:
        raise EnvironmentProblem(problem.format_message()) from problem
    finally:
        if not isinstance(sys.exc_info()[1], KeyboardInterrupt):  # who interrupts wants to leave
            app.finish_deletions()
    return code if isinstance(code, int) else 0


def _invoke(context: click.Context) -> object:
    """Do what is asked; the hint of what goes wrong is for the store of this call."""
    try:
        return root.invoke(context)
    except RewindError as error:
        error.hint = error.hint and for_this_store(error.hint)
        raise


def complete(instruction: str) -> int:
    """Answer the question of a shell that is completing."""
    return shell_complete(root, {}, "rewind", COMPLETE_VARIABLE, instruction)


def _nearest_command(wrong: str) -> str:
    # Lazily: only a typo needs it.
    import difflib

    near = difflib.get_close_matches(wrong, COMMANDS, n=1)
    return f"rewind {near[0]}" if near else "rewind --help"
