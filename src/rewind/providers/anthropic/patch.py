"""Changes requests of Anthropic Messages, also on Vertex AI."""

from collections.abc import Sequence
from typing import Any

from rewind.model.http import RequestHead
from rewind.model.message import Message
from rewind.providers.anthropic.read import asked_in
from rewind.providers.anthropic.write import messages_for
from rewind.providers.api import Document, FieldPath, LossLog, NewResult, Patcher
from rewind.providers.shared.json_fields import at, items_at, text_at, without
from rewind.providers.shared.parameters import FLAG, INTEGER, LIST, NUMBER, OBJECT, TEXT, ParameterTable, named
from rewind.providers.shared.patch import TextBlocks, appended, as_object, is_text_of, listed
from rewind.providers.shared.write import with_matched_ids

PARAMETERS: ParameterTable = {
    **named("temperature top_p", NUMBER.between(0, 1)),
    **named("max_tokens top_k", INTEGER.between(0)),
    **named("stream", FLAG),
    **named("anthropic_version fallback_credit_token inference_geo model service_tier speed", TEXT),
    **named("user_profile_id workspace_id", TEXT),
    **named("anthropic_beta betas fallbacks mcp_servers messages stop_sequences tools", LIST),
    **named("cache_control compaction context_management diagnostics metadata", OBJECT),
    **named("output_config output_format thinking thread tool_choice", OBJECT),
    "container": TEXT | OBJECT,
    "system": TEXT | LIST,
}


def _made(text: str, old: Any) -> Any:
    # What else a block may have (citations) speaks of the old words; the mark of a cache does not.
    kept = {"cache_control": old["cache_control"]} if at(old, "cache_control") is not None else {}
    return {"type": "text", "text": text, **kept}


_WORDS = TextBlocks(is_text_of("text"), _made)
_THINKING = ("thinking", "redacted_thinking")


class AnthropicPatcher:
    """The system prompt stands beside the messages; results of tools are blocks of the user's."""

    name = "anthropic"
    model_in_body = True

    def system(self, document: Document) -> Any:
        return document.get("system") or None

    def with_system(self, document: Document, raw: Any) -> Document:
        return {**document, "system": raw} if raw else without(document, "system")

    def with_system_text(self, document: Document, text: str) -> Document:
        old = document.get("system")
        blocks = isinstance(old, list) and bool(text)
        return self.with_system(document, _WORDS.replaced(old, text) if old and blocks else text)

    def with_more_system(self, document: Document, text: str) -> Document:
        old = document.get("system")
        if isinstance(old, list):
            return self.with_system(document, _WORDS.extended(old, text))
        return self.with_system(document, appended(old if isinstance(old, str) else "", text))

    def turns(self, document: Document) -> list[Any]:
        return listed(document, "messages")

    def with_turns(self, document: Document, turns: list[Any]) -> Document:
        return {**document, "messages": turns}

    def message(self, turn: Any) -> Message:
        return asked_in({"messages": [turn]}).messages[0]

    def with_words(self, turn: Any, text: str) -> Any:
        fields = as_object(turn)
        content = fields.get("content")
        if not isinstance(content, list):
            return {**fields, "content": text}
        # Results come first, and so does what the model thought.
        first = (n for n, block in enumerate(content) if not _comes_first(block))
        return {**fields, "content": _WORDS.replaced(content, text, at=next(first, len(content)))}

    def results(self, turn: Any) -> list[Any]:
        return [at(block, "content") for block in items_at(turn, "content") if _is_result(block)]

    def with_results(self, turn: Any, results: Sequence[NewResult | None]) -> Any:
        waiting = iter(results)
        content = [
            _with_result(block, one) if _is_result(block) and (one := next(waiting, None)) else block
            for block in items_at(turn, "content")
        ]
        return {**turn, "content": content}

    def written(self, message: Message) -> list[Any]:
        return list(messages_for(with_matched_ids([message]), LossLog()))

    def parameter(self, document: Document, path: FieldPath) -> FieldPath:
        return path


def _is_result(block: Any) -> bool:
    return text_at(block, "type") == "tool_result"


def _comes_first(block: Any) -> bool:
    return _is_result(block) or text_at(block, "type") in _THINKING


def _with_result(block: dict[str, Any], given: NewResult) -> dict[str, Any]:
    old = block.get("content")
    text: Any = [{"type": "text", "text": given.text}] if isinstance(old, list) and old else given.text
    changed = {**without(block, "is_error"), "content": text if given.raw is None else given.raw}
    return {**changed, "is_error": True} if given.failed else changed


_PATCHER = AnthropicPatcher()


def patcher_for(_head: RequestHead, _document: Document) -> Patcher:
    return _PATCHER
