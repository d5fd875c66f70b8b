"""Model by model and price by price, our snapshot says what genai-prices says."""

import random
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from genai_prices import types
from genai_prices.data import providers
from genai_prices.data_units import unit_data

from rewind.model.usage import Usage
from rewind.pricing.build import snapshot_of
from rewind.pricing.rates import Tariff, UnitTable, counts_of
from rewind.pricing.snapshot import Snapshot
from rewind.reading.prices import SHIPPED

PROVIDERS = {provider.id: provider for provider in providers}
EXPLAINED = {
    "no price for what was counted": "theirs is 0, ours unknown: a model paid by the minute is not free by the token",
    "groq bills ten seconds at least": "a rule in their code for transcriptions, which no codec of ours reads",
}
BILLED_BY_TEN_SECONDS = ("whisper-large-v3", "whisper-large-v3-turbo")


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return Snapshot(SHIPPED.read_bytes())


def test_the_shipped_file_is_what_the_script_makes_of_the_source(snapshot: Snapshot) -> None:
    assert snapshot_of(providers, day=snapshot.date) == SHIPPED.read_bytes()


@pytest.mark.process
def test_the_script_writes_the_same_file_elsewhere(snapshot: Snapshot, tmp_path: Path) -> None:
    script, target = Path(__file__).parents[3] / "scripts" / "build_prices.py", tmp_path / "prices.jsonl"
    command: list[str | Path] = [sys.executable, script, "--date", snapshot.date, "--output", target]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    assert target.read_bytes() == SHIPPED.read_bytes()
    assert snapshot.source in ran.stdout


def test_the_documentation_names_source_date_and_size(snapshot: Snapshot) -> None:
    text = (Path(__file__).parents[3] / "docs" / "prices.md").read_text()
    models = sum(seller.models for seller in snapshot.sellers.values())
    for told in (snapshot.source, snapshot.date, f"{models:,} models of {len(snapshot.sellers)} sellers"):
        assert told in " ".join(text.split())


def test_the_shipped_file_stays_small() -> None:
    assert SHIPPED.stat().st_size < 700_000


def literals(clause: Any) -> Iterator[str]:
    """The texts in a clause: names that are near to matching, or do."""
    for value in vars(clause).values():
        if isinstance(value, str):
            yield (value.replace("\\d{8}", "20260301").replace("\\d{4}-\\d{2}-\\d{2}", "2026-03-01").strip("^$"))
        else:
            for each in value:
                yield from literals(each)


def variations(name: str, dice: random.Random) -> Iterator[str]:
    yield name
    yield dice.choice((f"{name}-20251211", f"{name}-2025-12-11", f"{name}-20251399", f"{name}-20250231:x"))
    yield dice.choice((f"us.{name}", f"x/{name}", f"{name}-preview", f"{name}@001", name.upper(), name[:-1]))


@pytest.mark.torture
@pytest.mark.parametrize("seller", PROVIDERS)
def test_a_name_means_the_same_model(snapshot: Snapshot, seller: str) -> None:
    provider, dice = PROVIDERS[seller], random.Random(seller)
    names = {text for model in provider.models for text in (model.id, *literals(model.match))}
    names |= {text for other in provider.fallback_model_providers or () for text in ids(other)}
    asked = sorted({varied for name in sorted(names) for varied in variations(name, dice)})
    if len(asked) > 800:  # theirs takes a millisecond where a seller has hundreds of models
        asked = dice.sample(asked, 800)
    different = {}
    for name in asked:
        theirs = provider.find_model(name, all_providers=providers)
        ours = snapshot.model(snapshot.sellers[seller], name)
        if (theirs and theirs.id) != (ours and ours.id):
            different[name] = (theirs and theirs.id, ours and ours.id)
    assert different == {}


def ids(seller: str) -> list[str]:
    return [model.id for model in PROVIDERS[seller].models]


HOSTS = (
    "api.openai.com",
    "api.anthropic.com",
    "generativelanguage.googleapis.com",
    "us-central1-aiplatform.googleapis.com",
    "bedrock-runtime.us-east-1.amazonaws.com",
    "bedrock-runtime-fips.us-east-1.amazonaws.com",
    "mine.openai.azure.com",
    "api.groq.com",
    "openrouter.ai",
    "api.openrouter.ai",
    "api.cohere.ai",
    "api.moonshot.cn",
    "api.minimaxi.com",
    "x.modal.run",
    "router.huggingface.co",
    "localhost",
    "127.0.0.1",
    "evil-api.openai.com",
)


