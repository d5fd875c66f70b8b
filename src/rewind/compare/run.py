"""A run as comparing needs it: its moves, known by digests, and what was said, read when it is asked for."""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

from rewind.compare.decision import Decision, decision_of
from rewind.compare.delta import Aspect
from rewind.compare.texts import without_noise
from rewind.conversation.context import parts_text
from rewind.conversation.outline import Bodies, answered_at, held_messages, outline_of, reader_of
from rewind.conversation.retries import retries
from rewind.conversation.sketch import Sketch, answer_digest, history_after, read_said, read_sketch, sketch_of
from rewind.dataclass import dataclass
from rewind.match.tokens import is_drawn_id
from rewind.model.http import HttpRequest
from rewind.model.message import Answered, Asked, Message
from rewind.model.session import Recording
from rewind.model.step import Ending, Step, StepKind, step_outcome
from rewind.providers.api import Api
from rewind.providers.telemetry import telemetry_of

_ID = "{id}"
_SEGMENT = re.compile(r"[^/?&=#]+")
_BROUGHT_ID = re.compile(r'"(?:\w*_)?id"\s*:\s*"([^"\\]{3,200})"')
"""A field of an answer that is called an id."""
_LONGEST_ANSWER = 100_000
"""Bytes of an answer that ids are looked for in."""
_KEPT = 1000
"""Steps whose words are kept in memory: of long runs that differ everywhere, not all of them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Move:
    """One thing the agent did. Tries that failed and were made again belong to the move that came of them."""

    step: Step
    kind: StepKind
    thread: int | None
    """Which conversation; ``None`` for what is not part of one."""
    sketch: Sketch | None
    """Of a call to a model."""
    said: str
    """Digest of the answer."""
    failed: bool = False
    """Whether no good answer came: see :class:`rewind.model.step.StepOutcome`."""
    model_asked: str | None = None
    model_answered: str | None = None
    failures: tuple[int, ...] = ()
    """Steps that failed before this one, which asked the same."""
    fallback_from: str | None = None
    """The model that was asked the same before, and failed."""

    @property
    def index(self) -> int:
        return self.step.index

    def lasting_value(self, aspect: Aspect) -> str | None:
        """The name, or the digest, of what every call says anew; ``None`` for other aspects."""
        match aspect:
            case Aspect.MODEL:
                return self.model_asked
            case Aspect.SNAPSHOT:
                return self.model_answered
        if self.sketch is None:
            return None
        match aspect:
            case Aspect.SYSTEM:
                return self.sketch.system
            case Aspect.TOOLS:
                return self.sketch.tools
            case Aspect.PARAMETERS:
                return self.sketch.settings
        return None


def status_of(move: Move) -> str:
    """How the exchange ended, in a word or two."""
    return answer_status(move.step, failed=move.failed)


def answer_status(step: Step, *, failed: bool = True) -> str:
    """``429``, ``client closed``"""
    response = step.response
    if response is None:
        return "no answer"
    cut = response.ending is not Ending.COMPLETE
    if response.head is None or (cut and response.head.status < 400):
        return response.ending.value.replace("_", " ")
    inside = " with an error inside" if failed and response.head.status < 400 else ""
    return f"{response.head.status}{inside}"


class ComparedRun:
    """A recording that is to be compared. Bodies are read only where a digest is missing or differs."""

    def __init__(
        self,
        recording: Recording,
        bodies: Bodies,
        on_progress: Callable[[int], object] = lambda _done: None,
        answer_body: Callable[[Step], bytes] | None = None,
    ) -> None:
        """``on_progress`` is called with the number of steps read, where all of them must be; ``answer_body`` reads an
        answer without its request."""
        self.recording = recording
        self.bodies = bodies
        self._on_progress = on_progress
        self._answer_body = answer_body or (lambda step: bodies(step)[1])
        self.asked = lru_cache(_KEPT)(self._read_asked)
        """What was asked at a step."""
        self.answered = lru_cache(_KEPT)(self._read_answered)
        """What was answered at a step; ``None`` when nothing was."""
        self._decisions: dict[int, Decision] = {}
        self._steps = {step.index: step for step in recording.steps}

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """In order of arrival. Notes and telemetry ask nothing of anybody, so runs are not compared by them."""
        failed_before = retries(self.recording.steps)
        made_again = set(failed_before.values())
        threads = self._threads
        made = (
            self._move(step, threads.get(step.index), _failures(step.index, failed_before))
            for step in self.recording.steps
            if step.index not in made_again
            and self._kinds[step.index] is not StepKind.NOTE
            and telemetry_of(step.request) is None
        )
        return tuple(_with_fallbacks(made))

    def provider(self, index: int) -> Api:
        """Who reads a step."""
        return reader_of(self._steps[index])[0]

    def _read_asked(self, index: int) -> Asked:
        step = self._steps[index]
        request = HttpRequest(head=step.request.head, body=self.bodies(step)[0])
        return self.provider(index).reader.asked(request)

    def _read_answered(self, index: int) -> Answered | None:
        step = self._steps[index]
        if self._threads.get(index) is not None:
            return answered_at(step, b"", self._answer_body(step))
        return answered_at(step, *self.bodies(step))

    def decision(self, move: Move) -> Decision:
        """What the answer comes to, apart from its words."""
        if (known := self._decisions.get(move.index)) is None:
            failed = status_of(move) if move.failed else ""
            known = decision_of(self.answered(move.index), failed)
            if move.sketch is None and known.text:
                known = replace(known, text=self.without_learnt_ids(known.text))
            self._decisions[move.index] = known
        return known

    def path(self, move: Move) -> str:
        """The path of a request, less the name of the model and ids that were drawn, or learnt from an answer."""
        segments = move.step.request.head.path.split("/")
        return "/".join(
            _ID if segment in self._learnt_ids or is_drawn_id(segment) else _less_model(segment, move.model_asked)
            for segment in segments
        )

    def target(self, move: Move) -> str:
        """The path, and behind it the query."""
        _, mark, query = move.step.request.head.target.partition("?")
        return self.path(move) + mark + self.without_learnt_ids(query)

    def without_learnt_ids(self, text: str) -> str:
        """The text of a request, or of its answer, with one word for every id that an answer brought and a later
        request names."""
        return self._learnt_pattern.sub(_ID, text) if self._learnt_ids else text

    @cached_property
    def _learnt_ids(self) -> frozenset[str]:
        """Ids in answers of plain requests that are part of the path of a later one."""
        brought: set[str] = set()
        used: set[str] = set()
        plain = [move for move in self.moves if move.sketch is None and move.kind is StepKind.HTTP_CALL]
        for move in plain:
            used |= brought.intersection(_SEGMENT.findall(move.step.request.head.target))
            if move is not plain[-1]:
                brought.update(
                    _BROUGHT_ID.findall(self._answer_body(move.step)[:_LONGEST_ANSWER].decode("utf-8", "replace"))
                )
        return frozenset(used)

    @cached_property
    def _learnt_pattern(self) -> re.Pattern[str]:
        ids = "|".join(sorted(map(re.escape, self._learnt_ids), key=len, reverse=True))
        return re.compile(rf"(?<![\w-])(?:{ids})(?![\w-])")

    def role(self, move: Move) -> str | None:
        """Who is spoken to: the system prompt, less ids and times."""
        return without_noise(parts_text(self.asked(move.index).system)) or None

    def held(self, move: Move) -> tuple[Message, ...]:
        """What the model read though the agent did not send it: the history that the provider keeps."""
        earlier = (one.index for one in reversed(self.thread(move.thread)) if one.index < move.index)
        return held_messages(self.asked(move.index), ((self.asked(index), self.answered(index)) for index in earlier))

    def thread(self, number: int | None) -> Sequence[Move]:
        """The moves of one conversation."""
        return self._by_thread.get(number, []) if number is not None else []

    def goes_on_from(self, move: Move) -> Move | None:
        """The latest earlier call whose history, turn and answer make up this call's history."""
        assert move.sketch is not None, "conversations are calls to models"
        candidates = self._by_what_follows.get(move.sketch.history, [])
        return next((one for one in reversed(candidates) if one.index < move.index), None)

    @cached_property
    def _by_what_follows(self) -> dict[str, list[Move]]:
        found: dict[str, list[Move]] = {}
        for move in self.moves:
            if move.sketch is not None:
                found.setdefault(history_after(move.sketch, move.said), []).append(move)
        return found

    @cached_property
    def _by_thread(self) -> dict[int | None, list[Move]]:
        found: dict[int | None, list[Move]] = {}
        for move in self.moves:
            found.setdefault(move.thread, []).append(move)
        return found

    @cached_property
    def _threads(self) -> dict[int, int | None]:
        """As they were found while recording; all bodies are read for a recording that does not say."""
        calls = [step for step in self.recording.steps if self._kinds[step.index] is StepKind.LLM_CALL]
        if all(read_sketch(step.request.sketch) is not None for step in calls):
            return {step.index: step.request.thread for step in calls}
        outline = outline_of(self.recording, self.bodies, self._on_progress)
        return {one.step.index: one.place.thread for one in outline.steps if one.place is not None}

    @cached_property
    def _kinds(self) -> dict[int, StepKind]:
        """A step with a sketch is a call to a model; for the others the codecs are asked."""
        return {
            step.index: StepKind.LLM_CALL if step.request.sketch else reader_of(step)[1]
            for step in self.recording.steps
        }

    def _move(self, step: Step, thread: int | None, failures: tuple[int, ...]) -> Move:
        kind = self._kinds[step.index]
        sketch = None
        asked = step.request.model
        answered = step.response.reading.model if step.response is not None else None
        if kind is StepKind.LLM_CALL:
            sketch = read_sketch(step.request.sketch)
            if sketch is None:
                sketch, asked = self._sketch(step.index), self.asked(step.index).model
        said = read_said(step.response.reading.said) if step.response is not None else None
        error = step.response.reading.error if step.response is not None else None
        ending = step.response.ending if step.response is not None else None
        if said is None:
            read = self.answered(step.index)
            said = answer_digest(read.parts) if read is not None else ""
            if read is not None:
                error, answered = read.error or error, read.model or answered
        return Move(
            step=step,
            kind=kind,
            thread=thread,
            sketch=sketch,
            said=said,
            failed=step_outcome(ending, step.status, error=error is not None).failed,
            model_asked=asked,
            model_answered=answered,
            failures=failures,
        )

    def _sketch(self, index: int) -> Sketch:
        return sketch_of(self.asked(index), self.provider(index), self.recording.session.start.ignore)


