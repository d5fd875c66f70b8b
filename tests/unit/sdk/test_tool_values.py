"""What a tool returns, written as JSON and read back: equal, or refused."""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import json
import math
import pathlib
import typing
import uuid
from collections.abc import Iterator
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind.sdk.values.objects import KnownClasses, returned_classes
from rewind.sdk.values.serialise import SerialisedValue, ValueLost, as_json, restore, serialise, text_of


class Colour(enum.Enum):
    RED = (1, 2)


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    name: str
    below: "list[Node] | None" = None


@dataclasses.dataclass
class Doubled:
    """Whose making changes what it is made from."""

    amount: int
    shown: str = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.amount *= 2
        self.shown = f"<{self.amount}>"


@dataclasses.dataclass(eq=False)
class Laden:
    name: str

    @functools.cached_property
    def length(self) -> int:
        return len(self.name)


class Point(typing.NamedTuple):
    x: int
    colour: Colour


class Order(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    number: int
    price: decimal.Decimal | None = None
    node: Node | None = None
    _seen: int = pydantic.PrivateAttr(default=0)


class Page(typing.TypedDict):
    orders: list[Order]


def everything() -> "dict[str, Page] | list[Doubled | Point | Rights | Laden] | str": ...


KNOWN = returned_classes(everything)


def there_and_back(value: Any, known: KnownClasses = KNOWN) -> Any:
    written = serialise(value, known)
    kept = json.loads(as_json({"result": written.plain, "types": dict(written.types)}))
    return restore(SerialisedValue(plain=kept["result"], types=kept["types"]), known)


@pytest.mark.parametrize(
    "value",
    [
        (1, ("two", [3.0])),
        {1: "one", (2, 3): {"a/b~c": {4}}, None: b"\xff"},
        pytest.param({frozenset({1, 2}), "x", (3,)}, id="a set of several kinds"),  # in no order of its own
        bytearray(b"abc"),
        -math.inf,
        10**5000,
        1 + 2j,
        range(1, 9, 2),
        datetime.datetime(2026, 11, 16, 9, 14, 3, 250, tzinfo=datetime.UTC),
        datetime.datetime(2026, 11, 16),
        datetime.date(2026, 11, 16),
        datetime.time(9, 14),
        datetime.timedelta(days=-1, microseconds=3),
        decimal.Decimal("12.50"),
        fractions.Fraction(1, 3),
        uuid.UUID(int=7),
        pathlib.Path("/somewhere/else"),
        pathlib.PureWindowsPath(r"c:\here"),
        collections.OrderedDict(b=1, a=2),
        collections.Counter("banana"),
        Node("a", [Node("b")]),
        Doubled(2),
        Point(1, Colour.RED),
        Colour.RED,
        Rights.READ | Rights.WRITE,
        [
            Order(number=1, node=Node("x"), more=("kept",)),  # type: ignore[call-arg]
            Order(number=2, price=decimal.Decimal("1.0")),
        ],
        {"types": {"/0": "tuple"}, "result": None},
        "\ud800",
    ],
    ids=text_of,
)
def test_a_value_comes_back_equal_and_of_its_own_type(value: Any) -> None:
    back = there_and_back(value)
    assert back == value
    assert type(back) is type(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_what_is_json_already_is_kept_as_it_is(value: Any) -> None:
    assert serialise(value, KnownClasses()) == SerialisedValue(plain=value, types={})


KEYS = st.text(max_size=3) | st.integers() | st.tuples(st.integers(), st.binary(max_size=3))
ANYTHING = st.recursive(
    st.none()
    | st.text(max_size=5)
    | st.integers()
    | st.floats(allow_nan=False)
    | st.binary(max_size=8)
    | st.decimals(allow_nan=False)
    | st.datetimes()
    | st.timedeltas()
    | st.uuids()
    | st.frozensets(KEYS, max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=12,
)


@given(ANYTHING)
def test_any_mixture_of_known_types_comes_back(value: Any) -> None:
    assert there_and_back(value, KnownClasses()) == value


def test_a_model_keeps_what_was_set_and_what_is_private() -> None:
    order = Order(number=1)
    order._seen = 3
    back = there_and_back({"page": {"orders": [order]}})["page"]["orders"][0]
    assert back.model_dump(exclude_unset=True) == {"number": 1}
    assert (back, back._seen) == (order, 3)


def test_a_model_of_an_sdk_comes_back() -> None:
    from openai.types.chat import ChatCompletionMessage

    def ask() -> ChatCompletionMessage: ...

    said = ChatCompletionMessage.model_validate({"role": "assistant", "content": "Hello."})
    back = there_and_back(said, returned_classes(ask))
    assert back == said
    assert back.to_dict() == {"role": "assistant", "content": "Hello."}


@pytest.mark.parametrize(
    ("value", "where", "why"),
    [
        (object(), "", "builtins.object"),
        ([1, {"deep": print}], "/1/deep", "builtins.builtin_function_or_method"),
        (fractions.Fraction(1, 2).limit_denominator, "", "builtins.method"),
        (Node("a"), "", "return annotation does not name that class"),
        (collections.defaultdict(lambda: 1), "", "collections.defaultdict"),
    ],
    ids=["object", "inside", "method", "class", "defaultdict"],
)
def test_what_cannot_come_back_is_text_and_a_replay_refuses_it(value: Any, where: str, why: str) -> None:
    written = serialise(value, KnownClasses())
    assert written.lost is not None
    assert why in written.lost
    place = f"the result's {where}" if where else "the result"
    with pytest.raises(ValueLost, match=f"^{place} is a "):
        restore(written, KnownClasses())


def test_an_object_that_cannot_come_back_still_shows_its_fields() -> None:
    assert serialise(Node("a", [Node("b")]), KnownClasses()).plain == {
        "name": "a",
        "below": [{"name": "b", "below": None}],
    }


def test_what_was_put_on_an_object_besides_its_fields_is_not_dropped_in_silence() -> None:
    laden = Laden("abc")
    assert laden.length == 3
    assert there_and_back(laden).name == "abc"
    laden.more = 1  # type: ignore[attr-defined]
    assert "besides its fields (more)" in (serialise(laden, KNOWN).lost or "")


def test_a_value_inside_itself_and_one_without_end_are_lost_not_followed() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    assert "a part of itself" in (serialise(ring).lost or "")
    deep: list[Any] = []
    for _level in range(5000):
        deep = [deep]
    assert "too deep" in (serialise(deep).lost or "")


def test_two_places_may_hold_the_same_thing() -> None:
    shared = {"a": 1}
    assert there_and_back([shared, shared]) == [shared, shared]


def test_a_plain_type_in_the_annotation_makes_a_subclass_plain() -> None:
    class Metres(float):
        pass

    def height() -> float: ...

    assert serialise(Metres(2.5), returned_classes(height)) == SerialisedValue(plain=2.5, types={})
    assert serialise(Metres(2.5), KnownClasses()).lost is not None


def test_the_order_of_a_set_is_the_same_in_every_run() -> None:
    assert serialise({"b", "a", "c", 2, 10}).plain == serialise({10, "c", 2, "a", "b"}).plain


@pytest.mark.parametrize(
    "kept",
    [
        SerialisedValue(plain=[1], types={"/4": "tuple"}),
        SerialisedValue(plain={"a": 1}, types={"/a/b": "tuple"}),
        SerialisedValue(plain="x", types={"": "spaceship"}),
        SerialisedValue(plain="x", types={"": "bytes"}),
        SerialisedValue(plain="x", types={"": "object: os.system"}),
        SerialisedValue(plain={"a": 1}, types={"": "object: subprocess.Popen"}),
        SerialisedValue(plain=[1], types={"/x": "tuple"}),
    ],
)
def test_a_damaged_or_foreign_record_is_refused(kept: SerialisedValue) -> None:
    with pytest.raises(ValueLost):
        restore(kept, KNOWN)


def test_an_annotation_that_cannot_be_read_says_so() -> None:
    def lookup() -> "Nowhere": ...  # type: ignore[name-defined]  # noqa: F821

    known = returned_classes(lookup)
    assert "Nowhere" in known.trouble
    assert "Nowhere" in (serialise(Node("a"), known).lost or "")


def test_annotations_are_followed_through_iterators_and_optionals() -> None:
    def stream() -> Iterator[Node | None]: ...

    assert Node in returned_classes(stream)


def test_a_script_that_becomes_a_module_keeps_its_classes() -> None:
    written = serialise(Node("a"), KNOWN)
    moved = SerialisedValue(plain=written.plain, types={"": "object: __main__.Node"})
    assert restore(moved, KNOWN) == Node("a")


def test_addresses_are_no_part_of_a_text() -> None:
    assert text_of(object()) == text_of(object())


def test_a_repr_that_fails_is_no_failure_of_the_tool() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert "RuntimeError instead of a text" in text_of(Silent())
