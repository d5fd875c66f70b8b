"""Whether a tool looks as if it only read something: by the verbs in its name, or by the command that it is given.

Nobody tells Rewind what a tool does, so an unknown one counts as one that changes the world.
"""

import re
import shlex
from collections.abc import Iterator, Mapping

from rewind.model.message import ToolUse


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_READS = _words(
    "ask browse calculate calc cat check compute count describe dump echo estimate evaluate examine explore fetch find "
    "get glob grep head info inspect introspect lint list load locate look lookup ls math measure monitor peek "
    "ping preview query quote read recall resolve retrieve review scan scrape search see show stat status summarize "
    "summary tail test tests think trace track translate tree validate verify view wc who"
)
_CHANGES = _words(
    "add append apply approve assign book buy cancel change charge checkout clear click close commit confirm convert "
    "create delete deploy disable drop edit email enable execute finish handoff insert install kill merge migrate "
    "modify move notify order overwrite patch pay place post publish purchase push put refund reject remove rename "
    "replace reply reserve reset restart revert rollback save schedule sell send set ship start stop store submit "
    "transfer trigger undo update upgrade upload upsert write"
)
_PROGRAMS = _words(
    "awk basename cat cut date df diff dirname du echo env file find grep head hostname id jq less ls lsof nl od ps "
    "pwd rg sed sort stat tail tree type uname uniq wc whereis which whoami"
)
_GIT_READS = _words("blame branch diff grep log ls-files rev-parse show status")
_JOINED = _words("and or then")
_SHELLS = _words("bash shell terminal sh cmd command execute exec run")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CHAINED = re.compile(r"\|\||&&|[;|\n]")
_WRITES_FILE = re.compile(r"(?<![<>0-9&])>|-i\b|-delete\b|-exec\b")


def may_change(tool: str) -> bool:
    """Whether its name says that it changes something: by its first verb, since ``get_order`` orders nothing."""
    verbs = _verbs(tool)
    if _JOINED.intersection(verbs):
        return bool(_CHANGES.intersection(verbs))
    return next((verb in _CHANGES for verb in verbs if verb in _CHANGES or verb in _READS), False)


def only_reads(use: ToolUse) -> bool:
    """Whether the call looks as if it changed nothing."""
    words = _verbs(use.name)
    if _SHELLS.intersection(words) and (command := _command(use.arguments)):
        return all(map(_program_reads, _programs(command)))
    return not may_change(use.name) and bool(_READS.intersection(words))


def _verbs(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _command(arguments: object) -> str:
    """What a shell is told to run."""
    if not isinstance(arguments, Mapping):
        return ""
    given = next((arguments[name] for name in ("command", "cmd", "script", "code") if name in arguments), "")
    return " ".join(map(str, given)) if isinstance(given, list) else str(given)


def _programs(command: str) -> Iterator[str]:
    return (one.strip() for one in _CHAINED.split(command) if one.strip())


def _program_reads(command: str) -> bool:
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    if not words or _WRITES_FILE.search(command):
        return False
    if words[0] == "cd":
        return True
    if words[0] == "git":
        return len(words) > 1 and words[1] in _GIT_READS
    return words[0] in _PROGRAMS
