"""Import: a file that holds a session, or what another tool recorded, becomes a session of the store.

A session is made from its file alone, so that the same file is the same session in every store. Where another tool's
file does not say when it was recorded, the ``Date`` of an answer does; where nothing says it, the time is unknown
(:data:`rewind.model.session.UNDATED`).
"""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime
from itertools import count
from pathlib import Path
from stat import S_ISREG

from rewind.conversation.threads import Threads
from rewind.dataclass import dataclass
from rewind.errors import BadCassette, SessionNotFound, UsageError
from rewind.formats.exchanges import ForeignExchange, ForeignRecording, sound_moment
from rewind.formats.har import read_har
from rewind.formats.mitmproxy_flows import read_flows
from rewind.formats.recognise import ACCEPTED, BEGINNING, FileKind, is_recording, kind_of, name_without_ending
from rewind.formats.trace.lines import TraceFile
from rewind.formats.trace.session import DIGEST_TAG, digest_of, kept_as, remarks_of, session_of_trace
from rewind.formats.vcr import read_vcr
from rewind.match.call import understand
from rewind.model.http import HttpRequest, without_headers
from rewind.model.ids import BlobId, SessionId, blob_id
from rewind.model.session import UNDATED, Recording, Session, SessionEnd, SessionFile, SessionStart, Status
from rewind.model.step import Ending, Step, StepResponse
from rewind.providers.hosts import LLM_HOSTS, HostRules
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets
from rewind.runs.step_writer import AnswerRecorder, StepSummary
from rewind.runs.tally import Tally
from rewind.store.cassette.read import read_cassette, read_cassette_file
from rewind.store.cassette.seal import ValueBudget
from rewind.store.files import folder_name, reason
from rewind.store.imported_sessions import import_session
from rewind.store.library import Library
from rewind.store.session_files import SessionFileReader, remarks_on
from rewind.store.trace_files import open_trace
from rewind.version import __version__

