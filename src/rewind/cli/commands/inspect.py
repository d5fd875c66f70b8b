"""``rewind inspect``: a session step by step, one step in full, or what the model read at it."""

import sys
from collections.abc import Iterator
from itertools import chain

import click

from rewind.cli.app import App, common_options, json_option, print_json, session_argument, write_data
from rewind.cli.progress import progress_line
from rewind.cli.screens.inspect import print_inspection
from rewind.cli.screens.terminal import Span, err, out
from rewind.errors import ExitCode, UsageError
from rewind.model.session import split_step, split_tool
from rewind.reading import inspect as reading
from rewind.views import call as views


@click.command("inspect")
@session_argument(metavar="SESSION[:STEP]")
@click.option("--request", "only_request", is_flag=True, help="Of a step: only the request")
@click.option("--response", "only_response", is_flag=True, help="Of a step: only the answer")
@click.option("--context", is_flag=True, help="Of a step: what the model read, message by message, with sizes")
@click.option(
    "--diff",
    type=click.IntRange(min=1),
    metavar="STEP",
    help="With --context: what changed since STEP (default: the call it goes on from)",
)
@click.option("--full", is_flag=True, help="With --context: show long and unchanged messages in full")
@click.option("--all", "uploads", is_flag=True, help="Of a session: telemetry uploads, too")
@click.option("--raw", is_flag=True, help="Of a step: the exact bytes of the answer (with --request: of the request)")
@json_option
@common_options
@click.pass_obj
def command(
    app: App,
    session: str,
    only_request: bool,
    only_response: bool,
    context: bool,
    diff: int | None,
    full: bool,
    uploads: bool,
    raw: bool,
    as_json: bool,
) -> int:
    """Show SESSION step by step, or one STEP in full.

    Tool calls come from the conversation: 4.1 is the first tool that the answer of step 4 asks for. Control
    characters in recorded text are made visible. --raw writes the exact bytes, content encoding included, to a file
    or a pipe; on a terminal it shows them escaped.

    \b
    Examples:
      rewind inspect last
      rewind inspect 7f3a:4
      rewind inspect 7f3a:4.1
      rewind inspect 7f3a:4 --context
      rewind inspect 7f3a:4 --context --diff 1
      rewind inspect 7f3a:4 --raw > answer.bin
      rewind inspect last --json | jq '.steps[].model'
    """
    ref, tool = split_tool(session)
    ref, index = (ref, None) if tool else split_step(ref)
    if tool is None:
        _check_options(
            ref, index, context=context, others=[only_request, only_response, raw], changes=diff is not None or full
        )
    if only_request and only_response and raw:
        raise UsageError("--raw shows one body: use --request or --response, not both.")
    if tool is not None and (raw or context or only_request or only_response):
        raise UsageError(
            "--context, --raw, --request and --response apply to a step, not to a tool call.",
            hint=f"rewind inspect {ref}:{tool[0]}",
        )
    if raw and as_json:
        raise UsageError("--raw prints bytes and --json prints JSON: use one of them.")
    if raw:
        _show_raw(reading.recorded_body(app.home, ref, index or 0, request=only_request))
        return ExitCode.OK
    inspection: reading.Inspection
    with progress_line() as on_progress:
        if tool is not None:
            inspection = reading.inspect_tool_call(app.home, ref, *tool, on_progress=on_progress)
        elif index is None:
            inspection = reading.inspect_session(app.home, ref, app.prices, on_progress=on_progress)
        elif context:
            inspection = reading.inspect_context(app.home, ref, index, since=diff, on_progress=on_progress)
        else:
            inspection = reading.inspect_step(
                app.home,
                ref,
                index,
                app.prices,
                request=only_request or not only_response,
                response=only_response or not only_request,
                on_progress=on_progress,
            )
    if as_json:
        print_json(views.inspection(inspection))
    else:
        print_inspection(out(), inspection, full=full, uploads=uploads)
    return ExitCode.ENVIRONMENT if isinstance(inspection, reading.StepDetail) and inspection.damage else ExitCode.OK


def _check_options(ref: str, index: int | None, *, context: bool, others: list[bool], changes: bool) -> None:
    if index is None and (context or any(others)):
        raise UsageError(
            "--context, --raw, --request and --response apply to one step.", hint=f"rewind inspect {ref}:1 --context"
        )
    if context and any(others):
        raise UsageError("--context shows what the model read; --raw, --request and --response show bodies.")
    if changes and not context:
        raise UsageError("--diff and --full need --context.", hint=f"rewind inspect {ref}:{index or 1} --context")


def _show_raw(recorded: Iterator[bytes]) -> None:
    first = next(recorded, None)
    if first is None:
        err().line("No answer is recorded.")
    if sys.stdout.isatty():
        # Bytes of strangers on a screen could do anything to it; a file or a pipe gets them unaltered.
        out().line(b"".join((first or b"", *recorded)).decode("utf-8", "backslashreplace"))
        err().line(Span("shown escaped; redirect to a FILE for the exact bytes", "dim"))
    else:
        for block in chain([first or b""], recorded):
            write_data(block)
