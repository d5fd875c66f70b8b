"""``rewind search``: what it shows, what it says, and how a long text is cut around what was found."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind.cli import progress
from rewind.cli.screens.search import snippet_spans
from rewind.errors import ExitCode
from rewind.model.http import RequestHead, ResponseHead
from rewind.model.step import Ending, StepResponse
from rewind.reading.search import search
from rewind.safe import display_width
from rewind.text import moment_of
from unit.cli.shelf import Rewind, Shelf, a_request

CHAT = RequestHead(
    method="POST", scheme="https", host="api.openai.com", port=443, target="/v1/chat/completions", headers=()
)
ANSWER = StepResponse(
    ending=Ending.COMPLETE,
    head=ResponseHead(status=200, reason="OK", headers=(("content-type", "application/json"),)),
    ms=12.5,
)


def add(shelf: Shelf, session: str, *exchanges: tuple[str, str], **changes: Any) -> Path:
    """A session in which a user says the first of each pair, and the model the second."""
    writer = shelf.begin(session, **changes)
    for index, (asked, answered) in enumerate(exchanges, 1):
        body = {"messages": [{"role": "user", "content": asked}]}
        said = {"choices": [{"message": {"role": "assistant", "content": answered}}]}
        writer.request(a_request(index, head=CHAT), json.dumps(body).encode())
        writer.response(index, ANSWER, json.dumps(said).encode())
    writer.end(ended=1_700_000_008.4, exit_code=0, redactions=0, remarks=())
    return writer.folder


def test_a_hit_is_a_line_with_its_step_age_speaker_and_words(rewind: Rewind, shelf: Shelf):
    add(shelf, "7f3a2b9c", ("Where is my refund?", "Your refund\n\n  is on its way."), ("Thanks", "Any time"))
    ran = rewind("search", "REFUND")
    first, second = ran.text.splitlines()
    assert re.fullmatch(r"7f3a2b9c:1  \d+ d  user       Where is my refund\?", first)
    assert re.fullmatch(r"7f3a2b9c:1  \d+ d  assistant  Your refund⏎is on its way\.", second)
    assert ran.code == 0
    assert ran.talk == "→ rewind inspect 7f3a2b9c:1\n"


def test_what_was_found_stands_out_on_a_screen(rewind: Rewind, shelf: Shelf, monkeypatch: pytest.MonkeyPatch):
    add(shelf, "7f3a2b9c", ("a Refund, two refunds", "ok"))
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert rewind("search", "refund").text.count("\x1b[1;33m") == 2
    assert "a \x1b[1;33mRefund\x1b[0m, two \x1b[1;33mrefund\x1b[0ms" in rewind("search", "refund").text


@pytest.mark.parametrize("columns", [20, 60, 100])
def test_a_line_fits_the_screen_and_shows_what_was_found(
    rewind: Rewind, shelf: Shelf, monkeypatch: pytest.MonkeyPatch, columns: int
):
    add(shelf, "7f3a2b9c", ("before " * 90 + "needle" + " after" * 90, "ok"))
    monkeypatch.setenv("COLUMNS", str(columns))
    (line,) = rewind("search", "needle").text.splitlines()
    assert "needle" in line
    assert len(line) <= max(columns, 60)


def test_nothing_found_is_said_and_no_failure(rewind: Rewind, shelf: Shelf, home: Path):
    ran = rewind("search", "x")
    assert (ran.code, ran.data) == (0, b"")
    assert "No session is recorded" in ran.talk
    assert not home.exists(), "looking must not make a store"
    add(shelf, "7f3a2b9c", ("hello", "hi"))
    ran = rewind("search", "absent")
    assert (ran.code, ran.data) == (0, b"")
    assert ran.talk == "Nothing recorded contains 'absent'; 1 session searched.\n"
    assert "'a' and 'zz' in one text" in rewind("search", "a", "zz").talk
    assert "Drop --in, --session or --since to search more" in rewind("search", "hi", "--in", "user").talk


@pytest.mark.parametrize("empty", [[""], ["  "], ["word", ""], []])
def test_an_empty_text_is_a_usage_error(rewind: Rewind, empty: list[str]):
    ran = rewind("search", *empty)
    assert (ran.code, ran.data) == (ExitCode.USAGE, b"")


def test_a_text_may_begin_with_a_dash(rewind: Rewind, shelf: Shelf):
    add(shelf, "7f3a2b9c", ("run it with --force", "ok"))
    assert rewind("search", "--", "--force").text.startswith("7f3a2b9c:1")


def test_the_limit_says_when_there_are_more(rewind: Rewind, shelf: Shelf):
    for number in range(4):
        add(shelf, f"{number}aaaaaaa", ("word", "ok"), started=1_700_000_000.0 + number)
    ran = rewind("search", "word", "--limit", "2")
    assert [line[0] for line in ran.text.splitlines()] == ["3", "2"]
    assert "--limit 4" in ran.talk
    everything = rewind("search", "word", "--limit", "0")
    assert [line[0] for line in everything.text.splitlines()] == ["3", "2", "1", "0"]
    assert "--limit" not in everything.talk


def test_options_narrow_the_search(rewind: Rewind, shelf: Shelf):
    add(shelf, "7f3a2b9c", ("word", "the Word"), name="old", started=1_700_000_000.0)
    add(shelf, "8f3a2b9c", ("word", "the Word"), started=1_750_000_000.0)

    def places(*options: str) -> list[str]:
        return [" ".join(line.split()[::3][:2]) for line in rewind("search", "word", *options).text.splitlines()]

    assert places("--in", "assistant") == ["8f3a2b9c:1 assistant", "7f3a2b9c:1 assistant"]
    assert places("--session", "old") == ["7f3a2b9c:1 user", "7f3a2b9c:1 assistant"]
    assert places("--since", "2025-01-01", "--in", "user", "--in", "error") == ["8f3a2b9c:1 user"]
    assert places("--case", "--session", "8f") == ["8f3a2b9c:1 user"]
    assert rewind("search", "word", "--session", "nobody").code == ExitCode.NOT_FOUND
    assert rewind("search", "word", "--since", "soon").code == ExitCode.USAGE


def test_json_names_each_place(rewind: Rewind, shelf: Shelf):
    empty = rewind("search", "x", "--json").json()
    assert empty["schema"] == "rewind/search@1"
    assert (empty["hits"], empty["more"]) == ([], False)
    folder = add(shelf, "7f3a2b9c", ("Où est-il ?", "Là-bas."))
    ran = rewind("search", "EST", "--json")
    assert ran.data.isascii()
    assert ran.talk == ""
    assert ran.json() == {
        "schema": "rewind/search@1",
        "hits": [
            {
                "session": "7f3a2b9c",
                "step": 1,
                "kind": "user",
                "started": "2023-11-14T22:13:21.000Z",
                "snippet": "Où est-il ?",
                "marks": [[3, 6]],
                "folder": folder.name,
            }
        ],
        "more": False,
        "searched": {"sessions": 1, "texts": 2, "cut": 0, "unreadable": 0},
    }


def test_what_could_not_be_searched_is_said(rewind: Rewind, shelf: Shelf):
    folder = add(shelf, "7f3a2b9c", ("hello", "hi"))
    (folder / "pack").unlink()
    ran = rewind("search", "hello")
    assert ran.code == 0
    assert "2 damaged bodies were not searched: rewind verify" in ran.talk


@pytest.mark.parametrize("text", ["apples", "APPLES today", "plums", "ok"])
def test_a_list_of_sessions_and_a_search_agree(rewind: Rewind, shelf: Shelf, text: str):
    for number, said in enumerate(["Apples", "pears", "no apples today"]):
        add(shelf, f"{number}aaaaaaa", (said, "ok"), started=1_700_000_000.0 + number)
    hits = rewind("search", text, "--json", "--limit", "0").json()["hits"]
    listed = rewind("list", "--text", text, "--json").json()["sessions"]
    assert [session["folder"] for session in listed] == list(dict.fromkeys(hit["folder"] for hit in hits))


class Screen(io.StringIO):
    """A terminal that remembers what was written."""

    def isatty(self) -> bool:
        return True


class Impatient:
    """A clock that a second goes by on at every look."""

    def __init__(self) -> None:
        self._moment = 0.0

    def now(self) -> float:
        self._moment += 1.0
        return self._moment


def test_a_long_catch_up_shows_where_it_is_and_clears_up(shelf: Shelf, home: Path, monkeypatch: pytest.MonkeyPatch):
    for number in range(3):
        add(shelf, f"{number}aaaaaaa", ("word", "ok"), started=1_700_000_000.0 + number)
    monkeypatch.setattr("sys.stderr", screen := Screen())
    monkeypatch.setattr(progress, "SystemClock", Impatient)
    with progress.progress_line() as on_progress:
        search(home, ["word"], on_progress=on_progress)
        *_, line = screen.getvalue().split("\r")
        assert line == "2/3 sessions made searchable"
    assert screen.getvalue().endswith("\r" + " " * len(line) + "\r")


# ── cutting ──────────────────────────────────────────────────────────────────────────────────────────────────


def shown(text: str, needle: str, width: int, **more: bool) -> str:
    at = text.index(needle)
    return "".join(span.text for span in snippet_spans(text, [(at, at + len(needle))], width, **more))


def test_a_text_that_fits_is_shown_whole():
    assert shown("all of it", "of", 9) == "all of it"
    assert shown("all of it", "of", 11, from_start=False, to_end=False) == "…all of it…"


def test_a_third_of_the_room_goes_to_what_stands_before():
    assert shown("a" * 50 + "X" + "b" * 50, "X", 31) == "…" + "a" * 9 + "X" + "b" * 19 + "…"


def test_little_after_leaves_more_before():
    assert shown("a" * 50 + "X" + "b" * 3, "X", 31) == "…" + "a" * 26 + "X" + "bbb"


def test_breaks_tabs_and_controls_are_made_visible():
    assert shown("one \n\n two\tthree\x1b[2J", "two", 80) == "one⏎two three\\x1b[2J"


def test_wide_characters_take_two_columns():
    assert display_width(shown("漢" * 40 + "X" + "字" * 40, "X", 30)) <= 30


@given(
    text=st.text(max_size=80),
    width=st.integers(min_value=4, max_value=60),
    place=st.tuples(st.integers(0, 80), st.integers(1, 5)),
    from_start=st.booleans(),
    to_end=st.booleans(),
)
def test_no_snippet_is_wider_than_the_room(
    text: str, width: int, place: tuple[int, int], from_start: bool, to_end: bool
):
    start = min(place[0], len(text))
    marks = [(start, min(start + place[1], len(text)))]
    spans = snippet_spans(text, marks, width, from_start=from_start, to_end=to_end)
    line = "".join(span.text for span in spans)
    assert display_width(line) <= width
    assert "\n" not in line


# ── moments ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("30min", 998_200.0),
        ("2h", 992_800.0),
        ("1 d", 913_600.0),
        ("1W", 395_200.0),
        ("1970-01-02T00:00:00Z", 86_400.0),
        ("1970-01-02T01:00:00+01:00", 86_400.0),
    ],
)
def test_a_moment_is_a_span_back_or_a_date(value: str, moment: float):
    assert moment_of(value, now=1_000_000.0) == moment


@pytest.mark.parametrize("value", ["", "soon", "2 years", "-1h", "2026-13-01", "h"])
def test_anything_else_is_no_moment(value: str):
    with pytest.raises(ValueError, match="neither a span"):
        moment_of(value, now=0.0)
