"""``rewind import``: take files into the store, each for itself."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from rewind.cli.app import App, common_options, json_option, print_json
from rewind.cli.screens.terminal import Span, Terminal, err, out
from rewind.errors import BadCassette, ExitCode, RewindError, SessionNotFound, UsageError
from rewind.safe import safe_line
from rewind.store.library import Library
from rewind.text import plural
from rewind.views import export as views

if TYPE_CHECKING:
    from rewind.reading.import_ import Imported


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path())
@click.option("--name", metavar="NAME", help="A name for the session (of one file)")
@json_option
@common_options
@click.pass_obj
def command(app: App, files: tuple[str, ...], name: str | None, as_json: bool) -> int:
    """Take FILEs into the store: cassettes (.rw, .rw.zst), traces (.jsonl), and what other tools recorded.

    Also cassettes of vcrpy and pytest-recording (.yaml), HTTP archives (.har) and mitmproxy's flows. Every byte is
    checked, and nothing is taken in of a file that is not as it was written. The same file again changes nothing.
    The command that an imported session was recorded with is shown, and never run by itself.

    \b
    Exit code: 0 all are taken in · 3 no such file · 6 one of them could not be read.

    \b
    Examples:
      rewind import incident.rw
      rewind import tests/cassettes/*.rw
      rewind import checkout.har --name checkout
      ssh prod rewind export last -o - | rewind import -
    """
    if name is not None and len(files) > 1:
        raise UsageError("--name is for one file, and several are given.")
    # Lazily: help should not wait for the readers of every format.
    from rewind.reading.import_ import import_file

    home = app.home
    rows: list[tuple[str, Imported | str]] = []
    failed: ExitCode | None = None
    for file in files:
        try:
            with _readable(file) as path:
                try:
                    rows.append((file, import_file(home, path, name=name)))
                except RewindError as problem:
                    problem.message = problem.message.replace(str(path), _shown(file))
                    raise
        except RewindError as problem:
            if len(files) == 1 and not as_json:
                raise
            rows.append((file, problem.message))
            failed = failed or problem.exit_code
            err().line(Span("rewind: ", "red"), _named(file, problem.message))
            if problem.hint:
                err().line(f"  try: {problem.hint}")
    if as_json:
        print_json(views.imported(rows))
    else:
        _show(out(), rows, home)
    if name is not None:
        _tell_of_the_name(rows, name, home)
    return failed or ExitCode.OK


@contextmanager
def _readable(file: str) -> Iterator[Path]:
    """The file itself; or, for a pipe, which can be read only once, a copy that is gone afterwards."""
    path = Path("/dev/stdin" if file == "-" else file)
    if path.is_file() and file != "-":
        yield path
        return
    if path.is_dir() or not path.exists():
        what = "is a folder" if path.is_dir() else "is not there"
        raise SessionNotFound(f"{file!r} {what}.", hint="rewind import FILE, such as run.rw")
    with TemporaryDirectory(prefix="rewind-import-") as folder:
        copy = Path(folder) / "stdin"
        copy.write_bytes(_piped(path, file))
        yield copy


def _piped(path: Path, file: str) -> bytes:
    """All that comes through a pipe, up to the size that a file may have."""
    from rewind.reading.import_ import FILE_LIMIT

    try:
        with path.open("rb") as pipe:
            if pipe.isatty():
                raise UsageError(
                    f"{_shown(file)} is a terminal.",
                    hint="rewind import FILE, or a command that writes one | rewind import -",
                )
            data = pipe.read(FILE_LIMIT + 1)
    except OSError as problem:
        raise BadCassette(f"{_shown(file)} cannot be read: {problem.strerror}.") from problem
    if len(data) > FILE_LIMIT:
        raise BadCassette(
            f"{_shown(file)} gives more than {FILE_LIMIT // 1024 // 1024} MB, which Rewind does not read."
        )
    return data


def _shown(file: str) -> str:
    return "stdin" if file == "-" else file


def _tell_of_the_name(rows: "list[tuple[str, Imported | str]]", name: str, home: Path) -> None:
    """A session that is there keeps what it is called here."""
    for _, one in rows:
        if isinstance(one, str) or one.new:
            continue
        called = Library(home).find(one.session_id).start.name
        if called != name:
            known = f"under the name {called!r}" if called else "without a name"
            err().line(
                Span(f"  it is there already, {known}, so --name {shlex.quote(name)} was not used", "yellow")
            )


def _named(file: str, message: str) -> str:
    """Of several files, which one."""
    return message if file in message else f"{file}: {message}"


def _show(terminal: Terminal, rows: "list[tuple[str, Imported | str]]", home: Path) -> None:
    taken = [(file, one) for file, one in rows if not isinstance(one, str)]
    for file, one in taken:
        state = Span("✓ imported ", "green") if one.new else Span("= already there ", "dim")
        told = f"  {plural(one.steps, 'step')}  {one.tool}  {safe_line(file, 120)}"
        terminal.line(state, Span(one.session_id, "bold"), told)
        for remark in one.remarks:
            err().line(Span(f"  {remark}", "yellow"))
    if taken:
        session = taken[-1][1].session_id
        library = Library(home)
        with library.open(library.find(session)) as reader:
            again = "messages {}" if reader.recording().is_from_trace else "replay {} -- COMMAND"
        err().line(Span(f"→ rewind inspect {session} · rewind {again.format(session)}", "dim"))
