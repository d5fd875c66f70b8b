"""VCR cassettes as vcrpy writes them, as it used to, and as its neighbours do."""

import base64
import gzip
import json
import sys
from typing import Any

import pytest
import yaml
from vcr.request import Request
from vcr.serialize import serialize
from vcr.serializers import jsonserializer, yamlserializer

from rewind.errors import BadCassette, EnvironmentProblem
from rewind.formats.exchanges import ForeignRecording
from rewind.formats.vcr import read_vcr
from rewind.formats.yaml_values import _base_loader
from rewind.model.http import HttpResponse
from rewind.wire.encoding import decode

URL = "https://api.openai.com/v1/chat/completions"
QUESTION = b'{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Gr\xc3\xbc\xc3\x9fe \xf0\x9f\x99\x82"}]}'
ANSWER = '{"choices":[{"message":{"content":"Grüße 🙂"}}]}'.encode()


def by_vcrpy(
    body: bytes | str = ANSWER, headers: dict[str, list[str]] | None = None, serializer: Any = yamlserializer
) -> bytes:
    """One interaction, written by vcrpy itself."""
    asked = Request("POST", URL, QUESTION, {"Content-Type": "application/json", "Authorization": "Bearer x"})
    answered = {
        "status": {"code": 200, "message": "OK"},
        "headers": {"Content-Type": ["application/json"]} if headers is None else headers,
        "body": {"string": body},
    }
    text: str = serialize({"requests": [asked], "responses": [answered]}, serializer)
    return text.encode()


def only(foreign: ForeignRecording) -> HttpResponse:
    assert len(foreign.exchanges) == 1
    response = foreign.exchanges[0].response
    assert response is not None
    return response


@pytest.mark.parametrize("serializer", [yamlserializer, jsonserializer], ids=["yaml", "json"])
def test_what_vcrpy_writes_comes_back_to_the_byte(serializer: Any) -> None:
    foreign = read_vcr(by_vcrpy(serializer=serializer))
    request = foreign.exchanges[0].request
    assert foreign.tool == "vcrpy"
    assert (request.head.method, request.head.url, request.body) == ("POST", URL, QUESTION)
    assert request.head.header("authorization") == "Bearer x", "redaction is not this room's business"
    response = only(foreign)
    assert (response.head.status, response.head.reason, response.body) == (200, "OK", ANSWER)
    assert response.head.header("content-length") == str(len(ANSWER)), "a replay needs a frame for the body"


def test_a_body_that_was_stored_compressed_stays_compressed() -> None:
    packed = gzip.compress(ANSWER)
    headers = {"Content-Encoding": ["gzip"], "Content-Length": [str(len(packed))]}
    foreign = read_vcr(by_vcrpy(packed, headers))
    assert b"!!binary" in by_vcrpy(packed, headers)
    response = only(foreign)
    assert response.body == packed
    assert response.head.header("content-encoding") == "gzip"
    assert not any("decoded" in remark for remark in foreign.remarks)


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate", "zstd"])
def test_a_body_that_was_stored_decoded_loses_the_header_that_says_otherwise(coding: str) -> None:
    foreign = read_vcr(by_vcrpy(ANSWER, {"Content-Encoding": [coding], "Content-Length": ["17"]}))
    response = only(foreign)
    assert response.body == ANSWER
    assert response.head.header("content-encoding") is None
    assert response.head.header("content-length") == str(len(ANSWER))
    assert any("stored decoded" in remark for remark in foreign.remarks)
    assert any("length" in remark for remark in foreign.remarks)


def test_a_number_that_reads_like_a_whole_brotli_stream_is_still_a_number() -> None:
    assert decode(b"7", "br") == b"", "or this test shows nothing"
    response = only(read_vcr(by_vcrpy(b"7", {"Content-Encoding": ["br"]})))
    assert response.body == b"7"
    assert response.head.header("content-encoding") is None


