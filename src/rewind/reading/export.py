"""Export: a session becomes a file that can be shared, read in a review, and replayed anywhere.

What is taken along is looked through once more: patterns take texts out of it, and what looks like a secret is told.
"""

import hashlib
import re
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from rewind.conversation.outline import outline_of
from rewind.dataclass import dataclass
from rewind.errors import DamagedStore, SessionNotFound, UsageError
from rewind.formats.har import har_pieces, went_over_http
from rewind.model.ids import BlobId, SessionId
from rewind.model.session import Recording, Session, Status, split_step
from rewind.model.step import Step, StepKind
from rewind.pricing.spending import Pricing, cost_of, spending
from rewind.reading.progress import OnProgress, ignored
from rewind.reading.removal import Blob, Removed, with_matches_removed
from rewind.reading.report import RunReport, report_text
from rewind.reading.session import without_damaged_bodies
from rewind.redaction.recording_texts import TextChange, TextPlace, with_outline_changed, with_texts_changed
from rewind.redaction.removal import Removal, compiled_patterns
from rewind.redaction.scan import Scan, SecretFinding
from rewind.store.cassette.write import CountedData, WrittenData, check_sizes, put_file, write_cassette
from rewind.store.journal.writer import STREAMS
from rewind.store.library import Library
from rewind.text import dollars

PATIENCE_SECONDS = 30.0
"""How long patterns may take for one step."""
_LOOKED_THROUGH = "steps looked through"
_TAIL = 8_000
"""Bytes of what was printed that a report tells: how it ended is at the end."""
_NOT_IN_FILE_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


class StepRange(NamedTuple):
    """The steps from the first to the last; ``None`` for an open end."""

    first: int | None
    last: int | None

    @property
    def written(self) -> str:
        """``3..5``, ``3..``, ``..5`` or ``3``."""
        if self.first is not None and self.first == self.last:
            return str(self.first)
        return f"{'' if self.first is None else self.first}..{'' if self.last is None else self.last}"


class ExportForm(StrEnum):
    """What kind of file a session becomes."""

    CASSETTE = "cassette"
    HAR = "har"
    MARKDOWN = "markdown"

    @property
    def ending(self) -> str:
        return self.endings[0]

    @property
    def endings(self) -> tuple[str, ...]:
        """How files of this form may be called."""
        return {"cassette": (".rw", ".rw.zst"), "har": (".har",), "markdown": (".md", ".markdown")}[self.value]


