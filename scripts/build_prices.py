"""Writes src/rewind/pricing/prices.jsonl from the installed genai-prices. See docs/prices.md."""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from rewind.pricing.build import bundled, snapshot_of
from rewind.pricing.snapshot import Snapshot
from rewind.reading.prices import SHIPPED


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    today = datetime.now(UTC).date().isoformat()
    parser.add_argument("--date", default=today, help="the day written into the snapshot (today)")
    parser.add_argument("--output", type=Path, default=SHIPPED, help="where to write (the package's own file)")
    given = parser.parse_args()
    data = snapshot_of(bundled(), day=given.date)
    snapshot = Snapshot(data)
    given.output.write_bytes(data)
    models = sum(seller.models for seller in snapshot.sellers.values())
    sys.stdout.write(
        f"{given.output}: {models} models of {len(snapshot.sellers)} sellers, {len(data)} bytes,"
        f" from {snapshot.source}, {snapshot.date}\n"
    )


if __name__ == "__main__":
    main()
