"""The plugin's lines at the end of a run: ``rewind: 41 replayed, 0 live, saved $1.84 · 2 unused steps``."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rewind.pytest_plugin.usage import Figures
from rewind.safe import safe
from rewind.text import UNKNOWN, dollars, plural

_DAY = 86400.0
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Unplayed:
    """A cassette of which steps were left over by all the tests that played it, and passed."""

    cassette: str
    left: tuple[int, ...]
    of: int

    def __str__(self) -> str:
        if len(self.left) == self.of:
            return f"{self.cassette}: not one of its {plural(self.of, 'step')} was played"
        shown = ", ".join(map(str, self.left[:_SHOWN])) + (", …" if len(self.left) > _SHOWN else "")
        steps = f"step {shown} was" if len(self.left) == 1 else f"steps {shown} were"
        return f"{self.cassette}: {steps} not played ({len(self.left)} of {self.of})"


def unplayed(all_figures: Iterable[Figures]) -> list[Unplayed]:
    """What a run that broke off did not come to tells nothing, so a failed test says nothing about its cassette."""
    by_cassette: dict[str, list[Figures]] = {}
    for one in all_figures:
        by_cassette.setdefault(one.cassette, []).append(one)
    found = []
    for cassette, tests in sorted(by_cassette.items()):
        played = [one for one in tests if one.act == "play"]
        if len(played) < len(tests) or not all(one.passed for one in tests):
            continue
        on_tape = {index for one in played for index in one.on_tape}
        used = {index for one in played for index in one.used}
        if left := tuple(sorted(on_tape - used)):
            found.append(Unplayed(cassette, left, len(on_tape)))
    return found


def kept_steps(all_figures: Iterable[Figures]) -> list[tuple[str, int]]:
    """Each test that records takes the place of more of them, so the least is what is left."""
    left: dict[str, int] = {}
    for one in all_figures:
        if one.wrote:
            left[one.cassette] = min(one.kept, left.get(one.cassette, one.kept))
    return [(cassette, kept) for cassette, kept in sorted(left.items()) if kept]


def headline(all_figures: Sequence[Figures], *, now: float, old_after: float) -> str:
    """The one line that is always shown."""
    live = sum(one.live for one in all_figures)
    first = [
        f"{sum(one.replayed for one in all_figures):,} replayed",
        f"{live:,} live" + (f" (spent {_spent(all_figures)})" if live else ""),
    ]
    if any(one.replayed for one in all_figures):
        first.append(f"saved {_saved(all_figures)}")
    parts = [", ".join(first)]
    if left := sum(len(one.left) for one in unplayed(all_figures)):
        parts.append(plural(left, "unused step"))
    if wrote := len({one.cassette for one in all_figures if one.wrote}):
        parts.append(f"{plural(wrote, 'cassette')} written")
    if stale := sum(bool(one.stale) for one in all_figures):
        parts.append(f"{plural(stale, 'test')} with a stale cassette")
    if old := _old(all_figures, now, old_after):
        parts.append(old)
    return "rewind: " + " · ".join(parts)


def _saved(all_figures: Sequence[Figures]) -> str:
    return _money([one.saved for one in all_figures], sum(one.saved_unpriced for one in all_figures))


def _spent(all_figures: Sequence[Figures]) -> str:
    return _money([one.spent for one in all_figures], sum(one.spent_unpriced for one in all_figures))


def _money(sums: Iterable[float | None], unpriced: int) -> str:
    """Unknown is a dash, and what a sum leaves out is said."""
    known = [one for one in sums if one is not None]
    text = dollars(sum(known)) if known and (sum(known) or not unpriced) else UNKNOWN
    return text + (f", {plural(unpriced, 'call')} unpriced" if unpriced else "")


def _old(all_figures: Iterable[Figures], now: float, old_after: float) -> str:
    recorded = {
        one.cassette: one.recorded for one in all_figures if one.recorded is not None and not one.wrote
    }
    ages = sorted(int((now - moment) // _DAY) for moment in recorded.values())
    old = [age for age in ages if age >= old_after]
    if not old:
        return ""
    if len(old) == 1:
        return f"1 cassette {old[0]} days old"
    return f"{len(old)} cassettes {old[0]} to {old[-1]} days old"


def details(all_figures: Sequence[Figures], orphans: Sequence[str], *, verbose: bool) -> Iterator[str]:
    """The lines below: always what needs a look, and with ``-v`` all the rest."""
    for one in all_figures:
        for secret in one.secrets:
            yield f"  {one.cassette}: {secret}: look before you commit it"
    for cassette, kept in kept_steps(all_figures):
        yield (
            f"  {cassette}: {plural(kept, 'step')} of before {'is' if kept == 1 else 'are'} kept, for other tests may "
            "need them; to drop them, delete it and record all its tests"
        )
    for cassette in orphans:
        yield f"  {cassette}: no test uses it"
    if not verbose:
        return
    for left in unplayed(all_figures):
        yield f"  {left}"
    for one in all_figures:
        for where in one.blocked:
            yield f"  {one.test}: a connection to {where} was blocked"
        for remark in one.remarks:
            yield f"  {one.test}: {remark}"
    for cassette in sorted({one.cassette for one in all_figures if one.wrote}):
        yield f"  {cassette}: written"


def lines(
    all_figures: Sequence[Figures],
    orphans: Sequence[str],
    *,
    now: float,
    old_after: float,
    verbose: bool,
) -> list[str]:
    """Everything the summary says, safe to print."""
    told = [headline(all_figures, now=now, old_after=old_after)]
    return [safe(line) for line in (*told, *details(all_figures, orphans, verbose=verbose))]
