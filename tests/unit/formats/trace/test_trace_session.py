"""A trace opened like a session: what its steps are, and that every reading command understands them."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rewind import Trace, replay
from rewind.cli.main import run
from rewind.conversation.outline import Outline, outline_of
from rewind.errors import BadCassette, SessionNotFound
from rewind.model.session import SessionFile, Status
from rewind.model.step import Step, StepKind
from rewind.store.imported_sessions import import_session
from rewind.store.journal.records import request_fields, response_fields
from rewind.store.library import Library
from rewind.store.trace_files import open_trace
from support.effort import examples
from unit.formats.trace.traced import (
    ADVICE,
    ARGUMENTS,
    MODELS,
    PROMPT,
    SNOW,
    SYSTEM,
    chat_asks,
    chat_says,
    read_trace_file,
    record,
)

APIS = list(MODELS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


@pytest.fixture
def rewind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """``rewind("inspect", "run.jsonl")`` in the folder of the trace, with an empty store."""
    monkeypatch.setenv("REWIND_HOME", str(tmp_path / "store"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(list(arguments))
        said = capsys.readouterr()
        return int(code), said.out, said.err

    return call


def understood(portable: SessionFile) -> Outline:
    def bodies(step: Step) -> tuple[bytes, bytes]:
        answer = b"" if step.response is None else _bytes(portable, step.response.body)
        return _bytes(portable, step.request.body), answer

    return outline_of(portable.recording, bodies)


def _bytes(portable: SessionFile, name: Any) -> bytes:
    return portable.blobs.get(name, b"")


def traced(path: Path, *steps: tuple[str, dict[str, Any]], **more: Any) -> SessionFile:
    with Trace(path, **more) as trace:
        for kind, fields in steps:
            trace.step(kind, **fields)
    return read_trace_file(path)


# ── what the steps are ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("api", APIS)
def test_a_run_is_understood_in_every_api(path: Path, api: str) -> None:
    portable = read_trace_file(record(path, api, run="0a1b2c3d"))
    recording = portable.recording
    kinds = [step.request.kind.value for step in recording.steps]
    assert kinds == ["note", "llm_call", "tool_call", "llm_call", "final"]
    assert not recording.damage and recording.session.id == "0a1b2c3d"
    assert recording.session.status is Status.ENDED and recording.session.start.name == "run"
    outline = understood(portable)
    asks, says = (one for one in outline.steps if one.kind is StepKind.LLM_CALL)
    assert asks.reading.model is not None and asks.reading.usage.input == 20 and asks.reading.usage.output == 5
    assert asks.asked.system and asks.asked.messages[0].text == PROMPT
    assert says.answered is not None and says.answered.text == ADVICE
    assert asks.place is not None and says.place is not None and says.place.parent == asks.step.index
    (tool,) = outline.tools
    assert (tool.use.name, tool.use.arguments, tool.recorded_as) == ("weather", ARGUMENTS, 3)
    assert tool.result is not None and tool.result.text == SNOW
    assert all(one.reading.note is None and one.asked.note is None for one in outline.steps)


def test_what_was_written_while_reading_is_what_is_understood_later(path: Path) -> None:
    portable = read_trace_file(record(path, "anthropic"))
    for one in understood(portable).steps:
        assert one.kind is one.step.request.kind
        if one.place is not None:
            assert one.step.request.thread == one.place.thread and one.step.request.sketch
            assert one.step.response is not None and one.step.response.reading.said


def test_usage_told_beside_the_answer_counts_in_anybodys_words(path: Path) -> None:
    message = chat_says().choices[0].message
    portable = traced(
        path,
        ("llm_call", {"content": message, "usage": {"prompt_tokens": 7, "completion_tokens": 2}}),
        ("llm_call", {"content": message, "usage": {"input_tokens": 8, "output_tokens": 3}}),
        (
            "llm_call",
            {
                "content": "hi",
                "model": "gemini-2.5-pro",
                "usage": {"prompt_token_count": 9, "candidates_token_count": 4},
            },
        ),
        ("llm_call", {"content": "hi", "model": "claude-opus-4-5", "tokens_in": 10, "tokens_out": 5}),
        ("llm_call", {"content": message, "usage": None}),
    )
    usages = [one.reading.usage for one in understood(portable).steps]
    assert [(usage.input, usage.output) for usage in usages] == [(7, 2), (8, 3), (9, 4), (10, 5), (None, None)]


def test_a_call_takes_the_time_it_tells_or_else_that_since_the_line_before(path: Path) -> None:
    rows = [
        {"kind": "note", "ts": 1000.0, "run": "r", "text": "begin"},
        {"kind": "llm_call", "ts": 1002.5, "run": "r", "content": "a"},
        {"kind": "tool_call", "ts": 1003.0, "run": "r", "name": "t", "args": {}},
        {"kind": "tool_result", "ts": 1003.25, "run": "r", "output": "x"},
        {"kind": "llm_call", "ts": 1010.0, "run": "r", "content": "b", "ms": 1500},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    steps = read_trace_file(path).recording.steps
    assert [(step.request.ts, step.response and step.response.ms) for step in steps] == [
        (1000.0, 0.0),
        (1000.0, 2500.0),
        (1003.0, 250.0),
        (1008.5, 1500.0),
    ]


def test_errors_and_notes_are_steps_that_can_be_read(path: Path) -> None:
    portable = traced(
        path,
        ("llm_call", {"prompt": PROMPT, "response": chat_asks()}),
        ("error", {"tool": "weather", "err": "no such city"}),
        ("tool_result", {"id": "call_1", "error": "no such city"}),
        ("plan", {"steps": [1, 2]}),
        ("llm_call", {"error": "429 Too Many Requests"}),
        ("tool_call", {"name": "never_answered"}),
    )
    steps = understood(portable).steps
    assert [one.kind.value for one in steps] == ["llm_call", "error", "tool_call", "note", "llm_call", "tool_call"]
    assert steps[1].reading.error == "no such city"
    assert steps[2].reading.error == "no such city" and steps[2].asked.messages[0].parts
    assert steps[3].reading.text == 'plan: {"steps": [1, 2]}'
    assert steps[4].reading.error == "429 Too Many Requests"
    assert steps[5].step.response is None
    assert portable.session.status is Status.INTERRUPTED


def test_a_trace_that_ends_in_an_error_failed(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Trace(path):
        _ = 1 / 0
    session = read_trace_file(path).session
    assert session.end is not None and session.end.exit_code == 1


def test_the_article_s_own_lines_make_a_session(path: Path) -> None:
    asks, says = (one.choices[0].message.model_dump() for one in (chat_asks(), chat_says()))
    rows: list[tuple[str, dict[str, Any]]] = [
        ("llm_call", {"turn": 0, "content": asks, "usage": {"prompt_tokens": 20, "completion_tokens": 5}}),
        ("error", {"tool": "weather", "err": "boom"}),
        ("tool_call", {"name": "weather", "args": ARGUMENTS}),
        ("tool_result", {"id": "call_1", "output": "error: boom"}),
        ("llm_call", {"turn": 1, "content": says, "usage": None}),
        ("final", {"text": ADVICE}),
    ]
    path.write_text(
        "".join(json.dumps({"ts": 1e9 + n, "run": "f00dbabe", "kind": k, **f}) + "\n" for n, (k, f) in enumerate(rows))
    )
    portable = read_trace_file(path)
    assert portable.session.id == "f00dbabe"
    outline = understood(portable)
    assert [one.kind.value for one in outline.steps] == ["llm_call", "error", "tool_call", "llm_call", "final"]
    assert outline.tools[0].recorded_as == 3 and outline.tools[0].answered_in == 4


# ── runs, ids, limits ────────────────────────────────────────────────────────────────────────────────────────


def test_an_id_is_taken_as_it_is_or_made_from_the_run_s_name(path: Path) -> None:
    first = traced(path, ("note", {}), run="nightly-7").session
    assert len(first.id) == 8 and first.id == read_trace_file(path).session.id
    assert first.start.tags == {"source": "rewind trace", "run": "nightly-7"}
    assert first.file == str(path) and first.start.imported and first.start.command == ()


def test_other_runs_in_the_file_are_named(path: Path) -> None:
    for name in ("aaaaaaaa", "bbbbbbbb", "cccccccc"):
        traced(path, ("llm_call", {"content": name}), run=name)
    found = read_trace_file(path).recording
    assert found.session.id == "cccccccc" and len(found.steps) == 1
    assert found.damage == ("the file has 2 other run(s), not shown: aaaaaaaa, bbbbbbbb",)
    assert read_trace_file(path, "aaaaaaaa").session.id == "aaaaaaaa"


def test_settings_keep_the_order_of_the_line_so_that_a_body_is_the_same_in_every_process(path: Path) -> None:
    settings = {"top_p": 1, "temperature": 0, "seed": 7, "stop": "x", "store": True}
    portable = traced(path, ("llm_call", {**settings, "prompt": "go", "content": "hi"}))
    body = json.loads(portable.blobs[portable.recording.steps[0].request.body])
    assert [name for name in body if name in settings] == list(settings)


def test_a_blob_is_read_only_from_beside_the_trace_and_only_by_its_digest(path: Path) -> None:
    (path.parent / "secret.txt").write_text("not for you")
    row = {"kind": "tool_result", "ts": 1.0, "run": "r", "output": "short", "cut": {"output": "sha256:../secret.txt"}}
    path.write_text(json.dumps(row) + "\n")
    portable = read_trace_file(path)
    assert all(b"not for you" not in portable.blobs[name] for name in portable.blobs)
    assert "only its beginning" in portable.recording.damage[0]


def test_the_journal_of_a_session_is_no_trace(path: Path) -> None:
    path.write_text('{"kind":"session","ts":1,"run":"0a1b2c3d","n":0,"format":1,"~":"00000000"}\n')
    with pytest.raises(BadCassette, match="journal") as caught:
        read_trace_file(path)
    assert caught.value.hint == "rewind inspect 0a1b2c3d"


def test_a_long_conversation_is_not_kept_once_per_call(path: Path) -> None:
    with Trace(path) as trace:
        for number in range(100):
            trace.step("llm_call", prompt=f"question {number} " + "x" * 10_000, content=f"answer {number}")
    portable = read_trace_file(path)
    sizes = [step.request.body_size for step in portable.recording.steps]
    assert sum(sizes) > 50_000_000 > 40 * path.stat().st_size
    last = portable.recording.steps[-1]
    assert len(json.loads(portable.blobs[last.request.body])["messages"]) == 199


def test_too_large_and_too_deep_are_named(path: Path) -> None:
    good = '{"kind":"note","ts":1,"run":"r"}\n'
    path.write_text(good + '{"kind":"note","x":' + "[" * 50_000 + "]" * 50_000 + "}\n")
    assert read_trace_file(path).recording.damage == ("line 2: nested too deep",)
    path.write_text(good + '{"kind":"note","x":' + "[" * 500 + "]" * 500 + "}\n")
    assert not read_trace_file(path).recording.damage
    path.write_text(good + '{"kind":"note","x":' + "9" * 5000 + "}\n")
    assert read_trace_file(path).recording.damage[0].startswith("line 2: not JSON")
    path.write_text(good + '{"kind":"note","x":"' + "x" * 200 + '"}\n')
    assert read_trace_file(path, line_bytes=100).recording.damage == ("line 2: longer than 100 bytes",)
    path.write_text(good * 20)
    with pytest.raises(BadCassette, match="more than 10 lines"):
        read_trace_file(path, lines=10)
    with pytest.raises(BadCassette, match="too large"):
        open_trace(path, largest=100)


def test_a_conversation_too_long_to_repeat_is_told_without_its_past(path: Path) -> None:
    with Trace(path) as trace:
        for number in range(20):
            trace.step("llm_call", prompt=f"question {number} " + "x" * 100, content="ok")
    portable = read_trace_file(path, request_bytes=2000)
    last = portable.recording.steps[-1].request
    assert last.note is not None and "left out" in last.note
    assert len(json.loads(portable.blobs[last.body])["messages"]) == 1


NAMES = st.sampled_from(
    [
        *("content", "response", "messages", "input", "contents", "prompt", "system", "tools", "model", "usage"),
        *("tool_calls", "id", "name", "args", "output", "error", "text", "request", "config", "agent", "ms", "cut"),
        *("choices", "candidates", "previous_response_id", "role", "parts", "type", "pid", "blob_ref"),
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(
        ["", "assistant", "user", "tool_use", "message", "function_call", "text", "{}", "[{}]", "gemini-x"]
    )
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
KINDS = st.sampled_from(["llm_call", "tool_call", "tool_result", "error", "final", "note", "user", "start"])
ROWS = st.fixed_dictionaries({"kind": KINDS, "ts": VALUES, "run": VALUES}, optional={}).flatmap(
    lambda row: st.dictionaries(NAMES, VALUES, max_size=6).map(lambda fields: {**fields, **row})
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A whole trace in every API."""
    return {api: record(tmp_path_factory.mktemp("sound") / "t.jsonl", api).read_bytes() for api in APIS}


