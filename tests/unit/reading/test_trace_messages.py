"""``rewind.replay``: the message list of a trace, in the shape of the API that was spoken."""

import json
from pathlib import Path
from typing import Any

import pytest

import rewind
from rewind import RewindError, Trace
from rewind.errors import BadCassette, SessionNotFound, UsageError
from unit.formats.trace.traced import (
    ADVICE,
    ARGUMENTS,
    ASKS,
    IDS,
    PROMPT,
    SAYS,
    SNOW,
    SYSTEM,
    anthropic_asks,
    chat_asks,
    chat_says,
    gemini_asks,
    record,
    response_asks,
    response_says,
)

CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": json.dumps(ARGUMENTS)}}
EXPECTED: dict[str, list[dict[str, Any]]] = {
    "openai": [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": SNOW},
        {"role": "assistant", "content": ADVICE},
    ],
    "responses": [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": PROMPT},
        {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": json.dumps(ARGUMENTS)},
        {"type": "function_call_output", "call_id": "call_1", "output": SNOW},
        {
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": ADVICE, "annotations": []}],
        },
    ],
    "anthropic": [
        {"role": "user", "content": PROMPT},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": ARGUMENTS},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": SNOW}]},
        {"role": "assistant", "content": [{"type": "text", "text": ADVICE}]},
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": PROMPT}]},
        {
            "role": "model",
            "parts": [{"functionCall": {"args": ARGUMENTS, "name": "weather"}, "thoughtSignature": "//5zaWc="}],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"result": SNOW}}}]},
        {"role": "model", "parts": [{"text": ADVICE}]},
    ],
}
APIS = list(EXPECTED)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def traced(path: Path, *steps: tuple[str, dict[str, Any]]) -> Path:
    with Trace(path) as trace:
        for kind, fields in steps:
            trace.step(kind, **fields)
    return path


@pytest.mark.parametrize("api", APIS)
def test_a_whole_trace_gives_the_messages_of_its_api(path: Path, api: str) -> None:
    told = rewind.replay(record(path, api))
    assert list(told) == EXPECTED[api]
    assert told.api == api
    assert told.system == (SYSTEM if api in ("anthropic", "gemini") else None)
    assert told.model is not None


@pytest.mark.parametrize("api", APIS)
def test_the_first_entries_give_the_conversation_so_far(path: Path, api: str) -> None:
    record(path, api)
    whole = EXPECTED[api]
    begins = 2 if whole[0]["role"] == "system" else 1
    for n, count in {0: 0, 1: 1, 2: begins + 1, 3: begins + 1, 4: begins + 2, 5: begins + 3, 6: begins + 3}.items():
        told = rewind.replay(path, n)
        assert len(told) == count, n
        if n > 1:
            assert list(told) == whole[:count]


def seed_steps() -> list[tuple[str, dict[str, Any]]]:
    """As the agent of the article records: what the model said, then each tool's call and result."""
    asks = chat_asks().choices[0].message.model_dump()
    says = chat_says().choices[0].message.model_dump()
    return [
        ("llm_call", {"turn": 0, "content": asks, "usage": {"prompt_tokens": 20, "completion_tokens": 5}}),
        ("tool_call", {"name": "weather", "args": ARGUMENTS}),
        ("tool_result", {"id": "call_1", "output": SNOW}),
        ("llm_call", {"turn": 1, "content": says, "usage": None}),
        ("final", {"text": ADVICE}),
    ]


def test_a_trace_as_the_article_writes_it_is_read(path: Path) -> None:
    with path.open("w") as file:
        for number, (kind, fields) in enumerate(seed_steps()):
            file.write(json.dumps({"ts": 1_780_000_000.5 + number, "run": "1b2c3d4e", "kind": kind, **fields}) + "\n")
    told = rewind.replay(str(path), n=3)
    assert list(told) == EXPECTED["openai"][2:4]
    assert any("what was asked first" in remark for remark in told.remarks)
    assert rewind.replay(path, 100)[-1] == {"role": "assistant", "content": ADVICE}


def test_fields_that_an_sdk_leaves_empty_are_not_sent_back(path: Path) -> None:
    told = rewind.replay(traced(path, *seed_steps()))
    assert told[0].keys() == {"role", "content", "tool_calls"}
    assert told[-1].keys() == {"role", "content"}


MESSAGES = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]


def test_the_messages_of_a_call_hold_where_they_are_told(path: Path) -> None:
    later = [*MESSAGES, EXPECTED["openai"][2], EXPECTED["openai"][3], {"role": "user", "content": "And gloves?"}]
    traced(
        path,
        ("llm_call", {"messages": MESSAGES, "response": chat_asks()}),
        ("tool_result", {"id": "call_1", "output": "something else"}),
        ("llm_call", {"messages": later, "response": chat_says()}),
    )
    assert list(rewind.replay(path)) == [*later, {"role": "assistant", "content": ADVICE}]
    assert list(rewind.replay(path, 1)) == [*MESSAGES, EXPECTED["openai"][2]]