def test_a_stream_keeps_its_chunked_framing_though_the_body_is_whole() -> None:
    events = b'data: {"x":1}\n\ndata: [DONE]\n\n'
    headers = {"content-type": ["text/event-stream"], "transfer-encoding": ["chunked"], "content-length": ["3"]}
    response = only(read_vcr(by_vcrpy(events, headers)))
    assert response.body == events
    assert response.head.header("transfer-encoding") == "chunked"
    assert response.head.header("content-length") is None


def test_a_header_that_came_twice_comes_back_twice() -> None:
    response = only(read_vcr(by_vcrpy(headers={"X-Hint": ["one", "two"]})))
    assert [value for name, value in response.head.headers if name == "X-Hint"] == ["one", "two"]


def test_json_that_was_kept_parsed_is_written_anew_and_said_so() -> None:
    """As pydantic-ai's serialiser keeps it."""
    interaction = {
        "request": {
            "method": "POST",
            "uri": URL,
            "headers": {"content-type": ["application/json"]},
            "parsed_body": {"model": "m", "when": "2024-01-01", "temperature": 0.5, "text": "a\nb 🙂"},
        },
        "response": {
            "headers": {"content-type": ["application/json"], "content-length": ["2"]},
            "parsed_body": {"ok": True, "none": None, "list": [1, 2.5]},
            "status": {"code": 200, "message": "OK"},
        },
    }
    document = {"interactions": [interaction], "version": 1}
    foreign = read_vcr(yaml.safe_dump(document, allow_unicode=True).encode())
    assert json.loads(foreign.exchanges[0].request.body) == interaction["request"]["parsed_body"]  # type: ignore[index]
    assert json.loads(only(foreign).body) == {"ok": True, "none": None, "list": [1, 2.5]}
    assert any("parsed JSON" in remark for remark in foreign.remarks)


def test_an_unquoted_date_in_a_parsed_body_is_the_text_that_it_was() -> None:
    text = f"interactions:\n- request: {{method: GET, uri: {URL}, parsed_body: {{day: 2024-05-06}}}}\n"
    text += "  response: {status: {code: 204, message: no}, headers: {}, body: {string: ''}}\nversion: 1\n"
    assert read_vcr(text.encode()).exchanges[0].request.body == b'{"day": "2024-05-06"}'


def test_ruby_s_dialect_tells_when_and_keeps_bytes_in_base64() -> None:
    packed = gzip.compress(ANSWER)
    document = {
        "http_interactions": [
            {
                "request": {"method": "post", "uri": URL, "body": {"encoding": "UTF-8", "string": "{}"}},
                "response": {
                    "status": {"code": 200, "message": "OK"},
                    "headers": {"Content-Encoding": ["gzip"]},
                    "body": {"encoding": "ASCII-8BIT", "base64_string": base64.b64encode(packed).decode()},
                },
                "recorded_at": "Sun, 05 May 2024 10:00:00 GMT",
            }
        ],
        "recorded_with": "VCR 6.2.0",
    }
    foreign = read_vcr(yaml.safe_dump(document).encode())
    assert foreign.tool == "VCR"
    assert foreign.exchanges[0].request.head.method == "POST"
    assert foreign.exchanges[0].request.body == b"{}"
    assert foreign.exchanges[0].started == 1714903200.0
    assert only(foreign).body == packed


def test_a_cassette_from_before_version_1_is_a_list_with_the_url_in_parts() -> None:
    old = [
        {
            "request": {
                "method": "GET",
                "protocol": "http",
                "host": "localhost",
                "port": 8080,
                "path": "/v1/models?limit=2",
                "body": None,
                "headers": {"accept": "*/*"},
            },
            "response": {
                "status": {"code": 200, "message": "OK"},
                "headers": ["content-type: text/plain\r\n", "x-hint: a:b\r\n"],
                "body": {"string": "hi"},
            },
        }
    ]
    for data in (json.dumps(old).encode(), yaml.safe_dump(old).encode()):
        foreign = read_vcr(data)
        assert foreign.exchanges[0].request.head.url == "http://localhost:8080/v1/models?limit=2"
        assert only(foreign).head.header("x-hint") == "a:b"
        assert only(foreign).body == b"hi"


