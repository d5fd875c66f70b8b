"""What a test's run leaves behind.

What a passing test recorded becomes its cassette, or a part of the cassette that it shares with others. A failing run
is kept for ``rewind bisect`` until its test passes again.
"""

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from rewind.errors import BadCassette, EnvironmentProblem
from rewind.model.session import SessionEnd, SessionFile, Status
from rewind.model.step import Step
from rewind.pytest_plugin.cassette_paths import CassetteAction, TestCassette
from rewind.pytest_plugin.modes import Mode, pytest_command
from rewind.pytest_plugin.state import PluginState
from rewind.pytest_plugin.usage import CassetteUsage
from rewind.reading.cassettes import (
    RecordedRun,
    as_if_live,
    extended,
    live_steps,
    open_cassette,
    recorded_again,
    save_cassette,
)
from rewind.settings import FAILING_TESTS, PROJECT_FOLDER

_FAILED_RUNS = Path(PROJECT_FOLDER) / FAILING_TESTS
_COMMON_WORDS = frozenset({"", "api", "key", "token", "secret", "access", "com", "ai", "net", "io", "chat", "http"})
"""Words in names of hosts and variables that say nothing of the provider."""
_WORDS_OF_CREDENTIALS = {
    "gemini": ("google",),
    "generativelanguage": ("gemini", "google"),
    "aiplatform": ("google",),
    "bedrock": ("aws",),
    "amazonaws": ("aws",),
    "x": ("xai",),
    "azure": ("openai",),
}
"""Word in the name of a host or an API → other words in the names of its credentials."""


