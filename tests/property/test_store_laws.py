"""Laws of the store: what goes in comes out, byte for byte, whatever it is and wherever it was cut."""

import json
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rewind.model.http import Chunk, ResponseHead
from rewind.model.ids import MatchKey, blob_id
from rewind.model.session import split_step
from rewind.model.step import Ending, Reading, StepKind, StepRequest, StepResponse
from rewind.model.usage import Usage
from rewind.store.catalog.database import Catalog, SessionQuery, find_sessions
from rewind.store.files import GrowingFile
from rewind.store.journal import records as journal
from rewind.store.journal.contents import read_journal
from rewind.store.journal.lines import seal, unseal
from rewind.store.journal.part import PartFile, decode_part, encode_record
from rewind.store.journal.records import decode_times, encode_times
from rewind.store.journal.writer import SessionWriter
from rewind.store.library import Library
from rewind.store.pack.frames import BadFrame, RecentRecipes, Recipe, RecipeReader, decode_header
from rewind.wire.chunks import LARGEST, common_run, cut_body
from support.effort import examples
from unit.store.making import ANSWER_HEAD, PerToken, record, request, start

TEXT = st.text(st.characters(), max_size=400)
LONG = st.builds(lambda text, times: text * times, TEXT, st.integers(1, 8))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | LONG,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def written(value: object, ascii_only: bool, indent: int | None) -> bytes:
    return json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode(errors="surrogatepass")


BODIES = (
    st.binary(max_size=3000)
    | st.builds(written, JSON, st.booleans(), st.sampled_from([None, 2]))
    | st.builds(lambda part, times: part * times, st.binary(min_size=1, max_size=40), st.integers(1, 4000))
)


