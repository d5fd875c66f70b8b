"""What two runs call their folders: where they ran, their home, and where temporary files are."""

import re

from rewind.match.facts import FOLDERS, RunFacts, possible_facts, same_facts, stands_alone
from rewind.match.tokens import FOLDER
from rewind.match.written_times import RunClock
from rewind.model.session import SessionStart


class RunFolders:
    """The folders of two runs."""

    def __init__(self, first: SessionStart, second: SessionStart) -> None:
        pairs = same_facts(_facts(first), _facts(second))
        self._facts = {fact.now: fact for fact in reversed(pairs) if fact.kind is FOLDER and not fact.is_part}
        longest_first = sorted(self._facts, key=len, reverse=True)
        self._any = re.compile("|".join(map(re.escape, longest_first)))

    @property
    def differ(self) -> bool:
        return bool(self._facts)

    def as_in_first(self, text: str) -> str:
        """A text of the second run, with the folders of the first."""

        def renamed(found: re.Match[str]) -> str:
            fact = self._facts[found[0]]
            return fact.then if stands_alone(text, *found.span(), fact) else found[0]

        return self._any.sub(renamed, text)


def _facts(start: SessionStart) -> RunFacts:
    folders = possible_facts({"folder": start.cwd, **start.facts}, FOLDERS)
    return RunFacts(clock=RunClock(began=0, until=lambda: 0), folders=folders, names={})
