"""Journal lines: values there and back, and what damage does."""

import json
from dataclasses import replace

import pytest

from rewind.model.http import Chunk
from rewind.model.ids import BlobId, MatchKey, SessionId
from rewind.model.session import Edited, Lineage, SessionEnd
from rewind.model.step import Ending, Reading, StepRequest
from rewind.store.journal import records as journal
from rewind.store.journal.contents import read_journal
from rewind.store.journal.lines import seal, stamped, unseal
from rewind.store.journal.totals import Totals, totals_fields
from support.effort import in_short
from unit.store.making import request, response, start

END = SessionEnd(ended=9.5, exit_code=3, stdin=None, stdout=None, stderr=None, redactions=2, remarks=("a", "b"))


def lines(count: int = 3, *, end: bool = True) -> list[bytes]:
    fields = [journal.session_fields(start())]
    for index in range(1, count + 1):
        fields.append(journal.request_fields(request(index)))
        fields.append(journal.response_fields(index, 5.0, response(), None))
    if end:
        fields.append(journal.end_fields(END, totals_fields(Totals(steps=count)), 77))
    return [seal(stamped(each, run="7f3a2b9c", number=n)) for n, each in enumerate(fields)]


def test_every_value_comes_back_as_it_was() -> None:
    begun = start(tags={"k": "v"}, key_variables=("OPENAI_API_KEY",), hosts=("*",), all_hosts=True, name=None)
    assert journal.session_start(unseal(seal(journal.session_fields(begun))[:-1])) == begun
    asked = request(4, note="too large", model=None)
    assert journal.step_request(unseal(seal(journal.request_fields(asked))[:-1])) == asked
    cut = response(
        ending=Ending.NO_ANSWER,
        head=None,
        first_ms=None,
        chunks=(),
        reason="refused",
        reading=Reading(error="x", note="y"),
    )
    for answered in (response(), response(trailers=(("X-T", "1"),)), cut):
        line = seal(journal.response_fields(4, 1.0, answered, None))[:-1]
        assert journal.step_answer(unseal(line)) == journal.AnswerLine(answered, None)
    assert journal.session_end(unseal(seal(journal.end_fields(END, totals_fields(Totals()), 0))[:-1])) == END


def test_a_line_is_plain_json_that_says_first_what_it_is() -> None:
    for line in lines():
        fields = json.loads(line)
        assert list(fields)[:4] == ["kind", "ts", "run", "n"]
        assert list(fields)[-1] == "~"
        assert line.count(b"\n") == 1
        assert len(line) < 1024


def test_text_that_is_no_unicode_is_kept() -> None:
    begun = start(command=("run", "\udcff\udc80", "é漢\u2028\x00\x1b"))
    assert journal.session_start(unseal(seal(journal.session_fields(begun))[:-1])) == begun


def test_long_texts_are_shortened_in_the_line() -> None:
    line = seal(journal.response_fields(1, 1.0, response(reading=Reading(text="x" * 9000, error="e" * 9000)), None))
    assert len(line) < 4096


def test_a_cut_line_is_named_and_the_rest_is_read() -> None:
    whole = lines()
    whole[3] = whole[3][:40] + b"\n"
    found = read_journal(b"".join(whole))
    assert found.damage == ["journal line 4: it does not end with a checksum"]
    assert set(found.requests) == {1, 3}
    assert set(found.answers) == {1, 2, 3}
    assert found.end == END


def test_what_steps_repeat_is_held_once() -> None:
    found = read_journal(b"".join(lines()))
    assert len({id(request.head) for request in found.requests.values()}) == 1
    assert len({id(answer.response.head) for answer in found.answers.values()}) == 1


def test_a_torn_tail_is_normal_for_a_killed_run() -> None:
    whole = lines(end=False)
    for size in range(1, len(whole[-1]) - 1):
        found = read_journal(b"".join(whole[:-1]) + whole[-1][:size])
        assert found.damage == []
        assert set(found.answers) == {1, 2}
    assert read_journal(b"".join(whole)[:-1]).answers.keys() == {1, 2, 3}  # only the newline is missing


def test_a_tail_that_no_recorder_leaves_is_damage() -> None:
    whole = b"".join(lines(end=False))
    assert read_journal(whole + b"\0" * 50).damage
    assert read_journal(whole[:-1] + b"x").damage
    assert set(read_journal(whole[:-1] + b"x").answers) == {1, 2, 3}
    assert read_journal(b"".join(lines()) + b'{"kind":"st').damage


