import base64
import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind.model.http import Chunk, Headers, RequestHead, ResponseHead
from rewind.model.ids import MatchKey, SessionId
from rewind.model.session import Recording, Session, SessionEnd, SessionStart, Status
from rewind.model.step import Ending, Reading, Step, StepKind, StepRequest, StepResponse
from rewind.model.usage import Usage
from rewind.pricing.spending import Spending
from rewind.reading.body_text import read_body
from rewind.reading.sessions import ListedSession
from rewind.runs.replay_options import ReplayResult
from rewind.runs.tally import MissNote
from rewind.store.journal.totals import Totals
from rewind.views import runs as run_views
from rewind.views import session as views
from rewind.views.session import body, events

JSON: Headers = (("content-type", "application/json"),)
SSE: Headers = (("Content-Type", "text/event-stream; charset=utf-8"),)


def a_session(**changes: Any) -> Session:
    start = SessionStart(
        id=SessionId("7f3a2b9c"),
        name="refund",
        command=("python", "agent.py"),
        cwd="/somewhere",
        started=1_700_000_000.25,
        rewind_version="0.1.0",
    )
    end = SessionEnd(
        ended=1_700_000_008.65, exit_code=0, stdin=None, stdout=None, stderr=None, redactions=2, remarks=("a remark",)
    )
    fields: dict[str, Any] = {"start": start, "end": end, "status": Status.ENDED, "folder": "f"}
    return Session(**(fields | changes))


def a_step(response: StepResponse | None, **changes: Any) -> Step:
    head = RequestHead(method="POST", scheme="https", host="api.example", port=443, target="/v1/chat?x=1", headers=JSON)
    fields: dict[str, Any] = {
        "index": 4,
        "ts": 1_700_000_001.0,
        "kind": StepKind.LLM_CALL,
        "provider": "openai_chat",
        "match_key": MatchKey("rw1:00"),
        "head": head,
        "model": "asked-for",
    }
    return Step(request=StepRequest(**(fields | changes)), response=response)


def an_answer(**changes: Any) -> StepResponse:
    fields: dict[str, Any] = {
        "ending": Ending.COMPLETE,
        "head": ResponseHead(status=200, reason="OK", headers=JSON),
        "ms": 12.5,
        "first_ms": 3.0,
        "reading": Reading(model="answered", text="hello", usage=Usage(input=7, output=2)),
    }
    return StepResponse(**(fields | changes))


COUNTS = Totals(steps=1, llm_calls=1, tokens_in=7, cache_read=4, peak_context=7, threads=1, cost=0.034, unpriced=1)


def test_no_sessions_are_an_empty_list():
    assert views.sessions([]) == {"schema": "rewind/sessions@1", "sessions": []}


def test_a_session_says_what_it_was_and_what_came_of_it():
    (view,) = views.sessions([ListedSession(a_session(), COUNTS)])["sessions"]
    assert view["id"] == "7f3a2b9c"
    assert view["started"] == "2023-11-14T22:13:20.250Z"
    assert view["seconds"] == 8.4
    assert (view["status"], view["exit_code"], view["redactions"]) == ("ended", 0, 2)
    assert (view["steps"], view["tokens_in"], view["tokens_out"]) == (1, 7, None)
    assert (view["outcome"], view["cost_usd"], view["unpriced"]) == ("ok", 0.034, 1)
    assert (view["cache_read"], view["peak_context"], view["threads"]) == (4, 7, 1)
    assert view["remarks"] == ["a remark"]


def test_a_session_without_an_end_has_no_exit_code():
    view = views.session(a_session(end=None, status=Status.INTERRUPTED))
    assert (view["status"], view["ended"], view["seconds"], view["exit_code"]) == ("interrupted", None, None, None)


def test_a_recording_names_its_damage():
    view = views.recording(Recording(session=a_session(), steps=(a_step(None),), damage=("line 3",)))
    assert view["schema"] == "rewind/session@1"
    assert view["damage"] == ["line 3"]
    assert [step["index"] for step in view["steps"]] == [4]


def test_the_model_that_answered_counts_more_than_the_one_asked_for():
    assert views.step_row(a_step(an_answer()))["model"] == "answered"
    assert views.step_row(a_step(None))["model"] == "asked-for"
    assert views.step_row(a_step(an_answer(reading=Reading())))["model"] == "asked-for"


def test_every_step_row_has_the_same_fields_in_the_same_order():
    without, with_answer = views.step_row(a_step(None)), views.step_row(a_step(an_answer()))
    assert list(without) == list(with_answer)


