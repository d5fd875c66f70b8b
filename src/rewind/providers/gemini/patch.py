"""Changes requests of Google Gemini, at AI Studio, on Vertex AI and wrapped by Code Assist."""

import json
from collections.abc import Sequence
from typing import Any

from rewind.errors import CannotEdit
from rewind.model.http import RequestHead
from rewind.model.message import Message
from rewind.providers.api import Document, FieldPath, LossLog, NewResult, Patcher
from rewind.providers.gemini.parts import field, is_thought, turns_of
from rewind.providers.gemini.parts import listed as listed_or_alone
from rewind.providers.gemini.write import contents_for
from rewind.providers.shared.json_fields import at, without
from rewind.providers.shared.parameters import (
    ANYTHING,
    FLAG,
    INTEGER,
    LIST,
    NUMBER,
    OBJECT,
    TEXT,
    Allowed,
    ParameterTable,
    named,
)
from rewind.providers.shared.patch import ParameterPlaces, TextBlocks, appended, as_object, snake
from rewind.providers.shared.write import with_matched_ids

_SETTINGS = ParameterPlaces(
    inside="generationConfig",
    beside=frozenset(
        {
            *("contents", "tools", "toolConfig", "safetySettings", "systemInstruction", "generationConfig"),
            *("cachedContent", "labels", "model", "store", "serviceTier", "modelArmorConfig"),
        }
    ),
    two_spellings=True,
)


def _setting(names: str, allowed: Allowed) -> ParameterTable:
    return {f"generationConfig.{name}": allowed for name in names.split()}


PARAMETERS: ParameterTable = {
    **_setting("temperature", NUMBER.between(0, 2)),
    **_setting("topP", NUMBER.between(0, 1)),
    **_setting("topK frequencyPenalty presencePenalty", NUMBER),
    **_setting("candidateCount maxOutputTokens", INTEGER.between(1)),
    **_setting("logprobs seed", INTEGER),
    **_setting("audioTimestamp enableAffectiveDialog enableEnhancedCivicAnswers responseLogprobs", FLAG),
    **_setting("mediaResolution responseMimeType", TEXT),
    **_setting("responseModalities stopSequences", LIST),
    **_setting("imageConfig modelSelectionConfig routingConfig speechConfig thinkingConfig", OBJECT),
    **_setting("audioTranscriptionConfig translationConfig", OBJECT),
    **_setting("responseFormat responseJsonSchema responseSchema", ANYTHING),
    **named("generationConfig generationOutputConfig labels modelArmorConfig toolConfig", OBJECT),
    **named("cachedContent model serviceTier", TEXT),
    **named("safetySettings", LIST),
    **named("contents systemInstruction tools", ANYTHING),
    **named("automaticContinuation store", FLAG),
}
_WRAPPERS = ("result", "output")


def _is_words(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(block.get("text"), str) and not is_thought(block)


_WORDS = TextBlocks(_is_words, lambda text, _old: {"text": text})


class GeminiPatcher:
    """Google takes every name in two spellings, and a single thing without the list around it."""

    name = "gemini"
    model_in_body = False

    def system(self, document: Document) -> Any:
        return field(_inner(document), "systemInstruction") or None

    def with_system(self, document: Document, raw: Any) -> Document:
        inner = _inner(document)
        name = _named(inner, "systemInstruction")
        return _with_inner(document, {**inner, name: raw} if raw else without(inner, name))

    def with_system_text(self, document: Document, text: str) -> Document:
        old = self.system(document)
        if not text or isinstance(old, str):
            return self.with_system(document, text)
        kept = old if isinstance(old, dict) else {}
        return self.with_system(document, {**kept, "parts": [{"text": text}]})

    def with_more_system(self, document: Document, text: str) -> Document:
        old = self.system(document)
        if isinstance(old, str):
            return self.with_system(document, appended(old, text))
        kept = old if isinstance(old, dict) else {}
        return self.with_system(document, {**kept, "parts": _WORDS.extended(_blocks(kept), text)})

    def turns(self, document: Document) -> list[Any]:
        return [
            {"role": "user", "parts": [{"text": one}]} if isinstance(one, str) else one
            for one in listed_or_alone(_inner(document).get("contents"))
        ]

    def with_turns(self, document: Document, turns: list[Any]) -> Document:
        return _with_inner(document, {**_inner(document), "contents": turns})

    def message(self, turn: Any) -> Message:
        return turns_of([turn])[0]

    def with_words(self, turn: Any, text: str) -> Any:
        fields = as_object(turn)
        blocks = _blocks(fields)
        # What the model thought comes first.
        first = next((n for n, block in enumerate(blocks) if not is_thought(block)), len(blocks))
        return {**fields, "parts": _WORDS.replaced(blocks, text, at=first)}

    def results(self, turn: Any) -> list[Any]:
        found = (field(block, "functionResponse") for block in _blocks(turn))
        return [at(result, "response") for result in found if isinstance(result, dict)]

    def with_results(self, turn: Any, results: Sequence[NewResult | None]) -> Any:
        waiting = iter(results)
        blocks = [
            _with_result(block, one)
            if isinstance(field(block, "functionResponse"), dict) and (one := next(waiting, None))
            else block
            for block in _blocks(turn)
        ]
        return {**turn, "parts": blocks}

    def written(self, message: Message) -> list[Any]:
        return list(contents_for(with_matched_ids([message]), LossLog()))

    def parameter(self, document: Document, path: FieldPath) -> FieldPath:
        wrapped = isinstance(document.get("request"), dict)
        placed = _SETTINGS.place(_inner(document), path)
        return ("request", *placed) if wrapped and path[0] != "request" else placed


def _inner(document: Document) -> Document:
    """Code Assist wraps the request."""
    wrapped = document.get("request")
    return wrapped if isinstance(wrapped, dict) else document


def _with_inner(document: Document, inner: Document) -> Document:
    return {**document, "request": inner} if isinstance(document.get("request"), dict) else inner


def _named(where: Document, name: str) -> str:
    return snake(name) if snake(name) in where else name


def _blocks(content: Any) -> list[Any]:
    return [{"text": block} if isinstance(block, str) else block for block in listed_or_alone(at(content, "parts"))]


def _with_result(block: dict[str, Any], given: NewResult) -> dict[str, Any]:
    name = _named(block, "functionResponse")
    result = block[name]
    old = at(result, "response")
    response = _response(old, given) if given.raw is None else given.raw
    if not isinstance(response, dict):
        raise CannotEdit("What a function gives back to Gemini is an object.")
    return {**block, name: {**without(result, "parts"), "response": response}}


def _response(old: Any, given: NewResult) -> Any:
    """An object as it is; anything else under the name that the old one had."""
    try:
        value = json.loads(given.text)
    except (ValueError, RecursionError):
        value = given.text
    if isinstance(value, dict):
        return value
    wrapper = next((name for name in _WRAPPERS if isinstance(old, dict) and set(old) == {name}), "result")
    as_value = isinstance(old, dict) and wrapper in old and not isinstance(old[wrapper], str)
    return {"error" if given.failed else wrapper: value if as_value else given.text}


_PATCHER = GeminiPatcher()


def patcher_for(_head: RequestHead, _document: Document) -> Patcher:
    return _PATCHER
