"""One step of a long session, understood without reading the session.

While recording, each call was given its conversation and a sketch. They tell which calls a step goes on from, so only
those are read. What the journal tells is checked by what is read; where it does not tell, or tells something else,
everything up to the step is read.
"""

from collections.abc import Sequence
from dataclasses import replace

from rewind.conversation.outline import Outline, OutlineStep, reader_of
from rewind.conversation.retries import retries
from rewind.conversation.sketch import Sketch, history_after, read_said, read_sketch
from rewind.conversation.threads import ThreadPlace
from rewind.dataclass import dataclass
from rewind.model.session import Recording
from rewind.model.step import Step, StepKind
from rewind.providers.catalogue import FALLBACK, identify
from rewind.reading.progress import OnProgress, ignored
from rewind.reading.session import read_outline
from rewind.store.journal.reader import SessionReader

_MOST_READ = 300
"""Steps that are read to find who started a conversation; beyond, all are."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call to a model, by what the journal tells of it."""

    step: Step
    thread: int
    sketch: Sketch
    leads_to: str
    """The history of a call that simply goes on from it."""

    @property
    def index(self) -> int:
        return self.step.index


def outline_around(
    reader: SessionReader,
    recording: Recording,
    index: int,
    also: int | None = None,
    *,
    on_progress: OnProgress = ignored,
) -> Outline:
    """Step ``index``, step ``also``, and what it takes to tell where the first stands in what came before it."""
    found = None
    if (calls := _told(recording)) is not None and (near := _near(calls, index)) is not None:
        chosen = {index, also, *near}
        steps = tuple(step for step in recording.steps if step.index in chosen)
        found = _placed(read_outline(reader, replace(recording, steps=steps)), recording, calls, near, index)
    return found or read_outline(reader, recording, on_progress)


def last_call(
    reader: SessionReader, recording: Recording, thread: int | None
) -> tuple[OutlineStep, ThreadPlace, int] | None:
    """The last call to a model, or the last of that conversation, its place, and how many conversations there are.

    ``None`` where the journal does not tell, or the provider keeps what was said before.
    """
    told = _told(recording)
    calls = [call for call in told or () if identify(call.step.request.head) is not FALLBACK]
    fitting = [call for call in calls if thread in (None, call.thread)]
    if told is None or not fitting:
        return None
    last = fitting[-1]
    entry = read_outline(reader, replace(recording, steps=(last.step,))).steps[0]
    if entry.place is None or _is_held(entry):
        return None
    return entry, replace(entry.place, thread=last.thread), len({call.thread for call in told})


def _told(recording: Recording) -> list[_Call] | None:
    """The calls that belong to a conversation; ``None`` where the journal does not tell of all of them."""
    if recording.session.file is not None:
        return None  # a file from somebody else: only its bodies count
    calls = []
    for step in recording.steps:
        request, sketch = step.request, read_sketch(step.request.sketch)
        if sketch is None:
            if request.sketch or request.kind is StepKind.LLM_CALL or reader_of(step)[1] is StepKind.LLM_CALL:
                return None
        elif request.thread is not None:
            said = read_said(step.response.reading.said) if step.response is not None else None
            calls.append(_Call(step, request.thread, sketch, history_after(sketch, said or "")))
    return calls


def _near(calls: Sequence[_Call], index: int) -> list[int] | None:
    """The steps that tell where a step stands; ``None`` if these are too many."""
    this = next((call for call in calls if call.index == index), None)
    if this is None:
        return []
    before = [call for call in calls if call.index < index]
    mine = [call for call in before if call.thread == this.thread]
    if not mine:
        return _unfinished(before)
    parents = [call for call in mine if call.leads_to == this.sketch.history]
    alike = any(
        call.sketch.history == this.sketch.history or call.step.request.match_key == this.step.request.match_key
        for call in mine
    )
    if len(parents) == 1 and not alike and parents[0].step.ended <= this.step.request.ts:
        return [parents[0].index]
    return [call.index for call in mine]


def _unfinished(before: Sequence[_Call]) -> list[int] | None:
    """The calls whose tools may have started a conversation: those that no other goes on from.

    Of a conversation in which the sketches do not tell that, all calls.
    """
    gone_on = {call.sketch.history for call in before}
    last = {call.thread: call.index for call in before}
    unclear = {call.thread for call in before if call.leads_to not in gone_on and call.index != last[call.thread]}
    near = [call.index for call in before if call.thread in unclear or call.index == last[call.thread]]
    return near if len(near) <= _MOST_READ else None


def _placed(
    outline: Outline, recording: Recording, calls: Sequence[_Call], near: Sequence[int], index: int
) -> Outline | None:
    """The outline with the step where it stands in the session; ``None`` if that is not what the journal tells."""
    entry = outline.step(index)
    assert entry is not None, "the step itself is among those that are read"
    thread = next((call.thread for call in calls if call.index == index), None)
    if (entry.place is None) != (thread is None) or any(map(_is_held, outline.steps)):
        return None
    place = None
    if entry.place is not None and thread is not None:
        mine = {call.index for call in calls if call.thread == thread and call.index in near}
        goes_on = entry.place.parent in mine
        if goes_on != bool(mine) or (entry.place.parent is not None and not goes_on):
            return None
        place = replace(entry.place, thread=thread)
    here = replace(entry, place=place, retry_of=retries(recording.steps).get(index))
    return replace(outline, steps=tuple(here if one is entry else one for one in outline.steps))


def _is_held(entry: OutlineStep) -> bool:
    """Whether the provider keeps what was said before, so that earlier calls tell what the model read."""
    return bool(entry.asked.continues or entry.asked.history)
