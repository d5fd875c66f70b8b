"""``rewind stats``: tables, bars, and what is said beside them."""

import re
import time
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind.cli.screens.stats import BARS, NOTHING, bars, spans
from rewind.errors import ExitCode
from rewind.model.step import Reading, StepKind
from rewind.model.usage import Usage
from rewind.store.replays import note_replay
from unit.cli.shelf import Rewind, Shelf, a_request, an_answer

PRICES = '[tool.rewind.prices]\n"small-model" = { input = 10, output = 100 }\n'
NOW = time.time()
DAY = 86_400.0


@pytest.fixture
def filled(shelf: Shelf, tmp_path: Path) -> Shelf:
    """A session of today with three calls, one of a model without a price, and one of 40 days ago."""
    (tmp_path / "pyproject.toml").write_text(PRICES)
    writer = shelf.begin("7f3a2b9c", started=NOW, name="refund")
    usage = Usage(input=1000, output=10, cache_read=600, reasoning=4)
    for index, model in ((1, "small-model"), (2, "small-model"), (3, "stranger")):
        writer.request(a_request(index, ts=NOW, model=model), b"{}")
        writer.response(index, an_answer(2, reading=Reading(model=model, usage=usage)), b"{}")
    writer.request(a_request(4, ts=NOW, kind=StepKind.HTTP_CALL, provider="http"), b"{}")
    writer.end(ended=NOW, exit_code=0, redactions=0, remarks=())
    old = shelf.begin("00000001", started=NOW - 40 * DAY)
    old.request(a_request(1, ts=NOW - 40 * DAY), b"{}")
    old.response(1, an_answer(2), b"{}")
    old.close()
    return shelf


def test_no_store_is_an_answer_too(rewind: Rewind, home: Path):
    ran = rewind("stats")
    assert (ran.code, ran.data) == (0, b"")
    assert "No LLM call is recorded" in ran.talk
    told = rewind("stats", "--json").json()
    assert (told["schema"], told["groups"], told["days"]) == ("rewind/stats@1", [], [])
    assert (told["total"]["calls"], told["total"]["cost_usd"]) == (0, None)
    assert not home.exists()


def test_the_calls_of_the_last_days_are_counted_by_model(rewind: Rewind, filled: Shelf):
    ran = rewind("stats")
    assert ran.code == 0
    head, _, titles, *rows = ran.text.splitlines()
    assert re.match(r"3 LLM calls in 1 session from \d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d \(UTC\)$", head)
    assert titles.split()[:7] == ["model", "calls", "in", "cached", "out", "thinking", "cost"]
    assert re.match(r"small-model +2 +2,000 +1,200 +20 +8 +\$0.022 +12 +12 +3 +0 +0$", rows[0])
    assert re.match(r"stranger +1 +1,000 +600 +10 +4 +— +12 ", rows[1])
    assert re.match(r"total +3 +3,000 +1,800 +30 +12 +\$0.022\+ ", rows[2])
    assert "1 call unpriced: their price or tokens are unknown" in ran.text
    assert "Saved by replay: nothing yet" in ran.text
    assert "1 other step not counted" in ran.talk


@pytest.mark.parametrize(
    ("by", "key"), [("provider", "openai_chat"), ("name", "refund"), ("command", "python agent.py")]
)
def test_they_can_be_put_together_otherwise(rewind: Rewind, filled: Shelf, by: str, key: str):
    (group,) = rewind("stats", "--by", by, "--json").json()["groups"]
    assert (group[by], group["calls"], group["cost_usd"], group["unpriced"]) == (key, 3, 0.022, 1)
    text = rewind("stats", "--by", by).text
    assert key in text
    assert "total" not in text, "one group is the total"


def test_days_are_said_and_older_ones_left_out(rewind: Rewind, filled: Shelf):
    told = rewind("stats", "--days", "0", "--json").json()
    assert (told["first_day"], told["time_zone"], told["total"]["calls"]) == (None, "UTC", 4)
    assert [day["calls"] for day in told["days"]] == [1, 3]
    assert rewind("stats", "--days", "1", "--json").json()["total"]["calls"] == 3
    everything = rewind("stats", "--days", "0").text
    assert "4 LLM calls in 2 sessions on any day" in everything


def test_each_day_has_its_bar(rewind: Rewind, filled: Shelf, monkeypatch: pytest.MonkeyPatch):
    lines = rewind("stats", "--days", "41").text.splitlines()
    (calls,) = [line for line in lines if line.startswith("calls  ")]
    (cost,) = [line for line in lines if line.startswith("cost  ")]
    assert re.match(r"calls  ▃ {39}█  most: 3, \d{4}-\d\d-\d\d$", calls)
    assert re.match(r"cost   ▆ {39}█  most: \$0.022, ", cost)
    assert re.search(r"^days   \d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d$", "\n".join(lines), re.MULTILINE)
    monkeypatch.setenv("COLUMNS", "30")
    narrow = rewind("stats", "--days", "41").text
    assert "each bar 2 days" in narrow


