"""How one test used its cassette, in plain values: they travel with pytest's reports, from workers too."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from rewind.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CassetteUsage:
    """One marked test."""

    test: str
    """As pytest takes it, relative to where it was started."""
    cassette: str
    action: str
    """A :class:`rewind.pytest_plugin.cassette_paths.CassetteAction`."""
    passed: bool = False
    replayed: int = 0
    renamed: int = 0
    """Of these, those that were asked for by other names."""
    names: tuple[str, ...] = ()
    """Those names, each as ``date 2026-11-16 → 2026-11-19``."""
    live: int = 0
    on_tape: tuple[int, ...] = ()
    """The steps that can be played."""
    played: tuple[int, ...] = ()
    """Those that were."""
    saved: float | None = None
    """US dollars that the played answers had cost; ``None`` where no price is known."""
    saved_unpriced: int = 0
    spent: float | None = None
    spent_unpriced: int = 0
    recorded: float | None = None
    """When the cassette was recorded, in seconds since 1970."""
    stale: str = ""
    """Why the cassette does not fit the test, in many lines; empty where it does."""
    may_have_other_users: bool = False
    """Whether tests that are not run now may use the cassette, too."""
    kept: int = 0
    """Older steps of the cassette that no new step replaces."""
    wrote: bool = False
    unchanged: bool = False
    """Recorded again, and the same but for ids, times and headers: the file stays as it is."""
    blocked: tuple[str, ...] = ()
    """Where connections were refused."""
    fixture_calls: tuple[str, ...] = ()
    """What is said of calls of wider fixtures, which are on no cassette."""
    secrets: tuple[str, ...] = ()
    """What looks like a secret in the cassette that was written."""
    remarks: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """As it goes through a report."""
        return asdict(self)


def usage_from(plain: Mapping[str, Any]) -> CassetteUsage:
    known = {field.name for field in fields(CassetteUsage)}
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in plain.items() if name in known
    }
    return CassetteUsage(**values)
