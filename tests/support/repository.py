"""A git repository that a test makes, and gits that are not what they should be."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_NOBODYS_SETTINGS = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Somebody",
    "GIT_AUTHOR_EMAIL": "somebody@example.com",
    "GIT_COMMITTER_NAME": "Somebody",
    "GIT_COMMITTER_EMAIL": "somebody@example.com",
}


@dataclass(frozen=True, slots=True)
class Repository:
    """One branch, ``main``, with one commit of ``agent.py``."""

    folder: Path

    @classmethod
    def create(cls, folder: Path) -> "Repository":
        folder.mkdir(parents=True, exist_ok=True)
        made = cls(folder)
        made.git("init", "--quiet", "--initial-branch=main")
        made.commit({"agent.py": "print('hello')\n"})
        return made

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env={**os.environ, **_NOBODYS_SETTINGS},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.folder / name).write_text(text)

    def commit(self, files: dict[str, str]) -> str:
        """The hash of a new commit with these files."""
        self.write(files)
        self.git("add", "--", *files)
        self.git("commit", "--quiet", "--message", "a change")
        return self.head

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")


def hanging_git(folder: Path) -> tuple[Path, Path]:
    """A folder for the PATH whose git never ends, and where it and its own child leave their process ids."""
    folder.mkdir()
    pids = folder / "pids"
    script = folder / "git"
    script.write_text(f"#!/bin/sh\n/bin/sleep 600 &\necho $$ $! > {pids}.new\n/bin/mv {pids}.new {pids}\nwait\n")
    script.chmod(0o755)
    return folder, pids
