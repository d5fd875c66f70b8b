"""Tool calls and notes on a tape: what is played, what is run, and which steps a played tool hides."""

import random
from dataclasses import replace

from rewind.match.call import Call, understand
from rewind.model.http import HttpRequest, RequestHead
from rewind.model.step import Step, StepKind
from rewind.playback.decision import Forward, Refuse, Serve, StopRun
from rewind.playback.policies import Replay
from rewind.playback.tools import ToolCallPolicy, askable_steps, within_tools
from support.recorded_requests import Recorded
from unit.playback.test_tape_and_policies import question


def own(scheme: str, text: str) -> HttpRequest:
    method = "CALL" if scheme == "tool" else "NOTE"
    head = RequestHead(method=method, scheme=scheme, host="", port=0, target="/look", headers=())
    return HttpRequest(head=head, body=f'{{"arguments":{{"text":"{text}"}}}}'.encode())


def call(request: HttpRequest) -> Call:
    return understand(request)


def test_tools_are_played_and_never_run_for_want_of_an_answer() -> None:
    recorded = Recorded(question("one"), own("tool", "a"), own("note", "n"))
    policy = ToolCallPolicy(
        Replay(recorded.tape, recorded.recall, session="x"), recorded.tape, live_tools=False, over=lambda: "enough"
    )
    assert policy.at_a_glance(own("tool", "a")) is None
    assert policy.decide(call(own("tool", "a"))) == Serve(step=recorded.steps[1])
    for missing in (own("tool", "a"), own("tool", "b")):
        assert isinstance(policy.decide(call(missing)), Refuse)
    # Notes need not be there.
    assert policy.decide(call(own("note", "n"))) == Serve(step=recorded.steps[2])
    assert policy.decide(call(own("note", "other"))) == Forward()


def test_live_tools_run_until_the_run_is_over_and_late_notes_are_new() -> None:
    recorded = Recorded(own("tool", "a"), own("note", "n"))
    over: list[str] = []
    policy = ToolCallPolicy(
        Replay(recorded.tape, recorded.recall, session="x"),
        recorded.tape,
        live_tools=True,
        before=2,
        over=lambda: over[0] if over else None,
    )
    assert policy.decide(call(own("tool", "a"))) == Forward()
    assert recorded.tape.played(1)
    assert policy.decide(call(own("note", "n"))) == Forward()
    over.append("enough")
    assert policy.decide(call(own("tool", "b"))) == StopRun(reason="enough")


def timed(index: int, began: float, ms: float, kind: StepKind) -> Step:
    (step,) = Recorded(question(str(index))).steps
    request = replace(step.request, index=index, ts=began, kind=kind)
    assert step.response is not None
    return Step(request=request, response=replace(step.response, ms=ms))


def test_what_a_played_tool_asked_for_itself_cannot_be_asked() -> None:
    source = random.Random(13)
    for _ in range(200):
        kinds = [source.choice([StepKind.TOOL_CALL, StepKind.LLM_CALL]) for _ in range(12)]
        began = sorted(source.uniform(0, 5) for _ in kinds)
        steps = [
            timed(at, start, source.uniform(1, 3000), kind)
            for at, (start, kind) in enumerate(zip(began, kinds, strict=True), 1)
        ]
        played = [step for step in steps if step.request.kind is StepKind.TOOL_CALL and source.random() < 0.5]
        expected = {
            step.index
            for step in steps
            if any(step.index > tool.index and step.ended <= tool.ended + 0.001 for tool in played)
        }
        assert within_tools(source.sample(steps, len(steps)), played) == expected


def test_notes_are_not_among_what_can_be_asked() -> None:
    recorded = Recorded(question("one"), question("two"))
    recorded.steps[1] = replace(recorded.steps[1], request=replace(recorded.steps[1].request, kind=StepKind.NOTE))
    tape = type(recorded.tape)(recorded.steps)
    assert [step.index for step in askable_steps(tape, ())] == [1]