def test_an_answer_that_was_in_the_list_already_is_not_told_twice(path: Path) -> None:
    message = chat_says().choices[0].message
    traced(path, ("llm_call", {"messages": [*MESSAGES, {"role": "assistant", "content": ADVICE}], "content": message}))
    assert list(rewind.replay(path)) == [*MESSAGES, {"role": "assistant", "content": ADVICE}]


def test_a_whole_request_may_be_handed_over(path: Path) -> None:
    request = {"model": "gpt-5-mini", "messages": MESSAGES, "temperature": 0}
    told = rewind.replay(traced(path, ("llm_call", {"request": request, "response": chat_says()})))
    assert list(told) == [*MESSAGES, {"role": "assistant", "content": ADVICE}] and told.model == "gpt-5-mini"


@pytest.mark.parametrize(
    ("fields", "api"),
    [
        ({"content": ADVICE}, "openai"),
        ({"model": "claude-sonnet-4-5", "text": ADVICE}, "anthropic"),
        ({"model": "models/gemini-2.5-pro", "output": ADVICE}, "gemini"),
        ({"instructions": SYSTEM, "output": ADVICE}, "responses"),
        ({"contents": PROMPT, "text": ADVICE}, "gemini"),
        ({"message": {"role": "assistant", "content": ADVICE}}, "openai"),
        ({"response": chat_says().model_dump_json()}, "openai"),
        ({"response": response_says().output}, "responses"),
        ({"content": anthropic_asks().content}, "anthropic"),
        ({"response": gemini_asks().model_dump(mode="json")}, "gemini"),
        (chat_says().model_dump(), "openai"),
        ({"content": {"role": "model", "parts": [{"text": ADVICE}]}}, "gemini"),
        (
            {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}]},
            "responses",
        ),
    ],
    ids=str,
)
def test_an_answer_is_recognised_however_it_is_handed_over(path: Path, fields: dict[str, Any], api: str) -> None:
    told = rewind.replay(traced(path, ("llm_call", fields)))
    assert told.api == api and len(told) >= 1
    assert told[-1].get("role", "assistant") in ("assistant", "model")


def test_calls_told_beside_the_words_belong_to_the_answer(path: Path) -> None:
    calls = [{"id": "t1", "name": "weather", "args": ARGUMENTS}]
    traced(
        path,
        ("llm_call", {"model": "claude-sonnet-4-5", "prompt": PROMPT, "content": "Let me look.", "tool_calls": calls}),
        ("tool_result", {"tool_use_id": "t1", "output": {"degrees": 4}, "is_error": True}),
    )
    use = {"type": "tool_use", "id": "t1", "name": "weather", "input": ARGUMENTS}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": '{"degrees": 4}', "is_error": True}
    assert list(rewind.replay(path)) == [
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "content": [{"type": "text", "text": "Let me look."}, use]},
        {"role": "user", "content": [result]},
    ]


def test_a_prompt_told_with_every_call_is_asked_once_and_a_new_one_is_asked(path: Path) -> None:
    traced(
        path,
        ("llm_call", {"prompt": PROMPT, "content": "Where?"}),
        ("llm_call", {"prompt": PROMPT, "content": "I said where?"}),
        ("user", {"text": "Oslo"}),
        ("llm_call", {"content": ADVICE}),
        ("llm_call", {"prompt": "And gloves?", "content": "Yes."}),
    )
    told = [message["content"] for message in rewind.replay(path)]
    assert told == [PROMPT, "Where?", "I said where?", "Oslo", ADVICE, "And gloves?", "Yes."]


def test_results_of_one_turn_are_one_message_where_the_api_wants_that(path: Path) -> None:
    calls = [{"id": f"t{n}", "name": "weather", "args": {"n": n}} for n in (1, 2)]
    for model, count in (("claude-sonnet-4-5", 2), ("gemini-2.5-flash", 2), ("gpt-5-mini", 3)):
        steps: list[Any] = [("llm_call", {"model": model, "tool_calls": calls})]
        steps += [("tool_result", {"id": call["id"], "output": "ok"}) for call in calls]
        assert len(rewind.replay(traced(path, *steps))) == count


def test_results_without_ids_go_to_the_calls_in_order(path: Path) -> None:
    calls = [{"id": f"t{n}", "name": name, "args": {}} for n, name in enumerate(("a", "b", "a"))]
    steps: list[Any] = [("llm_call", {"tool_calls": calls})]
    steps += [("tool_result", {"name": name, "output": text}) for name, text in (("b", "1"), ("a", "2"), ("a", "3"))]
    told = rewind.replay(traced(path, *steps))
    assert [(one["tool_call_id"], one["content"]) for one in told[1:]] == [("t1", "1"), ("t0", "2"), ("t2", "3")]


def test_a_result_that_nobody_asked_for_is_kept_and_told(path: Path) -> None:
    told = rewind.replay(traced(path, ("llm_call", {"content": "hm"}), ("tool_result", {"id": "x", "output": "y"})))
    assert told[-1] == {"role": "tool", "tool_call_id": "x", "content": "y"}
    assert any("no recorded answer asked for" in remark for remark in told.remarks)


