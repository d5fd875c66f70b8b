"""Whose prices hold; and what is unknown stays so."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind.model.usage import Usage
from rewind.reading.prices import SHIPPED, load_prices

USAGE = Usage(input=1_000_000, output=1_000_000)
NOW = 1_794_700_000.0
PRICES = load_prices()


def cost(model, host="api.anthropic.com", provider="anthropic", *, usage=USAGE, ts=NOW, prices=PRICES, **more):
    return prices.cost(host=host, provider=provider, model=model, usage=usage, ts=ts, **more)


def whose(model, host, provider="openai-chat", *, prices=PRICES, **more):
    return prices.priced_as(host=host, provider=provider, model=model, **more)


def test_a_known_model_has_its_price_and_its_context_window():
    assert cost("claude-sonnet-4-5-20250929") > 0
    assert whose("claude-sonnet-4-5-20250929", "api.anthropic.com") == "anthropic/claude-sonnet-4-5"
    window = PRICES.context_window(host="api.anthropic.com", provider="anthropic", model="claude-sonnet-4-5")
    assert window is not None and window >= 200_000


def test_the_address_says_whose_prices_hold():
    assert whose("gpt-4o", "api.openai.com") == "openai/gpt-4o"
    assert whose("GPT-4O", "API.OpenAI.com.") == "openai/gpt-4o"
    assert whose("gpt-4o", "mine.openai.azure.com").endswith("/gpt-4o")
    assert whose("llama-3.3-70b-versatile", "api.groq.com").startswith("groq/")
    assert whose("anthropic/claude-sonnet-4.5", "openrouter.ai").startswith("openrouter/")
    assert whose("claude-sonnet-4-5", "us-east5-aiplatform.googleapis.com", "anthropic").startswith("google/")


def test_a_model_that_its_seller_does_not_list_is_unknown_there():
    assert cost("gpt-9000", "api.openai.com", "openai-chat") is None
    assert cost("claude-sonnet-4-5", "api.groq.com", "openai-chat") is None
    assert cost(None) is None
    assert cost("") is None


def test_a_host_with_several_sellers_tells_them_by_the_path():
    model, host = "Qwen/Qwen2.5-VL-72B-Instruct", "router.huggingface.co"
    assert whose(model, host) is None
    assert whose(model, host, target="/nebius/v1/chat/completions").startswith("huggingface_nebius/")
    assert cost(model, host, "openai-chat", target="/nebius/v1/chat/completions") > 0


@pytest.mark.parametrize("host", ["llm.corp.internal", "litellm", "10.1.2.3", "gateway.example.com"])
def test_a_gateway_is_priced_as_the_maker_whose_model_it_passes_on(host):
    assert whose("claude-sonnet-4-5", host, "anthropic") == "anthropic/claude-sonnet-4-5"
    assert whose("anthropic/claude-sonnet-4-5", host) == "anthropic/claude-sonnet-4-5"
    assert whose("openai/gpt-4o", host) == "openai/gpt-4o"
    assert whose("text-embedding-3-small", host, "openai-embeddings") == "openai/text-embedding-3-small"
    assert whose("vertex_ai/gemini-2.5-pro", host, "gemini") == "google/gemini-2.5-pro"
    assert cost("claude-sonnet-4-5", host) == cost("claude-sonnet-4-5")


@pytest.mark.parametrize(
    "model",
    ["llama3.3", "gpt-oss-120b", "openai/gpt-oss-20b", "google/gemma-3-27b-it", "deepseek-chat", "mistral-large"],
)
def test_a_model_that_anybody_may_run_is_unknown_at_a_gateway(model):
    assert whose(model, "llm.corp.internal") is None
    assert cost(model, "llm.corp.internal", "openai-chat") is None


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]", "0.0.0.0", "x.localhost", "host.docker.internal"]
)
def test_what_answers_on_this_machine_is_unknown(host):
    assert whose("claude-sonnet-4-5", host, "anthropic") is None
    assert whose("gpt-4o", host) is None


def test_ollama_is_unknown_wherever_it_runs():
    assert whose("gpt-4o", "ollama.corp.internal", "ollama") is None


def test_bedrock_is_amazons_under_any_name_of_the_host():
    model = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    plain = whose(model, "bedrock-runtime.us-east-1.amazonaws.com", "bedrock")
    assert plain.startswith("aws/")
    assert whose(model, "bedrock-runtime-fips.us-east-1.amazonaws.com", "bedrock") == plain


def test_an_old_call_keeps_its_old_price():
    day = 86_400
    usage = Usage(input=1_000_000)
    then, now = (cost("o3", "api.openai.com", "openai-responses", usage=usage, ts=ts) for ts in (1_748_736_000, NOW))
    assert then > now
    assert cost("o3", "api.openai.com", "openai-responses", usage=usage, ts=NOW + 1_000 * day) == now


def test_a_service_tier_has_its_own_price():
    tiers = {
        tier: cost("gpt-5", "api.openai.com", "openai-chat", usage=Usage(input=10**6, output=10**6, tier=tier))
        for tier in ("", "flex", "priority", "batch", "unheard-of")
    }
    assert tiers["flex"] == tiers[""] / 2
    assert tiers["batch"] == tiers[""] / 2
    assert tiers["priority"] > tiers[""] == tiers["unheard-of"]


def test_a_tier_is_read_as_clouds_spell_it():
    def gemini(tier: str) -> float | None:
        usage = Usage(input=1000, output=1000, tier=tier)
        return cost("gemini-3.6-flash", "aiplatform.googleapis.com", "gemini", usage=usage)

    assert gemini("FLEX") == gemini("ON_DEMAND_FLEX") == gemini("flex")


def test_who_sells_anothers_model_does_not_sell_its_tiers():
    usage = Usage(input=1_000_000, tier="batch")
    assert whose("gpt-5", "mine.openai.azure.com").startswith("openai/")
    there = cost("gpt-5", "mine.openai.azure.com", "openai-chat", usage=usage)
    assert there == 2 * cost("gpt-5", "api.openai.com", "openai-chat", usage=usage)


def test_usage_that_was_not_told_has_no_cost_and_a_free_model_costs_nothing():
    assert cost("claude-sonnet-4-5", usage=Usage()) is None
    assert cost("claude-sonnet-4-5", usage=Usage(tier="batch")) is None
    assert cost("openai/gpt-oss-20b:free", "openrouter.ai", "openai-chat") == 0.0


def test_counts_that_contradict_each_other_have_no_cost():
    assert cost("claude-sonnet-4-5", usage=Usage(input=5, output=1, cache_read=6)) is None


def test_own_prices_win_over_the_list_and_on_this_machine():
    prices = load_prices({"gpt-4o": {"input": 7, "output": 0}, "our-*": {"input": 0.5, "output": 1.5}})
    assert cost("GPT-4o", "api.openai.com", "openai-chat", prices=prices) == 7
    assert cost("our-model:8b", "localhost", "ollama", prices=prices) == 2
    assert whose("our-model:8b", "localhost", prices=prices) == "own price 'our-*'"
    assert cost("another", "localhost", "ollama", prices=prices) is None
    assert cost("gpt-4o-mini", "api.openai.com", "openai-chat", prices=prices) == cost(
        "gpt-4o-mini", "api.openai.com", "openai-chat"
    )


def test_what_an_own_price_does_not_name_costs_what_contains_it():
    usage = Usage(input=100, output=100, cache_read=40, cache_write=10, reasoning=50)
    plain = load_prices({"m": {"input": 1, "output": 2}})
    full = load_prices({"m": {"input": 1, "output": 2, "cache_read": 0.1, "cache_write": 3, "reasoning": 4}})
    assert cost("m", usage=usage, prices=plain) == 300e-6
    assert cost("m", usage=usage, prices=full) == (50 * 1 + 40 * 0.1 + 10 * 3 + 50 * 2 + 50 * 4) / 1e6


def test_a_full_name_goes_before_a_pattern_and_the_first_pattern_before_the_next():
    prices = load_prices(
        {"m*": {"input": 1, "output": 0}, "m-1*": {"input": 2, "output": 0}, "m-1.5": {"input": 3, "output": 0}}
    )
    assert [cost(name, prices=prices) for name in ("m-1.5", "m-15", "m", "xm")] == [3, 1, 1, None]


def test_signs_in_a_name_mean_themselves():
    prices = load_prices({"a[fast].?": {"input": 1, "output": 0}, "b.*": {"input": 1, "output": 0}})
    assert cost("a[fast].?", prices=prices) == 1
    assert cost("af.x", prices=prices) is None
    assert cost("bxc", prices=prices) is None


def test_an_own_context_window_leaves_the_price_as_it_is():
    prices = load_prices({"claude-*": {"context": 1234}, "mine": {"input": 1, "output": 1}})
    assert cost("claude-sonnet-4-5", prices=prices) == cost("claude-sonnet-4-5")
    assert prices.context_window(host="localhost", provider="anthropic", model="claude-sonnet-4-5") == 1234
    assert prices.context_window(host="api.openai.com", provider="openai-chat", model="gpt-4o") == 128_000
    assert prices.context_window(host="localhost", provider="openai-chat", model="mine") is None


@pytest.mark.parametrize(
    "entry", [{}, 3, None, {"input": 1}, {"in": 1}, {"input": math.inf, "output": 1}, {"context": 0}, {"input": True}]
)
def test_own_prices_that_make_no_sense_are_refused(entry):
    with pytest.raises(ValueError, match=r"\w"):
        load_prices({"m": entry})


def test_the_fingerprint_changes_with_every_own_price_and_with_nothing_else():
    entries = [
        {},
        {"m": {"input": 1, "output": 1}},
        {"m": {"input": 1, "output": 2}},
        {"m": {"input": 1, "output": 1, "context": 5}},
        {"n": {"input": 1, "output": 1}},
    ]
    prints = {load_prices(entry).fingerprint for entry in entries}
    assert len(prints) == len(entries)
    assert load_prices(entries[1]).fingerprint in prints
    assert PRICES.fingerprint == load_prices().fingerprint


def redated(folder: Path, date: str) -> Path:
    """The shipped prices as if of another day."""
    file = folder / "prices.jsonl"
    file.write_bytes(SHIPPED.read_bytes().replace(PRICES.date.encode(), date.encode(), 1))
    return file


def test_newer_prices_are_used_and_older_ones_are_not(tmp_path: Path):
    newer = load_prices(newer=redated(tmp_path, "2999-01-01"))
    assert (newer.date, newer.warning) == ("2999-01-01", None)
    assert newer.fingerprint != PRICES.fingerprint
    assert cost("claude-sonnet-4-5", prices=newer) == cost("claude-sonnet-4-5")
    older = load_prices(newer=redated(tmp_path, "2020-01-01"))
    assert (older.date, older.warning) == (PRICES.date, None)
    assert load_prices(newer=tmp_path / "nowhere").warning is None


def test_damaged_prices_are_not_used_and_that_is_said(tmp_path: Path):
    file = redated(tmp_path, "2999-01-01")
    whole = file.read_bytes()
    header, _, rest = whole.partition(b"\n")
    damages = {
        "cut": whole[:-100],
        "a changed price": whole.replace(b'"input_mtok":3,', b'"input_mtok":4,', 1),
        "another format": whole.replace(b'"format":1', b'"format":2', 1),
        "no number": whole.replace(b'"units":', b'"units":"x","u":', 1),
        "no header": rest,
        "nothing": b"",
        "not JSON": b"\xff\xfe\n" + rest,
        "deep": b"[" * 100_000,
    }
    for name, damaged in damages.items():
        file.write_bytes(damaged)
        prices = load_prices(newer=file)
        assert prices.date == PRICES.date, name
        assert prices.warning and str(file) in prices.warning, name
        assert PRICES.date in prices.warning, name
    file.unlink()
    file.mkdir()
    assert "cannot be read" in (load_prices(newer=file).warning or "")
    assert header


def test_only_the_lines_of_the_seller_asked_are_parsed(tmp_path: Path):
    from rewind.pricing.snapshot import Snapshot

    lines = SHIPPED.read_bytes().split(b"\n")
    snapshot = Snapshot(SHIPPED.read_bytes())
    groq = snapshot.sellers["groq"]
    models = 1 + len(snapshot.units) + len(snapshot.sellers)
    kept = range(groq.first, groq.first + groq.models)
    spoilt = [line if at < models or at in kept or not line else b"no JSON" for at, line in enumerate(lines)]
    other = Snapshot(b"\n".join(spoilt))
    assert other.seller_at("api.groq.com") == groq
    assert other.model(groq, "llama-3.3-70b-versatile") == snapshot.model(groq, "llama-3.3-70b-versatile")
    with pytest.raises(ValueError):
        other.model(other.sellers["anthropic"], "claude-sonnet-4-5")


def test_many_different_models_do_not_fill_the_memory():
    prices = load_prices()
    for number in range(5_000):
        assert cost(f"model-{number}", "api.deepseek.com", "openai-chat", prices=prices) is None
    assert len(prices._plans) <= 4_096


texts = st.text(max_size=400) | st.sampled_from(("gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", "o3-20251211"))
counts = st.none() | st.integers(-5, 10**30)


@given(
    host=texts | st.sampled_from(("api.openai.com", "api.anthropic.com", "localhost", "gateway")),
    target=texts,
    provider=texts,
    model=st.none() | texts,
    usage=st.builds(
        Usage,
        input=counts,
        output=counts,
        cache_read=counts,
        cache_write=counts,
        reasoning=counts,
        more=st.dictionaries(texts | st.just("input_audio_tokens"), st.integers(-5, 10**6), max_size=3),
        tier=texts | st.sampled_from(("flex", "batch")),
    ),
    ts=st.floats(allow_nan=True, allow_infinity=True),
)
def test_nothing_raises_and_no_cost_is_negative(host, target, provider, model, usage, ts):
    found = PRICES.cost(host=host, target=target, provider=provider, model=model, usage=usage, ts=ts)
    assert found is None or found >= 0
    PRICES.context_window(host=host, target=target, provider=provider, model=model)
    PRICES.priced_as(host=host, target=target, provider=provider, model=model)