@given(BODIES)
@example(b'["' + b"\\\\" * 500 + b'"]')
@example(b'"' + b"\\" * 600)
def test_the_pieces_of_a_body_are_the_body(body: bytes) -> None:
    pieces = cut_body(body)
    assert b"".join(pieces) == body
    assert all(0 < len(piece) <= LARGEST for piece in pieces)


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(BODIES, BODIES), max_size=6))
def test_what_is_recorded_comes_back(exchanges: list[tuple[bytes, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        session = record(Path(folder), exchanges)
        library = Library(Path(folder))
        with library.open(session) as reader:
            recording = reader.recording()
            assert recording.damage == ()
            for step, (asked, answered) in zip(recording.steps, exchanges, strict=True):
                assert step.response is not None
                assert reader.blob(step.request.body) == asked
                assert reader.blob(step.response.body) == answered
                assert (step.request.body_size, step.response.body_size) == (len(asked), len(answered))
        assert library.verify(session) == ()


NAMES = st.lists(st.integers(0, 12).map(lambda n: bytes([n]) * 32), max_size=30)


@given(st.lists(NAMES, min_size=1, max_size=12))
def test_a_recipe_leads_back_to_its_names(lists: list[list[bytes]]) -> None:
    conversations = RecentRecipes()
    recipes: dict[int, Recipe] = {}
    for offset, names in enumerate(lists):
        recipes[offset] = conversations.recipe_for(b"", names)
        conversations.remember(offset, names)
    for order in (range(len(lists)), reversed(range(len(lists)))):
        expander = RecipeReader(recipes.get)
        for offset in order:
            assert expander.names(offset) == lists[offset]


@given(NAMES, NAMES, st.integers(0, 30), st.integers(0, 30))
def test_a_common_run_is_as_long_as_it_can_be(one: list[bytes], other: list[bytes], start: int, begin: int) -> None:
    run = 0
    while start + run < len(one) and begin + run < len(other) and one[start + run] == other[begin + run]:
        run += 1
    assert common_run(one, start, other, begin) == run


TIMED = st.tuples(st.integers(0, 2**63), st.binary(min_size=1, max_size=50))


@given(st.lists(TIMED, max_size=8, unique_by=lambda piece: piece[0]).map(sorted), st.data())
def test_a_part_cut_anywhere_gives_a_beginning(pieces: list[tuple[int, bytes]], data: st.DataObject) -> None:
    head = ResponseHead(status=200, reason="OK", headers=(("A", "é\x80"),))
    with tempfile.TemporaryDirectory() as folder:
        part = PartFile(Path(folder) / "part.1", head, broken=lambda why: None)
        for at, piece in pieces:
            part.append(at, piece)
        part.close()
        stored = (Path(folder) / "part.1").read_bytes()
    whole = b"".join(piece for _, piece in pieces)
    contents = decode_part(stored)
    assert (contents.head, contents.body) == (head, whole)
    assert contents.chunks == tuple(Chunk(at, len(piece)) for at, piece in pieces)
    found = decode_part(stored[: data.draw(st.integers(0, len(stored)))])
    assert found.damage is None
    assert whole.startswith(found.body)
    hurt = bytearray(stored)
    hurt[data.draw(st.integers(0, len(stored) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert whole.startswith(decode_part(bytes(hurt)).body)


@given(st.lists(st.tuples(st.integers(0, 3), st.binary(min_size=1, max_size=2)), min_size=2, max_size=6), st.data())
def test_a_record_of_a_part_that_stands_twice_or_elsewhere_is_noticed(
    pieces: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    """Also where many pieces came at the same moment."""
    with tempfile.TemporaryDirectory() as folder:
        part = PartFile(Path(folder) / "part.1", ANSWER_HEAD, broken=lambda why: None)
        records, size = [], (Path(folder) / "part.1").stat().st_size
        for at, piece in pieces:
            part.append(at, piece)
            stored = (Path(folder) / "part.1").read_bytes()
            records.append(stored[size:])
            size = len(stored)
        part.close()
    head = stored[: size - sum(map(len, records))]
    one, other = sorted(data.draw(st.lists(st.integers(0, len(records) - 1), min_size=2, max_size=2, unique=True)))
    swapped = [*records]
    swapped[one], swapped[other] = records[other], records[one]
    doubled = [*records[: other + 1], records[one], *records[other + 1 :]]
    whole = b"".join(piece for _, piece in pieces)
    for hurt in (swapped, doubled, [head, *records], [*records, head]):
        found = decode_part(head + b"".join(hurt))
        assert found.damage
        assert whole.startswith(found.body)


@given(st.binary(max_size=200))
def test_no_bytes_make_a_part_or_a_frame_fail_otherwise(data: bytes) -> None:
    decode_part(data)
    decode_part(encode_record(0, data) + data)
    with suppress(BadFrame):
        decode_header(data)
    read_journal(data)


@given(st.lists(st.tuples(st.integers(0, 2**50), st.integers(0, 2**31))))
def test_arrival_times_come_back(pairs: list[tuple[int, int]]) -> None:
    chunks = tuple(Chunk(at, size) for at, size in pairs)
    assert decode_times(encode_times(chunks)) == chunks


@given(TEXT, TEXT, st.lists(st.tuples(TEXT, TEXT)), st.floats(0, 1e9))
def test_a_line_gives_back_any_text(model: str, note: str, headers: list[tuple[str, str]], ms: float) -> None:
    asked = request(1, model=model, note=note or None)
    asked = replace(asked, head=replace(asked.head, headers=tuple(headers), target=note))
    line = seal(journal.request_fields(asked))
    assert line.count(b"\n") == 1
    assert journal.step_request(unseal(line[:-1])) == asked
    answered = StepResponse(
        ending=Ending.COMPLETE,
        head=None,
        ms=ms,
        reading=Reading(text=model[:500], error=note or None),
        body=blob_id(b"x"),
    )
    line = seal(journal.response_fields(1, 1.0, answered, None))
    assert journal.step_answer(unseal(line[:-1])).response == answered


@given(TEXT, st.integers(0, 10**9 - 1))
def test_a_step_reference_splits_where_it_was_joined(name: str, step: int) -> None:
    assert split_step(f"x{name}:{step}") == (f"x{name}", step)


@given(st.lists(st.binary(max_size=100)))
def test_a_growing_file_holds_what_was_appended(pieces: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = GrowingFile(Path(folder) / "file")
        for piece in pieces:
            file.append(piece)
        assert file.read(10**6, 0) == b"".join(pieces)
        assert file.size == sum(map(len, pieces))
        file.close()


COUNT = st.none() | st.integers(0, 10**6)
ASKED = st.builds(
    lambda **fields: replace(request(1), **fields),
    ts=st.sampled_from([1794774178.0, 1794774179.0, 1794774180.5, 1e15, float("nan")]),
    kind=st.sampled_from([StepKind.LLM_CALL, StepKind.HTTP_CALL]),
    match_key=st.sampled_from([MatchKey("rw1:a"), MatchKey("rw1:b")]),
    thread=st.none() | st.integers(1, 3),
    model=st.none() | TEXT,
    note=st.none() | TEXT,
)
ANSWERED = st.builds(
    StepResponse,
    ending=st.sampled_from(Ending),
    head=st.none()
    | st.sampled_from([200, 429, 500]).map(lambda code: ResponseHead(status=code, reason="", headers=())),
    ms=st.floats() | st.sampled_from([0.0, 500.0, 1000.0]),
    reading=st.builds(
        Reading,
        model=st.none() | TEXT,
        text=TEXT,
        usage=st.builds(
            Usage, input=COUNT, output=COUNT, cache_read=COUNT, cache_write=COUNT, reasoning=COUNT, tier=TEXT
        ),
        error=st.none() | TEXT,
    ),
    tape=st.none() | st.integers(1, 9),
)
STEPS = st.lists(st.tuples(ASKED, st.none() | ANSWERED), max_size=6)


@pytest.mark.torture
@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.tuples(TEXT, st.dictionaries(TEXT, TEXT, max_size=2), STEPS, st.booleans(), st.binary(max_size=3)),
        max_size=4,
    )
)
def test_the_catalog_lists_what_the_journals_say(
    sessions: list[tuple[str, dict[str, str], list[tuple[StepRequest, StepResponse | None]], bool, bytes]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for nth, (name, tags, steps, ends, torn) in enumerate(sessions):
            begun = start(id=f"{nth:08x}", name=name, tags=tags)
            writer = SessionWriter.create(home, begun)
            for index, (asked, answered) in enumerate(steps, 1):
                writer.request(replace(asked, index=index), b"")
                if answered is not None:
                    writer.response(index, answered, b"")
            if ends:
                writer.end(ended=begun.started + 1, exit_code=nth, redactions=0, remarks=(name,))
            writer.close()
            with (writer.folder / "journal.jsonl").open("ab") as file:
                file.write(torn)
        library, prices = Library(home), PerToken(0.5)
        expected = [(session, library.totals(session, prices)) for session in library.sessions()]
        assert find_sessions(Catalog(home, prices=prices), home, SessionQuery(), 0).rows == expected
