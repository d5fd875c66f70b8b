"""What a cassette tells of the machine it was made on, and how one grows."""

import json

from rewind.match.call import understand
from rewind.model.http import HttpRequest, RequestHead, ResponseHead
from rewind.model.ids import SessionId, blob_id
from rewind.model.session import Portable, Recording, Session, SessionStart, Status
from rewind.model.step import Ending, Step, StepKind, StepRequest, StepResponse
from rewind.pytest_plugin.cassette_update import as_committed
from rewind.reading.cassettes import RecordedRun, extended, live_steps


def step(
    index: int, question: str, *, host: str = "api.openai.com", tape: int | None = None
) -> tuple[Step, bytes]:
    body = b'{"model":"m","messages":[{"role":"user","content":"%s"}]}' % question.encode()
    head = RequestHead(
        method="POST", scheme="https", host=host, port=443, target="/v1/chat/completions", headers=()
    )
    call = understand(HttpRequest(head=head, body=body), index=index)
    request = StepRequest(
        index=index,
        ts=float(index),
        kind=StepKind.LLM_CALL,
        provider=call.provider.name,
        match_key=call.key,
        head=head,
        body=blob_id(body),
        body_size=len(body),
    )
    answer = ResponseHead(status=200, reason="OK", headers=())
    response = StepResponse(ending=Ending.COMPLETE, head=answer, ms=1.0, tape=tape)
    return Step(request=request, response=response), body


def portable(*steps: tuple[Step, bytes], **start: object) -> Portable:
    known = {
        "id": SessionId("0" * 8),
        "name": None,
        "command": ("python", "/home/ada/x.py"),
        "cwd": "/home/ada",
    }
    begun = SessionStart(**{**known, "started": 1.0, "rewind_version": "1", **start})  # type: ignore[arg-type]
    session = Session(start=begun, end=None, status=Status.RUNNING, folder="")
    recording = Recording(session=session, steps=tuple(one for one, _ in steps))
    return Portable(recording=recording, blobs={blob_id(body): body for _, body in steps})


def run_of(source: Portable) -> RecordedRun:
    return RecordedRun(recording=source.recording, blob=lambda name: source.blobs[name])


def questions(run: RecordedRun) -> list[tuple[int, str]]:
    return [
        (one.index, json.loads(run.blob(one.request.body))["messages"][0]["content"])
        for one in run.recording.steps
    ]


def test_a_cassette_tells_as_committed_and_not_of_the_machine() -> None:
    keys = ("ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "OPENAI_API_KEY")
    urls = {"OPENAI_BASE_URL": "https://api.openai.com/v1", "INTERNAL_BASE_URL": "https://secret.corp/v1"}
    made = as_committed(
        run_of(portable(step(1, "a"), key_variables=keys, base_urls=urls)), "tests/t.py::t", exit_code=0
    )
    start, end = made.recording.session.start, made.recording.session.end
    assert start.command == ("pytest", "tests/t.py::t")
    assert start.cwd == ""
    assert start.key_variables == ("OPENAI_API_KEY",)
    assert start.base_urls == {"OPENAI_BASE_URL": "https://api.openai.com/v1"}
    assert end is not None and end.exit_code == 0
    assert made.recording.session.status is Status.ENDED


def test_credentials_are_known_by_their_provider_or_by_the_host() -> None:
    keys = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GROQ_API_KEY", "AWS_SECRET_ACCESS_KEY")
    for host, named in (
        ("generativelanguage.googleapis.com", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
        ("api.groq.com", ("GROQ_API_KEY",)),
        ("bedrock-runtime.us-east-1.amazonaws.com", ("AWS_SECRET_ACCESS_KEY",)),
        ("api.example.com", ()),
    ):
        made = as_committed(run_of(portable(step(1, "a", host=host), key_variables=keys)), "t", exit_code=0)
        assert made.recording.session.start.key_variables == named, host


def test_new_steps_stand_behind_those_that_were_there() -> None:
    old = portable(step(1, "a"), step(2, "b"))
    run = portable(step(1, "a", tape=1), step(2, "c"), step(3, "b", tape=2), step(4, "c"))
    assert len(live_steps(run.recording)) == 2
    grown = extended(old, old.recording.steps, run_of(run), hosts=("tools.example.com",))
    assert questions(grown) == [(1, "a"), (2, "b"), (3, "c"), (4, "c")]
    assert grown.recording.steps[:2] == old.recording.steps
    assert grown.recording.session.start.hosts == ("tools.example.com",)


def test_what_another_test_added_meanwhile_is_not_added_twice() -> None:
    now = portable(step(1, "a"), step(2, "b"), step(3, "c"))
    played = now.recording.steps[:1]
    run = portable(step(1, "a", tape=1), step(2, "c"), step(3, "c"), step(4, "d"))
    assert questions(extended(now, played, run_of(run))) == [(1, "a"), (2, "b"), (3, "c"), (4, "c"), (5, "d")]


def test_two_workers_that_record_the_same_cassette_at_once_lose_nothing() -> None:
    now = portable(step(1, "a"), step(2, "b"))
    run = portable(step(1, "b"), step(2, "b"), step(3, "c"))
    assert questions(extended(now, (), run_of(run))) == [(1, "a"), (2, "b"), (3, "b"), (4, "c")]


def test_an_answer_is_needed_for_a_step_to_count() -> None:
    whole, _ = step(1, "a")
    lost = Step(request=whole.request, response=None)
    source = portable((lost, b""))
    assert live_steps(source.recording) == []
