"""Other tools' exchanges become a session: without secrets, understood, and the same wherever it is made."""

import gzip
import json
from dataclasses import replace

from rewind.formats.exchanges import ForeignExchange, ForeignRecording
from rewind.model.http import Headers, HttpResponse
from rewind.model.ids import SessionId
from rewind.model.session import UNDATED, SessionFile
from rewind.model.step import Ending, StepKind
from rewind.reading.import_ import session_of_exchanges
from rewind.store.session_files import SessionFileReader
from rewind.wire.encoding import decode
from support.exchanges import answer_with, request_of, stream_of

ID = SessionId("0123abcd")
KEY = "sk-proj-Zx81kQm20Lw7Tr5YbNc4"
QUESTION = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Hi"}]}
ANSWER = {
    "model": "gpt-4o-mini",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
}


def chat(
    *,
    asked: object = QUESTION,
    answered: HttpResponse | None = None,
    headers: Headers = (),
    host: str = "api.openai.com",
    started: float | None = None,
) -> ForeignExchange:
    return ForeignExchange(
        request=request_of(asked, headers=headers, host=host),
        response=answer_with(ANSWER) if answered is None else answered,
        started=started,
    )


def session_of(*exchanges: ForeignExchange, env: dict[str, str] | None = None) -> SessionFile:
    foreign = ForeignRecording(exchanges=exchanges, tool="vcrpy")
    return session_of_exchanges(foreign, session_id=ID, name="test_refund", tags={"source": "vcrpy"}, env=env or {})


def everything(portable: SessionFile) -> bytes:
    """All that would be written."""
    return repr(portable.recording).encode() + b"".join(portable.blobs.values())


def test_a_foreign_exchange_is_understood_as_a_recorded_one_is() -> None:
    portable = session_of(chat())
    step = portable.recording.steps[0]
    assert step.response is not None
    assert (step.request.kind, step.request.provider) == (StepKind.LLM_CALL, "openai-chat")
    assert (step.request.model, step.request.thread) == ("gpt-4o-mini", 1)
    assert step.request.sketch and step.response.reading.said
    assert step.response.reading.text == "Hello"
    assert step.response.reading.usage.input == 3
    with SessionFileReader(portable) as reader:
        assert json.loads(reader.blob(step.request.body)) == QUESTION
        assert json.loads(reader.blob(step.response.body)) == ANSWER


def test_the_session_says_where_it_comes_from_and_that_its_command_is_not_to_be_run() -> None:
    start = session_of(chat()).session.start
    assert (start.id, start.name, start.imported) == ("0123abcd", "test_refund", True)
    assert (start.command, start.tags) == ((), {"source": "vcrpy"})


