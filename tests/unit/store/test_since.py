"""Since when a value has been there: the first session that had it, and the last one that had the old one."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from rewind.conversation.sketch import Sketch
from rewind.model.ids import MatchKey, SessionId
from rewind.model.session import Lineage, Session, SessionStart, Surroundings
from rewind.model.step import Reading, StepKind
from rewind.store.journal.first_seen import CallField, FieldValue, FirstSeen, first_seen
from rewind.store.journal.writer import SessionWriter
from rewind.store.library import Library
from unit.store.making import request, response, start

NINE = 1_794_733_200.0
"""The moment from which these sessions count their minutes."""
OLD, NEW, OTHER = "0a" * 6, "0b" * 6, "0c" * 6
SYSTEM = FieldValue(field=CallField.SYSTEM, value=NEW)


class Shelf:
    """Writes sessions that begin at some minute; each step is asked a second after the one before."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def add(
        self,
        session: str,
        minute: float,
        steps: Sequence[dict[str, Any]],
        *,
        surroundings: Surroundings | None = None,
        **changes: Any,
    ) -> Session:
        """Of each step the fields of its sketch; ``asked`` and ``answered`` are models, ``at`` its minute."""
        begun = start(id=SessionId(session), started=NINE + 60 * minute, **changes)
        writer = SessionWriter.create(self.home, begun)
        for index, step in enumerate(steps, 1):
            told = dict(step)
            model, answered = told.pop("asked", "small"), told.pop("answered", "small-2026-01-01")
            ts = NINE + 60 * told.pop("at", minute) + index
            sketch = None if told.pop("unsketched", False) else str(Sketch(**told))
            writer.request(request(index, ts=ts, model=model, sketch=sketch), b"{}")
            writer.response(index, response(reading=Reading(model=answered)), b"{}")
        if surroundings is not None:
            writer.surroundings(surroundings)
        writer.end(ended=begun.started + 30, exit_code=0, redactions=0, remarks=())
        return next(one for one in Library(self.home).sessions() if one.folder == writer.folder.name)

    def journal(self, session: Session) -> Path:
        return self.home / "sessions" / session.folder / "journal.jsonl"


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def seen(shelf: Shelf, mark: FieldValue = SYSTEM, **more: Any) -> FirstSeen:
    found = first_seen(shelf.home, mark, **({"old": OLD} | more))
    assert found is not None
    return found


def test_the_first_session_with_the_new_value_and_the_last_with_the_old_are_named(shelf: Shelf) -> None:
    shelf.add("00000001", 0, [{"system": OLD}])
    last = shelf.add("00000002", 2, [{"system": OTHER}, {"system": OLD}, {"system": OLD}])
    shelf.add("00000003", 5, [{"system": OTHER}])
    first = shelf.add("00000004", 14, [{"system": OTHER}, {"system": NEW}])
    shelf.add("00000005", 20, [{"system": NEW}])
    found = seen(shelf)
    assert (found.session, found.step, found.ts) == (first, 2, NINE + 14 * 60 + 2)
    assert found.last_without is not None
    assert (found.last_without.session, found.last_without.step) == (last, 3)
    assert found.last_without.ts == NINE + 2 * 60 + 3
    assert (found.before, found.after, found.unread) == (2, 0, 0)


@pytest.mark.parametrize("part", [CallField.SYSTEM, CallField.TOOLS, CallField.SETTINGS])
def test_every_part_is_looked_for_in_its_own_place(shelf: Shelf, part: CallField) -> None:
    everywhere_else = {one.name: NEW for one in fields(Sketch) if one.name != part.value}
    shelf.add("00000001", 0, [{part.value: OLD, **everywhere_else}])
    first = shelf.add("00000002", 1, [everywhere_else, {part.value: NEW}])
    found = seen(shelf, FieldValue(field=part, value=NEW))
    assert (found.session.id, found.step, found.before) == (first.id, 2, 1)


@pytest.mark.parametrize("part", [CallField.SYSTEM, CallField.TOOLS, CallField.SETTINGS])
def test_nothing_is_a_value_too(shelf: Shelf, part: CallField) -> None:
    some = {one.name: OTHER for one in fields(Sketch)}
    shelf.add("00000001", 0, [some])
    shelf.add("00000002", 1, [{**some, part.value: "-"}])
    shelf.add("00000003", 2, [{**some, part.value: NEW}])
    appeared = seen(shelf, FieldValue(field=part, value=NEW), old="-")
    assert (appeared.session.id, appeared.before) == ("00000003", 1)
    assert appeared.last_without is not None and appeared.last_without.session.id == "00000002"
    vanished = seen(shelf, FieldValue(field=part, value="-"), old=OTHER)
    assert (vanished.session.id, vanished.before) == ("00000002", 1)


