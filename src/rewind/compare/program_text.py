"""Program text and commands as a model writes them: what they do, less comments, layout and the order of options."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from rewind.compare.wording import Change, Weight, excerpt, text_changes

_PROGRAMS = frozenset(
    re.findall(
        r"\S+",
        "ls cat cd grep rg rm mv cp git python python3 pytest npm npx yarn node pip make docker kubectl curl wget "
        "sed awk find "
        "echo mkdir rmdir touch head tail chmod chown tar zip unzip ssh scp go cargo ruby java mvn gradle "
        "terraform helm ps "
        "kill df du wc sort uniq diff patch bash sh sudo systemctl journalctl aws gcloud az psql mysql redis-cli "
        "ruff mypy "
        "uv poetry tox black pnpm deno bun export source env which pwd tree less xargs tee",
    )
)
_CODE_SIGNS = re.compile(
    r"^\s*(?:def|class|import|from|return|if|for|while|function|const|let|var|public|private|package|use|fn|func"
    r"|struct|"
    r"#include|@@|\+\+\+|---) ?\S.*(?:[:;{(,]|\bimport\b)|[=!<>]=|=>|->|\w\([^()\n]{0,80}\)|^\s*[}\])]+;?$|;\s*$"
    r"|\w+ = \S"
    r"|</\w+>",
    re.MULTILINE,
)
_SQL = re.compile(
    r"^\s*(?:select\b.+\bfrom|insert into|update \w+ set|delete from|create table|alter table|drop table)\b",
    re.I | re.S,
)
_MAY_BE_PROGRAM = re.compile(r"[(){}=;<>\n*]|^\s*(?:select|insert|update|delete|create|alter|drop)\b", re.IGNORECASE)
_CODE_TOKEN = re.compile(
    r"(?P<doc>\"\"\".*?\"\"\"|'''.*?''')|(?P<comment>(?:^|(?<=\s))#[^\n]*|//[^\n]*|/\*.*?\*/|(?:^|(?<=\s))-- [^\n]*)"
    r"|(?P<string>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')|(?P<number>\d[\w.]*)|(?P<name>[^\W\d]\w*)"
    r"|(?P<sign>[^\w\s])",
    re.DOTALL | re.MULTILINE,
)


_COMMAND_SIGN = re.compile(r"(?:^|\s)-{1,2}[A-Za-z]|[/|&>$*~]|\.\w{1,5}(?:\s|$|:)")
"""Options, paths, pipes, files: what a command has and a question has not."""
_SHORT_COMMANDS = frozenset({"ls", "cd", "rm", "mv", "cp", "git", "mkdir", "rmdir", "chmod", "pip", "pytest", "rg"})
"""Programs whose names are no words, so that a bare word behind them makes a command."""
_COMMAND_KEYS = frozenset({"cmd", "command", "commands", "bash", "shell"})


def is_command(text: str, place: str = "") -> bool:
    """By its first word and its signs; or because the argument is called so."""
    if "\n" in text or " " not in text:
        return False
    if place.rsplit(".", 1)[-1] in _COMMAND_KEYS:
        return True
    first = text.split(" ", 1)[0]
    if first.startswith("./") or (first in _SHORT_COMMANDS and text.count(" ") < 3):
        return True
    return first in _PROGRAMS and not text.endswith(("?", ".")) and _COMMAND_SIGN.search(text) is not None


def is_program(text: str) -> bool:
    """Program text of any language, by its signs."""
    if _MAY_BE_PROGRAM.search(text) is None:
        return False
    if _SQL.match(text):
        return True
    lines = text.count("\n") + 1
    return re.search(r"\s", text) is not None and len(_CODE_SIGNS.findall(text)) >= max(2, 0.3 * lines)


def program_tokens(text: str) -> Iterator[str]:
    """What a program consists of, less comments and layout."""
    for found in _CODE_TOKEN.finditer(text):
        if found.lastgroup not in ("comment", "doc"):
            yield found[0]


def command_tokens(text: str) -> tuple[str, ...]:
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    words = [word.rstrip("/") or word for word in words]
    if any(word.startswith("-") for word in words):  # options stand in any order
        return (*words[:1], *sorted(words[1:]))
    return tuple(words)


def command_changes(old: str, new: str, changed: Change, prose: Change) -> list[Change]:
    """Every word of a command counts."""
    ours, theirs = command_tokens(old), command_tokens(new)
    return [prose] if ours == theirs else _exchanged(ours, theirs, changed)


def program_changes(old: str, new: str, changed: Change, prose: Change) -> list[Change]:
    """Every sign counts, but for names that are others throughout, and texts that say the same."""
    ours, theirs = list(program_tokens(old)), list(program_tokens(new))
    if ours == theirs:
        return [prose]
    if len(ours) != len(theirs):
        return _exchanged(ours, theirs, changed)
    pairs = [(one, other) for one, other in zip(ours, theirs, strict=True) if not _same_token(one, other)]
    if not pairs or _is_renamed(ours, theirs):
        return [prose]
    return [Change(changed.kind, *pairs[0], changed.place)]


def _exchanged(ours: Sequence[str], theirs: Sequence[str], changed: Change) -> list[Change]:
    gone, come = Counter(ours) - Counter(theirs), Counter(theirs) - Counter(ours)
    before, after = (excerpt(" ".join(one)) if one else None for one in (gone, come))
    return [Change(changed.kind, before, after, changed.place) if before or after else changed]


def _same_token(one: str, other: str) -> bool:
    """The same, a string in other quotes, or one of words that say the same."""
    if one == other:
        return True
    if one[:1] in "\"'" and other[:1] in "\"'":
        inner, rival = one[1:-1], other[1:-1]
        if inner == rival:
            return True
        if " " in inner and " " in rival:
            return all(change.weight is not Weight.DECISIVE for change in text_changes(inner, rival))
    return False


def _is_renamed(ours: list[str], theirs: list[str]) -> bool:
    """Whether names alone differ, each for one other throughout, and none that the other text has, too."""
    names: dict[str, str] = {}
    for one, other in zip(ours, theirs, strict=True):
        if one != other and not (one.isidentifier() and other.isidentifier()):
            return False
        if one.isidentifier() and names.setdefault(one, other) != other:
            return False
    renamed = {one: other for one, other in names.items() if one != other}
    return (
        len(set(names.values())) == len(names)
        and set(ours).isdisjoint(renamed.values())
        and all(ours.count(one) > 1 for one in renamed)
    )
