"""Anthropic Messages: content in blocks, results in a user's turn."""

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
    text_of,
    told,
)

_BLOCKS = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use"})


class Anthropic:
    """A ``message`` of blocks."""

    name = "anthropic"
    together = "content"
    system_apart = True

    def said(self, value: Any) -> Said | None:
        blocks = (
            value if isinstance(value, list) else value.get("content") if isinstance(value, dict) else None
        )
        inner = objects(blocks)
        if not inner or not all(map(_is_block, inner)):
            return None
        if isinstance(value, dict) and value.get("role", "assistant") != "assistant":
            return None
        whole = value if isinstance(value, dict) else {"content": value}
        return _of({**whole, "type": "message", "role": "assistant"}, inner)

    def spoken(self, text: str, uses: tuple[Use, ...]) -> Said:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        blocks += [
            {"type": "tool_use", "id": use.id, "name": use.name, "input": use.arguments or {}} for use in uses
        ]
        return _of({"type": "message", "role": "assistant", "content": blocks}, blocks)

    def user(self, content: Any) -> Turn:
        return {"role": "user", "content": content}

    def uses(self, turn: Turn) -> list[Use]:
        return [
            Use(text_at(block, "id"), text_at(block, "name"), block.get("input"))
            for block in objects(turn.get("content"))
            if block.get("type") == "tool_use"
        ]

    def brought(self, result: Result) -> Turn:
        output = result.output
        as_is = isinstance(output, list) and output and all(text_at(one, "type") for one in objects(output))
        block = {
            "type": "tool_result",
            "tool_use_id": result.id,
            "content": output if as_is else text_of(output),
            **({"is_error": True} if result.failed else {}),
        }
        return {"role": "user", "content": [block]}

    def form(self, asking: Asking) -> Form:
        return Form(
            target="/v1/messages",
            before=only(("model", asking.model), ("system", asking.system)),
            turns_at="messages",
            first=(),
            after={**only(("tools", asking.tools)), **asking.parameters},
        )

    def with_usage(self, document: dict[str, Any], usage: dict[str, Any], counts: Counts) -> dict[str, Any]:
        told = (
            usage if "input_tokens" in usage else {f"{kind}_tokens": count for kind, count in counts.items()}
        )
        return {**document, "usage": told}


def _is_block(value: dict[str, Any]) -> bool:
    kind = text_at(value, "type")
    return kind in _BLOCKS or kind.endswith("_tool_result")


def _of(document: dict[str, Any], blocks: list[dict[str, Any]]) -> Said:
    content = [told(block) for block in blocks if block.get("type") != "text" or block.get("text")]
    turns = ({"role": "assistant", "content": content},) if content else ()
    return Said(turns=turns, document=document)
