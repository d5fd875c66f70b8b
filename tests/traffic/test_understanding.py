"""Every real exchange is recognised, and read into the neutral shape."""

import dataclasses
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from rewind.match.call import Call, understand
from rewind.match.nearest import RecordedCall, explain_miss
from rewind.model.http import HttpRequest
from rewind.model.message import Answered, Asked, Vectors
from rewind.model.step import Reading, StepKind
from rewind.providers.summary import read
from support.traffic import Exchange

pytestmark = pytest.mark.traffic


@dataclasses.dataclass(frozen=True, slots=True)
class Read:
    """An exchange and all that we make of it."""

    exchange: Exchange
    call: Call
    asked: Asked
    answered: Answered
    reading: Reading

    @property
    def name(self) -> str:
        return self.exchange.name

    @property
    def is_llm(self) -> bool:
        return self.exchange.kind == "llm"

    @property
    def is_good(self) -> bool:
        return not self.exchange.failed and not self.answered.error


def _read(exchange: Exchange) -> Read:
    call = understand(exchange.request)
    asked = call.provider.reader.asked(exchange.request)
    answered = call.provider.reader.answered(exchange.request, exchange.response)
    return Read(exchange, call, asked, answered, read(call.provider, exchange.request, exchange.response))


@pytest.fixture(scope="module")
def steps(exchanges: list[Exchange]) -> list[Read]:
    return [_read(exchange) for exchange in exchanges]


