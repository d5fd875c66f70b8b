"""Probe: run a bad run again up to where it parts, put one thing back as it was in the good run, and see what comes.

Each probe is a fork that asks one step live and is then ended. First the bad run's own request is asked once more, as
a control: if that already comes out well, nothing can be proven. Then every suspect is put back, one at a time, and
all together where none does it alone. A changed prompt that is proven is narrowed down to the smallest change.
"""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Literal

from rewind.compare.cause import CauseKind
from rewind.compare.divergence import Finding
from rewind.compare.proof import (
    AnswerOutcome,
    Hunk,
    Patchwork,
    Search,
    answer_outcome,
    by_sentence,
    finer,
    is_reworded,
    smallest,
)
from rewind.compare.remedy import Remedy, remedies
from rewind.conversation.context import parts_text
from rewind.conversation.outline import read_step
from rewind.dataclass import dataclass
from rewind.edit.edits import Edit, SetSystem, TextValue
from rewind.errors import CannotEdit, ExitCode, RewindError, UsageError
from rewind.gateway.options import UpstreamOptions
from rewind.model.message import Answered
from rewind.model.names import MatchMode
from rewind.model.session import Session
from rewind.model.step import Step, StepKind
from rewind.pricing.spending import Pricing, Spending
from rewind.runs.fork.budget import Budget
from rewind.runs.fork.plan import ForkOptions
from rewind.runs.fork.run import ForkResult, fork
from rewind.runs.rerun import command_to_run
from rewind.store.library import Library


class NothingToProve(UsageError):
    """There is nothing that could be put back."""


class ProbeFailed(RewindError):
    """The agent does not come to the step again, so nothing can be asked there."""

    exit_code = ExitCode.MISS


