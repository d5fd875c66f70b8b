"""Flags, environment, pyproject and user file: read once when a command starts, each value with its origin.

The nearer source wins: flag, ``REWIND_*`` variable, ``[tool.rewind]`` of the nearest pyproject.toml, user file,
default. Lists (hosts, ignore) add up instead: a ``--host`` for one run must not silently stop the recording of
the hosts the project names. So do prices, model by model, which stand in files only. The folder ``./.rewind`` is
the project's word on where its store is, so it stands between the project's file and the user's.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from rewind.dataclass import dataclass
from rewind.errors import UsageError

PROJECT_FOLDER = ".rewind"
FAILING_TESTS = "last-failed"
"""Inside it: the runs of failing tests. A folder that holds nothing else is no store."""


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """Where a value comes from."""

    kind: str
    """``flag``, ``environment``, ``project``, ``folder``, ``user`` or ``default``."""
    where: str
    """The flag, the variable, the file or the folder; empty for a default."""

    def __str__(self) -> str:
        return self.where or "default"


DEFAULT = SettingOrigin("default", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What holds for this call of ``rewind``."""

    home: Path
    """The store."""
    hosts: tuple[str, ...] = ()
    """Host patterns recorded beside those that Rewind knows."""
    all_hosts: bool = False
    ignore: tuple[str, ...] = ()
    """Paths in request bodies that do not count when requests are matched."""
    match: Literal["exact", "fields", "renamed"] | None = None
    """How far the names in a request may differ from the recorded ones; ``None``: as each command has it."""
    ignore_text: tuple[str, ...] = ()
    """Patterns; what they find in a request does not count."""
    telemetry: tuple[str, ...] = ()
    """Uploads that are no part of a run, beside those that Rewind knows: ``POST host/path*``."""
    durable: bool = False
    upstream_proxy: str | None = None
    upstream_ca: Path | None = None
    keep_days: float | None = None
    """Sessions that are older go after a run, as long as they are not to be kept."""
    max_size: int | None = None
    """Bytes that the sessions may take; beyond that the oldest go."""
    keep: tuple[str, ...] = ()
    """Which sessions stay all the same, in the words of ``prune --keep``; pinned ones always do."""
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Model, or pattern → its price by kind, in US dollars per million tokens; and its ``context``."""
    origins: Mapping[str, tuple[SettingOrigin, ...]] = field(default_factory=dict)
    """Setting → where its value comes from; several for a list that added up."""

    def origin(self, name: str) -> tuple[SettingOrigin, ...]:
        return self.origins.get(name, (DEFAULT,))

    def values(self) -> dict[str, Any]:
        """Setting → value, in the order of the documentation."""
        return {name: getattr(self, name) for name in KNOWN}


@dataclass(frozen=True, slots=True)
class _Source:
    """One place that may name settings."""

    kind: str
    values: Mapping[str, Any]
    where: Callable[[str], str]
    """Setting → how this source calls it, in messages and in ``rewind config``."""
    folder: Path
    """What relative paths are relative to."""
    text: bool
    """Whether values are text to be read (a variable, a flag) or already typed (TOML)."""


KNOWN: dict[str, str] = {
    "home": "path",
    "hosts": "list",
    "all_hosts": "bool",
    "ignore": "list",
    "match": "match",
    "ignore_text": "patterns",
    "telemetry": "list",
    "durable": "bool",
    "upstream_proxy": "text",
    "upstream_ca": "path",
    "keep_days": "number",
    "max_size": "size",
    "keep": "list",
    "prices": "table",
}
"""Setting → type."""

FLAGS = {"hosts": "--host", "upstream_proxy": "--upstream-proxy", "upstream_ca": "--upstream-ca"}
"""Where the flag is not the name of the setting."""


def read_settings(
    flags: Mapping[str, Any] | None = None, *, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Settings:
    """The settings of this call, put in force where they are the process's. A flag that is ``None`` or an empty list
    was not given."""
    env = os.environ if env is None else env
    cwd = Path.cwd() if cwd is None else cwd
    given = {name: value for name, value in (flags or {}).items() if value not in (None, (), [])}
    assert given.keys() <= KNOWN.keys(), f"flags that are no settings: {given.keys() - KNOWN.keys()}"
    variables = {name: env[variable] for name in KNOWN if env.get(variable := _variable(name))}
    sources = [
        _Source("flag", given, lambda name: FLAGS.get(name, "--" + name.replace("_", "-")), cwd, True),
        _Source("environment", variables, _variable, cwd, True),
        *_project(cwd),
        *_project_folder(cwd),
        *_user(env),
    ]
    values: dict[str, Any] = {}
    origins: dict[str, tuple[SettingOrigin, ...]] = {}
    for name, kind in KNOWN.items():
        naming = [source for source in sources if name in source.values]
        if not naming:
            continue
        if kind in ("list", "patterns"):
            entries = (entry for source in naming for entry in _read(source, name, kind))
            values[name] = tuple(dict.fromkeys(entries))
        elif kind == "table":
            # The nearest comes first, also in the order in which patterns are tried.
            table: dict[str, Any] = {}
            for source in naming:
                table |= {key: entry for key, entry in _read(source, name, kind).items() if key not in table}
            values[name] = table
        else:
            del naming[1:]
            values[name] = _read(naming[0], name, kind)
        origins[name] = tuple(SettingOrigin(source.kind, source.where(name)) for source in naming)
    values.setdefault("home", data_folder(env))
    _put_in_force(values.get("telemetry", ()))
    return Settings(**values, origins=origins)


def data_folder(env: Mapping[str, str]) -> Path:
    """Where this user's data belongs on this system."""
    if sys.platform == "darwin" and not env.get("XDG_DATA_HOME"):
        return _home(env) / "Library" / "Application Support" / "rewind"
    return _base(env, "XDG_DATA_HOME", ".local/share") / "rewind"


