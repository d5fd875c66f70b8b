"""OpenAI Responses: any path that ends in ``/responses``."""

from collections.abc import Iterable, Iterator
from dataclasses import field
from itertools import takewhile
from typing import Any

from rewind.dataclass import dataclass
from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import (
    Answered,
    Asked,
    Media,
    Message,
    Other,
    Part,
    Refusal,
    Role,
    Text,
    Thinking,
    ToolDefinition,
    ToolResult,
    ToolUse,
)
from rewind.providers.openai_chat.read import openai_error
from rewind.providers.shared.answer_draft import (
    AnswerDraft,
    JsonPath,
    PartialJson,
    UsageTable,
    inner,
    json_or_text,
    parameters_of,
)
from rewind.providers.shared.answer_stream import read_answer, request_json
from rewind.providers.shared.json_fields import at, count_at, inline, items_at, referred, text_at, words_at, writable
from rewind.wire.growing_json import read_each, read_runs

USAGE = UsageTable(
    # What was cached is counted inside the input, and thinking inside the output.
    input=(("input_tokens",),),
    output=(("output_tokens",),),
    cache_read=(("input_tokens_details", "cached_tokens"),),
    cache_write=(("input_tokens_details", "cache_write_tokens"),),
    reasoning=(("output_tokens_details", "reasoning_tokens"),),
)

_READ_FIELDS = ("model", "instructions", "input", "tools", "stream", "previous_response_id", "conversation")
_RUN_BY_THE_AGENT = ("computer", "computer_use_preview", "local_shell", "shell", "apply_patch")
_ENDS = ("completed", "incomplete", "failed", "cancelled")


class OpenAIResponsesReader:
    """Answers are one ``response``, or its events; the last event repeats the whole."""

    def claims(self, head: RequestHead) -> bool:
        return head.method == "POST" and head.path.rstrip("/").endswith("/responses")

    def asked(self, request: HttpRequest) -> Asked:
        document, note = request_json(request)
        given = _items(document)
        brought = [item for item, is_tools in zip(given, read_each(_brings_tools, given), strict=True) if is_tools]
        turns = turns_of([item for item in given if not _brings_tools(item)] if brought else given)
        leading = tuple(takewhile(lambda turn: turn.role is Role.SYSTEM, turns))
        return Asked(
            model=words_at(document, "model") or None,
            system=(*content_of(at(document, "instructions")), *(part for turn in leading for part in turn.parts)),
            messages=turns[len(leading) :],
            listed=len(given),
            tools=tuple(_tool(tool) for tool in _tools(document, *brought)),
            parameters=parameters_of(document, _READ_FIELDS),
            streamed=at(document, "stream") is True,
            continues=words_at(document, "previous_response_id") or None,
            history=words_at(document, "conversation") or words_at(document, "conversation", "id") or None,
            note=note,
        )

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        answer = read_answer(response)
        draft = AnswerDraft()
        output = ResponseItems()
        for document in answer.documents:
            kind = text_at(document, "type")
            output.take(kind, document)
            _take_whole(draft, at(document, "response") if kind.startswith("response.") else document)
        for number, item in enumerate(output.items()):
            for place, part in enumerate(parts_of(item)):
                draft.put((number, place), part)
        return draft.answered(response, answer, USAGE)

    def refusal(self, message: str) -> dict[str, Any]:
        return openai_error(message)


# ── what is asked ────────────────────────────────────────────────────────────────────────────────────────────