@dataclass(frozen=True, slots=True, kw_only=True)
class ProveOptions:
    """How the bad run is run again, and at what price."""

    home: Path
    samples: int = 1
    most_calls: int = 40
    """How many live calls may be made."""
    max_cost: float | None = None
    """In US dollars; needs ``prices``."""
    allow_drift: bool = False
    tools: Literal["replay", "live"] = "replay"
    """``live``: the agent's own tools run before the step, too."""
    command: tuple[str, ...] | None = None
    """In place of the recorded one."""
    upstream: UpstreamOptions = UpstreamOptions()
    ignore: tuple[str, ...] = ()
    match: MatchMode = "renamed"
    ignore_text: tuple[str, ...] = ()
    prices: Pricing | None = None
    announce: Callable[[str], None] = lambda _sentence: None
    """Told, once, what a person should know before an agent starts."""
    on_trial: Callable[["ProbeResult"], None] = lambda _trial: None
    """Called with each trial when it is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """Something that was put back, and how the runs came out."""

    what: str
    edits: tuple[Edit, ...] = ()
    outcomes: tuple[AnswerOutcome, ...] = ()
    """One for each sample."""
    sessions: tuple[str, ...] = ()
    kind: CauseKind | None = None
    """``None`` for the control, and for steps of the search for the smallest change."""
    refused: str | None = None
    """Why it could not be put back: a signed request, a secret that is not in the recording."""

    @property
    def like_good(self) -> int:
        return self.outcomes.count(AnswerOutcome.GOOD)

    @property
    def turned(self) -> bool:
        """Whether more than half came out like the good run."""
        return 2 * self.like_good > len(self.outcomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Smallest:
    """The smallest change of a text that turns the outcome."""

    sentences: tuple[Hunk, ...]
    of: int
    """Among how many sentences that differ."""
    words: tuple[Hunk, ...] = ()
    """Within those sentences, where fewer words than all that differ turn it."""
    complete: bool
    """False: the calls ran out before it was found; this is what is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What the probes came to."""

    control: ProbeResult
    trials: tuple[ProbeResult, ...] = ()
    smallest: Smallest | None = None
    live_calls: int = 0
    spent: Spending = field(default_factory=Spending)
    stopped: str | None = None
    """Why not all was tried."""

    @property
    def proven(self) -> tuple[ProbeResult, ...]:
        """Without it no run came out well, and with it every one did."""
        if self.control.like_good:
            return ()
        return tuple(trial for trial in self.trials if trial.like_good == len(trial.outcomes) > 0)

    @property
    def remedy(self) -> tuple[Edit, ...]:
        """The edits that turn the outcome; none where nothing is proven."""
        return self.proven[0].edits if self.proven else ()


def prove(finding: Finding, bad: Session, options: ProveOptions) -> Proof:
    """Probe by probe. Raises NothingToProve, and whatever a fork may raise."""
    good = finding.comparison.a.recording.session
    command_to_run(bad, options.command, f"bisect {good.ref} {bad.ref} --prove")
    return _Prover(finding, bad, options).proof()


class _Stopped(Exception):
    """No more may be asked; says why."""


class _Prover:
    """Asks, and keeps count."""

    def __init__(self, finding: Finding, bad: Session, options: ProveOptions) -> None:
        self._finding = finding
        self._options = options
        self._bad_run = ForkOptions(
            session=bad,
            step=finding.step[1] or 0,
            home=options.home,
            command=options.command,
            tools=options.tools,
            allow_drift=options.allow_drift,
            upstream=options.upstream,
            ignore=options.ignore,
            match=options.match,
            ignore_text=options.ignore_text,
            pricing=options.prices,
            budget=_budget(options),
            announce=_once(options.announce),
            stop_after=True,
            quiet=True,
            probe=True,
        )
        self._calls = 0
        self._spent: list[Spending] = []

    def proof(self) -> Proof:
        row = self._finding.at
        if row is None or row.a is None or row.b is None or row.a.sketch is None:
            raise NothingToProve(
                "The runs do not part at a step that both made, so nothing can be put back.",
                hint="rewind diff shows all that differs",
            )
        if not self._finding.answers_part:
            raise NothingToProve(
                "Both runs do the same, so there is no outcome to turn.", hint="rewind diff shows all that differs"
            )
        found = remedies(self._finding)
        try:
            control = self._try("nothing, as a control", ())
        except _Stopped as stop:
            raise NothingToProve(f"The control could not be completed: {stop}.") from stop
        trials: list[ProbeResult] = []
        stopped, least = None, None
        try:
            # What was tried before a stop stays in the list.
            trials.extend(self._put_back(remedy) for remedy in found)
            tried = [trial for trial in trials if trial.refused is None]
            if len(tried) > 1 and not any(trial.turned for trial in tried):
                edits = tuple(chain(*(trial.edits for trial in tried)))
                trials.append(self._try("all of them together", edits))
        except _Stopped as stop:
            stopped = str(stop)
        prompt_turns_it = any(trial.kind is CauseKind.SYSTEM and trial.turned for trial in trials)
        if prompt_turns_it and not control.like_good and stopped is None:
            least, stopped = self._narrowed()
        return Proof(
            control=control,
            trials=tuple(trials),
            smallest=least,
            live_calls=self._calls,
            spent=_sum(self._spent),
            stopped=stopped,
        )

    def _put_back(self, remedy: Remedy) -> ProbeResult:
        try:
            return self._try(remedy.what, remedy.edits, kind=remedy.kind)
        except CannotEdit as refusal:
            trial = ProbeResult(
                what=remedy.what, edits=remedy.edits, kind=remedy.kind, refused=refusal.message.rstrip(".")
            )
            self._options.on_trial(trial)
            return trial

    # ── one probe ────────────────────────────────────────────────────────────────────────────────────────────

    def _try(self, what: str, edits: tuple[Edit, ...], kind: CauseKind | None = None) -> ProbeResult:
        outcomes, sessions = [], []
        for sample in range(self._options.samples):
            if self._calls >= self._options.most_calls:
                raise _Stopped(f"the limit of {self._calls} live calls is reached")
            result = self._fork(edits, sample)
            outcomes.append(self._outcome(result))
            sessions.append(result.session_id)
        trial = ProbeResult(what=what, edits=edits, outcomes=tuple(outcomes), sessions=tuple(sessions), kind=kind)
        self._options.on_trial(trial)
        return trial

    def _fork(self, edits: tuple[Edit, ...], sample: int) -> ForkResult:
        several = self._options.samples > 1
        result = fork(replace(self._bad_run, edits=edits, sample=sample + 1 if several else None))
        self._calls += sum(step.request.kind is StepKind.LLM_CALL for step in result.live)
        self._spent.append(result.spent)
        if result.answer is None and result.exit_code == ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        if result.answer is None and result.stopped is not None:
            raise _Stopped(result.stopped)
        if result.answer is None:
            raise ProbeFailed(
                f"A probe never reached the step. {result.unasked or ''}".rstrip(),
                hint=f"rewind inspect {result.session_id}",
            )
        return result

    def _outcome(self, result: ForkResult) -> AnswerOutcome:
        assert result.answer is not None, "an unanswered probe has raised"
        response = result.answer.response
        if response is None or response.head is None:
            why = response.reason if response is not None else None
            raise _Stopped(f"the provider did not answer ({why or 'nothing came'})")
        return answer_outcome(self._answer(result.session_id, result.answer), self._good, self._bad)

    def _answer(self, session: str, step: Step) -> Answered | None:
        library = Library(self._options.home)
        with library.open(library.find(session)) as reader:
            found = next((known for known in reader.recording().steps if known.index == step.index), None)
            return None if found is None else read_step(found, lambda step: step.bodies(reader.blob)).answered

    @cached_property
    def _good(self) -> Answered | None:
        row = self._finding.at
        assert row is not None and row.a is not None, "there is something to prove"
        return self._finding.comparison.a.answered(row.a.index)

    @cached_property
    def _bad(self) -> Answered | None:
        row = self._finding.at
        assert row is not None and row.b is not None, "there is something to prove"
        return self._finding.comparison.b.answered(row.b.index)

    # ── the smallest change ──────────────────────────────────────────────────────────────────────────────────

    def _narrowed(self) -> tuple[Smallest, str | None]:
        """By sentence, then by word within what is left; and why the search was not finished."""
        comparison, row = self._finding.comparison, self._finding.at
        assert row is not None and row.a is not None and row.b is not None, "there is something to prove"
        good, bad = comparison.a.asked(row.a.index), comparison.b.asked(row.b.index)
        sentences = by_sentence(parts_text(good.system), parts_text(bad.system))
        left, stopped = self._search(sentences)
        hunks = tuple(sentences.hunks[at] for at in sorted(left))
        least = Smallest(sentences=hunks, of=len(sentences.hunks), complete=stopped is None)
        words = finer(sentences, left)
        if stopped is not None or len(words.hunks) < 2 or not all(map(is_reworded, hunks)):
            return least, stopped
        fewer, stopped = self._search(words)
        if len(fewer) < len(words.hunks):
            least = replace(least, words=tuple(words.hunks[at] for at in sorted(fewer)))
        return replace(least, complete=stopped is None), stopped

    def _search(self, patchwork: Patchwork) -> tuple[frozenset[int], str | None]:
        """The fewest hunks that turn the outcome, and why no fewer were looked for."""
        search: Search = smallest(len(patchwork.hunks))
        known = frozenset(range(len(patchwork.hunks)))
        try:
            probe = next(search)
            while True:
                known = probe.known
                what = f"{len(probe.put_back)} of {len(patchwork.hunks)} changes of the prompt"
                edit = SetSystem(TextValue(patchwork.text(probe.put_back)))
                probe = search.send(self._try(what, (edit,)).turned)
        except StopIteration as found:
            return found.value, None
        except _Stopped as stop:
            return known, str(stop)


def _sum(parts: Sequence[Spending]) -> Spending:
    known = [part.usd for part in parts if part.usd is not None]
    return Spending(usd=sum(known) if known else None, unpriced=sum(part.unpriced for part in parts))


def _budget(options: ProveOptions) -> Budget | None:
    if options.max_cost is None:
        return None
    assert options.prices is not None, "a limit in dollars needs prices"
    return Budget(options.max_cost, options.prices)


def _once(announce: Callable[[str], None]) -> Callable[[str], None]:
    """Every probe would say the same."""
    said: set[str] = set()

    def say(sentence: str) -> None:
        if sentence not in said:
            said.add(sentence)
            announce(sentence)

    return say
