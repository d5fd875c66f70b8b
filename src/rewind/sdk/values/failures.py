"""An exception as it is kept, and raised again in a replay.

It is raised as its own type where that is a builtin exception, or one that this program has imported already, and
where all it holds was kept: its arguments and its attributes. Its class is not called for that. Nothing is imported
because of a recording, nor looked up in a way that could import something. What caused it is not kept.
"""

import builtins
import contextlib
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from rewind.errors import ToolFailed
from rewind.sdk.values.objects import KnownClasses, attempt, class_name, foreign_base, more_than
from rewind.sdk.values.serialise import LOST, SerialisedValue, ValueLost, as_json, restore, same, serialise

_NOTHING = KnownClasses()
_NOTES = "__notes__"
"""An attribute that is kept beside the others."""
_IN_C = ("name", "path", "name_from", "filename2")
"""What builtin exceptions hold that is neither an argument nor in their ``__dict__``, and can be set."""


def serialised_failure(error: BaseException) -> dict[str, Any]:
    """The fields of the answer of a tool that failed: the text that views show, and what it takes to raise it.

    Raises nothing. ``lost`` says why a replay cannot raise it as itself.
    """
    name, message = type(error).__name__, attempt(str, error, "")
    kept: dict[str, Any] = {"type": attempt(class_name, type(error), name), "message": message}
    try:
        _keep_state(error, kept)
    except Exception as trouble:  # noqa: BLE001  a stranger's exception may do anything
        kept["lost"] = f"{name} cannot be read ({type(trouble).__name__})"
    notes: list[str] = attempt(_notes, error, [])
    if notes:
        kept["notes"] = notes
    return {"error": f"{name}: {message}" if message else name, "exception": kept}


def restored_failure(tool: str, answer: Mapping[str, Any]) -> Exception:
    """What a replay raises where the recorded call had raised."""
    kept = answer.get("exception")
    kept = kept if isinstance(kept, dict) else {}
    name, message = str(kept.get("type", "")), str(kept.get("message", answer.get("error", "")))
    error = _as_itself(name, message, kept) or ToolFailed(tool, name, message)
    notes = kept.get("notes")
    for note in notes if isinstance(notes, list) else ():
        with contextlib.suppress(Exception):  # one that lets nothing be written to it goes without
            error.add_note(str(note))
    return error


def _keep_state(error: BaseException, kept: dict[str, Any]) -> None:
    """All that it holds, and whether it can be made of that: which is tried at once."""
    kind = type(error)
    attributes = {name: value for name, value in vars(error).items() if name != _NOTES}
    attributes |= _held_in_c(error)
    for field, value in (("args", _args(error)), ("attributes", attributes)):
        written = serialise(value, _NOTHING)
        if written.lost is not None:
            kept["lost"] = f"{kind.__name__} holds more than can be kept ({_place(written)})"
            return
        if value or field == "args":
            kept[field] = written.plain
        if written.types:
            kept["types" if field == "args" else "attribute_types"] = dict(written.types)
    if more := more_than(error, (*vars(error), *_IN_C)):
        kept["lost"] = f"{kind.__name__} holds more than can be kept ({', '.join(more)})"
    elif _loaded_class(kept["type"]) is not kind:
        kept["lost"] = f"{kind.__name__} cannot be found by its name"
    else:
        again = _as_itself(kept["type"], kept["message"], json.loads(as_json(kept)))
        if again is None or not same(_state(error), _state(again), _NOTHING):
            kept["lost"] = f"{kind.__name__} does not come back equal"


def _place(written: SerialisedValue) -> str:
    return next(
        f"{at.strip('/') or 'its text'}: {form.removeprefix(LOST)}"
        for at, form in written.types.items()
        if form.startswith(LOST)
    )


def _state(error: BaseException) -> list[Any]:
    attributes = {name: value for name, value in vars(error).items() if name != _NOTES}
    return [list(error.args), _args(error), attributes, _held_in_c(error)]


def _held_in_c(error: BaseException) -> dict[str, Any]:
    base = foreign_base(type(error)) or Exception
    values = {name: getattr(error, name) for name in _IN_C if name in _members(base)}
    return {name: value for name, value in values.items() if value is not None}


def _members(base: type) -> Iterable[str]:
    return {name for kind in base.__mro__ for name in kind.__dict__ if not name.startswith("_")}


def _as_itself(name: str, message: str, kept: Mapping[str, Any]) -> Exception | None:
    """``None`` where it cannot be, for whatever reason."""
    kind = _loaded_class(name)
    if kind is None or "lost" in kept:
        return None
    try:
        args = _read(kept.get("args"), kept.get("types"), list)
        attributes = _read(kept.get("attributes", {}), kept.get("attribute_types"), dict)
        error = _made(kind, args, attributes)
        return error if str(error) == message else None
    except Exception:  # noqa: BLE001  ValueLost, or a class of which anything can be expected
        return None


def _read(plain: Any, types: Any, kind: type) -> Any:
    value = restore(SerialisedValue(plain=plain, types=types if isinstance(types, dict) else {}), _NOTHING)
    if not isinstance(value, kind):
        raise ValueLost("it is damaged")
    return value


def _made(kind: type[Exception], args: list[Any], attributes: dict[str, Any]) -> Exception:
    """Not by calling the class: it may ask for anything, and do anything."""
    base: Any = foreign_base(kind) or Exception
    error: Exception = base.__new__(kind, *args)
    base.__init__(error, *args)
    in_c = _members(base)
    for name, value in attributes.items():
        if name in _IN_C and name in in_c:
            setattr(error, name, value)
        else:
            error.__dict__[name] = value
    return error


def _loaded_class(name: str) -> type[Exception] | None:
    """An exception of that full name, if it is here already."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:cut])
        holder: Any = builtins if module == "builtins" else sys.modules.get(module)
        if holder is None:
            continue
        for part in parts[cut:]:
            # Not ``getattr``: a module's own ``__getattr__`` might import what it is asked for.
            holder = getattr(holder, "__dict__", {}).get(part)
        return holder if isinstance(holder, type) and issubclass(holder, Exception) else None
    return None


def _args(error: BaseException) -> list[Any]:
    if isinstance(error, OSError) and error.filename is not None:
        return [error.errno, error.strerror, error.filename]  # its ``args`` do not hold the file's name
    return list(error.args)


def _notes(error: BaseException) -> list[str]:
    return [str(note) for note in getattr(error, _NOTES, ())]
