"""The pytest plugin's hooks. Imported in every run of pytest: all that weighs is imported when a marked test comes."""

import gc
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from rewind.pytest_plugin.modes import Mode
from rewind.pytest_plugin.state import OLD_AFTER, PluginState

if TYPE_CHECKING:
    from rewind.pytest_plugin.marked_test import MarkedTest
    from rewind.pytest_plugin.network_guard import NetworkGuard
    from rewind.pytest_plugin.observed import RewindRun
    from rewind.pytest_plugin.report import SuiteReport

MARK = (
    "rewind(cassette=None, *, mode, allow_drift, ignore, match, ignore_text, hosts, all_hosts, allowed_hosts, tools): "
    "play the test's calls to models from a cassette (docs/testing.md)"
)
STATE = pytest.StashKey[PluginState]()
TEST: "pytest.StashKey[MarkedTest]" = pytest.StashKey()
GUARD: "pytest.StashKey[NetworkGuard]" = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rewind", "rewind: tests that stand on cassettes")
    group.addoption(
        "--rewind",
        choices=list(Mode),
        metavar="MODE",
        help="none: only cassettes answer; once: record what has no cassette; new: add what is missing; all, rewrite: "
        "record again; review: as none, then ask what to record again. Default: once, and none where CI is set.",
    )
    group.addoption(
        "--rewind-strict",
        action="store_true",
        help="Fail tests that leave steps of their cassette unplayed; write no cassette that seems to hold a secret.",
    )
    group.addoption(
        "--rewind-block-network",
        action="store_true",
        help="Block connections that leave this machine in unmarked tests, too.",
    )
    group.addoption(
        "--rewind-connect-to",
        action="append",
        metavar="HOST:PORT:ADDR:PORT",
        help="When recording, connect to ADDR:PORT instead of HOST:PORT (repeatable).",
    )
    parser.addini("rewind_mode", "The mode, unless --rewind or CI sets another.", default="")
    parser.addini("rewind_strict", "As --rewind-strict.", type="bool", default=False)
    parser.addini("rewind_block_network", "As --rewind-block-network.", type="bool", default=False)
    parser.addini("rewind_allowed_hosts", "Hosts that every test may reach.", type="args", default=[])
    parser.addini("rewind_old_after", "Days after which a cassette is called old.", default=OLD_AFTER)


class OurModules:
    """Loads our modules as any other program would.

    Pytest rewrites the assertions of every module of a plugin's distribution, and reads what it made of them slowly:
    for the modules that a first marked test needs, that took longer than all else that the test does.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path, target) if name.startswith("rewind.") else None


@contextmanager
def _without_collections() -> Iterator[None]:
    """Nothing that a module makes while it is loaded is garbage; looking for some takes a fifth of a first test.

    Afterwards it counts as old, or the test itself would pay for the looking.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if gc.get_freeze_count() == 0:  # else something is kept there that is not ours to let go
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    sys.meta_path.insert(0, OurModules)
    config.addinivalue_line("markers", MARK)
    config.stash[STATE] = state = PluginState(config)
    config.pluginmanager.register(RunHooks(state), "rewind-run")


def pytest_unconfigure(config: pytest.Config) -> None:
    if (state := config.stash.get(STATE, None)) is not None:
        state.close()
        with suppress(ValueError):
            sys.meta_path.remove(OurModules)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Only a mode that somebody asked for is worth a line."""
    choice = config.stash[STATE].choice
    if not choice.is_explicit:
        return None
    in_spite = ", although CI is set" if choice.in_ci and choice.mode.may_go_live else ""
    return f"rewind: mode {choice.mode}, from {choice.origin}{in_spite}"


# ── one test ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def rewind_config() -> dict[str, Any]:
    """Arguments for every ``@pytest.mark.rewind``; override it in a conftest.py or a module."""
    return {}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Our patches are put in before any fixture of others blocks the network, and wider fixtures stay offline, too."""
    mark = item.get_closest_marker("rewind")
    state = item.config.stash[STATE]
    if mark is None and not state.blocks_network:
        return (yield)
    with _without_collections():
        from rewind.pytest_plugin.network_guard import NetworkGuard

    item.stash[GUARD] = guard = NetworkGuard(state, item)
    if mark is None:
        return (yield)
    guard.around_fixtures(mark)
    try:
        return (yield)
    except pytest.skip.Exception:
        if (test := item.stash.get(TEST, None)) is not None:
            test.judge_skipped()
        raise
    finally:
        guard.end()


