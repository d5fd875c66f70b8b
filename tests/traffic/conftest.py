"""The traffic set, loaded once for all tests of this folder."""

from pathlib import Path

import pytest

from support.traffic import Exchange, exchanges_in


@pytest.fixture(scope="session")
def exchanges(traffic: Path) -> list[Exchange]:
    """Every exchange of the set, in recorded order."""
    return list(exchanges_in(traffic))
