"""How much a test does: little in ``make check``, a sample in ``make test``, everything in ``make test-all``."""

import os
from typing import TypeVar

ALL = os.environ.get("REWIND_TESTS_ALL", "") not in ("", "0")
"""Set by ``make test-all``: sweeps are run whole."""
QUICK = os.environ.get("REWIND_TESTS_QUICK", "") not in ("", "0")
"""Set by ``make check``: property tests try few examples."""

Case = TypeVar("Case")


def effort(usual: int, whole: int, variable: str | None = None) -> int:
    """How many trials a sweep makes; an environment variable may name another number."""
    asked = os.environ.get(variable) if variable else None
    return int(asked) if asked else whole if ALL else usual


def examples(usual: int) -> int:
    """How many examples a property test tries that needs more, or fewer, than the others."""
    return min(usual, 10) if QUICK else usual


def sample(cases: list[Case], every: int) -> list[Case]:
    """Every so many cases of a table, the first one included; all of them in ``make test-all``."""
    return cases if ALL else cases[::every]