def test_a_conversation_keeps_its_thread() -> None:
    messages = [*QUESTION["messages"], {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Bye"}]
    steps = session_of(
        chat(), chat(asked={"model": "other", "messages": []}), chat(asked={**QUESTION, "messages": messages})
    )
    assert [step.request.thread for step in steps.recording.steps] == [1, 2, 1]


def test_a_key_in_a_header_is_dropped_and_found_in_the_bodies_even_of_earlier_exchanges() -> None:
    told = {**QUESTION, "messages": [{"role": "user", "content": f"my key is {KEY}"}]}
    echoing = answer_with({"error": {"message": f"wrong key {KEY}"}}, status=401)
    portable = session_of(chat(asked=told), chat(answered=echoing, headers=(("Authorization", f"Bearer {KEY}"),)))
    assert KEY.encode() not in everything(portable)
    assert portable.session.end is not None and portable.session.end.redactions == 3


def test_a_key_that_only_this_environment_knows_is_found_too() -> None:
    told = {**QUESTION, "messages": [{"role": "user", "content": KEY}]}
    assert KEY.encode() in everything(session_of(chat(asked=told)))
    assert KEY.encode() not in everything(session_of(chat(asked=told), env={"OPENAI_API_KEY": KEY}))


def test_a_key_in_a_compressed_answer_and_one_that_a_stream_cut_in_two_are_found() -> None:
    packed = answer_with(gzip.compress(KEY.encode()), headers=(("Content-Encoding", "gzip"),))
    halves = [{"choices": [{"index": 0, "delta": {"content": part}}]} for part in (KEY[:9], KEY[9:])]
    portable = session_of(
        chat(answered=packed, headers=(("Authorization", f"Bearer {KEY}"),)), chat(answered=stream_of(*halves))
    )
    first, second = portable.recording.steps
    assert first.response is not None and second.response is not None
    assert KEY.encode() not in decode(portable.blobs[first.response.body], "gzip")
    assert KEY[9:].encode() not in portable.blobs[second.response.body]


def test_a_key_in_the_url_and_cookies_are_gone() -> None:
    request = request_of(b"", method="GET", target=f"/v1/models?key={KEY}", headers=(("Cookie", f"sid={KEY}x"),))
    answered = answer_with(b"ok", headers=(("Set-Cookie", f"sid={KEY}y"),))
    portable = session_of(ForeignExchange(request=request, response=answered))
    assert KEY.encode() not in everything(portable)


def test_what_the_file_says_of_itself_is_redacted_as_well() -> None:
    exchange = replace(
        chat(headers=(("x-api-key", KEY),)), ending=Ending.UPSTREAM_CUT, reason=f"cut {KEY}", note=f"note {KEY}"
    )
    foreign = ForeignRecording(exchanges=(exchange,), tool="vcrpy", remarks=(f"about {KEY}",))
    portable = session_of_exchanges(foreign, session_id=ID, name=f"run {KEY}", tags={}, env={})
    assert KEY.encode() not in everything(portable)


def test_hosts_that_a_replay_would_not_know_are_named() -> None:
    portable = session_of(chat(host="b.example"), chat(), chat(host="a.example"), chat(host="b.example"))
    assert portable.session.start.hosts == ("a.example", "b.example")


def test_times_come_from_the_file() -> None:
    late = replace(chat(started=1700000010.0), ms=2500.0)
    portable = session_of(chat(started=1700000000.0), late)
    assert [step.request.ts for step in portable.recording.steps] == [1700000000.0, 1700000010.0]
    assert portable.session.start.started == 1700000000.0
    assert portable.session.end is not None and portable.session.end.ended == 1700000012.5
    response = portable.recording.steps[1].response
    assert response is not None and (response.ms, response.chunks[0].at) == (2500.0, 2_500_000)


def test_without_times_the_date_of_an_answer_tells() -> None:
    dated = answer_with(ANSWER, headers=(("Date", "Sun, 05 May 2024 10:00:00 GMT"),))
    portable = session_of(chat(), chat(answered=dated), chat())
    assert [step.request.ts for step in portable.recording.steps] == [1714903200.0] * 3


def test_a_file_that_never_says_when_has_no_time_and_says_so() -> None:
    nonsense = answer_with(ANSWER, headers=(("Date", "yesterday"),))
    portable = session_of(chat(answered=nonsense))
    assert portable.session.start.started == UNDATED and not portable.session.start.dated
    assert portable.session.folder.startswith("20000101T000000")
    assert portable.session.end is not None
    assert any("does not say when" in remark for remark in portable.session.end.remarks)


def test_an_answer_that_the_file_does_not_hold_is_not_on_tape_but_one_that_never_came_is() -> None:
    missing = replace(chat(), response=None, ending=None, note="the body was left out")
    never = replace(chat(), response=None, ending=Ending.NO_ANSWER, reason="refused")
    first, second = session_of(missing, never).recording.steps
    assert (first.response, first.request.note) == (None, "the body was left out")
    assert second.response is not None
    assert (second.response.ending, second.response.head, second.response.reason) == (Ending.NO_ANSWER, None, "refused")


def test_the_same_exchanges_make_the_same_session() -> None:
    assert session_of(chat(), chat(host="a.example")) == session_of(chat(), chat(host="a.example"))
