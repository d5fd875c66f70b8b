"""The user's own editor, on a JSON value in a file that nobody else can read."""

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewind.errors import EnvironmentProblem, UsageError

FALLBACK = "vi"


def edit_json(document: Any, *, name: str, env: Mapping[str, str] | None = None, terminal: int | None = None) -> Any:
    """What the user made of the document. Raises UsageError where that is nothing new, or no JSON object.

    ``terminal`` is a descriptor for the editor's input and output, where ours are not for it.
    """
    folder = Path(tempfile.mkdtemp(prefix="rewind-"))  # mode 0700
    path = folder / name
    kept = False
    try:
        path.touch(mode=0o600)
        path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", errors="backslashreplace")
        _open_editor(path, os.environ if env is None else env, terminal)
        try:
            written = path.read_text(errors="surrogateescape")
        except FileNotFoundError as error:
            raise UsageError("The editor left no file behind. Nothing was run.") from error
        if not written.strip():
            raise UsageError("The file is empty, so the fork is called off. Nothing was run.")
        try:
            saved = _object(written)
        except ValueError as error:
            kept = True  # somebody's work is in there
            raise UsageError(
                f"What you saved is not {error}. Nothing was run.", hint=f"What you wrote is still in {path}"
            ) from error
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)
    if saved == document:
        raise UsageError(
            "You changed nothing in the editor. Nothing was run.",
            hint="rewind fork SESSION:STEP, without --edit, asks the step again as it is.",
        )
    return saved


def _object(written: str) -> dict[str, Any]:
    """Raises ValueError, which says what the text is not."""

    def no_number(word: str) -> Any:
        raise ValueError(f"{word} is not a JSON number")

    try:
        written.encode()  # bytes that are not text are not JSON either
        saved = json.loads(written, parse_constant=no_number)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"valid JSON ({error})") from error
    if not isinstance(saved, dict):
        raise ValueError("a JSON object")
    return saved


def _open_editor(path: Path, env: Mapping[str, str], terminal: int | None) -> None:
    named = env.get("VISUAL") or env.get("EDITOR") or FALLBACK
    try:
        words = shlex.split(named) or [FALLBACK]
        code = subprocess.run([*words, str(path)], stdin=terminal, stdout=terminal, check=False).returncode
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(
            f"The editor {named!r} could not be started: {error}.",
            hint="Set EDITOR to an editor that is installed, for example EDITOR=nano",
        ) from error
    if code != 0:
        raise UsageError(f"The editor {named!r} ended with exit code {code}. Nothing was run.")