def test_an_overwritten_newline_costs_no_line() -> None:
    whole = lines()
    whole[2] = whole[2][:-1] + b"X"
    found = read_journal(b"".join(whole))
    assert len(found.damage) == 1
    assert set(found.requests) == set(found.answers) == {1, 2, 3}


def test_lines_taken_out_are_missed() -> None:
    whole = lines()
    assert read_journal(b"".join(whole[:2] + whole[4:])).damage == ["journal: 2 line(s) are gone without a trace"]


def test_every_flipped_bit_is_seen() -> None:
    data = b"".join(lines(2))
    for place in in_short(range(len(data)), 200):
        hurt = bytearray(data)
        hurt[place] ^= 1 << (place % 8)
        found = read_journal(bytes(hurt))
        assert found.damage, place
        assert len(found.answers) >= 1
        known: dict[int, StepRequest] = {1: request(1), 2: request(2)}
        assert all(known[index] == read for index, read in found.requests.items())


def test_unknown_kinds_and_fields_are_skipped() -> None:
    fields = {**journal.request_fields(request(1)), "colour": "green"}
    odd = [journal.session_fields(start()), {"kind": "mood", "ts": 1.0, "level": 3}, fields]
    data = b"".join(seal(stamped(each, run="7f3a2b9c", number=n)) for n, each in enumerate(odd))
    found = read_journal(data)
    assert found.damage == []
    assert found.requests == {1: request(1)}


@pytest.mark.parametrize("change", [{"type": "dance"}, {"step": None}, {"headers": 5}, {"method": None, "ts": None}])
def test_a_sound_line_that_makes_no_sense_stops_nothing(change: dict[str, object]) -> None:
    fields = [journal.session_fields(start()), {**journal.request_fields(request(1)), **change}]
    read_journal(b"".join(seal(stamped(each, run="7f3a2b9c", number=n)) for n, each in enumerate(fields)))


def test_chunks_may_be_named_instead_of_listed() -> None:
    answered = response(chunks=(Chunk(1, 2),))
    found = journal.step_answer(unseal(seal(journal.response_fields(1, 1.0, answered, BlobId("sha256:ab")))[:-1]))
    assert found == journal.AnswerLine(replace(answered, chunks=()), BlobId("sha256:ab"))


def test_a_lineage_comes_back_as_it_was() -> None:
    origin = Lineage(
        session=SessionId("9b2c4d10"),
        step=4,
        key=MatchKey("rw1:aa"),
        edits=("system=You are\nkind", "temperature=0"),
        by_hand=True,
        earlier=(Edited(key=MatchKey("rw1:bb"), edits=("model=m",)),),
        sample=2,
    )
    begun = start(forked_from=origin)
    assert journal.session_start(unseal(seal(journal.session_fields(begun))[:-1])) == begun


@pytest.mark.parametrize(
    "told",
    ["9b2c", 4, [], {}, {"session": 4, "step": 1}, {"session": "9b2c4d10"}, {"session": "9b2c4d10", "step": "4"}],
)
def test_a_lineage_that_makes_no_sense_is_none(told: object) -> None:
    fields = journal.session_fields(start()) | {"forked_from": told}
    assert journal.session_start(fields).forked_from is None


def test_a_lineage_with_odd_members_is_read_as_far_as_it_makes_sense() -> None:
    told = {"session": "9b2c4d10", "step": 4, "edits": ["a=1", 2], "earlier": [3, {"key": "k"}], "sample": "x"}
    fields = journal.session_fields(start()) | {"forked_from": told}
    origin = journal.session_start(fields).forked_from
    assert origin == Lineage(
        session=SessionId("9b2c4d10"),
        step=4,
        key=MatchKey(""),
        edits=("a=1",),
        earlier=(Edited(key=MatchKey("k"), edits=()),),
    )


def test_the_key_of_what_the_agent_asked_and_an_answer_that_was_put_in_come_back() -> None:
    asked = request(4, asked_key=MatchKey("rw1:asked"))
    read = journal.step_request(unseal(seal(journal.request_fields(asked))[:-1]))
    assert (read, read.agents_key) == (asked, "rw1:asked")
    assert request(4).agents_key == request(4).match_key
    put_in = response(tape=0)
    line = seal(journal.response_fields(4, 1.0, put_in, None))[:-1]
    assert journal.step_answer(unseal(line)).response.tape == 0
