"""``rewind import``: take files into the store, each for itself."""

from pathlib import Path

import click

from rewind.cli.app import App, common_options, json_option, print_json
from rewind.cli.screens.export import print_folder_summary, print_imported
from rewind.cli.screens.terminal import Span, err, out
from rewind.errors import ExitCode, RewindError, UsageError
from rewind.views import export as views


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE|FOLDER…", type=click.Path())
@click.option("--name", metavar="NAME", help="A name for the session (with one file)")
@json_option
@common_options
@click.pass_obj
def command(app: App, files: tuple[str, ...], name: str | None, as_json: bool) -> int:
    """Import files into the store: cassettes (.rw, .rw.zst), traces (.jsonl), and recordings of other tools.

    Other tools' recordings are cassettes of vcrpy, pytest-recording and Ruby's VCR (.yaml, which needs PyYAML), HTTP
    archives (.har) and mitmproxy's flows. Of a FOLDER, every such file in it and below it is imported. Every byte is
    checked, and a damaged file is refused as a whole. Importing a file again changes nothing. The command of an
    imported session is shown, but never run unless you give it.

    Exit code: 0 all files are imported · 3 no such file · 6 a file could not be read.

    \b
    Examples:
      rewind import incident.rw
      rewind import tests/cassettes
      rewind import checkout.har --name checkout
      ssh prod rewind export last -o - | rewind import -
    """
    # Lazily: help should not wait for the readers of every format.
    from rewind.reading.import_ import Imported, import_named, recordings_in

    folders = {file: recordings_in(file) for file in dict.fromkeys(files) if Path(file).is_dir()}
    files = tuple(one for file in files for one in (folders[file].recordings if file in folders else (file,)))
    others = sum(folder.others for folder in folders.values())
    if name is not None and len(files) > 1:
        raise UsageError("--name takes one file, but several are given.")
    rows: list[tuple[str, Imported | str]] = []
    failed: ExitCode | None = None
    for file in files:
        try:
            rows.append((file, import_named(app.home, file, name=name)))
        except RewindError as problem:
            if len(files) == 1 and not folders and not as_json:
                raise
            rows.append((file, problem.message))
            failed = failed or problem.exit_code
            # Of several files, which one.
            named = problem.message if file in problem.message else f"{file}: {problem.message}"
            err().line(Span("rewind: ", "red"), named)
            if problem.hint:
                err().line(f"  try: {problem.hint}")
    if as_json:
        print_json(views.imported(rows, others=others))
    print_imported(out(), err(), rows, name=name, quiet=as_json)
    if folders and not as_json:
        print_folder_summary(err(), rows, others=others)
    return failed or ExitCode.OK
