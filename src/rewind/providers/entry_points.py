"""Whether a distribution on the path brings an API, and what was wrong with those that do.

``importlib.metadata`` answers the first question in tens of milliseconds, which every start of a recording would pay.
Searching the files that name entry points for the name of the group takes about one (ADR 0014).
"""

import os
import sys
from functools import cache

GROUP = "rewind.providers"
_SECTION = f"[{GROUP}]".encode()
_METADATA = (".dist-info", ".egg-info")

_problems: dict[str, None] = {}


@cache
def any_declared() -> bool:
    """Whether some distribution has an entry point of the group. Looked up once."""
    return any(map(_declares, dict.fromkeys(sys.path)))


def _declares(folder: str) -> bool:
    try:
        found = [name for name in os.listdir(folder or os.curdir) if name.endswith(_METADATA)]  # noqa: PTH208  faster, see above
    except OSError:  # an archive, or a folder that is not there
        return False
    return any(_names_the_group(f"{folder or os.curdir}/{name}/entry_points.txt") for name in found)


def _names_the_group(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return _SECTION in file.read()
    except OSError:
        return False


def report(problem: str) -> None:
    """Keep what is wrong with an API that was brought along; said once, however often it happens."""
    _problems[problem] = None


def problems() -> tuple[str, ...]:
    """What was reported so far in this process."""
    return tuple(_problems)