def document_in(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def test_all_exchanges_are_understood_and_read_without_a_note(steps: list[Read]) -> None:
    assert len(steps) == 606
    assert [step.name for step in steps if step.asked.note or step.answered.note or step.reading.note] == []


def test_every_llm_call_is_recognised_as_one(steps: list[Read]) -> None:
    llm = [step for step in steps if step.is_llm]
    assert len(llm) == 546
    assert [step.name for step in llm if step.call.provider.kind is not StepKind.LLM_CALL] == []
    assert Counter(step.call.provider.name for step in llm) == {
        "anthropic": 167,
        "openai-responses": 133,
        "openai-chat": 120,
        "gemini": 99,
        "bedrock": 27,
    }


def test_of_the_rest_embeddings_alone_are_calls_to_a_model(steps: list[Read]) -> None:
    rest = [step for step in steps if not step.is_llm]
    wrong = [
        step.name
        for step in rest
        if (step.call.provider.kind is StepKind.LLM_CALL)
        # The set counts one token count made for an embedding among the embeddings.
        != (step.exchange.kind == "embedding" and not step.exchange.url.endswith(":countTokens"))
    ]
    assert wrong == []


def test_the_model_that_was_asked_is_known_of_every_llm_call_and_embedding(steps: list[Read]) -> None:
    calls = [step for step in steps if step.exchange.kind != "other"]
    assert len(calls) == 546 + 16
    assert [step.name for step in calls if not step.asked.model or not step.reading.model] == []


def test_every_request_with_turns_or_texts_is_read_into_messages(steps: list[Read]) -> None:
    names = ["messages", "input", "contents", "content", "requests", "texts", "prompt", "inputText"]
    names += ["singleEmbeddingParams"]
    calls = [step for step in steps if step.exchange.kind != "other"]
    given = [step for step in calls if any((document_in(step.exchange.request.body) or {}).get(n) for n in names)]
    assert len(given) == 546 + 16
    assert [step.name for step in given if not step.asked.messages] == []


def test_system_prompts_tools_and_streaming_are_told_where_the_request_has_them(steps: list[Read]) -> None:
    for step in steps:
        if step.is_llm:
            asked = document_in(step.exchange.request.body)
            system = ("system", "instructions", "systemInstruction", "system_instruction")
            if any(asked.get(name) for name in system):
                assert step.asked.system, step.name
            if asked.get("tools") or asked.get("toolConfig"):
                assert step.asked.tools, step.name
                assert all(tool.name for tool in step.asked.tools), step.name
            if step.exchange.stream_format:
                assert step.asked.streamed, step.name


FILE_NAMES = re.compile(r"\.document\.name$")
# What answers say besides what the model gave: the request once more, where a citation was found, a banner to show.
BESIDES = re.compile(
    r"^(tools|instructions|texts)\b|\.finishMessage$|\.groundingMetadata\.|\.citations\.\*\.cited_text$"
)


def phrases_in(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Every text of a JSON value or a value of ours, and where it stands."""
    if isinstance(value, str):
        yield ".".join(path), value
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from phrases_in(getattr(value, field.name), (*path, field.name))
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from phrases_in(inner, (*path, name))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from phrases_in(inner, (*path, "*"))


def lost(document: Any, value: Any) -> list[str]:
    """The phrases of a document that are nowhere in what we read of it."""
    kept = "\n".join(phrase for _, phrase in phrases_in(value))

    def is_kept(phrase: str) -> bool:
        # Arguments come as JSON in a text, and are kept as the value.
        inside = document_in(phrase.encode()) if phrase[:1] in "{[" else None
        return phrase.strip() in kept or (
            inside is not None and all(one.strip() in kept for _, one in phrases_in(inside))
        )

    return [path for path, phrase in phrases_in(document) if " " in phrase and not is_kept(phrase)]


def test_no_phrase_of_a_request_is_lost(steps: list[Read]) -> None:
    calls = [step for step in steps if step.exchange.kind != "other"]
    documents = [document_in(step.exchange.request.body) for step in calls]
    assert sum(" " in phrase for document in documents for _, phrase in phrases_in(document)) > 2000
    for step, document in zip(calls, documents, strict=True):
        paths = lost(document, step.asked)
        assert [path for path in paths if not FILE_NAMES.search(path)] == [], step.name


def test_no_phrase_of_a_whole_answer_is_lost(steps: list[Read]) -> None:
    seen = 0
    for step in steps:
        if step.is_llm and not step.exchange.stream_format and step.is_good:
            seen += 1
            paths = lost(document_in(step.exchange.response.body), step.answered)
            assert [path for path in paths if not BESIDES.search(path)] == [], step.name
    assert seen > 280


def test_every_good_answer_has_parts_and_says_why_it_stopped(steps: list[Read]) -> None:
    good = [step for step in steps if step.is_llm and step.is_good]
    assert len(good) == 546 - 34 - 2
    assert [step.name for step in good if not step.answered.parts] == []
    assert [step.name for step in good if not step.answered.stop] == []
    assert [step.name for step in good if not step.reading.text] == []


def test_ids_and_models_are_found_wherever_an_answer_tells_them(steps: list[Read]) -> None:
    seen: Counter[str] = Counter()
    for step in steps:
        body = step.exchange.response.body
        # AWS tells neither in its answers.
        if step.is_llm and step.is_good and step.exchange.vendor != "bedrock/aws":
            if re.search(rb'"(id|responseId)": ?"', body):
                seen["id"] += 1
                assert step.answered.id, step.name
                assert step.answered.id.encode() in body, step.name
            if re.search(rb'"(model|modelVersion)": ?"', body):
                seen["model"] += 1
                assert step.answered.model, step.name
                assert step.answered.model.encode() in body, step.name
    assert seen["id"] > 480
    assert seen["model"] > 480


def test_tokens_are_found_wherever_an_answer_tells_them(steps: list[Read]) -> None:
    read_tokens = rb'"(?:prompt_tokens|input_tokens|promptTokenCount|inputTokens)": ?[0-9]+'
    written = rb'"(?:completion_tokens|output_tokens|candidatesTokenCount|thoughtsTokenCount|outputTokens)": ?[0-9]+'
    llm = [
        step
        for step in steps
        if step.is_llm
        and re.search(read_tokens, step.exchange.response.body)
        and re.search(written, step.exchange.response.body)
    ]
    assert len(llm) > 480
    untold = [step.name for step in llm if None in (step.answered.usage.input, step.answered.usage.output)]
    assert untold == []
    assert [step.name for step in llm if step.reading.usage != step.answered.usage] == []


def test_no_part_of_a_count_is_larger_than_the_whole(steps: list[Read]) -> None:
    odd = []
    for step in steps:
        usage = step.answered.usage
        cached = (usage.cache_read or 0) + (usage.cache_write or 0)
        if cached > (usage.input or 0) or (usage.reasoning or 0) > (usage.output or 0):
            odd.append(step)
    # One count that came beside an error says so itself.
    assert [(step.exchange.vendor, bool(step.answered.error)) for step in odd] == [("openrouter", True)]


def test_every_embedding_is_read(steps: list[Read]) -> None:
    embeddings = [step for step in steps if step.exchange.kind == "embedding"]
    assert len(embeddings) == 16
    counted = [step for step in embeddings if step.exchange.url.endswith(":countTokens")]
    assert [step.answered.text.partition(" ")[2] for step in counted] == ["tokens"]
    good = [step for step in embeddings if step.is_good and step not in counted]
    assert len(good) == 11
    for step in good:
        (vectors,) = step.answered.parts
        assert isinstance(vectors, Vectors), step.name
        assert vectors.count > 0, step.name
        assert vectors.dimensions, step.name


def test_every_error_has_its_message_also_inside_a_stream_that_began_well(steps: list[Read]) -> None:
    failed = [step for step in steps if step.exchange.failed]
    assert len(failed) == 39
    inside = [step for step in steps if not step.exchange.failed and step.answered.error]
    assert sorted(step.exchange.request.head.host for step in inside) == ["api.groq.com", "openrouter.ai"]
    for step in (*failed, *inside):
        assert step.answered.error == step.reading.error
        assert step.answered.error, step.name
        words = json.dumps(step.answered.error.removesuffix("…")[:60], ensure_ascii=False)[1:-1]
        assert re.search(rb'"(message|detail)": ?"' + re.escape(words.encode()), step.exchange.response.body)


def test_requests_share_a_key_only_where_they_are_equal_but_for_drawn_ids(steps: list[Read]) -> None:
    drawn = re.compile(rb"(?:call|toolu|fc|msg|rs|resp|srvtoolu|pyd_ai)_[A-Za-z0-9_-]+")
    lanes: dict[str, set[bytes]] = defaultdict(set)
    for step in steps:
        request = step.exchange.request
        lanes[step.call.key].add(drawn.sub(b"ID", request.head.target.encode() + request.body))
    assert [key for key, bodies in lanes.items() if len(bodies) > 1] == []


def test_a_real_request_with_all_its_tool_ids_drawn_anew_keeps_its_key(steps: list[Read]) -> None:
    drawn = re.compile(rb'"(?:call|toolu|tooluse|fc)_([A-Za-z0-9_-]{8,})"')
    seen = 0
    for step in steps:
        request = step.exchange.request
        renamed = drawn.sub(lambda found: b'"new-' + found[1][::-1] + b'"', request.body)
        if step.is_llm and renamed != request.body:
            seen += 1
            again = understand(HttpRequest(head=request.head, body=renamed))
            assert again.key == step.call.key, step.name
    assert seen > 150


def test_a_changed_word_in_a_real_conversation_leads_back_to_its_step(steps: list[Read]) -> None:
    cassettes: dict[str, list[Read]] = defaultdict(list)
    for step in steps:
        if step.is_llm:
            cassettes[step.exchange.cassette].append(step)
    found = total = 0
    for run in cassettes.values():
        recorded = [RecordedCall(n, step.call, False) for n, step in enumerate(run)]
        for number, step in enumerate(run):
            request = step.exchange.request
            body = re.sub(rb'("(?:content|text|input)": ?"[A-Z][a-z]+) ', rb"\1 kindly ", request.body)
            changed = understand(HttpRequest(head=request.head, body=body))
            if changed.key == step.call.key:
                continue
            miss = explain_miss(changed, recorded, session="s")
            total += 1
            found += miss.nearest is not None and run[miss.nearest].call.key == step.call.key
            assert "kindly" in miss.report or miss.nearest != number
    assert total > 100
    assert found / total > 0.95, f"{found} of {total}"
