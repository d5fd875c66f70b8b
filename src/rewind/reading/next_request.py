"""What an agent is about to send, beside what its recording holds."""

from pathlib import Path

from rewind.conversation.context import ContextChange, ContextEntry, compare_contexts, context_of
from rewind.conversation.outline import Outline, OutlineStep
from rewind.dataclass import dataclass
from rewind.match.call import Call
from rewind.model.http import HttpRequest
from rewind.model.message import Asked
from rewind.model.session import Session
from rewind.model.step import StepKind
from rewind.reading.progress import OnProgress, ignored
from rewind.reading.session import read_outline
from rewind.store.library import Library


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRequest:
    """A request that the agent is about to send, and the recorded step that will answer it."""

    recorded: OutlineStep
    request: HttpRequest
    """Redacted."""
    asked: Asked
    entries: tuple[ContextEntry, ...]
    """What the model is to read; empty for what is no call to a model."""
    since: int | None
    """The call that it goes on from."""
    changes: tuple[ContextChange, ...]
    """What is new since that call."""

    @property
    def index(self) -> int:
        return self.recorded.step.index


def recorded_outline(home: Path, session: Session, on_progress: OnProgress = ignored) -> Outline:
    """The recorded run, understood; a body that is damaged counts as empty here."""
    with Library(home).open(session) as reader:
        return read_outline(reader, reader.recording(), on_progress)


def next_request(call: Call, index: int, outline: Outline) -> NextRequest:
    """The call that step ``index`` of the recording will answer, compared with the one that it goes on from."""
    recorded = outline.step(index)
    assert recorded is not None, "an outline has every step of its recording"
    asked = call.provider.reader.asked(call.request)
    since = recorded.place.parent if recorded.place is not None else None
    before = None if since is None else outline.step(since)
    entries: tuple[ContextEntry, ...] = ()
    changes: tuple[ContextChange, ...] = ()
    if recorded.kind is StepKind.LLM_CALL:
        entries = context_of(asked, outline.held(index))
    if before is not None and since is not None:
        changes = compare_contexts(context_of(before.asked, outline.held(since)), entries, before.answered)
    return NextRequest(
        recorded=recorded, request=call.request, asked=asked, entries=entries, since=since, changes=changes
    )
