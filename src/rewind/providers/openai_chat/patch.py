"""Changes requests of OpenAI Chat Completions and all who speak it, also Ollama's and Cohere's chats."""

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

from rewind.model.http import RequestHead
from rewind.model.message import Message
from rewind.providers.api import Document, FieldPath, LossLog, NewResult, Patcher
from rewind.providers.openai_chat.write import messages_for
from rewind.providers.shared.chat_messages import message_of
from rewind.providers.shared.json_fields import at, text_at
from rewind.providers.shared.parameters import (
    ANYTHING,
    FLAG,
    INTEGER,
    LIST,
    NUMBER,
    OBJECT,
    TEXT,
    ParameterTable,
    named,
)
from rewind.providers.shared.patch import FieldPatcher, ParameterPlaces, TextBlocks, as_object, is_text_of, listed
from rewind.providers.shared.write import with_matched_ids

PARAMETERS: ParameterTable = {
    **named("temperature", NUMBER.between(0, 2)),
    **named("top_p", NUMBER.between(0, 1)),
    **named("frequency_penalty presence_penalty", NUMBER.between(-2, 2)),
    **named("max_completion_tokens max_tokens seed", INTEGER),
    **named("n best_of", INTEGER.between(1)),
    **named("top_logprobs", INTEGER.between(0, 20)),
    **named("echo parallel_tool_calls store stream", FLAG),
    **named("model prompt_cache_key prompt_cache_retention safety_identifier suffix user", TEXT),
    **named("reasoning_effort service_tier verbosity", TEXT),
    **named("functions messages modalities tools", LIST),
    **named("audio logit_bias metadata moderation prediction prompt_cache_options", OBJECT),
    **named("response_format stream_options web_search_options", OBJECT),
    "stop": TEXT | LIST,
    "tool_choice": TEXT | OBJECT,
    **named("function_call logprobs prompt", ANYTHING),
    # Of servers that speak the same API: vLLM, llama.cpp, OpenRouter, Mistral, DeepSeek, Qwen.
    **named("top_k", INTEGER),
    **named("min_p repetition_penalty top_a typical_p", NUMBER),
    **named("enable_thinking ignore_eos include_reasoning safe_prompt", FLAG),
    **named("models plugins transforms", LIST),
    **named("chat_template_kwargs provider reasoning structured_outputs thinking", OBJECT),
    **named("grammar guided_choice guided_grammar guided_json guided_regex keep_alive", ANYTHING),
    **named("max_price prompt_mode random_seed route usage", ANYTHING),
}
"""Chat Completions and the older completions."""

WriteMessages = Callable[[Sequence[Message], LossLog], list[dict[str, Any]]]


def _made(text: str, old: Any) -> Any:
    # OpenRouter and LiteLLM pass Anthropic's marks on.
    kept = {"cache_control": old["cache_control"]} if at(old, "cache_control") is not None else {}
    return {"type": "text", "text": text, **kept}


_WORDS = TextBlocks(is_text_of("text"), _made)


class ChatPatcher:
    """The system prompt is the messages that stand first."""

    model_in_body = True

    def __init__(
        self, name: str, *, write: WriteMessages = messages_for, settings: ParameterPlaces | None = None
    ) -> None:
        self.name = name
        self._write = write
        self._settings = settings or ParameterPlaces()

    def system(self, document: Document) -> Any:
        return self._leading(document) or None

    def with_system(self, document: Document, raw: Any) -> Document:
        turns = self.turns(document)
        return self.with_turns(document, [*raw, *turns[len(self._leading(document)) :]])

    def with_system_text(self, document: Document, text: str) -> Document:
        first = next(iter(self._leading(document)), {"role": "system", "content": ""})
        return self.with_system(document, [self.with_words(first, text)] if text else [])

    def with_more_system(self, document: Document, text: str) -> Document:
        leading = self._leading(document)
        if not leading:
            return self.with_system_text(document, text)
        content = leading[-1].get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
        extended = _WORDS.extended(blocks, text)
        last = {**leading[-1], "content": extended if isinstance(content, list) else extended[0]["text"]}
        return self.with_system(document, [*leading[:-1], last])

    def turns(self, document: Document) -> list[Any]:
        return listed(document, "messages")

    def with_turns(self, document: Document, turns: list[Any]) -> Document:
        return {**document, "messages": turns}

    def message(self, turn: Any) -> Message:
        return message_of(turn)

    def with_words(self, turn: Any, text: str) -> Any:
        fields = as_object(turn)
        content = fields.get("content")
        return {**fields, "content": _WORDS.replaced(content, text) if isinstance(content, list) else text}

    def results(self, turn: Any) -> list[Any]:
        return [at(turn, "content")] if text_at(turn, "role") in ("tool", "function") else []

    def with_results(self, turn: Any, results: Sequence[NewResult | None]) -> Any:
        for one in results:
            if one is not None:
                old = as_object(turn).get("content")
                as_list = isinstance(old, list) and any(map(_WORDS.are, old))
                text: Any = [_made(one.text, None)] if as_list else one.text
                turn = {**turn, "content": text if one.raw is None else one.raw}
        return turn

    def written(self, message: Message) -> list[Any]:
        return list(self._write(with_matched_ids([message]), LossLog()))

    def parameter(self, document: Document, path: FieldPath) -> FieldPath:
        return self._settings.place(document, path)

    def _leading(self, document: Document) -> list[dict[str, Any]]:
        return list(takewhile(_is_system, self.turns(document)))


def _is_system(turn: Any) -> bool:
    return text_at(turn, "role") in ("system", "developer")


_CHAT = ChatPatcher("openai-chat")
_COMPLETIONS = FieldPatcher("completions", api="The completions API", prompt="prompt", model_in_body=True)


def patcher_for(_head: RequestHead, document: Document) -> Patcher:
    return _COMPLETIONS if "prompt" in document and "messages" not in document else _CHAT
