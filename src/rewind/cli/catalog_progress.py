"""The catalog as commands use it: how far it has caught up is shown."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rewind.cli.progress import progress
from rewind.pricing.prices import Prices
from rewind.store.catalog.catalog import Catalog


@contextmanager
def catalog(home: Path, prices: Prices) -> Iterator[Catalog]:
    """The catalog of that store. On a screen, a catch-up that takes long shows where it is."""
    with progress("sessions read") as show:
        yield Catalog(home, prices=prices, progress=show)