FILE_LIMIT = 256 * 1024 * 1024
"""Other tools' files, and what comes through a pipe, are read whole."""
MOST_EXCHANGES = 100_000
_LONGEST_NAME = 120
_NOT_ENTERED = frozenset(("__pycache__", "node_modules", "site-packages"))
_FOREIGN = {FileKind.HAR: read_har, FileKind.FLOWS: read_flows, FileKind.VCR: read_vcr}


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What came of a file."""

    session_id: str
    steps: int
    tool: str
    """What wrote the file: ``rewind``, ``rewind trace``, ``vcrpy``, ``HAR (mitmproxy)``, ``mitmproxy`` …"""
    new: bool
    """False when the very same session was there already, and nothing was written."""
    name: str | None = None
    """What the session is called in the store; one that was there already keeps its name."""
    replayable: bool = True
    """Whether an agent can be answered from it; not from a trace."""
    remarks: tuple[str, ...] = ()
    """What a reader should know of what could not be taken over as it was."""


def import_file(home: Path, path: Path, *, name: str | None = None) -> Imported:
    """Read the file, whatever tool wrote it, and keep it as a session; ``name`` in place of its own.

    Raises BadCassette for a file that cannot be read; the store is untouched then.
    """
    try:
        if not S_ISREG(path.stat().st_mode):
            raise BadCassette("It is not a file.", path=path, hint=ACCEPTED)
    except OSError as error:
        raise BadCassette(f"It cannot be opened: {reason(error)}.", path=path) from error
    return _import(home, _Source(shown=str(path), path=path), name)


def import_named(home: Path, file: str, *, name: str | None = None) -> Imported:
    """The same for a file as a command line names it: a pipe, too, and ``-`` for stdin, is read to its end.

    Raises SessionNotFound for one that is not there.
    """
    shown = "stdin" if file == "-" else file
    path = Path("/dev/stdin" if file == "-" else file)
    if path.is_file() and file != "-":
        return import_file(home, path, name=name)
    if path.is_dir() or not path.exists():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise SessionNotFound(f"{file!r} {what}.", hint="rewind import FILE, or the folder that holds it")
    try:
        with path.open("rb") as pipe:
            if pipe.isatty():
                raise UsageError(
                    f"{shown} is a terminal.", hint="rewind import FILE, or a command that writes one | rewind import -"
                )
            source = _Source(shown=shown, path=Path(shown), piped=pipe.read(FILE_LIMIT + 1))
    except OSError as error:
        raise BadCassette(f"It cannot be read: {reason(error)}.", path=shown) from error
    source.whole()  # within the limit
    return _import(home, source, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderContent:
    """What a folder and those below it hold."""

    recordings: tuple[str, ...]
    """Files that can be imported, or that say they can, in order of their names."""
    others: int
    """Files that are something else."""


def recordings_in(folder: str) -> FolderContent:
    """What can be imported of a folder. Links to folders are not followed; hidden ones and stores are passed over.

    Raises SessionNotFound where there is nothing.
    """
    found: list[str] = []
    others = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOT_ENTERED)
        if "journal.jsonl" in names:
            continue  # a session of a store
        for path in (Path(place, name) for name in sorted(names)):
            try:
                beginning = _Source(shown=str(path), path=path).beginning() if path.is_file() else b""
            except BadCassette:
                found.append(str(path))  # it cannot be opened, and the import says why
                continue
            if is_recording(beginning, path.name):
                found.append(str(path))
            else:
                others += 1
    if not found:
        raise SessionNotFound(f"{folder!r} is a folder that holds no file that can be imported.", hint=ACCEPTED)
    return FolderContent(recordings=tuple(found), others=others)


def _import(home: Path, source: "_Source", name: str | None) -> Imported:
    match kind_of(source.beginning(), source.path.name):
        case None:
            raise BadCassette("It is not a file that Rewind can import.", path=source.shown, hint=ACCEPTED)
        case FileKind.CASSETTE:
            return _import_cassette(home, source, name)
        case FileKind.TRACE:
            return _import_trace(home, source, name)
        case kind:
            return _import_foreign(home, source, kind, name)


def _import_cassette(home: Path, source: "_Source", name: str | None) -> Imported:
    if source.piped is None:
        portable = read_cassette_file(source.path)
    else:
        portable = read_cassette(source.piped, file=source.shown)
    remarks = remarks_on(portable)
    recording = SessionFileReader(portable).recording()
    session = recording.session
    library = Library(home)
    if session.id in library.ids():
        # What somebody called it here does not make it another session.
        name = library.find(session.id).start.name
    elif name is None:
        name = session.start.name
    else:
        name = _kept_name(name)
    session = replace(session, start=replace(session.start, name=name))
    recording = replace(recording, session=session)
    new = import_session(home, replace(portable, recording=recording, meanings=None))
    return Imported(
        session_id=session.id,
        steps=len(recording.steps),
        tool="rewind",
        new=new,
        name=name,
        replayable=not recording.is_from_trace,
        remarks=remarks,
    )


def _import_trace(home: Path, source: "_Source", name: str | None) -> Imported:
    """A trace that has grown since its import is another session: both stay, and neither changes."""
    if source.piped is None:
        file = open_trace(source.path)
    else:
        file = TraceFile(name=source.shown, data=source.piped, output=lambda _ref: None)
    portable = session_of_trace(file)
    digest = digest_of(file, portable)
    session_id, there = _place(Library(home), digest)
    if there is None:
        portable = kept_as(portable, session_id, digest, None if name is None else _kept_name(name))
        import_session(home, portable)
    session = there or portable.session
    return Imported(
        session_id=session_id,
        steps=len(portable.recording.steps),
        tool="rewind trace",
        new=there is None,
        name=session.start.name,
        replayable=False,
        remarks=remarks_of(session),
    )


def _import_foreign(home: Path, source: "_Source", kind: FileKind, name: str | None) -> Imported:
    data = source.whole()
    digest = hashlib.sha256(data).hexdigest()
    try:
        foreign = _FOREIGN[kind](data)
        if not foreign.exchanges:
            left_out = "".join(f" {remark[:1].upper()}{remark[1:]}." for remark in foreign.remarks[:3])
            raise BadCassette(f"It holds no exchanges, so there is nothing to import.{left_out}")
        if len(foreign.exchanges) > MOST_EXCHANGES:
            raise BadCassette(f"It holds more than {MOST_EXCHANGES:,} exchanges.")
        _check_values(foreign.exchanges)
    except BadCassette as problem:
        raise problem.about(source.shown) from problem
    session_id, session = _place(Library(home), digest)
    new = session is None
    if session is None:
        portable = session_of_exchanges(
            foreign,
            session_id=session_id,
            name=name or name_without_ending(source.path.name),
            tags={"source": foreign.tool, DIGEST_TAG: digest[:16]},
            env=os.environ,
        )
        session, new = portable.session, import_session(home, portable)
    return Imported(
        session_id=session_id,
        steps=len(foreign.exchanges),
        tool=foreign.tool,
        new=new,
        name=session.start.name,
        remarks=() if session.end is None else session.end.remarks,
    )


def _kept_name(name: str) -> str:
    """A name that somebody gave here, without the secrets of this environment."""
    return Redactor(Secrets.from_environment(os.environ)).text(name)


def _check_values(exchanges: Sequence[ForeignExchange]) -> None:
    """Raises BadCassette for bodies that would take far more memory than their size tells."""
    budget = ValueBudget()
    for index, exchange in enumerate(exchanges, 1):
        answered = b"" if exchange.response is None else exchange.response.body
        for name, body in ((f"request {index}", exchange.request.body), (f"answer {index}", answered)):
            form = "json" if body[:64].lstrip()[:1] in (b"{", b"[") else "text"
            if (problem := budget.body(name, form, body)) is not None:
                raise BadCassette(problem)


def _place(library: Library, digest: str) -> tuple[SessionId, Session | None]:
    """The id that this file always gets, and the session that it has become already.

    Ids are short: where another session has it by chance, the next one is taken.
    """
    taken = set(library.ids())
    for attempt in count():
        session_id = SessionId(hashlib.sha256(f"{digest}/{attempt}".encode()).hexdigest()[:8])
        if session_id not in taken:
            return session_id, None
        there = library.find(session_id)
        if there.start.tags.get(DIGEST_TAG) == digest[:16]:
            return session_id, there
    raise AssertionError("counting has no end")


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A file; or what came through a pipe, which can be read only once."""

    shown: str
    """As messages name it."""
    path: Path
    piped: bytes | None = None
    """All that came through the pipe."""

    def beginning(self) -> bytes:
        return self._read(BEGINNING)

    def whole(self) -> bytes:
        data = self._read(FILE_LIMIT + 1)
        if len(data) > FILE_LIMIT:
            megabytes = FILE_LIMIT // 1024 // 1024
            raise BadCassette(f"It is larger than {megabytes} MB, the most that Rewind reads.", path=self.shown)
        return data

    def _read(self, most: int) -> bytes:
        if self.piped is not None:
            return self.piped[:most]
        try:
            with self.path.open("rb") as file:
                return file.read(most)
        except OSError as error:
            raise BadCassette(f"It cannot be opened: {reason(error)}.", path=self.shown) from error


