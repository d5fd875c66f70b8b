"""Several good runs and several bad ones: what do all bad runs share that no good run has?

Every run is aligned with the first good one. A column holds the moves that belong together, one for each run; moves
that the first run did not make have columns of their own. In a column each aspect has a value for each run, ids and
times taken out, and it *tells the runs apart* if all bad runs have the same value and no good run has it.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence

from rewind.compare.align import Row, align
from rewind.compare.cause import KIND_OF_ASPECT, Cause, CauseKind
from rewind.compare.comparison import Comparison, status_of
from rewind.compare.delta import Difference
from rewind.compare.run import ComparedRun, Move
from rewind.compare.texts import without_noise
from rewind.compare.turn import turn_start
from rewind.conversation.context import parts_text, tool_text
from rewind.conversation.message_digest import json_text
from rewind.conversation.sketch import settings_of
from rewind.dataclass import dataclass
from rewind.model.message import Asked, Thinking, ToolResult


@dataclass(frozen=True, slots=True, eq=False)
class MoveColumn:
    """The moves that belong together."""

    cells: tuple[Move | None, ...]
    """One for each run, the good ones first; ``None`` where a run made no such move."""
    answers: tuple[int | None, ...]
    """For each run the number of its answer: runs with the same number said the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCause:
    """Something that all bad runs have and no good one."""

    kind: CauseKind
    column: int
    """Where it is first seen."""
    differences: tuple[Difference, ...]
    """Between the first good run and the first bad one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFinding:
    """Good runs and bad ones, side by side."""

    goods: tuple[ComparedRun, ...]
    bads: tuple[ComparedRun, ...]
    columns: tuple[MoveColumn, ...]
    at: int | None
    """The first column in which no bad run says what a good one says; ``None`` where no step tells them apart."""
    shared: tuple[SharedCause, ...]

    @property
    def runs(self) -> tuple[ComparedRun, ...]:
        return (*self.goods, *self.bads)

    def as_cause(self, shared: SharedCause) -> Cause:
        """What the bad runs share, as the cause of a pair: the first good run and the first bad one."""
        cells = self.columns[shared.column].cells
        row = Row(cells[0], cells[len(self.goods)])
        return Cause(kind=shared.kind, since=row, differences=shared.differences)


def compare_groups(goods: Sequence[ComparedRun], bads: Sequence[ComparedRun]) -> GroupFinding:
    """Where the bad runs leave the good ones, and what they have in common."""
    runs = (*goods, *bads)
    table = [_Cells(runs, cells) for cells in _columns(runs)]
    columns = tuple(MoveColumn(cells.moves, cells.answers()) for cells in table)
    split = len(goods)
    at = next((number for number, one in enumerate(columns) if _apart(one.answers, split)), None)
    return GroupFinding(
        goods=tuple(goods),
        bads=tuple(bads),
        columns=columns,
        at=at,
        shared=tuple(_shared(table, split, len(table) if at is None else at + 1)),
    )


def _columns(runs: Sequence[ComparedRun]) -> list[list[Move | None]]:
    """By the moves of the first run, in order; behind each of them what others did there."""
    first = runs[0]
    order = {move.index: place for place, move in enumerate(first.moves, 1)}
    found: dict[tuple[int, int], list[Move | None]] = {}
    for move in first.moves:
        found[order[move.index], 0] = [move, *[None] * (len(runs) - 1)]
    for number, run in enumerate(runs[1:], 1):
        after, extra = 0, 0
        for row in align(first.moves, run.moves).rows:
            if row.a is not None:
                after, extra = order[row.a.index], 0
            if row.b is not None:
                extra += row.a is None
                found.setdefault((after, extra), [None] * len(runs))[number] = row.b
    return [cells for _, cells in sorted(found.items(), key=lambda one: one[0])]


def _apart(values: Sequence[Hashable], split: int) -> bool:
    return not set(values[:split]) & set(values[split:])


def _tells(values: Sequence[Hashable], split: int) -> bool:
    return len(set(values[split:])) == 1 and _apart(values, split)


def _shared(table: Sequence["_Cells"], split: int, end: int) -> Iterator[SharedCause]:
    """Up to where the answers part: what differs later may be a consequence."""
    seen = set()
    for kind, value in _VALUES.items():
        if kind is CauseKind.SNAPSHOT and CauseKind.MODEL in seen:
            continue  # another model answers because another was asked for
        for number, cells in enumerate(table[:end]):
            values = cells.values(value)
            if _tells(values, split) and (kind is CauseKind.PATH or _on_both_sides(values, split)):
                seen.add(kind)
                yield SharedCause(kind=kind, column=number, differences=cells.differences(split, kind))
                break


def _on_both_sides(values: Sequence[Hashable], split: int) -> bool:
    """True if both sides made the move, so that values are compared and not a move with its absence."""
    return None not in values[split:] and any(value is not None for value in values[:split])


class _Cells:
    """One column, with what is said in it."""

    def __init__(self, runs: Sequence[ComparedRun], moves: Sequence[Move | None]) -> None:
        self._runs = runs
        self.moves = tuple(moves)

    def answers(self) -> tuple[int | None, ...]:
        numbers: dict[Hashable, int] = {}
        values = self.values(_answer)
        return tuple(
            None if move is None else numbers.setdefault(value, len(numbers))
            for move, value in zip(self.moves, values, strict=True)
        )

    def values(self, value: "_Value") -> list[Hashable]:
        return [None if move is None else value(move, run) for move, run in zip(self.moves, self._runs, strict=True)]

    def differences(self, split: int, kind: CauseKind) -> tuple[Difference, ...]:
        a, b = self.moves[0], self.moves[split]
        if a is None or b is None:
            return ()
        found = Comparison(self._runs[0], self._runs[split]).differences(Row(a, b))
        return tuple(one for one in found if KIND_OF_ASPECT.get(one.aspect) is kind and one.noise is None)


_Value = Callable[[Move, ComparedRun], Hashable]


def _in_request(tell: Callable[[Asked], str]) -> _Value:
    """A value that is read from the body, less ids and times."""
    return lambda move, run: without_noise(tell(run.asked(move.index)))


def _settings(move: Move, run: ComparedRun) -> Hashable:
    return without_noise(json_text(settings_of(run.asked(move.index), run.provider(move.index))))


def _answer(move: Move, run: ComparedRun) -> Hashable:
    answered = run.answered(move.index)
    parts = [] if answered is None else [part for part in answered.parts if not isinstance(part, Thinking)]
    return (status_of(move) if move.failed else ""), without_noise(parts_text(parts))


def _heard(*, results: bool) -> Callable[[Asked], str]:
    """What is new at a step: what tools gave, or what users said."""

    def tell(asked: Asked) -> str:
        messages = asked.messages
        new = (part for message in messages[turn_start(messages) :] for part in message.parts)
        return parts_text([part for part in new if isinstance(part, ToolResult) is results])

    return tell


def _history(asked: Asked) -> str:
    messages = asked.messages
    return "\n".join(
        parts_text([part for part in message.parts if not isinstance(part, Thinking)])
        for message in messages[: turn_start(messages)]
    )


_VALUES: dict[CauseKind, _Value] = {
    CauseKind.MODEL: lambda move, _: move.model_asked,
    CauseKind.SNAPSHOT: lambda move, _: None if move.failed else move.model_answered,
    CauseKind.SYSTEM: _in_request(lambda asked: parts_text(asked.system)),
    CauseKind.TOOLS: _in_request(lambda asked: "\n".join(sorted(map(tool_text, asked.tools)))),
    CauseKind.PARAMETERS: _settings,
    CauseKind.INPUT: _in_request(_heard(results=False)),
    CauseKind.TOOL_OUTPUT: _in_request(_heard(results=True)),
    CauseKind.HISTORY: _in_request(_history),
    CauseKind.ERROR: lambda move, _: status_of(move) if move.failed else "",
    CauseKind.PATH: lambda _move, _run: "made",
}
"""What may tell the runs apart, in the order of evidence."""