def form_named_by(output: str | None) -> ExportForm:
    """The form that the ending of a file asks for. Raises UsageError."""
    name = (output or "").lower()
    for form in ExportForm:
        if name.endswith(form.endings):
            return form
    if name in ("", "-") or name.endswith("/") or Path(name).is_dir():
        return ExportForm.CASSETTE
    raise UsageError(
        f"{output!r} does not end in .rw, .rw.zst, .har or .md.",
        hint=f"-o {output}.rw; --har and --markdown take any name",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """What of a session is exported, in which form, and where to."""

    form: ExportForm = ExportForm.CASSETTE
    output: str | None = None
    """A file or a folder; without, a file in the current folder; ``-`` for the bytes alone, and no file."""
    steps: StepRange | None = None
    redact: tuple[str, ...] = ()
    """Regular expressions: what they match is taken out, everywhere."""
    strict: bool = False
    """Where something looks like a secret, write nothing."""
    force: bool = False
    """Replace a file that is there already."""
    prices: Pricing | None = None
    """For a report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What became of a session that was exported."""

    source: Session
    """As it is in the store."""
    recording: Recording
    """What of it is given away; with an id of its own where that is not all of it."""
    form: ExportForm
    removed: Removed
    """What the patterns took out."""
    findings: tuple[SecretFinding, ...]
    """What looks like a secret in what is left."""
    left_out: int
    """Steps that are not taken along."""
    written: WrittenData | None = None
    """``None`` where nothing was written, as it may hold secrets."""
    file: Path | None = None
    """``None`` where no file was written."""

    @property
    def session(self) -> Session:
        return self.recording.session

    @property
    def redactions(self) -> int:
        """Secrets that were removed while it was recorded."""
        return self.source.end.redactions if self.source.end is not None else 0

    @property
    def without_form(self) -> tuple[int, ...]:
        """Steps that the form has no room for: in a HAR, what did not go over HTTP."""
        if self.form is not ExportForm.HAR:
            return ()
        return tuple(step.index for step in self.recording.steps if not went_over_http(step))


def export_session(
    home: Path,
    ref: str,
    options: ExportOptions,
    *,
    put: Callable[[bytes], object] = lambda _data: None,
    on_progress: OnProgress = ignored,
) -> Exported:
    """Write the session to a file; for ``-``, piece by piece to ``put``.

    Raises UsageError, SessionNotFound, DamagedStore, EnvironmentProblem.
    """
    name, step = split_step(ref)
    if step is not None:
        raise UsageError(f"export takes a session, not a step ({ref!r}).", hint=f"rewind export {name} --steps {step}")
    with _time_limit(bool(options.redact)) as restart:

        def step_done(what: str, done: int, total: int) -> None:
            restart(True)
            on_progress(what, done, total)

        with _packed(home, name, options, step_done) as (export, blob, cassette):
            restart(False)
            if options.strict and export.findings:
                return export
            pieces = CountedData(_contents(export, blob, options, on_progress) if cassette is None else (cassette,))
            if options.output == "-":
                deque(map(put, pieces), maxlen=0)
                return replace(export, written=pieces.written)
            path = _target(export, options)
            put_file(path, pieces, force=options.force)
            return replace(export, written=pieces.in_file(path), file=path)


@contextmanager
def _time_limit(guarded: bool) -> Iterator[Callable[[bool], None]]:
    """Gives something to call when a step is done, and with False when all are.

    A pattern such as ``(a+)+b`` may take for ever on one text; Python's matcher lets a signal interrupt it, and
    signals come to the main thread alone.
    """
    if not guarded or threading.current_thread() is not threading.main_thread():
        yield lambda _goes_on: None
        return

    def too_long(_number: int, _frame: FrameType | None) -> None:
        raise UsageError(
            f"The patterns of --redact took more than {PATIENCE_SECONDS:g} s for one step. Nothing was written.",
            hint="a repeat inside a repeat, such as (a+)+, can take forever on some texts",
        )

    def restart(goes_on: bool) -> None:
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS if goes_on else 0)

    before = signal.signal(signal.SIGALRM, too_long)
    timer = signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)
    try:
        yield restart
    finally:
        restart(False)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *timer)


# ── what is given away ───────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _packed(
    home: Path, ref: str, options: ExportOptions, on_progress: OnProgress
) -> Iterator[tuple[Exported, Blob, bytes | None]]:
    """The session, less the steps that are not asked for and what the patterns match; its bytes can be read.

    A cassette of it is made at once while it is looked through, unless what is found may be a reason not to.
    """
    patterns = compiled_patterns(options.redact)
    library = Library(home)
    source = library.find(ref)
    if source.status is Status.RUNNING:
        raise UsageError(
            f"Session {source.id} is still being recorded.", hint=f"when it has ended: rewind export {source.id}"
        )
    with library.open(source) as reader:
        whole = reader.recording()
        try:
            export, blob, cassette = _chosen(source, whole, reader.blob, options, patterns, on_progress)
        except DamagedStore:
            # Only now is every body read once more: what can be read of it is exported, and the rest is named.
            legible = without_damaged_bodies(whole, reader.blob)
            export, blob, cassette = _chosen(source, legible, reader.blob, options, patterns, on_progress, damaged=True)
        yield export, blob, cassette


