"""Since when: the first session that had a value, and the last one before it that had the old value.

Journals are searched as bytes, oldest first; a line is read and its checksum looked at only where the value stands.
What Rewind itself did (replays, forks) is no evidence of when something changed in the world, and is left out.

    first_seen(home, FieldValue(field=CallField.SYSTEM, value=bad.system), old=good.system, until=bad_session)
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from rewind.conversation.sketch import NOTHING, Sketch, read_sketch
from rewind.dataclass import dataclass
from rewind.model.session import Session, SessionStart, Surroundings
from rewind.store.files import Progress, folder_time, read_file, session_folders
from rewind.store.journal.lines import BadLine, unseal
from rewind.store.journal.reader import peek, start_in
from rewind.store.journal.records import surroundings_in

_RULE = str(Sketch()).partition(":")[0]
_SKETCHED = b'"sketch":"%b:' % _RULE.encode()
_LLM_CALL = b'"type":"llm_call"'
_SURROUNDINGS = b'{"kind":"surroundings"'
_REQUEST = (b'{"kind":"request"',)
_ANSWER = (b'{"kind":"step"', b'{"kind":"cut"')


class CallField(StrEnum):
    """The field of a call that has the value."""

    SYSTEM = "system"
    TOOLS = "tools"
    SETTINGS = "settings"
    MODEL = "model"
    """The model that is asked for."""
    SNAPSHOT = "snapshot"
    """The model that answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldValue:
    """A value to search for."""

    field: CallField
    value: str
    """Of system, tools and settings the digest in the call's sketch (``-`` for none), of models the name."""
    asked: str | None = None
    """Of a snapshot: the name that was asked for, since others may have asked for the snapshot itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldUse:
    """A call that had a value."""

    session: Session
    step: int
    ts: float
    """When it was asked; of a snapshot, when it had answered."""
    surroundings: Surroundings | None
    """What that session stood on, where it was looked up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSeen(FieldUse):
    """The first call of all that had the new value."""

    last_without: FieldUse | None
    """The last call with the old value before it, in the session that began last of those that had one."""
    before: int
    """Sessions that had the old value before it."""
    after: int
    """Sessions in which the old value was first used after it: then nothing was simply replaced."""
    unread: int
    """Sessions before it that cannot tell, recorded by an older Rewind or damaged: it may have been there already."""


class _Hit(NamedTuple):
    folder: str
    step: int
    ts: float


def first_seen(
    home: Path,
    new: FieldValue,
    *,
    old: str | None = None,
    until: Session | None = None,
    among: Callable[[SessionStart], bool] = lambda _start: True,
    on_progress: Progress = lambda _done, _total: None,
) -> FirstSeen | None:
    """Which session first had the value; ``None`` if none is known to have had it.

    ``old`` is the value that was there before, of the same field. Sessions that began after ``until`` are not looked
    at. ``among`` says which sessions count, for values that are not one agent's own, such as the name of a model.
    """
    sessions = home / "sessions"
    folders = [name for name in session_folders(home) if until is None or name <= until.folder]
    wanted = _Search(new)
    former = None if old is None else _Search(replace(new, value=old))
    first: _Hit | None = None
    formers: list[_Hit] = []
    unread = 0
    for done, folder in enumerate(folders):
        on_progress(done, len(folders))
        # One that began earlier may have come to the value later, so the first hit is not yet the last word.
        open_question = first is None or _began_by(folder, first.ts)
        if not open_question and former is None:
            break
        data = _journal(sessions, folder)
        hit, cannot_tell = wanted.first(data, folder) if open_question else (None, False)
        was, _ = former.first(data, folder) if former is not None else (None, False)
        if (hit or was or cannot_tell) and _counts(data, folder, among):
            first = min(filter(None, (first, hit)), key=lambda hit: hit.ts, default=None)
            unread += cannot_tell
            formers += [was] if was is not None else []
    on_progress(len(folders), len(folders))
    use = None if first is None else _use(sessions, first)
    if first is None or use is None:
        return None
    earlier = [hit for hit in formers if hit.ts < first.ts]
    return FirstSeen(
        session=use.session,
        step=use.step,
        ts=use.ts,
        surroundings=use.surroundings,
        last_without=None if former is None else _last_use(sessions, earlier, former, first.ts),
        before=len(earlier),
        after=len(formers) - len(earlier),
        unread=unread,
    )


