"""OpenAI Responses: any path that ends in ``/responses``."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked, Role, ToolDefinition
from rewind.model.step import StepKind
from rewind.providers.api import Volatile
from rewind.providers.openai_chat.read import NOISE, openai_error
from rewind.providers.openai_responses.items import content_of, parts_of, turns_of
from rewind.providers.shared.answer_draft import Draft, UsageTable, inner, parameters_of
from rewind.providers.shared.answer_stream import answer_of, asked_for
from rewind.providers.shared.json_fields import at, count_at, items_at, text_at, words_at, writable
from rewind.providers.shared.pieces import Path, Pieces

_STATE = "Names what an earlier answer left on the server; every run is given another name."

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


class OpenAIResponses:
    """Answers are one ``response``, or its events; the last event repeats the whole."""

    name = "openai-responses"
    kind = StepKind.LLM_CALL
    volatile = (
        Volatile("previous_response_id", _STATE, linked=True),
        Volatile("conversation", _STATE, linked=True),
        Volatile("conversation.id", _STATE, linked=True),
        Volatile(
            "input[*].id", "Names an item of an earlier answer, or one that the framework made.", linked=True
        ),
        Volatile("input[*].call_id", "Ties a tool's result to its call.", linked=True),
        Volatile("input[*].approval_request_id", "Ties an approval to its request.", linked=True),
        *NOISE,
    )

    def claims(self, head: RequestHead) -> bool:
        return head.method == "POST" and head.path.rstrip("/").endswith("/responses")

    def asked(self, request: HttpRequest) -> Asked:
        document, note = asked_for(request)
        given = _items(document)
        turns = tuple(turns_of(item for item in given if not _brings_tools(item)))
        leading = tuple(takewhile(lambda turn: turn.role is Role.SYSTEM, turns))
        return Asked(
            model=words_at(document, "model") or None,
            system=(
                *content_of(at(document, "instructions")),
                *(part for turn in leading for part in turn.parts),
            ),
            messages=turns[len(leading) :],
            tools=tuple(_tool(tool) for tool in _tools(document, *filter(_brings_tools, given))),
            parameters=parameters_of(document, _READ_FIELDS),
            streamed=at(document, "stream") is True,
            continues=words_at(document, "previous_response_id") or None,
            history=words_at(document, "conversation") or words_at(document, "conversation", "id") or None,
            note=note,
        )

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        answer = answer_of(response)
        draft = Draft()
        output = Output()
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


def _take_whole(draft: Draft, whole: Any) -> None:
    draft.named(whole)
    draft.count(at(whole, "usage"))
    draft.tier = text_at(whole, "service_tier") or draft.tier
    status = text_at(whole, "status")
    reason = text_at(whole, "incomplete_details", "reason")
    if status in _ENDS:
        draft.stopped(f"{status}: {reason}" if reason else status)


@dataclass(frozen=True, slots=True)
class Row:
    """Where the deltas of a kind of event belong: in which item, which of its parts, and at which path there.

    Steps that end in ``_index`` are told by the event.
    """

    item: str
    path: tuple[str, ...]
    part: str = ""
    told: str = "text"
    """The field of the closing event that repeats all deltas."""


_ROWS = {
    "response.output_text": Row("message", ("content", "content_index", "text"), "output_text"),
    "response.refusal": Row("message", ("content", "content_index", "refusal"), "refusal", "refusal"),
    "response.audio": Row("message", ("content", "content_index", "data"), "output_audio"),
    "response.audio.transcript": Row("message", ("content", "content_index", "transcript"), "output_audio"),
    "response.reasoning_text": Row("reasoning", ("content", "content_index", "text"), "reasoning_text"),
    "response.reasoning_summary_text": Row("reasoning", ("summary", "summary_index", "text"), "summary_text"),
    "response.function_call_arguments": Row("function_call", ("arguments",), told="arguments"),
    "response.mcp_call_arguments": Row("mcp_call", ("arguments",), told="arguments"),
    "response.custom_tool_call_input": Row("custom_tool_call", ("input",), told="input"),
    "response.code_interpreter_call_code": Row("code_interpreter_call", ("code",), told="code"),
    "response.shell_call_command": Row("shell_call", ("action", "commands", "command_index"), told="command"),
    "response.shell_call_output_content": Row("shell_call_output", ("output", "command_index")),
}


@dataclass(slots=True)
class Output:
    """The items of an answer while its events go by.

    The last event repeats them all, and what is told whole wins over pieces. Where the stream was cut before, or
    the last event leaves them out, as the one behind ChatGPT's sign-in does, the items are put together here.
    """

    whole: list[Any] = field(default_factory=list)
    begun: dict[int | None, Any] = field(default_factory=dict)
    pieces: dict[int | None, Pieces] = field(default_factory=dict)

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

    def _take_piece(self, row: Row, place: int | None, stage: str, event: Any) -> None:
        pieces = self._at(place, row.item)
        path: Path = tuple(
            (count_at(event, step) or 0) if step.endswith("_index") else step for step in row.path
        )
        if row.part:
            pieces.put((*path[:-1], "type"), row.part)
        delta = at(event, "delta")
        for name, piece in delta.items() if isinstance(delta, dict) else ((None, delta),):
            if isinstance(piece, str):
                pieces.append(path if name is None else (*path, name), piece)
        if stage == "done" and (told := text_at(event, row.told)):
            pieces.put(path, told)

    def _at(self, place: int | None, kind: str) -> Pieces:
        self.begun.setdefault(place, {"type": kind})
        return self.pieces.setdefault(place, Pieces())

    def items(self) -> list[Any]:
        """The items, whole or as far as they came."""
        untouched = Pieces()
        return self.whole or [
            self.pieces.get(place, untouched).into(item) for place, item in self.begun.items()
        ]
