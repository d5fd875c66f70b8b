"""Cohere Chat: ``/v2/chat``, whose messages are much like OpenAI's, and the older ``/v1/chat``."""

from collections.abc import Container, Sequence
from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked, Message, Other, Part, Role, ToolDefinition, ToolResult, ToolUse
from rewind.providers.api import Volatile
from rewind.providers.shared.answer_draft import AnswerDraft, UsagePath, UsageTable, parameters_of
from rewind.providers.shared.answer_stream import read_answer, request_json
from rewind.providers.shared.chat_messages import conversation, parts_of, split_system, take_message, tools_in
from rewind.providers.shared.json_fields import at, count_at, first_count, items_at, start_of, text_at, words_at

_TOLD: dict[str, tuple[UsagePath, ...]] = {
    # What was read has the tokens of Cohere's own template, too, which nobody pays for.
    "input": (("tokens", "input_tokens"), ("billed_units", "input_tokens")),
    "output": (("tokens", "output_tokens"), ("billed_units", "output_tokens")),
    "billed_input_tokens": (("billed_units", "input_tokens"),),
    "billed_output_tokens": (("billed_units", "output_tokens"),),
}

USAGE = UsageTable(
    input=(("input",),),
    output=(("output",),),
    more={name: ((name,),) for name in ("billed_input_tokens", "billed_output_tokens")},
)

_READ_FIELDS = ("model", "messages", "tools", "stream")
_READ_FIELDS_V1 = (*_READ_FIELDS, "preamble", "chat_history", "message", "tool_results")


VOLATILE = (
    Volatile("messages[*].tool_calls[*].id", "Names a tool call; drawn at random.", linked=True),
    Volatile("messages[*].tool_call_id", "Refers to a tool call.", linked=True),
)


class CohereReader:
    """Answers are one object, or typed events whose deltas look like messages."""

    def claims(self, head: RequestHead) -> bool:
        # Many a server has a path like these, so the vendor must show: in the host, a gateway's path, or its SDK.
        signs = f"{head.host}{head.path} {head.header('x-fern-sdk-name')}".lower()
        path = head.path.rstrip("/")
        return head.method == "POST" and path.endswith(("/v1/chat", "/v2/chat")) and "cohere" in signs

    def asked(self, request: HttpRequest) -> Asked:
        document, note = request_json(request)
        older = at(document, "messages") is None
        turns = items_at(document, "messages")
        system, messages = _older_conversation(document) if older else conversation(turns)
        return Asked(
            model=words_at(document, "model") or None,
            system=system,
            messages=messages,
            listed=len(turns) or None,
            tools=_older_tools(document) if older else tools_in(document),
            parameters=parameters_of(document, _READ_FIELDS_V1 if older else _READ_FIELDS),
            streamed=at(document, "stream") is True,
            note=note,
        )

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        answer = read_answer(response)
        draft = AnswerDraft()
        if any(at(document, "event_type") is not None for document in answer.documents):
            _take_older_stream(draft, answer.documents)
        else:
            bare = _bare_calls(answer.documents)
            take_message(draft, [_piece(document, bare) for document in answer.documents])
            for document in answer.documents:
                _take_state(draft, document)
        draft.error = _failure(answer.documents)
        return draft.answered(response, answer, USAGE)

    def refusal(self, message: str) -> dict[str, Any]:
        return {"message": message}


# ── what is asked of /v1 ─────────────────────────────────────────────────────────────────────────────────────


def _older_conversation(document: Any) -> tuple[tuple[Part, ...], tuple[Message, ...]]:
    turns = (
        {"role": "SYSTEM", "message": at(document, "preamble")},
        *items_at(document, "chat_history"),
        {"role": "USER", "message": at(document, "message")},
        {"role": "TOOL", "tool_results": at(document, "tool_results")},
    )
    messages = (_older_message(turn) for turn in turns)
    return split_system(tuple(message for message in messages if message.parts))


def _older_message(turn: Any) -> Message:
    said = parts_of(at(turn, "message"))
    match text_at(turn, "role").upper():
        case "SYSTEM":
            return Message(Role.SYSTEM, said)
        case "CHATBOT":
            calls = (
                ToolUse("", words_at(call, "name"), at(call, "parameters")) for call in items_at(turn, "tool_calls")
            )
            return Message(Role.ASSISTANT, (*said, *calls))
        case "TOOL":
            results = items_at(turn, "tool_results")
            return Message(Role.TOOL, tuple(_older_result(result) for result in results))
        case _:
            return Message(Role.USER, said)


