"""The turns that a trace writes itself are those that the providers' writers and readers know.

``formats/trace/apis.py`` writes turns from what a program hands over, which is less than a message: only words, calls
and results. What both know of an API is held together here.
"""

from typing import Any

import pytest

from rewind.edit.transcript import writer_of
from rewind.formats.trace.api import AskedTool, RequestSettings, ToolOutput
from rewind.formats.trace.apis import APIS, recognised
from rewind.model.http import HttpRequest, RequestHead
from rewind.model.message import Asked, Message, Role, Text, ToolResult, ToolUse
from rewind.providers.api import LossLog
from rewind.providers.catalogue import BY_SHAPE, SHAPES, identify
from rewind.providers.shared.request_body import JsonStyle
from rewind.providers.shared.write import with_matched_ids

TALK = (
    Message(Role.USER, (Text("Where is order 8821?"),)),
    Message(Role.ASSISTANT, (Text("I look."), ToolUse("call_1", "look", {"order": "8821"}))),
    Message(Role.TOOL, (ToolResult("call_1", (Text("shipped"),), "look"),)),
    Message(Role.ASSISTANT, (Text("It is shipped."),)),
)
each_shape = pytest.mark.parametrize("shape", SHAPES)


def turns_of(shape: str) -> list[Any]:
    api = APIS[shape]
    called = api.spoken("I look.", (AskedTool("call_1", "look", {"order": "8821"}),))
    return [
        api.user("Where is order 8821?"),
        *called.turns,
        api.brought(ToolOutput(id="call_1", name="look", output="shipped")),
        *api.spoken("It is shipped.", ()).turns,
    ]


def read(shape: str, turns: list[Any]) -> Asked:
    form = APIS[shape].form(RequestSettings(model="m", system="Be brief.", tools=[]))
    head = RequestHead(method="POST", scheme="https", host="h.example", port=443, target=form.target, headers=())
    assert identify(head) is BY_SHAPE[shape], "the request goes to this very API"
    body = {**form.before, form.turns_at: [*form.first, *turns], **form.after}
    return identify(head).reader.asked(HttpRequest(head=head, body=JsonStyle().write(body)))


def test_there_is_one_for_every_shape() -> None:
    assert tuple(APIS) == SHAPES


@each_shape
def test_what_a_trace_writes_is_read_as_what_was_said(shape: str) -> None:
    asked = read(shape, turns_of(shape))
    assert asked.system == (Text("Be brief."),)
    assert with_matched_ids(asked.messages) == TALK


@each_shape
def test_what_a_writer_writes_is_read_as_the_same(shape: str) -> None:
    _, turns = writer_of(shape).conversation((), TALK, LossLog())
    assert with_matched_ids(read(shape, turns).messages) == with_matched_ids(read(shape, turns_of(shape)).messages)


@each_shape
def test_the_calls_of_a_written_turn_are_found_in_it(shape: str) -> None:
    _, turns = writer_of(shape).conversation((), TALK, LossLog())
    found = [use for turn in turns for use in APIS[shape].uses(turn)]
    assert found == [AskedTool("call_1", "look", {"order": "8821"})]


@each_shape
def test_an_answer_that_was_made_up_is_recognised(shape: str) -> None:
    target = APIS[shape].form(RequestSettings(model="m", system=None, tools=[])).target
    head = RequestHead(method="POST", scheme="https", host="h.example", port=443, target=target, headers=())
    request = HttpRequest(head=head, body=b"{}")
    document = APIS[shape].spoken("Done.", ()).document
    found = recognised(document)
    assert found is not None
    assert found[0].name == shape
    speaker = identify(head).speaker_for(request)
    assert identify(head).reader.answered(request, speaker.response(document)).text == "Done."
