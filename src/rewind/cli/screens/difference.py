"""How differences and causes are shown, for people.

Word by word where a text was edited, by field where it is JSON, by name where it has one.

What went stands in ``[-…-]``, what came in ``{+…+}``; colours only help. Equal stretches are folded, to ``…``.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import Any

from rewind.cli.screens.context import SIGNS
from rewind.cli.screens.layout import Line, print_hanging
from rewind.cli.screens.terminal import Span, Terminal
from rewind.compare.cause import FOLDED, Cause, CauseKind, Standing
from rewind.compare.delta import Aspect, CallPlace, Difference, NamedPlace, ToolPlace, value_differences
from rewind.compare.divergence import Finding
from rewind.compare.phrases import cause_place, cause_title
from rewind.compare.texts import WordFate, WordPiece, word_pieces
from rewind.conversation.context import Fate
from rewind.safe import safe_line
from rewind.text import plural

MOST = 12
"""Lines of one difference that are shown; what is longer is folded."""
_AROUND = 40
"""Characters of unchanged text beside a change."""
_PIECE = 600
"""Characters of a changed stretch."""
_SHORT = 60
"""Characters up to which two values are shown side by side."""
_QUOTED = 200
"""Characters of a message that was added or dropped."""
_MOST_FIELDS = 8
_EDITED = 0.25
"""The share of a text that must have stayed for it to be shown as an edit."""
_MARKS = {WordFate.KEPT: ("", "", ""), WordFate.GONE: ("[-", "-]", "red"), WordFate.COME: ("{+", "+}", "green")}
_MOST_CAUSES = 6
_MOST_EVIDENCE = 10
"""Lines of evidence for the first cause."""
_BRIEF = 160
"""Characters of evidence for the others."""
_HALF = 48
"""Characters of a stretch where both what went and what came are to be seen."""
_BEHIND_TITLE = 72
"""Characters up to which evidence stands behind its title."""
_IN_ONE_LINE = frozenset({CauseKind.MODEL, CauseKind.SNAPSHOT, CauseKind.PARAMETERS})


def difference_lines(difference: Difference, *, most: int | None = MOST) -> list[Line]:
    """The difference, less its heading; ``most`` lines of it, or all."""
    match difference.aspect:
        case Aspect.HISTORY:
            lines = _history_lines(difference, full=most is None)
        case Aspect.TOOLS:
            assert isinstance(difference.place, ToolPlace), "a difference of tools names a tool"
            lines = (
                _named(f"{difference.place.name} {difference.place.inner}", difference, full=most is None)
                if difference.place.path
                else change_lines(difference.before, difference.after)
            )
        case Aspect.PARAMETERS:
            lines = _named(str(difference.place), difference, full=most is None)
        case Aspect.CALLS if isinstance(difference.place, CallPlace) and not _is_whole_call(
            difference, difference.place
        ):
            lines = _named(difference.place.label, difference, full=most is None)
        case _:
            lines = change_lines(difference.before, difference.after, full=most is None)
    return _at_most(lines, most)


def _is_whole_call(difference: Difference, place: CallPlace) -> bool:
    """Whether only one side makes the call, so that it is shown as it was made."""
    return difference.fate is not Fate.CHANGED and not place.path


def change_lines(before: str | None, after: str | None, *, full: bool = False) -> list[Line]:
    """What a text was, and what it is."""
    if before is None or after is None:
        return _one_sided(before, after)
    if _is_short(before) and _is_short(after) and " " not in before.strip() + after.strip():
        return [_arrow(before, after)]
    return _field_lines(before, after) or word_lines(before, after, full=full)


def word_lines(before: str, after: str, *, full: bool = False) -> list[Line]:
    """Both texts in one, or one below the other where little of the text stayed."""
    pieces = word_pieces(before, after)
    kept = sum(len(piece.text.strip()) for piece in pieces if piece.fate is WordFate.KEPT)
    if kept < _EDITED * min(len(before.strip()), len(after.strip())):
        return [*_one_sided(before, None), *_one_sided(None, after)]
    lines = [list(run) for is_break, run in _by_line(pieces) if not is_break]
    return [_spans(line) for line in lines] if full else list(_folded(lines))


def _is_short(text: str) -> bool:
    return len(text) <= _SHORT and "\n" not in text


def _arrow(before: str, after: str) -> Line:
    return Span(before or '""', "red"), Span(" → "), Span(after or '""', "green")


def _one_sided(before: str | None, after: str | None) -> list[Line]:
    sign, style = ("−", "red") if after is None else ("+", "green")
    text = (before if after is None else after) or '""'
    return [(Span(f"{sign} {line}", style),) for line in text.strip("\n").split("\n")]


def _named(name: str, difference: Difference, *, full: bool) -> list[Line]:
    """A value that has a name: ``temperature 0 → 1``."""
    if difference.before is None or difference.after is None:
        sign, style = ("−", "red") if difference.after is None else ("+", "green")
        value = (difference.before if difference.after is None else difference.after) or ""
        return [(Span(f"{sign} {name}", style), Span(f" {value}"))]
    is_text = " " in difference.before.strip() and " " in difference.after.strip()
    if _is_short(difference.before) and _is_short(difference.after) and not is_text:
        return [(Span(f"{name} "), *_arrow(difference.before, difference.after))]
    first, *rest = word_lines(difference.before, difference.after, full=full)
    if first[0].text.startswith("− "):
        return [(Span(f"{name}:"),), first, *rest]
    return [(Span(f"{name}: "), *first), *rest]


def _history_lines(difference: Difference, *, full: bool) -> list[Line]:
    """``✂ truncated  tool lookup  messages[3]  200 of 1,157 characters kept``, then the text."""
    sign, style = SIGNS[difference.fate]
    where = (
        f"  {difference.about}  {difference.place}"
        if difference.about != str(difference.place)
        else f"  {difference.place}"
    )
    head = (Span(f"{sign} {difference.fate.value}", style), Span(where))
    before, after = difference.before or "", difference.after or ""
    if difference.fate is Fate.TRUNCATED:
        sizes = Span(f"  {len(before):,} → {plural(len(after), 'character')}", "dim")
        return [(*head, sizes), *(word_lines(before, after) if full else [])]
    if difference.fate is Fate.CHANGED and difference.before is not None and difference.after is not None:
        return [head, *change_lines(before, after, full=full)]
    text = after or before
    if full:
        return [head, *((Span(line),) for line in text.split("\n"))]
    return [(*head, Span(f'  "{safe_line(text, _QUOTED)}"'))]


def _field_lines(before: str, after: str) -> list[Line]:
    """By field, where both are JSON objects or lists and few fields differ; none otherwise."""
    old, new = _json(before), _json(after)
    if type(old) is not type(new) or not isinstance(old, dict | list):
        return []
    fields = list(islice(value_differences(Aspect.TOOL_OUTPUT, old, new), _MOST_FIELDS + 1))
    # What differs in every run is shown only where nothing else does.
    fields = [field for field in fields if field.noise is None] or fields
    if len(fields) > _MOST_FIELDS:
        return []
    return [line for field in fields for line in _named(str(field.place), field, full=False)]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# ── folding ──────────────────────────────────────────────────────────────────────────────────────────────────


def _at_most(lines: list[Line], most: int | None) -> list[Line]:
    """Of many lines, and of a long one, the middle is left out: a text begins and ends with what matters."""
    if most is None:
        return lines
    if len(lines) > most:
        tail = most // 3
        head = most - tail - 1
        lines = [*lines[:head], _fold(len(lines) - head - tail), *lines[len(lines) - tail :]]
    return [tuple(Span(_middle_out(span.text), span.style) for span in line) for line in lines]


def _fold(lines: int) -> Line:
    return (Span(f"… {plural(lines, 'line')}", "dim"),)


def _by_line(pieces: Sequence[WordPiece]) -> Iterator[tuple[bool, Iterator[WordPiece]]]:
    """Runs of pieces that stand in one line, and the breaks between them."""
    parts: list[WordPiece] = []
    for piece in pieces:
        for number, text in enumerate(piece.text.split("\n")):
            if number:
                parts.append(WordPiece(piece.fate, "\n"))
            parts.append(WordPiece(piece.fate, text))
    return groupby(parts, key=lambda piece: piece.text == "\n")


def _folded(lines: Sequence[Sequence[WordPiece]]) -> Iterator[Line]:
    """Lines that changed, one before and one after; how many others there are. Empty ones tell nothing."""
    lines = [line for line in lines if any(piece.text.strip() for piece in line)]
    changed = [any(piece.fate is not WordFate.KEPT and piece.text for piece in line) for line in lines]
    near = [any(changed[max(0, at - 1) : at + 2]) for at in range(len(lines))]
    for is_near, run in groupby(enumerate(lines), key=lambda numbered: near[numbered[0]]):
        shown = list(run)
        if not is_near:
            yield _fold(len(shown))
            continue
        for at, line in shown:
            yield _shortened(line) if changed[at] else _context(line)


def _context(line: Sequence[WordPiece]) -> Line:
    text = "".join(piece.text for piece in line)
    return (Span(safe_line(text, 2 * _AROUND), "dim"),)


def _shortened(line: Sequence[WordPiece]) -> Line:
    """A line with its unchanged stretches cut down to what stands beside the changes."""
    pieces = [piece for piece in line if piece.text]
    spans: list[Span] = []
    for at, piece in enumerate(pieces):
        if piece.fate is WordFate.KEPT:
            spans.append(Span(_beside(piece.text, is_first=at == 0, is_last=at == len(pieces) - 1)))
        else:
            spans += _marked(WordPiece(piece.fate, _middle_out(piece.text, _PIECE - 4)))
    return tuple(spans)


def _spans(line: Sequence[WordPiece]) -> Line:
    return tuple(span for piece in line if piece.text for span in _marked(piece))


def _marked(piece: WordPiece) -> Line:
    begin, end, style = _MARKS[piece.fate]
    return (Span(f"{begin}{piece.text}{end}", style),)


def _beside(text: str, *, is_first: bool, is_last: bool) -> str:
    """What stands next to a change, cut between words."""
    head = "" if is_first else text[:_AROUND]
    tail = "" if is_last else text[-_AROUND:]
    if len(text) <= len(head) + len(tail) + 8:
        return text
    if " " in head.strip():
        head = head[: head.rindex(" ")]
    if " " in tail.strip():
        tail = tail[tail.index(" ") + 1 :]
    return f"{head.rstrip()} … {tail}" if head and tail else f"… {tail}" if tail else f"{head} …"


def _middle_out(text: str, most: int = _PIECE) -> str:
    if len(text) <= most:
        return text
    half = (most - 30) // 2  # room for what is said of the rest
    return f"{text[:half]} … {len(text) - 2 * half:,} characters … {text[-half:]}"


# ── why two runs parted: a sentence for each cause, and the evidence below it ───────────────────────────────────────


def cause_blocks(finding: Finding) -> Iterator[list[Line]]:
    """All causes, ranked, a block of lines for each: the first in full, of the others what changed."""
    for number, cause in enumerate(finding.causes[:_MOST_CAUSES]):
        title, *evidence = cause_lines(cause, cause_place(finding, cause, brief=number > 0))
        shown = evidence if number == 0 else _brief(evidence)
        if number and cause.standing is Standing.VARIES and evidence[-1] not in shown:
            shown = [*shown, evidence[-1]]  # that it also varies in good runs is why it stands here
        yield [title, *((Span("  "), *line) for line in shown)]


def print_causes(terminal: Terminal, blocks: Sequence[list[Line]], labels: tuple[str, str], indent: int) -> None:
    """The blocks below each other, numbered where there are several; ``labels`` for one of them, and for more."""
    if len(blocks) == 1:
        print_hanging(terminal, blocks[0], label=labels[0], indent=indent, style="bold")
        return
    for number, block in enumerate(blocks, 1):
        label = f"{labels[1] if number == 1 else '':<{indent}}{number}"
        print_hanging(terminal, block, label=label, indent=indent + 3, style="bold")


def cause_lines(cause: Cause, place: str = "") -> list[Line]:
    """The title, then the evidence; short evidence stands behind its title."""
    evidence = [] if cause.standing in FOLDED and len(cause.differences) > 1 else list(_evidence(cause))
    title: Line = (Span(cause_title(cause), "bold"),)
    if cause.kind in _IN_ONE_LINE and len(evidence) == 1 and _length(evidence) <= _BEHIND_TITLE:
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
    for difference in cause.differences:
        if cause.kind is CauseKind.ERROR and (
            difference.before is None or difference.after is None or difference.place is NamedPlace.STATUS
        ):
            continue  # stands in the title, and where the runs part
        lines = difference_lines(difference, most=most)
        if several and cause.kind is CauseKind.TOOL_OUTPUT and difference.about:
            # Which result it is stands in the title where there is only one.
            lines = [(Span(f"{difference.about}:"),), *((Span("  "), *line) for line in lines)]
        if left <= 0:
            yield (Span("…", "dim"),)
            return
        yield from lines
        left -= len(lines)


def _brief(evidence: Sequence[Line]) -> list[Line]:
    """The first line with a change in it, and the first with the other half where what went and what came stand apart;
    of each as much as is read at a glance."""
    changed = [line for line in evidence if _styles(line) & {"red", "green"}]
    if not changed:
        return list(evidence[:1])
    first = changed[0]
    other = next((line for line in changed if _styles(line) - _styles(first)), None)
    return [_start(line) for line in (first, other) if line is not None]


def _styles(line: Line) -> set[str]:
    return {span.style for span in line} & {"red", "green"}


def _start(line: Line) -> Line:
    spans: list[Span] = []
    room = _BRIEF
    if len(_styles(line)) > 1:  # neither half may take the room of the other
        line = tuple(Span(safe_line(span.text, _HALF), span.style) if len(span.text) > _HALF else span for span in line)
    for span in line:
        spans.append(Span(safe_line(span.text, room) if len(span.text) > room else span.text, span.style))
        room -= len(span.text)
        if room <= 0:
            break
    return tuple(spans)


def _length(lines: Sequence[Line]) -> int:
    return sum(len(span.text) for line in lines for span in line)
