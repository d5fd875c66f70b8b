"""Small recorded runs, made of questions."""

from rewind.match.call import understand
from rewind.model.http import HttpRequest, RequestHead, ResponseHead
from rewind.model.ids import SessionId, blob_id
from rewind.model.session import Recording, Session, SessionFile, SessionStart, Status
from rewind.model.step import Ending, Step, StepKind, StepRequest, StepResponse
from rewind.reading.cassettes import RecordedRun


def step(index: int, question: str, *, host: str = "api.openai.com", tape: int | None = None) -> tuple[Step, bytes]:
    body = b'{"model":"m","messages":[{"role":"user","content":"%s"}]}' % question.encode()
    head = RequestHead(method="POST", scheme="https", host=host, port=443, target="/v1/chat/completions", headers=())
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


def portable(*steps: tuple[Step, bytes], **start: object) -> SessionFile:
    known = {"id": SessionId("0" * 8), "name": None, "command": ("python", "/home/ada/x.py"), "cwd": "/home/ada"}
    begun = SessionStart(**{**known, "started": 1.0, "rewind_version": "1", **start})  # type: ignore[arg-type]
    session = Session(start=begun, end=None, status=Status.RUNNING, folder="")
    recording = Recording(session=session, steps=tuple(step for step, _ in steps))
    return SessionFile(recording=recording, blobs={blob_id(body): body for body in (b"", *(body for _, body in steps))})


def run_of(source: SessionFile) -> RecordedRun:
    return RecordedRun(recording=source.recording, blob=lambda name: source.blobs[name])