def user_file(env: Mapping[str, str]) -> Path:
    """The settings of this user, for all projects."""
    if sys.platform == "darwin" and not env.get("XDG_CONFIG_HOME"):
        return _home(env) / "Library" / "Application Support" / "rewind" / "config.toml"
    return _base(env, "XDG_CONFIG_HOME", ".config") / "rewind" / "config.toml"


def mistyped_variables(env: Mapping[str, str]) -> dict[str, str]:
    """``REWIND_*`` variables that are nearly, but not quite, a setting → the setting's variable."""
    from difflib import get_close_matches  # lazily: only ``rewind config`` asks

    right = [_variable(name) for name in KNOWN]
    strange = sorted(name for name in env if name.startswith("REWIND_") and name not in right)
    near = {name: get_close_matches(name, right, n=1, cutoff=0.85) for name in strange}
    return {name: found[0] for name, found in near.items() if found}


def without_password(url: str) -> str:
    """The URL as it may be shown: a proxy's password belongs to nobody's screen or log."""
    from urllib.parse import urlsplit  # lazily: only shown values need it

    try:
        password = urlsplit(url).password
    except ValueError:
        return url
    return url.replace(f":{password}@", ":***@", 1) if password else url


def _variable(name: str) -> str:
    return "REWIND_" + name.upper()


def _base(env: Mapping[str, str], variable: str, usual: str) -> Path:
    named = env.get(variable, "")
    # The XDG specification: a relative path there is invalid and has to be ignored.
    return Path(named) if Path(named).is_absolute() else _home(env) / usual


def _home(env: Mapping[str, str]) -> Path:
    return Path(env["HOME"]) if env.get("HOME") else Path("~").expanduser()


_MENTIONS_US = re.compile(rb"tool\s*\.\s*[\"']?rewind|^\s*(\[\s*tool\s*\]|tool\s*=)", re.MULTILINE)
"""Where ``[tool.rewind]`` may stand, in any of TOML's spellings; reading TOML costs more than all other settings."""


def _project(cwd: Path) -> list[_Source]:
    """The nearest pyproject.toml that has a ``[tool.rewind]``."""
    for folder in (cwd, *cwd.parents):
        file = folder / "pyproject.toml"
        data = _bytes(file)
        # Most projects do not mention us: their file, right or wrong, is none of our business.
        if data is None or not _MENTIONS_US.search(data):
            continue
        tool = _toml(file, data).get("tool", {})
        if isinstance(tool, dict) and "rewind" in tool:
            where = f"{file} [tool.rewind]"
            return [_file_source("project", tool["rewind"], where, folder)]
    return []


def _project_folder(cwd: Path) -> list[_Source]:
    folder = cwd / PROJECT_FOLDER
    if not folder.is_dir() or _holds_only_failing_tests(folder):
        return []
    return [_Source("folder", {"home": str(folder)}, lambda _: f"./{PROJECT_FOLDER}", cwd, True)]


def _holds_only_failing_tests(folder: Path) -> bool:
    """The pytest plugin keeps failing runs there: a test that fails must not move anybody's store."""
    try:
        return [entry.name for entry in os.scandir(folder)] == [FAILING_TESTS]
    except OSError:
        return False


def _user(env: Mapping[str, str]) -> list[_Source]:
    file = user_file(env)
    data = _bytes(file)
    return [] if data is None else [_file_source("user", _toml(file, data), str(file), file.parent)]


