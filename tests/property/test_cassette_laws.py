"""Laws of the cassette: what goes in comes out; what was changed is refused, or is a session like any other."""

import gzip
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewind.errors import BadCassette
from rewind.model.http import Chunk, ResponseHead
from rewind.model.ids import MatchKey, SessionId, blob_id
from rewind.model.session import Lineage, Recording, SessionFile, Surroundings
from rewind.model.step import Ending, Reading, Step, StepKind
from rewind.model.usage import Usage
from rewind.store.cassette.bodies import bytes_of, form_of
from rewind.store.cassette.read import read_cassette
from rewind.store.cassette.references import Addressed, Layout, References
from rewind.store.cassette.seal import MemoryBudget, packed
from rewind.store.cassette.shared_values import JsonBodies
from rewind.store.cassette.write import write_cassette
from rewind.store.imported_sessions import import_session
from rewind.store.library import Library
from rewind.wire import growing_json
from support.effort import examples, in_short
from unit.store.making import GrowingAgent
from unit.store.taping import Taped, again, ended, exchange, resealed, taped_steps
from unit.store.test_cassette import rich

# What goes in comes out.

TEXT = st.text(st.characters(), max_size=60)
NAMES = st.sampled_from(["a", "@same", "@lines", "@@", "count", "from", "/~", "type", ""]) | TEXT
LONG = st.builds(lambda text, times: text * times, TEXT, st.integers(1, 12))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | LONG,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (",", ": ")])


def as_json(value: Any, ascii_only: bool, indent: int | None, separators: tuple[str, str]) -> bytes:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent, separators=separators)
    return text.encode(errors="surrogatepass")


def as_events(values: list[Any], name: str | None, newline: str) -> bytes:
    head = "" if name is None else f"event: {name}{newline}"
    return "".join(f"{head}data: {json.dumps(value)}{newline}{newline}" for value in values).encode()


WRITTEN = st.builds(as_json, JSON, st.booleans(), st.sampled_from([None, None, 2]), SEPARATORS)
BODIES = (
    WRITTEN
    | st.binary(max_size=300)
    | LONG.map(lambda text: text.encode(errors="surrogatepass"))
    | st.lists(WRITTEN, max_size=4).map(b"\n".join)
    | st.builds(
        as_events, st.lists(JSON, max_size=5), st.sampled_from([None, "a", "{type}"]), st.sampled_from(["\n", "\r\n"])
    )
)


@given(BODIES)
def test_every_body_comes_back_from_its_form(body: bytes) -> None:
    found = form_of(body)
    assert bytes_of(found, len(body)) == body


@given(st.lists(JSON, min_size=1, max_size=5), st.data())
def test_references_lead_back_to_the_values(values: list[Any], data: st.DataObject) -> None:
    grown = [*values, [*values, data.draw(st.sampled_from(values))], {"all": values}, *values]
    texts = [json.dumps(value) for value in grown]
    grown = [value for value, text in zip(grown, texts, strict=True) if "NaN" not in text and "Inf" not in text]
    layout = Layout()
    for number, value in enumerate(grown):
        layout.add({"v": Addressed(f"r{number}", value)})
    text, references, at = layout.text(), References(MemoryBudget(light=True)), 0
    for number, value in enumerate(grown):
        record, at = json.JSONDecoder().raw_decode(text, at)
        at += 1
        found = references.restored(record, 10**7)["v"]
        assert repr(found) == repr(joined_pairs(value))
        references.name(f"r{number}", found)


def joined_pairs(value: Any) -> Any:
    """Two halves of a pair that stand together are one character in any JSON."""
    return json.loads(json.dumps(value))


HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["A", "a", "Content-Length", "@x"]),
        st.text(st.characters(max_codepoint=255, exclude_characters="\0\r\n"), max_size=20)
        | st.sampled_from(["@size", "@", "0", "7"]),
    ),
    max_size=4,
).map(tuple)
SOME = st.none() | TEXT.filter(bool)
COUNTS = st.none() | st.integers(1, 2**40)
CHUNKS = st.builds(Chunk, st.integers(0, 2**40), st.integers(0, 99))
TIMES = st.floats(0, 1e9) | st.integers(0, 10**9)


