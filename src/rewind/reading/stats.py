"""What the recorded calls come to, by model, provider, day, name or command."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from rewind.dataclass import dataclass
from rewind.pricing.prices import Prices
from rewind.pricing.report import By, Report
from rewind.reading.progress import OnProgress, ignored
from rewind.store.catalog.database import Catalog, report
from rewind.store.replays import served_again

GROUPINGS = tuple(by.value for by in By)
"""What calls can be put together by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageStats:
    """The figures of a store, and the prices they were worked out by."""

    home: Path
    report: Report
    price_source: str
    price_date: str
    price_warning: str | None


def usage_stats(
    home: Path,
    prices: Prices,
    *,
    by: str = By.MODEL.value,
    days: int = 0,
    now: float,
    on_progress: OnProgress = ignored,
) -> UsageStats:
    """Of the last ``days`` days, today included; 0 for all. Days are those of UTC."""
    today = datetime.fromtimestamp(now, UTC).date()
    figures = report(
        Catalog(home, prices=prices, on_progress=lambda done, of: on_progress("sessions read", done, of)),
        by=By(by),
        first=today - timedelta(days=days - 1) if days else None,
        last=today,
        served_again=served_again(home),
    )
    return UsageStats(
        home=home, report=figures, price_source=prices.source, price_date=prices.date, price_warning=prices.warning
    )
