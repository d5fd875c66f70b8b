"""``@dataclass`` as in the standard library, with methods that are made when they are first needed.

The standard library writes and compiles six methods for each class while its module is imported: a millisecond for a
class that most commands never make one of. Here it finds the fields, and no more; ``__init__`` is compiled by its first
call, and the other methods are written once for all classes. Type checkers see the standard library's decorator.
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> type | Callable[[type], type]:
        """Takes ``eq``, ``frozen``, ``kw_only`` and ``slots``, with the meaning that they have everywhere."""
        return (lambda decorated: _made(decorated, **options)) if cls is None else _made(cls, **options)


_FROM_FACTORY = object()
"""The default, in a signature, of a field whose value is made anew each time."""


def _made(cls: type, *, eq: bool = True, frozen: bool = False, kw_only: bool = False, slots: bool = False) -> type:
    own = dict(cls.__dict__)
    made: type = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only, slots=slots)(cls)
    methods: dict[str, object] = {"__init__": _init_at_first_use(made, frozen), "__repr__": _repr}
    if eq:
        methods["__eq__"] = _eq
        if own.get("__hash__") is None:  # Python itself writes that None beside an ``__eq__`` of the class
            own.pop("__hash__", None)
            methods["__hash__"] = _hash if frozen else None
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        methods |= {"__getstate__": _state, "__setstate__": _set_state} if slots else {}
    for name in methods.keys() - own.keys():
        setattr(made, name, methods[name])
    return made


# ── __init__, compiled ───────────────────────────────────────────────────────────────────────────────────────


def _init_at_first_use(cls: Any, frozen: bool) -> Callable[..., None]:
    def __init__(self: object, *positional: object, **named: object) -> None:  # noqa: N807
        made = _init(cls, frozen)
        cls.__init__ = made
        made(self, *positional, **named)

    return __init__


def _init(cls: Any, frozen: bool) -> Callable[..., None]:
    """The ``__init__`` of a class, as quick as one written by hand."""
    scope: dict[str, Any] = {"_from_factory": _FROM_FACTORY, "_set": object.__setattr__}
    positional, by_name, body = ["self"], ["*"], []
    for field in dataclasses.fields(cls):
        name = value = parameter = field.name
        if field.default is not dataclasses.MISSING:
            scope[f"_default_{name}"] = field.default
            parameter, value = f"{name}=_default_{name}", name if field.init else f"_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            scope[f"_make_{name}"] = field.default_factory
            parameter = f"{name}=_from_factory"
            value = f"_make_{name}()" + (f" if {name} is _from_factory else {name}" if field.init else "")
        elif not field.init:
            continue  # for ``__post_init__`` to set
        if field.init:
            (by_name if field.kw_only else positional).append(parameter)
        if not frozen:
            body.append(f" self.{name} = {value}")
        elif isinstance(slot := getattr(cls, name, None), MemberDescriptorType):
            scope[f"_set_{name}"] = slot.__set__  # faster than by name
            body.append(f" _set_{name}(self, {value})")
        else:
            body.append(f" _set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    parameters = ", ".join(positional + (by_name if len(by_name) > 1 else []))
    exec(f"def __init__({parameters}):\n" + "\n".join(body or [" pass"]), scope)  # noqa: S102 - of our own names only
    made: Callable[..., None] = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


# ── the other methods, the same for all classes ──────────────────────────────────────────────────────────────

_GETTERS: dict[type, Callable[[object], object]] = {}
"""For each class that was compared or hashed: takes the values of its fields out of an instance."""


def _values(value: Any) -> object:
    cls = value.__class__
    getter = _GETTERS.get(cls)
    if getter is None:
        names = [field.name for field in dataclasses.fields(cls) if field.compare]
        # The first name twice: a getter of a single one gives no tuple.
        getter = _GETTERS[cls] = attrgetter(*names, names[0]) if names else lambda _value: ()
    return getter(value)


def _eq(self: object, other: object) -> bool:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: object) -> int:
    return hash(_values(self))


def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_to_set(_self: object, name: str, _value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    """For copies and pickles, which would set the attributes one by one."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
