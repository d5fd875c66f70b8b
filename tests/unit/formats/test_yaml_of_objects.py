"""Cassettes whose writers kept objects of Python or Ruby where a text was meant: read as what they hold, never made."""

import base64
import gzip
from collections import OrderedDict
from http import HTTPStatus
from io import BytesIO, StringIO
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, istr

from rewind.errors import BadCassette
from rewind.formats.vcr import read_vcr
from rewind.formats.yaml_values import read_yaml

URL = "https://api.openai.com/v1/chat/completions"


class CaselessStr(str):
    """A subclass as programs have them."""

    __slots__ = ()


class WireBytes(bytes):
    __slots__ = ()


def cassette(**request: Any) -> bytes:
    asked = {"method": "POST", "uri": URL, "body": "{}", "headers": {}, **request}
    answered = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": "yes"}}
    text: str = yaml.dump({"interactions": [{"request": asked, "response": answered}], "version": 1})
    return text.encode()


def test_names_of_headers_as_aiohttp_keeps_them_are_the_texts_they_are() -> None:
    data = cassette(headers={istr("Content-Type"): ["application/json"], istr("X-Two"): [istr("a"), "b"]})
    assert b"!!python/object/apply:multidict._multidict.istr" in data, "or this test shows nothing"
    older = data.replace(b"object/apply:multidict._multidict.istr", b"object/new:multidict._multidict_py.istr")
    for text in (data, older):
        head = read_vcr(text).exchanges[0].request.head
        assert head.headers == (("Content-Type", "application/json"), ("X-Two", "a"), ("X-Two", "b"))


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (CaselessStr("x"), "x"),
        (WireBytes(b"\xff"), b"\xff"),
        (bytearray(b"ab"), b"ab"),
        (("a", 1), ["a", 1]),
        (frozenset(["a"]), ["a"]),
        (OrderedDict(a=1, b="c"), {"a": 1, "b": "c"}),
        (CIMultiDict([("a", "1"), ("a", "2"), ("b", "3")]), {"a": ["1", "2"], "b": "3"}),
        (HTTPStatus.OK, 200),
        (BytesIO(b"abc"), b"abc"),
        (StringIO("abc"), "abc"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_an_object_of_a_known_kind_holds_is_read(value: Any, read: Any) -> None:
    text = yaml.dump([value])
    assert "!!python/" in text, "or this test shows nothing"
    assert read_yaml(text.encode()) == [read]


@pytest.mark.parametrize(
    "text",
    [
        "!!python/object/apply:os.system ['true']",
        "!!python/object/apply:builtins.eval ['1']",
        "!!python/object/new:subprocess.Popen ['true']",
        "!!python/object/new:type ['true']",
        "!!python/object/apply:multidict._multidict.istr [[1]]",
        "!!python/object/apply:multidict._multidict.istr {state: x}",
        "!!python/object/apply:multidict._multidict.istr []",
        "!!python/object/apply:collections.OrderedDict [1]",
        "!!python/object/new:_io.BytesIO [1]",
        "!!python/name:builtins.str ''",
        "!!python/module:io ''",
        "!!python/complex 1j",
    ],
)
def test_any_other_object_is_refused(text: str) -> None:
    with pytest.raises(BadCassette, match="asks for a Python object"):
        read_yaml(text.encode())


TEXT = st.text(st.characters(codec="utf-8"))
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(plain)
def test_plain_values_are_read_as_pyyaml_reads_them(value: Any) -> None:
    text = yaml.safe_dump(value, allow_unicode=True)
    assert read_yaml(text.encode()) == yaml.safe_load(text)


def test_a_table_that_is_merged_into_another_gives_way_to_its_own_keys() -> None:
    text = "base: &b {a: 1, b: 2}\nmore: &m {b: 5, c: 6}\none: {<<: *b, b: 3}\nboth: {<<: [*b, *m]}\n"
    read = read_yaml(text.encode())
    assert read["one"] == {"a": 1, "b": 3}
    assert read["both"] == {"a": 1, "b": 2, "c": 6}


# ── Ruby ─────────────────────────────────────────────────────────────────────────────────────────────────────

RUBY = """---
http_interactions:
- request:
    method: post
    uri: {uri}
    body:
      encoding: UTF-8
      string: '{{"model":"gpt-4o"}}'
    headers:
      Host:
      - {host}
      X-Safe:
      - !ruby/string:ActiveSupport::SafeBuffer 'plain'
  response:
    status:
      code: 200
      message: OK
    headers: !ruby/hash:ActiveSupport::HashWithIndifferentAccess
      Content-Encoding:
      - gzip
    body:
      encoding: ASCII-8BIT
      string: !binary |-
        {packed}
  recorded_at: Sun, 05 May 2024 10:00:00 GMT
recorded_with: VCR 6.2.0
"""


def ruby(uri: str = URL, host: str = "api.openai.com") -> bytes:
    packed = base64.b64encode(gzip.compress(b"hello", mtime=0)).decode()
    return RUBY.format(uri=f"'{uri}'", host=f"'{host}'", packed=packed).encode()


def test_bytes_and_classes_as_ruby_writes_them_are_read() -> None:
    foreign = read_vcr(ruby())
    (exchange,) = foreign.exchanges
    assert exchange.response is not None and exchange.response.body == gzip.compress(b"hello", mtime=0)
    assert exchange.request.head.header("x-safe") == "plain"


@pytest.mark.parametrize(
    ("uri", "host", "read"),
    [
        ("https://<HOST>/v1/chat/completions", "<HOST>", "https://host.invalid/v1/chat/completions"),
        ("<OPENAI_HOST>/v1/models?a=1", "<OPENAI_HOST>", "https://openai-host.invalid/v1/models?a=1"),
        ("http://<HOST>:8080/x", "<HOST>", "http://host.invalid:8080/x"),
        ("http://<HOST>:<PORT>/x", "<HOST>", "http://host.invalid/x"),
        ("https://{{HOST}}/x", "{{HOST}}", "https://host.invalid/x"),
        ("https://[FILTERED]/x", "[FILTERED]", "https://filtered.invalid/x"),
        ("https://****/x", "****", "https://host.invalid/x"),
        ("https://<KEY>@<HOST>/x", "<HOST>", "https://host.invalid/x"),
        ("https://<RESOURCE>.openai.azure.com/x", "<H>", "https://resource.openai.azure.com/x"),
        ("https://<HOST>/v1/models", "api.openai.com", "https://api.openai.com/v1/models"),
        ("https://<HOST>", "<HOST>", "https://host.invalid/"),
    ],
)
def test_a_placeholder_in_place_of_a_host_is_an_exchange_all_the_same(uri: str, host: str, read: str) -> None:
    foreign = read_vcr(ruby(uri, host))
    (exchange,) = foreign.exchanges
    assert exchange.request.head.url == read
    assert any("is the placeholder" in remark for remark in foreign.remarks)


def test_structs_of_vcr_before_version_2_are_read() -> None:
    text = """---
- !ruby/struct:VCR::HTTPInteraction
  request: !ruby/struct:VCR::Request
    method: :post
    uri: http://api.cohere.ai:80/generate
    body: '{"prompt":"a"}'
    headers:
      content-type:
      - application/json
  response: !ruby/struct:VCR::Response
    status: !ruby/struct:VCR::ResponseStatus
      code: 200
      message: OK
    headers: {}
    body: "yes"
    http_version: "1.1"
"""
    foreign = read_vcr(text.encode())
    (exchange,) = foreign.exchanges
    assert (foreign.tool, exchange.request.head.method) == ("VCR", "POST")
    assert exchange.response is not None and exchange.response.body == b"yes"


def test_an_unknown_object_of_ruby_is_refused() -> None:
    with pytest.raises(BadCassette, match="unknown kind"):
        read_vcr(b"http_interactions:\n- !ruby/object:Gem::Installer\n  i: x\n")
