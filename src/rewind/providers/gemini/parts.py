"""Contents of Google Gemini as parts: the same reading for what is asked and answered."""

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from typing import Any

from rewind.model.message import Message, Other, Part, Role, Text, Thinking, ToolDefinition, ToolResult, ToolUse
from rewind.providers.shared.answer_draft import UsageTable, parameters_of
from rewind.providers.shared.json_fields import at, count_at, inline, referred, text_at, total, words_at, writable
from rewind.wire.growing_json import read_runs

_ROLES = {
    "model": Role.ASSISTANT,
    "assistant": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "function": Role.TOOL,
    "tool": Role.TOOL,
}
_RUN_BY_THE_AGENT = ("computerUse", "computer_use")
_WRAPPERS = ("result", "output", "error")
"""Fields that only wrap what a function gave back: Google asks for an object where most tools have a text."""


def field(value: Any, name: str) -> Any:
    """What is under that name; Google takes ``camelCase`` and ``snake_case`` alike."""
    found = at(value, name)
    return at(value, _snake(name)) if found is None else found


def words(value: Any, name: str) -> str:
    """The string under that name, in either spelling, fit to be written."""
    found = field(value, name)
    return writable(found) if isinstance(found, str) else ""


@cache
def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def listed(value: Any) -> list[Any]:
    """The elements of a list; Google takes a single one without brackets too."""
    if isinstance(value, list):
        return value
    return [value] if isinstance(value, dict | str) and value else []


def parts_of(content: Any) -> tuple[Part, ...]:
    """The parts of one content, or of a plain text in its place."""
    if isinstance(content, str):
        return (Text(writable(content)),) if content else ()
    return tuple(part for block in listed(field(content, "parts")) if (part := part_of(block)) is not None)


def turns_of(contents: Iterable[Any]) -> tuple[Message, ...]:
    """Contents as turns. Clients repeat a streamed answer piece by piece; joined, it equals that answer."""
    return read_runs(_role, _turns, contents)


def _turns(role: Role, run: list[Any]) -> tuple[Message, ...]:
    if role is Role.ASSISTANT:
        said = tuple(_joined(part for content in run for part in parts_of(content)))
        return (Message(role, said, entries=len(run)),)
    return tuple(Message(role, parts_of(content)) for content in run)


def _role(content: Any) -> Role:
    if told := _ROLES.get(text_at(content, "role")):
        return told
    only_results = [field(part, "functionResponse") is not None for part in listed(at(content, "parts"))]
    return Role.TOOL if only_results and all(only_results) else Role.USER


def _joined(parts: Iterable[Part]) -> Iterator[Part]:
    for kind, run in groupby(parts, key=type):
        if kind is Text:
            yield Text("".join(part.text for part in run if isinstance(part, Text)))
        elif kind is Thinking:
            yield Thinking("".join(part.text for part in run if isinstance(part, Thinking)))
        else:
            yield from run


def part_of(block: Any) -> Part | None:
    """One part; ``None`` where it holds a signature only."""
    if isinstance(text := block if isinstance(block, str) else at(block, "text"), str):
        kind = Thinking if is_thought(block) else Text
        return kind(writable(text)) if text else None
    for name, read in _READERS.items():
        if isinstance(value := field(block, name), dict):
            return read(value)
    if not isinstance(block, dict) or set(block) <= {"thoughtSignature", "thought_signature", "thought"}:
        return None
    return Other(writable(next(iter(block))), block)


def is_thought(block: Any) -> bool:
    return at(block, "thought") is True


def _media(value: Any) -> Part:
    if uri := words(value, "fileUri"):
        return referred(uri, words(value, "mimeType"))
    return inline(at(value, "data"), words(value, "mimeType"))


def _call(call: Any) -> ToolUse:
    return ToolUse(words_at(call, "id"), words_at(call, "name"), _arguments(call))


def _hosted_call(call: Any) -> ToolUse:
    return ToolUse(words_at(call, "id"), words(call, "toolType"), _arguments(call), hosted=True)


def _arguments(call: Any) -> Any:
    # A call without arguments comes without the field and is repeated with an empty one.
    arguments = at(call, "args")
    return {} if arguments is None else arguments


def _code(code: Any) -> ToolUse:
    return ToolUse(words_at(code, "id"), "code_execution", parameters_of(code, ("id",)), hosted=True)


