"""A Python value as JSON that people can read, with beside it what JSON cannot say, so that it comes back equal.

The result of a tool is kept as two things: the value in plain JSON, which is what views show, and ``types``, which
names by JSON pointer (RFC 6901) the places where it is something else: ``{"/0": "Decimal"}``. A value that is JSON
already has no ``types`` at all. What cannot be brought back is kept as text and named as lost, so that a replay
refuses to give it rather than give something else.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from rewind.dataclass import dataclass
from rewind.sdk.values import objects
from rewind.sdk.values.objects import CannotBuild, KnownClasses, class_name
from rewind.sdk.values.standard_types import in_one_order, standard_type, standard_type_named

LOST = "lost: "
"""How the type of a place begins whose value is kept as text only."""
_OBJECT = "object: "
_UNSET = " unset: "
_SHOWN = 2000
"""The longest text, in characters, that stands for a value which is not JSON."""
_DEEPEST = 200
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_MODEST_INT = 10_000
"""Bits up to which a number is written in decimal; Python refuses to read much longer ones."""
_PLAIN: Mapping[type, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    str: str.__str__,
    dict: lambda value: dict(dict.items(value)),
    list: lambda value: list(list.__iter__(value)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    set: lambda value: set(set.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
    bytes: lambda value: bytes(memoryview(value)),
}
"""What a value of a subclass holds as one of the plain type, past whatever the subclass says of itself."""


class ValueLost(Exception):
    """A written value that cannot be given back, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SerialisedValue:
    """A value as it is kept."""

    plain: Any
    """JSON, for views and for comparing."""
    types: Mapping[str, str] = field(default_factory=dict)
    """JSON pointer → what stands there, where JSON does not say it itself."""
    plainer: tuple[str, ...] = field(default=(), compare=False)
    """Values of a subclass that were written as the plain type that the annotation promises, in words."""
    vague: tuple[str, ...] = field(default=(), compare=False)
    """The classes of what is only text that does not tell two of them apart."""

    @property
    def lost(self) -> str | None:
        """The first part that cannot be given back, in words."""
        return next((_told(at, form) for at, form in self.types.items() if form.startswith(LOST)), None)


def serialise(value: Any, known: KnownClasses | None = None) -> SerialisedValue:
    """The value as it is kept. ``known`` are the classes whose objects can be given back; ``None``: all of them, and
    of a class only its own name counts. Raises nothing: what cannot be read is lost, and named as that."""
    writer = _Writer(known)
    try:
        plain = writer.plain(value)
    except RecursionError:
        return SerialisedValue(plain=text_of(value), types={"": LOST + "too deep"})
    except Exception as error:  # noqa: BLE001  it is a stranger's
        return SerialisedValue(plain="", types={"": f"{LOST}value that cannot be read ({type(error).__name__})"})
    return SerialisedValue(
        plain=plain, types=dict(sorted(writer.types.items())), plainer=tuple(writer.plainer), vague=tuple(writer.vague)
    )


def plain_content(value: Any, base: type) -> Any:
    """What it holds, as the plain type that its class stands on."""
    return _PLAIN[base](value)


def annotated_plain_type(value: Any, known: KnownClasses | None) -> type | None:
    """The plain type that can stand for this value of a subclass: the annotation names it, and it has no more."""
    base = _plain_base(type(value))
    if base is None or known is None:
        return base
    return base if base in known and not objects.more_than(value, ()) and not hasattr(value, "__missing__") else None


def _plain_base(kind: type) -> type | None:
    return next((plain for plain in _PLAIN if issubclass(kind, plain)), None)


def restore(written: SerialisedValue, known: KnownClasses) -> Any:
    """The value again. Raises ValueLost rather than give something else."""
    # From the inside out: whoever holds a part is still plain JSON when the part is put in its place.
    root = [written.plain]
    for at in sorted(written.types, key=lambda at: at.count("/"), reverse=True):
        holder, place = _holder(root, at)
        holder[place] = _built(at, written.types[at], holder[place], known)
    return root[0]


