"""Google Gemini: contents with parts, in camelCase on the wire and in snake_case in Google's SDK."""

import re
from typing import Any

from rewind.formats.trace.apis.base import (
    Asking,
    Counts,
    Form,
    Result,
    Said,
    Turn,
    Use,
    objects,
    only,
    text_at,
    told,
)

_PARTS = frozenset(
    {
        *(
            "text",
            "function_call",
            "function_response",
            "inline_data",
            "file_data",
            "thought_signature",
            "thought",
        ),
        *("executable_code", "code_execution_result", "tool_call", "tool_response"),
    }
)
_BESIDE = (
    "contents",
    "tools",
    "systemInstruction",
    "safetySettings",
    "toolConfig",
    "cachedContent",
    "labels",
)
"""What a request names beside its generation settings."""


class Gemini:
    """``candidates`` with the role ``model``; results are ``functionResponse`` parts."""

    name = "gemini"
    together = "parts"
    system_apart = True

    def said(self, value: Any) -> Said | None:
        if isinstance(value, list):
            return self.said({"role": "model", "parts": value}) if value and _are_parts(value) else None
        if not isinstance(value, dict):
            return None
        if candidates := objects(value.get("candidates")):
            document = {_camel(name): _outside(name, one) for name, one in told(value).items()}
            document["candidates"] = [
                {**_renamed(one), "content": _content(one.get("content"))} for one in candidates
            ]
            content = document["candidates"][0]["content"]
            return Said(turns=(content,) if content["parts"] else (), document=document)
        if value.get("role", "model") == "model" and _are_parts(value.get("parts")):
            content = _content(value)
            return Said(turns=(content,), document={"candidates": [{"content": content}]})
        return None

    def spoken(self, text: str, uses: tuple[Use, ...]) -> Said:
        parts: list[dict[str, Any]] = [{"text": text}] if text else []
        for use in uses:
            named = only(("id", use.id))
            parts.append({"functionCall": {**named, "name": use.name, "args": use.arguments or {}}})
        content = {"role": "model", "parts": parts}
        return Said(turns=(content,) if parts else (), document={"candidates": [{"content": content}]})

    def user(self, content: Any) -> Turn:
        if isinstance(content, list):
            return {
                "role": "user",
                "parts": [{"text": one} if isinstance(one, str) else one for one in content],
            }
        return {"role": "user", "parts": [{"text": content} if isinstance(content, str) else content]}

    def uses(self, turn: Turn) -> list[Use]:
        calls = (_either(part, "functionCall") for part in objects(turn.get("parts")))
        return [
            Use(text_at(call, "id"), text_at(call, "name"), call.get("args") or {})
            for call in calls
            if isinstance(call, dict)
        ]

    def brought(self, result: Result) -> Turn:
        if isinstance(result.output, dict):
            response = result.output
        else:
            response = {"error" if result.failed else "result": result.output}
        given = {**only(("id", result.id)), "name": result.name, "response": response}
        return {"role": "user", "parts": [{"functionResponse": given}]}

    def form(self, asking: Asking) -> Form:
        inner = _renamed(asking.parameters)
        for name in ("generationConfig", "config"):
            inner = {**_renamed(inner.pop(name, None)), **inner}
        own = inner.pop("systemInstruction", None), inner.pop("tools", None)
        system, tools = asking.system or own[0], asking.tools or own[1]
        beside = {name: inner.pop(name) for name in _BESIDE if name in inner}
        instruction = {"parts": [{"text": system}]} if isinstance(system, str) else system
        model = re.sub(r"[^\w.@-]", "_", asking.model.rpartition("/")[2]) or "unknown"
        return Form(
            target=f"/v1beta/models/{model}:generateContent",
            before=only(("systemInstruction", instruction)),
            turns_at="contents",
            first=(),
            after={**only(("tools", tools), ("generationConfig", inner)), **beside},
        )

    def with_usage(self, document: dict[str, Any], usage: dict[str, Any], counts: Counts) -> dict[str, Any]:
        names = {"input": "promptTokenCount", "output": "candidatesTokenCount"}
        own = _camelised(usage)
        told = own if "promptTokenCount" in own else {names[kind]: count for kind, count in counts.items()}
        return {**document, "usageMetadata": told}


def _are_parts(value: Any) -> bool:
    parts = objects(value)
    return bool(parts) and all("type" not in part and _PARTS & set(map(_snake, part)) for part in parts)


def _content(value: Any) -> Turn:
    """The model's turn as the API takes it back."""
    parts = [_part(part) for part in objects(value.get("parts"))] if isinstance(value, dict) else []
    return {"role": "model", "parts": [part for part in parts if part and part != {"text": ""}]}


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """One part, its names as on the wire; what a function is called with, or gave, stays as it is."""
    found: dict[str, Any] = {}
    for name, value in told(part).items():
        inner = told(value) if isinstance(value, dict) else value
        if name in ("thought_signature", "thoughtSignature") and isinstance(value, str):
            inner = value.removeprefix("base64:")  # bytes, as the recorder writes them
        found[_camel(name)] = inner
    return found


def _outside(name: str, value: Any) -> Any:
    return _camelised(value) if name in ("usage_metadata", "prompt_feedback") else value


def _either(part: dict[str, Any], name: str) -> Any:
    return part.get(name, part.get(_snake(name)))


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name)


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _renamed(value: Any) -> dict[str, Any]:
    """The fields of an object under their names on the wire; what is in them stays as it is."""
    return {_camel(name): one for name, one in told(value).items()} if isinstance(value, dict) else {}


def _camelised(value: Any) -> Any:
    """Names as on the wire, what is empty left out."""
    if isinstance(value, dict):
        return {_camel(name): _camelised(one) for name, one in value.items() if one is not None}
    return [_camelised(one) for one in value] if isinstance(value, list) else value
