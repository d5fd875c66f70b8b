"""Who is on, and the cassette that answers."""

from dataclasses import dataclass
from pathlib import Path

from rewind.errors import BadCassette
from rewind.model.session import Portable
from rewind.pytest_plugin import saying
from rewind.pytest_plugin.marks import Wish
from rewind.pytest_plugin.options import Act, Mode
from rewind.store.session_files import open_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Who is on: the test, its cassette, and what is to be done with it."""

    test: str
    """Its node id: the same wherever pytest is started."""
    address: str
    """As it is typed where pytest was started."""
    cassette: Path
    own: Path
    """The cassette that follows from the test's name, whatever its mark says."""
    wish: Wish
    act: Act
    missing: str
    """What to say where there is no cassette, and none may be made."""
    shared: bool
    """Whether other tests use the cassette, too."""

    @property
    def may_be_others(self) -> bool:
        """Whether tests that are not run now may need it: a path in a mark may stand in many."""
        return self.shared or self.wish.cassette is not None


def opened(part: Part, shown: str, path: Path) -> Portable:
    """Raises BadCassette in the words of a test."""
    try:
        return open_file(str(path))
    except BadCassette as problem:
        message = problem.message.replace(str(path), shown)
    hint = f"Record it anew:  {saying.command(part.address, Mode.REWRITE)}"
    if part.may_be_others:
        hint = "Mend it, or delete it and record all tests that use it anew."
    raise BadCassette(message, hint=hint)