def test_a_model_is_looked_for_where_it_was_asked_and_a_snapshot_where_it_answered(shelf: Shelf) -> None:
    shelf.add("00000001", 0, [{"asked": "small", "answered": "large"}])
    shelf.add("00000002", 1, [{"asked": "large", "answered": "small"}])
    asked = seen(shelf, FieldValue(field=CallField.MODEL, value="large"), old="small")
    assert (asked.session.id, asked.before) == ("00000002", 1)
    answered = seen(shelf, FieldValue(field=CallField.SNAPSHOT, value="small"), old="large")
    assert (answered.session.id, answered.before) == ("00000002", 1)


def test_a_snapshot_behind_an_alias_is_not_one_that_was_asked_for_by_name(shelf: Shelf) -> None:
    shelf.add("00000001", 0, [{"asked": "gpt-2026-05", "answered": "gpt-2026-05"}])
    shelf.add("00000002", 1, [{"asked": "gpt", "answered": "gpt-2025-11"}])
    mixed = [{"asked": "gpt-2026-05", "answered": "gpt-2026-05"}, {"asked": "gpt", "answered": "gpt-2026-05"}]
    shelf.add("00000003", 2, mixed)
    found = seen(shelf, FieldValue(field=CallField.SNAPSHOT, value="gpt-2026-05", asked="gpt"), old="gpt-2025-11")
    assert (found.session.id, found.step, found.before) == ("00000003", 2, 1)
    by_any_name = seen(shelf, FieldValue(field=CallField.SNAPSHOT, value="gpt-2026-05"), old="gpt-2025-11")
    assert (by_any_name.session.id, by_any_name.before) == ("00000001", 0)


@pytest.mark.parametrize("model", ["modèle", 'a"b\\c', "漢字", "x\udcff"])
def test_models_with_unusual_names_are_found(shelf: Shelf, model: str) -> None:
    shelf.add("00000001", 0, [{"asked": "small"}])
    shelf.add("00000002", 1, [{"asked": model}])
    assert seen(shelf, FieldValue(field=CallField.MODEL, value=model), old="small").session.id == "00000002"


def test_a_long_session_that_came_to_the_value_later_is_not_the_first(shelf: Shelf) -> None:
    shelf.add("00000001", 0, [{"system": OLD}, {"system": NEW, "at": 50}])
    first = shelf.add("00000002", 10, [{"system": NEW}])
    found = seen(shelf)
    assert (found.session, found.step) == (first, 1)
    assert found.last_without is not None and found.last_without.session.id == "00000001"
    assert (found.last_without.step, found.before) == (1, 1)


def test_a_value_that_changes_within_a_session_has_both_ends_there(shelf: Shelf) -> None:
    shelf.add("00000001", 0, [{"system": OLD}, {"system": OLD}, {"system": NEW}, {"system": OLD}])
    found = seen(shelf)
    assert found.last_without is not None
    assert (found.step, found.last_without.step) == (3, 2)


def test_an_old_value_that_is_used_again_is_counted(shelf: Shelf) -> None:
    for number, system in enumerate((OLD, NEW, OLD, NEW, OLD)):
        shelf.add(f"0000000{number}", number, [{"system": system}])
    found = seen(shelf)
    assert (found.session.id, found.before, found.after) == ("00000001", 1, 2)


def test_sessions_that_rewind_made_itself_are_no_evidence(shelf: Shelf) -> None:
    shelf.add("00000001", 0, [{"system": OLD}])
    shelf.add("00000002", 1, [{"system": NEW}], replay_of=SessionId("00000009"))
    shelf.add("00000003", 2, [{"system": OLD}], replay_of=SessionId("00000001"))
    shelf.add("00000004", 3, [{"unsketched": True}], replay_of=SessionId("00000001"))
    fork = Lineage(session=SessionId("00000001"), step=1, key=MatchKey("rw1:0"))
    shelf.add("00000005", 4, [{"system": NEW}], forked_from=fork)
    shelf.add("00000006", 5, [{"system": NEW}])
    found = seen(shelf)
    assert (found.session.id, found.before, found.unread) == ("00000006", 1, 0)
    assert found.last_without is not None and found.last_without.session.id == "00000001"


def test_sessions_that_are_not_asked_about_do_not_count(shelf: Shelf) -> None:
    shelf.add("00000001", 0, [{"asked": "large"}], name="another agent")
    shelf.add("00000002", 1, [{"asked": "small"}], name="another agent")
    shelf.add("00000003", 2, [{"asked": "small"}])
    shelf.add("00000004", 3, [{"asked": "large"}])

    def same_name(one: SessionStart) -> bool:
        return one.name == "support"

    found = seen(shelf, FieldValue(field=CallField.MODEL, value="large"), old="small", among=same_name)
    assert (found.session.id, found.before) == ("00000004", 1)


