"""``rewind inspect``: a session step by step, or one step in full."""

import sys

import click

from rewind import views
from rewind.cli.app import App, common_options, json_option, print_json, session_argument, write_data
from rewind.cli.render import print_facts, print_steps, session_facts
from rewind.cli.step import print_step
from rewind.cli.terminal import Span, err, out
from rewind.errors import ExitCode, SessionNotFound, UsageError
from rewind.model.session import Recording
from rewind.model.step import Step
from rewind.store.library import Library, split_step
from rewind.store.reader import SessionReader


@click.command("inspect")
@session_argument(metavar="SESSION[:STEP]")
@click.option("--request", "only_request", is_flag=True, help="Of a step: only what was asked")
@click.option("--response", "only_response", is_flag=True, help="Of a step: only what was answered")
@click.option(
    "--raw", is_flag=True, help="Of a step: the exact recorded bytes of the body (the answer's, or --request)"
)
@json_option
@common_options
@click.pass_obj
def command(app: App, session: str, only_request: bool, only_response: bool, raw: bool, as_json: bool) -> int:
    """Show SESSION step by step, or one STEP in full.

    What agents and models wrote is shown with control characters made visible. --raw gives the bytes as they
    are, content encoding included, when stdout is a file or a pipe; on a terminal it shows them escaped.

    \b
    Examples:
      rewind inspect last
      rewind inspect 7f3a:4
      rewind inspect 7f3a:4 --raw > answer.bin
      rewind inspect last --json | jq '.steps[].model'
    """
    ref, index = split_step(session)
    if index is None and (raw or only_request or only_response):
        raise UsageError(
            "--raw, --request and --response are about one step.", hint=f"rewind inspect {ref}:1 --raw"
        )
    if only_request and only_response and raw:
        raise UsageError("--raw gives one body: either --request or --response.")
    if raw and as_json:
        raise UsageError("--raw gives bytes, --json gives JSON: one of them.")
    library = Library(app.home)
    with library.open(library.find(ref)) as reader:
        recording = reader.recording()
        if index is None:
            _show_recording(recording, as_json=as_json)
            return ExitCode.OK
        step = _step(recording, index)
        if raw:
            _show_raw(_request_body(reader, step) if only_request else _response_body(reader, step) or b"")
            return ExitCode.OK
        both = only_request == only_response
        asked = _request_body(reader, step) if both or only_request else b""
        answered = _response_body(reader, step) if both or only_response else None
    if as_json:
        view = views.step(recording.session.id, step, asked, answered)
        dropped = () if both else ("response",) if only_request else ("request",)
        print_json({key: value for key, value in view.items() if key not in dropped})
    else:
        print_step(
            out(),
            recording.session.id,
            step,
            asked if both or only_request else None,
            answered,
            both or only_response,
        )
    return ExitCode.OK


def _show_recording(recording: Recording, *, as_json: bool) -> None:
    if as_json:
        print_json(views.recording(recording))
        return
    print_facts(out(), session_facts(recording.session, recording.damage))
    out().line()
    if recording.steps:
        print_steps(out(), recording.steps)
        err().line(Span(f"→ rewind inspect {recording.session.id}:{recording.steps[0].index}", "dim"))
    else:
        out().line("no steps")


def _step(recording: Recording, index: int) -> Step:
    found = next((step for step in recording.steps if step.index == index), None)
    if found is not None:
        return found
    known = [step.index for step in recording.steps]
    session = recording.session.id
    if not known:
        raise SessionNotFound(f"Session {session} has no steps.", hint=f"rewind inspect {session}")
    nearest = min(known, key=lambda candidate: abs(candidate - index))
    raise SessionNotFound(
        f"Session {session} has no step {index}; it has {len(known)}, from {known[0]} to {known[-1]}.",
        hint=f"rewind inspect {session}:{nearest}",
    )


def _request_body(reader: SessionReader, step: Step) -> bytes:
    return reader.blob(step.request.body)


def _response_body(reader: SessionReader, step: Step) -> bytes | None:
    return reader.blob(step.response.body) if step.response is not None else None


def _show_raw(body: bytes) -> None:
    if sys.stdout.isatty():
        # Bytes of strangers on a screen could do anything to it; a file or a pipe gets them unaltered.
        out().line(body.decode("utf-8", "backslashreplace"))
        err().line(Span("shown escaped; > FILE gives the exact bytes", "dim"))
    else:
        write_data(body)
