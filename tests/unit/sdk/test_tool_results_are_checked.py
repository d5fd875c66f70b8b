"""What a tool returns is read back when it is written: equal to the last zone and sign, or lost and named. No field,
text or comparison of a stranger's class gets through to the tool."""

import collections
import dataclasses
import datetime
import decimal
import enum
import json
import math
import typing
import zoneinfo
from collections.abc import Callable
from typing import Any

import attrs
import pydantic
import pytest

from rewind.sdk.values.objects import KnownClasses, returned_classes
from rewind.sdk.values.serialise import (
    SerialisedValue,
    ValueLost,
    as_json,
    restore,
    same,
    serialise,
    serialise_checked,
    text_of,
)

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


class Number(enum.IntEnum):
    ONE = 1
    SINGLE = 1


class Word(enum.StrEnum):
    YES = "yes"


@dataclasses.dataclass
class Made:
    """With all that is no field, or is none of ``__init__``."""

    x: int
    shared: typing.ClassVar[int] = 3
    given: dataclasses.InitVar[int] = 5
    late: int = dataclasses.field(init=False, default=9)

    def __post_init__(self, given: int) -> None:
        self.x += given


@dataclasses.dataclass(frozen=True, slots=True)
class Tight:
    a: int
    t: tuple[Any, ...] = ()


@dataclasses.dataclass
class Below(Made):
    more: int = 0


@dataclasses.dataclass
class Over(collections.OrderedDict[str, int]):
    a: int = 0

    def __post_init__(self) -> None:
        self["more"] = 1


@dataclasses.dataclass
class Holds:
    value: Any


@dataclasses.dataclass
class NeverEqual:
    a: int

    def __eq__(self, other: object) -> bool:
        return False


@dataclasses.dataclass
class RaisesWhenCompared:
    a: int

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")


@dataclasses.dataclass
class Slotted:
    __slots__ = ("a", "besides")
    a: int


@attrs.define
class Attrs:
    _x: int
    y: list[Any] = attrs.Factory(list)


class Model(pydantic.BaseModel):
    pairs: tuple[tuple[int, ...], ...] = ()
    x: int = pydantic.Field(default=1, alias="y")
    y: Any = pydantic.Field(default=None, alias="x")


class Text(str):
    """A ``str`` and no more."""


class Chatty(str):
    def __str__(self) -> str:
        return "something else"


class Zero(dict[str, int]):
    def __missing__(self, key: str) -> int:
        return 0


class Zone(datetime.tzinfo):
    def utcoffset(self, when: datetime.datetime | None) -> datetime.timedelta:
        return datetime.timedelta(hours=1)

    def dst(self, when: datetime.datetime | None) -> None:
        return None

    def tzname(self, when: datetime.datetime | None) -> None:
        return None


class Pair(typing.NamedTuple):
    a: int


class WiderPair(Pair):
    pass


def known_by() -> "Number | Word | Made | Tight | Over | Holds | Slotted | Attrs | Model | WiderPair": ...


def compared() -> NeverEqual | RaisesWhenCompared: ...


KNOWN = returned_classes(known_by)
COMPARED = returned_classes(compared)


def there_and_back(value: Any, known: KnownClasses = KNOWN) -> Any:
    written = serialise_checked(value, known)
    assert written.lost is None, written.lost
    kept = json.loads(as_json({"result": written.plain, "types": dict(written.types)}))
    return restore(SerialisedValue(plain=kept["result"], types=kept["types"]), known)


@pytest.mark.parametrize(
    "value",
    [
        datetime.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1),
        datetime.datetime(2024, 7, 1, 2, 30, tzinfo=BERLIN),
        datetime.datetime(2024, 7, 1, fold=1),
        datetime.time(2, 30, tzinfo=BERLIN),
        datetime.datetime(2024, 7, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2), "a) fold=1")),
        datetime.datetime(2024, 7, 1, tzinfo=datetime.UTC),
        decimal.Decimal("1.00"),
        decimal.Decimal("sNaN"),
        -0.0,
        math.nan,
        [True, 1, 1.0],
        {"b": 1, "a": 2},
        collections.defaultdict(list, {"a": [(1,)]}),
        collections.defaultdict(None, {1: 2}),
        Number.SINGLE,
        [Word.YES, {Word.YES: Number.ONE}],
        Made(1),
        Tight(1, ((1,), [{2}])),
        Holds(math.nan),
        Attrs(1, [(1,)]),
        Model(y=3, x={"a": (1, {2})}, pairs=((1,), (2, 3))),
    ],
    ids=text_of,
)
def test_a_value_comes_back_the_same_in_every_respect(value: Any) -> None:
    back = there_and_back(value)
    assert same(value, back, KNOWN)
    assert repr(back) == repr(value)


def wide() -> WiderPair:
    pair = WiderPair(1)
    pair.more = 3  # type: ignore[attr-defined]
    return pair


def slotted() -> Slotted:
    value = Slotted(1)
    value.besides = 2  # type: ignore[attr-defined]
    return value


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (Over(a=5), "which is a OrderedDict besides its fields"),
        (Below(1), "annotation does not name that class"),
        (slotted(), "attributes besides its fields (besides)"),
        (wide(), "attributes besides its fields (more)"),
        (datetime.datetime(2024, 7, 1, tzinfo=Zone()), "zone of the type"),
        (Text("x"), "Text"),
    ],
    ids=["over a dict", "subclass", "slots", "named tuple", "zone", "text"],
)
def test_what_would_come_back_as_something_else_is_lost_when_it_is_written(value: Any, why: str) -> None:
    assert why in (serialise_checked(value, KNOWN).lost or "nothing is lost")


