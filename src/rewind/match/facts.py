"""What is known of a run besides what it asked: where it ran, as whom, when, and what it was given.

Two runs of one agent, in another folder or on another day, say other things for the same fact. As both values are
known, such a difference is no guess.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from urllib.parse import quote

from rewind.dataclass import dataclass
from rewind.match.tokens import FOLDER, NAME, TokenKind
from rewind.match.written_times import RunClock

FOLDERS = ("folder", "logical", "home", "temp")
_LONGEST = 4096
"""Characters of a path, at most."""
_LEAST_NAME = 2
_LEAST_PATH = 3
"""Characters of a name, or of a folder, that is looked for in texts."""
_SLUGS = (r"[^A-Za-z0-9]", r"[^A-Za-z0-9_]", r"[^A-Za-z0-9_-]+")
"""What becomes a dash where a name is made fit for a file."""
_COMMIT_LENGTHS = (40, 12, 11, 10, 9, 8, 7)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """One run. Empty where something is not known."""

    clock: RunClock
    folders: Mapping[str, str]
    """``folder`` (``logical``: as the shell calls it), ``home`` and ``temp``, as far as known."""
    names: Mapping[str, str]
    """``user``, ``host``, ``commit`` and ``branch``, as far as known."""
    given: str = ""
    """All that the user gave: the words of the command, its input, the environment."""

    def was_given(self, token: str) -> bool:
        at = self.given.find(token)
        while at >= 0:
            if not (_joins(self.given[at - 1 : at]) or _joins(self.given[at + len(token) : at + len(token) + 1])):
                return True
            at = self.given.find(token, at + 1)
        return False

    def was_told(self, name: str) -> bool:
        """Whether the user wrote a word that is also a name of the run: ``deploy.py staging``, on a branch of that
        name. As a part of a path or of a file's name it is none."""
        return re.search(rf"(?<![\w./@-]){re.escape(name)}(?![\w/@-]|\.\w)", self.given) is not None


def possible_facts(facts: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Those that are there, and that a system can have: a stranger's cassette may say anything."""
    return {
        name: facts[name] for name in names if 0 < len(facts.get(name, "")) <= _LONGEST and _is_of_bytes(facts[name])
    }


def _is_of_bytes(text: str) -> bool:
    try:
        return b"\0" not in text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False


@dataclass(frozen=True, slots=True)
class SameFact:
    """Two texts for one fact, and for one way to write it."""

    kind: TokenKind
    then: str
    now: str
    is_part: bool = False
    """Whether it is a part of a longer path, whatever stands before it."""


def same_facts(then: RunFacts, now: RunFacts) -> tuple[SameFact, ...]:
    """What is called otherwise in two runs, the longest first, so that a folder is found before the one it is in."""
    found: dict[tuple[str, str], TokenKind] = {}
    for name, old in then.folders.items():
        new = now.folders.get(name)
        if new:
            for one, other in _folders(old, new):
                for spelling in zip(_spellings(one, then), _spellings(other, now), strict=True):
                    found.setdefault(spelling, FOLDER)
    for name, old in then.names.items():
        new = now.names.get(name)
        if new and not then.was_told(old):
            for pair in _commits(old, new) if name == "commit" else ((old, new),):
                found.setdefault(pair, NAME)
    pairs = [SameFact(kind, old, new) for (old, new), kind in found.items() if old and new and old != new]
    pairs += _parts(then.folders.get("folder", ""), now.folders.get("folder", ""))
    return tuple(sorted(pairs, key=lambda pair: -max(len(pair.then), len(pair.now))))


def _parts(then: str, now: str) -> Iterator[SameFact]:
    """The name of the folder as a part of other paths: Gemini CLI has a project's files below ``.gemini/tmp/NAME``."""
    old, new = PurePosixPath(then).name, PurePosixPath(now).name
    for one, other in dict.fromkeys(zip(_names(old), _names(new), strict=True)):
        if one and other and one != other:
            yield SameFact(FOLDER, f"/{one}", f"/{other}", is_part=True)


def _names(folder: str) -> Iterator[str]:
    """The name of a folder as it is, and made fit for a file."""
    yield folder
    for signs in _SLUGS:
        yield re.sub(signs, "-", folder)
    yield re.sub(r"[^a-z0-9]+", "-", folder.lower()).strip("-")


def _folders(then: str, now: str) -> Iterator[tuple[str, str]]:
    """Both folders, and those above in which they differ: what stands beside them has moved, too."""
    old, new = PurePosixPath(then), PurePosixPath(now)
    yield str(old), str(new)
    while old.name and old.name == new.name:
        old, new = old.parent, new.parent
    if min(len(str(old)), len(str(new))) > _LEAST_PATH:
        yield str(old), str(new)


def _spellings(folder: str, facts: RunFacts) -> Iterator[str]:
    """A folder in the ways in which clients write it; as many for every folder, and empty where one does not fit."""
    home = facts.folders.get("home", "")
    yield folder if len(folder) >= _LEAST_PATH else ""
    yield "~" + folder[len(home) :] if home and folder.startswith(home + "/") else ""
    data = folder.encode("utf-8", "surrogateescape")
    yield _if_other(quote(data), folder)
    yield quote(data, safe="")
    yield _if_other(folder.replace("/", "\\/"), folder)
    yield re.sub(r"[^A-Za-z0-9]", "-", folder)  # Claude Code names a project's folder so
    for digest in ("sha256", "sha1", "md5"):  # Gemini CLI names one by its hash
        yield hashlib.new(digest, data, usedforsecurity=False).hexdigest()


def _if_other(written: str, folder: str) -> str:
    return written if written != folder else ""


def _commits(then: str, now: str) -> Iterator[tuple[str, str]]:
    for length in _COMMIT_LENGTHS:
        yield then[:length], now[:length]


def stands_alone(text: str, start: int, end: int, fact: SameFact) -> bool:
    """Whether what stands there is the whole of a name: ``/tmp/a`` is no part of ``/tmp/ab`` or ``/tmp/a.txt``."""
    before, after = "" if fact.is_part else text[start - 1 : start], text[end : end + 2]
    if fact.kind is NAME:
        return not (_joins(before) or _joins(after[:1])) and end - start >= _LEAST_NAME
    if before and (before.isalnum() or before in "_."):
        return False
    return not (
        after[:1].isalnum() or after[:1] == "_" or (after[:1] in ".-" and after[1:].isalnum() and text[start] != "-")
    )


def _joins(sign: str) -> bool:
    return bool(sign) and (sign.isalnum() or sign in "_-")
