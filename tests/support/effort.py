"""How much a test does: little in ``make check``, a sample in ``make test``, everything in ``make test-all``."""

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

ALL = os.environ.get("REWIND_TESTS_ALL", "") not in ("", "0")
"""Set by ``make test-all``: sweeps are run whole."""
QUICK = os.environ.get("REWIND_TESTS_QUICK", "") not in ("", "0")
"""Set by ``make check``: property tests try few examples, and of a long table of cases a few are run."""

MOST_CASES = 5
"""How many cases of one test ``make check`` runs."""

Case = TypeVar("Case")


def effort(usual: int, whole: int, variable: str | None = None) -> int:
    """How many trials a sweep makes; an environment variable may name another number."""
    asked = os.environ.get(variable) if variable else None
    return int(asked) if asked else whole if ALL else -(-usual // 5) if QUICK else usual


def examples(usual: int) -> int:
    """How many examples a property test tries that needs more, or fewer, than the others."""
    return min(usual, 5) if QUICK else usual


def sample(cases: list[Case], every: int) -> list[Case]:
    """Every so many cases of a table, the first one included; all of them in ``make test-all``."""
    return cases if ALL else cases[::every]


def spread(cases: Sequence[Case], most: int) -> list[Case]:
    """At most so many of them, from the first to the last, the same ones each time."""
    if len(cases) <= most:
        return list(cases)
    return [cases[at * (len(cases) - 1) // (most - 1)] for at in range(most)] if most > 1 else [cases[0]]


not_in_short = pytest.mark.skipif(QUICK, reason="takes long; `make test` runs it")


def in_short(cases: Sequence[Case], most: int = 1) -> list[Case]:
    """Cases of which each takes long: so many of them in ``make check``, otherwise all."""
    return spread(cases, most) if QUICK else list(cases)
