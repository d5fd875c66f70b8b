"""Pieces of Markdown around texts of anybody's: nothing in them can get out."""

import re
from collections.abc import Iterator, Sequence

_TICKS = re.compile(r"`+")


def code(text: str, longest: int = 500) -> str:
    """The text as a code span on one line, fit for a table."""
    line = " ".join(text[: 2 * longest].split())
    if len(line) > longest:
        line = line[: longest - 1] + "…"
    if not line:
        return ""
    ticks = "`" * (1 + max(map(len, _TICKS.findall(line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}".replace("|", "\\|")


def fenced(text: str, language: str = "") -> list[str]:
    """The text between fences longer than any run of backticks in it."""
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    return [f"{fence}{language}", text.replace("\r\n", "\n").replace("\r", "\n"), fence]


def table(titles: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