def _chosen(
    source: Session,
    whole: Recording,
    blob: Blob,
    options: ExportOptions,
    patterns: tuple[re.Pattern[str], ...],
    on_progress: OnProgress,
    *,
    damaged: bool = False,
) -> tuple[Exported, Blob, bytes | None]:
    recording = whole if options.steps is None else _only(whole, *options.steps)
    recording = replace(recording, session=replace(recording.session, file=None))
    if options.form is ExportForm.CASSETTE:
        check_sizes(recording)
    removed, before = Removed(), recording
    if patterns:
        recording, blob, removed = with_matches_removed(
            recording, blob, Removal(patterns), lambda done, total: on_progress(_LOOKED_THROUGH, done, total)
        )
    if recording != before or len(recording.steps) < len(whole.steps) or damaged:
        recording = _under_its_own_id(recording)
    cassette = None
    if options.form is ExportForm.CASSETTE and not options.strict:
        look = StepLook(recording, blob, on_progress)
        cassette, findings = write_cassette(recording, look.blob, look), look.findings
    else:
        findings = findings_in(recording, blob, on_progress)
    export = Exported(
        source=source,
        recording=recording,
        form=options.form,
        removed=removed,
        findings=findings,
        left_out=len(whole.steps) - len(recording.steps),
    )
    return export, blob, cassette


def findings_in(recording: Recording, blob: Blob, on_progress: OnProgress = ignored) -> tuple[SecretFinding, ...]:
    """What looks like a secret in anything of a recording."""
    look = StepLook(recording, blob, on_progress)
    for step in recording.steps:
        look(step)
    return look.findings


class StepLook:
    """Looks through a recording step by step, and holds the bodies of the last one for who needs them next."""

    def __init__(self, recording: Recording, blob: Blob, on_progress: OnProgress) -> None:
        self._scan = Scan()
        self._blob = blob
        self._lately: dict[BlobId, bytes] = {}
        self._on_progress = on_progress
        self._done, self._total = 0, len(recording.steps)
        start, end = recording.session.start, recording.session.end
        self._scan.text(" ".join(start.command), "command line")
        with_outline_changed(recording, self._outline)
        for stream in () if end is None else STREAMS:
            if (printed := getattr(end, stream)) is not None:
                self._scan.body(blob(printed), (), stream)

    def _outline(self, text: str, place: TextPlace) -> str:
        short = place.path.removeprefix("session.").removeprefix("start.")
        self._scan.placed(text, replace(place, path=short), "session")
        return text

    def __call__(self, step: Step) -> None:
        self._lately.clear()
        _scan_step(self._scan, step, self.blob)
        self._done += 1
        self._on_progress(_LOOKED_THROUGH, self._done, self._total)

    def blob(self, name: BlobId) -> bytes:
        if name not in self._lately:
            self._lately[name] = self._blob(name)
        return self._lately[name]

    @property
    def findings(self) -> tuple[SecretFinding, ...]:
        return self._scan.findings


def _scan_step(scan: Scan, step: Step, blob: Blob) -> None:
    """Bodies first: what is told in short besides them is best named by where it comes from."""
    head, response, index = step.request.head, step.response, step.index

    def look(where: str) -> TextChange:
        def placed(text: str, place: TextPlace) -> str:
            scan.placed(text, place, where, step=index)
            return text

        return placed

    scan.text(head.url, "URL", step=index)
    scan.body(blob(step.request.body), head.headers, "request body", step=index)
    with_texts_changed(step.request, look("request"))
    if response is not None:
        if response.head is not None:
            scan.body(blob(response.body), response.head.headers, "response body", step=index)
        with_texts_changed(response, look("response"))


def _only(recording: Recording, first: int | None, last: int | None) -> Recording:
    """These steps, with their numbers. What was printed tells of the others, and no part of a run prints it."""
    known = [step.index for step in recording.steps]
    low, high = first or 1, last if last is not None else max(known, default=0)
    steps = tuple(step for step in recording.steps if low <= step.index <= high)
    session = recording.session
    if not steps:
        there = f"it has {len(known)}, from {known[0]} to {known[-1]}" if known else "it has none"
        asked = f"{low}" if low == last else f"from {low} on" if last is None else f"from {low} to {last}"
        raise SessionNotFound(
            f"Session {session.id} has no step {asked}; {there}.", hint=f"rewind inspect {session.ref}"
        )
    if len(steps) == len(known):
        return recording
    end = session.end and replace(session.end, stdout=None, stderr=None)
    return replace(recording, session=replace(session, end=end), steps=steps)