# ── another tool's exchanges as a session ───────────────────────────────────────────────────────────────────────────


def session_of_exchanges(
    foreign: ForeignRecording, *, session_id: SessionId, name: str, tags: Mapping[str, str], env: Mapping[str, str]
) -> SessionFile:
    """The session that these exchanges make, redacted and understood as if they had just been recorded.

    ``env`` holds credentials that may be in them, too.
    """
    redactor = Redactor(Secrets.from_environment(env))
    for exchange in foreign.exchanges:
        # A key may stand in a body before the first header that names it. Cookies come and go, and wait their turn.
        head = exchange.request.head
        redactor.secrets.learn(replace(head, headers=without_headers(head.headers, ("cookie",))))
    tally = Tally()
    blobs: dict[BlobId, bytes] = {}
    moments = tuple(_moments(foreign.exchanges, tally))
    threads = Threads(with_starters=False)
    steps = tuple(
        _StepOfExchange(index, redactor, threads, blobs, tally).step(exchange, ts)
        for index, (exchange, ts) in enumerate(zip(foreign.exchanges, moments, strict=True), 1)
    )
    remarks = (*map(redactor.text, foreign.remarks), *tally.remarks)
    start = SessionStart(
        id=session_id,
        name=redactor.text(name)[:_LONGEST_NAME],
        command=(),
        cwd="",
        started=moments[0] if moments else UNDATED,
        rewind_version=__version__,
        tags=dict(tags),
        hosts=_other_hosts(steps),
        imported=True,
    )
    end = SessionEnd(
        ended=max((step.ended for step in steps), default=start.started),
        exit_code=0,
        stdin=None,
        stdout=None,
        stderr=None,
        redactions=redactor.count,
        remarks=remarks,
    )
    session = Session(start=start, end=end, status=Status.ENDED, folder=folder_name(start))
    return SessionFile(recording=Recording(session=session, steps=steps), blobs=blobs)


