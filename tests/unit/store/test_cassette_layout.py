"""How a cassette is laid out, and that nothing is shown twice."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from rewind.errors import BadCassette
from rewind.store.cassette.json_text import WIDTH, lines_of, pieces_of, visible
from rewind.store.cassette.references import Addressed, Layout, References
from rewind.store.cassette.seal import MemoryBudget
from support.effort import in_short
from unit.store.making import GrowingAgent, words
from unit.store.taping import Taped, assert_comes_back, steps_in, taped

PROMPT = (
    "You are the support agent of a small bookshop. Be kind. Never promise what you cannot keep! Is it late? Say so.\n"
    "\n"
    "Refunds are given within 30 days.\n"
)


def laid_out(*values: Any) -> str:
    """One record each, named r1, r2 and so on."""
    layout = Layout()
    for number, value in enumerate(values, 1):
        layout.add({"value": Addressed(f"r{number}", value)})
    return layout.text()


def read_back(text: str) -> list[Any]:
    references, decoder, found, at = References(MemoryBudget(light=True)), json.JSONDecoder(), [], 0
    while at < len(text):
        record, end = decoder.raw_decode(text, at)
        value = references.restored(record, 10**9)["value"]
        found.append(value)
        references.name(f"r{len(found)}", value)
        at = end + 1
    return found


def test_what_fits_on_a_line_stays_on_it_and_the_rest_is_broken_by_members() -> None:
    value = {"short": {"a": [1, 2.5, True, None, "é"]}, "long": ["x" * 60, "y" * 60]}
    assert laid_out(value) == (
        "{\n"
        '  "value": {\n'
        '    "short": {"a": [1, 2.5, true, null, "é"]},\n'
        '    "long": [\n'
        f'      "{"x" * 60}",\n'
        f'      "{"y" * 60}"\n'
        "    ]\n"
        "  }\n"
        "}\n"
    )


def test_a_long_text_is_shown_by_its_lines_and_long_lines_by_their_sentences() -> None:
    assert laid_out({"system": PROMPT}) == (
        "{\n"
        '  "value": {\n'
        '    "system": {"@lines": [\n'
        '      "You are the support agent of a small bookshop. ",\n'
        '      "Be kind. ",\n'
        '      "Never promise what you cannot keep! ",\n'
        '      "Is it late? ",\n'
        '      "Say so.\\n",\n'
        '      "\\n",\n'
        '      "Refunds are given within 30 days.\\n"\n'
        "    ]}\n"
        "  }\n"
        "}\n"
    )


def test_numbers_fill_their_lines() -> None:
    text = laid_out([number / 7 for number in range(100)])
    assert len(text.splitlines()) < 25
    assert all(len(line) <= WIDTH + 8 for line in text.splitlines())
    assert read_back(text) == [[number / 7 for number in range(100)]]


def test_what_was_shown_is_shown_by_its_address() -> None:
    first = {"system": PROMPT, "a/b~c": ["z" * 120], "n": 1}
    second = {"n": 1, "again": [PROMPT, "z" * 120], "system": PROMPT, "all": first}
    text = laid_out(first, second)
    assert text.count("Refunds") == 1
    assert '"system": {"@same": "r1 /system"}' in text
    assert '{"@same": "r1 /a~1b~0c/0"}' in text
    assert '"all": {"@same": "r1"}' in text
    assert read_back(text) == [first, second]


def test_equal_is_only_what_is_written_alike() -> None:
    filler = "z" * 120
    values = [[1, filler], [1.0, filler], [True, filler], [-0.0, filler], [0.0, filler], {"a": filler}]
    both_orders = [{"a": 1, "b": filler}, {"b": filler, "a": 1}]
    text = laid_out(*values, *both_orders)
    assert [json.dumps(value) for value in read_back(text)] == [json.dumps(value) for value in (*values, *both_orders)]


def test_a_run_of_elements_is_shown_as_one_span() -> None:
    messages = [{"role": "user", "content": f"message {number} " + "m" * 90} for number in range(9)]
    more = [*messages, {"role": "user", "content": "new"}]
    changed = [{"role": "user", "content": "changed"}, *more[1:6], {"role": "user", "content": "in"}, *more[6:]]
    text = laid_out({"m": messages}, {"m": more}, {"m": changed})
    assert '{"@same": "r1 /m", "count": 9},\n' in text
    assert '{"@same": "r2 /m", "from": 1, "count": 5},\n' in text
    assert '{"@same": "r2 /m", "from": 6, "count": 4}\n' in text
    assert read_back(text) == [{"m": messages}, {"m": more}, {"m": changed}]


def test_a_run_of_lines_is_shown_as_one_span() -> None:
    history = "".join(f"Thought {number}: look it up.\nAction: search\n" for number in range(20))
    text = laid_out([history], [history + "Observation: none\n"], ["Begin.\n" + history[:-1]])
    assert '{"@same": "r1 /0", "count": 40},\n' in text
    assert read_back(text) == [[history], [history + "Observation: none\n"], ["Begin.\n" + history[:-1]]]


def test_a_run_within_a_long_line_is_shown_by_its_characters() -> None:
    history = json.dumps([{"said": words(random.Random(number), 300)} for number in range(20)])
    text = laid_out([history], [history[:-1] + ', {"said": "bye"}]'])
    assert '"characters": [0, ' in text
    assert len(text) < 1.2 * len(history)
    assert read_back(text) == [[history], [history[:-1] + ', {"said": "bye"}]']]


def test_names_that_begin_like_ours_are_escaped() -> None:
    body = {"@same": "request 1", "@lines": ["a"], "@": 1, "@@x": 2, "count": 3, "more": "y" * 120}
    text = laid_out([body], [body, {"@same": 1, "count": 2}], {"@lines": ["n" * 200]})
    assert '"@@same": "request 1"' in text
    assert read_back(text) == [[body], [body, {"@same": 1, "count": 2}], {"@lines": ["n" * 200]}]


def test_nothing_in_the_file_hides_or_turns_text_around() -> None:
    hidden = "a\x1b[31m\x7f\x9b0m\u202eevil\u2066\u2028\ufeff b " * 9
    text = laid_out([hidden])
    shown = {letter for letter in text if not letter.isprintable()}
    assert shown == {"\n"}
    assert read_back(text) == [[hidden]]
    assert visible('"\ud83d\ude00 \udc80"') == '"😀 \\udc80"'
    assert json.loads(visible('"\\\\\x85"')) == "\\\x85"


@pytest.mark.parametrize("text", ["", "\n", "a", "a\n", "\n\na", "a\r\nb\rc\u2028d\n"])
def test_lines_end_with_a_newline_and_with_nothing_else(text: str) -> None:
    assert "".join(lines_of(text)) == text
    assert all(line.find("\n") in (-1, len(line) - 1) for line in lines_of(text))


@pytest.mark.parametrize(
    "text", ["x" * 5000, "word " * 1000, "A sentence. " * 300, '{"a":"b"},' * 400, "字。" * 600, PROMPT * 50]
)
def test_pieces_are_short_and_make_the_text(text: str) -> None:
    assert "".join(pieces_of(text)) == text
    assert max(map(len, pieces_of(text))) <= 400


def test_a_changed_word_changes_one_piece() -> None:
    before = pieces_of(PROMPT)
    after = pieces_of(PROMPT.replace("30 days", "14 days"))
    assert [(one, other) for one, other in zip(before, after, strict=True) if one != other] == [
        ("Refunds are given within 30 days.\n", "Refunds are given within 14 days.\n")
    ]


# Sessions that say everything again in each call: their files must grow with what is new.


def anthropic(turns: int) -> list[tuple[bytes, bytes | None]]:
    agent = GrowingAgent(said=300, answered=200)
    return [agent.turn() for _ in range(turns)]


def asked_by(turns: int, build: Callable[[int, list[str]], Any]) -> list[tuple[bytes, bytes | None]]:
    source = random.Random(5)
    said = [words(source, 250) for _ in range(turns)]
    return [
        (json.dumps(build(turn, said[:turn])).encode(), json.dumps({"id": turn}).encode())
        for turn in range(1, turns + 1)
    ]


def early_change(turns: int) -> list[tuple[bytes, bytes | None]]:
    return asked_by(
        turns,
        lambda turn, said: {
            "messages": [
                {"role": "system", "content": f"It is second {turn}."},
                *({"role": "user", "content": one} for one in said),
            ]
        },
    )


def short_messages(turns: int) -> list[tuple[bytes, bytes | None]]:
    return asked_by(
        turns, lambda turn, said: {"input": [f"now {turn}", *(word for one in said for word in ("ok", one[:30]))]}
    )


def window(turns: int) -> list[tuple[bytes, bytes | None]]:
    return asked_by(turns, lambda _turn, said: {"messages": [{"content": one} for one in said[-40:]]})


def transcript(turns: int) -> list[tuple[bytes, bytes | None]]:
    return asked_by(turns, lambda _turn, said: {"prompt": "".join(f"Thought: {one}\n" for one in said)})


def json_in_a_string(turns: int) -> list[tuple[bytes, bytes | None]]:
    return asked_by(turns, lambda _turn, said: {"prompt": json.dumps([{"said": one} for one in said])})


def two_agents(turns: int) -> list[tuple[bytes, bytes | None]]:
    """Two conversations in turns, with the same first message."""
    one, other = anthropic(turns // 2), early_change(turns // 2)
    return [pair for both in zip(one, other, strict=True) for pair in both]


def odd_json(turns: int) -> list[tuple[bytes, bytes | None]]:
    """Written so that no style has it, on one line: shown as text."""
    return [(asked.replace(b'":', b'" :'), answered) for asked, answered in early_change(turns)]


@pytest.mark.parametrize(
    "session",
    in_short([anthropic, early_change, short_messages, window, transcript, json_in_a_string, two_agents, odd_json], 2),
    ids=lambda session: session.__name__,
)
def test_twice_the_turns_make_about_twice_the_file(session: Callable[[int], list[tuple[bytes, bytes | None]]]) -> None:
    small, large = (taped(session(turns)) for turns in (40, 80))
    growth = len(large.cassette()) / len(small.cassette())
    assert growth < 2.3
    assert_comes_back(large)


def test_a_moved_cache_marker_shows_no_message_again() -> None:
    tape = taped(anthropic(12))
    last = json.dumps(steps_in(tape.text())[-1]["request"])
    agent = GrowingAgent(said=300, answered=200)
    bodies = [agent.turn() for _ in range(12)]
    messages = json.loads(bodies[-1][0])["messages"]
    assert [message["content"][0]["text"] in last for message in messages].count(True) <= 1


def test_references_name_only_what_came_before() -> None:
    references = References(MemoryBudget(light=True))
    references.name("r1", {"a": ["b", {"c": "d\ne\n"}]})
    good = {"x": {"@same": "r1 /a/1/c"}, "y": [{"@same": "r1 /a", "from": 1, "count": 1}]}
    assert references.restored(good, 100) == {"x": "d\ne\n", "y": [{"c": "d\ne\n"}]}
    for address in ("r2", "r1 /b", "r1 /a/2", "r1 /a/-1", "r1 /a/x", "r1 /a/1/c/0", "", "r1 /", " /a", "r1/a"):
        with pytest.raises(BadCassette, match="not there"):
            references.restored({"x": {"@same": address}}, 100)


@pytest.mark.parametrize(
    "mark",
    [
        {"@same": 5},
        {"@same": None},
        {"@what": 1},
        {"@same": "r1", "more": 1},
        {"@lines": "text"},
        {"@lines": [1]},
        {"@lines": [{"@same": "r1 /a", "count": 1}]},
        {"@lines": [{"@same": "r1 /t", "count": 3}]},
        {"@lines": [{"@same": "r1 /t", "count": 0}]},
        {"@lines": [{"@same": "r1 /t", "from": -1, "count": 1}]},
        {"@lines": [{"@same": "r1 /t", "from": True, "count": 1}]},
        {"@lines": [{"@same": "r1 /t", "characters": [0, 9]}]},
        {"@lines": [{"@same": "r1 /t", "characters": [0]}]},
        {"@lines": [{"@same": "r1 /t", "characters": ["0", 1]}]},
        {"@lines": [{"@same": "r1 /t", "characters": [0, 1], "x": 1}]},
    ],
    ids=str,
)
def test_marks_that_make_no_sense_are_refused(mark: Any) -> None:
    references = References(MemoryBudget(light=True))
    references.name("r1", {"a": [1, 2], "t": "d\ne\n"})
    with pytest.raises(BadCassette):
        references.restored({"x": mark}, 100)


@pytest.mark.parametrize(
    "span",
    [
        {"@same": "r1 /a", "count": 3},
        {"@same": "r1 /a", "from": 2, "count": 1},
        {"@same": "r1 /a", "count": 10**30},
        {"@same": "r1 /a", "count": 1.0},
        {"@same": "r1 /a", "count": 1, "to": 2},
        {"@same": "r1 /t", "count": 1},
        {"@same": "r1", "count": 1},
    ],
    ids=str,
)
def test_spans_that_reach_too_far_are_refused(span: dict[str, Any]) -> None:
    references = References(MemoryBudget(light=True))
    references.name("r1", {"a": [1, 2], "t": "d\ne\n"})
    with pytest.raises(BadCassette):
        references.restored({"x": [span]}, 100)


def follow(root: Any, build: Callable[[int], Any]) -> None:
    """Name one value after the other, each of which refers to the one before."""
    references = References(MemoryBudget(light=True))
    references.name("r0", root)
    for number in range(60):
        value = references.restored({"v": build(number)}, 10**6)["v"]
        references.name(f"r{number + 1}", value)


def nested(value: Any, times: int) -> Any:
    for _ in range(times):
        value = [value]
    return value


def test_references_that_stand_for_gigabytes_are_refused_before_they_are_followed() -> None:
    with pytest.raises(BadCassette, match="more than it says"):
        follow(["x" * 100], lambda number: [{"@same": f"r{number}"}] * 2)
    with pytest.raises(BadCassette, match="more than it says"):
        follow(["x", "y"], lambda number: [{"@same": f"r{number}", "count": 2 ** (number + 1)}] * 2)
    with pytest.raises(BadCassette, match="more than it says"):
        follow("x\n", lambda number: {"@lines": [{"@same": f"r{number}", "count": 2**number}] * 2})


def test_what_is_nested_too_deep_is_refused_even_by_references() -> None:
    with pytest.raises(BadCassette, match="too deep"):
        follow(["x"], lambda number: nested({"@same": f"r{number}"}, 50))
    with pytest.raises(BadCassette, match="too deep"):
        follow(["x"], lambda number: nested({"@same": f"r{number}", "count": 1}, 50))
    with pytest.raises(BadCassette, match="too deep"):
        References(MemoryBudget(light=True)).restored({"v": nested(1, 200)}, 10)


def test_a_session_of_one_exchange_shows_all_of_it() -> None:
    tape: Taped = taped([(b'{"q":"why?"}', b'{"a":"so"}')])
    (step,) = steps_in(tape.text())
    assert step["request"]["body"] == {"json": {"q": "why?"}}
    assert step["answer"]["body"] == {"json": {"a": "so"}}
