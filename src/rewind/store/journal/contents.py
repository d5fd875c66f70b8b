"""A whole journal, line by line: what it says, and what it can no longer say."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from io import BytesIO
from typing import BinaryIO

from rewind.dataclass import dataclass
from rewind.model.session import SessionEnd, SessionStart, Surroundings
from rewind.model.step import StepRequest
from rewind.store.journal.lines import BadLine, Fields, is_torn, lines_in_damaged_line, unseal
from rewind.store.journal.records import (
    AnswerLine,
    as_count,
    session_end,
    session_start,
    step_answer,
    step_request,
    surroundings_in,
)


@dataclass(slots=True)
class Journal:
    """All that a journal says, and what it can no longer say."""

    start: SessionStart | None = None
    end: SessionEnd | None = None
    pack_size: int | None = None
    requests: dict[int, StepRequest] = field(default_factory=dict)
    answers: dict[int, AnswerLine] = field(default_factory=dict)
    unread: set[int] = field(default_factory=set)
    """Steps of which only a short line tells the request or the answer: what it means is not in the journal."""
    surroundings: Surroundings | None = None
    damage: list[str] = field(default_factory=list)

    def take(self, fields: Fields) -> None:
        """Take in one line. Raises BadLine if it makes no sense."""
        match fields.get("kind"):
            case "session":
                self.start = session_start(fields)
            case "request" | "asked":
                request = step_request(fields)
                known = self.requests.get(request.index)
                if known is None or not known.match_key:
                    self.requests[request.index] = request
            case "step" | "cut" | "answered" as kind:
                answer, index = step_answer(fields), fields["step"]
                if index not in self.answers or index in self.unread:
                    self.answers[index] = answer
                    (self.unread.add if kind == "answered" else self.unread.discard)(index)
            case "surroundings":
                self.surroundings = surroundings_in(fields)
            case "end":
                self.end = session_end(fields)
                self.pack_size = fields.get("pack_size")


@contextmanager
def without_collector() -> Iterator[None]:
    """Thousands of values are made and none of them in a circle: looking for circles takes a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read_journal(data: bytes | BinaryIO, short_lines: bytes = b"", *, run: str | None = None) -> Journal:
    """Read what can be read, and name what cannot. ``short_lines`` stand beside a journal whose writer still runs, or
    was killed; ``run``: whose journal it is."""
    journal = Journal()
    numbers: set[int] = set()
    bad, last = 0, -1
    # Line by line: all of them at once would take as much memory as what they say.
    for number, whole in enumerate(BytesIO(data) if isinstance(data, bytes) else data, 1):
        line = whole.removesuffix(b"\n")
        is_tail = line == whole
        try:
            sound = [unseal(line)]
        except BadLine as why:
            sound = lines_in_damaged_line(line)
            if is_tail and journal.end is None and not sound and is_torn(line):
                break
            bad += 1
            journal.damage.append(f"journal line {number}: {why}")
        for fields in sound:
            place = as_count(fields.get("n"))
            if place is not None:
                if place <= last:
                    journal.damage.append(f"journal line {number}: it stands twice, or not where it was written")
                numbers.add(place)
                last = place
            try:
                if run is not None and fields.get("run") != run:
                    raise BadLine("it belongs to another session")
                journal.take(fields)
            except BadLine as why:
                journal.damage.append(f"journal line {number}: it cannot be understood: {why}")
        if is_tail:  # what a recorder writes meanwhile is not the next line
            break
    _take_short_lines(journal, short_lines, run)
    journal.unread.update(index for index, request in journal.requests.items() if not request.match_key)
    missing = max(numbers, default=-1) + 1 - len(numbers)
    if missing > bad:
        journal.damage.append(f"journal: {missing - bad} line(s) are gone without a trace")
    return journal


def _take_short_lines(journal: Journal, data: bytes, run: str | None) -> None:
    *lines, tail = data.split(b"\n")
    for number, line in enumerate((*lines, tail), 1):
        try:
            fields = unseal(line)
            if run is not None and fields.get("run") != run:
                raise BadLine("it belongs to another session")
            journal.take(fields)
        except BadLine as why:
            if number <= len(lines) or not is_torn(line):
                journal.damage.append(f"journal.part line {number}: {why}")