def test_what_vcrpy_s_httpx_stub_wrote_for_a_while_is_read() -> None:
    row = {
        "request": {"method": "GET", "uri": URL, "body": "", "headers": {"host": ["api.openai.com"]}},
        "response": {"status_code": 404, "http_version": "HTTP/1.1", "headers": {}, "content": "gone"},
    }
    response = only(read_vcr(yaml.safe_dump({"interactions": [row], "version": 1}).encode()))
    assert (response.head.status, response.body) == (404, b"gone")


def test_bodies_that_programs_gave_as_files_and_pieces_are_read_without_making_objects() -> None:
    text = f"""
interactions:
- request:
    body: !!python/object/new:_io.BytesIO
      state: !!python/tuple
      - !!binary |
        aGVsbG8=
      - 0
      - null
    headers: {{}}
    method: POST
    uri: {URL}
  response: {{status: {{code: 200, message: OK}}, headers: {{}}, body: {{string: !!python/unicode 'yes'}}}}
- request: {{body: [a, !!binary Yg==], headers: {{}}, method: POST, uri: '{URL}'}}
  response: {{status: {{code: 200, message: OK}}, headers: {{}}, body: {{string: ''}}}}
version: 1
"""
    first, second = read_vcr(text.encode()).exchanges
    assert first.request.body == b"hello"
    assert first.response is not None and first.response.body == b"yes"
    assert second.request.body == b"ab"


def test_headers_that_pyyaml_shares_by_an_alias_are_read() -> None:
    shared = {"X-Same": ["a", "b"]}
    rows = [
        {
            "request": {"method": "GET", "uri": URL, "body": None, "headers": shared},
            "response": {"status": {"code": 200, "message": "OK"}, "headers": shared, "body": {"string": "x"}},
        }
    ] * 3
    data = yaml.dump({"interactions": rows, "version": 1}).encode()
    assert b"*id001" in data, "or this test shows nothing"
    foreign = read_vcr(data)
    assert len(foreign.exchanges) == 3
    assert [value for _, value in foreign.exchanges[2].request.head.headers] == ["a", "b"]


def test_an_interaction_that_did_not_go_over_http_is_left_out_with_a_word() -> None:
    row = {
        "request": {"method": "GET", "uri": "file:///etc/passwd", "body": None, "headers": {}},
        "response": {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": "x"}},
    }
    foreign = read_vcr(json.dumps({"interactions": [row]}).encode())
    assert foreign.exchanges == ()
    assert foreign.remarks == ("an interaction was left out: file is not HTTP",)


def test_an_odd_header_cannot_smuggle_a_second_one_into_a_replay() -> None:
    headers = {"X-Fine": ["yes"], "X-Two": ["a\r\nSet-Cookie: b"], "X bad": ["c"], "X-Nul": ["d\0"]}
    foreign = read_vcr(by_vcrpy(headers=headers))
    kept = [pair for pair in only(foreign).head.headers if pair[0] != "Content-Length"]
    assert kept == [("X-Fine", "yes"), ("X-Two", "a"), ("X-Two", "Set-Cookie: b")]
    assert "a header that cannot be sent was left out (2 times)" in foreign.remarks


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("just words", "no list of interactions"),
        ("interactions: 3", "no list of interactions"),
        ("interactions: [3]", "Its interaction 1 has no request"),
        ("interactions: [{request: {}, response: {}}]", "Its interaction 1 cannot be read: the request has no URI"),
        (f"interactions: [{{request: {{uri: '{URL}'}}, response: {{}}}}]", "the response has no status"),
        (
            f"interactions: [{{request: {{uri: '{URL}'}}, response: {{status: {{code: 7}}}}}}]",
            "7 is not a valid status",
        ),
        ("interactions: [", "cannot be read as YAML: line 2: did not find"),
        ("\x00", "cannot be read as YAML"),
    ],
)
def test_what_is_no_cassette_is_told_in_one_sentence(text: str, says: str) -> None:
    with pytest.raises(BadCassette) as problem:
        read_vcr(text.encode())
    assert says in problem.value.message
    assert "\n" not in problem.value.message


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.system",
        "!!python/object/new:subprocess.Popen",
        "!!python/name:os.system",
        "!!python/module:os",
        "!!python/object:vcr.request.Request",
    ],
)
def test_a_file_that_asks_for_python_objects_is_refused_before_anything_is_built(tag: str) -> None:
    with pytest.raises(BadCassette, match="asks for a Python object") as problem:
        read_vcr(f"interactions:\n- request: {tag} ['true']\n".encode())
    assert problem.value.hint == "Delete the file, and record it again with the program that wrote it."


