"""Fixtures that every test may use, and the settings of property tests."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from support.cli import missing_node
from support.effort import ALL, MOST_CASES, QUICK, examples, spread
from support.lab import Lab
from support.provider import FakeProvider
from support.real_agents.trial import HEADLINE
from support.script import Playbook
from support.sdk_bench import KEYS, NAMES, PROXY_VARIABLES, MakeBench, SdkBench, Sent
from support.small_model.model import SmallModel, missing_small_model
from support.trust import Trust

# A busy machine is not a failed property.
# The same examples each time, so that a red run means a change; `make test-all` draws new ones.
settings.register_profile("rewind", deadline=None, max_examples=examples(100), derandomize=not ALL)
settings.load_profile("rewind")

# What whoever started the tests ignores (nohup, a job in the background) every child would ignore as well.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

_CHILD_EVENTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system"}
_CHILDLESS: set[str] = set()
"""The node id of the running test, if it may start no process."""


def _refuse_children(event: str, _arguments: object) -> None:
    if event in _CHILD_EVENTS and _CHILDLESS:
        raise AssertionError(f"{event} in a test that promises no child processes: mark it `process`")


sys.addaudithook(_refuse_children)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """``make check`` promises no child processes: only tests that say so may start one."""
    if not _may_start_processes(item):
        _CHILDLESS.add(item.nodeid)
    try:
        return (yield)
    finally:
        _CHILDLESS.clear()


def _may_start_processes(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("process", "e2e", "traffic", "torture"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test with a long table of cases ``make check`` runs a few."""
    if not QUICK:
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {item for of_one_test in cases.values() for item in spread(of_one_test, MOST_CASES)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


TRAFFIC = Path(__file__).resolve().parents[2] / "shared" / "traffic"


@pytest.fixture(scope="session")
def trust(tmp_path_factory: pytest.TempPathFactory) -> Trust:
    """The authority that signs for every scripted provider of this run."""
    return Trust.create(tmp_path_factory.mktemp("trust"))


@pytest.fixture
def lab(trust: Trust, tmp_path: Path) -> Iterator[Callable[[Playbook], Lab]]:
    """``lab(playbook)``: an empty store and a TLS provider that plays it."""
    with ExitStack() as open_providers:

        def build(playbook: Playbook) -> Lab:
            provider = open_providers.enter_context(FakeProvider(playbook, trust=trust))
            return Lab(tmp_path, trust, provider)

        yield build


@pytest.fixture
def bench(trust: Trust, tmp_path: Path) -> Iterator[MakeBench]:
    """``bench(playbook, …)``: a provider that plays it, and an empty store, for sessions in this process."""
    with ExitStack() as open_providers:

        def build(playbook: Playbook, **more: Any) -> SdkBench:
            sent = Sent(playbook)
            provider = open_providers.enter_context(FakeProvider(sent, trust=trust, names=NAMES))
            return SdkBench(tmp_path, trust, provider, sent, more)

        yield build


@pytest.fixture
def plain_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: no proxies of the machine's own, no settings of Rewind, and dummy keys."""
    for name in (*PROXY_VARIABLES, "rewind_mode", "rewind_home"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def node() -> None:
    """Skips where Node is missing; fails there when the run promised to have it."""
    if reason := missing_node():
        if os.environ.get("REWIND_TESTS_NEED_NODE"):
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def small_model() -> Iterator[SmallModel]:
    """A real model, sampled anew each time; skips where it is missing, fails when the run promised to have it."""
    if reason := missing_small_model():
        if os.environ.get("REWIND_TESTS_NEED_AGENTS"):
            pytest.fail(reason)
        pytest.skip(reason)
    with SmallModel() as model:
        yield model


@pytest.fixture(scope="session")
def traffic() -> Path:
    """The folder of real recorded exchanges, which is not part of this repository."""
    if not TRAFFIC.is_dir():
        pytest.skip("the traffic set (../shared/traffic) is not here")
    return TRAFFIC


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests recorded as ``shown``, and say which part of the suite had no material to work on."""
    told = (*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed"))
    properties = [(name, text) for report in told for name, text in report.user_properties]
    shown = [text for name, text in properties if name == "shown"]
    if agents := [text for name, text in properties if name == "agent"]:
        shown.append("\n".join([HEADLINE, *sorted(agents)]))
    for text in shown:
        terminalreporter.write_line(f"\n{text}")
    if not TRAFFIC.is_dir():
        terminalreporter.write_line("The traffic tests were skipped: ../shared/traffic is not here.")
