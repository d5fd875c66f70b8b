"""``rewind export``: a session becomes a file that can be shared, read in a review, and replayed anywhere."""

import re
import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rewind.cli.app import App, common_options, json_option, print_json, session_argument, write_data
from rewind.cli.progress import progress_line
from rewind.cli.screens.export import ExportCommand, print_exported
from rewind.cli.screens.terminal import err
from rewind.errors import ExitCode, UsageError
from rewind.views import export as views

if TYPE_CHECKING:
    from rewind.reading.export import ExportForm

_Range = tuple[int | None, int | None]
_RANGE = re.compile(r"(\d{1,9})?(\.\.)?(\d{1,9})?", re.ASCII)


def _read_steps(context: click.Context, parameter: click.Parameter, value: str | None) -> _Range | None:
    """``3..5``, ``3..``, ``..5`` or ``3``."""
    if value is None:
        return None
    found = _RANGE.fullmatch(value.strip())
    if not found or not (found[1] or found[3]):
        raise click.BadParameter(
            f"{value!r} is not a valid range of steps, such as 3..5, 3.., ..5 or 3.", context, parameter
        )
    if not found[2]:
        return int(value), int(value)
    first, last = (None if number is None else int(number) for number in (found[1], found[3]))
    if first is not None and last is not None and first > last:
        raise click.BadParameter(f"{value!r} ends before it begins.", context, parameter)
    return first, last


@click.command("export")
@session_argument()
@click.option(
    "-o", "--output", metavar="FILE", help="Write to FILE ('-' for stdout; default: the session's name or id, and .rw)"
)
@click.option(
    "--redact",
    multiple=True,
    metavar="PATTERN",
    help="Remove what this regular expression matches, everywhere (repeatable)",
)
@click.option("--steps", callback=_read_steps, metavar="A..B", help="Only these steps: 3..5, 3.., ..5 or 3")
@click.option("--strict-secrets", is_flag=True, help="If something looks like a secret, write no file and exit with 1")
@click.option("--har", is_flag=True, help="Write an HTTP archive for other tools instead of a cassette")
@click.option("--markdown", is_flag=True, help="Write a report for people instead of a cassette")
@click.option("--force", is_flag=True, help="Replace FILE if it exists")
@json_option
@common_options
@click.pass_obj
def command(
    app: App,
    session: str,
    output: str | None,
    redact: tuple[str, ...],
    steps: _Range | None,
    strict_secrets: bool,
    har: bool,
    markdown: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Write SESSION to a file: a cassette (.rw) that holds everything needed to replay it anywhere.

    A cassette is text and fit for git; .rw.zst is the same, compressed. Every command can open it directly, and
    import adds it to a store. --har and --markdown, or a FILE with such an ending, give other forms.

    Known secrets are never recorded. Export searches what is left once more and reports what looks like a secret, but
    changes nothing: --redact removes it, also where it is encoded (base64, URLs). With --redact or --steps the file
    is a session of its own, with its own id.

    Exit code: 0 written · 1 something looks like a secret, and --strict-secrets was given · 6 written, but something
    is damaged and left out.

    \b
    Examples:
      rewind export last
      rewind export refund -o incident.rw --redact '[a-z.]+@example\\.com'
      rewind export 7f3a --steps 3..5 --strict-secrets
      rewind export 7f3a -o incident.md
      rewind export 7f3a --har -o - | jq '.log.entries[].request.url'
    """
    if output == "-" and as_json:
        raise UsageError("-o - and --json both write to stdout: give only one of them.")
    if har and markdown:
        raise UsageError("--har and --markdown exclude each other: give only one of them.")
    # Lazily: neither help nor a typo should wait for the engine.
    from rewind.reading.export import ExportForm, ExportOptions, StepRange, export_session, form_named_by

    form = ExportForm.HAR if har else ExportForm.MARKDOWN if markdown else form_named_by(output)
    _check_output(output or "", form, [ending for other in ExportForm if other is not form for ending in other.endings])
    options = ExportOptions(
        form=form,
        output=output,
        steps=None if steps is None else StepRange(*steps),
        redact=redact,
        strict=strict_secrets,
        force=force,
        prices=app.prices if form is ExportForm.MARKDOWN else None,
    )
    with ExitStack() as shown:
        on_progress = shown.enter_context(progress_line())

        def put(data: bytes) -> None:
            shown.close()
            write_data(data)

        exported = export_session(app.home, session, options, put=put, on_progress=on_progress)
    if as_json:
        print_json(views.exported(exported))
    flags = tuple(name for name, given in (("--har", har), ("--markdown", markdown)) if given)
    print_exported(err(), exported, ExportCommand(session, options, flags))
    if exported.written is None:
        return ExitCode.DIFFERENT
    return ExitCode.ENVIRONMENT if exported.recording.damage else ExitCode.OK


def _check_output(output: str, form: "ExportForm", other_endings: Sequence[str]) -> None:
    """A name that says another form, and a folder that is not there, are more often a slip than a wish."""
    if output.lower().endswith(tuple(other_endings)):
        raise UsageError(
            f"--{form} does not fit the name {output!r}: its ending stands for another format.",
            hint=f"-o {shlex.quote(str(Path(output).with_suffix(form.ending)))}, or without --{form}",
        )
    folder = Path(output) if output.endswith("/") else Path(output).parent
    if not folder.is_dir():
        raise UsageError(f"There is no folder {str(folder)!r}.", hint=f"mkdir -p {shlex.quote(str(folder))}")