def lacks_history(run: ComparedRun, move: Move) -> bool:
    """Whether the provider held a history that the recording does not have."""
    return is_held_elsewhere(run.asked(move.index)) and not run.held(move)


def is_held_elsewhere(asked: Asked) -> bool:
    """Whether the provider is told to go on from what it keeps."""
    return bool(asked.continues or asked.history)


def _less_model(segment: str, model: str | None) -> str:
    return segment.replace(model, "{model}") if model else segment


def _with_fallbacks(moves: Iterable[Move]) -> Iterator[Move]:
    """What failed and was then asked of another model belongs to the move that came of it, as tries do."""
    failed: dict[Hashable, Move] = {}
    found: list[Move] = []
    for move in moves:
        key = move.sketch and (move.sketch.system, move.sketch.history, move.sketch.turn)
        before = failed.pop(key, None) if key else None
        if before is not None and before.model_asked != move.model_asked and before.step.ended <= move.step.request.ts:
            found.remove(before)
            tries = (*before.failures, before.index, *move.failures)
            move = replace(move, failures=tries, fallback_from=before.fallback_from or before.model_asked)
        if key and move.failed:
            failed[key] = move
        found.append(move)
    yield from found


def _failures(index: int, failed_before: dict[int, int]) -> tuple[int, ...]:
    return tuple(reversed(list(_chain(index, failed_before))))


def _chain(index: int, failed_before: dict[int, int]) -> Iterator[int]:
    while (index := failed_before.get(index, 0)) > 0:
        yield index
