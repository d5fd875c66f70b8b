"""OpenAI Responses: items instead of messages."""

from typing import Any

from rewind.formats.trace.apis.base import (
    Asking,
    Counts,
    Form,
    Result,
    Said,
    Turn,
    Use,
    json_or_text,
    objects,
    only,
    text_at,
    text_of,
    told,
)

_KINDS = ("reasoning", "_call", "_call_output", "mcp_list_tools", "mcp_approval_request")
"""How the types of its items end."""
_LOST = "thinking left out: only the provider has it"


class Responses:
    """A ``response`` with its ``output``; results are ``function_call_output`` items."""

    name = "responses"
    together = None
    system_apart = False

    def said(self, value: Any) -> Said | None:
        if isinstance(value, list):
            items = objects(value)
            return (
                _of({"object": "response", "output": items}, items)
                if items and all(map(_is_item, items))
                else None
            )
        if not isinstance(value, dict):
            return None
        items = objects(value.get("output"))
        if value.get("object") == "response" or (items and all(map(_is_item, items))):
            return _of(value, items)
        return self.said([value]) if _is_item(value) else None

    def spoken(self, text: str, uses: tuple[Use, ...]) -> Said:
        content = {"type": "output_text", "text": text, "annotations": []}
        items: list[Turn] = [{"type": "message", "role": "assistant", "content": [content]}] if text else []
        items += [
            {
                "type": "function_call",
                "call_id": use.id,
                "name": use.name,
                "arguments": text_of({} if use.arguments is None else use.arguments),
            }
            for use in uses
        ]
        return _of({"object": "response", "output": items}, items)

    def user(self, content: Any) -> Turn:
        return {"role": "user", "content": content}

    def uses(self, turn: Turn) -> list[Use]:
        kind = text_at(turn, "type")
        if kind not in ("function_call", "custom_tool_call"):
            return []
        arguments = turn.get("input") if kind == "custom_tool_call" else json_or_text(turn.get("arguments"))
        return [Use(text_at(turn, "call_id"), text_at(turn, "name"), arguments)]

    def brought(self, result: Result) -> Turn:
        return {"type": "function_call_output", "call_id": result.id, "output": result.text}

    def form(self, asking: Asking) -> Form:
        return Form(
            target="/v1/responses",
            before=only(("model", asking.model), ("instructions", asking.system)),
            turns_at="input",
            first=(),
            after={**only(("tools", asking.tools)), **asking.parameters},
        )

    def with_usage(self, document: dict[str, Any], usage: dict[str, Any], counts: Counts) -> dict[str, Any]:
        told = (
            usage if "input_tokens" in usage else {f"{kind}_tokens": count for kind, count in counts.items()}
        )
        return {**document, "usage": told}


def _is_item(value: dict[str, Any]) -> bool:
    kind = text_at(value, "type")
    if kind == "message":
        blocks = objects(value.get("content"))
        return bool(blocks) and all(text_at(one, "type") in ("output_text", "refusal") for one in blocks)
    return kind.endswith(_KINDS)


def _of(document: dict[str, Any], items: list[dict[str, Any]]) -> Said:
    """An id ties an item to what the provider keeps; a fresh call may not find it there."""
    turns: list[Turn] = []
    lost: tuple[str, ...] = ()
    for item in items:
        if text_at(item, "type") == "reasoning":
            if not text_at(item, "encrypted_content"):
                lost = (_LOST,)
                continue
            turns.append(_without(item, "status"))
        else:
            turns.append(_without(item, "id", "status") if "call_id" in item else _without(item, "id"))
    return Said(turns=tuple(turns), document=document, lost=lost)


def _without(item: dict[str, Any], *names: str) -> Turn:
    """What the item says, less these names."""
    kept = {name: value for name, value in told(item).items() if name not in names}
    for name in ("content", "summary"):
        if isinstance(kept.get(name), list):
            kept[name] = [told(block) if isinstance(block, dict) else block for block in kept[name]]
    return kept