def _under_its_own_id(recording: Recording) -> Recording:
    """A changed session is another session: it can stand beside its source.

    The id is made of all that is left, not of the options: from a pattern's digest the pattern could be guessed.
    """
    session = recording.session
    whole = (replace(session.start, imported=False), session.end, recording.surroundings)
    digest = hashlib.sha256(repr(whole).encode("utf-8", "surrogatepass"))
    for step in recording.steps:
        digest.update(repr(step).encode("utf-8", "surrogatepass"))
    start = replace(session.start, id=SessionId(digest.hexdigest()[:8]))
    return replace(recording, session=replace(session, start=start))


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────


def _contents(export: Exported, blob: Blob, options: ExportOptions, on_progress: OnProgress) -> Iterable[bytes]:
    """What the file holds, in pieces: an archive repeats a conversation with every request, and may be very long."""
    match options.form:
        case ExportForm.CASSETTE:
            return (write_cassette(export.recording, blob),)
        case ExportForm.MARKDOWN:
            return (_report(export, blob, options, on_progress).encode(),)
        case ExportForm.HAR:
            steps = export.recording.steps
            if steps and len(export.without_form) == len(steps):
                raise UsageError(
                    f"No step of {export.source.id} went over HTTP, so an HTTP archive of it would be empty.",
                    hint=f"rewind export {export.source.ref}, or with --markdown",
                )
            return har_pieces(export.recording, blob)


def _report(export: Exported, blob: Blob, options: ExportOptions, on_progress: OnProgress) -> str:
    """The run understood and priced."""
    assert options.prices is not None, "a report tells what a run cost"
    recording, end, total = export.recording, export.session.end, len(export.recording.steps)
    outline = outline_of(recording, lambda step: step.bodies(blob), lambda done: on_progress("steps read", done, total))
    calls = [call for call in outline.steps if call.kind is StepKind.LLM_CALL]
    costs = {call.step.index: cost_of(options.prices, call.step, call.reading) for call in calls}
    spent = spending((call.step, call.reading, costs[call.step.index]) for call in calls)
    streams = () if end is None else (("stderr", end.stderr), ("stdout", end.stdout))
    printed = [(stream, _tail(blob(name))) for stream, name in streams if name is not None]
    return report_text(
        RunReport(
            recording=recording,
            outline=outline,
            cost=dollars(spent.usd, spent.unpriced),
            costs={index: dollars(cost) for index, cost in costs.items()},
            printed=[(stream, text) for stream, text in printed if text.strip()],
            removed=export.removed,
            findings=export.findings,
            left_out=export.left_out,
            export_command=_cassette_command(export.source, options),
        )
    )


def _tail(data: bytes) -> str:
    cut = "…" if len(data) > _TAIL else ""
    return cut + data[-_TAIL:].decode("utf-8", "replace")


def _cassette_command(source: Session, options: ExportOptions) -> str:
    """For a report that others read: it names neither a path of this machine nor a pattern."""
    known = source.id if source.file is None else "FILE"
    steps = [] if options.steps is None else ["--steps", options.steps.written]
    return " ".join(["rewind export", known, *steps, *("--redact PATTERN" for _ in options.redact)])


def _target(export: Exported, options: ExportOptions) -> Path:
    """Where it goes. What a session is called is data: of its name only harmless characters become a file's."""
    output = options.output
    wanted = Path(output) if output else Path()
    if output and not (output.endswith("/") or wanted.is_dir()):
        return wanted
    session = export.session
    named = _NOT_IN_FILE_NAMES.sub("-", session.start.name or "").strip(".-")[:80]
    return wanted / f"{named or session.id}{options.form.ending}"