class _StepOfExchange:
    """One exchange on its way to a step."""

    def __init__(
        self, index: int, redactor: Redactor, threads: Threads, blobs: dict[BlobId, bytes], tally: Tally
    ) -> None:
        self._index = index
        self._redactor = redactor
        self._blobs = blobs
        self._summary = StepSummary(index, threads, (), tally.remark)

    def step(self, exchange: ForeignExchange, ts: float) -> Step:
        redactor, request = self._redactor, exchange.request
        redactor.secrets.learn(request.head)
        redacted = HttpRequest(
            head=redactor.request_head(request.head), body=redactor.body(request.body, request.head.headers)
        )
        asked = self._summary.request(
            understand(redacted, index=self._index),
            ts=ts,
            note=None if exchange.note is None else redactor.text(exchange.note),
        )
        asked = replace(asked, body=self._kept(redacted.body), body_size=len(redacted.body))
        return Step(request=asked, response=self._answered(exchange))

    def _answered(self, exchange: ForeignExchange) -> StepResponse | None:
        if exchange.ending is None:
            return None
        response, ms = exchange.response, exchange.ms or 0.0
        bare = StepResponse(
            ending=exchange.ending,
            head=None,
            ms=ms,
            reason=None if exchange.reason is None else self._redactor.text(exchange.reason),
        )
        if response is None:
            return replace(bare, ending=Ending.NO_ANSWER)
        answer, at = AnswerRecorder(response.head, self._redactor), round(ms * 1000)
        answer.piece(at, response.body, ends_chunk=True)
        kept = answer.finish(at, bare, self._redactor.response_headers(response.trailers))
        body = answer.body
        assert body is not None, "nothing of it went to a file"
        return replace(kept, reading=self._summary.reading(answer, kept), body=self._kept(body), body_size=len(body))

    def _kept(self, body: bytes) -> BlobId:
        name = blob_id(body)
        if body:
            self._blobs[name] = body
        return name


def _moments(exchanges: Sequence[ForeignExchange], tally: Tally) -> Iterator[float]:
    """When each was asked, as well as that is known; one that does not say it follows the one before it."""
    known = [exchange.started or _date(exchange) for exchange in exchanges]
    before = next((moment for moment in known if moment is not None), None)
    if before is None:
        tally.remark("the file", "does not say when it was recorded")
        before = UNDATED
    for moment in known:
        before = before if moment is None else moment
        yield before


def _date(exchange: ForeignExchange) -> float | None:
    """When the answer was made, by its ``Date`` header."""
    given = None if exchange.response is None else exchange.response.head.header("date")
    try:
        return None if given is None else sound_moment(parsedate_to_datetime(given).timestamp())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _other_hosts(steps: Sequence[Step]) -> tuple[str, ...]:
    """Those that a replay would not know to be on tape."""
    known = HostRules(LLM_HOSTS)
    return tuple(sorted({step.request.head.host for step in steps if not known.records(step.request.head.host)}))
