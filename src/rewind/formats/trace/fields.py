"""What the fields of a line mean: people call the same thing by many names, and leave out what they do not need."""

from typing import Any

from rewind.formats.trace.apis.base import Result, Use, json_or_text, objects, text_at, text_of
from rewind.formats.trace.apis.catalogue import recognised
from rewind.formats.trace.lines import Entry

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
        *(
            "temperature",
            "top_p",
            "top_k",
            "max_tokens",
            "max_output_tokens",
            "max_completion_tokens",
            "seed",
        ),
        *("stop", "stop_sequences", "tool_choice", "parallel_tool_calls", "response_format", "text_format"),
        *("reasoning", "reasoning_effort", "thinking", "verbosity", "frequency_penalty", "presence_penalty"),
        *("logit_bias", "config", "generation_config", "generationConfig", "previous_response_id", "store"),
        *("service_tier", "tool_config", "safety_settings", "response_schema", "response_mime_type"),
    }
)
_READ = frozenset({"model", "tools", *_TURNS, *_SYSTEM})
_INPUT = ("input_tokens", "prompt_tokens", "tokens_in", "promptTokenCount", "prompt_token_count", "input")
_OUTPUT = (
    "output_tokens",
    "completion_tokens",
    "tokens_out",
    "candidatesTokenCount",
    "candidates_token_count",
    "output",
)
_MOST = 2**53


def asked_in(fields: dict[str, Any]) -> dict[str, Any]:
    """What a line tells of a request: its own fields, and those of the whole request if it has one."""
    whole: dict[str, Any] = {}
    for name in _REQUESTS:
        if isinstance(found := fields.get(name), dict):
            whole = {**whole, **found}
    own = {name: fields[name] for name in (*_READ, *_PARAMETERS) if fields.get(name) is not None}
    return {name: value for name, value in {**whole, **own}.items() if value is not None}


def parameters_in(asked: dict[str, Any]) -> dict[str, Any]:
    """All that was set besides what is read for itself."""
    return {name: value for name, value in asked.items() if name not in _READ}


def turns_in(asked: dict[str, Any]) -> list[Any] | str | None:
    """What the model was given, or the words that were added; ``None`` where it is not told."""
    for name in _TURNS:
        value = asked.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value and all(isinstance(one, dict | str) for one in value):
            return value
        if isinstance(value, dict):
            return [value]
    return None


def system_in(asked: dict[str, Any]) -> Any:
    found = (asked.get(name) for name in _SYSTEM)
    return next((value for value in found if isinstance(value, str | list | dict) and value), None)


def answer_in(fields: dict[str, Any]) -> Any:
    """What the model answered: what speaks some API before what may be anything."""
    if any(name in fields for name in _WHOLE):
        return fields
    told = [fields[name] for name in _ANSWERS if fields.get(name) is not None]
    known = next((value for value in told if recognised(value) is not None), None)
    if known is not None:
        return known
    if isinstance(fields.get("tool_calls"), list) and _calls_as_the_api_has_them(fields):
        content = fields.get("content", fields.get("text"))
        return {"role": "assistant", "content": content, "tool_calls": fields["tool_calls"]}
    return told[0] if told else None


def _calls_as_the_api_has_them(fields: dict[str, Any]) -> bool:
    calls = objects(fields["tool_calls"])
    return bool(calls) and all(isinstance(call.get("function"), dict) for call in calls)


def call_in(fields: dict[str, Any]) -> Use:
    """The tool that a line calls, and with what."""
    arguments = next((fields[name] for name in _ARGUMENTS if fields.get(name) is not None), None)
    return Use(_text(fields, _IDS), _text(fields, _NAMES), json_or_text(arguments))


def result_in(fields: dict[str, Any]) -> Result:
    """What a line says that a tool gave."""
    error = next((fields[name] for name in _FAILURES if fields.get(name)), None)
    output = next((fields[name] for name in _OUTPUTS if fields.get(name) is not None), None)
    failed = fields.get("is_error") is True or fields.get("failed") is True or fields.get("ok") is False
    return Result(
        id=_text(fields, _IDS),
        name=_text(fields, _NAMES),
        output=output if output is not None else "" if error is None or error is True else error,
        failed=failed or error is not None,
    )


def error_in(fields: dict[str, Any]) -> str:
    """What went wrong, in words; empty where nothing did."""
    found = next((fields[name] for name in (*_FAILURES, "message", "text") if fields.get(name)), "")
    return text_of(found)


def said_by_user(entry: Entry) -> list[Any]:
    """What the user says in a line of his own."""
    if entry.kind not in _USER_KINDS:
        return []
    found = next((entry.fields[name] for name in _WORDS if entry.fields.get(name)), None)
    return [found] if isinstance(found, str) else []


def without_turns(asked: dict[str, Any]) -> dict[str, Any]:
    """What holds for later calls, too."""
    return {name: value for name, value in asked.items() if name not in _TURNS}


def final_text(fields: dict[str, Any]) -> str:
    """What a run ended with."""
    found = next(
        (fields[name] for name in ("text", "output", "content", "answer", "result") if fields.get(name)), ""
    )
    return text_of(found)


def usage_in(fields: dict[str, Any]) -> dict[str, Any]:
    """Tokens that are told beside the answer, by our names where they are plain counts."""
    usage = fields.get("usage") or fields.get("usage_metadata") or fields.get("tokens")
    if isinstance(usage, dict):
        return usage
    return {name: fields[name] for name in (*_INPUT[:3], *_OUTPUT[:3]) if _is_count(fields.get(name))}


def counts_in(usage: dict[str, Any]) -> dict[str, int]:
    """``input`` and ``output`` of a usage in anybody's words."""
    found = {}
    for kind, names in (("input", _INPUT), ("output", _OUTPUT)):
        count = next((usage[name] for name in names if _is_count(usage.get(name))), None)
        if count is not None:
            found[kind] = count
    return found


def duration_in(fields: dict[str, Any]) -> float | None:
    """Milliseconds that it took, where the line tells."""
    for name, factor in (
        ("ms", 1),
        ("duration_ms", 1),
        ("latency_ms", 1),
        ("elapsed_ms", 1),
        ("duration_s", 1000),
    ):
        value = fields.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value * factor <= 1e10:
            return float(value * factor)
    return None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def _text(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, dict) and text_at(value, "name"):
            return text_at(value, "name")
    return ""
