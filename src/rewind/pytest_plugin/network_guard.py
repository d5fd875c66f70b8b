"""Who stays on this machine besides marked tests: their wider fixtures, and with a flag tests without a mark."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from rewind.errors import UsageError
from rewind.inprocess.presence import Guard
from rewind.pytest_plugin import saying
from rewind.pytest_plugin.marks import read_wish
from rewind.pytest_plugin.seams import seams

if TYPE_CHECKING:
    from rewind.pytest_plugin.state import Desk


def guarded(desk: "Desk", item: pytest.Item) -> Callable[[], None]:
    """Nothing leaves this machine until what is returned is called."""
    address = saying.test_address(item.nodeid, desk.root, desk.here)

    def told(url: str) -> str:
        return (
            f"rewind: {address} wanted to connect to {url}, and the network is blocked.\n"
            f"  - To play its calls from a cassette: @pytest.mark.rewind\n"
            f"  - To let every test through to it: rewind_allowed_hosts = {saying.host_of(url)} in the ini file"
        )

    return _guarded(desk.allowed_hosts, told)


def guarded_before(desk: "Desk", item: pytest.Item, mark: pytest.Mark) -> Callable[[], None]:
    """Where only cassettes answer, wider fixtures of a marked test stay on this machine: its run begins after them."""
    try:
        wish = read_wish(mark.args, mark.kwargs, {})
    except UsageError:  # the test itself will say so
        return _nothing
    if desk.choice.of(wish.mode).may_go_live:
        return _nothing
    address = saying.test_address(item.nodeid, desk.root, desk.here)

    def told(url: str) -> str:
        host = saying.host_of(url)
        return (
            f"rewind: a fixture that {address} shares with other tests wanted to connect to {url}; "
            "calls of fixtures wider than one test are on no cassette.\n"
            f"  - To have it on the cassette: give the fixture the scope of a function\n"
            f"  - To let every test through to it: rewind_allowed_hosts = {host} in the ini file"
        )

    return _guarded((*desk.allowed_hosts, *wish.allowed_hosts), told)


def _nothing() -> None:
    """There is no guard to end."""


def _guarded(allowed_hosts: tuple[str, ...], told: Callable[[str], str]) -> Callable[[], None]:
    guard = Guard(allowed_hosts=allowed_hosts, offline_error=told)
    put_back = seams().on_top()
    guard.start()
    guard.make_default()

    def end() -> None:
        if not guard.over:
            guard.finish()
            put_back()

    return end
