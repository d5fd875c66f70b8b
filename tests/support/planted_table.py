"""What a comparison said of planted pairs, counted: which cause it named for which, and whether the step was right."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rewind.compare.cause import CauseKind
from rewind.compare.divergence import Finding
from support.planted import Case

NO_DIVERGENCE = "no divergence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was said of one case."""

    case: Case
    step: tuple[int | None, int | None]
    named: tuple[CauseKind, ...]
    diverges: bool

    @classmethod
    def of(cls, case: Case, finding: Finding) -> "Verdict":
        named = tuple(dict.fromkeys(cause.kind for cause in finding.causes))
        return cls(case=case, step=finding.step, named=named, diverges=finding.diverges)

    @property
    def first(self) -> str:
        return self.named[0] if self.named else NO_DIVERGENCE

    @property
    def planted(self) -> str:
        return self.case.planted[0] if self.case.planted else NO_DIVERGENCE

    @property
    def is_right(self) -> bool:
        """Whether what was planted stands first. Of two causes either may: the scripted model takes up neither."""
        return self.first in (self.case.planted or (NO_DIVERGENCE,))

    @property
    def is_there(self) -> bool:
        """Whether the step is the planted one; for noise, whether there is none."""
        return self.case.is_there(self.step) if self.case.planted else not self.diverges

    @property
    def has_all(self) -> bool:
        return set(self.case.planted) <= set(self.named)

    def __str__(self) -> str:
        wanted = " + ".join(self.case.planted) or NO_DIVERGENCE
        said = " + ".join(self.named) or NO_DIVERGENCE
        places = f"{_steps(self.case.good_steps)} against {_steps(self.case.bad_steps)}"
        return f"{self.case.name}\n    planted: {wanted} at {places}\n    named:   {said} at {self.step}"


def _steps(steps: Iterable[int | None]) -> str:
    return " or ".join(sorted("none" if step is None else str(step) for step in steps)) or "none"


def confusion_table(verdicts: Sequence[Verdict]) -> str:
    """Planted causes down, named causes across; then how often the step was right."""
    labels = [kind.value for kind in CauseKind] + [NO_DIVERGENCE]
    counted = Counter((verdict.planted, verdict.first) for verdict in verdicts)
    there = Counter(verdict.planted for verdict in verdicts if verdict.is_there)
    total = Counter(verdict.planted for verdict in verdicts)
    width = max(map(len, labels))
    letters = [f"{number:>4}" for number in range(1, len(labels) + 1)]
    lines = [f"{'planted':>{width + 3}} |{''.join(letters)} | cause first | step right"]
    lines.append("-" * len(lines[0]))
    for number, label in enumerate(labels, 1):
        if not total[label]:
            continue
        cells = "".join(f"{counted[label, other] or '.':>4}" for other in labels)
        right = f"{counted[label, label]:>4} of {total[label]:<4}"
        lines.append(f"{number:>2} {label:>{width}} |{cells} | {right} | {there[label]:>4}")
    return "\n".join(lines)
