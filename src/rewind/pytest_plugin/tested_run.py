"""The run behind a marked test: the engine, the tape, and what becomes of the cassette."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rewind.errors import EnvironmentProblem
from rewind.gateway.options import UpstreamOptions
from rewind.inprocess.run import InProcessOptions, InProcessResult
from rewind.model.session import Portable
from rewind.model.step import StepKind
from rewind.pytest_plugin import failed_run as failing
from rewind.pytest_plugin import saying
from rewind.pytest_plugin.cassette_paths import shown_path
from rewind.pytest_plugin.cassette_update import (
    Reel,
    as_if_live,
    extended,
    live_steps,
    nothing,
    of_the_test,
    reel_of,
)
from rewind.pytest_plugin.children import child_variables
from rewind.pytest_plugin.engine import TestedRun
from rewind.pytest_plugin.ledger import Ledger
from rewind.pytest_plugin.money import cost_of_steps, prices_at, settings_at
from rewind.pytest_plugin.options import Act, Mode
from rewind.pytest_plugin.part import Part, opened
from rewind.pytest_plugin.seams import seams
from rewind.pytest_plugin.usage import Figures
from rewind.pytest_plugin.variables import Variables
from rewind.runs.imported_command import remembered_endpoints, remembered_key_variables
from rewind.runs.rerun import DUMMY_KEY
from rewind.store.portable import PortableReader
from rewind.store.session_files import open_file
from rewind.text import plural

if TYPE_CHECKING:
    from rewind.pytest_plugin.observed import RewindRun
    from rewind.pytest_plugin.state import Desk

_OF_THE_WORLD = (StepKind.LLM_CALL, StepKind.HTTP_CALL)
"""Steps that somebody else answers: a tool of the agent's own is not live."""


