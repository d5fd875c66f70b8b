"""Sessions made of real exchanges as cassettes: out, in, out again to the same bytes; and all that came in replays."""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rewind.conversation.sketch import answer_digest, sketch_of
from rewind.match.call import Call, understand
from rewind.model.http import Chunk, HttpRequest
from rewind.model.ids import SessionId
from rewind.model.session import Session, SessionStart
from rewind.model.step import Ending, Step, StepRequest, StepResponse
from rewind.playback.decision import Serve
from rewind.playback.policies import Replay
from rewind.playback.tape import Tape
from rewind.providers.summary import read
from rewind.store.cassette.read import read_cassette_file
from rewind.store.cassette.write import write_cassette, write_cassette_file
from rewind.store.imported_sessions import import_session
from rewind.store.journal.writer import SessionWriter
from rewind.store.library import Library
from rewind.wire.encoding import encode
from support.lab import Lab
from support.provider import FakeProvider
from support.script import in_order
from support.traffic import Exchange
from support.trust import Trust
from traffic.test_record_and_replay import converse, load
from unit.store.taping import steps_in

pytestmark = pytest.mark.traffic

EXCHANGES = 606
SAMPLED = 7
"""Every so many exchanges go through the gateway, too."""
CODINGS = (None, "gzip", None, "br", None, "zstd")


@pytest.fixture(scope="module")
def sessions(exchanges: list[Exchange]) -> dict[str, list[Exchange]]:
    found: dict[str, list[Exchange]] = defaultdict(list)
    for exchange in exchanges:
        found[exchange.cassette].append(exchange)
    return found


def recorded(home: Path, number: int, exchanges: list[Exchange]) -> Session:
    """As if we had recorded it, one exchange a second; some answers are compressed, as providers send them."""
    start = SessionStart(
        id=SessionId(f"{number:08x}"),
        name=exchanges[0].cassette,
        command=("python", "agent.py"),
        cwd="/srv/agent",
        started=1794774177.25 + number,
        rewind_version="0.1.0",
    )
    writer = SessionWriter.create(home, start)
    for index, exchange in enumerate(exchanges, 1):
        call = understand(exchange.request)
        asked = call.provider.reader.asked(exchange.request)
        answered = call.provider.reader.answered(exchange.request, exchange.response)
        request = StepRequest(
            index=index,
            ts=start.started + index,
            kind=call.provider.kind,
            provider=call.provider.name,
            match_key=call.key,
            head=exchange.request.head,
            model=asked.model,
            sketch=str(sketch_of(asked, call.provider)),
        )
        writer.request(request, exchange.request.body)
        coding = CODINGS[(number + index) % len(CODINGS)]
        head = exchange.response.head
        if coding is not None:
            headers = tuple(pair for pair in head.headers if pair[0].lower() != "content-encoding")
            head = replace(head, headers=(*headers, ("content-encoding", coding)))
        body = encode(exchange.response.body, coding)
        reading = read(call.provider, exchange.request, exchange.response)
        chunks = tuple(Chunk(1000 * (at + 1), min(700, len(body) - at)) for at in range(0, len(body), 700))
        response = StepResponse(
            ending=Ending.COMPLETE,
            head=head,
            chunks=chunks,
            ms=812.5,
            first_ms=1.0,
            reading=replace(reading, said=str(answer_digest(answered.parts))),
        )
        writer.response(index, response, body)
    writer.output("stdout", b"done\n")
    writer.end(ended=start.started + 99, exit_code=0, redactions=0, remarks=())
    assert writer.broken is None
    return Library(home).find(start.id)


def exported(home: Path, session: str) -> bytes:
    library = Library(home)
    with library.open(library.find(session)) as reader:
        return write_cassette(reader.recording(), reader.blob)


def replayed(home: Path, session: str, asked: list[Exchange]) -> Iterator[tuple[Exchange, bytes | str]]:
    """What the imported session answers to these requests, or why it answers nothing."""
    library = Library(home)
    with library.open(library.find(session)) as reader:

        def call_of(step: Step) -> Call:
            return understand(HttpRequest(head=step.request.head, body=reader.blob(step.request.body)))

        policy = Replay(Tape(reader.recording().steps), call_of, session=session)
        for exchange in asked:
            match policy.decide(understand(exchange.request)):
                case Serve(step=step) if step.response is not None:
                    yield exchange, reader.blob(step.response.body)
                case other:
                    yield exchange, f"{exchange.name}: {other}"


def test_every_session_goes_out_and_in_to_the_same_bytes_and_replays_whole(
    sessions: dict[str, list[Exchange]], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    forms: Counter[str] = Counter()
    played = size = raw = 0
    for number, asked in enumerate(sessions.values(), 1):
        session = recorded(tmp_path / "one", number, asked)
        data = exported(tmp_path / "one", session.id)
        file = tmp_path / ("x.rw" if number % 2 else "x.rw.zst")
        write_cassette_file(file, data)
        portable = read_cassette_file(file)
        assert import_session(tmp_path / "two", portable)
        assert exported(tmp_path / "two", session.id) == data, session.start.name
        assert not import_session(tmp_path / "two", portable)
        for index, (exchange, answer) in enumerate(replayed(tmp_path / "two", session.id, asked), 1):
            coding = CODINGS[(number + index) % len(CODINGS)]
            assert answer == encode(exchange.response.body, coding), answer
            played += 1
        size += len(data)
        raw += sum(len(one.request.body) + len(one.response.body) for one in asked)
        for step in steps_in(data):
            for half in ("request", "answer"):
                forms[next(iter(step[half].get("body", {"none": 0})))] += 1
    assert played == EXCHANGES
    assert forms["json"] + forms["events"] > 0.9 * forms.total(), forms
    shown = f"{len(sessions)} sessions, {played} steps: {raw:,} bytes of bodies, {size:,} of cassettes"
    record_property("shown", f"cassettes of real traffic: {shown}; {dict(forms)}")


@pytest.mark.e2e
@pytest.mark.timeout(120)
def test_an_imported_session_is_played_by_the_gateway_to_the_byte(traffic: Path, trust: Trust, tmp_path: Path) -> None:
    sample = [one for number, one in enumerate(load(traffic)) if number % SAMPLED == 0]
    hosts = tuple(sorted({one.host for one in sample}))
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    with FakeProvider(in_order(*(one.answer for one in sample)), trust=trust, names=hosts) as provider:
        bench = Lab(here, trust, provider, hosts=hosts)
        with bench.recording("--all-hosts") as gate:
            live = converse(gate, sample)
        session = gate.ended().session
        data = exported(bench.home, session)
        write_cassette_file(there / "x.rw", data)
        other = Lab(there, trust, provider, hosts=hosts)
        assert import_session(other.home, read_cassette_file(there / "x.rw"))
        assert exported(other.home, session) == data
        door = Path(__file__).parents[1] / "support" / "agents" / "hold_the_door.py"
        with other.replaying(session, "--", sys.executable, str(door)) as gate:
            again = converse(gate, sample)
        assert [(one.status, one.body) for one in again] == [(one.status, one.body) for one in live]
        chunked = [number for number, one in enumerate(sample) if one.answer.framing == "chunked"]
        assert chunked
        assert [again[number].pieces for number in chunked] == [live[number].pieces for number in chunked]
        assert f"{len(sample)}/{len(sample)} steps replayed" in gate.ended().talk
