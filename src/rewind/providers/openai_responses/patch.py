"""OpenAI Responses: items instead of messages, the system prompt in ``instructions`` or in the first items."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from rewind.errors import CannotEdit
from rewind.model.http import RequestHead
from rewind.model.message import Message, Role
from rewind.providers.api import Document, FieldPath, NewResult, Patcher
from rewind.providers.openai_responses.read import speaker, turns_of
from rewind.providers.openai_responses.write import items_for
from rewind.providers.shared.call_ids import tied
from rewind.providers.shared.json_fields import at, text_at, without
from rewind.providers.shared.losses import LossLog
from rewind.providers.shared.patch import TextBlocks, appended, as_object, is_text_of, listed


def _made(text: str, old: Any) -> Any:
    # What a text may have besides speaks of the old words.
    emptied: dict[str, Any] = {name: [] for name in ("annotations", "logprobs") if at(old, name) is not None}
    return {"type": text_at(old, "type") or "input_text", "text": text, **emptied}


_WORDS = TextBlocks(is_text_of("input_text", "output_text", "text"), _made)
_TEXTUAL = (
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
    "apply_patch_call_output",
)


class ResponsesPatcher:
    """Everything is an item: messages, calls, results."""

    name = "openai-responses"
    model_in_body = True

    def system(self, document: Document) -> Any:
        instructions, leading = document.get("instructions"), self._leading(document)
        return {"instructions": instructions, "input": leading} if instructions or leading else None

    def with_system(self, document: Document, raw: Any) -> Document:
        rest = self.turns(document)[len(self._leading(document)) :]
        instructions = at(raw, "instructions")
        told = (
            {**document, "instructions": instructions} if instructions else without(document, "instructions")
        )
        leading = at(raw, "input") or []
        return self.with_turns(told, [*leading, *rest]) if leading or self._leading(document) else told

    def with_system_text(self, document: Document, text: str) -> Document:
        leading = self._leading(document)
        if not text:
            return self.with_system(document, None)
        if leading and not document.get("instructions"):
            return self.with_system(document, {"input": [self.with_words(leading[0], text)]})
        return self.with_system(document, {"instructions": text})

    def with_more_system(self, document: Document, text: str) -> Document:
        leading, old = self._leading(document), document.get("instructions")
        if not leading:
            return {**document, "instructions": appended(old if isinstance(old, str) else "", text)}
        content = leading[-1].get("content")
        blocks = content if isinstance(content, list) else [{"type": "input_text", "text": content or ""}]
        extended = _WORDS.extended(blocks, text)
        last = {**leading[-1], "content": extended if isinstance(content, list) else extended[0]["text"]}
        return self.with_system(document, {"instructions": old, "input": [*leading[:-1], last]})

    def turns(self, document: Document) -> list[Any]:
        given = document.get("input")
        return [{"role": "user", "content": given}] if isinstance(given, str) else listed(document, "input")

    def with_turns(self, document: Document, turns: list[Any]) -> Document:
        match document.get("input"), turns:
            case str(), [{"role": "user", "content": str(text), **more}] if not more:
                return {**document, "input": text}
            case _:
                return {**document, "input": turns}

    def message(self, turn: Any) -> Message:
        return next(iter(turns_of([turn])))

    def with_words(self, turn: Any, text: str) -> Any:
        fields = as_object(turn)
        kind = text_at(fields, "type")
        if self.results(turn):
            return self.with_results(turn, [NewResult(text=text)])
        if kind not in ("message", "") or "content" not in fields:
            raise CannotEdit(f"The item is a {kind or 'reference'}, which has no text.")
        content = fields["content"]
        words = content if not isinstance(content, list) else _WORDS.replaced(content, text)
        return {**fields, "content": words if isinstance(content, list) else text}

    def results(self, turn: Any) -> list[Any]:
        read = self.message(turn)
        is_result = read.role is Role.TOOL and text_at(turn, "type").endswith("_output")
        return [at(turn, "output")] if is_result else []

    def with_results(self, turn: Any, results: Sequence[NewResult | None]) -> Any:
        for one in results:
            if one is None:
                continue
            if one.raw is None and text_at(turn, "type") not in _TEXTUAL:
                raise CannotEdit(f"What a {text_at(turn, 'type')} holds is no text.")
            old = at(turn, "output")
            text: Any = [_made(one.text, None)] if isinstance(old, list) and old else one.text
            turn = {**without(turn, "error"), "output": text if one.raw is None else one.raw}
        return turn

    def written(self, message: Message) -> list[Any]:
        return list(items_for(tied([message]), LossLog()))

    def parameter(self, document: Document, path: FieldPath) -> FieldPath:
        return path

    def _leading(self, document: Document) -> list[dict[str, Any]]:
        return list(takewhile(_is_system, self.turns(document)))


def _is_system(turn: Any) -> bool:
    return isinstance(turn, dict) and speaker(turn) is Role.SYSTEM


_PATCHER = ResponsesPatcher()


def patcher_for(_head: RequestHead, _document: Document) -> Patcher:
    return _PATCHER
