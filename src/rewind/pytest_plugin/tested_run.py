"""The run behind a marked test: what answers it, whether it went well, and what it cost."""

import atexit
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path

import pytest

from rewind.errors import EnvironmentProblem
from rewind.inprocess.redirect.rules import ConnectionRules
from rewind.inprocess.run import InProcessOptions, InProcessResult, InProcessRun
from rewind.inprocess.shared_gateway import ChildVariables, hook_variables, shared_gateway
from rewind.model.ids import SessionId
from rewind.model.session import Recording, Session, SessionFile, SessionStart, Status
from rewind.model.step import StepKind
from rewind.pytest_plugin.cassette_paths import CassetteAction, TestCassette
from rewind.pytest_plugin.cassette_update import (
    CassetteUpdate,
    WrittenCassettes,
    as_committed,
    failed_run_path,
    forget_failed_run,
    keep_failed_run,
)
from rewind.pytest_plugin.modes import Mode, pytest_command, quoted
from rewind.pytest_plugin.network_guard import host_of, our_patches
from rewind.pytest_plugin.observed import RewindRun
from rewind.pytest_plugin.state import PluginState
from rewind.pytest_plugin.usage import CassetteUsage
from rewind.reading.cassettes import RecordedRun, RunFolder, live_steps, tape_reader, without_telemetry
from rewind.reading.run_steps import ProjectPrices, RunSteps, cost_of_steps
from rewind.runs.rerun import DUMMY_KEY, remembered_endpoints, remembered_key_variables
from rewind.runs.tally import MissNote
from rewind.runs.upstream import upstream_of
from rewind.safe import safe, safe_line
from rewind.settings import Settings, read_settings
from rewind.text import plural
from rewind.version import __version__

_ANSWERED_BY_OTHERS = (StepKind.LLM_CALL, StepKind.HTTP_CALL)
"""Steps that somebody else answers: a tool of the agent's own is not live."""
_USUAL_KEYS = ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY", "OPENAI_API_KEY")
"""Without these, SDKs complain of a missing key first, and not of the missing cassette."""


_SHARED_VARIABLES = ("PYTHONPATH", "NODE_OPTIONS")