def test_what_replays_saved_is_told(rewind: Rewind, filled: Shelf, home: Path):
    note_replay(home, ts=NOW, session="7f3a2b9c", steps=[1, 2, 3, 4])
    assert "Saved by replay: 3 calls, 3,030 tokens, $0.022+\n" in rewind("stats").text
    saved = rewind("stats", "--json").json()["saved_by_replay"]
    assert saved == {"calls": 3, "tokens_in": 3000, "tokens_out": 30, "cost_usd": 0.022, "unpriced": 1}


def test_an_answer_from_a_tape_was_not_spent(rewind: Rewind, shelf: Shelf, tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text(PRICES)
    writer = shelf.begin("7f3a2b9c", started=NOW, replay_of="00000001")
    for index in (1, 2):
        writer.request(a_request(index, ts=NOW), b"{}")
        writer.response(index, an_answer(2, tape=None if index == 1 else 7), b"{}")
    writer.close()
    total = rewind("stats", "--json").json()["total"]
    assert (total["calls"], total["tokens_in"], total["cost_usd"]) == (1, 1200, 0.0154)
    (session,) = rewind("list", "--json").json()["sessions"]
    assert (session["replayed"], session["cost_usd"], session["llm_calls"]) == (1, 0.0154, 2)


def test_new_prices_hold_at_once(rewind: Rewind, filled: Shelf, tmp_path: Path):
    assert rewind("stats", "--json").json()["total"]["cost_usd"] == 0.022
    (tmp_path / "pyproject.toml").write_text(PRICES.replace("10,", "20,"))
    assert rewind("stats", "--json").json()["total"]["cost_usd"] == 0.042


def test_many_groups_are_cut_and_the_rest_is_said(rewind: Rewind, shelf: Shelf):
    writer = shelf.begin("7f3a2b9c", started=NOW)
    for index in range(1, 36):
        writer.request(a_request(index, ts=NOW, model=f"model-{index:02}"), b"{}")
        writer.response(index, an_answer(2, reading=Reading(usage=Usage(input=1))), b"{}")
    writer.close()
    text = rewind("stats").text
    assert len(re.findall(r"^model-", text, re.MULTILINE)) == 30
    assert "5 more are in the total: --json shows them all" in text
    assert len(rewind("stats", "--json").json()["groups"]) == 35


def test_recorded_names_cannot_steer_the_terminal(rewind: Rewind, shelf: Shelf):
    hostile = "\x1b]0;owned\x07\x9b31m\u202e"
    writer = shelf.begin("7f3a2b9c", started=NOW, name=hostile, command=("python", hostile))
    writer.request(a_request(1, ts=NOW, model=hostile, provider=hostile), b"{}")
    writer.response(1, an_answer(2, reading=Reading(model=hostile)), b"{}")
    writer.close()
    for by in ("model", "provider", "day", "name", "command"):
        ran = rewind("stats", "--by", by)
        assert ran.code == 0
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", ran.text + ran.talk)


@pytest.mark.parametrize(
    ("arguments", "part"), [(("--days", "-1"), "-1"), (("--days", "x"), "x"), (("--by", "hour"), "hour")]
)
def test_what_makes_no_sense_is_one_sentence(rewind: Rewind, arguments: tuple[str, ...], part: str):
    ran = rewind("stats", *arguments)
    assert ran.code == ExitCode.USAGE
    assert part in ran.talk.splitlines()[0]
    assert ran.data == b""


@given(st.lists(st.floats(0, 1e12), max_size=60))
def test_bars_rise_with_their_values(values):
    drawn = bars(values)
    assert len(drawn) == len(values)
    heights = [(NOTHING + BARS).index(bar) for bar in drawn]
    assert [height for _, height in sorted(zip(values, heights, strict=True))] == sorted(heights)
    assert all((height > 0) == (value > 0) for value, height in zip(values, heights, strict=True))
    assert not any(values) or max(heights) == len(BARS)


@given(st.dates(date(2020, 1, 1), date(2030, 1, 1)), st.integers(0, 2000), st.integers(1, 200))
def test_spans_cover_every_day_once_and_fit(first, more, room):
    last = date.fromordinal(first.toordinal() + more)
    found = list(spans(first, last, room))
    assert len(found) <= room
    days = [day for begin, end in found for day in range(begin.toordinal(), end.toordinal() + 1)]
    assert days == list(range(first.toordinal(), last.toordinal() + 1))
