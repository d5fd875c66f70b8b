"""OpenAI Assistants: a run of a thread that the provider keeps.

What starts a run, or brings it the results of tools, is a call to a model. Where the client does not stream, the answer
only says that the run is queued, and the outcome is asked for later: those requests are plain HTTP.
"""

import re
from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked, Message, Role, ToolResult
from rewind.model.step import StepKind
from rewind.providers.api import Api, Volatile
from rewind.providers.openai_chat.read import NOISE, USAGE, count_usage, openai_error
from rewind.providers.shared.answer_draft import AnswerDraft, json_or_text, parameters_of
from rewind.providers.shared.answer_stream import read_answer, request_json
from rewind.providers.shared.chat_messages import conversation, parts_of, tools_in
from rewind.providers.shared.json_fields import at, count_at, items_at, start_of, text_at, words_at, writable

_PATH = re.compile(r"/threads/(?:(?P<thread>[^/]+)/)?runs(?:/[^/]+/submit_tool_outputs)?$")
_READ_FIELDS = (
    *("model", "instructions", "additional_instructions", "additional_messages", "thread", "tools", "tool_outputs"),
    "stream",
)
VOLATILE = (Volatile("tool_outputs[*].tool_call_id", "Refers to a tool call; drawn at random.", linked=True), *NOISE)


class AssistantsReader:
    """A run is one object, or typed events: pieces of messages, and the run whenever its state changes."""

    def claims(self, head: RequestHead) -> bool:
        return head.method == "POST" and _PATH.search(head.path.rstrip("/")) is not None

    def asked(self, request: HttpRequest) -> Asked:
        document, note = request_json(request)
        found = _PATH.search(request.head.path.rstrip("/"))
        turns = (*items_at(document, "thread", "messages"), *items_at(document, "additional_messages"))
        system, messages = conversation(list(turns))
        return Asked(
            model=words_at(document, "model") or None,
            system=(
                *parts_of(at(document, "instructions")),
                *parts_of(at(document, "additional_instructions")),
                *system,
            ),
            messages=(*messages, *_results(document)),
            tools=tools_in(document),
            parameters=parameters_of(document, _READ_FIELDS),
            streamed=at(document, "stream") is True,
            history=writable(found["thread"]) if found and found["thread"] else None,
            note=note,
        )

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        answer = read_answer(response)
        draft = AnswerDraft()
        for document in answer.documents:
            match text_at(document, "object"):
                case "thread.run":
                    _take_run(draft, document)
                case "thread.message.delta":
                    for block in items_at(document, "delta", "content"):
                        place = (text_at(document, "id"), count_at(block, "index"))
                        draft.say(place, text_at(block, "text", "value") or text_at(block, "refusal"))
        return draft.answered(response, answer, USAGE)

    def refusal(self, message: str) -> dict[str, Any]:
        return openai_error(message)


def _results(document: Any) -> tuple[Message, ...]:
    results = tuple(
        ToolResult(words_at(one, "tool_call_id"), parts_of(at(one, "output")))
        for one in items_at(document, "tool_outputs")
    )
    return (Message(Role.TOOL, results),) if results else ()


def _take_run(draft: AnswerDraft, run: Any) -> None:
    """The last state holds."""
    draft.named(run)
    draft.stopped(text_at(run, "incomplete_details", "reason") or text_at(run, "status"))
    count_usage(draft, at(run, "usage"))
    if failed := text_at(run, "last_error", "message"):
        draft.error = start_of(failed, 500)
    for number, call in enumerate(items_at(run, "required_action", "submit_tool_outputs", "tool_calls")):
        tool = draft.tool(("tool", number))
        tool.id, tool.name = text_at(call, "id"), text_at(call, "function", "name")
        tool.arguments = json_or_text(text_at(call, "function", "arguments"))


API = Api(name="openai-assistants", kind=StepKind.LLM_CALL, reader=AssistantsReader(), volatile=VOLATILE)