def look_at(path: Path) -> None:
    """As ``inspect`` does."""
    portable = read_trace_file(path)
    understood(portable)
    for step in portable.recording.steps:
        assert portable.blobs[step.request.body]


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.lists(ROWS, min_size=1, max_size=6))
def test_no_shape_of_fields_is_a_crash(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("rows") / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    look_at(path)


@settings(max_examples=examples(100))
@given(api=st.sampled_from(APIS), changes=st.lists(st.tuples(st.integers(0, 5000), st.binary(max_size=3)), max_size=5))
def test_no_damage_is_a_crash(
    sound: dict[str, bytes], api: str, changes: list[tuple[int, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("damage") / "t.jsonl"
    data = bytearray(sound[api])
    for at, instead in changes:
        data[at % len(data) : at % len(data) + 1] = instead
    path.write_bytes(bytes(data))
    with suppress(BadCassette, SessionNotFound):
        look_at(path)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*at, key)
        yield from places(one, (*at, key))


@settings(max_examples=examples(100))
@given(
    api=st.sampled_from(APIS),
    changes=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 10_000), VALUES), min_size=1, max_size=4),
)
def test_no_value_in_the_wrong_place_is_a_crash(
    sound: dict[str, bytes], api: str, changes: list[tuple[int, int, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("wrong") / "t.jsonl"
    rows = [json.loads(line) for line in sound[api].splitlines()]
    for line, which, instead in changes:
        known = [place for place in places(rows[line]) if place != ("kind",)]
        *outer, last = known[which % len(known)]
        inner = rows[line]
        for key in outer:
            inner = inner[key]
        inner[last] = instead
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    look_at(path)
    replay(path)


def written(step: Step) -> tuple[Any, Any]:
    """A step as the journal has it."""
    answer = None if step.response is None else response_fields(step.index, 0.0, step.response, None)
    return request_fields(step.request), answer


# ── the store, and the commands ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("api", APIS)
def test_a_trace_that_is_imported_looks_the_same_afterwards(path: Path, tmp_path: Path, api: str) -> None:
    portable = read_trace_file(record(path, api))
    assert import_session(tmp_path / "store", portable) and not import_session(tmp_path / "store", portable)
    library = Library(tmp_path / "store")
    with library.open(library.find(portable.session.id)) as reader:
        kept = reader.recording()
        assert [written(step) for step in kept.steps] == [written(step) for step in portable.recording.steps]
        for step in kept.steps:
            assert reader.blob(step.request.body) == portable.blobs[step.request.body]
    assert kept.is_from_trace and not kept.damage


@pytest.mark.parametrize("api", APIS)
def test_inspect_shows_a_trace_like_a_session(rewind: Any, path: Path, api: str) -> None:
    record(path, api)
    code, shown, _ = rewind("inspect", "run.jsonl")
    assert code == 0
    assert "2 LLM calls in 1 thread, 1 tool call" in shown and "40 in, 10 out" in shown
    assert f'weather({{"city":"Oslo"}}) ← {SNOW}' in shown and ADVICE in shown
    code, shown, _ = rewind("inspect", "run.jsonl:4", "--context")
    assert code == 0 and SNOW in shown and SYSTEM in rewind("inspect", "run.jsonl:2")[1]
    code, shown, _ = rewind("inspect", "run.jsonl", "--json")
    assert code == 0 and len(json.loads(shown)["steps"]) == 5


@pytest.mark.parametrize("api", APIS)
def test_messages_gives_a_trace_up_to_a_step(rewind: Any, path: Path, api: str) -> None:
    record(path, api)
    code, shown, _ = rewind("messages", "run.jsonl", "--upto", "2", "--json")
    assert code == 0 and PROMPT in shown and SNOW not in shown
    code, shown, _ = rewind("messages", "run.jsonl", "--as", "openai")
    told = json.loads(shown)
    assert code == 0 and told[-1] == {"role": "assistant", "content": ADVICE}
    assert [message["role"] for message in told] == ["system", "user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("api", APIS)
def test_bisect_names_the_planted_cause(rewind: Any, path: Path, api: str) -> None:
    record(path.with_name("good.jsonl"), api)
    record(path.with_name("bad.jsonl"), api, weather="no such city", advice="I do not know that city.")
    code, shown, _ = rewind("bisect", "good.jsonl", "bad.jsonl")
    assert code == 1
    assert "First divergence at step 4" in shown and "tool output changed: weather" in shown
    code, shown, _ = rewind("bisect", "good.jsonl", "bad.jsonl", "--json")
    assert json.loads(shown)["causes"][0]["kind"] == "tool-output"
    code, shown, _ = rewind("diff", "good.jsonl", "bad.jsonl")
    assert code == 1 and "1 equal · 3 changed" in shown  # notes do not count
    record(path.with_name("again.jsonl"), api)
    assert rewind("diff", "good.jsonl", "again.jsonl")[0] == 0


def test_a_trace_and_a_run_in_another_api_can_be_compared(rewind: Any, path: Path) -> None:
    record(path.with_name("good.jsonl"), "openai")
    record(path.with_name("bad.jsonl"), "anthropic", weather="no such city", advice="I do not know.")
    code, shown, _ = rewind("bisect", "good.jsonl", "bad.jsonl")
    assert code == 1 and "model changed" in shown and "tool output changed" in shown


def test_a_trace_is_not_replayed(rewind: Any, path: Path) -> None:
    record(path, "openai")
    code, _, told = rewind("replay", "run.jsonl", "--", "true")
    assert code == 2 and "cannot be replayed" in told


def test_a_trace_that_cannot_be_read_is_a_clear_error(rewind: Any, path: Path) -> None:
    path.write_text("hello\n")
    code, _, told = rewind("inspect", "run.jsonl")
    assert code == 6 and "is not a trace" in told and "Traceback" not in told