@st.composite
def recordings(draw: st.DrawFn) -> Taped:
    """Anything that a store can hold."""
    bodies = draw(st.lists(BODIES, min_size=1, max_size=4))
    made = []
    for index in sorted(draw(st.sets(st.integers(1, 99), max_size=5))):
        asked, answered = draw(st.sampled_from(bodies)), draw(st.sampled_from(bodies))
        step, blobs = exchange(index, asked, answered, asked_headers=draw(HEADERS))
        assert step.response is not None
        head = ResponseHead(status=draw(st.integers(100, 599)), reason="", headers=draw(HEADERS))
        response = replace(
            step.response,
            head=draw(st.just(head) | st.none()),
            ending=draw(st.sampled_from(Ending)),
            reason=draw(SOME),
            tape=draw(st.none() | st.integers(0, 9)),
            trailers=draw(HEADERS),
            ms=draw(TIMES),
            first_ms=draw(st.none() | TIMES),
            chunks=tuple(draw(st.lists(CHUNKS, max_size=30))),
            reading=Reading(
                model=draw(SOME),
                text=draw(TEXT),
                error=draw(SOME),
                said=draw(SOME),
                note=draw(SOME),
                usage=Usage(
                    input=draw(st.none() | st.integers(0, 9)),
                    output=draw(COUNTS),
                    cache_read=draw(COUNTS),
                    more=draw(st.dictionaries(NAMES, st.integers(-9, 9), max_size=2)),
                    tier=draw(TEXT),
                ),
            ),
        )
        request = replace(
            step.request,
            kind=draw(st.sampled_from(StepKind)),
            ts=draw(TIMES),
            provider=draw(TEXT.filter(bool)),
            match_key=MatchKey(draw(TEXT)),
            model=draw(SOME),
            thread=draw(COUNTS),
            sketch=draw(SOME),
            note=draw(SOME),
        )
        made.append((Step(request=request, response=draw(st.just(response) | st.none())), blobs))
    end = draw(st.none() | st.just(ended(exit_code=draw(st.integers(-9, 255)), remarks=draw(st.tuples(TEXT)))))
    fork = Lineage(session=SessionId("00000000"), step=1, key=MatchKey("rw1:0"), edits=draw(st.tuples(TEXT)))
    tape = taped_steps(
        made,
        end=end,
        name=draw(SOME),
        tags=draw(st.dictionaries(NAMES, TEXT, max_size=2)),
        cwd=draw(TEXT),
        started=draw(st.floats(0, 4e9)),
        forked_from=draw(st.none() | st.just(fork)),
    )
    around = Surroundings(branch=draw(SOME), dirty=draw(st.none() | st.booleans()))
    return replace(tape, recording=replace(tape.recording, surroundings=draw(st.none() | st.just(around))))


@settings(max_examples=examples(150))
@given(recordings())
def test_any_recording_comes_back_and_is_kept(tape: Taped) -> None:
    data = tape.cassette()
    portable = read_cassette(data, file="x.rw")
    assert again(portable) == data
    assert len(portable.recording.steps) == len(tape.recording.steps)
    for found, step in zip(portable.recording.steps, tape.recording.steps, strict=True):
        assert portable.blobs.get(found.request.body, b"") == tape.blobs[step.request.body]
        assert (found.response is None) == (step.response is None)
        if found.response is not None and step.response is not None:
            assert portable.blobs.get(found.response.body, b"") == tape.blobs[step.response.body]
    assert read_cassette(packed(data), file="x.rw.zst").recording == replace(
        portable.recording, session=replace(portable.session, file="x.rw.zst")
    )
    once = imported_and_exported(portable)
    made_anew = read_cassette(once, file="x.rw")
    assert list(map(told_by_bodies, made_anew.recording.steps)) == list(map(told_by_bodies, portable.recording.steps))
    assert imported_and_exported(made_anew) == once


def told_by_bodies(step: Step) -> object:
    """What a file is believed: not what it says of its own bodies, which is made anew when it is imported."""
    response = step.response and replace(step.response, reading=Reading())
    return step.request.head, step.request.body, step.request.ts, step.request.note, response


def imported_and_exported(portable: SessionFile) -> bytes:
    with tempfile.TemporaryDirectory() as home:
        import_session(Path(home), portable)
        return exported(Path(home), portable.recording)


def exported(home: Path, recording: Recording) -> bytes:
    library = Library(home)
    with library.open(library.find(recording.session.id)) as reader:
        return write_cassette(reader.recording(), reader.blob)


# What was changed is refused.