class _Search:
    """Finds the lines that have a mark."""

    def __init__(self, mark: FieldValue) -> None:
        self._mark = mark
        self._kinds = _ANSWER if mark.field is CallField.SNAPSHOT else _REQUEST
        self._sketched = mark.field not in (CallField.MODEL, CallField.SNAPSHOT)
        self._needle = _needle(mark)

    def first(self, data: bytes, folder: str) -> tuple[_Hit | None, bool]:
        """The first call that has it; if none has, whether a damaged or old line may have had it."""
        damaged = False
        for hit in self._hits(data, folder):
            if hit is not None:
                return hit, False
            damaged = True
        without = self._sketched and _SKETCHED not in data and _LLM_CALL in data
        return None, damaged or without

    def last(self, data: bytes, folder: str, before: float) -> _Hit | None:
        """The last call before that moment that has it."""
        hits = [hit for hit in self._hits(data, folder) if hit is not None and hit.ts < before]
        return hits[-1] if hits else None

    def _hits(self, data: bytes, folder: str) -> Iterator[_Hit | None]:
        """Of the lines of the right kind in which the needle stands; ``None`` for a damaged one."""
        at = _find(self._needle, data, 0)
        while at >= 0:
            line = _line_at(data, at)
            if data.startswith(self._kinds, line.start):
                try:
                    if (hit := self._hit(data, folder, line)) is not None:
                        yield hit
                except BadLine:
                    yield None
            at = _find(self._needle, data, line.stop)

    def _hit(self, data: bytes, folder: str, line: slice) -> _Hit | None:
        """``None`` where the needle stands for something else. Raises BadLine."""
        fields = unseal(data[line])
        step, ts = fields.get("step"), fields.get("ts")
        if not isinstance(step, int) or not isinstance(ts, int | float) or not math.isfinite(ts):
            return None
        mark = self._mark
        if self._sketched:
            text = fields.get("sketch")
            sketch = read_sketch(text) if isinstance(text, str) else None
            has = sketch is not None and getattr(sketch, mark.field.value) == mark.value
        else:
            has = fields.get("model") == mark.value and (
                mark.asked is None or _asked_for(data, line.start, step) == mark.asked
            )
        return _Hit(folder, step, ts) if has else None


def _needle(mark: FieldValue) -> bytes | re.Pattern[bytes]:
    """What a line with the mark has, and few others have. Plain bytes are found four times as fast."""
    if mark.field in (CallField.MODEL, CallField.SNAPSHOT):
        # Text is written as it is, except in a line with half a surrogate pair.
        forms = {json.dumps(mark.value, ensure_ascii=plain).encode(errors="replace") for plain in (True, False)}
        either = sorted(b'"model":' + form for form in forms)
        return either[0] if len(either) == 1 else re.compile(b"|".join(map(re.escape, either)))
    if mark.field is CallField.SYSTEM:
        return _SKETCHED + b"%b:" % mark.value.encode()
    if mark.value != NOTHING:
        return b":%b:" % mark.value.encode()
    return re.compile(re.escape(_SKETCHED) + rb'(?:[^:"]*:){%d}-:' % (1 if mark.field is CallField.TOOLS else 2))


def _find(needle: bytes | re.Pattern[bytes], data: bytes, start: int) -> int:
    if isinstance(needle, bytes):
        return data.find(needle, start)
    found = needle.search(data, start)
    return -1 if found is None else found.start()


def _line_at(data: bytes, at: int) -> slice:
    end = data.find(b"\n", at)
    return slice(data.rfind(b"\n", 0, at) + 1, end if end >= 0 else len(data))


def _asked_for(data: bytes, answer: int, step: int) -> str | None:
    """The model that was asked for at that step: its request stands before its answer."""
    at = answer
    while (at := data.rfind(b'"step":%d,' % step, 0, at)) >= 0:
        line = _line_at(data, at)
        if data.startswith(_REQUEST, line.start):
            with suppress(BadLine):
                fields = unseal(data[line])
                if fields.get("step") == step:
                    model = fields.get("model")
                    return model if isinstance(model, str) else None
    return None


def _journal(sessions: Path, folder: str) -> bytes:
    try:
        return read_file(sessions / folder / "journal.jsonl")
    except OSError:  # gone meanwhile, or never a session
        return b""


def _counts(data: bytes, folder: str, among: Callable[[SessionStart], bool]) -> bool:
    start = start_in(data[_line_at(data, 0)], folder)
    by_rewind = start.replay_of is not None or start.forked_from is not None
    return not by_rewind and among(start)


def _use(sessions: Path, hit: _Hit) -> FieldUse | None:
    found = peek(sessions / hit.folder)
    if found is None:
        return None
    surroundings = _surroundings(_journal(sessions, hit.folder))
    return FieldUse(session=found[0], step=hit.step, ts=hit.ts, surroundings=surroundings)


def _last_use(sessions: Path, hits: list[_Hit], former: _Search, before: float) -> FieldUse | None:
    """In the session that began last, as long as it is still there."""
    for hit in reversed(hits):
        last = former.last(_journal(sessions, hit.folder), hit.folder, before)
        if last is not None and (use := _use(sessions, last)) is not None:
            return use
    return None


def _surroundings(data: bytes) -> Surroundings | None:
    at = data.find(_SURROUNDINGS)
    while at >= 0:
        with suppress(BadLine):
            return surroundings_in(unseal(data[_line_at(data, at)]))
        at = data.find(_SURROUNDINGS, at + 1)
    return None


def _began_by(folder: str, ts: float) -> bool:
    """Whether the session began before that moment."""
    try:
        moment = folder_time(ts)
    except (ValueError, OverflowError, OSError):
        return True  # a clock that was far off
    return folder[: len(moment)] <= moment
