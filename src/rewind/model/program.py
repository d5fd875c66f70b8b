"""What was run, without what it was run with: runs of the same agent with other arguments belong together."""

import re
from collections.abc import Sequence
from posixpath import basename

_INTERPRETER = re.compile(
    r"python[\d.]*|pypy[\d.]*|node|deno|bun|tsx|ts-node|ruby|perl|php|java|(?:ba|z|da|k)?sh", re.ASCII
)
"""Their first argument that is not an option says what is run."""
_RUNNERS = {
    **dict.fromkeys(("uv", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi"), ("run",)),
    **dict.fromkeys(("npm", "pnpm", "yarn"), ("run", "exec")),
    **dict.fromkeys(("npx", "uvx", "env", "nohup", "time"), ()),
}
"""What they run is a command of its own, after one of these words."""
_TAKES_A_NAME = ("-m", "--module")
_TAKES_CODE = ("-c", "-e", "--eval")


def program_of(command: Sequence[object]) -> str:
    """``/usr/bin/python3 -u agent.py --case 7`` is ``python3 agent.py``."""
    words = [str(word) for word in command]
    if not words:
        return ""
    name, rest = basename(words[0]), words[1:]
    if name in _RUNNERS:
        return _after_runner(name, rest, _RUNNERS[name])
    return f"{name} {_script(rest)}".rstrip() if _INTERPRETER.fullmatch(name) else name


def _after_runner(name: str, rest: list[str], verbs: tuple[str, ...]) -> str:
    said = [name]
    if rest and rest[0] in verbs:
        said.append(rest.pop(0))
    while rest and (rest[0].startswith("-") or (name == "env" and "=" in rest[0])):
        rest.pop(0)
    return " ".join([*said, program_of(rest)]).rstrip()


def _script(arguments: list[str]) -> str:
    for at, word in enumerate(arguments):
        if word in _TAKES_A_NAME:
            return " ".join(arguments[at : at + 2])
        if word in _TAKES_CODE:
            return word
        if not word.startswith("-"):
            return word
    return ""
