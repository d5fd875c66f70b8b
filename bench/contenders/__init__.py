"""Who is compared: each knows how to record and replay the load client, and nothing of what is measured."""

from typing import Protocol

from bench.setup import Run


class NotOffered(Exception):
    """This contender has no such thing: its cell stays empty."""


class Contender(Protocol):
    """One way between the agent and the provider."""

    name: str

    def prepare(self) -> None:
        """Whatever is done once: install, make keys, compile."""
        ...

    def help_command(self) -> list[str]:
        """The cheapest thing its command line can do."""
        ...

    def record_true(self) -> float:
        """Seconds to record the command ``true``."""
        ...

    def record(self, name: str, *client: str, pinned: bool = True) -> Run:
        """Run the load client and keep its traffic under that name."""
        ...

    def replay(self, name: str, *client: str, pinned: bool = True) -> Run:
        """Run it again, answered from what was kept."""
        ...

    def stored(self, name: str) -> int:
        """Bytes on disk under that name."""
        ...