def as_json(value: Any) -> bytes:
    """JSON as people like to read it; half a surrogate pair is escaped instead."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False).encode()


def text_of(value: Any) -> str:
    """What a value calls itself, less the address at which it happens to be."""
    return _text(value)[0]


def _text(value: Any) -> tuple[str, bool]:
    """The text, and whether another object of its class would have another one."""
    try:
        said = repr(value)
        text = _ADDRESS.sub("", said)
        telling = text == said
    except RecursionError:
        text, telling = "<too deep>", False
    except Exception as error:  # noqa: BLE001  a stranger's repr may do anything
        text, telling = f"<{class_name(type(value))}: {type(error).__name__} instead of a text>", False
    if len(text) > _SHOWN:
        from hashlib import sha256

        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        text = f"{text[:_SHOWN]}… ({len(text)} characters, sha256:{digest})"
    return text, telling


class _Writer:
    """Takes one value apart, and notes on the way what JSON cannot say."""

    def __init__(self, known: KnownClasses | None) -> None:
        self.types: dict[str, str] = {}
        self.plainer: dict[str, None] = {}
        self.vague: dict[str, None] = {}
        self._known = known
        self._path: list[str] = []
        self._around: list[int] = []
        """The containers around the part that is being written."""

    def plain(self, value: Any) -> Any:
        kind = type(value)
        if kind is str or value is None or kind is bool:
            return value
        if kind is int and value.bit_length() <= _MODEST_INT:
            return value
        if kind is float and value - value == 0:  # neither infinite nor nan
            return value
        return self._inside(value, kind)

    def _inside(self, value: Any, kind: type) -> Any:
        if id(value) in self._around:
            return self._lose(value, "a part of itself")
        if len(self._around) > _DEEPEST:
            return self._lose(value, "too deep")
        self._around.append(id(value))
        try:
            return self._taken_apart(value, kind)
        except RecursionError:
            raise
        except CannotBuild as why:
            return self._lose(value, str(why))
        except Exception as error:  # noqa: BLE001  a stranger's code runs here: fields, equality, iteration
            return self._lose(value, f"{class_name(kind)} that cannot be read ({type(error).__name__})")
        finally:
            self._around.pop()

    def _taken_apart(self, value: Any, kind: type) -> Any:
        if kind is list:
            return [self._at(str(number), entry) for number, entry in enumerate(list(value))]
        if kind is dict:
            pairs = list(value.items())  # at once: another thread may be writing to it
            if all(type(key) is str for key, _ in pairs):
                return {key: self._at(_place(key), entry) for key, entry in pairs}
        if (form := standard_type(kind)) is not None:
            parts = form.parts(value)
            self._note(form.name)
            return self.plain(parts)
        if objects.is_object(kind):
            return self._object(value, kind)
        if (base := annotated_plain_type(value, self._known)) is not None:
            if self._known is not None:
                self.plainer[f"{class_name(kind)} as {base.__name__}"] = None
            return self.plain(plain_content(value, base))
        return self._lose(value, self._name(kind))

    def _at(self, place: str, value: Any) -> Any:
        self._path.append(place)
        try:
            return self.plain(value)
        finally:
            self._path.pop()

    def _object(self, value: Any, kind: type) -> Any:
        parts = objects.parts_of(value)
        if self._known is None:
            return self._as_asked(value, kind, parts)
        objects.check_whole(value)
        if kind not in self._known:
            self._note(f"{LOST}{class_name(kind)}, and {self._known.trouble}")
            # Shown with its fields all the same; of what type they are does not matter any more.
            return _Writer(None).plain(parts)
        unset = ",".join(objects.unset_in(value))
        self._note(_OBJECT + class_name(kind) + (_UNSET + unset if unset else ""))
        return self.plain(parts)

    def _as_asked(self, value: Any, kind: type, parts: Any) -> Any:
        """For arguments: never given back, only compared, also by what it holds besides its fields."""
        self._note(_OBJECT + self._name(kind))
        base = _plain_base(kind)
        if base is None or objects.is_enum(kind) or base is tuple:
            return self.plain(parts)
        return self.plain({"fields": parts, "content": plain_content(value, base)})

    def _name(self, kind: type) -> str:
        # Of what is asked, without its module: that is another one where a program becomes a module.
        return class_name(kind) if self._known is not None else kind.__qualname__

    def _lose(self, value: Any, why: str) -> str:
        here = self._here()
        for below in [at for at in self.types if at.startswith(here + "/")]:
            del self.types[below]
        self._note(LOST + why)
        text, telling = _text(value)
        if not telling:
            self.vague[type(value).__qualname__] = None
        return text

    def _note(self, form: str) -> None:
        self.types[self._here()] = form

    def _here(self) -> str:
        return "".join(f"/{place}" for place in self._path)


def _place(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _holder(root: list[Any], at: str) -> tuple[Any, Any]:
    """What holds the place that a pointer names, and under which key."""
    holder: Any = root
    place: Any = 0
    try:
        for step in at.split("/")[1:]:
            holder = holder[place]
            place = int(step) if isinstance(holder, list) else step.replace("~1", "/").replace("~0", "~")
        holder[place]
    except (LookupError, TypeError, ValueError):
        raise ValueLost(f"{_where(at)} is not there any more") from None
    return holder, place


def _built(at: str, form: str, parts: Any, known: KnownClasses) -> Any:
    if form.startswith(LOST):
        raise ValueLost(_told(at, form))
    try:
        if form.startswith(_OBJECT):
            name, _, unset = form.removeprefix(_OBJECT).partition(_UNSET)
            if (kind := known.of(name)) is None:
                raise ValueLost(f"{_where(at)} is a {name}, and {known.trouble}")
            return objects.build(kind, parts, unset.split(",") if unset else ())
        if (known_type := standard_type_named(form)) is None:
            raise ValueLost(f"{_where(at)} is a {form!r}, which this version of Rewind does not know")
        return known_type.build(parts)
    except ValueLost:
        raise
    except CannotBuild as why:
        raise ValueLost(f"{_where(at)} is a {why}") from None
    except Exception as error:
        raise ValueLost(f"{_where(at)} cannot be built as {form}: {type(error).__name__}: {error}") from error


def _told(at: str, form: str) -> str:
    return f"{_where(at)} is a {form.removeprefix(LOST)}: kept as text only"


def _where(at: str) -> str:
    return f"the result's {at}" if at else "the result"


# ── what is written is read back at once ─────────────────────────────────────────────────────────────────────

_ASKED = 1_000_000
"""Bytes of JSON up to which a class is asked whether two objects are equal; its answer may cost anything."""
_BY_REPR = (float, complex, range, bytearray)
_IN_ORDER = (list, tuple)
_PAIRS = ("dict", "OrderedDict", "Counter", "defaultdict")


def serialise_checked(value: Any, known: KnownClasses) -> SerialisedValue:
    """As ``serialise``; what would not come back equal is lost. Raises nothing."""
    written = serialise(value, known)
    if written.lost is not None or not (written.types or written.plainer):
        return written  # what is plain JSON cannot come back as anything else
    try:
        kept = as_json(written.plain)
        back = restore(SerialisedValue(plain=json.loads(kept), types=written.types), known)
        equal = same(value, back, known, ask=len(kept) <= _ASKED)
        why = "that does not come back equal"
    except ValueLost as lost:
        equal, why = False, f"that cannot be given back ({lost})"
    except Exception as error:  # noqa: BLE001  a stranger's equality may do anything
        equal, why = False, f"that cannot be compared ({type(error).__name__})"
    if equal:
        return written
    return SerialisedValue(plain=written.plain, types={"": f"{LOST}{class_name(type(value))} {why}"})


def same(value: Any, back: Any, known: KnownClasses, *, ask: bool = True) -> bool:
    """Whether one can stand for the other. Raises whatever a stranger's ``__eq__`` raises."""
    comparison = _Comparison(known)
    if not comparison.same(value, back, ask=ask):
        return False
    # NaN is not equal to itself, so the ``__eq__`` of a class that holds one says nothing.
    return comparison.not_a_number or not comparison.said_no