class WrittenCassettes:
    """Which cassettes the tests of one pytest run have written: a folder that all its workers share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def __contains__(self, cassette: Path) -> bool:
        return self._file(cassette, "written").exists()

    def add(self, cassette: Path) -> None:
        self._file(cassette, "written").touch()

    def new_part(self, cassette: Path) -> Path:
        """A cassette of only what this run recorded, for one that also keeps older steps."""
        return self._file(cassette, "fresh.rw")

    @contextmanager
    def locked(self, cassette: Path) -> Iterator[None]:
        """One worker at a time for each cassette."""
        fd = os.open(self._file(cassette, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _file(self, cassette: Path, kind: str) -> Path:
        name = hashlib.sha256(os.fsencode(cassette)).hexdigest()[:32]
        return self._folder / f"{name}.{kind}"


class CassetteUpdate:
    """The cassette of one test: what is played of it, and what the test writes to it."""

    def __init__(self, state: PluginState, written: WrittenCassettes, cassette: TestCassette) -> None:
        self._state = state
        self._written = written
        self._cassette = cassette

    def opened_tape(self) -> SessionFile | None:
        """What answers the test, if anything; and a check that what must be kept can be read, before anything is
        spent. Raises BadCassette."""
        cassette = self._cassette
        if cassette.action in (CassetteAction.PLAY, CassetteAction.EXTEND):
            return self._opened(self._basis)
        keeps_steps = cassette.action is CassetteAction.RECORD and cassette.may_have_other_users
        if keeps_steps and cassette.path.exists():
            self._opened(cassette.path)
        return None

    @property
    def _basis(self) -> Path:
        """What the test plays and extends; of a shared cassette that this run records again, only the new part."""
        new_part = self._written.new_part(self._cassette.path)
        return new_part if self._cassette.action.writes and new_part.exists() else self._cassette.path

    def _opened(self, path: Path) -> SessionFile:
        try:
            return open_cassette(path)
        except BadCassette as problem:
            hint = f"Record it again:  {pytest_command(self._cassette.address, Mode.REWRITE)}"
            if self._cassette.may_have_other_users:
                hint = "Repair it, or delete it and record all tests that use it again."
            raise problem.about(self._cassette.shown, hint=hint) from None

    def write(
        self, run: RecordedRun, tape: SessionFile | None, usage: CassetteUsage, *, hosts: Sequence[str]
    ) -> CassetteUsage:
        """``run`` is what the passing test did, ``tape`` what answered it. Raises RewindError."""
        cassette, path = self._cassette, self._cassette.path
        run = as_committed(run, exit_code=0)
        with self._written.locked(path):
            if not live_steps(run.recording):
                return self._nothing_asked(usage)
            new_part = self._written.new_part(path)
            replaces = cassette.action is CassetteAction.RECORD and path not in self._written
            if path.exists() and not replaces:
                played = () if tape is None else RecordedRun.on(tape).recording.steps
                run = extended(self._opened(self._basis), played, run, hosts=hosts)
            if path.exists() and replaces and (older := self._readable()) is not None:
                again = recorded_again(older, run)
                run = again.run
                if again.unchanged and not cassette.may_have_other_users and not self._is_old(older, run):
                    self._written.add(path)
                    return replace(usage, unchanged=True, recorded=None)
            if path.exists() and cassette.may_have_other_users and (replaces or new_part.exists()):
                run, kept = self._with_older_steps(run, new_part)
                usage = replace(usage, kept=kept)
            return self._save(run, usage)

    def _readable(self) -> SessionFile | None:
        """The cassette as it is; ``None`` for one that is damaged and now gives way to another."""
        try:
            return open_cassette(self._cassette.path)
        except BadCassette:
            return None

    def _is_old(self, older: SessionFile, run: RecordedRun) -> bool:
        """One that is called old is written with its new date, or it would stay old for ever."""
        age = run.recording.session.start.started - older.session.start.started
        return age >= float(self._state.config.getini("rewind_old_after")) * 86_400

    def _with_older_steps(self, run: RecordedRun, new_part: Path) -> tuple[RecordedRun, int]:
        """Behind what is new, the old steps that have no equal: a test that is not run, or fails, may need them."""
        older = as_if_live(RecordedRun.on(self._opened(self._cassette.path)))
        save_cassette(new_part, run)
        both = extended(open_cassette(new_part), (), older)
        return both, len(both.recording.steps) - len(run.recording.steps)

    def _nothing_asked(self, usage: CassetteUsage) -> CassetteUsage:
        """There is nothing to write, and with ``rewrite`` nothing to keep either."""
        cassette, path = self._cassette, self._cassette.path
        rewrites = self._state.choice.for_test(cassette.options.mode) is Mode.REWRITE
        unneeded = cassette.action is CassetteAction.RECORD and rewrites and not cassette.may_have_other_users
        if unneeded and path.exists() and path not in self._written:
            path.unlink()
            return replace(usage, remarks=(*usage.remarks, f"made no calls; {cassette.shown} was removed"))
        return usage

    def _save(self, run: RecordedRun, usage: CassetteUsage) -> CassetteUsage:
        from rewind.reading.export import findings_in  # lazily: most tests write nothing

        shown = self._cassette.shown
        secrets = tuple(
            (f"step {finding.step}, " if finding.step is not None else "")
            + finding.where
            + (f" {finding.path}" if finding.path else "")
            + f" looks like {finding.kind}"
            for finding in findings_in(run.recording, run.blob)
        )
        if secrets and self._state.strict:
            raise EnvironmentProblem(
                f"{shown} was not written, because it seems to contain a secret: {'; '.join(secrets)}.",
                hint="Take it out of what the test sends, or record without --rewind-strict.",
            )
        try:
            save_cassette(self._cassette.path, run, shared=True)  # it is meant for a repository
        except OSError as problem:
            raise EnvironmentProblem(f"{shown} cannot be written: {problem.strerror}.") from problem
        self._written.add(self._cassette.path)
        return replace(usage, wrote=True, secrets=secrets, recorded=None)


def as_committed(run: RecordedRun, *, exit_code: int) -> RecordedRun:
    """The run as it may be committed: what was run is the test, and nothing tells of the machine it ran on."""
    recording = run.recording
    session = recording.session
    test = session.start.name or ""  # as it was recorded: the id of a test may hold a value that was removed
    start = replace(
        session.start,
        command=("pytest", test),
        cwd="",
        facts=_used_facts(run),
        key_variables=_needed_keys(session.start.key_variables, recording.steps),
        base_urls=_used_base_urls(session.start.base_urls, recording.steps),
    )
    end = session.end or SessionEnd(
        ended=max((step.request.ts for step in recording.steps), default=start.started),
        exit_code=exit_code,
        stdin=None,
        stdout=None,
        stderr=None,
        redactions=0,
    )
    ended = replace(session, start=start, end=replace(end, exit_code=exit_code), status=Status.ENDED)
    return replace(run, recording=replace(recording, session=ended, surroundings=None))


def _used_facts(run: RecordedRun) -> dict[str, str]:
    """What requests say of the machine and its folders anyway: without it they could not be matched elsewhere."""
    start = run.recording.session.start
    facts = {"folder": start.cwd, **start.facts}
    facts.pop("utc_offset", None)  # no request says it
    asked = [run.blob(step.request.body) for step in run.recording.steps]
    return {name: value for name, value in facts.items() if value and any(value.encode() in body for body in asked)}


def _needed_keys(variables: Sequence[str], steps: Sequence[Step]) -> tuple[str, ...]:
    """Names of credentials that a replay needs dummies for: not the others that this machine has."""
    asked = {word for step in steps for word in _words(f"{step.request.head.host} {step.request.provider}")}
    asked |= {also for word, others in _WORDS_OF_CREDENTIALS.items() if word in asked for also in others}
    return tuple(name for name in variables if asked & _words(name))


def _words(text: str) -> set[str]:
    return set(re.split(r"[^a-z0-9]+", text.lower())) - _COMMON_WORDS


def _used_base_urls(urls: Mapping[str, str], steps: Sequence[Step]) -> dict[str, str]:
    """Variables that led the test to where it went."""
    hosts = {step.request.head.host.lower() for step in steps}
    return {name: url for name, url in urls.items() if (urlsplit(url).hostname or "") in hosts}


# ── failing runs ─────────────────────────────────────────────────────────────────────────────────────────────


def failed_run_path(root: Path, cassette: Path) -> Path:
    """Where a failing run of the test with that default cassette is kept."""
    try:
        parts = cassette.relative_to(root).parts
    except ValueError:
        parts = cassette.parts[-2:]
    return root.joinpath(_FAILED_RUNS, *(part for part in parts if part != "cassettes"))


def keep_failed_run(file: Path, root: Path, run: RecordedRun) -> None:
    """Written for this machine only: the folder keeps itself out of git."""
    file.parent.mkdir(parents=True, exist_ok=True)
    ignore = root / _FAILED_RUNS / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    save_cassette(file, run)


def forget_failed_run(file: Path, root: Path) -> None:
    """The test passes again; folders that are empty now go, too."""
    if not file.exists():
        return
    file.unlink(missing_ok=True)
    for parent in file.parents:
        if parent == root / _FAILED_RUNS:
            return
        try:
            parent.rmdir()
        except OSError:  # other failing tests are kept there
            return
