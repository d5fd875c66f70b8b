"""What the plugin says: commands to copy, and why a call was not answered."""

import os
import re
import shlex
from pathlib import Path

from rewind.runs.tally import MissNote
from rewind.safe import safe

_PLAIN_IN_QUOTES = re.compile(r'[^"$`\\!\n]*')


def quoted(word: str) -> str:
    """As it is typed in a shell, in double quotes where it needs any."""
    if shlex.quote(word) == word:
        return word
    return f'"{word}"' if _PLAIN_IN_QUOTES.fullmatch(word) else shlex.quote(word)


def test_address(nodeid: str, root: Path, here: Path) -> str:
    """The test as pytest takes it in this folder; node ids are relative to the root."""
    file, separator, rest = nodeid.partition("::")
    return os.path.relpath(root / file, here).replace(os.sep, "/") + separator + rest


def command(address: str, mode: str) -> str:
    """The command that runs that test in a mode."""
    return f"pytest {quoted(address)} --rewind={mode}"


def miss_text(note: MissNote) -> str:
    """Why a call was not answered, less the advice that is meant for ``rewind replay``."""
    if note.miss is None:
        return safe(note.report or note.reason)
    return safe("\n\n".join(filter(None, (note.miss.facts, note.miss.ignore_advice))))


def host_of(url: str) -> str:
    """The host of what a blocked connection is told by: ``https://name``, or ``name:port``."""
    place = url.rpartition("://")[2]
    name, colon, port = place.rpartition(":")
    return (name if colon and port.isdigit() else place).strip("[]")
