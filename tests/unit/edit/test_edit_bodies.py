"""The body is written again as its author wrote it, and requests that cannot be edited say why."""

import json
from typing import Any

import pytest

from rewind.edit.apply import answer_for, edited
from rewind.edit.edits import SetResponse
from rewind.errors import CannotEdit, ExitCode
from rewind.wire.encoding import encode
from support.exchanges import request_of
from unit.edit.asking import ANTHROPIC, APIS, CHAT, OPENAI_CHAT, Api, document, edits

BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Grüße ✓"}], "n": 1.0, "a": []}


@pytest.mark.parametrize(
    "how",
    [
        {"separators": (",", ":"), "ensure_ascii": False},
        {"separators": (",", ":"), "ensure_ascii": True},
        {"separators": (", ", ": "), "ensure_ascii": False},
        {"separators": (", ", ": "), "ensure_ascii": True},
        {"indent": 2, "ensure_ascii": True},
        {"indent": 4, "ensure_ascii": False},
        {"indent": "\t", "ensure_ascii": False},
    ],
    ids=str,
)
def test_the_body_is_written_as_it_was(how: dict[str, Any]) -> None:
    request = request_of(json.dumps(BODY, **how).encode())
    after = edited(request, edits("seed=7"))
    assert after.body.decode() == json.dumps(BODY | {"seed": 7}, **how)


def test_the_order_of_fields_stays() -> None:
    body = {"zeta": 1, "temperature": 1, "alpha": 2, "messages": [], "model": "m"}
    after = edited(request_of(body), edits("temperature=0", "model=other"))
    assert list(document(after)) == ["zeta", "temperature", "alpha", "messages", "model"]


def test_a_text_that_no_writer_of_ours_wrote_keeps_its_looks() -> None:
    text = '{"model" : "m",\n"messages": [], "n": 1e2}'
    assert edited(request_of(text.encode()), edits("n=3")).body == b'{"model": "m", "messages": [], "n": 3}'


def test_half_a_surrogate_pair_is_written_as_the_escape_it_was() -> None:
    request = request_of(b'{"messages":[{"role":"user","content":"\\ud83d"}],"n":"\xc3\xa9"}')
    after = edited(request, edits("seed=7"))
    assert json.loads(after.body) == json.loads(request.body) | {"seed": 7}


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "gzip, br"])
def test_a_compressed_body_is_unfolded_and_says_so_no_more(coding: str) -> None:
    raw = encode(json.dumps(BODY).encode(), coding)
    headers = (("Content-Encoding", coding), ("Content-Length", str(len(raw))), ("X-Own", "1"), ("Digest", "sha-256=…"))
    after = edited(request_of(raw, headers=headers), edits("seed=7"))
    assert document(after) == BODY | {"seed": 7}
    assert dict(after.head.headers) == {
        "Content-Type": "application/json",
        "Content-Length": str(len(after.body)),
        "X-Own": "1",
    }


def test_a_body_that_was_sent_in_chunks_gets_no_length() -> None:
    headers = (("transfer-encoding", "chunked"),)
    after = edited(request_of(BODY, headers=headers), edits("seed=7"))
    assert after.head.headers == (("Content-Type", "application/json"), *headers)


# ── what cannot be edited ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("target", "headers"),
    [
        ("/model/m/converse", ()),
        ("/model/m/invoke", ()),
        ("/v1/messages", (("X-Amz-Date", "20260101T000000Z"),)),
        ("/v1/messages", (("x-amz-content-sha256", "0"),)),
        ("/v1/messages", (("Authorization", "AWS4-HMAC-SHA256 Credential=…"),)),
    ],
)
def test_a_signed_request_is_not_changed(target: str, headers: tuple[tuple[str, str], ...]) -> None:
    request = request_of(ANTHROPIC, target=target, headers=headers)
    with pytest.raises(CannotEdit, match=r"signed by the agent \(AWS SigV4\) and a changed body") as refused:
        edited(request, edits("temperature=0"))
    assert refused.value.exit_code is ExitCode.USAGE
    assert "response=" in (refused.value.hint or "")


