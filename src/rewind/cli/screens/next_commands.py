"""What to do about a divergence: commands to paste."""

import shlex
from collections.abc import Iterator, Sequence

from rewind.compare.cause import CauseKind
from rewind.compare.divergence import Finding
from rewind.compare.remedy import remedies
from rewind.edit.edits import Edit

_MOST_EDITS = 3
_LONGEST_EDIT = 200
"""Characters of an edit that one would still paste."""


def next_moves(
    finding: Finding,
    good: str,
    bad: str,
    proven: Sequence[Edit] | None = None,
    *,
    command: str | None = "",
) -> Iterator[str]:
    """The commands that go on from here, each with what it is for; ``proven`` are edits that turn the outcome.

    ``command`` stands behind those that run the agent again; with ``None`` it cannot be run again.
    """
    if finding.at is None:
        return
    moves = []
    if command is not None:
        forks = _forks(finding, bad) if proven is None else _fork_with(finding, bad, proven)
        moves += [("try it", f"{fork}{command}") for fork in forks]
        if proven is None and finding.answers_part and remedies(finding):
            moves.insert(0, ("prove it", f"rewind bisect {good} {bad} --prove{command}"))
    moves.append(("see all", f"rewind diff {good} {bad}"))
    width = max(len(what) for what, _ in moves) + 1
    for what, command in moves:
        yield f"→ {what + ':':<{width}}  {command}"


def _fork_with(finding: Finding, bad: str, edits: Sequence[Edit]) -> Iterator[str]:
    assert finding.at is not None, "runs that part are forked where they do"
    typed = all(len(edit.written) <= _LONGEST_EDIT for edit in edits) and len(edits) <= _MOST_EDITS
    if edits and typed and finding.at.b is not None:
        fork = f"rewind fork {bad}:{finding.at.b.index}"
        yield " ".join([fork, *(f"--set {shlex.quote(edit.written)}" for edit in edits)])


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
            yield from _fork_with(finding, bad, () if remedy is None else remedy.edits)
