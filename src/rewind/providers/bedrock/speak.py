"""Answers of Amazon Bedrock: Converse, and InvokeModel in the shape of the model's maker, also in AWS's frames."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Asked
from rewind.providers.anthropic.speak import AnthropicSpeaker
from rewind.providers.anthropic.speak import event_documents as anthropic_events
from rewind.providers.api import AnswerContent, Document, LossLog, Speaker
from rewind.providers.cohere.fork import OlderCohereSpeaker, older_documents
from rewind.providers.openai_chat.speak import ChatSpeaker, chunk_documents
from rewind.providers.shared.answer_stream import asked_for
from rewind.providers.shared.framing import named_frames, whole, wrapped_frames
from rewind.providers.shared.json_fields import at, items_at, text_at
from rewind.providers.shared.speak import pieces
from rewind.providers.shared.write import arguments_object, json_text

_NO_USAGE: Document = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}


class ConverseSpeaker:
    """One shape for all models; Nova has it through InvokeModel too."""

    is_model = True

    def __init__(self, *, streamed: bool, invoked: bool = False) -> None:
        self._streamed = streamed
        self._invoked = invoked

    @property
    def form(self) -> str:
        return f"bedrock {'invoke nova' if self._invoked else 'converse'}{' frames' * self._streamed}"

    def document(self, content: AnswerContent) -> Document:
        text = [{"text": content.text}] if content.text or not content.tools else []
        calls = [
            {
                "toolUse": {
                    "toolUseId": use.id,
                    "name": use.name,
                    "input": arguments_object(use.arguments, LossLog()),
                }
            }
            for use in content.tools
        ]
        return {
            "output": {"message": {"role": "assistant", "content": [*text, *calls]}},
            "stopReason": "tool_use" if content.tools else "end_turn",
            "usage": _NO_USAGE,
            "metrics": {"latencyMs": 0},
        }

    def response(self, document: Document) -> HttpResponse:
        if not self._streamed or at(document, "output", "message") is None:
            return whole(document)
        framed = wrapped_frames if self._invoked else named_frames
        return framed(_event_documents(document))


def _event_documents(document: Document) -> Iterator[Document]:
    yield {"messageStart": {"role": "assistant"}}
    for index, block in enumerate(items_at(document, "output", "message", "content")):
        place = {"contentBlockIndex": index}
        if isinstance(use := at(block, "toolUse"), dict):
            start = {"toolUseId": use.get("toolUseId"), "name": use.get("name")}
            yield {"contentBlockStart": {"start": {"toolUse": start}, **place}}
            deltas: list[Any] = [
                {"toolUse": {"input": one}} for one in pieces(json_text(use.get("input") or {}))
            ]
        else:
            deltas = [{"text": one} for one in pieces(text_at(block, "text"))]
        yield from ({"contentBlockDelta": {"delta": delta, **place}} for delta in deltas)
        yield {"contentBlockStop": place}
    yield {"messageStop": {"stopReason": document.get("stopReason") or "end_turn"}}
    told = {"usage": document.get("usage") or _NO_USAGE, "metrics": {"latencyMs": 0}}
    yield {"metadata": told}


class InvokedSpeaker:
    """A maker's own shape, wrapped in frames where a stream was asked for."""

    is_model = True

    def __init__(
        self,
        maker: Speaker,
        in_pieces: Callable[[Document], Iterable[Document]],
        *,
        name: str,
        told_in: str,
        streamed: bool,
    ) -> None:
        self._maker = maker
        self._in_pieces = in_pieces
        self._name = name
        self._told_in = told_in
        """The field by which its answers are known; any other document is sent as it is."""
        self._streamed = streamed

    @property
    def form(self) -> str:
        return f"bedrock invoke {self._name}{' frames' * self._streamed}"

    def document(self, content: AnswerContent) -> Document:
        return self._maker.document(content)

    def response(self, document: Document) -> HttpResponse:
        if not self._streamed:
            return whole(document)
        return wrapped_frames(self._in_pieces(document) if self._told_in in document else [document])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texts:
    """A maker whose models give a text and no more."""

    names: tuple[str, ...]
    """Of which one is in the name of the model."""
    made: Callable[[str, str | None], Document]
    """From a text, or a piece of one, and why it ended."""
    stop: str
    piece: Callable[[str, str | None], Document] | None = None
    """The same in a stream, where that looks otherwise."""