def _code_result(result: Any) -> ToolResult:
    failed = text_at(result, "outcome") in ("OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED")
    output = words_at(result, "output")
    told = (Text(output),) if output else ()
    return ToolResult(words_at(result, "id"), told, "code_execution", failed, hosted=True)


def _result(result: Any) -> ToolResult:
    # A function may give back pictures and files beside its object.
    beside = [_media(value) for part in listed(at(result, "parts")) for value in _files_in(part)]
    parts = (*_given_back(at(result, "response")), *beside)
    return ToolResult(words_at(result, "id"), parts, words_at(result, "name"), _is_error(result))


def _hosted_result(result: Any) -> ToolResult:
    parts = _given_back(at(result, "response"))
    return ToolResult(words_at(result, "id"), parts, words(result, "toolType"), _is_error(result), hosted=True)


def _files_in(part: Any) -> Iterator[Any]:
    for name in ("inlineData", "fileData"):
        if isinstance(value := field(part, name), dict):
            yield value


def _is_error(result: Any) -> bool:
    response = at(result, "response")
    return isinstance(response, dict) and set(response) == {"error"}


def _given_back(response: Any) -> tuple[Part, ...]:
    """A function's result as a text that people can read."""
    if isinstance(response, dict) and len(response) == 1 and next(iter(response)) in _WRAPPERS:
        (response,) = response.values()
    if response is None or response == {}:
        return ()
    if isinstance(response, str):
        return (Text(writable(response)),) if response else ()
    try:
        return (Text(writable(json.dumps(response, ensure_ascii=False))),)
    except (ValueError, RecursionError):
        return (Other("response", response),)


_READERS = {
    "inlineData": _media,
    "fileData": _media,
    "functionCall": _call,
    "functionResponse": _result,
    "executableCode": _code,
    "codeExecutionResult": _code_result,
    "toolCall": _hosted_call,
    "toolResponse": _hosted_result,
}


def tools_of(tools: Any) -> Iterator[ToolDefinition]:
    """One definition for each function, and one for each tool that Google runs."""
    for tool in listed(tools):
        for name, settings in tool.items() if isinstance(tool, dict) else ():
            if name in ("functionDeclarations", "function_declarations"):
                yield from (_declared(function) for function in listed(settings))
            else:
                yield ToolDefinition(writable(name), "", settings, hosted=name not in _RUN_BY_THE_AGENT)


def _declared(function: Any) -> ToolDefinition:
    schema = at(function, "parameters") or field(function, "parametersJsonSchema")
    return ToolDefinition(words_at(function, "name"), words_at(function, "description"), schema)


# ── tokens ────────────────────────────────────────────────────────────────────────────────────────────────────

_KINDS = {"text": "TEXT", "audio": "AUDIO", "image": "IMAGE", "video": "VIDEO"}
_DETAILS = {
    "input_{}_tokens": ("promptTokensDetails", "toolUsePromptTokensDetails"),
    "input_{}_tool_tokens": ("toolUsePromptTokensDetails",),
    "cache_{}_read_tokens": ("cacheTokensDetails",),
    "output_{}_tokens": ("candidatesTokensDetails",),
}
USAGE = UsageTable(
    # What was cached is counted inside the prompt; what tools read and what was thought are counted apart.
    input=(("promptTokenCount",), ("toolUsePromptTokenCount",)),
    output=(("candidatesTokenCount",), ("thoughtsTokenCount",)),
    cache_read=(("cachedContentTokenCount",),),
    reasoning=(("thoughtsTokenCount",),),
    more={
        "input_tool_tokens": (("toolUsePromptTokenCount",),),
        **{
            unit.format(kind): tuple((place, modality) for place in places)
            for unit, places in _DETAILS.items()
            for kind, modality in _KINDS.items()
        },
    },
)


def by_modality(usage: Any) -> Any:
    """The usage with each list of details as an object, so that a path leads to every count."""
    if not isinstance(usage, dict):
        return usage
    return {name: _counts(value) if isinstance(value, list) else value for name, value in usage.items()}


def _counts(details: list[Any]) -> dict[str, int | None]:
    counts: dict[str, int | None] = {}
    for detail in details:
        # A document is read as pictures of its pages, and priced as such.
        modality = {"DOCUMENT": "IMAGE"}.get(text_at(detail, "modality"), text_at(detail, "modality"))
        counts[modality] = total(counts.get(modality), count_at(detail, "tokenCount"))
    return counts
