"""Long traces: opening one takes as long as it is, not as the square of it, and says the same as reading all of it."""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewind import Trace
from rewind.conversation.sketch import sketch_of
from rewind.formats.trace.conversation import FirstTurns, ModelCall
from rewind.formats.trace.lines import TraceLimits, read_run
from rewind.formats.trace.reconstruct import reconstruct
from rewind.model.http import HttpRequest
from rewind.model.session import SessionFile
from rewind.model.step import StepKind
from rewind.providers.catalogue import identify
from rewind.reading.trace_messages import replay_trace
from rewind.store.trace_files import open_trace
from support.effort import examples, in_short
from unit.formats.trace.test_trace_session import ROWS
from unit.formats.trace.traced import ASKS, IDS, MODELS, SAYS, read_trace_file

Row = tuple[str, dict[str, Any]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "long.jsonl"


def read_long(path: Path) -> SessionFile:
    """As in a trace that is long already: no call is read whole that continues another."""
    return read_trace_file(path, reread_bytes=0)


def write(path: Path, rows: Iterator[Row]) -> Path:
    lines = ({"kind": kind, "ts": 1000.0 + n, "run": "r", **fields} for n, (kind, fields) in enumerate(rows))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def work_of(action: Callable[[], object]) -> int:
    """How many calls of functions it takes: the same on every machine."""
    count = 0

    def seen(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


def given_to_calls(path: Path) -> list[FirstTurns]:
    events = reconstruct(read_run(open_trace(path)).lines).events
    return [event.turns for event in events if isinstance(event, ModelCall)]


def contents(size: int) -> Iterator[Row]:
    return (("llm_call", {"content": f"answer {n}"}) for n in range(size))


def questions(size: int) -> Iterator[Row]:
    return (("llm_call", {"prompt": f"question {n}", "content": f"answer {n}"}) for n in range(size))


def tools(size: int) -> Iterator[Row]:
    yield "llm_call", {"model": "claude-x", "content": "Let me see."}
    yield from (("tool_call", {"id": f"c{n}", "name": "look", "args": {"n": n}}) for n in range(size))
    yield from (("tool_result", {"id": f"c{size - 1 - n}", "output": f"found {n}"}) for n in range(size))


def agents(size: int) -> Iterator[Row]:
    uses = [{"type": "tool_use", "id": "same", "name": "look", "input": {}}]
    yield from (("llm_call", {"agent": f"a{n}", "content": uses}) for n in range(size))
    yield from (("tool_result", {"id": "same", "output": "found"}) for _ in range(size))
    yield from (("tool_result", {"id": f"unknown {n}", "output": "found"}) for n in range(size))


def asked_before(size: int) -> Iterator[Row]:
    yield from (("user", {"text": f"line {n}"}) for n in range(size))
    yield from contents(size)


@pytest.mark.parametrize("rows", in_short([contents, questions, tools, agents, asked_before], 2))
def test_twice_the_lines_take_twice_the_work(rows: Callable[[int], Iterator[Row]], path: Path) -> None:
    works = []
    for size in (100, 100, 200):  # the first time for what is loaded once
        write(path, rows(size))
        works.append(work_of(lambda: read_long(path)))
    assert works[2] < 2.3 * works[1]


def test_calls_that_repeat_their_messages_are_read_once_as_well(path: Path) -> None:
    def rows(size: int) -> Iterator[Row]:
        messages: list[dict[str, Any]] = []
        for n in range(size):
            messages = [*messages, {"role": "user", "content": f"question {n}"}]
            yield "llm_call", {"messages": messages, "content": f"answer {n}"}
            messages = [*messages, {"role": "assistant", "content": f"answer {n}", "refusal": None}]

    write(path, rows(30))
    assert len({id(turns.all) for turns in given_to_calls(path)}) == 1
    same_as_read_whole(read_long(path), 30)


def test_calls_of_a_conversation_share_their_turns(path: Path) -> None:
    write(path, questions(50))
    given = given_to_calls(path)
    assert len({id(turns.all) for turns in given}) == 1
    assert [len(turns) for turns in given] == list(range(1, 100, 2))


# ── the same as if each call were read whole ─────────────────────────────────────────────────────────────────


def same_as_read_whole(portable: SessionFile, sketched: int | None = None) -> None:
    found = 0
    for step in portable.recording.steps:
        request = step.request
        body = portable.blobs[request.body]
        assert request.body == "sha256:" + hashlib.sha256(body).hexdigest()
        assert request.body_size == len(body)
        if request.kind is StepKind.LLM_CALL and request.sketch is not None:
            provider = identify(request.head)
            whole = sketch_of(provider.reader.asked(HttpRequest(head=request.head, body=body)), provider)
            assert request.sketch == str(whole)
            found += 1
    assert sketched is None or found == sketched


@pytest.mark.parametrize("api", list(MODELS))
def test_what_is_told_of_the_news_is_what_all_of_it_comes_to(path: Path, api: str) -> None:
    named = {"id": IDS[api]} if IDS[api] else {"name": "weather"}
    with Trace(path) as trace:
        trace.step("start", model=MODELS[api], system="You dress people.", prompt="What shall I wear?")
        for turn in range(4):
            trace.step("llm_call", response=ASKS[api](), temperature=turn // 2)
            trace.step("tool_result", **named, output=f"{turn} degrees")
            trace.step("llm_call", error="overloaded")
            trace.step("tool_result", **named, output="late")
            trace.step("tool_result", name="other", output="unasked", error="gone")
            trace.step("llm_call", response=SAYS[api](f"Wear {turn} coats."))
            trace.step("user", text=f"And on day {turn}?")
            trace.step("llm_call", content="Nothing new.", system="You undress people." if turn == 2 else None)
            trace.step("user", text="Go on.")
    same_as_read_whole(read_long(path), 16)


@pytest.mark.parametrize("api", list(MODELS))
def test_answers_in_a_row_are_told_as_one_or_left_to_be_read_later(path: Path, api: str) -> None:
    write(path, (("llm_call", {"model": MODELS[api], "content": f" answer {n}"}) for n in range(5)))
    # Gemini's are joined to one text, which cannot be told piece by piece.
    same_as_read_whole(read_long(path), 2 if api == "gemini" else 5)


@pytest.mark.parametrize("role", ["system", "developer"])
def test_instructions_among_the_messages_count_where_they_stand(path: Path, role: str) -> None:
    first = [{"role": role, "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    with Trace(path) as trace:
        trace.step("llm_call", messages=first, content="Hi.")
        trace.step("llm_call", prompt="Go on.", content="On.")
        said = [{"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Go on."}]
        later = {"role": role, "content": "Be long."}
        trace.step("llm_call", messages=[*first, *said, later], content="Long.")
        trace.step("llm_call", prompt="Go on.", content="On.")
    same_as_read_whole(read_long(path), 4)


@settings(max_examples=examples(60))
@given(rows=st.lists(ROWS, min_size=1, max_size=8))
def test_no_shape_of_fields_is_told_otherwise(
    rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("rows") / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    same_as_read_whole(read_long(path))


def test_a_result_that_comes_late_does_not_change_what_a_call_was_given(path: Path) -> None:
    with Trace(path) as trace:
        trace.step("llm_call", model="claude-x", content="Wait.")
        trace.step("tool_result", id="a", output="one")
        trace.step("tool_result", id="b", output="two")
        trace.step("llm_call", error="overloaded")
        trace.step("tool_result", id="c", output="three")
        trace.step("llm_call", content="Done.")
    portable = read_long(path)
    calls = [step for step in portable.recording.steps if step.request.kind is StepKind.LLM_CALL]
    given = [json.loads(portable.blobs[step.request.body])["messages"] for step in calls]
    assert [len(turn["content"]) for turn in given[1][1:]] == [2]
    assert [len(turn["content"]) for turn in given[2][1:]] == [2, 1]


# ── what is too much ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_line_of_too_many_values_is_not_read_but_signs_in_texts_are_none(path: Path) -> None:
    good = '{"kind":"note","ts":1,"run":"r"}\n'
    path.write_text(good + '{"kind":"note","x":[' + "[]," * 200_000 + "[]]}")
    assert read_trace_file(path).recording.damage == ("line 2: more than 200,000 values",)
    path.write_text(good + json.dumps({"kind": "note", "x": '1,2,\\",[{' * 100_000}) + "\n")
    assert read_trace_file(path).recording.damage == ()


def test_lines_after_too_many_values_in_all_are_named(path: Path) -> None:
    path.write_text('{"kind":"note","ts":1,"run":"r"}\n' * 12)
    recording = read_trace_file(path, values=30).recording
    assert len(recording.steps) == 10
    assert recording.damage == tuple(f"line {n}: not read: there are 30 values before it" for n in (11, 12))


def test_what_was_asked_before_many_forks_is_left_out_and_told(path: Path) -> None:
    rows: list[Row] = [("user", {"text": "one"}), ("user", {"text": "two"})]
    rows += [("llm_call", {"pid": n, "content": "hi"}) for n in (1, 2, 3)]
    write(path, iter(rows))
    portable = read_trace_file(path, inherited_turns=5)
    bodies = [portable.blobs[step.request.body] for step in portable.recording.steps[2:]]
    assert [len(json.loads(body)["messages"]) for body in bodies] == [2, 2, 0]
    assert "is left out of some forked processes" in portable.recording.damage[0]
    replayed = replay_trace(path, limits=TraceLimits(inherited_turns=5))
    assert portable.recording.damage[0] in replayed.remarks


def test_settings_beyond_a_limit_are_left_out_and_told(path: Path) -> None:
    start = {"request": {"a": 1, "b": 2, "c": 3}}
    write(path, iter([("start", start), ("llm_call", {"content": "hi"})]))
    portable = read_trace_file(path, settings=2)
    body = json.loads(portable.blobs[portable.recording.steps[1].request.body])
    assert body == {"messages": [], "a": 1, "b": 2}
    assert portable.recording.damage == ("more than 2 settings are told before the first call; the last are left out",)


def test_long_settings_are_not_repeated_in_a_trace_that_is_too_long(path: Path) -> None:
    rows: list[Row] = [("start", {"model": "m", "system": "s" * 200, "prompt": "go"})]
    write(path, iter([*rows, ("llm_call", {"content": "hi"})]))
    portable = read_trace_file(path, request_bytes=0, short_settings_bytes=100)
    last = portable.recording.steps[-1].request
    assert json.loads(portable.blobs[last.body]) == {"model": "m", "messages": [{"role": "user", "content": "go"}]}
    assert last.note is not None
