"""An experiment: the same question as it was and with things put back, asked in turns until the rates tell.

Who answers is of no concern here: a probe asks a model, a test tosses a coin.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from rewind.compare.cause import CauseKind
from rewind.compare.proof import AnswerOutcome, Patchwork, Search, by_sentence, finer, is_reworded, smallest
from rewind.compare.rates import FIRST_LOOK, Effect, EffectVerdict, effect_of, turns
from rewind.dataclass import dataclass
from rewind.edit.edits import Edit, SetSystem, TextValue
from rewind.runs.proof import ProbeResult, Smallest, rate_of

_MOST_UNCLEAR = 10
"""So many unclear answers to one question, most of all, and no more of them are asked for."""
_MOST_TRIES = 12
"""Clear answers to one question of the search for the smallest change."""


class ExperimentStopped(Exception):
    """No more may be asked; says why."""


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """How one probe came out, and the session that it is."""

    outcome: AnswerOutcome
    session: str


class Question:
    """What is put back, and what came of it so far."""

    def __init__(self, what: str, edits: tuple[Edit, ...] = (), kind: CauseKind | None = None) -> None:
        self.what = what
        self.edits = edits
        self.kind = kind
        self.refused: str | None = None
        self.outcomes: tuple[AnswerOutcome, ...] = ()
        self.sessions: tuple[str, ...] = ()
        self.effect: Effect | None = None

    @property
    def clear(self) -> int:
        return rate_of(self.outcomes).of

    @property
    def established(self) -> bool:
        return self.effect is not None and self.effect.established

    @property
    def result(self) -> ProbeResult:
        return ProbeResult(
            what=self.what,
            edits=self.edits,
            outcomes=self.outcomes,
            sessions=self.sessions,
            kind=self.kind,
            refused=self.refused,
            effect=self.effect,
        )


class Experiment:
    """Asks in turns, and looks at the rates after each round."""

    def __init__(
        self, answer: Callable[[Question], ProbeAnswer], *, samples: int = FIRST_LOOK, suspects: int = 1
    ) -> None:
        """``answer`` raises ExperimentStopped where no more may be asked; ``suspects`` share the error rate."""
        self._answer = answer
        self._looks_from = max(FIRST_LOOK, samples)
        self._suspects = max(1, suspects)
        self.control = Question("as it was")

    def settle(self, questions: Sequence[Question]) -> None:
        """As it was and with each thing put back, in turns, until every rate tells something; or one tells all.

        Raises ExperimentStopped.
        """
        waiting = list(questions)
        count = 0
        while waiting or (not questions and count < self._looks_from):
            count += 1
            for question in (self.control, *waiting):
                while question.clear < count:
                    self._ask(question)
            if count < self._looks_from:
                continue
            for question in waiting:
                self.look_at(question)
            waiting = [one for one in waiting if one.effect is None or not one.effect.settled]
            if any(one.effect is not None and one.effect.verdict is EffectVerdict.CAUSES for one in questions):
                return

    def look_at(self, question: Question) -> None:
        """At as many answers of either side as both have, the first ones."""
        count = min(self.control.clear, question.clear)
        as_it_was, put_back = (rate_of(one.outcomes, count) for one in (self.control, question))
        question.effect = effect_of(as_it_was, put_back, self._suspects)

    def _ask(self, question: Question) -> None:
        unclear = question.outcomes.count(AnswerOutcome.UNCLEAR)
        if unclear >= _MOST_UNCLEAR and unclear > question.clear:
            of = f"{unclear} of {len(question.outcomes)} answers"
            asked = question.what if question is self.control else f"with {question.what} put back"
            raise ExperimentStopped(f"{of} {asked} are like neither run (--bad-if says which are bad)")
        answer = self._answer(question)
        question.outcomes += (answer.outcome,)
        question.sessions += (answer.session,)

    # ── the smallest change ──────────────────────────────────────────────────────────────────────────────────

    def narrowed(self, good: str, bad: str, prompt: Question) -> tuple[Smallest, str | None]:
        """The smallest change of a prompt that turns the outcome, and why the search was not finished.

        By sentence, then by word within what is left. ``prompt`` is the whole of it, put back.
        """
        sentences = by_sentence(good, bad)
        left, why = self._search(sentences, prompt)
        hunks = tuple(sentences.hunks[at] for at in sorted(left))
        least = Smallest(sentences=hunks, of=len(sentences.hunks), complete=why is None)
        found, all_put_back = sentences.text(left), len(hunks) == len(sentences.hunks)
        words = finer(sentences, left)
        if why is None and len(words.hunks) > 1 and all(map(is_reworded, hunks)):
            fewer, why = self._search(words, prompt)
            if len(fewer) < len(words.hunks):
                least = replace(least, words=tuple(words.hunks[at] for at in sorted(fewer)))
                found, all_put_back = words.text(fewer), False
            least = replace(least, complete=why is None)
        if why is not None or all_put_back:
            return least, why
        check = _with_prompt("that change alone", found)
        try:
            self.settle([check])
        except ExperimentStopped as stop:
            why = str(stop)
            self.look_at(check)
        return replace(least, check=check.result), why

    def _search(self, patchwork: Patchwork, prompt: Question) -> tuple[frozenset[int], str | None]:
        """The fewest hunks that turn the outcome, and why no fewer were looked for."""
        search: Search = smallest(len(patchwork.hunks))
        known = frozenset(range(len(patchwork.hunks)))
        try:
            probe = next(search)
            while True:
                known = probe.known
                what = f"{len(probe.put_back)} of {len(patchwork.hunks)} changes of the prompt"
                probe = search.send(self._turns(_with_prompt(what, patchwork.text(probe.put_back)), prompt))
        except StopIteration as found:
            return found.value, None
        except ExperimentStopped as stop:
            return known, str(stop)

    def _turns(self, question: Question, prompt: Question) -> bool:
        """Whether it comes out as with the whole prompt put back: asked until that is sure enough."""
        was, back = rate_of(self.control.outcomes), rate_of(prompt.outcomes)
        while (turned := turns(was, back, rate_of(question.outcomes))) is None:
            if question.clear >= _MOST_TRIES:
                raise ExperimentStopped(
                    f"{_MOST_TRIES} answers do not tell whether {question.what} make the difference"
                )
            self._ask(question)
        return turned


def _with_prompt(what: str, text: str) -> Question:
    return Question(what, (SetSystem(TextValue(text)),))