def small() -> bytes:
    """A cassette with every kind of record, every form of body, and references of every kind."""
    agent = GrowingAgent(said=150, answered=130)
    prompt = "".join(f"Line {number} of the prompt.\n" for number in range(6))
    pairs = [agent.turn() for _ in range(2)]
    stream = b'event: a\ndata: {"type":"a","n":1  }\n\nevent: b\ndata: {"type":"b"}\n\ndata: [DONE]\n\n'
    coding = (("content-encoding", "gzip"),)
    made = [
        *(exchange(index, *pair) for index, pair in enumerate(pairs, 1)),
        exchange(3, json.dumps({"p": prompt}).encode(), stream),
        exchange(4, json.dumps({"p": prompt + "And more.\n"}).encode(), gzip.compress(stream), headers=coding),
        exchange(5, b"\xff\xfe" * 9, b'{"n":1}\n{"n":2}\n'),
        exchange(6, b"plain text\n", None),
        exchange(7, b"plain text\n", b"\xff\xfe" * 9),
    ]
    rest = rich().recording
    tape = taped_steps(made, end=ended(stdout=blob_id(b"plain text\n"), remarks=("one",)), tags={"@a": "b"})
    return replace(tape, recording=replace(tape.recording, surroundings=rest.surroundings)).cassette()


CASSETTES = [small(), rich().cassette(), packed(small())]
SESSIONS = [read_cassette(data, file="x").recording for data in CASSETTES]


def flipped(data: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << dice.randrange(8))]) + data[at + 1 :]


def cut(data: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(len(data))]


def without_a_stretch(data: bytes, dice: random.Random) -> bytes:
    start, end = sorted(dice.sample(range(len(data)), 2))
    return data[:start] + data[end:]


def lines_swapped(data: bytes, dice: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    one, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def line_twice(data: bytes, dice: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    lines.insert(dice.randrange(len(lines)), dice.choice(lines))
    return b"".join(lines)


def line_gone(data: bytes, dice: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    del lines[dice.randrange(len(lines))]
    return b"".join(lines)


HOSTILE = (
    b"-1", b"0", b"1", b"2", b"1.5", b"1e999", b"-0.0", b"10000000000", b"9" * 25, b"9" * 5000, b"true", b"null", b"[]",
    b"{}", b'""', b'"x"', b"NaN", b'"../../x"', b'"\\ud800"', b'{"@same": "request 1"}', b'{"@lines": ["a", "b"]}',
    b'{"@same": "request 1 /messages", "count": 2}', b'{"@same": "answer 1 /content/0/text"}',
    b"[" * 1000 + b"]" * 1000,
)  # fmt: skip
VALUE = re.compile(rb'(?<=: )(?:-?[0-9.]+|"[^"\n]*"|\[\]|\{\}|true|false|null)(?=[,}\n])')
NAME = re.compile(rb'"[a-z0-9_@]+"(?=: )')
ADDRESS = re.compile(rb'(?<="@same": )"[^"\n]*"')
ADDRESSES = (
    b'"request 1"', b'"request 1 /messages"', b'"request 99"', b'"request 2 /messages/0"', b'"answer 2 /content"',
    b'"request 3 /p"', b'"request 1 headers"', b'"stdout"', b'"request 1 /messages/999"', b'""', b'" /"',
    b'"request 5"', b'"answer 5 /0"',
)  # fmt: skip


def replaced(pattern: re.Pattern[bytes], choices: tuple[bytes, ...]) -> Callable[[bytes, random.Random], bytes]:
    def change(data: bytes, dice: random.Random) -> bytes:
        found = list(pattern.finditer(data))
        if not found:
            return data
        where = dice.choice(found)
        return data[: where.start()] + dice.choice(choices) + data[where.end() :]

    return change


CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flipped,
    cut,
    without_a_stretch,
    lines_swapped,
    line_twice,
    line_gone,
    replaced(VALUE, HOSTILE),
    replaced(NAME, (b'"@same"', b'"@x"', b'"json"', b'"size"', b'"count"', b'"body"', b'"zzz"')),
    replaced(ADDRESS, ADDRESSES),
)


def changed_cassettes(count: int, *, seed: int) -> Iterator[tuple[Recording, bytes]]:
    """Sessions, and their cassettes with a change."""
    for number in range(count):
        dice = random.Random(f"{seed}/{number}")
        which = dice.randrange(len(CASSETTES))
        changed = CASSETTES[which]
        while changed == CASSETTES[which]:  # not every change can be made everywhere
            changed = dice.choice(CHANGES)(CASSETTES[which], dice)
        yield SESSIONS[which], changed


def is_refused(data: bytes, session: Recording) -> bool:
    """If it is not, then it is the same session: a few bits of a packed file say nothing."""
    try:
        found = read_cassette(data, file="x")
    except BadCassette:
        return True
    assert not data.startswith(b"{")
    assert found.recording == session
    return False


def test_every_flipped_byte_is_noticed() -> None:
    """Each byte of a plain and of a packed cassette once."""
    for data, session in list(zip(CASSETTES, SESSIONS, strict=True))[1:]:
        noticed = 0
        tried = in_short(range(len(data)), 500)
        for at in tried:
            flip = bytes([data[at] ^ (1 << at % 8)])
            noticed += is_refused(data[:at] + flip + data[at + 1 :], session)
        assert noticed > len(tried) * 0.99


@pytest.mark.parametrize("lot", in_short(range(4)))
def test_a_changed_cassette_is_refused(lot: int) -> None:
    refused = [is_refused(data, session) for session, data in changed_cassettes(1250, seed=lot)]
    assert refused.count(True) > 1245


@pytest.mark.torture
@pytest.mark.parametrize("lot", in_short(range(4)))
def test_a_changed_cassette_with_a_hash_that_fits_is_refused_or_a_session_like_any_other(lot: int) -> None:
    """So that the checks behind the hash are reached."""
    seen: Counter[str] = Counter()
    for _, changed in changed_cassettes(1250, seed=100 + lot):
        try:
            found = read_cassette(resealed(changed), file="x")
        except BadCassette as problem:
            seen[problem.message] += 1
            continue
        seen["read"] += 1
        text = again(found)
        assert again(read_cassette(text, file="x")) == text
        if seen["read"] % 6 == 0:
            with tempfile.TemporaryDirectory() as home:
                new = import_session(Path(home), found)
                assert new and exported(Path(home), found.recording) == text
                assert sorted(path.name for path in Path(home).iterdir()) == ["format", "sessions"]
    assert seen["read"] > 20
    assert len(seen) > 40, "many different checks were reached"


@settings(max_examples=examples(300))
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode(errors="replace")))
def test_no_bytes_make_the_reader_fail_otherwise(data: bytes) -> None:
    for attempt in (data, resealed(b'{"rewind_cassette": 1, "steps": 0, "size": 0, "sha256": ""}\n' + data)):
        with pytest.raises(BadCassette):
            read_cassette(attempt, file="x")