def test_the_answer_to_a_signed_request_can_be_made_up_since_nothing_is_sent() -> None:
    request = request_of({"messages": []}, target="/model/m/converse")
    (response,) = edits("response=Done.")
    assert isinstance(response, SetResponse)
    assert edited(request, [response]) is request
    assert b"Done." in answer_for(request, response).body


@pytest.mark.parametrize(
    "body", [b"", b"hello", b"[1]", b'"a"', b"\xff\xfe", b'{"a":', b"[" * 100_000], ids=lambda body: body[:8]
)
def test_a_body_that_is_no_json_object_is_not_changed(body: bytes) -> None:
    with pytest.raises(CannotEdit, match=r"is not (JSON|a JSON object)"):
        edited(request_of(body), edits("temperature=0"))


def test_a_body_that_cannot_be_unfolded_is_not_changed() -> None:
    request = request_of(b"not gzip", headers=(("content-encoding", "gzip"),))
    with pytest.raises(CannotEdit, match="cannot be decoded: damaged gzip"):
        edited(request, edits("temperature=0"))


@pytest.mark.parametrize("api", APIS, ids=str)
def test_a_message_that_is_not_there_is_named_with_those_that_are(api: Api) -> None:
    body = api.body.get("request", api.body)
    count = len(body.get("messages") or body.get("input") or body["contents"])
    for index in (count, 99, -count - 1):
        with pytest.raises(CannotEdit, match=rf"no messages\[{index}\]: they are 0 to {count - 1}"):
            edited(api.request(), edits(f"messages[{index}]=x"))


@pytest.mark.parametrize("api", APIS, ids=str)
def test_a_tool_that_brings_nothing_is_named_with_those_that_do(api: Api) -> None:
    with pytest.raises(CannotEdit, match="no new result of 'search'; it brings new results of: weather, clock"):
        edited(api.request(), edits("tool.search.result=x"))


def test_results_that_the_model_has_seen_before_are_not_new() -> None:
    turns = [*CHAT["messages"], {"role": "assistant", "content": "4 and 21."}, {"role": "user", "content": "Thanks"}]
    with pytest.raises(CannotEdit, match="no new results at all"):
        edited(request_of(CHAT | {"messages": turns}), edits("tool.weather.result=x"))


def test_several_results_in_one_message_are_not_one_text() -> None:
    with pytest.raises(CannotEdit, match="2 results") as refused:
        edited(request_of(ANTHROPIC, target="/v1/messages"), edits("messages[2]=x"))
    assert refused.value.hint == "tool.NAME.result=VALUE"


@pytest.mark.parametrize(
    ("body", "target", "edit", "why"),
    [
        ({"messages": 3}, "/v1/chat/completions", "system=x", "messages of the request is not a list"),
        ({"messages": [3]}, "/v1/chat/completions", "messages[0]=x", "not a JSON object"),
        ({"messages": []}, "/v1/chat/completions", "messages[0]=x", "it has none"),
        ({"a": 1}, "/v1/chat/completions", "a.b=1", "a of the request is not an object"),
        ({"prompt": "a"}, "/v1/completions", "system=x", "takes no system prompt"),
        ({"input": ["a"]}, "/v1/embeddings", "messages[0]=x", "no messages"),
        ({"q": 1}, "/search", "system=x", "takes no system prompt"),
        ({"q": 1}, "/search", "model=x", "does not name a model"),
        ({"contents": []}, "/v1beta/models/m:generateContent", "model=a/b", "cannot stand"),
        (
            {"input": [{"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}]},
            "/v1/responses",
            "messages[0]=x",
            "a function_call, which has no text",
        ),
        (
            {"input": [{"type": "computer_call_output", "call_id": "a", "output": {"type": "x"}}]},
            "/v1/responses",
            "messages[0]=x",
            "is not a text",
        ),
    ],
)
def test_what_has_no_place_is_refused_with_the_reason(body: Any, target: str, edit: str, why: str) -> None:
    with pytest.raises(CannotEdit, match=why):
        edited(request_of(body, target=target), edits(edit))


def test_a_reference_that_nobody_looked_up_is_refused() -> None:
    with pytest.raises(Exception, match="@7f3a:4 has not been looked up"):
        edited(OPENAI_CHAT.request(), edits("system=@7f3a:4"))
