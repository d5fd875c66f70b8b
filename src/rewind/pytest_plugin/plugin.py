"""The pytest plugin's door. It is imported in every run of pytest, so all that weighs is imported when it is needed."""

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

from rewind.pytest_plugin.options import Mode
from rewind.pytest_plugin.state import DESK, OLD_AFTER, Desk

if TYPE_CHECKING:
    from rewind.pytest_plugin import marked_test as takes
    from rewind.pytest_plugin.observed import RewindRun

MARK = (
    "rewind(cassette=None, *, mode, allow_drift, ignore, hosts, all_hosts, allowed_hosts, tools): "
    "play the test's calls to models from a cassette (docs/testing.md)"
)
TAKE: "pytest.StashKey[takes.Take]" = pytest.StashKey()
BEFORE: "pytest.StashKey[Callable[[], None]]" = pytest.StashKey()
"""Ends the guard that stands until the test's own run begins."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rewind", "rewind: tests that stand on cassettes")
    group.addoption(
        "--rewind",
        choices=list(Mode),
        default=None,
        metavar="MODE",
        help="none: only cassettes answer; once: record what has no cassette; new: add what is missing; all, rewrite: "
        "record anew; review: as none, then ask what to record anew. Default: once, and none where CI is set.",
    )
    group.addoption(
        "--rewind-strict",
        action="store_true",
        default=False,
        help="Fail tests that leave steps of their cassette unplayed; write no cassette that seems to hold a secret.",
    )
    group.addoption(
        "--rewind-block-network",
        action="store_true",
        default=False,
        help="Block connections that leave this machine in unmarked tests, too.",
    )
    group.addoption(
        "--rewind-connect-to",
        action="append",
        metavar="HOST:PORT:ADDR:PORT",
        help="When recording, dial ADDR:PORT where HOST:PORT is meant (repeatable).",
    )
    parser.addini("rewind_mode", "The mode where neither --rewind nor CI says otherwise.", default="")
    parser.addini("rewind_strict", "As --rewind-strict.", type="bool", default=False)
    parser.addini("rewind_block_network", "As --rewind-block-network.", type="bool", default=False)
    parser.addini("rewind_allowed_hosts", "Hosts that every test may reach.", type="args", default=[])
    parser.addini("rewind_old_after", "Days after which a cassette is called old.", default=OLD_AFTER)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARK)
    config.stash[DESK] = desk = Desk(config)
    config.pluginmanager.register(desk, "rewind-desk")


def pytest_unconfigure(config: pytest.Config) -> None:
    if (desk := config.stash.get(DESK, None)) is not None:
        desk.close()


def pytest_report_header(config: pytest.Config) -> str | None:
    """Only a mode that somebody asked for is worth a line."""
    choice = config.stash[DESK].choice
    if not choice.said_now:
        return None
    in_spite = ", though this is a CI server" if choice.in_ci and choice.mode.may_go_live else ""
    return f"rewind: mode {choice.mode}, by {choice.origin}{in_spite}"


# ── one test ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def rewind_config() -> dict[str, Any]:
    """Arguments for every ``@pytest.mark.rewind``; override it in a conftest.py or a module."""
    return {}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Our seams are put in before any fixture of others blocks the network, and wider fixtures stay offline, too."""
    mark = item.get_closest_marker("rewind")
    desk = item.config.stash[DESK]
    if mark is None and not desk.blocks_network:
        return (yield)
    from rewind.pytest_plugin.seams import seams

    seams()
    if mark is None:
        return (yield)
    from rewind.pytest_plugin.network_guard import guarded_before

    item.stash[BEFORE] = end = guarded_before(desk, item, mark)
    try:
        return (yield)
    except pytest.skip.Exception:
        if (take := item.stash.get(TAKE, None)) is not None:
            take.judge_skipped()
        raise
    finally:
        end()


@pytest.fixture(autouse=True)
def _rewind(request: pytest.FixtureRequest) -> None:
    """Begins a marked test's run before its other fixtures, and ends it after them."""
    node: pytest.Item = request.node
    mark = node.get_closest_marker("rewind")
    desk = node.config.stash[DESK]
    if mark is None and not desk.blocks_network:
        return
    if "block_network" in request.fixturenames:
        request.getfixturevalue("block_network")  # pytest-recording's: it must not come after ours
    if mark is None:
        from rewind.pytest_plugin.network_guard import guarded

        request.addfinalizer(guarded(desk, node))
        return
    from rewind.pytest_plugin.marked_test import Take

    node.stash[BEFORE]()
    take = node.stash[TAKE] = Take(desk, node, mark, request.getfixturevalue("rewind_config"))
    request.addfinalizer(take.end)  # noqa: PT021  no generator for the thousands of tests that are not marked
    take.begin()


@pytest.fixture
def rewind_run(request: pytest.FixtureRequest) -> "RewindRun":
    """What the agent did in this test: steps, tools, cost, the requests it sent."""
    node: pytest.Item = request.node
    take = node.stash.get(TAKE, None)
    if take is None:
        pytest.fail("rewind_run needs a test with @pytest.mark.rewind", pytrace=False)
    return take.observed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A call that was not answered fails the test, even if the agent swallowed it."""
    try:
        result = yield
    except pytest.skip.Exception:
        if (take := item.stash.get(TAKE, None)) is not None:
            take.judge_skipped()
        raise
    if (take := item.stash.get(TAKE, None)) is not None:
        take.judge()
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """A cassette is written when nothing of the test can fail any more."""
    good = False
    try:
        result = yield
        good = True
    finally:
        if (take := item.stash.get(TAKE, None)) is not None:
            take.settle(good=good)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if (take := item.stash.get(TAKE, None)) is not None:
        take.hear(report)
        if report.when == "teardown":
            report.rewind = take.figures.plain()  # type: ignore[attr-defined]  # travels with the report
            del item.stash[TAKE]
    return report