_MAKERS = (
    _Texts(
        names=("titan",),
        made=lambda text, stop: {
            "inputTextTokenCount": 0,
            "results": [{"tokenCount": 0, "outputText": text, "completionReason": stop}],
        },
        stop="FINISH",
        piece=lambda text, stop: {
            "outputText": text,
            "index": 0,
            "totalOutputTextTokenCount": 0,
            "completionReason": stop,
            "inputTextTokenCount": 0,
        },
    ),
    _Texts(
        names=("llama", "meta."),
        made=lambda text, stop: {
            "generation": text,
            "prompt_token_count": 0,
            "generation_token_count": 0,
            "stop_reason": stop,
        },
        stop="stop",
    ),
    _Texts(
        names=("mistral", "mixtral"),
        made=lambda text, stop: {"outputs": [{"text": text, "stop_reason": stop}]},
        stop="stop",
    ),
    _Texts(
        names=("cohere",),
        made=lambda text, stop: {"generations": [{"text": text, "finish_reason": stop}]},
        stop="COMPLETE",
    ),
    _Texts(
        names=("claude", "anthropic"),
        made=lambda text, stop: {"type": "completion", "completion": text, "stop_reason": stop},
        stop="stop_sequence",
    ),
)


class _TextSpeaker:
    is_model = True

    def __init__(self, maker: _Texts, *, streamed: bool) -> None:
        self._maker = maker
        self._streamed = streamed
        self.form = f"bedrock invoke {maker.names[0]}{' frames' * streamed}"

    def document(self, content: AnswerContent) -> Document:
        if content.tools:
            raise CannotEdit("This model is given a prompt, and calls no tools.")
        made = self._maker.piece if self._streamed and self._maker.piece else self._maker.made
        return made(content.text, self._maker.stop)

    def response(self, document: Document) -> HttpResponse:
        return wrapped_frames([document]) if self._streamed else whole(document)


class _UnknownMaker:
    """A model whose answers we cannot write: the user has to give the document."""

    is_model = True

    def __init__(self, model: str, *, streamed: bool) -> None:
        self._model = model
        self._streamed = streamed
        self.form = f"bedrock invoke{' frames' * streamed}"

    def document(self, content: AnswerContent) -> Document:
        raise CannotEdit(
            f"Rewind does not know the shape of an answer of {self._model}.",
            hint='give the answer whole: response={"…": …}',
        )

    def response(self, document: Document) -> HttpResponse:
        return wrapped_frames([document]) if self._streamed else whole(document)


def speaker_for(request: HttpRequest, asked: Asked) -> Speaker:
    """By the shape in which the request was asked."""
    document, _ = asked_for(request)
    model, streamed = asked.model or "", asked.streamed
    if not unquote(request.head.path).rstrip("/").endswith(("/invoke", "/invoke-with-response-stream")):
        return ConverseSpeaker(streamed=streamed)
    if at(document, "anthropic_version") is not None:
        claude = AnthropicSpeaker(model, streamed=False)
        return InvokedSpeaker(
            claude, anthropic_events, name="anthropic", told_in="content", streamed=streamed
        )
    if isinstance(at(document, "message"), str):
        command = OlderCohereSpeaker(streamed=False)
        return InvokedSpeaker(command, older_documents, name="cohere chat", told_in="text", streamed=streamed)
    if turns := items_at(document, "messages"):
        blocks = [block for turn in turns for block in items_at(turn, "content")]
        if blocks and not any(text_at(block, "type") for block in blocks):
            return ConverseSpeaker(streamed=streamed, invoked=True)
        chat = ChatSpeaker(model, streamed=False, with_usage=False)
        return InvokedSpeaker(
            chat,
            lambda whole: chunk_documents(whole, with_usage=True),
            name="chat",
            told_in="choices",
            streamed=streamed,
        )
    name = model.lower()
    for maker in _MAKERS:
        if any(one in name for one in maker.names):
            return _TextSpeaker(maker, streamed=streamed)
    if at(document, "inputText") is not None:
        return _TextSpeaker(_MAKERS[0], streamed=streamed)
    return _UnknownMaker(model, streamed=streamed)
