"""``--rewind-block-network``: tests without a mark stay on this machine, too."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from rewind.pytest_plugin import saying
from rewind.pytest_plugin.seams import seams
from rewind.runs.inprocess_presence import Guard

if TYPE_CHECKING:
    from rewind.pytest_plugin.desk import Desk


def guarded(desk: "Desk", item: pytest.Item) -> Callable[[], None]:
    """Nothing leaves this machine until what is returned is called."""
    address = saying.test_address(item.nodeid, desk.root, desk.here)

    def told(url: str) -> str:
        return (
            f"rewind: {address} wanted to connect to {url}, and the network is blocked.\n"
            f"  - To play its calls from a cassette: @pytest.mark.rewind\n"
            f"  - To let every test through to it: rewind_allowed_hosts = {saying.host_of(url)} in the ini file"
        )

    guard = Guard(allowed_hosts=desk.allowed_hosts, offline_error=told)
    put_back = seams().on_top()
    guard.start()
    guard.make_default()

    def end() -> None:
        guard.finish()
        put_back()

    return end
