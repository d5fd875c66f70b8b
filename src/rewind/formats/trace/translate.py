"""The messages of a trace in the shape of another API than the one that was spoken."""

from typing import Any

from rewind.edit.transcript import writer_of
from rewind.errors import UsageError
from rewind.formats.trace.api import RequestSettings
from rewind.formats.trace.conversation import TraceConversation
from rewind.formats.trace.exchanges import TraceBodies
from rewind.model.http import HttpRequest, RequestHead
from rewind.model.session import TRACE_SCHEME
from rewind.providers.api import LossLog
from rewind.providers.catalogue import SHAPES, identify
from rewind.providers.shared.answer_stream import request_json
from rewind.providers.shared.write import media_in, with_matched_ids


def translated(conversation: TraceConversation, api: str) -> tuple[Any, list[dict[str, Any]], list[str]]:
    """System prompt and messages for that API, and what only the first API can read. Raises UsageError."""
    if api not in SHAPES:
        raise UsageError(f"Messages cannot be written for {api!r}.", hint=f"one of: {', '.join(SHAPES)}")
    form = conversation.api.form(RequestSettings(model=conversation.model, system=conversation.system, tools=[]))
    head = RequestHead(method="POST", scheme=TRACE_SCHEME, host="", port=0, target=form.target, headers=())
    request = HttpRequest(head=head, body=TraceBodies().request(form, conversation.give()).data())
    asked = identify(head).reader.asked(request)
    messages = list(asked.messages)
    losses = LossLog()
    losses.data = media_in([request_json(request)[0]], messages)
    system, turns = writer_of(api).conversation(asked.system, with_matched_ids(messages), losses)
    return system, turns, losses.remarks()
