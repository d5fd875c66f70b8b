"""``rewind export``: a session becomes a file that can be shared, read in a review, and replayed anywhere."""

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from rewind.cli.app import App, common_options, json_option, print_json, session_argument, write_data
from rewind.cli.progress import progress
from rewind.cli.screens.export import Asked, print_exported, print_refused, without_form
from rewind.cli.screens.terminal import err
from rewind.errors import BadCassette, EnvironmentProblem, ExitCode, UsageError
from rewind.model.session import split_step
from rewind.views import export as views

if TYPE_CHECKING:
    from rewind.reading.export import Package

CASSETTE, HAR, MARKDOWN = "cassette", "har", "markdown"
ENDINGS = {CASSETTE: ".rw", HAR: ".har", MARKDOWN: ".md"}
PATIENCE = 30
"""Seconds that the patterns may take for one step."""
_RANGE = re.compile(r"(\d{1,9})?(\.\.)?(\d{1,9})?", re.ASCII)
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")

Steps = tuple[int | None, int | None]


def read_steps(context: click.Context, parameter: click.Parameter, value: str | None) -> Steps | None:
    """``3..5``, ``3..``, ``..5`` or ``3``."""
    if value is None:
        return None
    found = _RANGE.fullmatch(value.strip())
    if not found or not (found[1] or found[3]):
        raise click.BadParameter(
            f"{value!r} is no range of steps, such as 3..5, 3.., ..5 or 3.", context, parameter
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
    "-o", "--output", metavar="FILE", help="Write to FILE ('-': stdout; default: its name or id, and .rw)"
)
@click.option(
    "--redact",
    multiple=True,
    metavar="PATTERN",
    help="Take out what this regular expression matches, everywhere (repeatable)",
)
@click.option("--steps", callback=read_steps, metavar="A..B", help="Only these steps: 3..5, 3.., ..5 or 3")
@click.option(
    "--strict-secrets", is_flag=True, help="Where something looks like a secret: write no file, exit code 1"
)
@click.option("--har", is_flag=True, help="An HTTP archive for other tools, in place of a cassette")
@click.option("--markdown", is_flag=True, help="A report to read, in place of a cassette")
@click.option("--force", is_flag=True, help="Replace FILE if it is there already")
@json_option
@common_options
@click.pass_obj
def command(
    app: App,
    session: str,
    output: str | None,
    redact: tuple[str, ...],
    steps: Steps | None,
    strict_secrets: bool,
    har: bool,
    markdown: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Write SESSION to a file: a cassette (.rw) that holds all that is needed to replay it anywhere.

    A cassette is text, and fit for git; .rw.zst is the same, compressed. Every command opens it as it is, and
    import takes it into a store. --har and --markdown, or a FILE that ends so, give other forms.

    Secrets that were known are not in a recording. What is left is looked through once more, and what looks like a
    secret is told, never changed: --redact takes it out, also where it is written in another way (base64, URLs).
    With --redact or --steps it becomes a session of its own, with an id of its own.

    \b
    Exit code: 0 written · 1 something looks like a secret, and --strict-secrets was given.

    \b
    Examples:
      rewind export last
      rewind export refund -o incident.rw --redact '[a-z.]+@example\\.com'
      rewind export 7f3a --steps 3..5 --strict-secrets
      rewind export 7f3a -o incident.md
      rewind export 7f3a --har -o - | jq '.log.entries[].request.url'
    """
    form = _form(output, har=har, markdown=markdown)
    asked = Asked(
        session=session,
        output=output,
        redact=redact,
        steps=steps,
        flags=tuple(name for name, given in (("--har", har), ("--markdown", markdown)) if given),
        strict=strict_secrets,
        force=force,
        home=app.home_flag,
    )
    if output == "-" and as_json:
        raise UsageError("-o - and --json both write to stdout: one of them.")
    ref, step = split_step(session)
    if step is not None:
        raise UsageError(
            f"A session is exported, or a range of its steps ({session!r}).",
            hint=f"rewind export {ref} --steps {step}",
        )
    # Lazily: neither help nor a typo should wait for the engine.
    from rewind.reading.export import packed

    with progress("steps looked through") as show, _in_time(bool(redact)) as next_step:

        def told(done: int, of: int) -> None:
            next_step(True)
            show(done, of)

        with packed(app.home, ref, steps=steps, redact=redact, told=told) as package:
            next_step(False)
            refused = strict_secrets and bool(package.findings)
            data = b"" if refused else _written(app, package, form, asked)
    if refused:
        if as_json:
            print_json(_view(package, form, None, b""))
        print_refused(err(), package, asked)
        return ExitCode.DIFFERENT
    path = None if output == "-" else _target(package, output, form)
    if path is None:
        write_data(data)
        shown = "stdout"
    else:
        data = _put(path, data, force=force)
        shown = str(path)
    if as_json:
        print_json(_view(package, form, shown, data))
    print_exported(err(), package, shown, data, form, asked)
    return ExitCode.OK


def _form(output: str | None, *, har: bool, markdown: bool) -> str:
    if har and markdown:
        raise UsageError("--har and --markdown: one of them.")
    if har or markdown:
        return HAR if har else MARKDOWN
    name = (output or "").lower()
    if name.endswith(".har"):
        return HAR
    if name.endswith((".md", ".markdown")):
        return MARKDOWN
    if name in ("", "-") or name.endswith((".rw", ".rw.zst", "/")) or Path(name).is_dir():
        return CASSETTE
    raise UsageError(
        f"{output!r} says by its ending neither .rw nor .rw.zst, .har or .md.",
        hint=f"-o {output}.rw; --har and --markdown take any name",
    )


def _target(package: "Package", output: str | None, form: str) -> Path:
    """Where it goes. What a session is called is data: of its name only harmless characters become a file's."""
    wanted = Path(output) if output else Path()
    if output and not (output.endswith("/") or wanted.is_dir()):
        return wanted
    named = _UNFIT.sub("-", package.session.start.name or "").strip(".-")[:80]
    return wanted / f"{named or package.session.id}{ENDINGS[form]}"


def _written(app: App, package: "Package", form: str, asked: Asked) -> bytes:
    if form == HAR:
        from rewind.formats.har_write import write_har

        if package.recording.steps and len(without_form(package, HAR)) == len(package.recording.steps):
            raise UsageError(
                f"No step of {package.source.id} went over HTTP, so an HTTP archive of it would be empty.",
                hint=f"rewind export {asked.session}, or with --markdown",
            )
        return write_har(package.recording, package.blob)
    if form == MARKDOWN:
        from rewind.cli.reporting import report_of

        return report_of(package, app.prices, asked.how_to_export(package)).encode()
    from rewind.store.cassette.write import write_cassette

    return write_cassette(package.recording, package.blob)


def _put(path: Path, data: bytes, *, force: bool) -> bytes:
    """Write the file, and give what it holds. Another file of that name is left alone, unless ``force``."""
    from rewind.store.cassette.write import write_cassette_file

    try:
        if path.exists() and not force and not _holds(path, data):
            raise UsageError(
                f"{str(path)!r} is there already, and holds something else.",
                hint="--force replaces it, -o FILE writes elsewhere",
            )
        write_cassette_file(path, data)
        return path.read_bytes()
    except OSError as problem:
        raise EnvironmentProblem(f"{str(path)!r} cannot be written: {problem.strerror}.") from problem


def _holds(path: Path, data: bytes) -> bool:
    """Whether the file says the same; packed by another version of the packer, it may say it in other bytes."""
    from rewind.store.cassette.seal import unpacked

    there = path.read_bytes()
    if there == data or not path.name.endswith(".zst"):
        return there == data
    try:
        return unpacked(there) == data
    except BadCassette:
        return False


def _view(package: "Package", form: str, file: str | None, data: bytes) -> dict[str, object]:
    import hashlib

    end = package.source.end
    return views.exported(
        file=file,
        form=form,
        session=package.session.id,
        source=package.source.id,
        steps=len(package.recording.steps),
        left_out=package.left_out,
        without_form=without_form(package, form),
        size=len(data) if file is not None else None,
        sha256=hashlib.sha256(data).hexdigest() if file is not None else None,
        recorded=end.redactions if end is not None else 0,
        removed=package.removed,
        findings=package.findings,
    )


@contextmanager
def _in_time(guarded: bool) -> Iterator[Callable[[bool], None]]:
    """Gives something to call when a step is done, and with False when all are.

    A pattern such as ``(a+)+b`` may take for ever on one text; Python's matcher lets a signal interrupt it.
    """
    if not guarded:
        yield lambda _goes_on: None
        return

    def too_long(_number: int, _frame: FrameType | None) -> None:
        raise UsageError(
            f"The patterns of --redact took more than {PATIENCE} s for one step. Nothing was written.",
            hint="a repeat inside a repeat, such as (a+)+, takes for ever on some texts",
        )

    def next_step(goes_on: bool) -> None:
        signal.setitimer(signal.ITIMER_REAL, PATIENCE if goes_on else 0)

    before = signal.signal(signal.SIGALRM, too_long)
    timer = signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield next_step
    finally:
        next_step(False)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *timer)
