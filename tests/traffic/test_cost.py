"""What every real call cost: by us, and by genai-prices from the provider's own words."""

import contextlib
import json
import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.eventstream import EventStreamBuffer
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo
from genai_prices.types import Provider as Seller
from genai_prices.types import Usage as TheirUsage

from rewind.model.message import Answered, Asked
from rewind.pricing.prices import Prices
from rewind.pricing.rates import counts_of
from rewind.providers.catalogue import identify
from rewind.reading.prices import load_prices
from support.traffic import Exchange

pytestmark = pytest.mark.traffic

WHEN = datetime(2026, 11, 15, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Call:
    """One call, read by our codec."""

    exchange: Exchange
    codec: str
    asked: Asked
    answered: Answered

    @property
    def names(self) -> tuple[str, ...]:
        """What the price is looked up by: the model that answered, else the one that was asked."""
        return tuple(dict.fromkeys(name for name in (self.answered.model, self.asked.model) if name))

    def cost(self, prices: Prices) -> float | None:
        for name in self.names:
            cost = prices.cost(
                host=self.exchange.request.head.host,
                target=self.exchange.request.head.target,
                provider=self.codec,
                model=name,
                usage=self.answered.usage,
                ts=WHEN.timestamp(),
            )
            if cost is not None:
                return cost
        return None

    def seller(self) -> Seller | None:
        """Whose call it is by their rules: by address, else by the model's name."""
        for name in self.names:
            for url in (self.exchange.url, None):
                with contextlib.suppress(LookupError):
                    return get_snapshot().find_provider(name, None, url)
        return None

    def listed(self, seller: Seller) -> ModelInfo | None:
        found = (seller.find_model(name, all_providers=get_snapshot().providers) for name in self.names)
        return next((model for model in found if model is not None), None)


@pytest.fixture(scope="module")
def calls(exchanges: list[Exchange]) -> list[Call]:
    found = []
    for exchange in exchanges:
        if exchange.kind in ("llm", "embedding"):
            codec = identify(exchange.request.head)
            asked = codec.reader.asked(exchange.request)
            found.append(Call(exchange, codec.name, asked, codec.reader.answered(exchange.request, exchange.response)))
    return found


@pytest.fixture(scope="module")
def prices() -> Prices:
    return load_prices()


def documents(exchange: Exchange) -> list[Any]:
    """The JSON of an answer, read here without any code of ours."""
    body = exchange.response.body
    match exchange.stream_format:
        case "sse":
            lines = re.findall(rb"^data:[ ]?(\{.*)$", body, re.MULTILINE)
            return [json.loads(line) for line in lines]
        case "aws-eventstream":
            frames = EventStreamBuffer()
            frames.add_data(body)
            return [json.loads(frame.payload) for frame in frames if frame.payload]
        case "json-array":
            return list(json.loads(body))
        case _:
            return [json.loads(body)]


def whole(exchange: Exchange) -> dict[str, Any]:
    """The answer as far as it tells the model and its usage, as if it had come in one piece."""
    joined: dict[str, Any] = {}
    for document in documents(exchange):
        told = document.get("message", document) if document.get("type") == "message_start" else document
        if str(document.get("type", "")).startswith("response."):
            told = document.get("response", {})
        for key, value in told.items():
            if isinstance(value, dict) and isinstance(joined.get(key), dict):
                joined[key] = joined[key] | {name: each for name, each in value.items() if each is not None}
            elif value is not None:
                joined[key] = value
    # Groq tells the usage of a stream under a name of its own.
    if "usage" not in joined and "usage" in joined.get("x_groq", {}):
        joined["usage"] = joined["x_groq"]["usage"]
    return joined


FLAVORS = {
    "anthropic": ("anthropic", "default"),
    "openai-chat": ("chat", "default"),
    "openai-responses": ("responses",),
    "openai-embeddings": ("embeddings", "default"),
    "cohere": ("embeddings", "default"),
    "gemini": ("default",),
    "bedrock": ("default", "anthropic"),
}
"""Codec → what their extractors for that API are called; the first that a seller has and that reads the answer."""

WITHOUT_EXTRACTOR = {
    "voyageai": "genai-prices lists its models and reads none of its answers",
    "aws": "genai-prices reads Converse and Claude's answers, not those of Titan's embeddings",
}
"""Sellers whose usage they may be unable to read, and why. What we read is still priced by them and compared."""


def told_to_them(answer: dict[str, Any], call: Call, seller: Seller) -> TheirUsage | None:
    """The usage that their extractor reads in the provider's own words."""
    for flavor in FLAVORS[call.codec]:
        with contextlib.suppress(ValueError):
            return seller.extract_usage(answer, api_flavor=flavor)[1]
    return None


def context_in(answer: dict[str, Any]) -> dict[str, str]:
    """The service tier, wherever an API tells it, as their price lists ask for it."""
    usage = answer.get("usage") or answer.get("usageMetadata") or {}
    told = (answer.get("service_tier"), usage.get("service_tier"), usage.get("serviceTier"))
    tier = next((each for each in told if each), None)
    return {"processing": "batch"} if tier == "batch" else {"service_tier": tier} if tier else {}


def their_cost(model: ModelInfo, seller: Seller, usage: TheirUsage, context: dict[str, str]) -> float:
    found = model.calc_price(usage, seller, genai_request_timestamp=WHEN, price_context=context)
    return float(found.total_price)


def test_every_call_costs_what_genai_prices_says_from_the_providers_own_words(
    calls: list[Call], prices: Prices
) -> None:
    counted, unpriced, different = Counter[str](), Counter[str](), []
    for call in calls:
        usage, ours, seller = call.answered.usage, call.cost(prices), call.seller()
        if not usage.is_told:
            counted["no usage told"] += 1
            assert ours is None
            continue
        assert seller is not None
        if (model := call.listed(seller)) is None:
            counted["unpriced"] += 1
            unpriced[f"{seller.id} {call.names[0]}"] += 1
            assert ours is None
            continue
        counted["priced"] += 1
        answer = whole(call.exchange)
        ways = {"from our usage": TheirUsage(**counts_of(usage))}
        if (theirs := told_to_them(answer, call, seller)) is not None:
            ways["from a stream" if call.exchange.stream_format else "from a whole answer"] = theirs
        else:
            assert seller.id in WITHOUT_EXTRACTOR, call.exchange.name
            counted["no extractor of theirs"] += 1
        for way, told in ways.items():
            expected = their_cost(model, seller, told, context_in(answer))
            counted[f"equal, {way}"] += ours == expected
            if ours != expected:
                different.append((call.exchange.name, way, model.id, expected, ours, usage, told))
    print(f"\n{dict(counted)}\nunpriced: {dict(unpriced)}")
    assert different == []
    assert counted["priced"] > 510
    assert counted["equal, from a stream"] > 215 and counted["equal, from a whole answer"] > 285


def test_a_call_without_usage_failed_or_asked_for_vectors(calls: list[Call]) -> None:
    silent = [call for call in calls if not call.answered.usage.is_told]
    assert [
        call.exchange.name for call in silent if not call.answered.error and call.exchange.kind != "embedding"
    ] == []
