"""What keeps tests offline beside a marked test's own run: wider fixtures, and with a flag tests without a mark."""

import socket
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pytest

from rewind.inprocess.guard import Guard, ModelWatch
from rewind.inprocess.redirect import install as redirect
from rewind.pytest_plugin.marks import read_mark
from rewind.pytest_plugin.modes import BadOption
from rewind.pytest_plugin.state import PluginState

_PATCHED = ("connect", "connect_ex")


class NetworkGuard:
    """Keeps one test on this machine while no run of ours does."""

    def __init__(self, state: PluginState, item: pytest.Item) -> None:
        our_patches()
        self._state = state
        self._address = state.address(item.nodeid)
        self._end: Callable[[], None] | None = None
        self.fixture_calls: tuple[str, ...] = ()
        """What is said of each host that wider fixtures asked: their calls are on no cassette."""

    def around_fixtures(self, mark: pytest.Mark) -> None:
        """Where only cassettes answer, wider fixtures of a marked test stay offline: its run begins after them.

        Elsewhere they may go on, but a model that they ask is noted.
        """
        try:
            options = read_mark(mark.args, mark.kwargs)
        except BadOption:  # the test itself will say so
            return
        if self._state.choice.for_test(options.mode).may_go_live:
            watch = ModelWatch()
            self._start(watch, lambda: map(self._unrecorded_fixture, watch.models(self._state.allowed_hosts)))
        else:
            self._block((*self._state.allowed_hosts, *options.allowed_hosts), self._blocked_fixture)

    def around_test(self) -> None:
        """A test without a mark, where the network is blocked for every test."""
        self._block(self._state.allowed_hosts, self._blocked_test)

    def end(self) -> None:
        if self._end is not None:
            self._end()
            self._end = None

    def _block(self, allowed_hosts: tuple[str, ...], offline_error: Callable[[str], str]) -> None:
        guard = Guard(allowed_hosts=allowed_hosts, offline_error=offline_error)
        self._start(guard, lambda: map(offline_error, dict.fromkeys(guard.blocked)))

    def _start(self, guard: Guard, told: Callable[[], Iterable[str]]) -> None:
        put_back = our_patches().on_top()
        guard.start()
        guard.make_default()

        def end() -> None:
            guard.finish()
            put_back()
            self.fixture_calls = tuple(told())

        self._end = end

    def _blocked_test(self, url: str) -> str:
        return (
            f"rewind: {self._address} tried to connect to {url}, and the network is blocked.\n"
            f"  - To play its calls from a cassette: @pytest.mark.rewind\n"
            f"  - To allow it for every test: rewind_allowed_hosts = {host_of(url)} in the ini file"
        )

    def _blocked_fixture(self, url: str) -> str:
        return (
            f"rewind: a fixture that {self._address} shares with other tests tried to connect to {url}; "
            "calls of fixtures with a wider scope than one test are never on a cassette.\n"
            f"  - To record it on the cassette: give the fixture function scope\n"
            f"  - To allow it for every test: rewind_allowed_hosts = {host_of(url)} in the ini file"
        )

    def _unrecorded_fixture(self, host: str) -> str:
        return (
            f"rewind: a fixture that {self._address} shares with other tests asked {host}; calls of fixtures with a "
            "wider scope than one test are never on a cassette, so they need the network and a key in every run.\n"
            "  - To record it on the cassette: give the fixture function scope"
        )


def host_of(url: str) -> str:
    """The host that a blocked connection names: ``https://name``, or ``name:port``."""
    place = url.rpartition("://")[2]
    name, colon, port = place.rpartition(":")
    return (name if colon and port.isdigit() else place).strip("[]")


class SocketPatches:
    """Rewind's patches of ``socket``, which stay above those of others while a test of ours runs.

    Plugins that block the network (pytest-recording, pytest-socket) patch the very functions that we patch, and put
    back what they knew before. A marked test is guarded more closely than by them, and its way to the gateway on this
    machine must stay open: ours come first, and what was there is put back.
    """

    def __init__(self) -> None:
        redirect.install()
        self._ours: dict[str, Any] = {name: getattr(socket.socket, name) for name in _PATCHED}

    def on_top(self) -> Callable[[], None]:
        """Ours come first until what is returned is called."""
        before = {name: getattr(socket.socket, name) for name in _PATCHED}
        for name, ours in self._ours.items():
            setattr(socket.socket, name, ours)

        def put_back() -> None:
            for name, theirs in before.items():
                # Somebody had put back what was there before us: that ours are gone was not meant.
                if theirs is not getattr(self._ours[name], "__wrapped__", None):
                    setattr(socket.socket, name, theirs)

        return put_back


@cache
def our_patches() -> SocketPatches:
    """Made before the first marked test, when no other plugin blocks anything yet."""
    return SocketPatches()
