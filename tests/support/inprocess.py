"""Runs of the test's own process: record, let the provider vanish, replay, compare."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rewind.gateway.options import UpstreamOptions
from rewind.inprocess.run import InProcessOptions, InProcessResult, InProcessRun
from rewind.store.journal.reader import FolderReader
from support.provider import FakeProvider
from support.script import Playbook
from support.trust import PROVIDER_NAMES, Trust

T = TypeVar("T")
MakeStage = Callable[[Playbook], "Stage"]


@contextmanager
def stages(trust: Trust, folder: Path) -> Iterator[MakeStage]:
    """``make(playbook)``: an empty store and a TLS provider that plays it."""
    with ExitStack() as open_providers:
        yield lambda playbook: Stage(folder, trust, open_providers.enter_context(FakeProvider(playbook, trust=trust)))


@dataclass(slots=True)
class Stage:
    """One store, and one provider that answers under the providers' own names."""

    folder: Path
    trust: Trust
    provider: FakeProvider

    @property
    def home(self) -> Path:
        return self.folder / "store"

    @property
    def upstream(self) -> UpstreamOptions:
        return UpstreamOptions(
            connect_to=tuple(f"{name}:443:127.0.0.1:{self.provider.port}" for name in PROVIDER_NAMES),
            ca=self.trust.ca_file,
        )

    def options(self, **more: Any) -> InProcessOptions:
        chosen: dict[str, Any] = {"home": self.home, "upstream": self.upstream}
        return InProcessOptions(**chosen | more)

    def open(self, session: str | None) -> FolderReader:
        return FolderReader(next((self.home / "sessions").glob(f"*-{session}")))

    def record(self, work: Callable[[], T], **more: Any) -> tuple[T, InProcessResult]:
        return through(InProcessRun(self.options(**more)), work)

    def replay(self, session: str | None, work: Callable[[], T], **more: Any) -> tuple[T, InProcessResult]:
        """With the provider gone; a connection to it fails the test."""
        assert session is not None, "something was recorded"
        self.provider.go_away()
        before = self.provider.connections
        with self.open(session) as tape:
            asked = {"mode": "replay", "tape": tape, "keep": False} | more
            found = through(InProcessRun(self.options(**asked)), work)
        assert self.provider.connections == before, "the replay went to the network"
        return found

    def record_and_replay(self, work: Callable[[], T], **more: Any) -> tuple[InProcessResult, InProcessResult]:
        """The two results; the second run had no provider, gave the same values and played everything."""
        first, recorded = self.record(work, **more)
        assert not recorded.remarks and recorded.broken is None, recorded
        second, replayed = self.replay(recorded.session_id, work)
        assert second == first
        assert replayed.played == replayed.total and not replayed.unused, replayed
        assert not replayed.misses and not replayed.blocked and not replayed.remarks, replayed
        return recorded, replayed


def through(run: InProcessRun, work: Callable[[], T]) -> tuple[T, InProcessResult]:
    """The work done within the run."""
    run.start()
    token = run.activate()
    try:
        value = work()
    except BaseException:
        run.deactivate(token)
        with suppress(Exception):
            run.finish(1)
        raise
    run.deactivate(token)
    return value, run.finish(0)
