"""What to do about a divergence: commands to paste."""

import shlex
from collections.abc import Iterator

from rewind.compare.cause import CauseKind
from rewind.compare.divergence import Finding
from rewind.compare.remedy import Remedy, remedies

_MOST_EDITS = 3
_LONGEST_EDIT = 200
"""Characters of an edit that one would still paste."""


def next_moves(finding: Finding, good: str, bad: str, *, proven: bool = False) -> Iterator[str]:
    """The commands that go on from here, each with what it is for."""
    if finding.at is None:
        return
    moves = [("try it", command) for command in _forks(finding, bad)]
    if remedies(finding) and not proven:
        moves.insert(0, ("prove it", f"rewind bisect {good} {bad} --prove"))
    moves.append(("see all", f"rewind diff {good} {bad}"))
    width = max(len(what) for what, _ in moves) + 1
    for what, command in moves:
        yield f"→ {what + ':':<{width}}  {command}"


def _forks(finding: Finding, bad: str) -> Iterator[str]:
    """The bad run again, with what the good one had in that place."""
    if not finding.causes or finding.at is None or finding.at.b is None:
        return
    fork = f"rewind fork {bad}:{finding.at.b.index}"
    match finding.causes[0].kind:
        case CauseKind.SAMPLING:
            yield f"{fork} --samples 5"
        case CauseKind.ERROR:
            yield fork
        case kind:
            remedy = next((one for one in remedies(finding) if one.kind is kind), None)
            if remedy is not None and len(remedy.edits) <= _MOST_EDITS and _can_be_typed(remedy):
                yield " ".join([fork, *(f"--set {shlex.quote(edit.written)}" for edit in remedy.edits)])


def _can_be_typed(remedy: Remedy) -> bool:
    return all(len(edit.written) <= _LONGEST_EDIT for edit in remedy.edits)
