"""Changes requests of OpenAI Responses: items instead of messages, the system prompt in ``instructions`` or items."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from rewind.dataclass import dataclass
from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Message, Role
from rewind.providers.api import Document, FieldPath, LossLog, NewResult, Patcher
from rewind.providers.openai_responses.read import OpenAIResponsesReader, speaker, turns_of
from rewind.providers.openai_responses.write import answer_items, items_for
from rewind.providers.shared.answer_stream import read_answer
from rewind.providers.shared.json_fields import at, items_at, text_at, without
from rewind.providers.shared.parameters import FLAG, INTEGER, LIST, NUMBER, OBJECT, TEXT, ParameterTable, named
from rewind.providers.shared.patch import TextBlocks, appended, as_object, is_text_of, listed
from rewind.providers.shared.request_body import body_of
from rewind.providers.shared.write import with_matched_ids

PARAMETERS: ParameterTable = {
    **named("temperature", NUMBER.between(0, 2)),
    **named("top_p", NUMBER.between(0, 1)),
    **named("max_output_tokens max_tool_calls", INTEGER.between(1)),
    **named("top_logprobs", INTEGER.between(0, 20)),
    **named("background parallel_tool_calls store stream", FLAG),
    **named("instructions model previous_response_id prompt_cache_key prompt_cache_retention", TEXT),
    **named("safety_identifier service_tier truncation user", TEXT),
    **named("access_programs context_management include tools", LIST),
    **named("image metadata moderation prompt prompt_cache_options reasoning stream_options text", OBJECT),
    "conversation": TEXT | OBJECT,
    "input": TEXT | LIST,
    "tool_choice": TEXT | OBJECT,
}


def _made(text: str, old: Any) -> Any:
    # What a text may have besides speaks of the old words.
    emptied: dict[str, Any] = {name: [] for name in ("annotations", "logprobs") if at(old, name) is not None}
    return {"type": text_at(old, "type") or "input_text", "text": text, **emptied}


_WORDS = TextBlocks(is_text_of("input_text", "output_text", "text"), _made)
_TEXTUAL = ("function_call_output", "custom_tool_call_output", "local_shell_call_output", "apply_patch_call_output")


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
        told = {**document, "instructions": instructions} if instructions else without(document, "instructions")
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
        return turns_of([turn])[0]

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
                raise CannotEdit(f"The result in a {text_at(turn, 'type')} is not a text.")
            old = at(turn, "output")
            text: Any = [_made(one.text, None)] if isinstance(old, list) and old else one.text
            turn = {**without(turn, "error"), "output": text if one.raw is None else one.raw}
        return turn

    def written(self, message: Message) -> list[Any]:
        return list(items_for(with_matched_ids([message]), LossLog()))

    def parameter(self, document: Document, path: FieldPath) -> FieldPath:
        return path

    def _leading(self, document: Document) -> list[dict[str, Any]]:
        return list(takewhile(_is_system, self.turns(document)))


def _is_system(turn: Any) -> bool:
    return isinstance(turn, dict) and speaker(turn) is Role.SYSTEM


_PATCHER = ResponsesPatcher()


def patcher_for(_head: RequestHead, _document: Document) -> Patcher:
    return _PATCHER


# ── made-up answers, where the provider keeps the history ─────────────────────────────────────────────────────
# An agent goes on by naming the last answer (``previous_response_id``). One that was made up has a name that the
# provider does not know, and neither does it know what had been asked there. So a call that goes on from such an answer
# is made to go on from the last one that the provider did give, with all that was said since.

_BEFORE = "previous_response_id"
_PATCHER = ResponsesPatcher()
_READER = OpenAIResponsesReader()


@dataclass(frozen=True, slots=True)
class _MadeUp:
    before: str | None
    """The answer that the call had gone on from."""
    said: tuple[Any, ...]
    """What was asked and answered since."""
    items: dict[str, Any]
    """The answer's items, by the names under which an agent may refer to them."""


class UnissuedResponses:
    """The answers of one run that the provider does not know."""

    def __init__(self) -> None:
        self._known: dict[str, _MadeUp] = {}

    def add(self, request: HttpRequest, response: HttpResponse) -> None:
        """An answer that was made up for this request."""
        if (document := _read(request)) is None:
            return
        documents = read_answer(response).documents
        if name := _READER.answered(request, response).id:
            said = (*_PATCHER.turns(document), *answer_items(documents, LossLog()))
            items = dict(_items(documents))
            self._known[name] = _MadeUp(text_at(document, _BEFORE) or None, said, items)

    def apply(self, request: HttpRequest) -> HttpRequest:
        """A later request as the provider can follow it; the very same one where nothing is to be done."""
        if not self._known or (document := _read(request)) is None:
            return request
        turns = [self._meant(turn) for turn in _PATCHER.turns(document)]
        before = text_at(document, _BEFORE)
        named = before
        left = dict(self._known)
        while (known := left.pop(before, None)) is not None:
            turns = [*known.said, *turns]
            before = known.before or ""
        if before != named:
            document = {**document, _BEFORE: before} if before else without(document, _BEFORE)
        if turns != _PATCHER.turns(document):
            document = _PATCHER.with_turns(document, turns)
        return body_of(request).rewritten(document)

    def _meant(self, turn: Any) -> Any:
        """The item itself, where the agent only refers to one."""
        if text_at(turn, "type") != "item_reference":
            return turn
        name = text_at(turn, "id")
        return next((known.items[name] for known in self._known.values() if name in known.items), turn)


def _read(request: HttpRequest) -> Document | None:
    """The request of an API in which the provider may keep the history."""
    try:
        document = body_of(request).document
        _PATCHER.turns(document)
    except CannotEdit:
        return None
    return document


def _items(documents: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    """The answer's items with their names, as a request takes them."""
    for document in documents:
        for item in items_at(at(document, "response") or document, "output"):
            if name := text_at(item, "id"):
                yield name, without(item, "id", "status") if "call_id" in item else without(item, "id")