class TestedRun:
    """From the first fixture of a test to the last."""

    __test__ = False  # a name that pytest would otherwise collect where it is imported

    def __init__(self, state: PluginState, written: WrittenCassettes, cassette: TestCassette) -> None:
        self._state = state
        self._cassette = cassette
        self._update = CassetteUpdate(state, written, cassette)
        self._environment = pytest.MonkeyPatch()
        self._tape: SessionFile | None = None
        self._run: InProcessRun | None = None
        self._put_back: Callable[[], None] = lambda: None

    # ── beginning ────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Raises RewindError."""
        action = self._cassette.action
        self._tape = self._update.opened_tape()
        # Without a cassette nothing answers: a test that asks nothing passes, and needs none.
        answers = None if action is CassetteAction.RECORD else self._tape or empty_tape()
        run = InProcessRun(self._options(answers))
        if answers is not None:
            # Keys that no replay needs, and the addresses that it was recorded with, as far as a file may name them.
            keys = dict.fromkeys(remembered_key_variables(answers.session), DUMMY_KEY)
            live = action is CassetteAction.EXTEND
            lent = {**keys, **remembered_endpoints(answers.session, live=live)}
            self._set({name: value for name, value in lent.items() if name not in os.environ})
        self._put_back = our_patches().on_top()
        try:
            run.start()
        except BaseException:
            self._restore_process()
            raise
        run.make_default()
        self._set(child_variables(run.rules))
        self._run = run

    def _set(self, variables: Mapping[str, str]) -> None:
        for name, value in variables.items():
            self._environment.setenv(name, value)

    def _options(self, answers: SessionFile | None) -> InProcessOptions:
        state, options, settings = self._state, self._cassette.options, settings_at(self._state.root)
        return InProcessOptions(
            home=state.folder / "store",
            name=self._cassette.test,
            mode="record" if answers is None else "replay",
            tape=None if answers is None else tape_reader(answers),
            on_miss="live" if self._cassette.action is CassetteAction.EXTEND else "refuse",
            allow_drift=options.allow_drift,
            tools=options.tools,
            hosts=self._hosts,
            all_hosts=settings.all_hosts or options.all_hosts,
            allowed_hosts=(*state.allowed_hosts, *options.allowed_hosts),
            ignore=(*settings.ignore, *options.ignore),
            match=options.match or settings.match or "fields",
            ignore_text=(*settings.ignore_text, *options.ignore_text),
            given=self._cassette.given,
            upstream=upstream_of(settings, connect_to=state.connect_to, insecure=False),
            offline_error=self._blocked,
        )

    @property
    def _hosts(self) -> tuple[str, ...]:
        return (*settings_at(self._state.root).hosts, *self._cassette.options.hosts)

    def _blocked(self, url: str) -> str:
        host = host_of(url)
        return (
            f"rewind: {self._cassette.address} tried to connect to {url}, which is not on {self._cassette.shown}.\n"
            f'  - To record it on the cassette: @pytest.mark.rewind(hosts=["{host}"]), and {self._record_again}\n'
            f'  - To allow it: @pytest.mark.rewind(allowed_hosts=["{host}"])'
        )

    # ── as it stands ─────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _begun(self) -> InProcessRun:
        assert self._run is not None, "the run has begun"
        return self._run

    @cached_property
    def _folder(self) -> RunFolder:
        folder = self._begun.progress().folder
        assert folder is not None, "a test's run is always written"
        return RunFolder(folder)

    def recorded(self) -> RecordedRun:
        """All that was asked and answered until now, less telemetry."""
        self._begun.flush()
        return without_telemetry(self._folder.recorded())

    def misses(self) -> list[str]:
        """Why calls were not answered."""
        return list(map(miss_text, self._begun.progress().misses))

    @cached_property
    def observed(self) -> RewindRun:
        def read() -> RunSteps:
            return RunSteps(self.recorded(), prices_at(self._state.root))

        return RewindRun(read, self.misses, cassette=self._cassette.shown)

    # ── judging ──────────────────────────────────────────────────────────────────────────────────────────────

    def failure_text(self, *, strict: bool, passed: bool = False) -> str:
        """Why the test cannot pass; empty where it can. ``passed``: it did by itself."""
        misses = self.misses()
        if misses and self._cassette.action is CassetteAction.MISSING:
            return self._cassette.missing
        if misses:
            calls = plural(len(misses), "call")
            paragraphs = [
                f"rewind: {calls} of this test could not be answered from {self._cassette.shown}",
                *misses[:3],
            ]
            if len(misses) > 3:
                paragraphs.append(f"… and {len(misses) - 3} more")
            paragraphs.append(f"If this change is intended, record it again:  {self._record_again}")
            return "\n\n".join(paragraphs)
        may_judge = self._cassette.action is CassetteAction.PLAY and not self._cassette.may_have_other_users
        progress = self._begun.progress()
        # A test that asks nothing of what it was recorded with tests something else than it seems to.
        left = progress.unused if may_judge and (strict or (passed and progress.played == 0)) else ()
        if left:
            shown = ", ".join(str(step.index) for step in left[:8]) + (", …" if len(left) > 8 else "")
            return (
                f"rewind: {plural(len(left), 'step')} of {self._cassette.shown} "
                f"{'was' if len(left) == 1 else 'were'} not played: {shown}"
                f"{'; the test asked nothing' if progress.played == 0 else ''}\n\n"
                f"If this change is intended, record it again:  {self._record_again}"
            )
        return ""

    @property
    def _record_again(self) -> str:
        return pytest_command(self._cassette.address, Mode.REWRITE)

    def keep_failing(self) -> str:
        """Keep the run for ``rewind bisect``; the words that say so."""
        run = as_committed(self.recorded(), exit_code=1)
        if not run.recording.steps or self._cassette.action is CassetteAction.MISSING:
            return ""
        file = failed_run_path(self._state.root, self._cassette.default)
        keep_failed_run(file, self._state.root, run)
        kept = quoted(os.path.relpath(file, self._state.start_folder))
        if self._tape is None:
            return f"this run is kept: rewind inspect {kept}"
        from rewind.reading.bisect import divergence_text  # lazily: most tests do not fail

        good = quoted(os.path.relpath(self._cassette.path, self._state.start_folder))
        why = divergence_text(RecordedRun.on(self._tape), run)
        return "\n".join(filter(None, (why, f"rewind bisect {good} {kept}")))

    # ── ending ───────────────────────────────────────────────────────────────────────────────────────────────

    def end(self, *, passed: bool) -> CassetteUsage:
        """The run is over; what it recorded is still there for ``settle``."""
        result = self._begun.finish(0 if passed else 1)
        self._restore_process()
        return self._usage(result, passed=passed)

    def _restore_process(self) -> None:
        self._put_back()
        self._environment.undo()

    def settle(self, usage: CassetteUsage) -> CassetteUsage:
        """Raises RewindError where a cassette could not be written."""
        try:
            if not usage.passed or not self._begun.over:
                return usage
            forget_failed_run(failed_run_path(self._state.root, self._cassette.default), self._state.root)
            if not self._cassette.action.writes:
                return usage
            if (broken := self._begun.progress().broken) is not None:
                raise EnvironmentProblem(
                    f"{self._cassette.shown} was not written: the recording is not complete ({broken})."
                )
            return self._update.write(self.recorded(), self._tape, usage, hosts=self._hosts)
        finally:
            self._folder.delete()

    def _usage(self, result: InProcessResult, *, passed: bool) -> CassetteUsage:
        tape, prices = self._tape, prices_at(self._state.root)
        usage = CassetteUsage(
            test=self._cassette.address,
            cassette=self._cassette.shown,
            action=self._cassette.action.value,
            passed=passed,
            replayed=len(result.served),
            renamed=len(result.renamed),
            names=tuple(
                dict.fromkeys(
                    f"{pair.kind} {safe_line(pair.then, 60)} → {safe_line(pair.now, 60)}"
                    for pairs in result.renamed.values()
                    for pair in pairs
                )
            ),
            blocked=tuple(dict.fromkeys(result.blocked)),
            remarks=result.remarks,
            stale=self._stale(),
            may_have_other_users=self._cassette.may_have_other_users,
        )
        if tape is not None:
            saved = cost_of_steps(RecordedRun.played_from(tape), result.served, prices)
            usage = replace(
                usage,
                on_tape=tuple(step.index for step in result.tape),
                played=tuple(sorted({step.index for step in result.served})),
                saved=saved.usd,
                saved_unpriced=saved.unpriced,
                recorded=tape.session.start.started,
            )
        if self._cassette.action.writes:
            run = self.recorded()
            live = [step for step in live_steps(run.recording) if step.request.kind in _ANSWERED_BY_OTHERS]
            spent = cost_of_steps(run, live, prices)
            usage = replace(usage, live=len(live), spent=spent.usd, spent_unpriced=spent.unpriced)
        return usage

    def _stale(self) -> str:
        misses = self.misses()
        if misses and self._cassette.action is CassetteAction.MISSING:
            return "there is no cassette yet"
        return "\n\n".join(misses)


