"""Bodies of which each repeats the one before: read once, and read as ``json.loads`` reads them."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind.wire.growing_json import GrowingJson, GrownList, read_each, read_runs

LONG = "words of a long message, ä and 𝄞 among them, " * 60


def body(messages: list[Any], **beside: Any) -> bytes:
    return json.dumps({"model": "m", "messages": messages, **beside}, ensure_ascii=False).encode()


def talk(turns: int) -> list[Any]:
    return [{"role": "user", "content": f"{turn} {LONG}"} for turn in range(turns)]


class Reading:
    """Counts how often a message is read."""

    def __init__(self) -> None:
        self.read = 0

    def __call__(self, message: Any) -> str:
        self.read += 1
        return str(message["content"])[:4]


def test_a_message_that_comes_back_is_the_same_object_and_is_read_once() -> None:
    bodies, count = GrowingJson(), Reading()
    documents = [bodies.loads(body(talk(turns), tools=[{"name": "look", "about": LONG}])) for turns in range(1, 30)]
    for document in documents:
        assert len(read_each(count, document["messages"])) == len(document["messages"])
    for before, after in pairwise(documents):
        assert all(old is new for old, new in zip(before["messages"], after["messages"], strict=False))
        assert after["tools"] is before["tools"]


def test_what_was_made_of_known_messages_is_not_made_again() -> None:
    bodies, count = GrowingJson(), Reading()
    for turns in range(1, 30):
        read_each(count, bodies.loads(body(talk(turns)))["messages"])
    assert count.read == 29


def test_a_message_that_was_changed_is_read_again_and_those_before_it_are_not() -> None:
    bodies, count = GrowingJson(), Reading()
    first = talk(10)
    read_each(count, bodies.loads(body(first))["messages"])
    changed = [*first[:8], {"role": "user", "content": "other" + LONG}, first[9], {"role": "user", "content": "more"}]
    document = bodies.loads(body(changed))
    assert document == json.loads(body(changed))
    assert read_each(count, document["messages"])[8] == "othe"
    assert count.read == 10 + 3


def test_the_same_body_gives_the_same_document() -> None:
    bodies = GrowingJson()
    assert bodies.loads(body(talk(5))) is bodies.loads(body(talk(5)))


def test_conversations_side_by_side_do_not_forget_each_other() -> None:
    bodies, count = GrowingJson(), Reading()
    for turns in range(1, 12):
        for name in "abcdefgh":
            messages = [{"role": "user", "content": f"{name} {turn} {LONG}"} for turn in range(turns)]
            document = bodies.loads(body(messages))
            assert document["messages"] == messages
            read_each(count, document["messages"])
    assert count.read == 8 * 11


def test_what_is_remembered_is_bounded() -> None:
    bodies = GrowingJson()
    for number in range(60):
        bodies.loads(body([{"role": "user", "content": f"{number}" + LONG * 100}]))
    known = bodies._known
    assert sum(len(one.body) for one in known) <= 9 * 1024 * 1024


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[1,2",
        b'{"a":1}{',
        b'{"a":[1,]}' + b" " * 3000,
        b'{"a":[,1]}' + b" " * 3000,
        b'{"a":[1 2]}' + b" " * 3000,
        b'{"a":1,}' + b" " * 3000,
        b'{"a" 1}' + b" " * 3000,
        b'{"a":{"b":[1}' + b" " * 3000,
        b'{"a":"' + b"x" * 3000 + b"\xff" + b'"}',
        b"{" + b'"a":{' * 5000 + b"}" * 5000,
        b"[" * 200_000,
    ],
)
def test_damaged_bodies_raise_as_json_raises(text: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        json.loads(text)
    bodies = GrowingJson()
    bodies.loads(body(talk(3)))
    with pytest.raises((ValueError, RecursionError)):
        bodies.loads(text)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_other_encodings_are_read_as_before(encoding: str) -> None:
    whole = body(talk(3)).decode()
    assert GrowingJson().loads(whole.encode(encoding)) == json.loads(whole)


def test_half_a_surrogate_pair_is_read_as_before() -> None:
    whole = ('{"messages": ["' + "x" * 3000 + '\ud800"]}').encode("utf-8", "surrogatepass")
    assert GrowingJson().loads(whole) == json.loads(whole)


def test_runs_of_one_speaker_are_joined_also_where_the_next_body_goes_on_with_the_run() -> None:
    bodies = GrowingJson()
    turns: list[Any] = []
    for speaker in "aabbbabaab":
        turns.append({"who": speaker, "text": LONG})
        found = read_runs(_who, _run, bodies.loads(body(turns))["messages"])
        assert found == read_runs(_who, _run, list(turns))


def _who(turn: Any) -> str:
    return str(turn["who"])


def _run(who: str, turns: list[Any]) -> list[str]:
    return [who * len(turns)] if who == "a" else [who for _ in turns]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["grow", "drop", "change", "number", "front", "wrap", "branch"]),
            VALUES,
            st.integers(0, 20),
            st.booleans(),
        ),
        max_size=12,
    )
)
def test_bodies_are_read_as_json_reads_them(moves: list[tuple[str, Any, int, bool]]) -> None:
    bodies = GrowingJson()
    document: dict[str, Any] = {"model": "m", "messages": [LONG, {"text": LONG}], "tools": [{"about": LONG}]}
    others: list[dict[str, Any]] = [document]
    for move, value, place, is_ascii in moves:
        messages = list(document["messages"])
        match move:
            case "grow":
                messages.append(value)
            case "drop":
                del messages[place:]
            case "change" if messages:
                messages[place % len(messages)] = value
            case "number":
                messages.append(place)
            case "front":
                document = {"id": value, **{name: kept for name, kept in document.items() if name != "id"}}
            case "branch":
                document = others[place % len(others)]
                messages = list(document["messages"])
        document = {**document, "messages": messages}
        others.append(document)
        sent = {"request": document, "user": "u"} if move == "wrap" else document
        for indent in (None, 1 if is_ascii else None):
            text = json.dumps(sent, ensure_ascii=is_ascii, indent=indent).encode("utf-8", "surrogatepass")
            assert bodies.loads(text) == json.loads(text)
            assert repr(bodies.loads(text)) == repr(json.loads(text))


def test_a_name_that_stands_twice_counts_as_json_counts_it() -> None:
    bodies = GrowingJson()
    whole = b'{"messages": [{"a": "' + b"x" * 3000 + b'"}], "n": 1, "messages": [2]}'
    assert bodies.loads(whole) == json.loads(whole) == {"messages": [2], "n": 1}
    assert not isinstance(bodies.loads(whole)["messages"], GrownList)


@pytest.mark.parametrize("item", ['""', "17", "[0.5]", '"ä"'])
def test_a_list_of_very_many_small_items_is_read_like_any_other(item: str) -> None:
    """A mark behind each would take fifty times the bytes of the body, for as long as the process lives."""
    whole = f'{{"input":[{",".join([item] * 50_000)}]}}'.encode()
    document = GrowingJson().loads(whole)
    assert document == json.loads(whole)
    assert type(document["input"]) is list