def _items(document: Any) -> list[Any]:
    given = at(document, "input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else items_at(document, "input")


def _brings_tools(item: Any) -> bool:
    """Tools handed over inside the conversation, which count like those named beside it."""
    return text_at(item, "type") == "additional_tools"


def _tools(*places: Any) -> Iterator[Any]:
    """The tools named there; a namespace stands for those in it, which are called by their own names."""
    for place in places:
        for tool in items_at(place, "tools"):
            yield from items_at(tool, "tools") if text_at(tool, "type") == "namespace" else (tool,)


def _tool(tool: Any) -> ToolDefinition:
    match kind := text_at(tool, "type"):
        case "function":
            function = inner(tool, "function")
            return _defined(function, words_at(function, "name"), at(function, "parameters"))
        case "custom":
            return _defined(tool, words_at(tool, "name"), at(tool, "format"))
        case "tool_search" if text_at(tool, "execution") == "client":
            return _defined(tool, kind, at(tool, "parameters"))
        case _:
            contained = text_at(tool, "environment", "type").startswith("container")
            hosted = contained or kind not in _RUN_BY_THE_AGENT
            name = words_at(tool, "server_label") or writable(kind)
            return ToolDefinition(name, "", parameters_of(tool, ("type",)), hosted)


def _defined(tool: Any, name: str, schema: Any) -> ToolDefinition:
    return ToolDefinition(name, words_at(tool, "description"), schema)


# ── what is answered ─────────────────────────────────────────────────────────────────────────────────────────


def _take_whole(draft: AnswerDraft, whole: Any) -> None:
    draft.named(whole)
    draft.count(at(whole, "usage"))
    draft.tier = text_at(whole, "service_tier") or draft.tier
    status = text_at(whole, "status")
    reason = text_at(whole, "incomplete_details", "reason")
    if status in _ENDS:
        draft.stopped(f"{status}: {reason}" if reason else status)


@dataclass(frozen=True, slots=True)
class DeltaPlace:
    """Where the deltas of a kind of event belong: in which item, which of its parts, and at which path there.

    Steps that end in ``_index`` are told by the event.
    """

    item: str
    path: tuple[str, ...]
    part: str = ""
    told: str = "text"
    """The field of the closing event that repeats all deltas."""


_ROWS = {
    "response.output_text": DeltaPlace("message", ("content", "content_index", "text"), "output_text"),
    "response.refusal": DeltaPlace("message", ("content", "content_index", "refusal"), "refusal", "refusal"),
    "response.audio": DeltaPlace("message", ("content", "content_index", "data"), "output_audio"),
    "response.audio.transcript": DeltaPlace("message", ("content", "content_index", "transcript"), "output_audio"),
    "response.reasoning_text": DeltaPlace("reasoning", ("content", "content_index", "text"), "reasoning_text"),
    "response.reasoning_summary_text": DeltaPlace("reasoning", ("summary", "summary_index", "text"), "summary_text"),
    "response.function_call_arguments": DeltaPlace("function_call", ("arguments",), told="arguments"),
    "response.mcp_call_arguments": DeltaPlace("mcp_call", ("arguments",), told="arguments"),
    "response.custom_tool_call_input": DeltaPlace("custom_tool_call", ("input",), told="input"),
    "response.code_interpreter_call_code": DeltaPlace("code_interpreter_call", ("code",), told="code"),
    "response.shell_call_command": DeltaPlace("shell_call", ("action", "commands", "command_index"), told="command"),
    "response.shell_call_output_content": DeltaPlace("shell_call_output", ("output", "command_index")),
}


@dataclass(slots=True)
class ResponseItems:
    """The items of an answer while its events go by.

    The last event repeats them all, and what is told whole wins over pieces. Where the stream was cut before, or
    the last event leaves them out, as the one behind ChatGPT's sign-in does, the items are put together here.
    """

    whole: list[Any] = field(default_factory=list)
    begun: dict[int | None, Any] = field(default_factory=dict)
    pieces: dict[int | None, PartialJson] = field(default_factory=dict)

    def take(self, kind: str, event: Any) -> None:
        place = count_at(event, "output_index")
        subject, _, stage = kind.rpartition(".")
        match stage:
            case "added" | "done" if subject == "response.output_item":
                self.begun[place] = at(event, "item")
                self.pieces.pop(place, None)
            case "partial_image":
                self._at(place, "image_generation_call").put(("result",), text_at(event, "partial_image_b64"))
            case "delta" | "done" if row := _ROWS.get(subject):
                self._take_piece(row, place, stage, event)
            case _:
                response = event if not subject else at(event, "response")
                self.whole = items_at(response, "output") or self.whole

    def _take_piece(self, row: DeltaPlace, place: int | None, stage: str, event: Any) -> None:
        pieces = self._at(place, row.item)
        path: JsonPath = tuple((count_at(event, step) or 0) if step.endswith("_index") else step for step in row.path)
        if row.part:
            pieces.put((*path[:-1], "type"), row.part)
        delta = at(event, "delta")
        for name, piece in delta.items() if isinstance(delta, dict) else ((None, delta),):
            if isinstance(piece, str):
                pieces.append(path if name is None else (*path, name), piece)
        if stage == "done" and (told := text_at(event, row.told)):
            pieces.put(path, told)

    def _at(self, place: int | None, kind: str) -> PartialJson:
        self.begun.setdefault(place, {"type": kind})
        return self.pieces.setdefault(place, PartialJson())

    def items(self) -> list[Any]:
        """The items, whole or as far as they came."""
        untouched = PartialJson()
        return self.whole or [self.pieces.get(place, untouched).into(item) for place, item in self.begun.items()]


_FOR_THE_AGENT = frozenset(
    {*("function_call", "custom_tool_call", "computer_call"), *("local_shell_call", "shell_call", "apply_patch_call")}
)
_ARGUMENTS = ("arguments", "input", "action", "actions", "operation")
_SCATTERED_ARGUMENTS = {
    "code_interpreter_call": ("code",),
    "file_search_call": ("queries",),
    "image_generation_call": ("revised_prompt", "size", "quality"),
    "program": ("code",),
}
_NAMELESS = ("function_call_output", "custom_tool_call_output")
_ROLES = {
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "tool": Role.TOOL,
}


def turns_of(items: Iterable[Any]) -> tuple[Message, ...]:
    """Items as turns. What the model gave in a row is one turn, so it equals the answer that it repeats."""
    return read_runs(speaker, _turns, items)


def _turns(role: Role, run: list[Any]) -> tuple[Message, ...]:
    if role is Role.ASSISTANT:
        return (Message(role, tuple(part for item in run for part in parts_of(item)), entries=len(run)),)
    return tuple(Message(role, parts_of(item)) for item in run)


def speaker(item: Any) -> Role:
    """Whose turn an item belongs to; what the provider ran itself stands in the model's."""
    kind = text_at(item, "type")
    if told := _ROLES.get(text_at(item, "role")):
        return told
    if kind == "mcp_approval_response":
        return Role.USER
    return Role.TOOL if kind.endswith("_output") and not is_hosted(item) else Role.ASSISTANT


def is_hosted(item: Any) -> bool:
    """Whether the provider runs what the item tells of."""
    kind = text_at(item, "type")
    if kind in ("tool_search_call", "tool_search_output"):
        return text_at(item, "execution") != "client"
    contained = text_at(item, "environment", "type").startswith("container")
    return contained or not (kind in _FOR_THE_AGENT or kind.endswith("_call_output"))


def parts_of(item: Any) -> tuple[Part, ...]:
    """What one item says. A tool that the provider ran tells its result in the same item."""
    match kind := text_at(item, "type"):
        case "message" | "":
            told = isinstance(item, dict) and "content" in item
            return content_of(at(item, "content")) if told else (Other("item_reference", item),)
        case "reasoning":
            return (_thinking(item),)
        case "code_interpreter_call":
            return (_call(item, kind), *_results(item, kind, content_of(at(item, "outputs"))))
        case "file_search_call":
            found = items_at(item, "results")
            return (_call(item, kind), *_results(item, kind, (Other("results", found),) if found else ()))
        case "image_generation_call":
            return (_call(item, kind), *_picture(item), *_results(item, kind, ()))
        case "mcp_call":
            return (_call(item, kind), *_results(item, kind, content_of(at(item, "output"))))
        case "mcp_approval_request" | "program":
            return (_call(item, kind),)
        case "mcp_approval_response":
            return (_approval(item),)
        case "mcp_list_tools" | "tool_search_output":
            return (_result(item, kind, (Other("tools", items_at(item, "tools")),)),)
        case "program_output":
            return (_result(item, kind, content_of(at(item, "result"))),)
        case "shell_call_output":
            runs = items_at(item, "output")
            return (_result(item, kind, tuple(part for run in runs for part in _shown(run))),)
        case _ if kind.endswith("_call_output"):
            return (_result(item, kind, content_of(at(item, "output"))),)
        case _ if kind.endswith("_call"):
            return (_call(item, kind),)
        case _:
            return (Other(writable(kind), item),)


def content_of(content: Any) -> tuple[Part, ...]:
    """Content as a text, a part or a list of parts."""
    if isinstance(content, str):
        return (Text(writable(content)),) if content else ()
    blocks = content if isinstance(content, list) else [content] if isinstance(content, dict) else []
    return tuple(part for block in blocks for part in _content(block))


def _content(block: Any) -> tuple[Part, ...]:
    match kind := text_at(block, "type"):
        case "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text":
            return content_of(text_at(block, "text"))
        case "logs":
            return content_of(text_at(block, "logs"))
        case "refusal":
            return (Refusal(words_at(block, "refusal")),) if text_at(block, "refusal") else ()
        case "input_image" | "computer_screenshot" | "image":
            return (referred(_first(block, "image_url", "url", "file_id"), kind="image"),)
        case "input_file":
            return (_file(block),)
        case "input_audio":
            sound = at(block, "input_audio")
            return (inline(at(sound, "data"), f"audio/{text_at(sound, 'format') or '*'}"),)
        case "output_audio":
            return (*content_of(text_at(block, "transcript")), inline(at(block, "data"), "audio/*"))
        case _:
            return (Other(writable(kind), block),)


def _file(block: Any) -> Media:
    data = text_at(block, "file_data")
    if data and not data.startswith("data:"):
        return inline(data, "")
    return referred(data or _first(block, "file_url", "file_id"))


def _first(value: Any, *names: str) -> str:
    return next((found for name in names if (found := text_at(value, name))), "")


def _thinking(item: Any) -> Thinking:
    pieces = [text_at(piece, "text") for piece in items_at(item, "content") or items_at(item, "summary")]
    text = writable("\n\n".join(piece for piece in pieces if piece))
    return Thinking(text, sealed=bool(text_at(item, "encrypted_content")) or not text)


def _call(item: Any, kind: str) -> ToolUse:
    name = words_at(item, "name") or writable(kind.removesuffix("_call"))
    return ToolUse(_id(item), name, _arguments(item, kind), is_hosted(item))


def _arguments(item: Any, kind: str) -> Any:
    if names := _SCATTERED_ARGUMENTS.get(kind):
        return {name: value for name in names if (value := at(item, name)) is not None} or None
    told = next((value for name in _ARGUMENTS if (value := at(item, name)) is not None), None)
    if not isinstance(told, str):
        return told
    # Only a custom tool takes a text of its own; all others are called with JSON.
    return writable(told) if kind == "custom_tool_call" else json_or_text(told)


def _id(item: Any) -> str:
    """What ties a result to its call; the item's own id where the API has no other."""
    told = isinstance(item, dict) and "call_id" in item
    return words_at(item, "call_id") if told else words_at(item, "id")


def _results(item: Any, kind: str, parts: tuple[Part, ...]) -> tuple[ToolResult, ...]:
    """The result inside a call's own item, once there is one."""
    return (_result(item, kind, parts),) if parts or _failed(item) else ()


def _result(item: Any, kind: str, parts: tuple[Part, ...]) -> ToolResult:
    tool = kind.removesuffix("_output").removesuffix("_call")
    name = words_at(item, "name") or ("" if kind in _NAMELESS else writable(tool))
    told = parts or content_of(_wrong(at(item, "error")))
    return ToolResult(_id(item), told, name, _failed(item), is_hosted(item))


def _failed(item: Any) -> bool:
    return at(item, "error") is not None or text_at(item, "status") == "failed"


def _wrong(error: Any) -> Any:
    """The words of an error, which may be a text, an object with a message, or one with content."""
    return error if isinstance(error, str) else text_at(error, "message") or at(error, "content")


def _approval(item: Any) -> ToolResult:
    word = "approved" if at(item, "approve") is True else "declined"
    reason = words_at(item, "reason")
    said = Text(f"{word}: {reason}" if reason else word)
    return ToolResult(words_at(item, "approval_request_id"), (said,), hosted=True)


def _picture(item: Any) -> tuple[Part, ...]:
    data = text_at(item, "result")
    return (inline(data, f"image/{text_at(item, 'output_format') or 'png'}"),) if data else ()


def _shown(run: Any) -> tuple[Part, ...]:
    """One command's output, and how it ended."""
    outcome = at(run, "outcome")
    ended = (Other("outcome", outcome),) if outcome is not None else ()
    return (*content_of(text_at(run, "stdout")), *content_of(text_at(run, "stderr")), *ended)
