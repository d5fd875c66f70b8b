"""Every real exchange is recognised and read."""

import base64
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from rewind.match.call import Call, understand
from rewind.match.nearest import RecordedCall, explain_miss
from rewind.model.http import Headers, HttpRequest, HttpResponse, RequestHead, ResponseHead
from rewind.model.step import Reading, StepKind

pytestmark = pytest.mark.traffic


@dataclass(frozen=True, slots=True)
class Exchange:
    cassette: str
    kind: str
    request: HttpRequest
    response: HttpResponse
    call: Call
    reading: Reading

    @property
    def url(self) -> str:
        return self.request.head.url


def body_of(stored: Any) -> bytes:
    if isinstance(stored, dict):
        return base64.b64decode(stored["base64"])
    return (stored or "").encode()


def headers_of(stored: dict[str, Any]) -> Headers:
    pairs = [(name, value if isinstance(value, list) else [value]) for name, value in stored.items()]
    return tuple((name, str(value)) for name, values in pairs for value in values)


def exchanges_in(folder: Path) -> Iterator[Exchange]:
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            asked, answered = row["request"], row["response"]
            url = urlsplit(asked["url"])
            head = RequestHead(
                method=asked["method"],
                scheme=url.scheme,
                host=url.hostname or "",
                port=url.port or 443,
                target=url.path + (f"?{url.query}" if url.query else ""),
                headers=headers_of(asked["headers"]),
            )
            request = HttpRequest(head=head, body=body_of(asked["body"]))
            status = ResponseHead(
                status=answered["status"], reason="", headers=headers_of(answered["headers"])
            )
            response = HttpResponse(head=status, body=body_of(answered["body"]), chunks=())
            call = understand(request)
            yield Exchange(
                row["cassette"], row["kind"], request, response, call, call.provider.read(request, response)
            )


@pytest.fixture(scope="module")
def exchanges(traffic: Path) -> list[Exchange]:
    return list(exchanges_in(traffic))


def test_all_exchanges_are_understood_and_read(exchanges: list[Exchange]) -> None:
    assert len(exchanges) == 606
    assert [exchange.url for exchange in exchanges if exchange.reading.note] == []


def test_every_llm_call_is_recognised_as_one(exchanges: list[Exchange]) -> None:
    llm = [exchange for exchange in exchanges if exchange.kind == "llm"]
    assert len(llm) == 546
    assert [exchange.url for exchange in llm if exchange.call.provider.kind is not StepKind.LLM_CALL] == []
    assert Counter(exchange.call.provider.name for exchange in llm) == {
        "anthropic": 167,
        "openai-responses": 133,
        "openai-chat": 120,
        "gemini": 99,
        "bedrock": 27,
    }


def test_of_the_rest_embeddings_alone_are_calls_to_a_model(exchanges: list[Exchange]) -> None:
    rest = [exchange for exchange in exchanges if exchange.kind != "llm"]
    wrong = [
        exchange.url
        for exchange in rest
        if (exchange.call.provider.kind is StepKind.LLM_CALL)
        # The set counts one token count made for an embedding among the embeddings.
        != (exchange.kind == "embedding" and not exchange.url.endswith(":countTokens"))
    ]
    assert wrong == []


def test_the_model_of_every_llm_call_is_known(exchanges: list[Exchange]) -> None:
    assert [
        exchange.url for exchange in exchanges if exchange.kind == "llm" and not exchange.reading.model
    ] == []


def test_tokens_are_found_wherever_an_answer_tells_them(exchanges: list[Exchange]) -> None:
    told = re.compile(
        rb'"(?:prompt_tokens|input_tokens|promptTokenCount|inputTokens)": ?[0-9]+'
        rb'.*"(?:completion_tokens|output_tokens|candidatesTokenCount|thoughtsTokenCount|outputTokens)": ?[0-9]+'
        rb'|"(?:completion_tokens|output_tokens|candidatesTokenCount|outputTokens)": ?[0-9]+.*"(?:prompt_tokens|'
        rb'input_tokens|promptTokenCount|inputTokens)": ?[0-9]+',
        re.DOTALL,
    )
    llm = [
        exchange for exchange in exchanges if exchange.kind == "llm" and told.search(exchange.response.body)
    ]
    assert len(llm) > 480
    missing = [e.url for e in llm if e.reading.tokens_in is None or e.reading.tokens_out is None]
    assert missing == []


def test_every_good_answer_has_a_text_or_a_tool_call(exchanges: list[Exchange]) -> None:
    good = [e for e in exchanges if e.kind == "llm" and e.response.head.status == 200 and not e.reading.error]
    assert [exchange.url for exchange in good if not exchange.reading.text] == []


def test_every_error_has_its_message_also_inside_a_stream_that_began_well(exchanges: list[Exchange]) -> None:
    failed = [exchange for exchange in exchanges if exchange.response.head.status >= 400]
    assert len(failed) == 39
    assert [exchange.url for exchange in failed if not exchange.reading.error] == []
    inside = [
        exchange for exchange in exchanges if exchange.response.head.status < 400 and exchange.reading.error
    ]
    assert sorted(exchange.request.head.host for exchange in inside) == ["api.groq.com", "openrouter.ai"]


def test_requests_share_a_key_only_where_they_are_equal_but_for_drawn_ids(exchanges: list[Exchange]) -> None:
    drawn = re.compile(rb"(?:call|toolu|fc|msg|rs|resp|srvtoolu|pyd_ai)_[A-Za-z0-9_-]+")
    lanes: dict[str, set[bytes]] = defaultdict(set)
    for exchange in exchanges:
        lanes[exchange.call.key].add(
            drawn.sub(b"ID", exchange.request.head.target.encode() + exchange.request.body)
        )
    assert [key for key, bodies in lanes.items() if len(bodies) > 1] == []


def test_a_real_request_with_all_its_tool_ids_drawn_anew_keeps_its_key(exchanges: list[Exchange]) -> None:
    drawn = re.compile(rb'"(?:call|toolu|tooluse|fc)_([A-Za-z0-9_-]{8,})"')
    seen = 0
    for exchange in exchanges:
        renamed = drawn.sub(lambda found: b'"new-' + found[1][::-1] + b'"', exchange.request.body)
        if exchange.kind == "llm" and renamed != exchange.request.body:
            seen += 1
            again = understand(HttpRequest(head=exchange.request.head, body=renamed))
            assert again.key == exchange.call.key, exchange.url
    assert seen > 150


def test_a_changed_word_in_a_real_conversation_leads_back_to_its_step(exchanges: list[Exchange]) -> None:
    cassettes: dict[str, list[Exchange]] = defaultdict(list)
    for exchange in exchanges:
        if exchange.kind == "llm":
            cassettes[exchange.cassette].append(exchange)
    found = total = 0
    for steps in cassettes.values():
        recorded = [RecordedCall(n, exchange.call, False) for n, exchange in enumerate(steps)]
        for number, exchange in enumerate(steps):
            body = re.sub(
                rb'("(?:content|text|input)": ?"[A-Z][a-z]+) ', rb"\1 kindly ", exchange.request.body
            )
            changed = understand(HttpRequest(head=exchange.request.head, body=body))
            if changed.key == exchange.call.key:
                continue
            miss = explain_miss(changed, recorded, session="s")
            total += 1
            found += miss.nearest is not None and steps[miss.nearest].call.key == exchange.call.key
            assert "kindly" in miss.report or miss.nearest != number
    assert total > 100
    assert found / total > 0.95, f"{found} of {total}"