def _older_result(result: Any) -> ToolResult:
    outputs = tuple(Other("output", output) for output in items_at(result, "outputs"))
    return ToolResult("", outputs, words_at(result, "call", "name"))


def _older_tools(document: Any) -> tuple[ToolDefinition, ...]:
    return tuple(
        ToolDefinition(words_at(tool, "name"), words_at(tool, "description"), at(tool, "parameter_definitions"))
        for tool in items_at(document, "tools")
    )


# ── what is answered ─────────────────────────────────────────────────────────────────────────────────────────


def _bare_calls(documents: Sequence[Any]) -> set[int | None]:
    """The numbers of streamed tool calls that came to their end without an argument: the whole answer says ``{}``."""
    ended = {count_at(one, "index") for one in documents if text_at(one, "type") == "tool-call-end"}
    function = ("delta", "message", "tool_calls", "function", "arguments")
    return ended - {count_at(one, "index") for one in documents if text_at(one, *function)}


def _piece(document: Any, bare: Container[int | None] = ()) -> Any:
    """What a document says, as (a piece of) a message."""
    if (message := at(document, "message")) is not None:
        return message
    if (delta := at(document, "delta", "message")) is None:
        calls = [_older_call(call) for call in items_at(document, "tool_calls")]
        return {"content": text_at(document, "text"), "tool_calls": calls}
    piece: dict[str, Any] = {"tool_plan": at(delta, "tool_plan"), "content": at(delta, "content")}
    if isinstance(content := at(delta, "content"), dict):
        kind = "thinking" if "thinking" in content else "text"
        piece["content"] = [{**content, "type": kind}]
    if isinstance(call := at(delta, "tool_calls"), dict):
        if (index := count_at(document, "index")) in bare:
            call = {**call, "function": {"name": at(call, "function", "name"), "arguments": {}}}
        piece["tool_calls"] = [{**call, "index": index}]
    return piece


def _take_state(draft: AnswerDraft, document: Any) -> None:
    draft.named(document, id_at="response_id")
    draft.named(document)
    draft.stopped(text_at(document, "finish_reason") or text_at(document, "delta", "finish_reason"))
    for usage in (at(document, "meta"), at(document, "usage"), at(document, "delta", "usage")):
        count_usage(draft, usage)


def count_usage(draft: AnswerDraft, usage: Any) -> None:
    """The tokens that an object of Cohere's tells, for :data:`USAGE`."""
    draft.count({name: first_count(usage, places) for name, places in _TOLD.items()})


def _failure(documents: Sequence[Any]) -> str | None:
    """An error that came after the answer had begun."""
    told = (text_at(document, "delta", "error") for document in documents)
    return next((start_of(message, 500) for message in told if message), None)


def _take_older_stream(draft: AnswerDraft, documents: Sequence[Any]) -> None:
    """The last event repeats the whole answer; a stream that was cut is told by its pieces."""
    whole = next((whole for one in documents if isinstance(whole := at(one, "response"), dict)), None)
    if whole is not None:
        take_message(draft, [_piece(whole)])
        _take_state(draft, whole)
    else:
        generated = any(text_at(one, "event_type") == "tool-calls-generation" for one in documents)
        take_message(draft, [_older_piece(document, generated) for document in documents])
    for document in documents:
        draft.stopped(text_at(document, "finish_reason"))


def _older_piece(document: Any, generated: bool) -> Any:
    """``generated`` says that the tool calls come whole, too, so that their chunks are not read twice."""
    match text_at(document, "event_type"):
        case "text-generation":
            return {"content": text_at(document, "text")}
        case "tool-calls-generation":
            return {"tool_calls": [_older_call(call) for call in items_at(document, "tool_calls")]}
        case "tool-calls-chunk":
            delta = at(document, "tool_call_delta")
            calls = [] if generated or delta is None else [_older_call(delta)]
            return {"content": text_at(document, "text"), "tool_calls": calls}
        case _:
            return {}


def _older_call(call: Any) -> Any:
    function = {"name": at(call, "name"), "arguments": at(call, "parameters")}
    return {"index": count_at(call, "index"), "function": function}