KINDS = st.sampled_from(["session", "surroundings", "step", "end", "small_print", "other"])


@given(st.lists(st.tuples(KINDS, st.text(max_size=5) | st.integers() | JSON), max_size=3))
def test_no_records_make_the_reader_fail_otherwise(records: list[tuple[str, Any]]) -> None:
    body = "".join(json.dumps({kind: value}) + "\n" for kind, value in records).encode()
    data = resealed(b'{"rewind_cassette": 1, "steps": 0, "size": 0, "sha256": ""}\n' + body)
    with pytest.raises(BadCassette):
        read_cassette(data, file="x")


# What a body shares with an earlier one is read, noted and written once.

DEEP = st.integers(94, 101).map(lambda depth: json.loads("[" * depth + "]" * depth))
ITEMS = (
    JSON
    | DEEP
    | st.sampled_from([2**63, "\ud800", "</a>", "\U0001f600", {"role": "user", "content": "words and words. " * 9}])
)
STYLES = st.fixed_dictionaries(
    {
        "separators": st.sampled_from([(",", ":"), (", ", ": "), (" , ", ":")]),
        "ensure_ascii": st.booleans(),
        "indent": st.sampled_from([None, None, None, 2]),
    }
)


@given(st.lists(st.lists(ITEMS, max_size=3), min_size=2, max_size=5), STYLES, st.sampled_from(["", "wrapped"]))
@settings(max_examples=examples(100))
def test_bodies_that_go_on_from_each_other_are_written_as_each_for_itself(
    turns: list[list[Any]], style: dict[str, Any], wrapped: str
) -> None:
    growing, layout, plain_layout = JsonBodies(), Layout(), Layout()
    items: list[Any] = []
    with patch.object(growing_json, "_SMALL", 0), patch.object(growing_json, "_STRIDE", 13):
        for number, turn in enumerate(turns):
            items = [*items, *turn]
            document: dict[str, Any] = {"n": 1, "messages": items, "last": turn}
            body = json.dumps({wrapped: document} if wrapped else document, **style).encode("utf-8", "surrogatepass")

            form, plain = form_of(body, growing), form_of(body)

            assert form == plain
            assert bytes_of(form, len(body)) == body
            if form.form != "bytes":
                layout.add({"step": number, "body": Addressed(f"request {number}", form.root)})
                plain_layout.add({"step": number, "body": Addressed(f"request {number}", plain.root)})
    assert layout.text() == plain_layout.text()
