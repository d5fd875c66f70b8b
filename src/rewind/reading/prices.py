"""What models cost: the prices in force, and today's, fetched because the user asked."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rewind.errors import EnvironmentProblem, RewindError
from rewind.files import write_whole
from rewind.model.clock import SystemClock
from rewind.pricing import snapshot as _format
from rewind.pricing.prices import OwnPrices, Prices
from rewind.pricing.snapshot import DamagedSnapshot, Snapshot, checked_snapshot
from rewind.settings import Settings
from rewind.store.files import prepare_home

SHIPPED = Path(_format.__file__).with_name("prices.jsonl")
_NEWER = "prices.jsonl"
"""In the store: prices of a later day than the shipped ones."""


class PricesExtraMissing(RewindError):
    """Fetching prices needs a package that a plain install leaves out."""


def prices_for(settings: Settings) -> Prices:
    """The shipped snapshot, or the store's newer one, with the user's own prices on top."""
    return load_prices(settings.prices, newer=settings.home / _NEWER)


def load_prices(own: Mapping[str, Any] | None = None, newer: Path | None = None) -> Prices:
    """The shipped prices under the user's own; or those in ``newer`` if they are no older and whole.

    Raises ValueError for own prices that make no sense: settings have read them before and say where they stand.
    """
    snapshot, warning = Snapshot(SHIPPED.read_bytes()), None
    try:
        other = _read(newer) if newer is not None else None
    except DamagedSnapshot as problem:
        warning = f"{newer} is not used: {problem}. Costs are by the prices of {snapshot.date}."
    else:
        # Of the same day, those that the user asked for.
        snapshot = other if other is not None and other.date >= snapshot.date else snapshot
    return Prices(snapshot, OwnPrices(own or {}), warning=warning)


def _read(file: Path) -> Snapshot | None:
    """Prices from elsewhere, if that file is there. Raises DamagedSnapshot."""
    try:
        data = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise DamagedSnapshot(f"it cannot be read: {problem.strerror}") from problem
    return checked_snapshot(data)


def fetch_prices(home: Path, *, url: str | None = None) -> str:
    """Fetch the current data of genai-prices into the store; says what was written.

    Nothing else in Rewind goes out to the network by itself.
    """
    prepare_home(home)
    return refresh(home / _NEWER, url=url)


def refresh(target: Path, *, url: str | None = None) -> str:
    """Fetch the current data of genai-prices and write it as a snapshot; says what was written."""
    try:
        # lazily: an extra, and over a second to import
        import httpx2
        from genai_prices import UpdatePrices

        from rewind.pricing.build import snapshot_of
    except ImportError as problem:
        raise PricesExtraMissing(
            "Fetching prices needs the package genai-prices.", hint="pip install 'llm-rewind[prices]'"
        ) from problem
    source = UpdatePrices(url=url) if url else UpdatePrices()
    today = datetime.fromtimestamp(SystemClock().now(), UTC).date().isoformat()
    try:
        fetched = source.fetch()
        providers = fetched.providers if fetched is not None else []
        snapshot = snapshot_of(providers, day=today)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as problem:
        raise EnvironmentProblem(
            f"{source.url} could not be fetched: {problem}", hint="the prices you have stay in use"
        ) from problem
    except ValueError as problem:
        raise EnvironmentProblem(
            f"The answer of {source.url} is not a price list that the installed genai-prices understands.",
            hint="pip install --upgrade 'llm-rewind[prices]'",
        ) from problem
    try:
        write_whole(target, snapshot)
    except OSError as problem:
        raise EnvironmentProblem(f"{target} cannot be written: {problem.strerror}.") from problem
    models = sum(len(provider.models) for provider in providers)
    return f"Prices of {models:,} models from {len(providers)} sellers are in {target}."