def test_a_step_that_never_got_an_answer_has_no_response():
    cut = an_answer(ending=Ending.NO_ANSWER, head=None, reason="connection refused")
    view = views.step("7f3a2b9c", a_step(cut), b"{}", b"")
    assert view["response"] is None
    assert (view["step"]["ending"], view["step"]["reason"]) == ("no_answer", "connection refused")


def test_a_step_in_full_has_both_bodies_and_their_names():
    step = a_step(an_answer(chunks=(Chunk(1500, 8),)))
    view = views.step("7f3a2b9c", step, b'{"a": 1}', b'{"b": 2}')
    assert view["schema"] == "rewind/step@1"
    assert view["request"]["url"] == "https://api.example/v1/chat?x=1"
    assert view["request"]["body"]["json"] == {"a": 1}
    assert view["response"]["body"]["json"] == {"b": 2}
    assert view["response"]["body"]["blob"] == step.response.body  # type: ignore[union-attr]
    assert view["response"]["chunks"] == [{"at_ms": 1.5, "size": 8}]


def test_a_compressed_body_is_read_plain():
    packed = gzip.compress(b'{"a": 1}')
    view = body(packed, (*JSON, ("Content-Encoding", "gzip")))
    assert (view["json"], view["size"]) == ({"a": 1}, len(packed))


def test_a_body_that_claims_a_coding_it_does_not_have_is_shown_with_the_reason():
    view = body(b"\xff\xfe plain", (("content-encoding", "gzip"),))
    assert base64.b64decode(view["base64"]) == b"\xff\xfe plain"
    assert view["note"]


def test_a_body_cut_inside_a_character_is_still_text():
    read = read_body("grün".encode()[:3], ())
    assert read.text == "gr\ufffd"


@pytest.mark.parametrize(
    "hostile",
    [
        b"[NaN]",
        b'{"a": Infinity}',
        b"[1e999]",
        b"[" * 300 + b"]" * 300,
        b"[" * 100_000,
        b"[" + b"9" * 5000 + b"]",
        b"{not json",
    ],
)
def test_json_that_could_not_be_printed_again_is_text(hostile):
    view = body(hostile, JSON)
    assert view["text"] == hostile.decode()
    json.dumps(view, allow_nan=False)


def test_a_lone_surrogate_in_json_can_be_printed():
    view = body(b'{"a": "\\ud800"}', JSON)
    assert json.loads(json.dumps(view))["json"] == {"a": "\ud800"}


def test_events_carry_the_time_of_the_chunk_that_completed_them():
    stream = b"event: a\ndata: 1\n\ndata: 2\n\ndata: 3\n\n"
    shown = events(stream, SSE, (Chunk(1000, 20), Chunk(2000, 7), Chunk(3000, len(stream) - 27)))
    assert shown == [
        {"event": "a", "data": "1", "at_ms": 1.0},
        {"event": "message", "data": "2", "at_ms": 2.0},
        {"event": "message", "data": "3", "at_ms": 3.0},
    ]


def test_events_of_a_compressed_stream_have_no_time():
    packed = gzip.compress(b"data: 1\n\n")
    shown = events(packed, (*SSE, ("content-encoding", "gzip")), (Chunk(1000, len(packed)),))
    assert shown == [{"event": "message", "data": "1", "at_ms": None}]


@given(st.binary(max_size=300), st.sampled_from([JSON, SSE, (), (("content-encoding", "br"),)]))
def test_any_body_becomes_json_that_parses(data, headers):
    view = body(data, headers)
    assert json.loads(json.dumps(view, allow_nan=False))["size"] == len(data)
    assert len({"json", "text", "base64"} & view.keys()) == 1


REPLAYED = ReplayResult(
    session_id="7f3a2b9c",
    played=1,
    total=2,
    drifted=0,
    live=0,
    misses=(MissNote(reason="never recorded", detail="the nearest is step 2"),),
    network_calls=0,
    output="different",
    output_difference="-a\n+b\n",
    exit_code=1,
    recorded_exit_code=0,
    remarks=("remark",),
)


def test_a_replay_tells_its_misses_and_differences():
    view = run_views.replay(REPLAYED, Spending(usd=0.25))
    assert view["schema"] == "rewind/replay@1"
    assert view["misses"] == [{"reason": "never recorded", "report": "the nearest is step 2"}]
    assert (view["output"], view["exit_code"], view["recorded_exit_code"]) == ("different", 1, 0)
    assert (view["saved_usd"], view["unpriced"], view["stopped"], view["unasked"]) == (0.25, 0, None, None)
