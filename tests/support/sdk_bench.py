"""A provider and a store for agents that run in this very process: record, let the provider vanish, replay, compare."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import rewind
from rewind.model.session import Recording
from rewind.store.library import Library
from support.provider import FakeProvider
from support.script import Answer, Playbook, Request
from support.trust import PROVIDER_NAMES, Trust

T = TypeVar("T")
BEDROCK = "bedrock-runtime.us-east-1.amazonaws.com"
NAMES = (*PROVIDER_NAMES, BEDROCK)
PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ws_proxy", "wss_proxy")
KEYS = {
    "OPENAI_API_KEY": "sk-test-0123456789abcdef0123456789",
    "ANTHROPIC_API_KEY": "sk-ant-test-0123456789abcdef0123",
    "GEMINI_API_KEY": "AIzaTest0123456789abcdef0123456789",
    "AWS_ACCESS_KEY_ID": "AKIATEST0123456789AB",
    "AWS_SECRET_ACCESS_KEY": "secretsecretsecretsecretsecretsecretsecr",
}


@dataclass(slots=True)
class Sent:
    """A playbook that remembers what it answered."""

    playbook: Playbook
    answers: list[Answer] = field(default_factory=list)
    _lock: Any = field(default_factory=threading.Lock)

    def __call__(self, request: Request) -> Answer:
        answer = self.playbook(request)
        with self._lock:
            self.answers.append(answer)
        return answer

    @property
    def bodies(self) -> list[bytes]:
        return sorted(answer.body for answer in self.answers if answer.frames is None)


@dataclass(slots=True)
class SdkBench:
    """One store and one provider, for sessions in this process."""

    folder: Path
    trust: Trust
    provider: FakeProvider
    sent: Sent
    more: dict[str, Any] = field(default_factory=dict)
    """Arguments of every session."""

    @property
    def home(self) -> Path:
        return self.folder / "store"

    @property
    def arguments(self) -> dict[str, Any]:
        """How a session of this bench reaches the provider, and where it is kept."""
        return {
            "home": self.home,
            "connect_to": [f"{name}:443:127.0.0.1:{self.provider.port}" for name in NAMES],
            "upstream_ca": self.trust.ca_file,
            **self.more,
        }

    def session(self, name: str = "row", **more: Any) -> Any:
        return rewind.session(name, **{**self.arguments, **more})

    @contextmanager
    def without_provider(self) -> Iterator[None]:
        """The provider is gone; whoever comes all the same fails the test."""
        self.provider.go_away()
        before = self.provider.connections
        yield
        assert self.provider.connections == before, "somebody went to the network"

    def twice(self, agent: Callable[[], T], **more: Any) -> T:
        """What the agent gave, recorded, and then again from the recording alone."""
        with self.session(mode="record", **more) as run:
            first = agent()
        self._check(run)
        with self.without_provider(), self.session(mode="replay", **more) as again:
            second = agent()
        self._compare(first, second, again)
        return first

    async def twice_async(self, agent: Callable[[], Awaitable[T]], **more: Any) -> T:
        async with self.session(mode="record", **more) as run:
            first = await agent()
        self._check(run)
        with self.without_provider():
            async with self.session(mode="replay", **more) as again:
                second = await agent()
        self._compare(first, second, again)
        return first

    def run_twice(self, agent: Callable[[], Awaitable[T]], **more: Any) -> T:
        return asyncio.run(self.twice_async(agent, **more))

    def recording(self, ref: str = "row") -> Recording:
        library = Library(self.home)
        with library.open(library.find(ref)) as reader:
            return reader.recording()

    def bodies(self, ref: str = "row") -> list[bytes]:
        """The bodies of the answers that came over the wire, in order of the requests."""
        library = Library(self.home)
        with library.open(library.find(ref)) as reader:
            steps = [step for step in reader.recording().steps if step.request.head.scheme.startswith("http")]
            return [reader.blob(step.response.body) for step in steps if step.response is not None]

    def _check(self, run: "rewind.Run") -> None:
        assert run.result is not None
        assert run.result.broken is None
        assert not [remark for remark in run.result.remarks if "bug" in remark], run.result.remarks
        complete = self.sent.answers and not any(
            answer.cut or answer.frames or answer.hold for answer in self.sent.answers
        )
        if complete:
            assert sorted(self.bodies()) == self.sent.bodies, "the recording is not what the provider sent"

    def _compare(self, first: Any, second: Any, again: "rewind.Run") -> None:
        assert again.result is not None
        assert not again.misses
        assert second == first
        assert again.result.live == 0
        assert again.result.played == again.result.total, again.result.unused


MakeBench = Callable[..., SdkBench]
"""``bench(playbook, **arguments of every session)``."""
