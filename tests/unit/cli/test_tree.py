"""``rewind list --tree``: forks under the sessions they come from."""

import io
from typing import Any

import pytest

from rewind.cli.screens.list import print_tree, tree
from rewind.cli.screens.terminal import Terminal
from rewind.model.ids import MatchKey, SessionId
from rewind.model.session import Lineage, Session, SessionStart, Status
from rewind.reading.sessions import ListedSession
from rewind.store.journal.totals import Totals
from unit.cli.shelf import Rewind, Shelf


def lineage(parent: str, step: int = 4, *edits: str, **more: Any) -> Lineage:
    return Lineage(session=SessionId(parent), step=step, key=MatchKey("rw1:x"), edits=edits, **more)


def session(name: str, started: float, **changes: Any) -> Session:
    start = SessionStart(
        id=SessionId(name),
        name=None,
        command=("python", "agent.py"),
        cwd="/x",
        started=started,
        rewind_version="0",
        **changes,
    )
    return Session(start=start, end=None, status=Status.INTERRUPTED, folder="")


def drawn(*sessions: Session) -> list[str]:
    return [line.drawn + line.id + ("" if line.session else " (gone)") for line in tree(sessions)]


def test_children_stand_under_their_parents_oldest_first_and_the_newest_tree_comes_first() -> None:
    assert drawn(
        session("aaaaaaaa", 1),
        session("bbbbbbbb", 2),
        session("a1a1a1a1", 3, forked_from=lineage("aaaaaaaa")),
        session("a2a2a2a2", 4, replay_of=SessionId("aaaaaaaa")),
        session("a1b1b1b1", 5, forked_from=lineage("a1a1a1a1")),
        session("a1c1c1c1", 6, forked_from=lineage("a1b1b1b1")),
        session("cccccccc", 7),
    ) == ["cccccccc", "aaaaaaaa", "├─ a1a1a1a1", "│  └─ a1b1b1b1", "│     └─ a1c1c1c1", "└─ a2a2a2a2", "bbbbbbbb"]


def test_a_parent_that_is_gone_is_shown_as_such_once() -> None:
    assert drawn(
        session("a1a1a1a1", 3, forked_from=lineage("aaaaaaaa")), session("a2a2a2a2", 4, forked_from=lineage("aaaaaaaa"))
    ) == ["aaaaaaaa (gone)", "├─ a1a1a1a1", "└─ a2a2a2a2"]


def test_journals_that_name_each_other_as_parents_are_shown_and_end() -> None:
    shown = drawn(
        session("aaaaaaaa", 1, forked_from=lineage("bbbbbbbb")),
        session("bbbbbbbb", 2, forked_from=lineage("aaaaaaaa")),
        session("cccccccc", 3, forked_from=lineage("cccccccc")),
    )
    assert sorted(line[-8:] for line in shown) == ["aaaaaaaa", "bbbbbbbb", "cccccccc"]


def test_a_long_line_of_forks_is_no_trouble() -> None:
    many = [session(f"{at:08x}", at, forked_from=lineage(f"{at - 1:08x}")) for at in range(1, 3000)]
    assert len(drawn(*many)) == 3000


@pytest.mark.parametrize(("signs", "corner"), [(True, "└─ "), (False, "`- ")])
def test_the_lines_are_drawn_with_what_the_screen_has(signs: bool, corner: str) -> None:
    stream = io.StringIO()
    rows = [
        ListedSession(session("aaaaaaaa", 1), Totals(steps=3)),
        ListedSession(
            session("bbbbbbbb", 2, forked_from=lineage("aaaaaaaa", 4, "system=Be\x1b[2J kind")), Totals(steps=1)
        ),
    ]
    print_tree(Terminal(stream, width=90, signs=signs), rows, now=61)
    first, second = stream.getvalue().splitlines()
    assert first.startswith("aaaaaaaa")
    assert first.endswith("python agent.py")
    assert second.startswith(f"{corner}bbbbbbbb")
    assert second.endswith("at step 4: system=Be\\x1b[2J kind")
    assert stream.getvalue().isascii() == (not signs)


def test_list_tree_shows_edits_samples_and_ancestors_beyond_the_filter(rewind: Rewind, shelf: Shelf) -> None:
    shelf.add("aaaaaaaa", b"{}", name="refund", started=1_700_000_000.0)
    shelf.add(
        "bbbbbbbb",
        b"{}",
        name="cooler",
        started=1_700_000_100.0,
        forked_from=lineage("aaaaaaaa", 2, "temperature=0", by_hand=True, sample=3),
    )
    shelf.add("cccccccc", b"{}", started=1_700_000_200.0, forked_from=lineage("dddddddd"))
    lines = rewind("list", "--tree").text.splitlines()
    assert [line.split()[0] for line in lines] == ["dddddddd", "└─", "aaaaaaaa", "└─"]
    assert "gone: it is not in the store any more" in lines[0]
    assert "at step 4: nothing changed" in lines[1]
    assert lines[3].endswith("at step 2: temperature=0, edited by hand · sample 3")
    filtered = rewind("list", "--tree", "--name", "cooler").text.splitlines()
    assert [line.split()[0] for line in filtered] == ["aaaaaaaa", "└─"], "with the session it comes from"
    assert [row["id"] for row in rewind("list", "--name", "cooler", "--json").json()["sessions"]] == ["bbbbbbbb"]
    told = {row["id"]: row["forked_from"] for row in rewind("list", "--json").json()["sessions"]}
    assert told["aaaaaaaa"] is None
    assert told["bbbbbbbb"] == {
        "session": "aaaaaaaa",
        "step": 2,
        "edits": ["temperature=0"],
        "by_hand": True,
        "earlier": [],
        "sample": 3,
        "probe": False,
    }
    assert "aaaaaaaa:2 · temperature=0, edited by hand · sample 3" in rewind("inspect", "bbbbbbbb").text


def test_an_empty_store_has_no_tree(rewind: Rewind) -> None:
    ran = rewind("list", "--tree")
    assert (ran.code, ran.text) == (0, "")
    assert "No session is recorded" in ran.talk
