"""How ``replay`` runs an agent again once its options are read, and what ``fork`` and ``bisect --prove`` share with it.

Imported by these commands when they run: neither help nor a typo should wait for the engine.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rewind.cli.app import App, print_json, warn
from rewind.cli.options import RerunFlags, UpstreamFlags
from rewind.cli.screens.rerun import print_replayed
from rewind.cli.screens.terminal import err
from rewind.errors import ExitCode
from rewind.runs.replay import replay
from rewind.runs.replay_options import ReplayOptions, ReplayResult, Until
from rewind.runs.rerun import session_to_run
from rewind.runs.upstream import upstream_of
from rewind.views import runs as views


def run_replay(
    app: App, session: str, flags: RerunFlags, *, until: int | None, as_json: bool, **chosen: Any
) -> ExitCode:
    """Replay the session, or end the agent after step ``until``; ``chosen`` are fields of ReplayOptions."""
    stepping = None if until is None else Until(until)
    options = ReplayOptions(stepping=stepping, announce=warn, **chosen, **run_again(app, session, flags, quiet=as_json))
    if not as_json:
        return show_replayed(app, replay(options))
    with stdout_on_stderr():
        result = replay(options)
    print_json(views.replay(result, result.saved(app.prices)))
    return _ended(app, result)


def show_replayed(app: App, result: ReplayResult) -> ExitCode:
    print_replayed(err(), result, result.saved(app.prices))
    return _ended(app, result)


def _ended(app: App, result: ReplayResult) -> ExitCode:
    if result.kept_as is not None:
        app.retain()
    return replay_exit_code(result)


def replay_exit_code(result: ReplayResult) -> ExitCode:
    """A miss outweighs a difference: with it the output could not be the same."""
    if result.stopped is not None and result.stopped.interrupted:
        return ExitCode.INTERRUPTED
    if result.misses or result.unasked is not None or result.nothing_played:
        return ExitCode.MISS
    if result.output == "different" or result.other_exit_code:
        return ExitCode.DIFFERENT
    return ExitCode.OK


def run_again(app: App, session: str, flags: RerunFlags, *, quiet: bool) -> dict[str, Any]:
    """What the options of a replay and of a fork have in common."""
    live = live_options(app, flags, quiet=quiet)
    if flags.exact:
        live["match"] = "exact"
    return live | {
        "session": session_to_run(live["home"], session),
        "command": flags.command or None,
        "on_miss": flags.on_miss,
        "tools": flags.tools,
        "allow_drift": flags.allow_drift,
        "port": flags.port,
    }


def live_options(app: App, flags: UpstreamFlags, *, quiet: bool) -> dict[str, Any]:
    """The store, and how live calls go out."""
    settings = app.settings(upstream_proxy=flags.upstream_proxy, upstream_ca=flags.upstream_ca)
    upstream = upstream_of(
        settings, connect_to=flags.connect_to, insecure=flags.insecure_upstream, announce=None if quiet else warn
    )
    return {
        "home": settings.home,
        "upstream": upstream,
        "ignore": settings.ignore,
        "match": settings.match or "renamed",
        "ignore_text": settings.ignore_text,
    }


@contextmanager
def stdout_on_stderr() -> Iterator[None]:
    """While the agent runs, its stdout is our stderr, so that our stdout holds one JSON value."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
