"""Objects of the user's own classes: what they consist of, and which of them a tool's return annotation names.

Only those can be given back: a recording may be a stranger's file, so it never chooses a class. The annotation does.
"""

import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class CannotBuild(Exception):
    """An object that has more to it than its fields, and why."""


_PROGRAM = "__main__."
_HEAP = 1 << 9
"""``Py_TPFLAGS_HEAPTYPE``: a class made by a ``class`` statement, which keeps all it has in ``__dict__`` and slots."""


def class_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


class KnownClasses:
    """The classes whose objects can be built again, by name."""

    def __init__(self, kinds: Iterable[type] = (), trouble: str | None = None) -> None:
        self._kinds = frozenset(kinds)
        self._by_name = {class_name(kind): kind for kind in self._kinds}
        self.trouble = trouble or "the tool's return annotation does not name that class"
        """Why others cannot."""

    def __contains__(self, kind: type) -> bool:
        return kind in self._kinds

    def of(self, name: str) -> type | None:
        """The class of exactly that name; what ran as ``__main__`` may be a module the next time."""
        if (kind := self._by_name.get(name)) is not None:
            return kind
        near = [kind for kind in self._kinds if _moved(name, kind)]
        return near[0] if len(near) == 1 else None


def _moved(name: str, kind: type) -> bool:
    """Whether that name is this class's, as it is called where its module is the program, or was."""
    if name.startswith(_PROGRAM):
        return name.removeprefix(_PROGRAM) == kind.__qualname__
    return kind.__module__ == "__main__" and name.endswith("." + kind.__qualname__)


def returned_classes(function: Any) -> KnownClasses:
    """The classes that a function's return annotation leads to, through containers, unions and fields."""
    classes: dict[type, None] = {}
    try:
        annotation = typing.get_type_hints(function).get("return")
        _reach(annotation, classes, {})
    except Exception as error:  # noqa: BLE001  an annotation may be any expression
        return KnownClasses(
            trouble=f"the tool's annotations cannot be read ({attempt(str, error, type(error).__name__)})"
        )
    return KnownClasses(classes)


def attempt(function: Callable[[Any], T], value: Any, otherwise: T) -> T:
    """What the function makes of it. A stranger's object may do anything when it is asked for its text, or name."""
    try:
        return function(value)
    except Exception:  # noqa: BLE001
        return otherwise


def _reach(annotation: Any, classes: dict[type, None], seen: dict[int, Any]) -> None:
    if id(annotation) in seen:
        return
    seen[id(annotation)] = annotation  # held, so that no other gets its id
    for inner in _inside(annotation):
        _reach(inner, classes, seen)
    if not isinstance(annotation, type) or annotation in classes:
        return
    classes[annotation] = None
    if class_fields(annotation) is None and not typing.is_typeddict(annotation):
        return
    try:
        inside = list(typing.get_type_hints(annotation).values())
    except Exception:  # noqa: BLE001  then its fields' classes are told apart one by one where they come up
        inside = [field.annotation for field in getattr(annotation, "__pydantic_fields__", {}).values()]
    for inner in inside:
        _reach(inner, classes, seen)


def _inside(annotation: Any) -> Iterator[Any]:
    yield from typing.get_args(annotation)
    origin = typing.get_origin(annotation)
    if isinstance(origin, type) and origin is not types.UnionType:
        yield origin
    # ``type X = …``, which may lead to itself, and NewType.
    for more in ("__value__", "__supertype__"):
        if hasattr(annotation, more):
            yield getattr(annotation, more)


