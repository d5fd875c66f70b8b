"""The junction where requests are changed, answers put in, and the run is stopped: what goes out, and what is kept."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rewind.errors import CannotEdit, DamagedStore
from rewind.gateway.exchange import Pass, Play, Reply, Verdict
from rewind.match.call import Call, understand
from rewind.model.clock import SystemClock
from rewind.model.http import Chunk, HttpRequest, HttpResponse, RequestHead, ResponseHead
from rewind.model.ids import MatchKey, SessionId
from rewind.model.session import Recording, SessionStart
from rewind.model.step import Ending, Step
from rewind.playback.decision import Decision, Forward, Policy, Put, Refuse, Serve, StopRun
from rewind.providers.hosts import HostRules
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets
from rewind.runs.junction import Junction
from rewind.runs.writer_thread import WriterThread
from rewind.store.journal.writer import SessionWriter
from rewind.store.library import Library
from support.exchanges import request_of
from unit.store.making import request as a_request
from unit.store.making import response as an_answer

KEY = "sk-test-0123456789abcdef0123456789"
JSON = (("content-type", "application/json"),)
ANSWER = json.dumps({"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}).encode()


def question(text: str) -> HttpRequest:
    headers = (("authorization", f"Bearer {KEY}"), ("transfer-encoding", "chunked"))
    body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": text}]}
    return request_of(body, headers=headers)


@dataclass
class Always(Policy):
    """A policy that decides the same for everything."""

    decision: Decision

    def early(self, head: RequestHead) -> Forward | None:
        return None

    def at_a_glance(self, request: HttpRequest) -> Serve | None:
        return None

    def decide(self, call: Call) -> Decision:
        return self.decision


@dataclass
class Run:
    """One request through a junction, and what became of it."""

    home: Path
    decision: Decision
    options: dict[str, Any] = field(default_factory=dict)
    verdict: Verdict | None = None
    told: list[Step] = field(default_factory=list)
    junction: Junction | None = None

    def ask(self, request: HttpRequest, answer: bytes = ANSWER) -> "Run":
        start = SessionStart(
            id=SessionId("7f3a2b9c"), name=None, command=("x",), cwd="/", started=1.0, rewind_version="0"
        )
        writer = SessionWriter.create(self.home, start)
        writer_thread = WriterThread(writer)
        self.junction = Junction(
            policy=Always(self.decision),
            rules=HostRules(("*",)),
            redactor=Redactor(Secrets()),
            clock=SystemClock(),
            online=True,
            writer_thread=writer_thread,
            watch=self.told.append,
            **self.options,
        )

        async def cross(junction: Junction) -> Verdict:
            exchange = junction.begin(request.head)
            verdict = exchange.arrived(request.body)
            if isinstance(verdict, Pass):
                exchange.answer_began(ResponseHead(status=200, reason="OK", headers=JSON))
                exchange.answer_piece(answer, ends_chunk=True)
                await exchange.answer_ended(Ending.COMPLETE)
            return verdict

        self.verdict = asyncio.run(cross(self.junction))
        writer_thread.close(lambda: writer.end(ended=2.0, exit_code=0, redactions=0, remarks=()))
        assert writer_thread.failure is None
        return self

    @contextmanager
    def recorded(self) -> Iterator[tuple[Recording, Any]]:
        library = Library(self.home)
        with library.open(library.find("last")) as reader:
            yield reader.recording(), reader


def test_a_changed_request_goes_out_with_its_keys_and_is_kept_without_them(tmp_path: Path) -> None:
    asked, other = question("one"), question(f"two {KEY}")

    def change(request: HttpRequest) -> HttpRequest:
        assert request.head.header("authorization") == f"Bearer {KEY}", "it is given the request as it came"
        return replace(request, body=other.body)

    run = Run(tmp_path, Forward(change=change)).ask(asked)
    assert isinstance(run.verdict, Pass) and run.verdict.changed is not None
    assert run.verdict.changed.body == other.body
    with run.recorded() as (recording, reader):
        (step,) = recording.steps
        body = reader.blob(step.request.body)
        assert b"two REDACTED" in body and KEY.encode() not in body
        assert step.request.asked_key == understand(replace(asked, head=step.request.head)).key
        assert step.request.match_key not in ("", step.request.asked_key)
        names = [name.lower() for name, _ in step.request.head.headers]
        assert "transfer-encoding" not in names
        assert step.request.head.header("content-length") == str(len(other.body))
    assert [one.index for one in run.told] == [1]
    assert run.told[0].response is not None and run.told[0].response.reading.text == "Hello."


def test_a_change_that_changes_nothing_leaves_everything_as_it_was(tmp_path: Path) -> None:
    run = Run(tmp_path, Forward(change=lambda request: request)).ask(question("one"))
    assert run.verdict == Pass()
    with run.recorded() as (recording, _):
        assert recording.steps[0].request.asked_key is None


def test_what_cannot_be_changed_does_not_go_out(tmp_path: Path) -> None:
    def change(request: HttpRequest) -> HttpRequest:
        raise CannotEdit("It is signed.")

    run = Run(tmp_path, Forward(change=change)).ask(question("one"))
    assert isinstance(run.verdict, Reply) and run.verdict.status == 424
    assert dict(run.verdict.headers)["x-rewind-stopped"] == "Rewind: It is signed."
    assert b"It is signed." in run.verdict.body
    assert run.junction is not None
    assert (run.junction.tally.stopped, run.junction.tally.live, run.junction.tally.misses) == ("It is signed.", 0, [])


def test_an_answer_that_is_put_in_is_played_and_kept_as_one_that_nobody_gave(tmp_path: Path) -> None:
    made = HttpResponse(
        head=ResponseHead(status=200, reason="OK", headers=JSON), body=ANSWER, chunks=(Chunk(0, 10), Chunk(0, 80))
    )
    run = Run(tmp_path, Put(answer=lambda request: made)).ask(question("one"))
    assert isinstance(run.verdict, Play) and run.verdict.response == made
    with run.recorded() as (recording, reader):
        response = recording.steps[0].response
        assert response is not None
        assert (response.tape, response.ending, response.ms) == (0, Ending.COMPLETE, 0.0)
        assert reader.blob(response.body) == ANSWER
        assert [chunk.size for chunk in response.chunks] == [10, len(ANSWER) - 10]
        assert response.reading.text == "Hello."
    assert [one.response and one.response.tape for one in run.told] == [0]


@pytest.mark.parametrize(
    ("decision", "header"),
    [(Refuse(reason="Never recorded."), "x-rewind-miss"), (StopRun(reason="Enough."), "x-rewind-stopped")],
)
def test_a_refusal_is_kept_as_what_the_agent_was_told(tmp_path: Path, decision: Decision, header: str) -> None:
    run = Run(tmp_path, decision).ask(question("one"))
    assert isinstance(run.verdict, Reply)
    assert header in dict(run.verdict.headers)
    with run.recorded() as (recording, reader):
        response = recording.steps[0].response
        assert response is not None and response.head is not None
        assert (response.head.status, response.tape) == (424, 0)
        assert reader.blob(response.body) == run.verdict.body
    assert run.told == [], "nobody was asked"


def test_a_played_answer_to_a_changed_request_is_kept_beside_what_had_gone_out(tmp_path: Path) -> None:
    asked, sent = question("one"), question("one, changed")
    call = understand(sent)
    step = Step(
        request=a_request(5, match_key=call.key, asked_key=MatchKey("rw1:asked")), response=an_answer(chunks=())
    )
    head = ResponseHead(status=200, reason="OK", headers=JSON)
    options = {"recall": lambda _step: call, "answer_of": lambda _step: HttpResponse(head=head, body=ANSWER, chunks=())}
    seen: list[HttpRequest] = []
    run = Run(tmp_path, Serve(step=step, seen=seen.append), options).ask(asked)
    assert isinstance(run.verdict, Play)
    assert seen == [asked]
    with run.recorded() as (recording, reader):
        (kept,) = recording.steps
        assert reader.blob(kept.request.body) == sent.body
        assert (kept.request.match_key, kept.response and kept.response.tape) == (call.key, 5)
        assert kept.request.asked_key not in (None, call.key)


def test_a_recorded_answer_that_is_damaged_is_refused_and_nobody_is_asked(tmp_path: Path) -> None:
    def damaged(_step: Step) -> HttpResponse:
        raise DamagedStore("Its bytes are not what was written.")

    step = Step(request=a_request(5), response=an_answer())
    run = Run(tmp_path, Serve(step=step), {"answer_of": damaged}).ask(question("one"))
    assert isinstance(run.verdict, Reply)
    assert b"step 5 was recorded, but cannot be read" in run.verdict.body
    assert run.junction is not None
    assert (len(run.junction.tally.misses), run.junction.tally.served) == (1, [])


def test_where_we_stumble_over_a_request_that_a_tape_might_answer_nobody_is_asked(tmp_path: Path) -> None:
    def fails(request: HttpRequest) -> HttpRequest:
        raise ZeroDivisionError("a bug")

    run = Run(tmp_path, Forward(change=fails)).ask(question("one"))
    assert isinstance(run.verdict, Reply)
    assert run.junction is not None
    assert "a bug" in run.junction.tally.remarks[0]