def test_a_class_is_asked_whether_its_objects_are_equal() -> None:
    assert "does not come back equal" in (serialise_checked([NeverEqual(1)], COMPARED).lost or "")
    assert "cannot be compared (RuntimeError)" in (serialise_checked(RaisesWhenCompared(1), COMPARED).lost or "")


def test_the_check_finds_what_the_rules_do_not_know_of() -> None:
    """Two classes of one name: the annotation leads to both, and the name to one of them."""

    def made(value: int) -> Any:
        return dataclasses.make_dataclass("Twin", [("a", int, value)])

    one, other = made(1), made(2)
    lost = [serialise_checked(kind(), KnownClasses([one, other])).lost for kind in (one, other)]
    assert sum(why is not None and "does not come back equal" in why for why in lost) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, -0.0),
        (1, 1.0),
        (1, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (decimal.Decimal("1.0"), decimal.Decimal("1.00")),
        (
            datetime.datetime(2024, 7, 1, 2, tzinfo=BERLIN),
            datetime.datetime(2024, 7, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
        ),
        ((1,), [1]),
        (collections.defaultdict(list), collections.defaultdict(dict)),
        (Made(1), Made(2)),
    ],
    ids=text_of,
)
def test_what_is_not_the_same(one: Any, other: Any) -> None:
    assert not same(one, other, KNOWN)


def test_a_plain_type_that_the_annotation_promises_stands_for_its_subclass_and_that_is_said() -> None:
    def told() -> str | dict[str, int]: ...

    known = returned_classes(told)
    written = serialise_checked(Text("x"), known)
    assert (written.plain, written.types) == ("x", {})
    assert written.plainer == (f"{__name__}.Text as str",)
    assert there_and_back(Chatty("content"), known) == "content"
    assert serialise_checked(Zero(a=1), known).lost is not None, "a dict would raise where this gives 0"
    more = Text("x")
    more.besides = 1  # type: ignore[attr-defined]
    assert serialise_checked(more, known).lost is not None


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        (
            SerialisedValue(plain={"value": 1, "other": 2}, types={"": f"object: {__name__}.Holds"}),
            "different fields now",
        ),
        (SerialisedValue(plain={}, types={"": f"object: {__name__}.Holds"}), "different fields now"),
        (SerialisedValue(plain={"value": 1}, types={"": "object: elsewhere.Holds"}), "does not name that class"),
        (SerialisedValue(plain={"value": 1}, types={"": "object: __main__.Inner.Holds"}), "does not name"),
        (SerialisedValue(plain="2024-07-01T00:00:00+02:00[Nowhere/Atall]", types={"": "datetime"}), "Nowhere"),
        (SerialisedValue(plain="2024-07-01T00:00:00+02:00[../../etc/passwd]", types={"": "datetime"}), "datetime"),
        (SerialisedValue(plain="2024-07-01T00:00:00+07:00[Europe/Berlin]", types={"": "datetime"}), "rules differ"),
    ],
    ids=["more fields", "fewer fields", "module", "inner class", "zone", "path", "rules"],
)
def test_a_recording_that_fits_no_more_is_refused(kept: SerialisedValue, why: str) -> None:
    with pytest.raises(ValueLost, match=why):
        restore(kept, KNOWN)


class Lazy:
    """As an ORM's relation: asking for it is a query, which fails."""

    asked = 0

    def __get__(self, row: object, kind: type) -> Any:
        if row is None:
            return self
        Lazy.asked += 1
        raise RuntimeError("not in a session any more")

    def __set__(self, row: object, value: Any) -> None: ...


@dataclasses.dataclass
class Row:
    number: int
    relation: Any = Lazy()


class Sullen:
    def __repr__(self) -> str:
        raise RuntimeError("no text")

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise RuntimeError("no class")

    def __hash__(self) -> int:
        return 1


def test_a_field_that_would_be_asked_of_a_database_is_not_asked() -> None:
    Lazy.asked = 0
    written = serialise_checked({"row": Row(1, None), "kept": (1,)}, KnownClasses([Row]))
    assert "computed on access" in (written.lost or "")
    assert written.plain["kept"] == [1], "what is beside it is shown"
    assert Lazy.asked <= 1, "by the class's own repr at most"


@pytest.mark.parametrize(
    "make",
    [
        Sullen,
        lambda: [Sullen()],
        lambda: {Sullen(), 1},
        lambda: {Sullen(): 1},
        lambda: Row(1, None),
        lambda: Holds(Sullen()),
    ],
    ids=["itself", "list", "set", "key", "row", "field"],
)
@pytest.mark.parametrize("known", [None, KnownClasses(), KnownClasses([Row, Holds])], ids=["asked", "plain", "known"])
def test_nothing_that_a_value_does_gets_through(make: Callable[[], Any], known: KnownClasses | None) -> None:
    assert serialise(make(), known).lost is not None


def test_an_annotation_that_leads_to_itself_ends() -> None:
    class Alias:
        """As ``type Json = dict[str, Json]`` is, of Python 3.12."""

        __value__: Any

    alias: Any = Alias()
    alias.__value__ = dict[str, alias]

    def told() -> None: ...

    told.__annotations__["return"] = alias
    assert dict in returned_classes(told)