def test_agents_that_share_a_trace_keep_their_conversations_apart(path: Path) -> None:
    traced(
        path,
        ("llm_call", {"agent": "boss", "prompt": "Plan.", "response": chat_asks()}),
        ("llm_call", {"agent": "helper", "prompt": "Help.", "content": "Done."}),
        ("tool_result", {"id": "call_1", "output": SNOW}),
        ("llm_call", {"agent": "boss", "content": ADVICE}),
    )
    told = rewind.replay(path)
    assert [message["role"] for message in told] == ["user", "assistant", "tool", "assistant"]
    assert told[0]["content"] == "Plan." and any("2 conversations" in remark for remark in told.remarks)
    assert rewind.replay(path, 2)[0]["content"] == "Help."


def test_a_responses_call_that_goes_on_from_another_adds_to_it(path: Path) -> None:
    brought = {"type": "function_call_output", "call_id": "call_1", "output": SNOW}
    traced(
        path,
        ("llm_call", {"input": PROMPT, "response": response_asks()}),
        ("llm_call", {"input": [brought], "previous_response_id": "resp_1", "response": response_says()}),
    )
    told = rewind.replay(path)
    assert [one.get("type", one.get("role")) for one in told] == [
        "user",
        "function_call",
        "function_call_output",
        "message",
    ]
    assert any("thinking left out" in remark for remark in told.remarks)


def test_a_long_output_is_replayed_whole_or_told_to_be_short(path: Path) -> None:
    output = "line\n" * 10_000
    traced(path, ("llm_call", {"response": chat_asks()}), ("tool_result", {"id": "call_1", "output": output}))
    assert rewind.replay(path)[-1]["content"] == output
    (blob,) = Path(f"{path}.blobs").iterdir()
    blob.write_text("something else")
    told = rewind.replay(path)
    assert told[-1]["content"] == output[:4096]
    assert any("only its beginning" in remark for remark in told.remarks)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("other", APIS)
def test_a_trace_can_be_told_to_any_other_api(path: Path, api: str, other: str) -> None:
    told = rewind.replay(record(path, api), as_=other)
    assert told.api == other
    assert len(told) >= 4 and ADVICE in json.dumps(told) and SNOW in json.dumps(told)
    assert SYSTEM in json.dumps([told, told.system])


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_damaged_lines_count_and_are_told(path: Path) -> None:
    record(path, "openai")
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + b"\xff garbage\n" + b"".join(rest) + b'{"kind":"torn')
    told = rewind.replay(path, 3)
    assert list(told) == EXPECTED["openai"][:3]
    assert told.remarks[0].startswith("line 2: not JSON") and "line 8: unfinished" in told.remarks[1]


def test_a_whole_line_behind_a_torn_one_is_read(path: Path) -> None:
    record(path, "openai")
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + b'{"kind":"tool_result","ts":1,"output":"' + b"".join(rest))
    told = rewind.replay(path)
    assert list(told) == EXPECTED["openai"]
    assert told.remarks[0].endswith("what follows it is whole")


@pytest.mark.parametrize("n", [-1, 1.5, "3", True])
def test_a_number_that_counts_nothing_is_refused(path: Path, n: Any) -> None:
    with pytest.raises(UsageError, match="not a number of entries"):
        rewind.replay(record(path, "openai"), n)


def test_more_entries_than_there_are_is_all_of_them_and_told(path: Path) -> None:
    told = rewind.replay(record(path, "openai"), 99)
    assert list(told) == EXPECTED["openai"] and "the trace has only 6 entries" in told.remarks


def test_what_is_not_there_or_no_trace_is_named(path: Path) -> None:
    with pytest.raises(SessionNotFound, match="no trace"):
        rewind.replay(path)
    for content in (b"", b"hello\n", b"[1]\n", b'{"a":1}\n', b"\0" * 100):
        path.write_bytes(content)
        with pytest.raises(BadCassette, match="is not a trace"):
            rewind.replay(path)
    with pytest.raises(BadCassette, match="is not a file"):
        rewind.replay(path.parent)
    with pytest.raises(UsageError, match="cannot be written for"):
        rewind.replay(record(path.with_name("b.jsonl"), "openai"), as_="cobol")


def test_the_last_run_is_told_and_any_other_by_its_id(path: Path) -> None:
    for run, text in (("one", "first"), ("two", "second")):
        with Trace(path, run=run) as trace:
            trace.step("llm_call", content=text)
    assert rewind.replay(path)[0]["content"] == "second"
    assert "the trace has 2 runs; this is two" in rewind.replay(path).remarks
    assert rewind.replay(path, run="one")[0]["content"] == "first"
    with pytest.raises(SessionNotFound, match="has no run 'three'"):
        rewind.replay(path, run="three")


def test_what_is_no_path_is_looked_for_among_the_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REWIND_HOME", str(tmp_path / "store"))
    with pytest.raises(RewindError, match="No session is called 'last'"):
        rewind.replay("last", 2)


def test_every_api_has_ids_and_answers_here() -> None:
    assert set(APIS) == set(ASKS) == set(SAYS) == set(IDS)
