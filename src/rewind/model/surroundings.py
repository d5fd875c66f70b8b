"""What a run stood on besides what it asked: the state of the folder it ran in."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Looked up while the agent runs; ``None`` where it is not known. Already redacted."""

    commit: str | None = None
    """The full hash of the commit that was checked out."""
    branch: str | None = None
    """``None`` also where a commit is checked out without a branch."""
    dirty: bool | None = None
    """Whether files that git keeps differ from the commit. Files it does not keep do not count: agents leave logs."""
    changes: str | None = None
    """A digest of what those files hold, so that two runs on uncommitted changes can be told apart; ``sc1:`` names
    the rule. ``None`` where nothing is changed, or too much to be read."""
    locks: Mapping[str, str] = field(default_factory=dict)
    """The lock files beside the agent: name, and the first 16 digits of the SHA-256."""

    @property
    def is_known(self) -> bool:
        """Whether there is anything to say."""
        return self != Surroundings()