class Running:
    """From the first fixture to the last."""

    def __init__(self, desk: "Desk", ledger: Ledger, part: Part) -> None:
        self._desk = desk
        self._ledger = ledger
        self._part = part
        self._shown = shown_path(part.cassette, desk.root)
        self._variables = Variables()
        self._tape: Portable | None = None
        self._run: TestedRun | None = None
        self._result: InProcessResult | None = None
        self._put_back: Callable[[], None] = lambda: None

    # ── beginning ────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Raises RewindError."""
        if self._part.act in (Act.PLAY, Act.EXTEND):
            self._tape = opened(self._part, self._shown, self._basis)
        elif self._part.act is Act.RECORD and self._part.may_be_others and self._part.cassette.exists():
            opened(
                self._part, self._shown, self._part.cassette
            )  # what must be kept must be readable: told before anything is spent
        run = TestedRun(self._options())
        if self._part.act is not Act.RECORD:
            session, live = self._recorded.session, self._part.act is Act.EXTEND
            # Keys that no replay needs, and the addresses that it was recorded with, as far as a file may name them.
            keys = dict.fromkeys(remembered_key_variables(session), DUMMY_KEY)
            self._variables.lend({**keys, **remembered_endpoints(session, live=live)})
        self._put_back = seams().on_top()
        try:
            run.start()
        except BaseException:
            self._leave()
            raise
        run.make_default()
        self._variables.lay(child_variables(run.rules))
        self._run = run

    @property
    def _basis(self) -> Path:
        """What a test that shares its cassette goes on from: where that is recorded anew, only what is new of it."""
        fresh = self._ledger.fresh(self._part.cassette)
        return fresh if self._part.act is not Act.PLAY and fresh.exists() else self._part.cassette

    def _leave(self) -> None:
        """The process is as it was."""
        self._put_back()
        self._variables.take_back()

    @property
    def _recorded(self) -> Portable:
        """What answers. Without a cassette nothing does: a test that asks nothing passes, and needs none."""
        return self._tape if self._tape is not None else nothing()

    def _options(self) -> InProcessOptions:
        desk, wish, settings = self._desk, self._part.wish, settings_at(self._desk.root)
        return InProcessOptions(
            home=desk.folder / "store",
            name=self._part.test,
            mode="record" if self._part.act is Act.RECORD else "replay",
            tape=None if self._part.act is Act.RECORD else PortableReader(self._recorded),
            on_miss="live" if self._part.act is Act.EXTEND else "refuse",
            allow_drift=wish.allow_drift,
            tools=wish.tools,
            hosts=(*settings.hosts, *wish.hosts),
            all_hosts=settings.all_hosts or wish.all_hosts,
            allowed_hosts=(*desk.allowed_hosts, *wish.allowed_hosts),
            ignore=(*settings.ignore, *wish.ignore),
            upstream=UpstreamOptions(
                connect_to=desk.connect_to, ca=settings.upstream_ca, proxy=settings.upstream_proxy
            ),
            offline_error=self._blocked,
        )

    def _blocked(self, url: str) -> str:
        host = saying.host_of(url)
        return (
            f"rewind: {self._part.address} wanted to connect to {url}, which is not on {self._shown}.\n"
            f'  - To have it on the cassette: @pytest.mark.rewind(hosts=["{host}"]), and '
            f"{saying.command(self._part.address, Mode.REWRITE)}\n"
            f'  - To let it through: @pytest.mark.rewind(allowed_hosts=["{host}"])'
        )

    @property
    def run(self) -> TestedRun:
        assert self._run is not None, "the run has begun"
        return self._run

    @cached_property
    def observed(self) -> "RewindRun":
        from rewind.pytest_plugin.observed import RewindRun  # lazily: most tests do not ask

        def look() -> Reel:
            return self.run.so_far()

        return RewindRun(
            look, self.run.misses_so_far, lambda: prices_at(self._desk.root), cassette=self._shown
        )

    # ── judging ──────────────────────────────────────────────────────────────────────────────────────────────

    def verdict(self, *, strict: bool) -> str:
        """Why the test cannot pass; empty where it can."""
        misses = self.run.misses_so_far()
        if misses and self._part.act is Act.MISSING:
            return self._part.missing
        if misses:
            calls = plural(len(misses), "call")
            told = [f"rewind: {calls} of this test could not be answered from {self._shown}"]
            told += misses[:3]
            if len(misses) > 3:
                told.append(f"… and {len(misses) - 3} more")
            told.append(f"If this was meant, record it anew:  {self._again}")
            return "\n\n".join(told)
        left = self.run.unplayed()
        if strict and left and self._part.act is Act.PLAY and not self._part.may_be_others:
            shown = ", ".join(str(step.index) for step in left[:8]) + (", …" if len(left) > 8 else "")
            return (
                f"rewind: {plural(len(left), 'step')} of {self._shown} "
                f"{'was' if len(left) == 1 else 'were'} not played: {shown}\n\n"
                f"If this was meant, record it anew:  {self._again}"
            )
        return ""

    @property
    def _again(self) -> str:
        return saying.command(self._part.address, Mode.REWRITE)

    def keep_failing(self) -> str:
        """Keep the run for ``rewind bisect``; the words that say so."""
        # Lazily: most tests do not fail.
        from rewind.pytest_plugin.parting import parting
        from rewind.store.cassette.cassette import write_cassette

        reel = of_the_test(self.run.so_far(), self._part.test, exit_code=1)
        if not reel.recording.steps or self._part.act is Act.MISSING:
            return ""
        file = failing.kept_path(self._desk.root, self._part.own)
        failing.keep(file, self._desk.root, write_cassette(reel.recording, reel.blob))
        kept = os.path.relpath(file, self._desk.here)
        if self._tape is None:
            return f"this run is kept: rewind inspect {saying.quoted(kept)}"
        told = parting(reel_of(self._tape), reel)
        good = os.path.relpath(self._part.cassette, self._desk.here)
        return "\n".join(filter(None, (told, failing.bisect_command(good, kept))))

    # ── ending ───────────────────────────────────────────────────────────────────────────────────────────────

    def end(self, *, passed: bool) -> Figures:
        """The run is over; what it recorded is still there for ``settle``."""
        result = self._result = self.run.finish(0 if passed else 1)
        self._leave()
        return self._figures(result, passed=passed)

    def settle(self, figures: Figures) -> Figures:
        """Raises RewindError where a cassette could not be written."""
        try:
            if figures.passed and self._result is not None:
                failing.forget(failing.kept_path(self._desk.root, self._part.own), self._desk.root)
                if self._part.act in (Act.RECORD, Act.EXTEND):
                    return self._write(self._result, figures)
            return figures
        finally:
            self.run.forget()

    def _figures(self, result: InProcessResult, *, passed: bool) -> Figures:
        act, tape = self._part.act, self._tape
        figures = Figures(
            test=self._part.address,
            cassette=self._shown,
            act=act.value,
            passed=passed,
            replayed=len(result.served),
            blocked=tuple(dict.fromkeys(result.blocked)),
            remarks=result.remarks,
            stale=self._stale(),
            named=self._part.may_be_others,
        )
        if tape is not None:
            saved = cost_of_steps(reel_of(tape), result.served, self._desk.root)
            figures = replace(
                figures,
                on_tape=tuple(step.index for step in self.run.on_tape()),
                used=tuple(sorted({step.index for step in result.served})),
                saved=saved.usd,
                saved_unpriced=saved.unpriced,
                recorded=tape.session.start.started,
            )
        if act in (Act.RECORD, Act.EXTEND):
            reel = self.run.so_far()
            live = [step for step in live_steps(reel.recording) if step.request.kind in _OF_THE_WORLD]
            spent = cost_of_steps(reel, live, self._desk.root)
            figures = replace(figures, live=len(live), spent=spent.usd, spent_unpriced=spent.unpriced)
        return figures

    def _stale(self) -> str:
        misses = self.run.misses_so_far()
        return "there is no cassette yet" if misses and self._part.act is Act.MISSING else "\n\n".join(misses)

    def _write(self, result: InProcessResult, figures: Figures) -> Figures:
        """What the passing test recorded becomes its cassette, or part of it."""
        if result.broken is not None:
            raise EnvironmentProblem(
                f"{self._shown} is not written: the recording is not complete ({result.broken})."
            )
        reel = of_the_test(self.run.so_far(), self._part.test, exit_code=0)
        path = self._part.cassette
        with self._ledger.writing(path):
            if not live_steps(reel.recording):
                return self._asked_nothing(figures)
            fresh = self._ledger.fresh(path)
            anew = self._part.act is Act.RECORD and not self._ledger.was_written(path)
            if path.exists() and not anew:
                played = () if self._tape is None else self._tape.recording.steps
                reel = extended(opened(self._part, self._shown, self._basis), played, reel, hosts=self._hosts)
            if path.exists() and self._part.may_be_others and (anew or fresh.exists()):
                reel, kept = self._with_those_of_others(reel, fresh)
                figures = replace(figures, kept=kept)
            return self._put_down(reel, figures)

    def _with_those_of_others(self, reel: Reel, fresh: Path) -> tuple[Reel, int]:
        """Behind what is new, the old steps that have no equal: a test that is not run, or fails, may need them."""
        from rewind.store.cassette.cassette import write_cassette, write_cassette_file

        old = as_if_live(reel_of(opened(self._part, self._shown, self._part.cassette)))
        write_cassette_file(fresh, write_cassette(reel.recording, reel.blob))
        both = extended(open_file(str(fresh)), (), old)
        return both, len(both.recording.steps) - len(reel.recording.steps)

    @property
    def _hosts(self) -> tuple[str, ...]:
        return (*settings_at(self._desk.root).hosts, *self._part.wish.hosts)

    def _asked_nothing(self, figures: Figures) -> Figures:
        """There is nothing to write, and with ``rewrite`` nothing to keep either."""
        path = self._part.cassette
        gone = self._part.act is Act.RECORD and self._desk.choice.of(self._part.wish.mode) is Mode.REWRITE
        if gone and path.exists() and not self._ledger.was_written(path) and not self._part.may_be_others:
            path.unlink()
            return replace(figures, remarks=(*figures.remarks, f"asked nothing; {self._shown} is removed"))
        return figures

    def _put_down(self, reel: Reel, figures: Figures) -> Figures:
        from rewind.reading.export import findings_in
        from rewind.store.cassette.cassette import write_cassette, write_cassette_file

        found = findings_in(reel.recording, reel.blob)
        secrets = tuple(_told(one.step, one.where, one.path, one.kind) for one in found)
        if secrets and self._desk.strict:
            raise EnvironmentProblem(
                f"{self._shown} is not written, because it seems to hold a secret: {'; '.join(secrets)}.",
                hint="Take it out of what the test sends, or record without --rewind-strict.",
            )
        path = self._part.cassette
        data = write_cassette(reel.recording, reel.blob)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_cassette_file(path, data)
        except OSError as problem:
            raise EnvironmentProblem(f"{self._shown} cannot be written: {problem.strerror}.") from problem
        self._ledger.note(path)
        return replace(figures, wrote=True, secrets=secrets, recorded=None)


def _told(step: int | None, where: str, path: str, kind: str) -> str:
    place = (f"step {step}, " if step is not None else "") + where + (f" {path}" if path else "")
    return f"{place} looks like {kind}"
