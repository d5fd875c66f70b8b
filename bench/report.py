"""The figures as a table for people and as JSON for programs."""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench import machine
from bench.measures import FIGURES, Figure
from bench.rounds import Results, medians

SCHEMA = "rewind/bench@1"
BASE: Final = "direct"
RIVAL: Final = "mitmproxy"


def table(results: Results, names: Sequence[str]) -> str:
    """One line per figure; in brackets the ratio to no proxy, or what it adds to it."""
    rows = [["", "unit", *names, *(f"{name} : {RIVAL}" for name in ours(names) if RIVAL in names)]]
    middle = medians(results)
    for figure in FIGURES:
        values = middle.get(figure.key, {})
        cells = [_cell(figure, values.get(name), values.get(BASE) if name != BASE else None) for name in names]
        beside = [_times(values.get(name), values.get(RIVAL)) for name in ours(names) if RIVAL in names]
        rows.append([figure.title, figure.unit, *cells, *beside])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(_aligned(row, widths)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def as_json(results: Results, names: Sequence[str], *, load_before: float) -> dict[str, Any]:
    """Everything, with each round's value."""
    return {
        "schema": SCHEMA,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine.description(),
        "load": {"before": load_before, "after": machine.load()},
        "contenders": list(names),
        "figures": [
            {
                "key": figure.key,
                "title": figure.title,
                "unit": figure.unit,
                "more_is_better": figure.more_is_better,
                "medians": medians(results).get(figure.key, {}),
                "rounds": results.get(figure.key, {}),
            }
            for figure in FIGURES
        ],
    }


def beside_before(results: Results) -> str:
    """Now and before, figure by figure: medians, and the ratio."""
    rows = [["", "unit", "before", "now", "now : before"]]
    middle = medians(results)
    for figure in FIGURES:
        values = middle.get(figure.key, {})
        before, now = values.get("before"), values.get("rewind")
        if before is not None and now is not None:
            rows.append(
                [figure.title, figure.unit, _number(before), _number(now), f"{now / before:.3f}" if before else "-"]
            )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(_aligned(row, widths)).rstrip() for row in rows)


def rank(figure: Figure, values: Mapping[str, float], contenders: Sequence[str]) -> str:
    """Rewind's place among the recorders that have this figure: ``1 of 2``."""
    present = [name for name in contenders if name in values]
    if "rewind" not in present or len(present) < 2:
        return "—"
    best_first = sorted(present, key=values.__getitem__, reverse=figure.more_is_better)
    return f"{best_first.index('rewind') + 1} of {len(present)}"


def page(results: Results, names: Sequence[str], recorders: Sequence[str]) -> list[str]:
    """The table for a document: medians, what is added to direct or times direct, lowest and highest round."""
    middle = medians(results)
    lines = [f"| | unit | {' | '.join(names)} | rank |", f"|{'---|' * (len(names) + 3)}"]
    for figure in FIGURES:
        values, rounds = middle.get(figure.key, {}), results.get(figure.key, {})
        cells = []
        for name in names:
            cell = _cell(figure, values.get(name), values.get(BASE) if name != BASE else None)
            if len(set(rounds.get(name, ()))) > 1:
                cell += f"; {_number(min(rounds[name]))}–{_number(max(rounds[name]))}"
            cells.append(cell)
        lines.append(f"| {figure.title} | {figure.unit} | {' | '.join(cells)} | {rank(figure, values, recorders)} |")
    return lines


def ours(names: Sequence[str]) -> list[str]:
    """The contenders that are Rewind."""
    return [name for name in names if name.startswith("rewind")]


def _cell(figure: Figure, value: float | None, base: float | None) -> str:
    if value is None:
        return "-"
    shown = _number(value)
    if not base:
        return shown
    beside = f"{value - base:+.2f}" if figure.added else _times(value, base)
    return f"{shown} ({beside})"


def _times(value: float | None, other: float | None) -> str:
    if value is None or not other:
        return "-"
    ratio = value / other
    return f"{ratio:.1f}×" if ratio >= 10 else f"{ratio:.2f}×"


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    left = [cell.ljust(width) for cell, width in zip(row[:2], widths, strict=False)]
    return left + [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
