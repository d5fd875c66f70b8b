"""Which requests are the same, and which are not."""

from typing import Any

import pytest

from rewind.errors import UsageError
from rewind.match.call import host_class, understand
from rewind.wire.encoding import encode
from support.exchanges import request_of


def key(body: Any = b"", *, ignore: tuple[str, ...] = (), **more: Any) -> str:
    return understand(request_of(body, **more), ignore=ignore).key


def chat_with_tools(first: str, second: str, *, answers: tuple[str, str]) -> dict[str, Any]:
    calls = [
        {"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}} for name in (first, second)
    ]
    results = [{"role": "tool", "tool_call_id": name, "content": "ok"} for name in answers]
    return {"model": "m", "messages": [{"role": "assistant", "tool_calls": calls}, *results]}


def test_a_key_names_its_rule() -> None:
    assert key({"a": 1}).startswith("rw1:")
    assert len(key({"a": 1})) == 36


def test_key_order_and_spacing_do_not_count() -> None:
    assert key(b'{"a":1,"b":[{"c":2,"d":3}]}') == key(b'{ "b": [ {"d": 3, "c": 2} ],\n "a": 1 }')
    assert key(b'{"a":"\\u00e9"}') == key('{"a":"é"}'.encode())


@pytest.mark.parametrize(
    "other",
    [
        b'{"a":2}',
        b'{"a":"1"}',
        b'{"a":true}',
        b'{"a":null}',
        b'{"a":[1]}',
        b'{"b":1}',
        b'{"a":1,"b":1}',
        b'{"a":1.5}',
        b"",
        b"a=1",
    ],
)
def test_another_body_is_another_request(other: bytes) -> None:
    assert key(b'{"a":1}') != key(other)


def test_the_order_of_messages_counts() -> None:
    one, two = {"role": "user", "content": "one"}, {"role": "user", "content": "two"}
    assert key({"messages": [one, two]}) != key({"messages": [two, one]})


def test_tool_call_ids_may_be_drawn_anew() -> None:
    recorded = chat_with_tools("call_a", "call_b", answers=("call_a", "call_b"))
    assert key(recorded) == key(chat_with_tools("x1", "x2", answers=("x1", "x2")))


def test_a_result_attached_to_another_call_is_another_request() -> None:
    recorded = chat_with_tools("call_a", "call_b", answers=("call_a", "call_b"))
    assert key(recorded) != key(chat_with_tools("call_a", "call_b", answers=("call_b", "call_a")))
    assert key(recorded) != key(chat_with_tools("call_a", "call_a", answers=("call_a", "call_a")))


def test_the_ids_of_every_api_may_be_drawn_anew() -> None:
    def anthropic(name: str) -> dict[str, Any]:
        use = {"type": "tool_use", "id": name, "name": "f", "input": {"id": "order-1"}}
        return {"messages": [{"content": [use]}, {"content": [{"type": "tool_result", "tool_use_id": name}]}]}

    def responses(name: str) -> dict[str, Any]:
        call = {"type": "function_call", "id": "fc" + name, "call_id": name}
        return {"input": [call, {"type": "function_call_output", "call_id": name}], "previous_response_id": "r" + name}

    def gemini(name: str) -> dict[str, Any]:
        parts = [{"functionCall": {"id": name, "name": "f"}}, {"functionResponse": {"id": name}}]
        return {"contents": [{"parts": parts}]}

    def bedrock(name: str) -> dict[str, Any]:
        blocks = [{"toolUse": {"toolUseId": name}}, {"toolResult": {"toolUseId": name}}]
        return {"messages": [{"content": blocks}]}

    for target, body in {
        "/v1/messages": anthropic,
        "/v1/responses": responses,
        "/v1beta/models/g:generateContent": gemini,
        "/model/m/converse": bedrock,
    }.items():
        assert key(body("one"), target=target) == key(body("two"), target=target), target


def test_the_arguments_of_a_tool_call_count_also_where_they_are_called_id() -> None:
    def asked(order: str) -> dict[str, Any]:
        return {"messages": [{"content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"id": order}}]}]}

    assert key(asked("1"), target="/v1/messages") != key(asked("2"), target="/v1/messages")


def test_whether_there_was_an_earlier_answer_counts_but_not_its_name() -> None:
    def turn(**more: str) -> str:
        return key({"input": "go on", **more}, target="/v1/responses")

    assert turn(previous_response_id="resp_1") == turn(previous_response_id="resp_2") != turn()


def test_noise_for_caches_and_dashboards_does_not_count_and_may_be_absent() -> None:
    plain = {"model": "m", "messages": []}
    noisy = {**plain, "prompt_cache_key": "x", "safety_identifier": "y", "metadata": {"trace_id": "z"}}
    assert key(plain) == key(noisy)
    assert key(plain) != key({**plain, "user": "u"})
    one, two = ({"model": "m", "metadata": {"user_id": name}} for name in "ab")
    assert (
        key(one, target="/v1/messages") == key(two, target="/v1/messages") == key({"model": "m"}, target="/v1/messages")
    )


def test_the_user_can_ignore_fields_of_body_query_and_form() -> None:
    one = {"messages": [{"content": "a", "timestamp": 1}], "trace": {"id": "x"}}
    two = {"messages": [{"content": "a", "timestamp": 2}]}
    assert key(one) != key(two)
    assert key(one, ignore=("messages[*].timestamp", "trace")) == key(two, ignore=("messages[].timestamp", "trace.id"))
    assert key(target="/x?a=1&t=5", ignore=("?t",)) == key(target="/x?a=1", ignore=("?t",))
    form = "application/x-www-form-urlencoded"
    assert key(b"a=1&t=2", media=form, ignore=("t",)) == key(b"t=3&a=1", media=form, ignore=("t",))


def test_ignoring_every_field_leaves_an_empty_body_and_no_error() -> None:
    assert key({"a": 1}, ignore=("a",)) == key({})
    assert key([1, 2], ignore=("[*]",)) == key([])


def test_an_ignore_path_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(UsageError, match="not a path"):
        key({}, ignore=("a[",))


def test_redacted_secrets_of_any_length_are_the_same() -> None:
    assert key({"a": "key REDACTEDxxxxxxxx."}) == key({"a": "key REDACTED."})
    assert key({"a": "REDACTEDxx"}) != key({"a": "other"})
    assert key(target="/bot/REDACTEDxxxx/send?t=REDACTEDx") == key(target="/bot/REDACTED/send?t=REDACTED")
    assert key(b"\xff REDACTEDxx", media="x/y") == key(b"\xff REDACTED", media="x/y")


def test_credentials_in_the_query_do_not_count_and_the_order_of_parameters_neither() -> None:
    assert key(target="/x?key=secret&a=1&b=2") == key(target="/x?b=2&a=1") != key(target="/x?a=1&b=3")


def test_headers_do_not_count() -> None:
    assert key({"a": 1}, headers=(("Authorization", "one"), ("x-request-id", "1"))) == key({"a": 1})


def test_method_host_and_path_count() -> None:
    keys = {key({}), key({}, method="PUT"), key({}, host="api.groq.com"), key({}, target="/v1/completions")}
    assert len(keys) == 4


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]", "0.0.0.0", "host.docker.internal", "api.localhost"),
        *("10.0.0.7", "172.16.3.4", "192.168.1.20", "fd00::1", "::ffff:192.168.1.1", "LOCALHOST", "localhost."),
    ],
)
def test_this_machine_and_its_network_are_one_host_whatever_their_address_and_port(host: str) -> None:
    assert host_class(host) == "local"
    assert key({}, host=host, port=1234) == key({}, host="localhost", port=8000)


@pytest.mark.parametrize("host", ["api.openai.com", "8.8.8.8", "172.32.0.1", "2606:4700::1111", "localhost.evil.com"])
def test_other_hosts_keep_their_name(host: str) -> None:
    assert host_class(host) == host


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate"])
def test_a_compressed_body_is_the_same_as_a_plain_one(coding: str) -> None:
    body = b'{"a": 1, "b": 2}'
    assert key(encode(body, coding), headers=(("content-encoding", coding),)) == key(b'{"b":2,"a":1}')


def test_a_body_that_cannot_be_decoded_is_compared_as_bytes() -> None:
    coded = (("content-encoding", "gzip"),)
    assert key(b"no gzip", headers=coded) == key(b"no gzip", headers=coded) != key(b"no gzip!", headers=coded)


def multipart(boundary: str, content: bytes) -> bytes:
    edge = boundary.encode()
    return (
        b"--" + edge + b'\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n'
        b"Content-Type: text/plain\r\n\r\n" + content + b"\r\n--" + edge + b"--\r\n"
    )


def test_the_boundary_of_a_multipart_body_does_not_count() -> None:
    def upload(boundary: str, content: bytes, quote: str = "") -> str:
        return key(
            multipart(boundary, content),
            target="/v1/files",
            media=f"multipart/form-data; boundary={quote}{boundary}{quote}",
        )

    assert upload("abc", b"data") == upload("XYZ123", b"data", '"') != upload("abc", b"other")
    assert upload("abc", b"\xff\xfe") != upload("abc", b"\xff\xfd")


@pytest.mark.parametrize(
    "odd",
    [
        b'{"a": ' * 100_000,
        b"[" * 5000 + b"]" * 5000,
        b'{"n": ' + b"9" * 5000 + b"}",
        b'{"a": NaN}',
        b'{"a": "\\ud800"}',
        b'{"a": "\xed\xa0\x80"}',
        b'{"a"',
        b"\xff\xfe{",
        b"\xef\xbb\xbf{}",
        b"   ",
    ],
)
def test_odd_bodies_have_keys_too(odd: bytes) -> None:
    assert key(odd) == key(odd)
    assert key(odd) != key(odd + b"?")


def test_the_form_does_not_depend_on_how_deep_the_caller_stands() -> None:
    body = b"[" * 150 + b"]" * 150

    def deep(levels: int) -> str:
        return deep(levels - 1) if levels else key(body)

    assert deep(0) == deep(250)


def test_a_rule_for_one_element_adds_to_the_rule_for_every_element() -> None:
    def body(first: str, second: str, name: str = "x") -> dict[str, Any]:
        return {"messages": [{"content": first, "tool_call_id": name}, {"content": second, "tool_call_id": name}]}

    rule = ("messages[1].content",)
    assert key(body("a", "b"), ignore=rule) == key(body("a", "c", "y"), ignore=rule)
    assert key(body("a", "b"), ignore=rule) != key(body("c", "b"), ignore=rule)
    assert key({"a": {"b": 1, "c": 2}}, ignore=("a.*",)) == key({"a": {"d": 3}}, ignore=("a.*", "a.b.c"))
