"""The messages of a trace in the words of another API than the one that was spoken."""

from collections.abc import Sequence

from rewind.edit.transcript import SHAPES, written
from rewind.errors import UsageError
from rewind.formats.trace.apis.base import Asking
from rewind.formats.trace.bodies import Bodies
from rewind.formats.trace.conversation import Conversation
from rewind.formats.trace.replay import Replayed
from rewind.model.http import HttpRequest, RequestHead
from rewind.model.session import TRACE_SCHEME
from rewind.providers.catalogue import identify
from rewind.providers.shared.answer_stream import asked_for
from rewind.providers.shared.call_ids import tied
from rewind.providers.shared.write import Pen, media_in


def retold_as(told: Replayed, conversation: Conversation, api: str) -> Replayed:
    """The same conversation for that API; what only the first API can read is left out, and told. Raises UsageError."""
    if api not in SHAPES:
        raise UsageError(f"There is no shape {api!r}.", hint=f"one of: {', '.join(SHAPES)}")
    request = _request(conversation)
    asked = identify(request.head).asked(request)
    pen = Pen()
    messages = list(asked.messages)
    pen.data = media_in([asked_for(request)[0]], messages)
    system, turns = written(asked.system, tied(messages), api, pen)
    remarks = (*told.remarks, *_losses(pen))
    return Replayed.of(turns, api=api, model=told.model, system=system, remarks=remarks, entries=told.entries)


def _request(conversation: Conversation) -> HttpRequest:
    form = conversation.api.form(Asking(model=conversation.model, system=conversation.system, tools=[]))
    head = RequestHead(method="POST", scheme=TRACE_SCHEME, host="", port=0, target=form.target, headers=())
    return HttpRequest(head=head, body=Bodies().request(form, conversation.give()).data())


def _losses(pen: Pen) -> Sequence[str]:
    return [f"{what} ({count}×)" if count > 1 else what for what, count in pen.lost.items()]
