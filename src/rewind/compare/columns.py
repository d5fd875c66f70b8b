"""Many runs side by side: a column holds the moves that belong together, one for each run.

The runs are laid one after another onto a growing list of columns, the most typical run first, so that the labels
*good* and *bad* play no part in it. A move goes where the moves before it decided the same, or at least called the same
tools; where nothing fits, it opens a column of its own. Words do not count: they never repeat.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property

from rewind.compare.decision import Decision, decision_classes
from rewind.compare.lanes import Lane, addresses, conversations, paired_lanes
from rewind.compare.run import ComparedRun, Move, status_of
from rewind.dataclass import dataclass

_SAME_DECISION, _SAME_TOOLS, _OTHER, _GAP = 4, 3, -1, -2
"""What it is worth to put a move into a column, or to leave one out."""
_BOTH, _COLUMN_ALONE, _CELL_ALONE = range(3)
_BAND = 60
"""How far moves that belong together may stand from the same place in a long conversation."""


@dataclass(frozen=True, slots=True, eq=False)
class MoveColumn:
    """The moves that belong together."""

    cells: tuple[Move | None, ...]
    """One for each run, in the order of the runs; ``None`` where a run made no such move."""
    decisions: tuple[Decision | None, ...]
    answers: tuple[int | None, ...]
    """For each run the number of its decision: 0 is the most common one."""

    def in_order(self, order: Sequence[int]) -> "MoveColumn":
        """The same, for runs in another order: the first is the one that stands at ``order[0]`` there."""
        places = sorted(range(len(order)), key=order.__getitem__)
        return MoveColumn(
            tuple(self.cells[at] for at in places),
            tuple(self.decisions[at] for at in places),
            tuple(self.answers[at] for at in places),
        )


def unlabelled_order(runs: Sequence[ComparedRun]) -> list[int]:
    """The runs by when they began, so that it does not matter on which side each was given."""

    def name(at: int) -> tuple[float, str, tuple[str, ...]]:
        start = runs[at].recording.session.start
        return start.started, start.id, tuple(move.said for move in runs[at].moves)

    return sorted(range(len(runs)), key=name)


def columns_of(runs: Sequence[ComparedRun]) -> tuple[MoveColumn, ...]:
    """All moves of all runs, in columns, in the order in which they are made."""
    decided = [_DecidedRun(number, run) for number, run in enumerate(runs)]
    first, *others = _from_typical_to_odd(decided)
    lanes = {key: [_Column(cell) for cell in first.cells(lane)] for key, lane in first.lanes()}
    for run in others:
        for key, lane in run.lanes_beside(first):
            lanes[key] = _laid(lanes.get(key, []), run.cells(lane))
    places = {id(move): at / max(1, len(run.moves) - 1) for run in runs for at, move in enumerate(run.moves)}
    return tuple(_finished(column, len(runs)) for column in _in_order(list(lanes.values()), places))


# ── one run ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class _Cell:
    """A move, and what was decided in it."""

    run: int
    move: Move
    decision: Decision


class _DecidedRun:
    """A run, its moves with what was decided in them."""

    def __init__(self, number: int, run: ComparedRun) -> None:
        self.number = number
        self.run = run

    @cached_property
    def decisions(self) -> dict[int, Decision]:
        return {move.index: decision_at(self.run, move) for move in self.run.moves}

    @cached_property
    def tools(self) -> Counter[Hashable]:
        """How often it decided each thing, but for details."""
        return Counter(decision.tools for decision in self.decisions.values())

    def cells(self, lane: Lane) -> list[_Cell]:
        return [_Cell(self.number, move, self.decisions[move.index]) for move in lane]

    def lanes(self) -> Iterator[tuple[Hashable, Lane]]:
        """Its conversations, and its other requests by address."""
        yield from enumerate(conversations(self.run.moves))
        yield from addresses(self.run).items()

    def lanes_beside(self, first: "_DecidedRun") -> Iterator[tuple[Hashable, Lane]]:
        """The same, by the keys of the first run; conversations that it does not have are known by their role."""
        keys = {lane[0].index: key for key, lane in first.lanes()}
        others: Counter[str | None] = Counter()
        for theirs, ours in paired_lanes(first.run, self.run):
            if ours and theirs:
                yield keys[theirs[0].index], ours
            elif ours:
                role = self.run.role(ours[0])
                others[role] += 1
                yield (role, others[role]), ours
        yield from addresses(self.run).items()


def decision_at(run: ComparedRun, move: Move) -> Decision:
    """What was decided in a move; of a request that is no call to a model, only whether it failed."""
    if move.sketch is not None:
        return run.decision(move)
    return Decision(failed=status_of(move) if move.failed else "")


def _from_typical_to_odd(runs: Sequence[_DecidedRun]) -> list[_DecidedRun]:
    """By how much each has in common with all others."""

    def alike(run: _DecidedRun) -> float:
        return sum(
            2 * (run.tools & other.tools).total() / max(1, run.tools.total() + other.tools.total()) for other in runs
        )

    return sorted(runs, key=lambda run: -round(alike(run), 6))


# ── columns that grow ────────────────────────────────────────────────────────────────────────────────────────


class _Column:
    """The cells that belong together, so far."""

    def __init__(self, first: _Cell) -> None:
        self.cells: list[_Cell] = []
        self.signatures: Counter[Hashable] = Counter()
        self.tools: Counter[Hashable] = Counter()
        self.add(first)

    def add(self, cell: _Cell) -> None:
        self.cells.append(cell)
        self.signatures[cell.decision.signature] += 1
        self.tools[cell.decision.tools] += 1

    def worth(self, cell: _Cell) -> float:
        """The more of its cells decided the same, the better another one fits."""
        same = self.signatures[cell.decision.signature] * (_SAME_DECISION - _SAME_TOOLS)
        if not cell.decision.calls:
            # Two last answers that come to something else have nothing in common but that they are the last.
            return _OTHER + self.signatures[cell.decision.signature] * (_SAME_DECISION - _OTHER) / len(self.cells)
        tools = self.tools[cell.decision.tools] * (_SAME_TOOLS - _OTHER)
        return _OTHER + (same + tools) / len(self.cells)


def _laid(columns: list[_Column], cells: list[_Cell]) -> list[_Column]:
    """The cells put into the columns so that as much as possible fits. What all decided alike at either end is put
    there at once: most of a long run."""
    shorter = min(len(columns), len(cells))
    start = next((at for at in range(shorter) if columns[at].worth(cells[at]) < _SAME_DECISION), shorter)
    rest = shorter - start
    end = next((at for at in range(rest) if columns[-1 - at].worth(cells[-1 - at]) < _SAME_DECISION), rest)
    head, tail = columns[:start], columns[len(columns) - end :]
    for column, cell in zip((*head, *tail), (*cells[:start], *cells[len(cells) - end :]), strict=True):
        column.add(cell)
    return [*head, *_fitted(columns[start : len(columns) - end], cells[start : len(cells) - end]), *tail]


def _fitted(columns: list[_Column], cells: list[_Cell]) -> list[_Column]:
    """Needleman and Wunsch; to leave out a column that few runs have costs little."""
    width, height = len(columns), len(cells)
    band = _BAND + abs(width - height)
    runs = max((len(column.cells) for column in columns), default=1)
    skips = [_GAP * len(column.cells) / runs for column in columns]
    best: dict[tuple[int, int], tuple[float, int]] = {(0, 0): (0.0, _BOTH)}
    """By columns and cells so far: what it is worth, and the last step."""
    for i in range(width + 1):
        middle = i * height // max(1, width)
        for j in range(max(0, middle - band), min(height, middle + band) + 1):
            ways = []
            if (i - 1, j - 1) in best:
                ways.append((best[i - 1, j - 1][0] + columns[i - 1].worth(cells[j - 1]), _BOTH))
            if (i - 1, j) in best:
                ways.append((best[i - 1, j][0] + skips[i - 1], _COLUMN_ALONE))
            if (i, j - 1) in best:
                ways.append((best[i, j - 1][0] + _GAP, _CELL_ALONE))
            if ways:
                best[i, j] = max(ways)
    laid: list[_Column] = []
    i, j = width, height
    while i or j:
        step = best[i, j][1]
        if step == _BOTH:
            columns[i - 1].add(cells[j - 1])
        laid.append(_Column(cells[j - 1]) if step == _CELL_ALONE else columns[i - 1])
        i, j = i - (step != _CELL_ALONE), j - (step != _COLUMN_ALONE)
    return laid[::-1]


def _in_order(lanes: Sequence[Sequence[_Column]], places: Mapping[int, float]) -> list[_Column]:
    """The columns of all conversations in one row, by where in their runs the moves stand."""
    found: list[tuple[float, int, _Column]] = []
    for number, lane in enumerate(lanes):
        latest = 0.0
        for column in lane:
            latest = max(latest, sum(places[id(cell.move)] for cell in column.cells) / len(column.cells))
            found.append((latest, number, column))
    return [column for *_, column in sorted(found, key=lambda one: one[:2])]


def _finished(column: _Column, runs: int) -> MoveColumn:
    cells: list[Move | None] = [None] * runs
    decisions: list[Decision | None] = [None] * runs
    for cell in column.cells:
        cells[cell.run], decisions[cell.run] = cell.move, cell.decision
    return MoveColumn(tuple(cells), tuple(decisions), _numbered(decisions))


def _numbered(decisions: Sequence[Decision | None]) -> tuple[int | None, ...]:
    """Decisions that are the same but for their words have one number; the most common one is 0."""
    classes = iter(decision_classes([one for one in decisions if one is not None]))
    found = [None if one is None else next(classes) for one in decisions]
    common = Counter(one for one in found if one is not None).most_common()
    numbers = {one: number for number, (one, _) in enumerate(common)}
    return tuple(None if one is None else numbers[one] for one in found)
