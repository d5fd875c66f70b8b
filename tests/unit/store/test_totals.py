"""What a session comes to: counted while writing, counted again from its journal, and told by its last line."""

from pathlib import Path

from rewind.model.http import ResponseHead
from rewind.model.ids import MatchKey
from rewind.model.session import Session
from rewind.model.step import Ending, Reading, StepKind
from rewind.model.usage import Usage
from rewind.pricing.spending import PricesOnDemand
from rewind.store.journal.totals import Totals, totals_fields, totals_from_fields
from rewind.store.journal.writer import SessionWriter
from rewind.store.library import Library
from unit.store.making import PerToken, record, request, response, start


def a_varied_session(home: Path) -> Session:
    return written_with_totals(home)[0]


def written_with_totals(home: Path) -> tuple[Session, Totals]:
    """Two threads, a retry, an answer from a tape, a call without told tokens, another without an answer; and what its
    writer counted."""
    many = Usage(input=100, output=20, cache_read=40, cache_write=8, reasoning=5)
    limited = ResponseHead(status=429, reason="Too Many", headers=())
    writer = SessionWriter.create(home, start(), pricing=PricesOnDemand(lambda: PerToken(0.5)))
    asked = {
        1: request(1, thread=1),
        2: request(2, thread=1, match_key=MatchKey("rw1:again")),
        3: request(3, thread=1, match_key=MatchKey("rw1:again")),
        4: request(4, thread=2),
        5: request(5, thread=2),
        6: request(6, kind=StepKind.HTTP_CALL, provider="http", model=None),
        7: request(7, thread=2),
    }
    answers = {
        1: response(reading=Reading(usage=many)),
        2: response(head=limited, reading=Reading(error="slow down")),
        3: response(reading=Reading(usage=Usage(input=300, output=1))),
        4: response(reading=Reading(usage=many), tape=9),
        5: response(reading=Reading()),
        6: response(ending=Ending.UPSTREAM_CUT, reading=Reading()),
    }
    for index, one in asked.items():
        writer.request(one, b"")
        if index in answers:
            writer.response(index, answers[index], b"")
    writer.end(ended=1794774188.0, exit_code=0, redactions=0, remarks=())
    return Library(home).find("last"), writer.totals


COUNTED = Totals(
    steps=7,
    llm_calls=6,
    tokens_in=500,
    tokens_out=41,
    cache_read=80,
    cache_write=16,
    reasoning=10,
    peak_context=300,
    threads=2,
    cut=2,
    errors=1,
    retries=1,
    replayed=1,
)


def test_the_last_line_tells_the_counts(tmp_path: Path) -> None:
    session = a_varied_session(tmp_path)
    assert Library(tmp_path).totals(session) == COUNTED


def test_the_cost_leaves_out_tapes_and_says_what_it_could_not_price(tmp_path: Path) -> None:
    session = a_varied_session(tmp_path)
    priced = Library(tmp_path).totals(session, PerToken(0.5))
    assert (priced.cost, priced.unpriced) == (0.5 * (120 + 301), 2), "one told no tokens, one never ended"
    assert totals_fields(priced) == totals_fields(COUNTED)


def test_nothing_priced_is_unknown_and_never_nought(tmp_path: Path) -> None:
    session = record(tmp_path, [(b"asked", b"answered")])
    totals = Library(tmp_path).totals(session, PerToken(models=()))
    assert (totals.cost, totals.unpriced) == (None, 1)


def test_a_failed_call_without_tokens_is_not_called_unpriced(tmp_path: Path) -> None:
    writer = SessionWriter.create(tmp_path, start())
    refused = response(ending=Ending.NO_ANSWER, head=None, reading=Reading())
    limited = response(head=ResponseHead(status=429, reason="", headers=()), reading=Reading())
    for index, answer in enumerate((refused, limited), 1):
        writer.request(request(index), b"")
        writer.response(index, answer, b"")
    writer.close()
    library = Library(tmp_path)
    totals = library.totals(library.find("last"), PerToken())
    assert (totals.cost, totals.unpriced, totals.errors, totals.cut) == (None, 0, 1, 1)


def test_a_call_that_nobody_answered_may_have_cost_something(tmp_path: Path) -> None:
    """The recorder was killed while a live call was under way; all before it came from a tape."""
    writer = SessionWriter.create(tmp_path, start())
    for index in (1, 2, 3):
        writer.request(request(index), b"")
    writer.response(1, response(tape=1), b"")
    writer.response(2, response(ending=Ending.CLIENT_CLOSED, head=None, reading=Reading()), b"")
    writer.close()
    library = Library(tmp_path)
    totals = library.totals(library.find("last"), PerToken())
    assert (totals.cost, totals.unpriced) == (None, 2), "unknown is never $0"


def test_counting_passes_over_damage(tmp_path: Path) -> None:
    session = a_varied_session(tmp_path)
    journal = tmp_path / "sessions" / session.folder / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"POST", b"GET")
    journal.write_bytes(b"".join(lines) + b'{"kind":"torn')
    totals = Library(tmp_path).totals(session, PerToken())
    assert (totals.steps, totals.tokens_in) == (6, 400), "an answer whose request is gone is not counted"


def test_an_answer_still_to_come_is_missing_only_when_nobody_waits(tmp_path: Path) -> None:
    writer = SessionWriter.create(tmp_path, start())
    writer.request(request(1), b"")
    library = Library(tmp_path)
    assert library.totals(library.find("last"), PerToken()).cut == 0
    writer.close()
    assert library.totals(library.find("last"), PerToken()).cut == 1


def test_what_stands_in_the_last_line_comes_back() -> None:
    assert totals_from_fields(totals_fields(COUNTED)) == COUNTED
    assert totals_from_fields({}) == Totals()
    assert totals_from_fields({"steps": "7", "tokens_in": 10**30, "cut": None}) == Totals()


def test_what_a_session_cost_is_never_written(tmp_path: Path) -> None:
    a_varied_session(tmp_path)
    (journal,) = tmp_path.glob("sessions/*/journal.jsonl")
    assert b"cost" not in journal.read_bytes()


def test_what_a_writer_that_knows_prices_counted_is_what_its_journal_comes_to(tmp_path: Path) -> None:
    session, counted = written_with_totals(tmp_path)
    assert counted == Library(tmp_path).totals(session, PerToken(0.5))
    assert counted.cost and counted.unpriced == 2
