"""``rewind messages``: the conversation up to a step, as the message list of an API."""

import click

from rewind.cli.app import App, common_options, json_option, print_json, session_argument
from rewind.cli.progress import progress_line
from rewind.cli.screens.terminal import Span, err
from rewind.errors import ExitCode, UsageError
from rewind.model.session import split_step
from rewind.reading.messages import APIS, Conversation, conversation
from rewind.views import call as views


@click.command("messages")
@session_argument(metavar="SESSION[:STEP]")
@click.option(
    "--upto",
    type=click.IntRange(min=1),
    metavar="STEP",
    help="Stop after the answer of that step (default: the last one; same as SESSION:STEP)",
)
@click.option("--as", "api", type=click.Choice(APIS), help="The API to write for (default: the one of the step)")
@click.option(
    "--thread",
    type=click.IntRange(min=1),
    metavar="N",
    help="Which conversation, if there are several (default: the one of the last call)",
)
@json_option
@common_options
@click.pass_obj
def command(app: App, session: str, upto: int | None, api: str | None, thread: int | None, as_json: bool) -> int:
    """Print the messages of SESSION up to a step, ready for a fresh call.

    The output is the list that the API takes as messages (openai, anthropic), input (responses) or contents
    (gemini): all that the model read at its last call, and its answer. For openai and responses, the system prompt
    is the first message. The other two take it outside the list; --json has both, and the model.

    \b
    Examples:
      rewind messages last
      rewind messages 7f3a --upto 4 --as anthropic > messages.json
      rewind messages 7f3a:4 --as gemini --json | jq .system
    """
    ref, index = split_step(session)
    if index is not None and upto is not None and index != upto:
        raise UsageError(
            f"{session} and --upto {upto} name different steps.", hint=f"rewind messages {ref} --upto {upto}"
        )
    with progress_line() as on_progress:
        found = conversation(
            app.home, ref, upto=index if upto is None else upto, thread=thread, api=api, on_progress=on_progress
        )
    view = views.conversation(found)
    if as_json:
        print_json(view)
    else:
        print_json(view["messages"])
        _print_remarks(found)
    return ExitCode.OK


def _print_remarks(found: Conversation) -> None:
    transcript = found.transcript
    if transcript.system is not None:
        err().line(Span(f"{transcript.api} takes the system prompt outside the list: --json has it", "yellow"))
    for remark in transcript.remarks:
        err().line(Span(remark, "yellow"))
    if found.threads > 1:
        err().line(Span(f"thread {found.thread} of {found.threads}, step {found.step}; --thread N", "dim"))
