"""Answers of Amazon Bedrock: Converse, and InvokeModel in the shape of the model's maker, also in AWS's frames."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from rewind.dataclass import dataclass
from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Asked
from rewind.providers.anthropic.speak import event_documents, message_document
from rewind.providers.api import AnswerContent, Document, LossLog, Speaker
from rewind.providers.cohere.fork import older_document, older_documents
from rewind.providers.openai_chat.speak import chunk_documents, completion_document
from rewind.providers.shared.answer_stream import request_json
from rewind.providers.shared.framing import named_frames, whole, wrapped_frames
from rewind.providers.shared.json_fields import at, items_at, text_at
from rewind.providers.shared.speak import pieces
from rewind.providers.shared.write import arguments_object, json_text

_NO_USAGE: Document = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}


def _converse_document(content: AnswerContent) -> Document:
    text = [{"text": content.text}] if content.text or not content.tools else []
    calls = []
    for use in content.tools:
        given = arguments_object(use.arguments, LossLog())
        calls.append({"toolUse": {"toolUseId": use.id, "name": use.name, "input": given}})
    return {
        "output": {"message": {"role": "assistant", "content": [*text, *calls]}},
        "stopReason": "tool_use" if content.tools else "end_turn",
        "usage": _NO_USAGE,
        "metrics": {"latencyMs": 0},
    }


def _converse(*, streamed: bool, invoked: bool = False) -> Speaker:
    """One shape for all models; Nova has it through InvokeModel too."""
    framed = wrapped_frames if invoked else named_frames

    def response(document: Document) -> HttpResponse:
        if not streamed or at(document, "output", "message") is None:
            return whole(document)
        return framed(_event_documents(document))

    form = f"bedrock {'invoke nova' if invoked else 'converse'}{' frames' * streamed}"
    return Speaker(form=form, document=_converse_document, response=response)


def _event_documents(document: Document) -> Iterator[Document]:
    yield {"messageStart": {"role": "assistant"}}
    for index, block in enumerate(items_at(document, "output", "message", "content")):
        place = {"contentBlockIndex": index}
        if isinstance(use := at(block, "toolUse"), dict):
            start = {"toolUseId": use.get("toolUseId"), "name": use.get("name")}
            yield {"contentBlockStart": {"start": {"toolUse": start}, **place}}
            deltas: list[Any] = [{"toolUse": {"input": one}} for one in pieces(json_text(use.get("input") or {}))]
        else:
            deltas = [{"text": one} for one in pieces(text_at(block, "text"))]
        yield from ({"contentBlockDelta": {"delta": delta, **place}} for delta in deltas)
        yield {"contentBlockStop": place}
    yield {"messageStop": {"stopReason": document.get("stopReason") or "end_turn"}}
    told = {"usage": document.get("usage") or _NO_USAGE, "metrics": {"latencyMs": 0}}
    yield {"metadata": told}


def _invoked(
    name: str,
    document: Callable[[AnswerContent], Document],
    streamed: bool,
    *,
    in_pieces: Callable[[Document], Iterable[Document]] = lambda answer: [answer],
    known_by: str = "",
) -> Speaker:
    """A maker's own shape, wrapped in frames where a stream was asked for.

    ``known_by`` is the field by which its answers are known; any other document is sent as it is.
    """

    def response(answer: Document) -> HttpResponse:
        if not streamed:
            return whole(answer)
        return wrapped_frames(in_pieces(answer) if known_by in answer else [answer])

    return Speaker(
        form=f"bedrock invoke{name and f' {name}'}{' frames' * streamed}", document=document, response=response
    )


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


def _text_speaker(maker: _Texts, *, streamed: bool) -> Speaker:
    def document(content: AnswerContent) -> Document:
        if content.tools:
            raise CannotEdit("This model takes a prompt, and cannot call tools.")
        made = maker.piece if streamed and maker.piece else maker.made
        return made(content.text, maker.stop)

    return _invoked(maker.names[0], document, streamed)


def _unknown_maker(model: str, *, streamed: bool) -> Speaker:
    """A model whose answers we cannot write: the user has to give the document."""

    def document(_content: AnswerContent) -> Document:
        raise CannotEdit(
            f"Rewind does not know the shape of an answer of {model}.", hint='give the answer whole: response={"…": …}'
        )

    return _invoked("", document, streamed)


def speaker_for(request: HttpRequest, asked: Asked) -> Speaker:
    """By the shape in which the request was asked."""
    document, _ = request_json(request)
    model, streamed = asked.model or "", asked.streamed
    if not unquote(request.head.path).rstrip("/").endswith(("/invoke", "/invoke-with-response-stream")):
        return _converse(streamed=streamed)
    if at(document, "anthropic_version") is not None:
        return _invoked(
            "anthropic",
            lambda content: message_document(content, model),
            streamed,
            in_pieces=event_documents,
            known_by="content",
        )
    if isinstance(at(document, "message"), str):
        return _invoked("cohere chat", older_document, streamed, in_pieces=older_documents, known_by="text")
    if turns := items_at(document, "messages"):
        blocks = [block for turn in turns for block in items_at(turn, "content")]
        if blocks and not any(text_at(block, "type") for block in blocks):
            return _converse(streamed=streamed, invoked=True)
        return _invoked(
            "chat",
            lambda content: completion_document(content, model),
            streamed,
            in_pieces=lambda answer: chunk_documents(answer, with_usage=True),
            known_by="choices",
        )
    name = model.lower()
    for maker in _MAKERS:
        if any(part in name for part in maker.names):
            return _text_speaker(maker, streamed=streamed)
    if at(document, "inputText") is not None:
        return _text_speaker(_MAKERS[0], streamed=streamed)
    return _unknown_maker(model, streamed=streamed)
