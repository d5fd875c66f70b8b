"""What the fields of a line mean: agents call the same thing by many names, and leave out what they do not need."""

from typing import Any

from rewind.formats.trace.api import AskedTool, ToolOutput, json_or_text, objects, text_at, text_of
from rewind.formats.trace.apis import recognised
from rewind.formats.trace.lines import TraceLine

_ANSWERS = (
    *("response", "resp", "completion", "message", "msg", "answer", "content", "output", "result", "text"),
    *("reply", "parts"),
)
_WHOLE = ("choices", "candidates")
"""Fields that only an answer has, where it is handed over field by field."""
_REQUESTS = ("request", "req", "kwargs", "params", "payload")
_TURNS = ("messages", "contents", "input", "prompt")
_SYSTEM = ("system", "system_prompt", "instructions", "system_instruction", "systemInstruction")
_IDS = ("id", "tool_call_id", "tool_use_id", "call_id")
_NAMES = ("name", "tool", "tool_name", "function")
_ARGUMENTS = ("args", "arguments", "input", "kwargs", "params", "parameters")
_OUTPUTS = ("output", "result", "content", "text", "response", "value")
_FAILURES = ("error", "err", "exception")
_USER_KINDS = ("user", "user_message", "prompt", "input", "human")
_WORDS = ("content", "text", "message", "prompt", "input", "question", "query", "task")
"""Where a line of the user's has its words."""
_PARAMETERS = frozenset(
    {
        *("temperature", "top_p", "top_k", "max_tokens", "max_output_tokens", "max_completion_tokens", "seed"),
        *("stop", "stop_sequences", "tool_choice", "parallel_tool_calls", "response_format", "text_format"),
        *("reasoning", "reasoning_effort", "thinking", "verbosity", "frequency_penalty", "presence_penalty"),
        *("logit_bias", "config", "generation_config", "generationConfig", "previous_response_id", "store"),
        *("service_tier", "tool_config", "safety_settings", "response_schema", "response_mime_type"),
    }
)
_READ = frozenset({"model", "tools", *_TURNS, *_SYSTEM})
_OWN = _READ | _PARAMETERS
_INPUT = ("input_tokens", "prompt_tokens", "tokens_in", "promptTokenCount", "prompt_token_count", "input")
_OUTPUT = (
    *("output_tokens", "completion_tokens", "tokens_out", "candidatesTokenCount", "candidates_token_count"),
    "output",
)
_DURATIONS = {"ms": 1, "duration_ms": 1, "latency_ms": 1, "elapsed_ms": 1, "duration_s": 1000}
"""Names, and how many milliseconds one is."""
_MOST = 2**53


def request_in(fields: dict[str, Any]) -> dict[str, Any]:
    """What a line says about a request: its own fields, and those of the whole request if it has one."""
    whole: dict[str, Any] = {}
    for name in _REQUESTS:
        if isinstance(request := fields.get(name), dict):
            whole |= request
    own = {name: value for name, value in fields.items() if value is not None and name in _OWN}
    return {name: value for name, value in {**whole, **own}.items() if value is not None}


def parameters_in(request: dict[str, Any]) -> dict[str, Any]:
    """All that was set besides what is read for itself."""
    return {name: value for name, value in request.items() if name not in _READ}


def settings_in(request: dict[str, Any]) -> dict[str, Any]:
    """All but the turns: it holds for later calls, too."""
    return {name: value for name, value in request.items() if name not in _TURNS}


def turns_in(request: dict[str, Any]) -> list[Any] | str | None:
    """What the model was given, or the words that were added; ``None`` where the line does not say."""
    for name in _TURNS:
        value = request.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value and all(isinstance(turn, dict | str) for turn in value):
            return value
        if isinstance(value, dict):
            return [value]
    return None


def system_in(request: dict[str, Any]) -> Any:
    values = (request.get(name) for name in _SYSTEM)
    return next((value for value in values if isinstance(value, str | list | dict) and value), None)


def answer_in(fields: dict[str, Any]) -> Any:
    """What the model answered: a value that some API recognises before a value that may be anything."""
    if any(name in fields for name in _WHOLE):
        return fields
    values = [fields[name] for name in _ANSWERS if fields.get(name) is not None]
    known = next((value for value in values if recognised(value) is not None), None)
    if known is not None:
        return known
    calls = objects(fields.get("tool_calls"))
    if calls and all(isinstance(call.get("function"), dict) for call in calls):
        content = fields.get("content", fields.get("text"))
        return {"role": "assistant", "content": content, "tool_calls": fields["tool_calls"]}
    return values[0] if values else None


def tool_use_in(fields: dict[str, Any]) -> AskedTool:
    """The tool that a line calls, and with what."""
    return AskedTool(_text(fields, _IDS), _text(fields, _NAMES), json_or_text(_first(fields, _ARGUMENTS)))


def tool_result_in(fields: dict[str, Any]) -> ToolOutput:
    """What a line says that a tool gave."""
    error, output = _first_said(fields, _FAILURES), _first(fields, _OUTPUTS)
    failed = fields.get("is_error") is True or fields.get("failed") is True or fields.get("ok") is False
    return ToolOutput(
        id=_text(fields, _IDS),
        name=_text(fields, _NAMES),
        output=output if output is not None else "" if error is None or error is True else error,
        failed=failed or error is not None,
    )


def error_in(fields: dict[str, Any]) -> str:
    """What went wrong, in words; empty where nothing did."""
    return text_of(_first_said(fields, (*_FAILURES, "message", "text")) or "")


def final_text_in(fields: dict[str, Any]) -> str:
    """What a run ended with."""
    return text_of(_first_said(fields, ("text", "output", "content", "answer", "result")) or "")


def user_words_in(line: TraceLine) -> list[str]:
    """What the user says in a line of his own."""
    words = _first_said(line.fields, _WORDS) if line.kind in _USER_KINDS else None
    return [words] if isinstance(words, str) else []


def usage_in(fields: dict[str, Any]) -> dict[str, Any]:
    """Tokens that are told beside the answer, by our names where they are plain counts."""
    usage = _first_said(fields, ("usage", "usage_metadata", "tokens"))
    if isinstance(usage, dict):
        return usage
    return {name: fields[name] for name in (*_INPUT[:3], *_OUTPUT[:3]) if _is_count(fields.get(name))}


def counts_in(usage: dict[str, Any]) -> dict[str, int]:
    """``input`` and ``output`` of a usage, whatever they are called there."""
    counts = {}
    for kind, names in (("input", _INPUT), ("output", _OUTPUT)):
        count = next((usage[name] for name in names if _is_count(usage.get(name))), None)
        if count is not None:
            counts[kind] = count
    return counts


def duration_in(fields: dict[str, Any]) -> float | None:
    """Milliseconds that it took, where the line says so."""
    for name, factor in _DURATIONS.items():
        value = fields.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value * factor <= 1e10:
            return float(value * factor)
    return None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _first_said(fields: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The first value that is neither missing nor empty."""
    return next((fields[name] for name in names if fields.get(name)), None)


def _text(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, dict) and text_at(value, "name"):
            return text_at(value, "name")
    return ""
