"""Items of the OpenAI Responses API as parts: the same reading for what is asked, answered and streamed."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from rewind.model.message import (
    Media,
    Message,
    Other,
    Part,
    Refusal,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from rewind.providers.shared.answer_draft import json_or_text
from rewind.providers.shared.json_fields import at, items_at, text_at, words_at, writable
from rewind.providers.shared.media import inline, referred

_FOR_THE_AGENT = frozenset(
    {
        *("function_call", "custom_tool_call", "computer_call"),
        *("local_shell_call", "shell_call", "apply_patch_call"),
    }
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


def turns_of(items: Iterable[Any]) -> Iterator[Message]:
    """Items as turns. What the model gave in a row is one turn, so it equals the answer that it repeats."""
    for role, run in groupby(items, key=speaker):
        if role is Role.ASSISTANT:
            yield Message(role, tuple(part for item in run for part in parts_of(item)))
        else:
            yield from (Message(role, parts_of(item)) for item in run)


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