def _bytes(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as problem:
        raise UsageError(f"{file} cannot be read: {problem.strerror}.") from problem


def _toml(file: Path, data: bytes) -> dict[str, Any]:
    import tomllib  # lazily: most calls find no file that mentions us

    try:
        return tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise UsageError(f"{file} is not valid TOML: {problem}.") from problem


def _file_source(kind: str, table: Any, where: str, folder: Path) -> _Source:
    if not isinstance(table, dict):
        raise UsageError(f"{where} must be a table of settings.")
    values = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in KNOWN:
            raise UsageError(f"{where} has no setting {key!r}.", hint=_nearest(name))
        values[name] = value
    return _Source(kind, values, lambda _: where, folder, False)


def _nearest(wrong: str) -> str:
    from difflib import get_close_matches  # lazily: only a typo needs it

    near = get_close_matches(wrong, KNOWN, n=1)
    return f"{near[0]!r}" if near else f"one of: {', '.join(KNOWN)}"


def _read(source: _Source, name: str, kind: str) -> Any:
    value = source.values[name]
    match kind:
        case "bool":
            if isinstance(value, str) and source.text:
                value = {"1": True, "true": True, "yes": True, "on": True}.get(
                    value.lower(), {"0": False, "false": False, "no": False, "off": False}.get(value.lower())
                )
            if isinstance(value, bool):
                return value
        case "list":
            if isinstance(value, str) and source.text:
                value = [entry.strip() for entry in value.split(",") if entry.strip()]
            if isinstance(value, list | tuple) and all(isinstance(entry, str) and entry for entry in value):
                if name == "keep":
                    check_keep(value, where=f"{source.where(name)}: 'keep': ")
                return _uploads(source, value) if name == "telemetry" else tuple(value)
        case "patterns":
            if isinstance(value, str) and source.text:
                value = [value]  # a comma may be part of a pattern
            if isinstance(value, list | tuple) and all(map(is_pattern, value)):
                return tuple(value)
        case "match":
            from rewind.model.names import MATCH_MODES  # lazily: hardly anybody sets it

            if value in MATCH_MODES:
                return value
        case "path":
            if isinstance(value, str) and value and "\0" not in value:
                return _path(source, name, value)
        case "table":
            if isinstance(value, dict):
                return _prices(source, value)
        case "number":
            with suppress(ValueError):
                number = float(value) if isinstance(value, str) and source.text else value
                if isinstance(number, int | float) and not isinstance(number, bool) and 0 < number < 1e6:
                    return number
        case "size":
            with suppress(ValueError):
                if not isinstance(value, bool) and (count := size_in(str(value))):
                    return count
        case _:
            if isinstance(value, str) and value:
                return value
    raise UsageError(f"{source.where(name)}: {name!r} must be {_WANTED[kind]}, not {source.values[name]!r}.")


_WANTED = {
    "bool": "true or false",
    "list": "a list of strings",
    "patterns": "a list of valid regular expressions, none of which matches the empty text",
    "match": "one of exact, fields, renamed",
    "path": "a path",
    "text": "a string",
    "table": "a table in a file",
    "number": "a number above 0",
    "size": "a size such as 500M or 20G, with its unit",
}


KEEP_WORDS = ("failed", "interrupted", "broken", "ok", "named", "tagged", "imported", "pinned")


def check_keep(words: Iterable[str], where: str = "") -> None:
    """Whether these say which sessions to keep, in the words of ``prune --keep``. Raises UsageError."""
    for word in words:
        if word not in KEEP_WORDS and not re.fullmatch(r"(tag|name)=.+", word, re.DOTALL):
            raise UsageError(
                f"{where}{word!r} does not say which sessions to keep.",
                hint=f"one of {', '.join(KEEP_WORDS)}, tag=KEY[=VALUE], name=PATTERN",
            )


def size_in(text: str) -> int:
    """``20G`` in bytes. As the system's own tools read it: ``G`` and ``GiB`` are powers of 1024, ``GB`` of 1000.

    A number alone is no size: whoever writes 20 means gigabytes, and what is beyond 20 bytes would be deleted.
    Raises ValueError.
    """
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?) *(?:([kmgtp])(i?b)?|b)", text.strip().lower(), re.ASCII)
    if found is None:
        raise ValueError(f"{text!r} is not a size, such as 500M or 20G.")
    base = 1000 if found[3] == "b" else 1024
    return int(float(found[1]) * base ** ("kmgtp".index(found[2]) + 1 if found[2] else 0))


def is_pattern(value: Any) -> bool:
    """Whether it is an expression that finds something: one that finds nothing at every place would fold all."""
    try:
        return isinstance(value, str) and bool(value) and re.compile(value).match("") is None
    except re.error:
        return False


def _prices(source: _Source, table: dict[str, Any]) -> dict[str, Any]:
    from rewind.pricing.prices import own_price  # lazily: few name prices of their own

    for model, entry in table.items():
        try:
            own_price(model, entry)
        except ValueError as problem:
            raise UsageError(f"{source.where('prices')}: 'prices': {model!r}: {problem}.") from problem
    return table


def _uploads(source: _Source, rows: Iterable[str]) -> tuple[str, ...]:
    for row in rows:
        try:
            _telemetry().read_row(row)
        except ValueError as problem:
            raise UsageError(f"{source.where('telemetry')}: 'telemetry': {problem}.") from problem
    return tuple(rows)


def _put_in_force(rows: tuple[str, ...]) -> None:
    """Whether a request is telemetry is asked everywhere, of the head alone: the rows hold for the whole process."""
    if rows or "rewind.providers.telemetry" in sys.modules:
        _telemetry().use_rows(rows)


def _telemetry() -> Any:
    from rewind.providers import telemetry  # lazily: few name uploads of their own

    return telemetry


def _path(source: _Source, name: str, value: str) -> Path:
    try:
        return source.folder / Path(value).expanduser()
    except RuntimeError as problem:  # a ``~name`` of nobody on this machine
        raise UsageError(f"{source.where(name)}: {name!r}: {problem}") from problem
