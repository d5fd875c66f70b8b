"""``rewind config`` on prices of one's own."""

from pathlib import Path
from typing import Any

from unit.cli.shelf import Rewind

OWN = """
[tool.rewind.prices]
"our-*" = { input = 0.5, output = 1.5, context = 128000 }
free = { input = 0, output = 0 }
"""


def prices_in(rewind: Rewind) -> Any:
    return next(row for row in rewind("config", "--json").json()["settings"] if row["name"] == "prices")


def test_own_prices_are_shown_in_one_line_and_as_they_are_in_json(rewind: Rewind, tmp_path: Path) -> None:
    assert prices_in(rewind)["value"] == {}
    (tmp_path / "pyproject.toml").write_text(OWN)
    shown = rewind("config").text
    assert "our-*: input 0.5, output 1.5, context 128000; free: input 0, output 0" in shown
    assert prices_in(rewind)["value"] == {
        "our-*": {"input": 0.5, "output": 1.5, "context": 128000},
        "free": {"input": 0, "output": 0},
    }
    assert [origin["kind"] for origin in prices_in(rewind)["origins"]] == ["project"]


def test_a_price_that_makes_no_sense_is_one_sentence(rewind: Rewind, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(OWN.replace("0.5", "-1"))
    ran = rewind("config")
    assert ran.code == 2
    assert "pyproject.toml [tool.rewind]: 'prices': 'our-*': 'input' must be US dollars" in ran.talk


def test_which_prices_are_used_is_said(rewind: Rewind) -> None:
    assert "prices: genai-prices" in rewind("config").talk


def test_prices_that_cannot_be_fetched_are_one_sentence_and_what_was_there_stays(rewind: Rewind, home: Path) -> None:
    ran = rewind("config", "--fetch-prices", "http://127.0.0.1:9/data.json")
    assert ran.code == 6
    assert "could not be fetched" in ran.talk
    assert "Traceback" not in ran.talk
    assert not (home / "prices.jsonl").exists()