def class_fields(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass, a pydantic model, a named tuple or an attrs class; ``None`` for others."""
    if isinstance(getattr(kind, "__dataclass_fields__", None), Mapping):
        # ``__dataclass_fields__`` also has class variables and what only ``__init__`` takes.
        return tuple(field.name for field in sys.modules["dataclasses"].fields(kind))
    if isinstance(models := getattr(kind, "__pydantic_fields__", None), Mapping):
        return tuple(models)
    if issubclass(kind, tuple) and isinstance(names := getattr(kind, "_fields", None), tuple):
        return names
    if isinstance(attributes := getattr(kind, "__attrs_attrs__", None), tuple):
        return tuple(attribute.name for attribute in attributes)
    return None


def is_enum(kind: type) -> bool:
    enum = sys.modules.get("enum")
    return enum is not None and issubclass(kind, enum.Enum)


def is_object(kind: type) -> bool:
    """Whether we know what its objects consist of."""
    return is_enum(kind) or class_fields(kind) is not None


def parts_of(value: Any) -> Any:
    """What it consists of: a member of an enum its name, or the number of a flag; others their fields.

    Raises CannotBuild for a field that is not there, or would be worked out only because we ask: a relation of an
    ORM's row is a query.
    """
    kind = type(value)
    if is_enum(kind):
        return value.name if value.name in kind.__members__ else value.value
    names = class_fields(kind) or ()
    if isinstance(value, tuple):
        return dict(zip(names, tuple.__iter__(value), strict=False))
    parts = {name: _field(value, kind, name) for name in names}
    if is_model(kind):
        parts |= {**(value.__pydantic_extra__ or {}), **(value.__pydantic_private__ or {})}
    return parts


def _field(value: Any, kind: type, name: str) -> Any:
    held = getattr(value, "__dict__", {})
    if name in held:
        return held[name]
    attribute = next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), CannotBuild)
    if isinstance(attribute, types.MemberDescriptorType):
        try:
            return attribute.__get__(value, kind)
        except AttributeError:
            attribute = CannotBuild
    if attribute is CannotBuild:
        raise CannotBuild(f"{class_name(kind)} whose field {name} is not set")
    if hasattr(type(attribute), "__get__"):
        raise CannotBuild(f"{class_name(kind)} whose field {name} is computed on access")
    return attribute  # a default that stands in the class


def unset_in(value: Any) -> tuple[str, ...]:
    """The fields of a pydantic model that were never set: clients leave them out when they send it on."""
    if not is_model(type(value)):
        return ()
    return tuple(sorted(set(class_fields(type(value)) or ()) - value.__pydantic_fields_set__))


def check_whole(value: Any) -> None:
    """Raises CannotBuild for an object that has more to it than its fields."""
    kind = type(value)
    if is_enum(kind):
        return
    names = class_fields(kind) or ()
    if isinstance(value, tuple):
        if len(value) != len(names):
            raise CannotBuild(f"{class_name(kind)} with items besides its fields")
    elif (other := foreign_base(kind)) is not None:
        raise CannotBuild(f"{class_name(kind)}, which is a {other.__name__} besides its fields")
    if more := more_than(value, names):
        raise CannotBuild(f"{class_name(kind)} with attributes besides its fields ({', '.join(more)})")


def foreign_base(kind: type) -> type | None:
    """A class written in C that it stands on, whose content is in no field."""
    return next((base for base in kind.__mro__ if base is not object and not base.__flags__ & _HEAP), None)


def more_than(value: Any, names: Iterable[str]) -> list[str]:
    """The attributes that an object holds besides these, without its cached properties."""
    kind = type(value)
    held = set(getattr(value, "__dict__", ()))
    if not is_model(kind):  # whose slots hold what we know of
        held |= {name for name in _slots(kind) if hasattr(value, name)}
    kept = getattr(sys.modules.get("functools"), "cached_property", ())
    return sorted(name for name in held - set(names) if not isinstance(getattr(kind, name, None), kept))


def _slots(kind: type) -> Iterator[str]:
    for base in kind.__mro__:
        if base.__flags__ & _HEAP:
            for name, attribute in base.__dict__.items():
                if isinstance(attribute, types.MemberDescriptorType):
                    yield name


def build(kind: Any, parts: Any, unset: Iterable[str] = ()) -> Any:
    """The object again. Raises CannotBuild where the class has other fields by now."""
    if is_enum(kind):
        return kind.__members__[parts] if isinstance(parts, str) else kind(parts)
    names = class_fields(kind) or ()
    free = set(kind.__private_attributes__) if is_model(kind) else set()
    if not isinstance(parts, dict) or not set(names) <= parts.keys():
        raise CannotBuild(f"{class_name(kind)} has different fields now")
    if parts.keys() - free - set(names) and not _takes_more(kind):
        raise CannotBuild(f"{class_name(kind)} has different fields now")
    if issubclass(kind, tuple):
        return tuple.__new__(kind, (parts[name] for name in names))
    # Not through ``__init__``: a ``__post_init__`` would work on values that it has worked on already.
    built = object.__new__(kind)
    if is_model(kind):
        _fill_model(kind, built, parts, set(names) - set(unset))
        return built
    for name, value in parts.items():
        object.__setattr__(built, name, value)
    return built


def _takes_more(kind: Any) -> bool:
    return is_model(kind) and kind.model_config.get("extra") == "allow"


def _fill_model(kind: Any, model: Any, parts: dict[str, Any], was_set: set[str]) -> None:
    """As pydantic does it for a model that was pickled: nothing is validated or worked out again."""
    names, private = class_fields(kind) or (), kind.__private_attributes__
    extra = {name: value for name, value in parts.items() if name not in names and name not in private}
    state = {
        "__dict__": {name: parts[name] for name in names},
        "__pydantic_fields_set__": was_set | extra.keys(),
        "__pydantic_extra__": extra if _takes_more(kind) else None,
        "__pydantic_private__": {name: parts[name] for name in private if name in parts} if private else None,
    }
    for name, value in state.items():
        object.__setattr__(model, name, value)


def is_model(kind: Any) -> bool:
    return hasattr(kind, "__pydantic_fields__") and hasattr(kind, "model_construct")
