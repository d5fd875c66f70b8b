"""``rewind inspect``: a session step by step, one step in full, or what the model read at it."""

import sys
from dataclasses import replace

import click

from rewind.cli.app import App, common_options, json_option, print_json, session_argument, write_data
from rewind.cli.progress import progress
from rewind.cli.screens.context import print_changes, print_context
from rewind.cli.screens.facts import print_facts, session_facts
from rewind.cli.screens.inspect import print_step, print_steps, print_tool_call, run_facts
from rewind.cli.screens.terminal import Span, err, out
from rewind.conversation.context import Change, compare, context_of
from rewind.conversation.outline import Outline, Understood, outline_of
from rewind.conversation.tools import ToolCall
from rewind.errors import DamagedStore, ExitCode, SessionNotFound, UsageError
from rewind.model.ids import BlobId
from rewind.model.session import Recording, split_step, split_tool, step_in
from rewind.model.step import Step, StepKind
from rewind.pricing.prices import Prices
from rewind.pricing.spending import cost_of, spending
from rewind.store.journal.reader import SessionReader
from rewind.store.library import Library
from rewind.views import call as understood
from rewind.views import session as views


@click.command("inspect")
@session_argument(metavar="SESSION[:STEP]")
@click.option("--request", "only_request", is_flag=True, help="Of a step: only what was asked")
@click.option("--response", "only_response", is_flag=True, help="Of a step: only what was answered")
@click.option(
    "--context", is_flag=True, help="Of a step: what the model read, message by message, with sizes"
)
@click.option(
    "--diff",
    type=click.IntRange(min=1),
    metavar="STEP",
    help="With --context: what changed since that step (default: the call it goes on from)",
)
@click.option("--full", is_flag=True, help="With --context: long messages and unchanged ones in full")
@click.option(
    "--raw", is_flag=True, help="Of a step: the exact recorded bytes of the body (the answer's, or --request)"
)
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
    raw: bool,
    as_json: bool,
) -> int:
    """Show SESSION step by step, or one STEP in full.

    Tool calls are worked out from the conversation: 4.1 is the first tool that the answer of step 4 asks for.
    What agents and models wrote is shown with control characters made visible. --raw gives the bytes as they
    are, content encoding included, when stdout is a file or a pipe; on a terminal it shows them escaped.

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
            ref,
            index,
            context=context,
            others=[only_request, only_response, raw],
            changes=diff is not None or full,
        )
    if only_request and only_response and raw:
        raise UsageError("--raw gives one body: either --request or --response.")
    if tool is not None and (raw or context or only_request or only_response):
        raise UsageError(
            "--context, --raw, --request and --response are about a step, not about a tool call.",
            hint=f"rewind inspect {ref}:{tool[0]}",
        )
    if raw and as_json:
        raise UsageError("--raw gives bytes, --json gives JSON: one of them.")
    library = Library(app.home)
    with library.open(library.find(ref)) as reader:
        recording = reader.recording()
        if raw:
            step = step_in(recording, index or 0)
            body = reader.blob(step.request.body) if only_request else _response_body(reader, step)
            if body is None:
                err().line("No answer is recorded.")
            _show_raw(body or b"")
            return ExitCode.OK
        if index is not None:
            step_in(recording, index)
            # Where a step stands depends on what came before it, and on nothing else.
            upto = tuple(step for step in recording.steps if step.index <= max(index, diff or 0))
            recording = replace(recording, steps=upto)
        if context and index is not None:
            reader.blob(step_in(recording, index).request.body)  # a damaged one is named, not shown as empty
        outline = _outline(reader, recording)
        if tool is not None:
            _show_tool_call(recording, outline, *tool, as_json=as_json)
        elif index is None:
            _show_recording(recording, outline, app.prices, as_json=as_json)
        elif context:
            _show_context(recording, outline, index, diff, full=full, as_json=as_json)
        else:
            both = only_request == only_response
            _show_step(
                reader,
                _understood(recording, outline, index),
                app.prices,
                asked=both or only_request,
                answered=both or only_response,
                as_json=as_json,
            )
    return ExitCode.OK


def _check_options(ref: str, index: int | None, *, context: bool, others: list[bool], changes: bool) -> None:
    if index is None and (context or any(others)):
        raise UsageError(
            "--context, --raw, --request and --response are about one step.",
            hint=f"rewind inspect {ref}:1 --context",
        )
    if context and any(others):
        raise UsageError("--context shows what the model read; --raw, --request and --response show bodies.")
    if changes and not context:
        raise UsageError(
            "--diff and --full go with --context.", hint=f"rewind inspect {ref}:{index or 1} --context"
        )


def _outline(reader: SessionReader, recording: Recording) -> Outline:
    """The run, understood; a body that is damaged counts as empty here, and is named where it is asked for."""

    def bodies(step: Step) -> tuple[bytes, bytes]:
        return _or_nothing(reader, step.request.body), _or_nothing(
            reader, step.response.body if step.response is not None else None
        )

    with progress("steps read") as show:
        return outline_of(recording, bodies, lambda done: show(done, len(recording.steps)))


def _or_nothing(reader: SessionReader, name: str | None) -> bytes:
    try:
        return b"" if name is None else reader.blob(BlobId(name))
    except DamagedStore:
        return b""


def _show_recording(recording: Recording, outline: Outline, prices: Prices, *, as_json: bool) -> None:
    costs = {one.step.index: cost_of(prices, one.step, one.reading) for one in outline.steps}
    if as_json:
        print_json(views.recording(recording) | {"outline": understood.outline(outline, costs)})
        return
    facts = session_facts(recording.session, recording.damage, recording.surroundings)
    window = _window(outline, prices)
    calls = [one for one in outline.steps if one.kind is StepKind.LLM_CALL]
    spent = spending((one.step, one.reading, costs[one.step.index]) for one in calls)
    print_facts(out(), [*facts, *run_facts(outline, spent, window)])
    out().line()
    if recording.steps:
        print_steps(out(), outline, costs)
        err().line(Span(f"→ rewind inspect {recording.session.ref}:{recording.steps[0].index}", "dim"))
    else:
        out().line("no steps")


def _window(outline: Outline, prices: Prices) -> int | None:
    """How much the model can read that read the most."""
    turns = (one for one in outline.steps if one.place is not None)
    fullest = max(turns, key=lambda one: one.reading.usage.input or 0, default=None)
    if fullest is None:
        return None
    request = fullest.step.request
    return prices.context_window(
        host=request.head.host,
        target=request.head.target,
        provider=request.provider,
        model=fullest.reading.model or request.model,
    )


def _show_step(
    reader: SessionReader,
    one: Understood,
    prices: Prices,
    *,
    asked: bool,
    answered: bool,
    as_json: bool,
) -> None:
    step, session = one.step, reader.recording().session.id
    request_body = reader.blob(step.request.body) if asked else b""
    response_body = _response_body(reader, step) if answered else None
    cost = cost_of(prices, step, one.reading)
    if as_json:
        view = views.step(session, step, request_body, response_body)
        view |= {"cost_usd": cost, "place": understood.place(one)}
        view |= {"asked": understood.asked(one.asked)}
        view |= {"answered": one.answered and understood.answered(one.answered)}
        dropped = {"request", "asked"} if not asked else {"response", "answered"} if not answered else set()
        print_json({key: value for key, value in view.items() if key not in dropped})
    else:
        print_step(out(), session, one, request_body if asked else None, response_body, answered, cost)


def _show_tool_call(
    recording: Recording, outline: Outline, index: int, number: int, *, as_json: bool
) -> None:
    step_in(recording, index)
    calls = outline.tools_of().get(index, [])
    session = recording.session.id
    found: ToolCall | None = next((call for call in calls if call.number == number), None)
    if found is None:
        told = f"it asks for {len(calls)}" if calls else "its answer asks for none"
        raise SessionNotFound(
            f"Step {index} of session {session} has no tool call {number}; {told}.",
            hint=f"rewind inspect {recording.session.ref}:{index}",
        )
    if as_json:
        print_json(
            {"schema": "rewind/tool_call@1", "session": session, "tool_call": understood.tool_call(found)}
        )
    else:
        print_tool_call(out(), session, found)


def _show_context(
    recording: Recording, outline: Outline, index: int, since: int | None, *, full: bool, as_json: bool
) -> None:
    one = _understood(recording, outline, index)
    session = recording.session.id
    if one.kind is not StepKind.LLM_CALL:
        raise UsageError(f"Step {index} is no call to a model: no model read anything.")
    if since is None and one.place is not None:
        since = one.place.parent
    before = None if since is None else _understood(recording, outline, since)
    entries = context_of(one.asked, outline.held(index))
    changes: tuple[Change, ...] = ()
    if before is not None and since is not None:
        changes = compare(context_of(before.asked, outline.held(since)), entries, before.answered)
    if as_json:
        print_json(understood.context(session, index, one.asked, entries, since, changes))
        return
    heading = "no earlier call to compare with" if since is None else f"compared with step {since}"
    out().line(Span(f"{session}:{index}", "bold"), f"  what the model read, {heading}")
    if one.asked.note:
        out().line(Span(one.asked.note, "yellow"))
    out().line()
    if since is None:
        print_context(out(), entries, full=full)
    else:
        print_changes(out(), changes, since, full=full)


def _understood(recording: Recording, outline: Outline, index: int) -> Understood:
    step_in(recording, index)
    found = outline.step(index)
    assert found is not None, "an outline has every step of its recording"
    return found


def _response_body(reader: SessionReader, step: Step) -> bytes | None:
    return reader.blob(step.response.body) if step.response is not None else None


def _show_raw(body: bytes) -> None:
    if sys.stdout.isatty():
        # Bytes of strangers on a screen could do anything to it; a file or a pipe gets them unaltered.
        out().line(body.decode("utf-8", "backslashreplace"))
        err().line(Span("shown escaped; > FILE gives the exact bytes", "dim"))
    else:
        write_data(body)