def test_an_unknown_tag_is_refused_too() -> None:
    with pytest.raises(BadCassette, match="unknown kind"):
        read_vcr(b"interactions: [!mystery 3]")


def test_ten_billion_laughs_are_refused_at_once() -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(BadCassette, match="more than 500,000 values"):
        read_vcr("\n".join([*lines, "interactions: *a9"]).encode())


def test_merged_tables_cannot_laugh_either() -> None:
    lines = ["a0: &a0 {" + ", ".join(f"k{n}: v" for n in range(10)) + "}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 9)]
    with pytest.raises(BadCassette, match="more than 500,000 values"):
        read_vcr("\n".join([*lines, "interactions: []"]).encode())


def test_an_alias_of_itself_is_refused() -> None:
    with pytest.raises(BadCassette, match="holds the alias itself"):
        read_vcr(b"interactions: &a [*a]")


@pytest.mark.parametrize(
    "text", ["- " * 100_000, "[" * 5_000, '{"a":' * 5_000, "interactions: " + "[" * 900 + "]" * 900]
)
def test_a_file_that_is_nested_without_end_is_refused_and_does_not_crash(text: str) -> None:
    with pytest.raises(BadCassette):
        read_vcr(text.encode())


def test_without_pyyaml_the_error_names_it_and_json_is_read_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    cassette, plain = by_vcrpy(serializer=jsonserializer), by_vcrpy()
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert len(read_vcr(cassette).exchanges) == 1
    with pytest.raises(EnvironmentProblem) as problem:
        read_vcr(plain)
    assert problem.value.message == "Reading YAML needs PyYAML."
    assert problem.value.hint in (
        f"{sys.executable} -m pip install pyyaml",
        f"uv pip install --python {sys.executable} pyyaml",
    ), "a command for the very interpreter that needs it"


def test_the_pure_python_loader_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    data = by_vcrpy(gzip.compress(ANSWER), {"Content-Encoding": ["gzip"]})
    fast = read_vcr(data)
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert _base_loader(yaml) is yaml.SafeLoader
    assert read_vcr(data) == fast


def test_what_a_program_gave_aiohttp_is_written_as_aiohttp_sends_it() -> None:
    """vcrpy's aiohttp stub keeps the values of ``json=`` and ``data=``."""
    cases = [
        ({"json": [1, None, "ü"]}, {}, b'{"json": [1, null, "\\u00fc"]}'),
        ([{"a": 1}], {}, b'[{"a": 1}]'),
        ({"a": "1 2", "b": ["x", "y"]}, {"content-type": "application/x-www-form-urlencoded"}, b"a=1+2&b=x&b=y"),
    ]
    for value, headers, sent in cases:
        asked = Request("POST", URL, value, headers)
        answered = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": b""}}
        text = serialize({"requests": [asked], "responses": [answered]}, yamlserializer)
        foreign = read_vcr(text.encode())
        assert foreign.exchanges[0].request.body == sent
        assert any("values it was made of" in remark for remark in foreign.remarks)