class _Comparison:
    def __init__(self, known: KnownClasses) -> None:
        self._known = known
        self.not_a_number = False
        self.said_no = False
        """A class says that they are not equal."""

    def same(self, value: Any, back: Any, *, ask: bool) -> bool:
        kind = type(back)
        if type(value) is not kind:
            if annotated_plain_type(value, self._known) is not kind:
                return False
            self._ask(value, back, ask)
            value = plain_content(value, kind)
        if kind in _BY_REPR:
            self.not_a_number |= back != back
            return repr(value) == repr(back)
        if kind in _IN_ORDER:
            return self._all(value, back, ask)
        if kind in (set, frozenset):
            return self._all(in_one_order(value), in_one_order(back), ask)
        form = standard_type(kind)
        if form is not None and form.name in _PAIRS:
            default = getattr(value, "default_factory", None) is getattr(back, "default_factory", None)
            return default and self._all(list(value.items()), list(back.items()), ask)
        if form is not None and kind not in (int, bytes):
            self.not_a_number |= form.name == "Decimal" and back.is_nan()
            return repr(value) == repr(back)
        if objects.is_enum(kind):
            return value is back
        if objects.class_fields(kind) is not None:
            return self._objects(value, back, ask)
        return bool(value == back)

    def _all(self, values: Any, others: Any, ask: bool) -> bool:
        if len(values) != len(others):
            return False
        pairs = zip(values, others, strict=True)
        return all(self.same(value, back, ask=ask) for value, back in pairs)

    def _objects(self, value: Any, back: Any, ask: bool) -> bool:
        self._ask(value, back, ask)
        # Once: asked again for each part, a deep object would be compared over and over.
        return objects.unset_in(value) == objects.unset_in(back) and self.same(
            objects.parts_of(value), objects.parts_of(back), ask=False
        )

    def _ask(self, value: Any, back: Any, ask: bool) -> None:
        says: Any = type(value).__eq__
        if ask and says is not object.__eq__ and not value == back:  # noqa: SIM201
            self.said_no = True
