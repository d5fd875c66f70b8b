"""The steps of an opened session as a run needs them: as calls, as answers, and on a tape."""

import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress

from rewind.conversation.sketch import brings_results
from rewind.errors import DamagedStore
from rewind.gateway.listener import has_waiting_client
from rewind.gateway.playout import why_unplayable
from rewind.match.call import Call, understand
from rewind.model.http import HttpRequest, HttpResponse, LongBody
from rewind.model.ids import MatchKey
from rewind.model.step import Step, StepKind
from rewind.playback.tape import Tape
from rewind.store.journal.reader import SessionReader
from rewind.store.journal.skim import skim
from rewind.store.journal.writer import Stream

WARM_BYTES = 16 * 1024 * 1024
"""How many bytes of answers are read before anybody asks for them."""
WARM_STEPS = 1000
"""How many answers are read even if the agent waits: some 20 ms, and each is then played in half the time."""
_TOOLS_RUN = "The agent's own tools were not recorded, so they run for real (@rewind.tool records them)."
_STEP_BYTES = 4096
"""What a step that was read takes, less the bytes of its answer."""
LONG_BYTES = 8 * 1024 * 1024
"""A longer answer is read while it is played."""


class RecordedSteps:
    """Reads from disk what is asked for; the reader must stay open."""

    def __init__(
        self, reader: SessionReader, ignore: tuple[str, ...] = (), *, only_played: bool = False, skims: bool = False
    ) -> None:
        """``ignore`` are the rules in force now, by which calls are the same.

        ``only_played`` where the steps are to be played and nothing else: then what they mean is not worked out before
        it is needed. With ``skims`` a step is not even read before it is played, where that can be done.
        """
        self._reader = reader
        self._ignore = ignore
        self._skimmed = reader.skimmed(skim) if skims else None
        self._ahead: dict[int, Step] = {}
        """Steps that were read before anybody asked for them."""
        self._ready: dict[int, HttpResponse] = {}
        """Answers that were."""
        bare = reader.bare_recording() if only_played and self._skimmed is None else None
        self._without_keys = bare is not None
        self.recording = (self._skimmed and self._skimmed.recording) or bare or reader.recording()
        """Without its steps where these are read one at a time."""

    @property
    def unrecorded_tools(self) -> str | None:
        """A sentence on tools that ran when it was recorded, and will run again: the model heard of their results, but
        no call of them was recorded."""
        if self._skimmed is not None:
            return _TOOLS_RUN if self._skimmed.uses_tools else None
        requests = [step.request for step in self.recording.steps]
        if any(request.kind is StepKind.TOOL_CALL for request in requests):
            return None
        if not any(brings_results(request.sketch) for request in requests):
            return None
        return _TOOLS_RUN

    @property
    def is_skimmed(self) -> bool:
        """Whether steps are read one at a time. All of them are calls of models and of the web."""
        return self._skimmed is not None

    def request(self, step: Step) -> HttpRequest:
        return HttpRequest(head=step.request.head, body=self._reader.blob(step.request.body))

    def call(self, step: Step) -> Call:
        return understand(self.request(step), ignore=self._ignore, index=step.index)

    def answer(self, step: Step) -> HttpResponse | None:
        """The recorded answer, to be played. Raises DamagedStore if it cannot be read, or not be played."""
        if (ready := self._ready.pop(step.index, None)) is not None:
            return ready
        response = step.response
        if response is None or response.head is None:
            return None
        name, is_long = response.body, response.body_size > LONG_BYTES and response.head.status != 101
        if is_long:
            next(self._reader.blocks(name), None)  # one of which a part is gone is refused; the rest is read later
        answer = HttpResponse(
            head=response.head,
            body=b"" if is_long else self._reader.blob(name),
            chunks=response.chunks,
            trailers=response.trailers,
            long_body=LongBody(response.body_size, lambda: self._reader.blocks(name)) if is_long else None,
        )
        if why := why_unplayable(step.request.head, answer):
            hint = f"rewind inspect {self.recording.session.ref}:{step.index}"
            raise DamagedStore(f"The answer cannot be played: {why}.", hint=hint)
        return answer

    def with_readings(self, steps: Iterable[Step]) -> tuple[Step, ...]:
        """These steps, with what their answers say in short."""
        return tuple(map(self._reader.with_reading, steps))

    def output(self, name: Stream) -> bytes | None:
        """What passed through a standard stream of the agent; ``None`` where that was not recorded."""
        return self._reader.output(name)

    def tape(self, *, unanswered_from: int | None = None) -> Tape:
        """All of them, to be played once; see ``Tape``."""
        other_rules = self._without_keys or self.recording.session.start.ignore != self._ignore
        key_of = self._key_now if other_rules else None
        if self._skimmed is not None and unanswered_from is None:
            return Tape.of_entries(self._skimmed.entries, self._step, key_of)
        return Tape(self.recording.steps, key_of, unanswered_from=unanswered_from)

    def _step(self, index: int) -> Step:
        assert self._skimmed is not None, "the recording is not held"
        return self._ahead.pop(index, None) or self._skimmed.step(index)

    def _key_now(self, step: Step) -> MatchKey:
        """By the rules in force now; of a request that is damaged the recorded one."""
        try:
            return self.call(step).key
        except DamagedStore:
            return step.request.match_key

    def warm_up(self, tape: Tape, listener: socket.socket) -> Iterator[int]:
        """Read answers from disk, so that no call needs to wait for that: the first ones in any case, which takes a
        few milliseconds, and more until the agent makes its first call.

        What it gives reads on, one answer at a time, for whoever has nothing else to do.
        """
        self._reader.make_ready()
        tape.make_ready()
        ahead = self._read_ahead(tape)
        for number, size in enumerate(ahead, 1):
            if (number >= WARM_STEPS or size > LONG_BYTES) and has_waiting_client(listener):
                break
        return ahead

    def _read_ahead(self, tape: Tape) -> Iterator[int]:
        """How many bytes are held, after each answer."""
        size = 0
        for index in tape.indexes():
            if size > WARM_BYTES:
                return
            if tape.played(index):
                continue
            with suppress(DamagedStore):  # told when that step is wanted
                step = tape.step(index)
                if self._skimmed is not None:
                    self._ahead[index] = step
                size += _STEP_BYTES
                if step.response is not None and step.response.body_size <= LONG_BYTES:
                    size += step.response.body_size
                    if (answer := self.answer(step)) is not None:
                        self._ready[index] = answer
            yield size