@cache
def settings_at(folder: Path) -> Settings:
    """The project's settings, read once in a run of pytest. Raises UsageError."""
    return read_settings(cwd=folder)


@cache
def prices_at(folder: Path) -> ProjectPrices:
    return ProjectPrices(settings_at(folder))


def empty_tape() -> SessionFile:
    """What answers a test that has no cassette."""
    start = SessionStart(
        id=SessionId("0" * 8),
        name=None,
        command=(),
        cwd="",
        started=0.0,
        rewind_version=__version__,
        key_variables=_USUAL_KEYS,
    )
    session = Session(start=start, end=None, status=Status.ENDED, folder="")
    return SessionFile(recording=Recording(session=session, steps=()), blobs={})


def miss_text(note: MissNote) -> str:
    """Why a call was not answered, less the advice that is meant for ``rewind replay``."""
    if note.miss is None:
        return safe(note.report or note.reason)
    names = '  - Only names differ; to accept it:  @pytest.mark.rewind(match="renamed")' if note.miss.only_names else ""
    return safe("\n\n".join(filter(None, (note.miss.facts, names, note.miss.ignore_advice))))


# ── the environment of the processes that a test starts ──────────────────────────────────────────────────────


def child_variables(rules: ConnectionRules) -> dict[str, str]:
    """They bring Python and Node processes to the run. They do nothing in this process, so they may stand in its
    environment."""
    lasting = _lasting_variables()
    hosts = rules.hosts
    plain = (f"{host}:{port}" for host, port in sorted(rules.endpoints))
    known = lasting["REWIND_GATEWAY_PLAIN"].split(",")
    return {
        **lasting,
        **joined(lasting, os.environ),
        "REWIND_GATEWAY_HOSTS": "*" if hosts.all_hosts else ",".join(hosts.patterns),
        "REWIND_GATEWAY_PLAIN": ",".join(dict.fromkeys(filter(None, (*plain, *known)))),
        "REWIND_OFFLINE": "1" if rules.offline else "0",
        "REWIND_LIVE_HOSTS": ",".join(rules.allowed.patterns),
    }


def joined(ours: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that we share with the user: our part, and what the environment holds now."""
    folders = [ours["PYTHONPATH"], *filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))]
    require, options = ours["NODE_OPTIONS"], environ.get("NODE_OPTIONS", "")
    return {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(folders)),
        "NODE_OPTIONS": options if require in options else f"{options} {require}".strip(),
    }


@cache
def _lasting_variables() -> dict[str, str]:
    """What they name (certificates, hooks) is the same for every test of a process and takes tens of milliseconds to
    write, so it is made once; what differs from test to test is laid over it, or joined with it."""
    # As for an offline run: none of the variables that are left below names the system's roots.
    made = ChildVariables(shared_gateway(), ConnectionRules(offline=True))
    atexit.register(made.close)
    # Our part alone: the user's may be another one in the next test.
    alone = {name: value for name, value in os.environ.items() if name not in _SHARED_VARIABLES}
    return hook_variables(made.variables(alone))
