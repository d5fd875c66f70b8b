"""Why two runs parted, for people: a sentence for each cause, and the evidence below it."""

from collections.abc import Iterator, Sequence

from rewind.cli.screens.difference import difference_lines
from rewind.cli.screens.paragraph import Line, print_hanging
from rewind.cli.screens.terminal import Span, Terminal
from rewind.compare.cause import Cause, CauseKind
from rewind.compare.divergence import Finding
from rewind.compare.phrases import cause_place, cause_title
from rewind.safe import safe_line

_MOST_CAUSES = 6
_MOST_EVIDENCE = 10
"""Lines of evidence for the first cause."""
_BRIEF = 160
"""Characters of evidence for the others."""
_SHORT = 72
"""Characters up to which evidence stands behind its title."""
_IN_ONE_LINE = frozenset({CauseKind.MODEL, CauseKind.SNAPSHOT, CauseKind.PARAMETERS})


def cause_blocks(finding: Finding) -> Iterator[list[Line]]:
    """All causes, ranked, a block of lines for each: the first in full, of the others what changed."""
    for number, cause in enumerate(finding.causes[:_MOST_CAUSES]):
        title, *evidence = cause_lines(cause, cause_place(finding, cause, brief=number > 0))
        shown = evidence if number == 0 else _brief(evidence)
        yield [title, *((Span("  "), *line) for line in shown)]


def print_causes(
    terminal: Terminal, blocks: Sequence[list[Line]], labels: tuple[str, str], indent: int
) -> None:
    """The blocks below each other, numbered where there are several; ``labels`` for one of them, and for more."""
    if len(blocks) == 1:
        print_hanging(terminal, blocks[0], label=labels[0], indent=indent, style="bold")
        return
    for number, block in enumerate(blocks, 1):
        label = f"{labels[1] if number == 1 else '':<{indent}}{number}"
        print_hanging(terminal, block, label=label, indent=indent + 3, style="bold")


def cause_lines(cause: Cause, place: str = "") -> list[Line]:
    """The title, then the evidence; short evidence stands behind its title."""
    evidence = list(_evidence(cause))
    title: Line = (Span(cause_title(cause), "bold"),)
    if cause.kind in _IN_ONE_LINE and len(evidence) == 1 and _length(evidence) <= _SHORT:
        title, evidence = (*title, Span(": "), *evidence[0]), []
    if place:
        title = (*title, Span(f", {place}", "dim"))
    if cause.evidence:
        evidence.append((Span(cause.evidence, "dim"),))
    return [title, *evidence]


def _evidence(cause: Cause) -> Iterator[Line]:
    several = len(cause.differences) > 1
    most = _MOST_EVIDENCE // 2 if several else _MOST_EVIDENCE
    left = _MOST_EVIDENCE
    for one in cause.differences:
        if cause.kind is CauseKind.ERROR and (
            one.before is None or one.after is None or one.place == "status"
        ):
            continue  # stands in the title, and where the runs part
        lines = difference_lines(one, most=most)
        if several and cause.kind is CauseKind.TOOL_OUTPUT and one.about:
            # Which result it is stands in the title where there is only one.
            lines = [(Span(f"{one.about}:"),), *((Span("  "), *line) for line in lines)]
        if left <= 0:
            yield (Span("…", "dim"),)
            return
        yield from lines
        left -= len(lines)


def _brief(evidence: Sequence[Line]) -> list[Line]:
    """The first line with a change in it, with the one below where what went and what came stand apart; of each as
    much as is read at a glance."""
    changed = [line for line in evidence if _styles(line) & {"red", "green"}]
    if not changed:
        return list(evidence[:1])
    apart = len(changed) > 1 and _styles(changed[0]) | _styles(changed[1]) >= {"red", "green"} > _styles(
        changed[0]
    )
    return [_start(line) for line in changed[: 2 if apart else 1]]


def _styles(line: Line) -> set[str]:
    return {span.style for span in line} & {"red", "green"}


def _start(line: Line) -> Line:
    spans: list[Span] = []
    room = _BRIEF
    for span in line:
        spans.append(Span(safe_line(span.text, room) if len(span.text) > room else span.text, span.style))
        room -= len(span.text)
        if room <= 0:
            break
    return tuple(spans)


def _length(lines: Sequence[Line]) -> int:
    return sum(len(span.text) for line in lines for span in line)