def test_an_address_means_the_same_seller(snapshot: Snapshot) -> None:
    from genai_prices.data_snapshot import get_snapshot

    different = {}
    for host in HOSTS:
        try:
            theirs = get_snapshot().find_provider(None, None, f"https://{host}/").id
        except LookupError:
            theirs = None
        ours = snapshot.seller_at(host)
        if (ours and ours.id) != theirs:
            different[host] = (theirs, ours and ours.id)
    assert different == {}


COUNTED = [name for name in unit_data if name != "requests"]
BASIC = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "output_reasoning_tokens")


def invented_counts(dice: random.Random) -> dict[str, int]:
    """Counts as providers tell them, most of them in order; some with more parts than the whole."""
    whole = dice.choice((0, 7, 1_000, 32_000, 128_001, 200_000, 200_001, 272_001, 400_000))
    counts = {"input_tokens": whole, "output_tokens": dice.randrange(5_000)}
    for name in dice.sample(BASIC[2:], dice.randrange(4)):
        counts[name] = dice.randrange(counts["output_tokens" if "output" in name else "input_tokens"] // 2 + 1)
    for name in dice.sample(COUNTED, dice.choice((0, 0, 1, 2, 5))):
        counts.setdefault(name, dice.choice((0, 1, 3, 40)))
    if dice.random() < 0.1:
        counts.pop(dice.choice(sorted(counts)))
    if dice.random() < 0.1:
        counts[dice.choice(BASIC)] = dice.randrange(1_000_000)
    return counts


def usage_of(counts: dict[str, int], tier: str = "") -> Usage:
    more = {name: count for name, count in counts.items() if name not in BASIC}
    told = [counts.get(name) for name in BASIC]
    read, written, cached, stored, thought = told
    return Usage(
        input=read, output=written, cache_read=cached, cache_write=stored, reasoning=thought, more=more, tier=tier
    )


def moments(model: types.ModelInfo) -> list[float]:
    """Before, at and after each turn of this model's prices."""
    found = [datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()]
    conditions = [] if isinstance(model.prices, types.ModelPrice) else model.prices
    for entry in (*conditions, *(model.price_variants or ())):
        match entry.constraint:
            case types.StartDateConstraint(start_date=day):
                turn = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
                found += [turn - 1, turn]
            case types.TimeOfDateConstraint(start_time=start, end_time=end):
                day = datetime(2026, 11, 1, tzinfo=UTC)
                for time in (start, end):
                    turn = datetime.combine(day, time).timestamp()
                    found += [turn - 1, turn]
    return sorted(set(found))


def contexts(model: types.ModelInfo) -> list[dict[str, str]]:
    told = [variant.when for variant in model.price_variants or ()]
    return [{}, {"service_tier": "never-heard-of"}, *told]


def theirs_of(
    model: types.ModelInfo, provider: types.Provider, counts: dict[str, int], ts: float, context: dict[str, str]
) -> float | None:
    when = datetime.fromtimestamp(ts, UTC)
    try:
        found = model.calc_price(types.Usage(**counts), provider, genai_request_timestamp=when, price_context=context)
    except ValueError:
        return None
    return float(found.total_price)


@pytest.mark.parametrize("seller", PROVIDERS)
def test_every_model_costs_the_same_at_every_turn_of_its_prices_and_in_every_tier(
    snapshot: Snapshot, seller: str
) -> None:
    provider, dice = PROVIDERS[seller], random.Random(seller)
    table = UnitTable(snapshot.units)
    compared, priced, explained, different = 0, 0, set(), []
    for model in provider.models:
        # Some models do not answer to their own id, but to a longer name.
        name = next((each for each in (model.id, *literals(model.match)) if model.is_match(each)), model.id)
        ours_listed = snapshot.model(snapshot.sellers[seller], name)
        theirs_listed = provider.find_model(name)
        if ours_listed is None or theirs_listed is None:
            assert ours_listed is None and theirs_listed is None
            continue
        assert ours_listed.context == theirs_listed.context_window
        for context in contexts(theirs_listed):
            tariff = Tariff(ours_listed, context, table)
            for ts in moments(theirs_listed):
                counts = invented_counts(dice)
                theirs = theirs_of(theirs_listed, provider, counts, ts, context)
                ours = tariff.at(ts).cost(counts_of(usage_of(counts)))
                compared += 1
                priced += ours is not None
                if ours == theirs or (ours and theirs and abs(ours / theirs - 1) < 1e-11):
                    continue
                if theirs == 0 and ours is None:
                    explained.add("no price for what was counted")
                elif seller == "groq" and theirs_listed.id in BILLED_BY_TEN_SECONDS:
                    explained.add("groq bills ten seconds at least")
                else:
                    different.append((theirs_listed.id, context, ts, counts, theirs, ours))
    assert different == []
    assert explained <= EXPLAINED.keys()
    assert compared > 0 and (priced > compared / 2 or compared < 10)
