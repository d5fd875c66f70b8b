"""What models cost: the prices in force, and today's, fetched because the user asked."""

import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from rewind.errors import EnvironmentProblem, RewindError
from rewind.pricing.prices import Prices, load_prices
from rewind.settings import Settings
from rewind.store.files import prepare_home

_NEWER = "prices.jsonl"
"""In the store: prices of a later day than the shipped ones."""


class PricesExtraMissing(RewindError):
    """Fetching prices needs a package that a plain install leaves out."""


def prices_for(settings: Settings) -> Prices:
    """The shipped snapshot, or the store's newer one, with the user's own prices on top."""
    return load_prices(settings.prices, newer=settings.home / _NEWER)


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
    try:
        fetched = source.fetch()
        providers = fetched.providers if fetched is not None else []
        snapshot = snapshot_of(providers, day=datetime.now(UTC).date().isoformat())
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as problem:
        raise EnvironmentProblem(
            f"{source.url} could not be fetched: {problem}", hint="the prices you have stay in use"
        ) from problem
    except ValueError as problem:
        raise EnvironmentProblem(
            f"What {source.url} answered is no price list that the installed genai-prices understands.",
            hint="pip install --upgrade 'llm-rewind[prices]'",
        ) from problem
    try:
        _write(target, snapshot)
    except OSError as problem:
        raise EnvironmentProblem(f"{target} cannot be written: {problem.strerror}.") from problem
    models = sum(len(provider.models) for provider in providers)
    return f"Prices of {models:,} models from {len(providers)} sellers are in {target}."


def _write(target: Path, data: bytes) -> None:
    """All of it or nothing, for its owner only."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    written = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        written.replace(target)
    except BaseException:
        written.unlink(missing_ok=True)
        raise