def test_sessions_of_an_older_rewind_cannot_tell_and_are_counted(shelf: Shelf) -> None:
    shelf.add("00000001", 0, [{"unsketched": True}])
    shelf.add("00000002", 1, [])
    rule_of_tomorrow = shelf.add("00000003", 2, [{"system": NEW}])
    path = shelf.journal(rule_of_tomorrow)
    path.write_bytes(path.read_bytes().replace(b"rs1:", b"rs0:"))
    shelf.add("00000004", 3, [{"system": NEW}])
    shelf.add("00000005", 4, [{"unsketched": True}])
    found = seen(shelf)
    assert (found.session.id, found.unread) == ("00000004", 2)


def test_other_calls_have_no_sketch_and_are_not_missed(shelf: Shelf) -> None:
    writer = SessionWriter.create(shelf.home, start(started=NINE))
    writer.request(request(1, kind=StepKind.HTTP_CALL, sketch=None), b"")
    writer.close()
    shelf.add("00000002", 1, [{"system": NEW}])
    assert seen(shelf).unread == 0


def test_a_damaged_line_is_no_evidence_but_makes_its_session_doubtful(shelf: Shelf) -> None:
    damaged = shelf.add("00000001", 0, [{"system": NEW, "asked": "small"}])
    path = shelf.journal(damaged)
    path.write_bytes(path.read_bytes().replace(b'"model":"small"', b'"model":"smell"'))
    first = shelf.add("00000002", 1, [{"system": NEW}])
    found = seen(shelf)
    assert (found.session, found.unread) == (first, 1)


def test_a_value_that_only_a_text_holds_is_not_found(shelf: Shelf) -> None:
    writer = SessionWriter.create(shelf.home, start(started=NINE))
    text = f'"sketch":"rs1:{NEW}:-:-:-:-:-" :{NEW}: "model":"large"'
    writer.request(request(1, sketch=str(Sketch(system=OLD, turn=NEW)), note=text), b"")
    writer.response(1, response(reading=Reading(model="small", text=text)), b"")
    writer.close()
    assert first_seen(shelf.home, SYSTEM, old=OLD) is None
    assert first_seen(shelf.home, FieldValue(field=CallField.SNAPSHOT, value="large")) is None


def test_nothing_after_the_bad_run_is_looked_at(shelf: Shelf) -> None:
    shelf.add("00000001", 0, [{"system": OLD}])
    bad = shelf.add("00000002", 1, [{"system": OTHER}])
    shelf.add("00000003", 2, [{"system": NEW}])
    assert first_seen(shelf.home, SYSTEM, old=OLD, until=bad) is None
    assert seen(shelf, replace(SYSTEM, value=OTHER), until=bad).session == bad


def test_without_an_old_value_only_the_first_is_looked_for(shelf: Shelf) -> None:
    shelf.add("00000001", 0, [{"system": OLD}])
    shelf.add("00000002", 1, [{"system": NEW}])
    shelf.add("00000003", 2, [{"system": NEW}])
    looked_through: list[int] = []
    found = seen(shelf, old=None, on_progress=lambda done, _total: looked_through.append(done))
    assert (found.session.id, found.last_without, found.before) == ("00000002", None, 0)
    assert looked_through == [0, 1, 2, 3]


def test_what_the_sessions_stood_on_comes_along(shelf: Shelf) -> None:
    before, after = Surroundings(commit="a" * 40, dirty=False), Surroundings(commit="b" * 40, dirty=True)
    shelf.add("00000001", 0, [{"system": OLD}], surroundings=before)
    shelf.add("00000002", 1, [{"system": NEW}], surroundings=after)
    found = seen(shelf)
    assert found.surroundings == after
    assert found.last_without is not None and found.last_without.surroundings == before


def test_a_session_that_still_runs_is_evidence(shelf: Shelf) -> None:
    writer = SessionWriter.create(shelf.home, start(started=NINE))
    writer.request(request(1, sketch=str(Sketch(system=NEW))), b"")
    found = seen(shelf)
    writer.close()
    assert (found.session.id, found.session.end) == ("7f3a2b9c", None)


def test_an_absent_store_and_strangers_in_it_are_nothing(tmp_path: Path) -> None:
    assert first_seen(tmp_path / "nowhere", SYSTEM) is None
    home = Shelf(tmp_path / "home")
    home.add("00000002", 1, [{"system": NEW}])
    empty = home.home / "sessions" / "20200101T000000.000Z-0000000a"
    empty.mkdir()
    planted = home.home / "sessions" / "20200101T000000.000Z-0000000b"
    planted.mkdir()
    (planted / "journal.jsonl").symlink_to("/etc/passwd")
    assert seen(home).session.id == "00000002"