@pytest.fixture(autouse=True)
def _rewind(request: pytest.FixtureRequest) -> None:
    """Begins a marked test's run before its other fixtures, and ends it after them."""
    node: pytest.Item = request.node
    mark = node.get_closest_marker("rewind")
    state = node.config.stash[STATE]
    if mark is None and not state.blocks_network:
        return
    if "block_network" in request.fixturenames:
        request.getfixturevalue("block_network")  # pytest-recording's: it must not come after ours
    guard = node.stash[GUARD]
    # Finalizers and no generator, for the thousands of tests that are not marked.
    if mark is None:
        guard.around_test()
        request.addfinalizer(guard.end)
        return
    with _without_collections():
        from rewind.pytest_plugin.marked_test import MarkedTest

    guard.end()
    test = node.stash[TEST] = MarkedTest(state, node, mark, request.getfixturevalue("rewind_config"))
    test.fixture_calls = guard.fixture_calls
    request.addfinalizer(test.end)  # noqa: PT021
    test.begin()


@pytest.fixture
def rewind_run(request: pytest.FixtureRequest) -> "RewindRun":
    """What the agent did in this test: steps, tools, cost, the requests it sent."""
    node: pytest.Item = request.node
    test = node.stash.get(TEST, None)
    if test is None:
        pytest.fail("rewind_run needs a test with @pytest.mark.rewind", pytrace=False)
    return test.observed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A call that was not answered fails the test, even if the agent swallowed it."""
    test = item.stash.get(TEST, None)
    try:
        result = yield
    except pytest.skip.Exception:
        if test is not None:
            test.judge_skipped()
        raise
    if test is not None:
        test.judge()
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """A cassette is written when nothing of the test can fail any more."""
    clean = False
    try:
        result = yield
        clean = True
    finally:
        if (test := item.stash.get(TEST, None)) is not None:
            test.settle(clean=clean)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "setup" and report.failed and (guard := item.stash.get(GUARD, None)) is not None:
        # The SDK that failed there may have hidden why.
        report.sections += [("rewind", text) for text in guard.fixture_calls]
    if (test := item.stash.get(TEST, None)) is not None:
        test.add_to_report(report)
        if report.when == "teardown":
            report.rewind = test.usage.plain()  # type: ignore[attr-defined]  # travels with the report
            del item.stash[TEST]
    return report


# ── all tests ────────────────────────────────────────────────────────────────────────────────────────────────


class RunHooks:
    """The hooks of a whole run of pytest: what is collected, what the tests report, and the end."""

    def __init__(self, state: PluginState) -> None:
        self._state = state

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Note the cassettes that the tests use, also those of tests that are deselected further on."""
        marked = [(item, mark) for item in items if (mark := item.get_closest_marker("rewind")) is not None]
        if not marked:
            return
        from rewind.pytest_plugin.cassette_paths import cassette_of

        users = self._state.users
        for item, mark in marked:
            if (cassette := cassette_of(item, mark)) is not None:
                users[str(cassette)] = users.get(str(cassette), 0) + 1

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if (plain := getattr(report, "rewind", None)) is not None:
            self._state.usages.append(plain)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """xdist: before a worker starts."""
        node.workerinput["rewind_folder"] = str(self._state.folder)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """xdist: the workers have collected, the controller has not."""
        self._state.users |= getattr(node, "workeroutput", {}).get("rewind_used", {})

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """After everybody else: a review asks its questions below the summary."""
        state = self._state
        if state.is_worker:
            state.config.workeroutput["rewind_used"] = state.users  # type: ignore[attr-defined]  # xdist's
        yield
        if state.usages and not state.is_worker:
            self._report().close(session)

    def pytest_terminal_summary(self) -> None:
        if self._state.usages or self._state.users:
            self._report().print_summary()

    def _report(self) -> "SuiteReport":
        from rewind.pytest_plugin.report import SuiteReport

        return SuiteReport(self._state)
