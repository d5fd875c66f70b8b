"""OpenAI Chat Completions and its many speakers: what is asked, and what is answered whole and in deltas."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from rewind.model.http import HttpResponse
from rewind.model.message import (
    Answered,
    Asked,
    Media,
    Message,
    Other,
    Part,
    Refusal,
    Role,
    Text,
    Thinking,
    ToolDefinition,
    ToolResult,
    ToolUse,
)
from rewind.model.usage import Usage
from rewind.providers.openai_chat.read import OpenAIChatReader
from support.exchanges import answer_with, request_of, stream_of

CHAT = OpenAIChatReader()
REQUEST = request_of({"model": "gpt-x"})


def asked(*messages: Any, **more: Any) -> Asked:
    return CHAT.asked(request_of({"model": "gpt-x", "messages": list(messages), **more}))


def answered(response: HttpResponse) -> Answered:
    return CHAT.answered(REQUEST, response)


def whole(message: Any, **more: Any) -> Answered:
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return answered(answer_with({"id": "c1", "model": "gpt-x-1", "choices": [choice], **more}))


def streamed(*deltas: Any, **more: Any) -> Answered:
    def chunk(**choice: Any) -> Any:
        return {"id": "c1", "model": "gpt-x-1", "choices": [{"index": 0, **choice}]}

    return answered(
        stream_of(
            chunk(delta={"role": "assistant", "content": ""}, finish_reason=None),
            *(chunk(delta=delta, finish_reason=None) for delta in deltas),
            chunk(delta={}, finish_reason="stop"),
            {"id": "c1", "model": "gpt-x-1", "choices": [], **more},
            end=b"data: [DONE]\n\n",
        )
    )


def cut(text: str) -> Iterator[str]:
    return (text[start : start + 3] for start in range(0, len(text), 3))


def call(name: str, arguments: str, *, named: str = "", **more: Any) -> Any:
    return {"id": named, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def parts_asked(content: Any) -> tuple[Part, ...]:
    return asked({"role": "user", "content": content}).messages[0].parts


# ── what is asked ────────────────────────────────────────────────────────────────────────────────────────────


def test_leading_instructions_are_the_system_and_later_ones_stay_in_the_conversation() -> None:
    read = asked(
        {"role": "system", "content": "Be kind."},
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": "Hi", "name": "Ada"},
        {"role": "system", "content": "The user left."},
    )
    assert read.system == (Text("Be kind."), Text("Be brief."))
    assert read.messages == (Message(Role.USER, (Text("Hi"),), "Ada"), Message(Role.SYSTEM, (Text("The user left."),)))


def test_a_tool_call_its_result_and_the_legacy_pair() -> None:
    read = asked(
        {"role": "assistant", "content": None, "tool_calls": [call("look", '{"a":1}', named="t1")]},
        {"role": "tool", "tool_call_id": "t1", "content": "found"},
        {"role": "assistant", "content": "Hm.", "function_call": {"name": "old", "arguments": "{}"}},
        {"role": "function", "name": "old", "content": "done"},
    )
    assert read.messages == (
        Message(Role.ASSISTANT, (ToolUse("t1", "look", {"a": 1}),)),
        Message(Role.TOOL, (ToolResult("t1", (Text("found"),)),)),
        Message(Role.ASSISTANT, (Text("Hm."), ToolUse("", "old", {}))),
        Message(Role.TOOL, (ToolResult("", (Text("done"),), name="old"),)),
    )


def test_pictures_sounds_films_and_files_are_told_and_not_copied() -> None:
    data = base64.b64encode(b"12345678").decode()
    picture, linked, mistral, sound, film, document, filed = parts_asked(
        [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
            {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
            {"type": "image_url", "image_url": "https://a.example/c.png"},
            {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
            {"type": "video_url", "video_url": {"url": "https://a.example/d.mp4"}},
            {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{data}", "filename": "x"}},
            {"type": "file", "file": {"file_id": "file-1"}},
        ]
    )
    assert isinstance(picture, Media) and (picture.kind, picture.media_type, picture.size) == ("image", "image/png", 8)
    assert linked == Media("image", "", "https://a.example/b.png")
    assert mistral == Media("image", "", "https://a.example/c.png")
    assert isinstance(sound, Media) and (sound.kind, sound.media_type, sound.size) == ("audio", "audio/wav", 8)
    assert film == Media("video", "", "https://a.example/d.mp4")
    assert isinstance(document, Media) and (document.kind, document.media_type) == ("document", "application/pdf")
    assert filed == Media("file", "", "file-1")


def test_other_ways_to_send_sounds_and_files() -> None:
    raw, filed, linked, empty = (
        {"type": "file", "file": {"file_data": "QUJD"}},
        {"type": "file", "file_id": "file-1"},
        {"type": "input_audio", "input_audio": "https://a.example/b.mp3"},
        {"type": "text", "text": ""},
    )
    assert [(part.kind, part.size) for part in parts_asked([raw]) if isinstance(part, Media)] == [("file", 3)]
    assert parts_asked([filed]) == (Media("file", "", "file-1"),)
    assert parts_asked([linked]) == (Media("audio", "", "https://a.example/b.mp3"),)
    assert parts_asked([empty]) == ()


def test_a_part_that_is_not_known_is_kept_whole() -> None:
    assert parts_asked([{"type": "hologram", "depth": 3}]) == (Other("hologram", {"type": "hologram", "depth": 3}),)
    assert parts_asked(["plain", 5]) == (Text("plain"), Other("", 5))


def test_tools_of_all_sorts() -> None:
    read = asked(
        tools=[
            {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"a": 1}}},
            {"type": "custom", "custom": {"name": "c", "description": "e", "format": {"type": "text"}}},
            {"type": "function", "name": "flat", "description": "d", "parameters": {}},
            {"type": "browser_search", "depth": 2},
        ],
        functions=[{"name": "old", "parameters": {}}],
    )
    assert read.tools == (
        ToolDefinition("f", "d", {"a": 1}),
        ToolDefinition("c", "e", {"type": "text"}),
        ToolDefinition("flat", "d", {}),
        ToolDefinition("browser_search", "", {"depth": 2}, hosted=True),
        ToolDefinition("old", "", {}),
    )


def test_all_else_that_was_set_is_a_parameter() -> None:
    read = asked(stream=True, temperature=0, n=2, seed=None, tool_choice="auto")
    assert (read.streamed, read.model) == (True, "gpt-x")
    assert read.parameters == {"temperature": 0, "n": 2, "tool_choice": "auto"}


def test_an_azure_deployment_is_the_model_where_the_body_names_none() -> None:
    target = "/openai/deployments/my-gpt/chat/completions"
    assert CHAT.asked(request_of({}, target=target)).model == "my-gpt"
    assert CHAT.asked(request_of({"model": "gpt-x"}, target=target)).model == "gpt-x"


@pytest.mark.parametrize(
    ("prompt", "parts"),
    [
        ("Once", [(Text("Once"),)]),
        (["a", "b"], [(Text("a"),), (Text("b"),)]),
        ([5, 6, 7], [(Other("tokens", 3),)]),
        ([[5, 6], [7]], [(Other("tokens", 2),), (Other("tokens", 1),)]),
    ],
)
def test_prompts_of_legacy_completions_are_the_users(prompt: Any, parts: Any) -> None:
    read = CHAT.asked(request_of({"prompt": prompt}, target="/v1/completions"))
    assert read.messages == tuple(Message(Role.USER, one) for one in parts)


def test_a_damaged_request_is_told_by_a_note() -> None:
    assert CHAT.asked(request_of(b'{"messages": [')).note == "the request is damaged or not JSON"


# ── what is answered ─────────────────────────────────────────────────────────────────────────────────────────

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 50,
    "total_tokens": 150,
    "prompt_tokens_details": {"cached_tokens": 60, "audio_tokens": 7},
    "completion_tokens_details": {"reasoning_tokens": 20, "audio_tokens": 9},
}


def test_a_stream_and_its_whole_twin_read_the_same() -> None:
    message = {
        "role": "assistant",
        "content": "Let me see.",
        "refusal": None,
        "reasoning_content": "The user asks.",
        "tool_calls": [call("look", '{"a": 1}', named="t1"), call("find", '{"b": [2]}', named="t2")],
    }
    read = whole(message, usage=USAGE, service_tier="flex")
    twin = streamed(
        *({"reasoning_content": piece} for piece in cut("The user asks.")),
        *({"content": piece} for piece in cut("Let me see.")),
        {"tool_calls": [call("look", "", named="t1", index=0)]},
        {"tool_calls": [call("find", "", named="t2", index=1)]},
        *(
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for index, arguments in enumerate(('{"a": 1}', '{"b": [2]}'))
            for piece in cut(arguments)
        ),
        usage=USAGE,
        service_tier="flex",
    )
    assert read == twin
    assert read == Answered(
        id="c1",
        model="gpt-x-1",
        parts=(
            Thinking("The user asks."),
            Text("Let me see."),
            ToolUse("t1", "look", {"a": 1}),
            ToolUse("t2", "find", {"b": [2]}),
        ),
        stop="stop",
        usage=Usage(
            input=100,
            output=50,
            cache_read=60,
            reasoning=20,
            more={"input_audio_tokens": 7, "output_audio_tokens": 9},
            tier="flex",
        ),
    )


def test_parts_keep_their_order_whatever_the_order_of_the_stream() -> None:
    read = streamed({"tool_calls": [call("f", "{}", named="t", index=0)]}, {"content": "Hi"}, {"reasoning": "Hm"})
    assert [type(part) for part in read.parts] == [Thinking, Text, ToolUse]


def test_an_answer_is_found_again_where_the_agent_sends_it_on() -> None:
    message = {
        "role": "assistant",
        "content": [{"type": "text", "text": "Let "}, {"type": "text", "text": "me."}],
        "reasoning": "Hm",
        "tool_calls": [call("look", '{"a":1}', named="t1")],
    }
    assert asked(message).messages[0].parts == whole(message).parts


def test_several_choices_are_kept_apart() -> None:
    message = [{"index": n, "message": {"content": f"answer {n}"}} for n in range(3)]
    pieces = [
        {"choices": [{"index": n, "delta": {"content": text}}]}
        for words in (("answer ",) * 3, ("0", "1", "2"))
        for n, text in [(2, words[2]), (0, words[0]), (1, words[1])]
    ]
    read = answered(answer_with({"choices": message}))
    assert read == answered(stream_of(*pieces))
    assert (read.text, read.alternatives) == ("answer 0", ((Text("answer 1"),), (Text("answer 2"),)))


def test_the_first_choice_stays_the_answer_when_it_says_nothing() -> None:
    choices = [
        {"index": 0, "message": {"content": ""}, "finish_reason": "content_filter"},
        {"index": 1, "message": {"content": "second"}, "finish_reason": "stop"},
    ]
    read = answered(answer_with({"choices": choices}))
    assert (read.parts, read.alternatives, read.stop) == ((), ((Text("second"),),), "content_filter")
    begun = answered(stream_of({"choices": [{"index": 1, "delta": {"content": "second"}}]}))
    assert (begun.parts, begun.alternatives) == ((), ((Text("second"),),))
    silent = answered(stream_of({"choices": [{"index": 1, "delta": {}}]}))
    assert (silent.parts, silent.alternatives) == ((), ((),))


def test_tool_calls_without_numbers_are_told_apart_by_their_names() -> None:
    pieces = ({"name": "a", "arguments": "{"}, {"arguments": "}"}, {"name": "b", "arguments": "{}"})
    read = streamed(*({"tool_calls": [{"function": piece}]} for piece in pieces))
    assert read.tool_uses == (ToolUse("", "a", {}), ToolUse("", "b", {}))


def test_parallel_calls_that_all_have_the_same_number_are_told_apart_by_their_ids() -> None:
    read = streamed(
        {"tool_calls": [call("a", "{}", named="t1", index=0)]}, {"tool_calls": [call("a", "[]", named="t2", index=0)]}
    )
    assert read.tool_uses == (ToolUse("t1", "a", {}), ToolUse("t2", "a", []))


def test_a_name_and_an_id_that_every_delta_repeats_are_one_call() -> None:
    read = streamed(*({"tool_calls": [call("a", piece, named="t1", index=0)]} for piece in ('{"x"', ":1}")))
    assert read.tool_uses == (ToolUse("t1", "a", {"x": 1}),)


def test_a_custom_tool_takes_a_text_even_where_it_looks_like_json() -> None:
    tool = {"id": "t1", "type": "custom", "custom": {"name": "sql", "input": "12"}}
    read = whole({"content": None, "tool_calls": [tool]})
    pieces = ({"name": "sql", "input": ""}, {"input": "1"}, {"input": "2"})
    deltas = [
        {"tool_calls": [{"index": 0, "id": "t1" if "name" in piece else None, "custom": piece}]} for piece in pieces
    ]
    assert read == streamed(*deltas)
    assert read.tool_uses == (ToolUse("t1", "sql", "12"),)


def test_arguments_that_break_off_stay_a_text() -> None:
    assert streamed({"tool_calls": [call("f", '{"a": 1', index=0)]}).tool_uses == (ToolUse("", "f", '{"a": 1'),)


def test_a_legacy_function_call_in_deltas() -> None:
    read = streamed({"function_call": {"name": "f", "arguments": ""}}, {"function_call": {"arguments": '{"a":1}'}})
    assert read == whole({"content": None, "function_call": {"name": "f", "arguments": '{"a":1}'}})
    assert read.tool_uses == (ToolUse("", "f", {"a": 1}),)


def test_legacy_completions_whole_and_streamed() -> None:
    read = answered(answer_with({"choices": [{"index": 0, "text": "Once upon"}]}))
    assert read == answered(stream_of(*({"choices": [{"text": piece}]} for piece in cut("Once upon"))))
    assert read.text == "Once upon"


def test_a_refusal_is_told_from_a_text() -> None:
    read = whole({"content": None, "refusal": "I won't."})
    assert read.parts == (Refusal("I won't."),)
    assert read == streamed(*({"refusal": piece} for piece in cut("I won't.")))


def test_a_surrogate_pair_cut_between_two_deltas_is_joined() -> None:
    assert streamed({"content": "\ud83d"}, {"content": "\ude00"}).text == "😀"


def test_a_spoken_answer_is_its_transcript_and_its_sound() -> None:
    sound = bytes(range(10))
    read = whole(
        {"content": None, "audio": {"id": "a1", "data": base64.b64encode(sound).decode(), "transcript": "Hello"}}
    )
    twin = streamed(
        {"audio": {"id": "a1"}},
        {"audio": {"transcript": "Hel"}},
        *({"audio": {"data": base64.b64encode(piece).decode()}} for piece in (sound[:4], sound[4:])),
        {"audio": {"transcript": "lo"}},
    )
    assert read == twin
    assert read.text == "Hello"
    assert [(part.kind, part.size) for part in read.parts if isinstance(part, Media)] == [("audio", 10)]
    assert whole({"audio": {"id": "a1"}}).parts == (Media("audio", "", "a1"),)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_under_both_its_names(field: str) -> None:
    assert whole({"content": "Hi", field: "Hm"}).parts == (Thinking("Hm"), Text("Hi"))
    assert whole({"content": "Hi", "reasoning_content": "Hm", "reasoning": "Hm"}).parts[0] == Thinking("Hm")


def test_openrouter_tells_thinking_twice_and_seals_some() -> None:
    details = [{"type": "reasoning.text", "text": "Hm, ", "index": 0}, {"type": "reasoning.encrypted", "data": "x"}]
    read = whole({"content": "Hi", "reasoning": "Hm, ", "reasoning_details": details})
    assert read.parts[0] == Thinking("Hm, ", sealed=True)
    assert read == streamed(
        {"reasoning": "Hm, ", "reasoning_details": details[:1]}, {"reasoning_details": details[1:]}, {"content": "Hi"}
    )
    summary = [{"type": "reasoning.summary", "summary": "In short"}]
    assert whole({"reasoning_details": summary}).parts == (Thinking("In short"),)
    signed = [{"type": "reasoning.text", "text": "Hm", "signature": "s"}]
    assert whole({"reasoning_details": signed}).parts == (Thinking("Hm"),)


def test_thinking_that_is_signed_apart_and_litellms_blocks() -> None:
    signed = [{"type": "reasoning.text", "signature": "s"}]
    assert whole({"reasoning": "Hm", "reasoning_details": signed}).parts == (Thinking("Hm"),)
    assert whole({"content": "Hi", "reasoning_details": signed}).parts[0] == Thinking("", sealed=True)
    blocks = [{"type": "thinking", "thinking": "Hm", "signature": "s"}, {"type": "redacted_thinking", "data": "x"}]
    assert whole({"reasoning_content": "Hm", "thinking_blocks": blocks[:1]}).parts == (Thinking("Hm"),)
    assert whole({"thinking_blocks": blocks}).parts == (Thinking("Hm", sealed=True),)


def test_mistral_thinks_inside_the_content() -> None:
    def thinking(text: str) -> Any:
        return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}

    read = whole({"content": [thinking("Let me see."), {"type": "text", "text": "Four."}]})
    assert read.parts == (Thinking("Let me see."), Text("Four."))
    assert read == streamed(
        *({"content": [thinking(piece)]} for piece in cut("Let me see.")),
        *({"content": piece} for piece in cut("Four.")),
    )


def test_drawn_pictures_come_beside_the_content() -> None:
    drawn = {"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}
    read = whole({"content": "Here.", **drawn})
    assert read == streamed({"content": "Here."}, drawn)
    assert [type(part) for part in read.parts] == [Text, Media]


def test_a_message_told_beside_its_deltas_is_not_read_twice() -> None:
    pieces = [
        {"choices": [{"index": 0, "delta": {"content": new}, "message": {"content": so_far}}]}
        for new, so_far in (("One, ", "One, "), ("two.", "One, two."))
    ]
    assert answered(stream_of(*pieces)).text == "One, two."
    quiet = {"delta": {"role": "assistant", "content": ""}, "message": {"content": "One, two."}}
    assert answered(answer_with({"choices": [quiet]})).text == "One, two."


# ── usage ────────────────────────────────────────────────────────────────────────────────────────────────────


def usage(told: Any, **more: Any) -> Usage:
    return answered(answer_with({"choices": [], "usage": told, **more})).usage


def test_a_count_that_is_told_under_two_names_is_counted_once() -> None:
    told = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "prompt_cache_hit_tokens": 60,
        "prompt_tokens_details": {"cached_tokens": 60},
    }
    assert usage(told) == Usage(input=100, output=5, cache_read=60)
    assert usage({"prompt_tokens": 100, "prompt_cache_hit_tokens": 60}).cache_read == 60
    assert usage({"prompt_tokens": 100, "cached_tokens": 60}).cache_read == 60


def test_tokens_written_to_a_cache_pictures_and_searches() -> None:
    told = {
        "prompt_tokens": 100,
        "prompt_tokens_details": {"cache_write_tokens": 40, "image_tokens": 30, "audio_tokens": 0},
        "completion_tokens_details": {"image_tokens": 20},
        "server_tool_use": {"web_search_requests": 2},
    }
    assert usage(told) == Usage(
        input=100, cache_write=40, more={"input_image_tokens": 30, "output_image_tokens": 20, "web_searches": 2}
    )


def test_reasoning_that_only_the_total_has_is_added_to_the_output() -> None:
    details = {"reasoning_tokens": 300}
    told = {"prompt_tokens": 10, "completion_tokens": 2, "completion_tokens_details": details}
    assert usage({**told, "total_tokens": 312}) == Usage(input=10, output=302, reasoning=300)
    inside = {**told, "completion_tokens": 302, "total_tokens": 312}
    assert usage(inside) == Usage(input=10, output=302, reasoning=300)


def test_perplexity_counts_reasoning_and_citations_apart() -> None:
    told = {
        "prompt_tokens": 10,
        "completion_tokens": 20,
        "total_tokens": 30,
        "citation_tokens": 100,
        "reasoning_tokens": 1000,
        "num_search_queries": 3,
    }
    assert usage(told) == Usage(
        input=10, output=1120, reasoning=1000, more={"output_citation_tokens": 100, "web_searches": 3}
    )


def test_groq_and_moonshot_count_in_places_of_their_own() -> None:
    told = {"prompt_tokens": 8, "completion_tokens": 9}
    assert answered(stream_of({"choices": [], "x_groq": {"usage": told}})).usage == Usage(input=8, output=9)
    assert answered(stream_of({"choices": [{"index": 0, "delta": {}, "usage": told}]})).usage == Usage(
        input=8, output=9
    )


def test_the_usual_tier_is_not_told() -> None:
    assert usage({}, service_tier="default").tier == ""
    assert usage({}, service_tier="priority").tier == "priority"
    assert usage({"prompt_tokens": 1, "service_tier": "priority"}).tier == "priority"


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_error_inside_a_stream_keeps_what_came_before() -> None:
    read = answered(stream_of({"choices": [{"delta": {"content": "Well, "}}]}, {"error": {"message": "Overloaded"}}))
    assert (read.text, read.error) == ("Well, ", "Overloaded")


def test_an_error_inside_a_choice_is_told() -> None:
    choice = {"message": {"content": ""}, "finish_reason": "error", "error": {"message": "Upstream went away"}}
    assert answered(answer_with({"choices": [choice]})).error == "Upstream went away"


def test_a_stream_that_is_cut_is_read_as_far_as_it_came() -> None:
    read = answered(stream_of({"choices": [{"delta": {"content": "Once"}}]}, end=b'data: {"choi'))
    assert (read.text, read.stop, read.note) == ("Once", "", "the stream is cut inside an event")


@pytest.mark.parametrize(
    "document",
    [
        5,
        [],
        {"choices": 5},
        {"choices": [5, None, {"message": 5}, {"delta": [], "index": -1}]},
        {"choices": [{"message": {"content": {"a": 1}, "tool_calls": [5, {"function": 5}], "audio": 5}}]},
        {"choices": [{"delta": {"reasoning_details": [5], "images": [5], "function_call": 5}}], "usage": 5},
        {"usage": {"prompt_tokens": 1e300, "completion_tokens": "5", "prompt_tokens_details": []}},
    ],
)
def test_documents_of_any_shape_are_borne(document: Any) -> None:
    assert isinstance(answered(answer_with(json.dumps(document).encode())), Answered)
    assert isinstance(CHAT.asked(request_of(document)), Asked)
    assert isinstance(asked(document, tools=[document], prompt=document), Asked)


def test_a_refusal_has_the_shape_of_the_api_and_is_read_as_an_error() -> None:
    refusal = CHAT.refusal("Rewind: never recorded.")
    assert set(refusal["error"]) == {"message", "type", "param", "code"}
    assert answered(answer_with(refusal, status=400)).error == "Rewind: never recorded."
