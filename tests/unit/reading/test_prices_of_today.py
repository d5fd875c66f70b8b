"""Prices of today, from a server of our own."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from rewind.errors import EnvironmentProblem
from rewind.model.usage import Usage
from rewind.pricing.snapshot import checked_snapshot
from rewind.reading.prices import PricesExtraMissing, load_prices, refresh

LIST = [
    {
        "id": "acme",
        "name": "Acme",
        "api_pattern": "https://api\\.acme\\.example",
        "fallback_model_providers": ["other"],
        "models": [
            {
                "id": "acme-1",
                "match": {"or": [{"starts_with": "Acme-1"}, {"regex": "^a1-\\d{8}$"}]},
                "context_window": 9000,
                "prices": [
                    {"prices": {"input_mtok": 1, "output_mtok": 2}},
                    {
                        "constraint": {"start_date": "2026-05-01"},
                        "prices": {
                            "input_mtok": {"base": 2, "tiers": [{"start": 1000, "price": 4.5}]},
                            "output_mtok": 3,
                        },
                    },
                    {
                        "constraint": {"start_time": "01:00:00+02:00", "end_time": "03:00:00+02:00"},
                        "prices": {"input_mtok": 0.5, "output_mtok": 3},
                    },
                ],
                "price_variants": [{"when": {"service_tier": "flex"}, "prices": {"output_mtok": 1}}],
            }
        ],
    },
    {
        "id": "other",
        "name": "Other",
        "api_pattern": "https://other\\.example",
        "models": [{"id": "other-1", "match": {"equals": "other-1"}, "prices": {"input_mtok": 7}}],
    },
]


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@contextmanager
def serving(body: bytes, status: int = 200) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Nobody reads a log here."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/data.json"
        finally:
            server.shutdown()
            thread.join()


def test_fetched_prices_are_written_for_their_owner_alone_and_used(tmp_path: Path) -> None:
    target = tmp_path / "new" / "prices.jsonl"
    with serving(json.dumps(LIST).encode()) as url:
        said = refresh(target, url=url)
    assert said == f"Prices of 2 models from 2 sellers are in {target}."
    assert target.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in target.parent.iterdir()] == ["prices.jsonl"]

    prices = load_prices(newer=target)
    assert prices.warning is None
    assert prices.date > "2026"

    def cost(model: str, ts: float, *, read: int = 1000, tier: str = "") -> float | None:
        usage = Usage(input=read, output=1000, tier=tier)
        found = prices.cost(host="api.acme.example", provider="openai-chat", model=model, usage=usage, ts=ts)
        return found if found is None else round(found * 1000, 9)

    noon, may = 1_790_000_000 // 86_400 * 86_400 + 43_200, 1_777_593_600
    assert cost("acme-1-mini", may - 43_200) == 1 + 2
    assert cost("a1-20260101", noon) == 2 + 3
    assert cost("acme-1", noon, read=2000) == 9 + 3
    assert cost("acme-1", noon, tier="flex") == 2 + 1
    assert cost("acme-1", noon - 43_200 + 1800) == 0.5 + 3
    assert cost("acme-1", noon - 43_200 - 1800) == 0.5 + 3
    assert cost("other-1", noon) == 7
    assert cost("acme-2", noon) is None
    assert prices.context_window(host="api.acme.example", provider="openai-chat", model="acme-1") == 9000
    assert (
        prices.cost(host="api.openai.com", provider="openai-chat", model="gpt-4o", usage=Usage(input=1), ts=noon)
        is None
    )


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"gone", 404, "could not be fetched"),
        (b"not JSON", 200, "not a price list"),
        (b"{}", 200, "not a price list"),
        (b"[]", 200, "not a price list"),
        (b'[{"id": "acme"}]', 200, "not a price list"),
        (json.dumps([LIST[0] | {"api_pattern": "("}]).encode(), 200, "not a price list"),
    ],
)
def test_a_fetch_that_fails_leaves_the_prices_that_were_there(
    tmp_path: Path, body: bytes, status: int, told: str
) -> None:
    target = tmp_path / "prices.jsonl"
    target.write_text("as it was")
    with serving(body, status) as url, pytest.raises(EnvironmentProblem, match=told) as caught:
        refresh(target, url=url)
    assert caught.value.hint
    assert target.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [target]


def test_a_server_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with serving(b"") as url:
        pass
    with pytest.raises(EnvironmentProblem, match="could not be fetched"):
        refresh(tmp_path / "prices.jsonl", url=url)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    target = tmp_path / "file" / "prices.jsonl"
    with serving(json.dumps(LIST).encode()) as url, pytest.raises(EnvironmentProblem, match="cannot be written"):
        refresh(target, url=url)


def test_without_the_extra_the_hint_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(PricesExtraMissing) as caught:
        refresh(tmp_path / "prices.jsonl")
    assert caught.value.hint == "pip install 'llm-rewind[prices]'"


def test_the_same_data_of_the_same_day_is_the_same_file(tmp_path: Path) -> None:
    from genai_prices.types import _providers_from_raw

    from rewind.pricing.build import snapshot_of

    providers = _providers_from_raw(LIST)
    one, other = (snapshot_of(providers, day="2026-01-01") for _ in range(2))
    assert one == other
    (tmp_path / "one").write_bytes(one)
    read = checked_snapshot((tmp_path / "one").read_bytes())
    assert read is not None and read.date == "2026-01-01"


@pytest.mark.process
def test_reading_prices_imports_nothing_of_the_source() -> None:
    import subprocess

    code = "import sys, rewind.reading.prices as p; p.load_prices(); sys.exit('genai_prices' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
