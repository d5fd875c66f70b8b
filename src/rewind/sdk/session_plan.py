"""What a session is to do, settled when it begins: settings read, the recording that answers found.

``asked`` are the arguments of ``rewind.session`` by name, checked when the program was loaded.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rewind.errors import EnvironmentProblem, SessionNotFound, UsageError
from rewind.inprocess.run import InProcessOptions, InProcessRun
from rewind.model.clock import SystemClock
from rewind.model.session import Session
from rewind.reading.cassettes import RecordedRun, save_cassette, without_telemetry
from rewind.reading.retention import retain
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets
from rewind.runs.upstream import upstream_of
from rewind.sdk.outer_run import outer_run
from rewind.settings import Settings, read_settings
from rewind.store.journal.reader import SessionReader
from rewind.store.library import Library
from rewind.text import plural, size

if TYPE_CHECKING:
    from rewind.sdk.modes import Mode, PathLike

_SECONDS_BETWEEN_LOOKS = 60.0
_look_again: dict[Path, float] = {}
"""Store → when to look at its size again. A server has thousands of sessions, and would look all the time."""


class PlannedSession(NamedTuple):
    """A session that is ready to start."""

    engine: InProcessRun
    tape: SessionReader | None
    """The recording that answers, opened."""
    write_cassette: Callable[[str], None]
    """Writes the session of that id as the file that was asked for. Raises RewindError."""
    make_room: Callable[[], str | None] | None
    """Deletes old sessions, and says in a sentence what it did; raises RewindError. ``None`` without a limit."""
    forget: Callable[[], None]
    """Called when all is over."""


def planned_session(asked: Mapping[str, Any], mode: "Mode") -> PlannedSession:
    """Raises RewindError."""
    settings = read_settings(
        {
            "home": _text(asked["home"]),
            "hosts": tuple(asked["hosts"]),
            "all_hosts": None if asked["all_hosts"] is None else str(bool(asked["all_hosts"])).lower(),
            "ignore": tuple(asked["ignore"]),
            "match": asked["match"],
            "ignore_text": tuple(asked["ignore_text"]),
            "upstream_ca": _text(asked["upstream_ca"]),
            "upstream_proxy": asked["upstream_proxy"],
        }
    )
    library, outer = Library(settings.home), outer_run()
    recorded = None if mode == "record" else _recorded(asked, library, mode)
    tape = None if recorded is None else library.open(recorded)
    # The program is run again: what it asks is answered from a recording, and is none itself.
    passing = outer.passing_store() if outer is not None and outer.again and mode != "replay" else None
    options = InProcessOptions(
        home=passing or settings.home,
        name=asked["name"],
        mode="record" if tape is None else "replay",
        tape=tape,
        on_miss="live" if mode == "extend" else "refuse",
        allow_drift=asked["allow_drift"],
        tools=asked["tools"],
        hosts=settings.hosts,
        all_hosts=settings.all_hosts,
        allowed_hosts=tuple(asked["live_hosts"]),
        ignore=settings.ignore,
        match=settings.match or "renamed",
        ignore_text=settings.ignore_text,
        upstream=upstream_of(settings, connect_to=tuple(asked["connect_to"]), insecure=False),
        tags=dict(asked["tags"]),
        keep=mode != "replay",
        part_of=None if outer is None or outer.again else outer.session,
    )
    if passing is not None:
        forget = partial(shutil.rmtree, passing, ignore_errors=True)
        return PlannedSession(InProcessRun(options), tape, lambda _session_id: None, None, forget)
    write = partial(_write_cassette, asked["cassette"], settings.home)
    is_limited = settings.keep_days is not None or settings.max_size is not None
    make_room = partial(_make_room, settings, SystemClock().now()) if is_limited else None
    return PlannedSession(InProcessRun(options), tape, write, make_room, lambda: None)


def _recorded(asked: Mapping[str, Any], library: Library, mode: "Mode") -> Session | None:
    """The recording that answers; ``None`` where there is none yet and one may be made."""
    name, of, cassette = _kept_name(asked["name"]), _text(asked["of"]), _text(asked["cassette"])
    if of is not None:
        return library.find(of)
    if cassette is not None and (mode == "replay" or Path(cassette).exists()):
        return library.find(cassette)
    if name is None:
        if mode == "extend":
            return None
        raise UsageError(
            "A replay needs a recording: name the session, or give `of`.",
            hint='rewind.session("NAME", mode="replay"), or of=ID, or of="FILE.rw"',
        )
    try:
        session = library.find(name)
        if session.start.name == name:
            return session
        # Names come before prefixes, so it only looks like the id of another one.
        raise SessionNotFound(f"No session is called {name!r}.", hint="See them all: rewind list")
    except SessionNotFound:
        if mode == "extend":
            return None
        raise


def _kept_name(name: str | None) -> str | None:
    """The name as recordings have it: without the secrets of this environment."""
    return None if name is None else Redactor(Secrets.from_environment(os.environ)).text(name)


def _write_cassette(path: "PathLike", home: Path, session_id: str) -> None:
    library = Library(home)
    with library.open(library.find(session_id)) as reader:
        run = RecordedRun(recording=reader.recording(), blob=reader.blob)
        try:
            save_cassette(Path(path), without_telemetry(run))
        except OSError as problem:
            raise EnvironmentProblem(
                f"The cassette {Path(path)} cannot be written: {problem.strerror}.",
                hint=f"rewind export {session_id} --output FILE.rw",
            ) from problem


def _make_room(settings: Settings, began: float) -> str | None:
    now = SystemClock().now()
    if now < _look_again.get(settings.home, 0.0):
        return None
    _look_again[settings.home] = now + _SECONDS_BETWEEN_LOOKS
    dropped = retain(settings.home, settings, now=now, began=began, at_most=0)
    return None if dropped is None else f"{plural(len(dropped.gone), 'old session')} deleted, {size(dropped.bytes)}"


def _text(path: "PathLike | None") -> str | None:
    return None if path is None else os.fspath(path)
