"""A whole run, understood from its bytes."""

import json
from dataclasses import replace
from typing import Any

from rewind.conversation.outline import Outline, outline_of
from rewind.conversation.threads import ThreadPlace
from rewind.match.call import understand
from rewind.model.http import HttpRequest, RequestHead, ResponseHead
from rewind.model.ids import SessionId
from rewind.model.session import Recording, Session, SessionStart, Status
from rewind.model.step import Ending, Reading, Step, StepKind, StepRequest, StepResponse
from rewind.model.usage import Usage

ASK = {"role": "user", "content": "Is account 4711 active?"}
USE = {"type": "tool_use", "id": "t1", "name": "lookup", "input": {"account": 4711}}
BACK = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "active"}]}


class Run:
    """Exchanges one after the other, one a second."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.bodies: dict[int, tuple[bytes, bytes]] = {}

    def claude(self, messages: list[Any], content: list[Any], **changes: Any) -> None:
        body = {"model": "claude-x", "max_tokens": 9, "messages": messages}
        answer = {"type": "message", "id": "m", "model": "claude-x-1", "content": content, "usage": {"input_tokens": 5}}
        self.add("https", "api.anthropic.com", "/v1/messages", body, answer, **changes)

    def tool(self, name: str, arguments: Any, answer: Any, **changes: Any) -> None:
        self.add("tool", "agent", f"/{name}", {"arguments": arguments}, answer, **changes)

    def add(
        self, scheme: str, host: str, target: str, body: Any, answer: Any, *, status: int = 200, ms: float = 200.0
    ) -> None:
        index = len(self.steps) + 1
        head = RequestHead(method="POST", scheme=scheme, host=host, port=443, target=target, headers=())
        raw = json.dumps(body).encode()
        call = understand(HttpRequest(head=head, body=raw))
        request = StepRequest(
            index=index,
            ts=1000.0 + index,
            kind=call.provider.kind,
            provider=call.provider.name,
            match_key=call.key,
            head=head,
        )
        media = (("content-type", "application/json"),)
        response = StepResponse(
            ending=Ending.COMPLETE, head=ResponseHead(status=status, reason="", headers=media), ms=ms
        )
        self.steps.append(Step(request=request, response=response))
        self.bodies[index] = (raw, json.dumps(answer).encode())

    def outline(self) -> Outline:
        start = SessionStart(id=SessionId("00000000"), name=None, command=(), cwd="", started=0.0, rewind_version="0")
        session = Session(start=start, end=None, status=Status.ENDED, folder="")
        return outline_of(Recording(session=session, steps=tuple(self.steps)), lambda step: self.bodies[step.index])


def test_a_run_is_understood_from_its_bytes_alone() -> None:
    run = Run()
    run.claude([ASK], [USE])
    run.claude([ASK, {"role": "assistant", "content": [USE]}, BACK], [{"type": "text", "text": "It is."}])
    outline = run.outline()
    assert [one.place for one in outline.steps] == [ThreadPlace(1), ThreadPlace(1, 1)]
    (call,) = outline.tools
    assert (call.label, call.use.name, call.answered_in, call.ms) == ("1.1", "lookup", 2, 800.0)
    assert outline.steps[1].reading == Reading(model="claude-x-1", text="It is.", usage=Usage(input=5))
    assert outline.threads == 1


def test_a_tool_that_the_agent_recorded_itself_is_shown_once_with_its_true_duration() -> None:
    run = Run()
    run.claude([ASK], [USE])
    run.tool("lookup", {"account": 9}, {"result": "another call"})
    run.tool("lookup", {"account": 4711}, {"result": "active"}, ms=12.5)
    run.claude([ASK, {"role": "assistant", "content": [USE]}, BACK], [{"type": "text", "text": "It is."}])
    outline = run.outline()
    (call,) = outline.tools
    assert (call.recorded_as, call.ms, call.answered_in) == (3, 12.5, 4)
    assert outline.steps[2].step.request.kind is StepKind.TOOL_CALL
    assert outline.steps[2].place is None


def test_a_result_that_no_request_brought_is_taken_from_the_recorded_run() -> None:
    run = Run()
    run.claude([ASK], [USE])
    run.tool("lookup", {"account": 4711}, {"error": "timed out"}, status=500)
    (call,) = run.outline().tools
    assert call.result is not None and call.result.failed
    assert call.result.text == "timed out"


def test_a_retry_names_the_step_that_failed_and_stays_in_its_conversation() -> None:
    run = Run()
    run.claude([ASK], [], status=529)
    run.claude([ASK], [], status=529)
    run.claude([ASK], [{"type": "text", "text": "Yes."}])
    run.claude([ASK], [{"type": "text", "text": "Yes."}])
    outline = run.outline()
    assert [one.retry_of for one in outline.steps] == [None, 1, 2, None]
    assert {one.place for one in outline.steps} == {ThreadPlace(1)}


def test_equal_requests_that_are_under_way_together_are_no_retries() -> None:
    run = Run()
    for status, ms in ((429, 100.0), (200, 9000.0), (200, 9000.0)):
        run.claude([ASK], [{"type": "text", "text": "Yes."}], status=status, ms=ms)
    run.steps = [Step(request=replace(step.request, ts=1000.0), response=step.response) for step in run.steps]
    run.claude([ASK], [{"type": "text", "text": "Yes."}])
    assert [one.retry_of for one in run.outline().steps] == [None, None, None, 1]


def test_a_call_made_before_an_answer_came_cannot_go_on_from_it() -> None:
    task = "Find out whether account 4711 is active."
    run = Run()
    start = {"type": "tool_use", "id": "t1", "name": "delegate", "input": {"task": task}}
    run.claude([ASK], [start], ms=5000.0)
    run.add(
        "https",
        "api.anthropic.com",
        "/v1/messages",
        {"model": "c", "system": "Other.", "messages": [{"role": "user", "content": task}]},
        {"type": "message", "content": []},
    )
    assert [one.place for one in run.outline().steps] == [ThreadPlace(1), ThreadPlace(2)]


def test_a_step_that_no_codec_knew_is_read_by_one_of_today() -> None:
    run = Run()
    run.claude([ASK], [{"type": "text", "text": "Yes."}])
    step = run.steps[0]
    run.steps[0] = Step(request=replace(step.request, kind=StepKind.HTTP_CALL, provider="http"), response=step.response)
    (one,) = run.outline().steps
    assert (one.kind, one.place, one.reading.text) == (StepKind.LLM_CALL, ThreadPlace(1), "Yes.")


def test_embeddings_belong_to_no_conversation() -> None:
    run = Run()
    run.add(
        "https", "api.openai.com", "/v1/embeddings", {"model": "e", "input": ["a"]}, {"data": [{"embedding": [0.1]}]}
    )
    outline = run.outline()
    assert outline.steps[0].place is None
    assert outline.threads == 0


def test_what_the_codec_cannot_tell_is_as_it_was_told_when_it_was_recorded() -> None:
    run = Run()
    run.claude([ASK], [])
    told = Reading(model="m", text="as recorded", usage=Usage(input=1, output=2))
    step = run.steps[0]
    assert step.response is not None
    run.steps[0] = Step(
        request=step.request,
        response=StepResponse(ending=Ending.COMPLETE, head=step.response.head, ms=1.0, reading=told),
    )
    run.bodies[1] = (b"", b"")
    assert run.outline().steps[0].reading == told
